"""Scaling: how features are brought to one scale before a method sees them.

A row is x, with d features and behind them the constant 1, which stays 1 and is not counted in any
norm. By `kind`, x becomes

    "none"        x                                                                            (1)
    "unit"        x / ‖x‖, and a row of zeros stays                                            (2)
    "idf"         w ∘ x / ‖w ∘ x‖,       w_j = log((1 + n) / (1 + df_j)) + 1                   (3)
    "standard"    z = w ∘ (x - μ),       w_j = 1 / sd_j, or 1 where sd_j is 0                  (4)
    "fourier"     √(2/s) cos(zᵀΩ + b),   Ω_jk ~ N(0, 1/m²),  b_k ~ U(0, 2π)                    (5)

and beside x there may stand products of how far it goes along r orthonormal directions Q,

    "… products"  √(2 - [i = j]) p_i p_j,  i ≤ j,    p = Qᵀx                                   (6)

n is the number of rows, df_j the rows in which feature j is not 0, and m the median distance of
some pairs of rows z. The inner product of two rows (5) is on average exp(-‖z - z'‖² / 2m²): a
linear method then is, nearly, one with a Gaussian kernel of the data's own width. That of two rows
(6) is (pᵀp')², whatever the basis of the span of Q: a linear method on x and (6) has a kernel of
second degree in the directions along which rows go furthest, and of first degree in the others.
(2) and (3) keep the pattern of a sparse X and cost O(nnz); (4) and (5) lay it out; (6) is laid out
beside it. No method learns (6) any more: files of 0.1.0 may hold it.

What has to be known of the rows is added up over blocks: one pass for (3) and (4), two for (5).
For (4) each block squares what is left of its own mean, and such sums are merged (Chan et al.), as
E[x²] - μ² would lose all digits of a feature that hardly varies.

References: A. Rahimi and B. Recht. Random features for large-scale kernel machines. NIPS 2007.
T. F. Chan, G. H. Golub and R. J. LeVeque. Algorithms for computing the sample variance. The
American Statistician, 1983.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.basics.numerics import cache_sized
from tacit.blocks import Blocks
from tacit.blocks.facts import are_dense

__all__ = ["KINDS", "Scaling", "choices"]

KINDS = ("none", "unit", "idf", "standard", "fourier")

_PAIRS = 2000  # of rows: the median of their distances is then known to a few per cent
_CLOSEST = 1e-12  # the least m, where most rows are the same
_WIDE = 1000  # features up to which random ones are worth their cost


@dataclass(frozen=True)
class Scaling:
    """One of (1) to (5), with what it learned of the training rows.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    weight, shift : ndarrays of shape (d,), or None
        w of (3) or (4), and μ.
    draws, phase : ndarrays of shapes (d, s) and (s,), or None
        Ω and b.
    directions : ndarray of shape (d + 1, r), or None
        Q and, for the constant, zeros; where there are products.

    Examples
    --------
    `Scaling.of("idf", blocks, rng)` learns it; applying it is one `map`::

        scaled = blocks.map(scaling)
    """

    kind: str
    weight: np.ndarray | None = None
    shift: np.ndarray | None = None
    draws: np.ndarray | None = None
    phase: np.ndarray | None = None
    directions: np.ndarray | None = None

    @classmethod
    def of(
        cls, kind: str, blocks: Blocks, rng: np.random.RandomState, n_components: int = 2000
    ) -> Scaling:
        """The scaling of these placed rows; `n_components` is the s of (5), drawn from `rng`."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}")
        if kind in ("none", "unit"):
            return cls(kind)
        if kind == "idf":
            n, df = blocks.sum(_sums, True)
            return cls(kind, np.log((1 + n) / (1 + df)) + 1)
        standard = cls.standard(blocks)
        if kind == "standard":
            return standard
        shift = standard.shift
        assert shift is not None
        distances = blocks.sum(_distances, standard, rng.random_sample((2, _PAIRS))).value
        m = max(float(np.median(distances)), _CLOSEST)
        draws = rng.normal(scale=1 / m, size=(len(shift), n_components)).astype(distances.dtype)
        phase = rng.uniform(0, 2 * np.pi, size=n_components).astype(distances.dtype)
        return replace(standard, kind=kind, draws=draws, phase=phase)

    @classmethod
    def standard(cls, blocks: Blocks) -> Scaling:
        """(4) of these placed rows."""
        spread = blocks.sum(_spread)
        sd = np.sqrt(spread.squares / spread.n)
        # μ is a rounded sum of n numbers, so the sd of a constant is no more than this, but not 0.
        constant = sd <= spread.n * np.finfo(sd.dtype).eps * np.abs(spread.mean)
        return cls("standard", 1 / np.where(constant, 1, sd), spread.mean)

    def without_waves(self) -> Scaling:
        """The same without random features: for models that bring their own bends."""
        if self.kind != "fourier":
            return self
        return replace(self, kind="standard", draws=None, phase=None)

    def unweighted(self) -> Scaling:
        """Rows at unit length, or standardised: for models that weigh features themselves."""
        return Scaling("unit") if self.kind in ("none", "idf") else self.without_waves()

    def __call__(self, block: Block) -> Block:
        """The same rows, with their X scaled: for `blocks.map`."""
        scaled = self._scaled(block)
        if self.directions is None:
            return scaled
        return replace(scaled, more=(*block.more, self._products(scaled)))

    def _scaled(self, block: Block) -> Block:
        if self.kind == "none":
            return block
        if self.kind in ("unit", "idf"):
            return replace(block, X=self._unit(block))
        X = _laid_out(block.X)
        xp = array_namespace(X)
        kept = lambda a: xp.astype(block.backend.kept(a), X.dtype, copy=False)
        Z = self.standardised(X[:, :-1], kept)
        if self.kind == "fourier":
            waves = xp.cos(Z @ kept(self.draws) + kept(self.phase))
            Z = (2 / waves.shape[1]) ** 0.5 * waves
        return replace(block, X=xp.concat([Z, X[:, -1:]], axis=1))

    def standardised(self, X: Array, kept: Callable = lambda a: a) -> Array:
        """z of (4), without the constant; `kept` brings μ and w to where X is."""
        return (X - kept(self.shift)) * kept(self.weight)

    def n_features(self, n: int) -> int:
        """How many columns X and the products then have, of n of X before; with the constant."""
        r = 0 if self.directions is None else self.directions.shape[1]
        return (n if self.phase is None else len(self.phase) + 1) + r * (r + 1) // 2

    def _products(self, block: Block) -> Array:
        """(6): the squares, then those of the first direction and each later one, and so on."""
        P = block.backend.spmm(block.X, block.backend.kept(self.directions))
        crosses = [2**0.5 * P[:, i : i + 1] * P[:, i + 1 :] for i in range(P.shape[1] - 1)]
        return array_namespace(P).concat([P * P, *crosses], axis=1)

    def _unit(self, block: Block) -> Any:
        """(2) or (3): x_ij times A_i B_jᵀ, which is w_j / ‖w ∘ x_i‖, and 1 for the constant."""
        X, backend = block.X, block.backend
        xp, float_type, device = _about(X)
        B = xp.zeros((X.shape[1], 2), dtype=xp.float64, device=device)
        B[:-1, 0] = 1.0 if self.weight is None else backend.kept(self.weight)
        B[-1, 1] = 1.0
        squares = backend.spmm(_with(X, _squared), B[:, :1] ** 2)
        A = xp.ones((X.shape[0], 2), dtype=xp.float64, device=device)
        A[:, :1] /= xp.sqrt(xp.where(squares > 0, squares, A[:, 1:]))
        A, B = xp.astype(A, float_type), xp.astype(B, float_type)
        factors = backend.sddmm(X, A, B) if isinstance(X, Sparse) else A @ B.T
        return _with(X, lambda x: x * factors)


def choices(blocks: Blocks) -> tuple[str, ...]:
    """The kinds worth trying on these placed rows: text is sparse, measurements are dense."""
    n, entries, cells = blocks.sum(_size)
    if not are_dense(entries, cells):
        return "unit", "idf"
    return ("standard", "fourier") if cells <= _WIDE * n else ("standard",)


@dataclass(frozen=True)
class _First:
    """A value of the first block that has one, as a sum."""

    value: np.ndarray

    def __add__(self, other: _First) -> _First:
        return self if len(self.value) else other


@dataclass(frozen=True)
class _Spread:
    """Of some rows: how many, the mean of each feature, and Σ (x_j - μ_j)². Spreads add."""

    n: int
    mean: np.ndarray
    squares: np.ndarray

    def __add__(self, other: _Spread) -> _Spread:
        n, apart = self.n + other.n, other.mean - self.mean
        share = other.n / max(n, 1)
        squares = self.squares + other.squares + apart**2 * (self.n * share)
        return _Spread(n, self.mean + apart * share, squares)


def _spread(b: Block) -> _Spread:
    n, total = _sums(b, False)
    mean = total / max(n, 1)
    return _Spread(n, mean, _squares(b, mean))


def _sums(b: Block, present: bool) -> tuple[int, np.ndarray]:
    """How many rows, and for each feature its sum over them, or the rows in which it is not 0."""
    n, (xp, _, device) = b.X.shape[0], _about(b.X)
    # Of the transpose itself, which shards bring along: one of new values would be sorted again.
    X_t = b.X.transposed if isinstance(b.X, Sparse) else b.X.T
    X_t = _with(X_t, lambda x: xp.astype(x != 0, xp.float64)) if present else X_t
    ones = xp.ones((n, 1), dtype=xp.float64, device=device)
    return n, b.backend.to_numpy(b.backend.spmm(X_t, ones))[:-1, 0]


def _squares(b: Block, shift: np.ndarray) -> np.ndarray:
    """Σ (x_j - μ_j)² for each feature."""
    X, about = _laid_out(b.X)[:, :-1], b.backend.kept(shift)
    squares = (_squared(X[rows] - about) for rows in cache_sized(X))
    return b.backend.to_numpy(sum(array_namespace(X).sum(part, axis=0) for part in squares))


def _distances(b: Block, standard: Scaling, pairs: np.ndarray) -> _First:
    """‖z - z'‖ of pairs of different rows, given by numbers from [0, 1)."""
    Z = standard(b).X
    n = Z.shape[0]
    if not n:
        return _First(pairs[0, :0])
    i = (pairs[0] * n).astype(np.int64)
    j = (i + 1 + (pairs[1] * (n - 1)).astype(np.int64)) % n
    difference = Z[b.backend.asarray(i)] - Z[b.backend.asarray(j)]
    xp = array_namespace(Z)
    return _First(b.backend.to_numpy(xp.sqrt(xp.sum(difference * difference, axis=1))))


def _size(b: Block) -> tuple[int, int, int]:
    """Rows, entries that are not 0, and entries that there could be; less the constant's."""
    n, width = b.X.shape
    xp, *_ = _about(b.X)
    numbers = b.X.data if isinstance(b.X, Sparse) else b.X
    return n, int(xp.count_nonzero(numbers)) - n, n * (width - 1)


def _about(X: Any) -> tuple[Any, Any, Any]:
    """The array library of X, its float type, and its device."""
    numbers = X.data if isinstance(X, Sparse) else X
    return array_namespace(numbers), numbers.dtype, numbers.device


def _with(X: Any, f: Callable) -> Any:
    """f of each entry of X, or of each stored one."""
    return replace(X, data=f(X.data)) if isinstance(X, Sparse) else f(X)


def _squared(x: Array) -> Array:
    """In float64, where the square of no float32 is too large or too small."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64) ** 2


def _laid_out(X: Any) -> Array:
    """X, dense."""
    if not isinstance(X, Sparse):
        return X
    xp, float_type, device = _about(X)
    out = xp.zeros(X.shape, dtype=float_type, device=device)
    rows = xp.repeat(xp.arange(X.shape[0], device=device), X.indptr[1:] - X.indptr[:-1])
    out[rows, X.indices] = X.data
    return out
