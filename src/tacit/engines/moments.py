"""Moments: the Gram triple, through which squared loss with complete labels sees the data.

    XᵀX,   XᵀY,   YᵀY,   Σ x,   Σ y,   n                                                       (1)

`Moments` forms them, in float64, in one pass over the rows. They add, so rows may stream in, and
they subtract, so a cross-validation fold is the total minus the fold. `Products` answers the same
questions by passes over the rows, without forming anything d × d: for when d is too large. Both
offer

    cross(H)          XᵀY H                                                                    (2)
    statistics(W)     (YᵀA, AᵀA) for the codes A = X W                                         (3)
    solve(B, m, λ)    the W with XᵀX W diag(m) + λ W = B, one ridge problem a column           (4)
    regress(B, λ)     the W with (XᵀX + λI) W = B: (4) with m = 1, by one factorisation        (5)

and `Products` also ridge regression with the data's own prior of power 2 (`tacit.baselines.ridge`).

`Moments` solves (4) exactly: with XᵀX = Q diag(g) Qᵀ it is W = Q [(QᵀB) / (g mᵀ + λ)]. `Products`
runs conjugate gradients on all columns at once, each with its own step sizes, preconditioned by the
diagonal. Costs, with k
columns: forming (1) takes O(Σ_i nnz(x_i)²) and diagonalising O(d³), once; then (2), (3), (4) take
O((d² + dL) k). By passes, (2), (3) and each step of (4) take O((nnz(X) + nnz(Y)) k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import add, sub
from typing import Any, Protocol

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.basics.numerics import cache_sized
from tacit.blocks import Blocks
from tacit.engines.solvers import cg, cholesky, inverse
from tacit.engines.solvers.cg import ratio

__all__ = ["Equations", "Moments", "Products", "turned"]


_ROUGH = 4  # conjugate gradient steps of a start: the next pass solves for its W again anyway
_LAID_OUT = 2**28  # scores at a time


class Equations(Protocol):
    """The questions (2), (3) and (4), however they are answered."""

    @property
    def n_positives(self) -> float: ...
    def cross(self, H: Array) -> Array: ...
    def statistics(self, W: Array) -> tuple[Array, Array]: ...
    def solve(self, B: Array, m: Array, reg: float, start: Array | None = None) -> Array: ...
    def regress(self, B: Array, reg: float, start: Array | None = None) -> Array: ...
    def rough(self) -> Equations:
        """The same, solved as well as a start needs, unless a tight tolerance was asked for."""
        ...


@dataclass(frozen=True)
class Moments:
    """The sums (1) of some rows.

    Examples
    --------
    `Moments.of(blocks)` makes them; leaving a fold out is one subtraction::

        rest = Moments.of(all_rows) - Moments.of(fold)
    """

    n: float
    x_sum: Array
    y_sum: Array
    xx: Array
    xy: Any
    yy: Any

    @classmethod
    def of(cls, blocks: Blocks, *, cross: bool = True, label_gram: bool = True) -> Moments:
        """The moments of all rows; XᵀY and YᵀY may be left out as None where nobody asks."""
        return blocks.sum(_moments, cross, label_gram)

    def __add__(self, other: Moments) -> Moments:
        return self._combined(add, other)

    def __sub__(self, other: Moments) -> Moments:
        return self._combined(sub, other)

    def _combined(self, operation: Callable, other: Moments) -> Moments:
        pairs: list[Any] = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        sums: Any = (None if a is None or b is None else operation(a, b) for a, b in pairs)
        return Moments(*sums)

    def each(self, f: Callable[[Any], Any]) -> Moments:
        """The same, with f of every sum."""
        return Moments(*(f(getattr(self, field.name)) for field in fields(self)))

    def rotated(self, R: Array) -> Moments:
        """Those of the features X R; features beyond the rows of R stay as they are."""
        xx, xy = turned(R.T, turned(R.T, self.xx).T), None
        if self.xy is not None:
            xy = turned(R.T, self.xy)
        return replace(self, x_sum=turned(R.T, self.x_sum), xx=xx, xy=xy)

    def centred(self) -> Moments:
        """Those of the features but the last, a constant, and of the labels, less their means."""
        xp = array_namespace(self.xx)
        x, y = self.x_sum[:-1] / self.n, self.y_sum / self.n
        about = lambda gram, a, b: None if gram is None else gram - self.n * a[:, None] * b
        return Moments(
            self.n,
            xp.zeros_like(x),
            xp.zeros_like(y),
            about(self.xx[:-1, :-1], x, x),
            about(None if self.xy is None else self.xy[:-1], x, y),
            about(self.yy, y, y),
        )

    @property
    def n_positives(self) -> float:
        """‖Y‖² = Σ y, since y is 0 or 1."""
        return float(array_namespace(self.y_sum).sum(self.y_sum))

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        g, Q = array_namespace(self.xx).linalg.eigh(self.xx)
        return array_namespace(g).clip(g, min=0.0), Q  # rounding may leave -1e-15

    @cached_property
    def label_spectrum(self) -> tuple[Array, Array]:
        return array_namespace(self.yy).linalg.eigh(self.yy)

    def ridge(self, reg: float) -> Array:
        """(XᵀX + λI)⁻¹ XᵀY: one factorisation for all labels, far cheaper than the spectrum."""
        return self.regress(self.xy, reg)

    @cached_property
    def _factors(self) -> dict[tuple[float, str], Callable[[Array], Array]]:
        return {}

    def regress(self, B: Array, reg: float, start: Array | None = None) -> Array:
        """In the precision of B, with the factor kept for the next call."""
        key = reg, str(B.dtype)
        if key not in self._factors:
            self._factors[key] = cholesky(self._ridged(reg, B.dtype))
        return self._factors[key](B)

    def inverse(self, reg: float, dtype: Any) -> Array:
        """(XᵀX + λI)⁻¹ in the given precision."""
        return inverse(self._ridged(reg, dtype))

    def _ridged(self, reg: float, dtype: Any) -> Array:
        xp = array_namespace(self.xx)
        system, diagonal = xp.astype(self.xx, dtype, copy=True), xp.arange(len(self.xx))
        system[diagonal, diagonal] += reg
        return system

    def rough(self) -> Moments:
        return self

    def cross(self, H: Array) -> Array:
        return self.xy @ H

    def statistics(self, W: Array) -> tuple[Array, Array]:
        W = array_namespace(W).astype(W, self.xx.dtype)
        return self.xy.T @ W, W.T @ (self.xx @ W)

    def solve(self, B: Array, m: Array, reg: float, start: Array | None = None) -> Array:
        g, Q = self.spectrum
        xp = array_namespace(B)
        W = Q @ ((Q.T @ xp.astype(B, Q.dtype)) / (g[:, None] * m[None, :] + reg))
        return xp.astype(W, B.dtype)


@dataclass(frozen=True)
class Products:
    """The same answers by passes over the rows.

    `rtol` and `max_iter` stop the conjugate gradients of (4).
    """

    blocks: Blocks
    rtol: float
    max_iter: int

    @cached_property
    def n_positives(self) -> float:
        return float(self.blocks.sum(_count))

    @cached_property
    def xy(self) -> Array:
        """XᵀY, which is dense."""
        return self.blocks.sum(_label_cross)

    @cached_property
    def squares(self) -> Array:
        """The diagonal of XᵀX."""
        return self.blocks.sum(_squares)

    def rough(self) -> Products:
        return replace(self, max_iter=min(self.max_iter, _ROUGH)) if self.rtol >= 1e-3 else self

    def cross(self, H: Array) -> Array:
        return self.blocks.sum(_cross, H)

    def statistics(self, W: Array) -> tuple[Array, Array]:
        return self.blocks.sum(_statistics, W)

    def solve(self, B: Array, m: Array, reg: float, start: Array | None = None) -> Array:
        def matvec(V: Array) -> Array:
            G = self.blocks.sum(_gram, V)
            for rows in cache_sized(G):
                G[rows] *= m
                G[rows] += reg * V[rows]
            return G

        g = array_namespace(B).astype(self.squares, B.dtype)[:, None]
        scaled = lambda R: (
            R / (g * m + reg)
        )  # Jacobi's: frequent features and rare ones differ most
        return cg(
            matvec, B, start, rtol=self.rtol, max_iter=self.max_iter, axis=0, precondition=scaled
        ).x

    def regress(self, B: Array, reg: float, start: Array | None = None) -> Array:
        return self.solve(B, array_namespace(B).ones_like(B[0]), reg, start)

    def regress_with_prior(self, B: Array, reg: float) -> Array:
        """The W = G Z, G = XᵀX / mean eigenvalue, with (G XᵀX G + λI) Z = G B.

        In float64: the largest eigenvalue of G XᵀX G is a cube, and where it is rounded to seven
        digits λ is lost in it. Steps stop at what is small beside B, since G B is nearly all of it
        along one direction, that of the constant feature.
        """
        xp = array_namespace(B)
        B = xp.astype(B, xp.float64)
        mean = float(xp.sum(self.squares)) / self.squares.shape[0] or 1.0

        def gram(V: Array) -> Array:
            return self.blocks.sum(_gram, V)

        def system(V: Array) -> Array:
            return gram(gram(gram(V))) / mean**2 + reg * V

        b = gram(B) / mean
        norms = lambda A: xp.linalg.vector_norm(A, axis=0, keepdims=True)
        rtol = self.rtol * ratio(norms(B), norms(b))
        return gram(cg(system, b, rtol=rtol, max_iter=self.max_iter, axis=0).x) / mean


def turned(R: Array, M: Array) -> Array:
    """R M, where rows of M beyond the columns of R stay as they are."""
    k = R.shape[1]
    return R @ M if k == M.shape[0] else array_namespace(M).concat([R @ M[:k], M[k:]])


def _moments(b: Block, cross: bool, label_gram: bool) -> Moments:
    k = b.backend
    xx, yy = b.cross(b), k.cross(b.Y, b.Y) if label_gram else None
    xp, n = array_namespace(xx), b.Y.shape[0]
    xy = xp.concat([k.cross(part, b.Y) for part, _ in b.features()]) if cross else None
    ones = xp.ones((n, 1), dtype=xp.float64, device=xx.device)
    x_sum, y_sum = b.project_t(ones)[:, 0], k.spmm_t(b.Y, ones)[:, 0]
    return Moments(float(n), x_sum, y_sum, xx, xy, yy)


def _count(b: Block) -> int:
    return b.Y.nnz


def _label_cross(b: Block) -> Array:
    cross = b.backend.cross(b.X, b.Y)
    data = b.X.data if isinstance(b.X, Sparse) else b.X
    return array_namespace(cross).astype(cross, data.dtype)


def _squares(b: Block) -> Array:
    sums = []
    for part, _ in b.features():
        if isinstance(part, Sparse):
            T = part.transposed
            xp = array_namespace(T.data)
            ones = xp.ones((part.shape[0], 1), dtype=T.data.dtype, device=T.data.device)
            sums.append(b.backend.spmm(replace(T, data=T.data * T.data), ones)[:, 0])
        else:
            sums.append(array_namespace(part).sum(part * part, axis=0))
    return array_namespace(sums[0]).concat(sums)


def _cross(b: Block, H: Array) -> Array:
    return b.project_t(b.backend.spmm(b.Y, H))


def _statistics(b: Block, W: Array) -> tuple[Array, Array]:
    A = b.project(W)
    return b.backend.spmm_t(b.Y, A), A.T @ A


def _gram(b: Block, V: Array) -> Array:
    """XᵀXV, some columns at a time where XV would be large."""
    width = max(1, _LAID_OUT // max(1, b.Y.shape[0]))
    if V.shape[1] <= width:
        return b.project_t(b.project(V))
    parts = [V[:, i : i + width] for i in range(0, V.shape[1], width)]
    return array_namespace(V).concat([b.project_t(b.project(part)) for part in parts], axis=1)
