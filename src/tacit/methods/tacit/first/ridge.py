"""Ridge regression with the data's own prior, and the scores of rows that it has not seen.

    W = (XᵀVX + λP)⁻¹ XᵀY,      P = (XᵀVX / mean eigenvalue)^(-p)                              (1)

V is 1 where a row says something and w₀ where it says nothing. p = 0 is plain ridge; p > 0 trusts
directions in which the features of *all* rows vary, so that rows without labels teach as well. With
XᵀVX = Q diag(g) Qᵀ and q = (g / mean g)^p, (XᵀVX + λP)⁻¹ = F Fᵀ for F = Q diag(√(q / (g q + λ))).

The model that has not seen row i need not be fitted: with h_i = v_i ‖Fᵀx_i‖², its score is

    s_il = (x_iᵀ w_l - h_i y_il) / (1 - h_i),                                                   (2)

exactly. So one factorisation gives the model and the scores of all its rows left out, one by one;
λ, p and the scaling of the features are those whose (2) ranks best.

**Cost**: XᵀX in O(Σ nnz²) or XXᵀ; one factor, O(d³) or O(n³); W in O(d² L). It cannot take more
features *and* rows than `Limits` has room for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.moments import Moments
from tacit.engines.solvers import inverse_root
from tacit.methods.tacit.deal import SomeRows
from tacit.methods.tacit.judge import gain_of_scores
from tacit.methods.tacit.limits import Limits
from tacit.models import LowRank

__all__ = ["LADDER", "START", "FirstRidge", "LeaveOneOut", "Unseen", "climbed", "weighed"]

LADDER = tuple(10 ** (step / 2) for step in range(-2, 7))  # λ, from 0.1 to 1,000
START = 3  # 3.2
POWERS = (0.0, 1.0, 2.0)
_LARGE = 512  # features
_SEEN = 0.999  # the largest h: beyond, a row alone decides its score, and (2) divides by nothing

Unseen = tuple[int | None, Any]
"""A fold of the rows, or all of them, and what scores them by models that have not seen them."""


@dataclass(frozen=True)
class Normal:
    """XᵀVX and XᵀY of some rows, or the eigenvectors of XᵀVX that the rows span."""

    xx: Array | None
    xy: Array
    mean: float
    eigen: tuple[Array, Array] | None

    def root(self, reg: float, power: float) -> Array:
        """F of (1)."""
        if self.eigen is None:
            assert self.xx is not None
            xp, diagonal = array_namespace(self.xx), np.arange(len(self.xx))
            G = xp.asarray(self.xx, copy=True)
            G[diagonal, diagonal] += reg
            return inverse_root(G)
        _, Q = self.eigen
        return Q * self.shrunk(reg, power)[None, :]

    def shrunk(self, reg: float, power: float) -> Array:
        """√(q / (g q + λ)) of the eigenvectors."""
        assert self.eigen is not None
        g = self.eigen[0]
        q = (g / self.mean) ** power if power else array_namespace(g).ones_like(g)
        return array_namespace(g).sqrt(q / (g * q + reg))

    @cached_property
    def rotated(self) -> Array:
        """QᵀXᵀY."""
        assert self.eigen is not None
        return self.eigen[1].T @ self.xy


def normal_equations(rows: SomeRows, weight: float, spectrum: bool, limits: Limits) -> Normal:
    """Those of scaled rows; the eigenvectors too where they are asked for."""
    d, heard = rows.n_features, weighed(rows.blocks, weight)
    if rows.n_samples < d and rows.n_samples <= limits.exact_rows:
        return _from_rows(heard, rows.backend)
    moments = Moments.of(heard, label_gram=False)
    xx, xp = moments.xx, array_namespace(moments.xx)
    mean = float(xp.linalg.trace(xx)) / d
    if not spectrum:
        return Normal(xx, moments.xy, mean, None)
    if d > _LARGE:  # float32 is enough for eigenvectors that (1) shrinks, and twice as fast
        xx = xp.astype(xx, xp.float32)
    g, Q = xp.linalg.eigh(xx)
    return Normal(None, moments.xy, mean, (xp.clip(g, min=mean * 1e-12), Q))


def weighed(blocks: Blocks, weight: float) -> Blocks:
    """The rows that say nothing at their little weight in XᵀX."""
    return blocks.map(_weighed, weight) if weight < 1 else blocks


def _from_rows(heard: Blocks, backend: Backend) -> Normal:
    """Of more features than rows: the eigenvectors of XᵀVX are Xᵀ times those of XXᵀ."""
    X, Y = zip(*heard.sum(_listed))
    X, Y = (sp.vstack(part, format="csr").astype(np.float32) for part in (X, Y))
    K = (X @ X.T).toarray()
    g, U = np.linalg.eigh(K if len(K) > _LARGE else K.astype(np.float64))
    spanned = g > g[-1] * len(g) * np.finfo(g.dtype).eps
    g, U = g[spanned], U[:, spanned]
    Q = (X.T @ U) / np.sqrt(g)
    mean, place = float(g.sum()) / X.shape[1], backend.asarray
    return Normal(None, place((X.T @ Y).toarray()), mean, (place(g), place(Q)))


@dataclass(frozen=True)
class LeaveOneOut:
    """(2): the scores of each row by the ridge of all the others."""

    W: Array
    F: Array
    weight: float

    def scores(self, b: Block) -> Array:
        xp = array_namespace(self.W)
        h = xp.sum(b.project(self.F) ** 2, axis=1)
        h = xp.where(_silent(b), self.weight * h, h)
        h = xp.clip(h, max=_SEEN)[:, None]
        said = b.backend.dense(b.Y, slice(0, b.Y.shape[0]), self.W.dtype)
        return (b.project(self.W) - h * said) / (1 - h)


@dataclass(frozen=True)
class FirstRidge:
    """(1) with its λ and p chosen."""

    reg: float
    power: float
    weight: float

    name: ClassVar[str] = "ridge"
    rough: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"ridge with λ = {self.reg:.3g} and a prior of power {self.power:g}"

    def fit(self, rows: SomeRows, limits: Limits) -> tuple[LowRank, list[Unseen]]:
        """The model of these scaled rows, and what scores each of them by the others."""
        normal = normal_equations(rows, self.weight, self.power > 0, limits)
        like = rows.backend.asarray(np.zeros(1, rows.dtype)).dtype
        xp = array_namespace(normal.xy)
        F = xp.astype(normal.root(self.reg, self.power), like)
        W = F @ (F.T @ xp.astype(normal.xy, like))
        return LowRank(rows.to_host(W)), [(None, LeaveOneOut(W, F, self.weight))]

    @classmethod
    def choose(
        cls, rows: SomeRows, judged: Blocks, weight: float, limits: Limits, *, rough: bool = False
    ) -> tuple[float, FirstRidge]:
        """The λ and p whose (2) ranks the judged rows best, which are among the rows.

        A `rough` choice, of scalings that are to be compared, has one λ if each takes long.
        """
        by_rows = rows.n_samples < rows.n_features and rows.n_samples <= limits.exact_rows
        spectrum = by_rows or rows.n_features <= limits.spectrum_features
        normal = normal_equations(rows, weight, spectrum, limits)
        like = rows.backend.asarray(np.zeros(1, rows.dtype)).dtype
        best, step = (-1.0, cls(LADDER[START], 0.0, weight)), START
        for power in POWERS if spectrum else POWERS[:1]:
            at = _tried(normal, judged, power, weight, like)
            found, step = (at(step), step) if rough and not spectrum else climbed(at, step)
            if found > best[0]:
                best = found, cls(LADDER[step], power, weight)
        return best


def _tried(
    normal: Normal, judged: Blocks, power: float, weight: float, like: Any
) -> Callable[[int], float]:
    """The mean gain of (2) on the judged rows, at a step of the ladder of λ."""
    cast = lambda M: array_namespace(M).astype(M, like)  # enough to choose by
    if normal.eigen is not None:  # everything is diagonal in the eigenvectors
        g, Q = map(cast, normal.eigen)
        light, turned = replace(normal, xy=cast(normal.xy), eigen=(g, Q)), judged.map(_turned, Q)
        of = lambda reg: turned.sum(_gain_turned, light.shrunk(reg, power), light.rotated, weight)
    else:
        light = replace(normal, xx=cast(normal.xx), xy=cast(normal.xy))
        of = lambda reg: judged.sum(_gain_rooted, light.root(reg, power), light.xy, weight)

    def at(step: int) -> float:
        total, n = of(LADDER[step])
        return total / max(n, 1)

    return at


def climbed(at: Any, first: int) -> tuple[float, int]:
    """The best step of the ladder, upwards from the first or, if that is no gain, down."""
    best, step = at(first), first
    for way in (1, -1):
        while 0 <= step + way < len(LADDER) and (found := at(step + way)) > best:
            best, step = found, step + way
        if step != first:
            break
    return best, step


def _turned(b: Block, Q: Array) -> Block:
    """The block with its features along the eigenvectors."""
    return replace(b, X=b.project(Q), more=())


def _gain_turned(b: Block, shrunk: Array, R: Array, weight: float) -> tuple[float, int]:
    T = b.X * shrunk[None, :]
    return _gain(b, T @ (shrunk[:, None] * R), T, weight)


def _gain_rooted(b: Block, F: Array, xy: Array, weight: float) -> tuple[float, int]:
    T = b.project(F)
    return _gain(b, (T @ F.T) @ xy, T, weight)


def _gain(b: Block, S: Array, T: Array, weight: float) -> tuple[float, int]:
    xp = array_namespace(S)
    h = xp.sum(T * T, axis=1)
    h = xp.clip(xp.where(_silent(b), weight * h, h), max=_SEEN)[:, None]
    said = b.backend.dense(b.Y, slice(0, b.Y.shape[0]), S.dtype)
    return float(gain_of_scores(b, (S - h * said) / (1 - h)).sum()), b.Y.shape[0]


def _weighed(b: Block, weight: float) -> Block:
    """The block with the rows that say nothing at their little weight in XᵀX."""
    silent = _silent(b)
    xp = array_namespace(silent)
    light = xp.asarray(weight**0.5, dtype=xp.float64, device=silent.device)
    return b.weighted(xp.where(silent, light, xp.ones_like(light)))


def _silent(b: Block) -> Array:
    """The rows of which nothing was said."""
    return b.Y.indptr[1:] == b.Y.indptr[:-1]


def _listed(b: Block) -> list[tuple[sp.csr_array, sp.csr_array]]:
    """A list of one: lists add to longer ones."""
    X = b.X.scipy() if isinstance(b.X, Sparse) else sp.csr_array(b.backend.to_numpy(b.X))
    return [(X, b.Y.scipy())]
