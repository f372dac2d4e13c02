"""The levels of `Tacit`, and how each is judged: by what is said of rows it has not seen.

Rows are dealt into K folds. For every choice below, the model of the other folds ranks the labels
of a fold, and what counts is

    gain = mean over rows of Σ_r [the label at rank r was said] / log₂(1 + r),   r = 1 … 5,      (1)

which takes silence neither for yes nor for no: it lowers the gain of all choices alike.

**Level 0** is ridge regression in which silent rows count little, and the prior is the data's own:

    W = (XᵀVX + λ P)⁻¹ XᵀY,    P = (XᵀX / mean eigenvalue)^(-p),                                 (2)

V = 1 where a row says something and w₀ where it says nothing. p = 0 is plain ridge; p > 0 trusts
directions in which the features of *all* rows vary, so that rows without labels teach as well. With
XᵀX = Q diag(g) Qᵀ and R = Q diag(g / mean g)^(p/2), it is plain ridge on the moments of X R.

**Level 1** lets labels speak for each other: with S the scores of rows by models that have not seen
them, ridge regression in label space, shrunk towards the identity,

    B = (SᵀS + βI)⁻¹ (SᵀY + βI),    W ← W B.                                                     (3)

SᵀS = Σ_k W₋ₖᵀ (XᵀX)ₖ W₋ₖ and SᵀY likewise: no score is formed. To judge β, two folds are left out,
one for the scores that B learns from, one to be judged on: judged on scores that B has seen, the
level looks worse than it is.

**Level 2** fills in what was probably true, once, and fits again. With c = P(said | true) and s the
score, which estimates P(said), P(true | unsaid) follows from Bayes' theorem,

    ŷ = 1 where said, else (1 - c) s / (c (1 - s)), at most 1,                                   (4)

and W is (2) for Ŷ in place of Y, with V = 1 and λ / 10, since every row now says something. Where
labels are masked, c is the share of a label's entries that is known, and ŷ = s / c where it is not.

**Level 3**, the second look, is in `tacit.second_look`. **Links** (`linked`) are for completion
alone, and judged by the half of what was said that is asked for, over twenty ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, pieces
from tacit.blocks import Blocks
from tacit.metrics.top import contains
from tacit.moments import Moments
from tacit.second_look import SecondLook

__all__ = [
    "EXPOSURES",
    "SHRINKAGES",
    "Fold",
    "Folds",
    "Seen",
    "Solution",
    "gain",
    "gain_of_completion",
    "gains_of",
    "heard",
    "linked",
    "mean_gain",
    "ridge_in_labels",
    "says_nothing",
    "scored",
]

SILENT_WEIGHT = 0.2
LADDER = tuple(10.0 ** (j / 2) for j in range(-5, 6))
START = 6  # on the ladder: λ = 3.2, the best single choice of plain ridge
POWERS = (0.0, 1.0, 2.0)
SHRINKAGES = (1.0, 3.0, 10.0)
EXPOSURES = (0.4, 0.2, 0.1)
RANKS, RANKS_COMPLETED = 5, 20  # a steward reads further


@dataclass(frozen=True)
class Fold:
    """Some rows: where they are, their moments, and those with silent rows at little weight."""

    blocks: Blocks
    all: Moments
    heard: Moments

    @classmethod
    def of(cls, blocks: Blocks, dtype: Any) -> Fold:
        sums = Moments.of(blocks, label_gram=False)  # in float64; what follows, in `dtype`
        heard = sums.xx - (1 - SILENT_WEIGHT) * blocks.sum(_silent)
        cast = lambda a: array_namespace(a).astype(a, dtype) if hasattr(a, "dtype") else a
        moments = sums.each(cast)
        return cls(blocks, moments, replace(moments, xx=cast(heard)))

    def rotated(self, R: Array) -> Fold:
        moments = self.all.rotated(R)
        return Fold(self.blocks, moments, replace(moments, xx=R.T @ (self.heard.xx @ R)))


@dataclass(frozen=True)
class Solution:
    """Weights fitted to all rows, and to all but each fold, in the features X R.

    `apart(k)` makes those of all but fold k *and* each other one: what is to be judged on fold k
    must not learn from scores of the others that its labels have gone into.
    """

    W: Array
    without: tuple[Array, ...]
    apart: Callable[[int], tuple[Array, ...]]


class Folds:
    """The rows in folds, in the features X R of (2)."""

    def __init__(self, folds: list[Fold], R: Array | None = None):
        self.folds, self.R = folds, R

    def with_prior(self, power: float) -> Folds:
        """The same rows where the prior of (2) is plain."""
        if power == 0:
            return self
        g, Q = self._spectrum
        R = Q * array_namespace(g).pow(g / array_namespace(g).mean(g), power / 2)
        return Folds([fold.rotated(R) for fold in self.folds], R)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        xx = self._totals["all"].xx
        xp = array_namespace(xx)
        g, Q = xp.linalg.eigh(xx)
        return xp.clip(g, min=1e-9 * float(xp.max(g))), Q

    @cached_property
    def _totals(self) -> dict[str, Moments]:
        total = lambda which: reduce(add, (getattr(fold, which) for fold in self.folds))
        return {which: total(which) for which in ("all", "heard")}

    def _rest(self, which: str, without: tuple[int, ...]) -> Moments:
        rest = self._totals[which]
        for k in without:
            rest = rest - getattr(self.folds[k], which)
        return rest

    def _others(self, k: int) -> list[int]:
        return [j for j in range(len(self.folds)) if j != k]

    def back(self, W: Array) -> Array:
        """Weights of the features X, from those of X R."""
        return W if self.R is None else self.R @ W

    def gain(self, without: tuple[Array, ...]) -> float:
        """(1), each fold ranked by the weights that have not seen it."""
        pairs = zip(self.folds, without)
        return mean_gain([f.blocks.sum(gain, Seen(self.back(W))) for f, W in pairs])

    # Level 0

    def level_0(self, step: int, judged: int | None = None) -> tuple[float, tuple[Array, ...]]:
        """(2) without each fold, or each of the first `judged`, for a λ of the ladder; its gain."""
        reg, folds = LADDER[step], range(len(self.folds) if judged is None else judged)
        found = tuple(self._rest("heard", (k,)).ridge(reg) for k in folds)
        return self.gain(found), found

    def ridge(self, reg: float, without: tuple[Array, ...]) -> Solution:
        """(2) for a λ, of which what leaves out one fold is there already."""
        pairs = lambda k: tuple(self._rest("heard", (k, j)).ridge(reg) for j in self._others(k))
        return Solution(self._totals["heard"].ridge(reg), without, pairs)

    # Level 1

    def in_labels(self, found: Solution, reg: float) -> Iterator[tuple[float, Solution]]:
        """(3) for each β; the weights of a fold learn from scores that have not seen it."""
        every = [f.all.statistics(W) for f, W in zip(self.folds, found.without)]
        whole = reduce(_both, every)
        rest: list[Any] = [None] * len(self.folds)
        for k in range(len(self.folds)):
            for j in range(k):
                W = self._rest("heard", (k, j)).ridge(reg)
                for judged, scored in ((k, j), (j, k)):
                    part = self.folds[scored].all.statistics(W)
                    rest[judged] = part if rest[judged] is None else _both(rest[judged], part)
        for beta in SHRINKAGES:
            B = ridge_in_labels(whole[0], whole[1], beta)
            each = [ridge_in_labels(YtS, StS, beta) for YtS, StS in rest]
            mixed = tuple(W @ own for W, own in zip(found.without, each))
            apart = lambda k, each=each: tuple(W @ each[k] for W in found.apart(k))
            yield beta, Solution(found.W @ B, mixed, apart)

    # Level 2

    def imputed(self, found: Solution, reg: float, exposure: Any) -> Solution:
        """(4), and (2) again; of all rows, and of all but each fold."""
        fill = lambda W, *without: self._imputed(W, reg, exposure, without)
        return Solution(
            fill(found.W),
            tuple(fill(W, k) for k, W in enumerate(found.without)),
            lambda k: tuple(fill(W, k, j) for j, W in zip(self._others(k), found.apart(k))),
        )

    def _imputed(self, W: Array, reg: float, exposure: Any, without: tuple[int, ...]) -> Array:
        seen = [f for k, f in enumerate(self.folds) if k not in without]
        weights = self.back(W)
        xy = sum(f.blocks.sum(_filled_cross, weights, exposure) for f in seen)
        xp = array_namespace(W)
        xy = xp.astype(xy, W.dtype) if self.R is None else self.R.T @ xp.astype(xy, W.dtype)
        return self._rest("all", without).regress(xy, reg / 10)


def ridge_in_labels(YtS: Array, StS: Array, beta: float) -> Array:
    """The B of (3)."""
    xp = array_namespace(StS)
    shrunk = beta * xp.eye(StS.shape[0], dtype=StS.dtype, device=StS.device)
    return xp.linalg.solve(StS + shrunk, YtS.T + shrunk)


def linked(YtY: Array, reg: float) -> Array:
    """Links between labels: how the others that were said of a row predict each.

    The A of zero diagonal that minimises ½‖Y - Y A‖² + ½λ‖A‖² (EASE, Steck 2019): with
    P = (YᵀY + λI)⁻¹, A_ij = -P_ij / P_jj.
    """
    xp = array_namespace(YtY)
    P = xp.linalg.inv(YtY + reg * xp.eye(YtY.shape[0], dtype=YtY.dtype, device=YtY.device))
    A = -P / xp.linalg.diagonal(P)
    diagonal = xp.arange(A.shape[0], device=A.device)
    A[diagonal, diagonal] = 0.0
    return A


@dataclass(frozen=True)
class Seen:
    """A model, seen from the rows it has not seen: factors, links between labels, a second look."""

    W: Array
    H: Array | None = None
    links: Array | None = None
    look: SecondLook | None = None


def gain(b: Block, seen: Seen) -> tuple[float, int]:
    """The sum of (1) over some rows, and their number."""
    total = 0.0
    for part, S in scored(b, seen):
        best = b.kernels.top_k(S, None, RANKS, None).indices
        total += float(gains_of(contains(part.Y.scipy(), best)).sum())
    return total, b.Y.shape[0]


def gains_of(hit: np.ndarray, ranks: int = RANKS) -> np.ndarray:
    """The sum of (1) in each row, where the labels at each rank were said or not."""
    hit = hit[:, :ranks]
    return (hit / np.log2(np.arange(2, hit.shape[1] + 2))).sum(axis=1)


def gain_of_completion(b: Block, seen: Seen) -> tuple[float, int]:
    """As `gain`, but of the half of what was said that is asked, where the other half is known."""
    total, rng, k = 0.0, np.random.default_rng(0), b.kernels
    for part, S in scored(b, replace(seen, links=None)):
        said = part.Y.scipy()
        asked = rng.random(said.nnz) < 0.5
        left, wanted = (_only(said, which) for which in (~asked, asked))
        left = k.sparse(left, pattern=True)
        if seen.links is not None:
            S = S + k.spmm(left, seen.links)
        best = k.top_k(S, None, RANKS_COMPLETED, left).indices
        total += float(gains_of(contains(wanted, best), RANKS_COMPLETED).sum())
    return total, b.Y.shape[0]


def _only(said: sp.csr_array, which: np.ndarray) -> sp.csr_array:
    """Some of the entries."""
    pointer = np.append(0, np.cumsum(which))[said.indptr]
    return sp.csr_array((said.data[which], said.indices[which], pointer), shape=said.shape)


def mean_gain(sums: list[tuple[float, int]]) -> float:
    """100 times (1), of the sums that `gain` gives."""
    total, rows = (sum(column) for column in zip(*sums))
    return 100 * total / max(rows, 1)


def scored(b: Block, seen: Seen) -> Iterator[tuple[Block, Array]]:
    """Some rows after the other, and their scores: -inf where a masked entry is not known."""
    for rows in pieces(b, b.Y.shape[1]):
        part = b.some(rows)
        S = part.project(seen.W)
        if seen.H is not None:
            S = S @ seen.H.T
        if seen.links is not None:
            S = S + b.kernels.spmm(part.Y, seen.links)
        if b.omega is not None:
            xp = array_namespace(S)
            S = xp.where(b.kernels.dense(b.omega, rows, S.dtype) > 0, S, -xp.inf)
        yield part, S


def _filled_cross(b: Block, W: Array, exposure: Any) -> Array:
    """XᵀŶ with Ŷ by (4)."""
    k, n_labels, total = b.kernels, b.Y.shape[1], None
    for rows in pieces(b, n_labels):
        part = b.some(rows)
        S = part.project(W)
        xp = array_namespace(S)
        S, said = xp.clip(S, 0.0, 0.999), k.dense(b.Y, rows, S.dtype)
        if b.omega is None:
            filled = xp.clip(S * ((1 - exposure) / exposure) / (1 - S), 0.0, 1.0)
        else:
            known = k.dense(b.omega, rows, S.dtype)
            filled = (1 - known) * xp.clip(S / exposure, 0.0, 1.0)
        cross = part.project_t(xp.maximum(said, filled))
        total = cross if total is None else total + cross
    return total


def _silent(b: Block) -> Array:
    """XᵀX of the rows that say nothing."""
    silent = says_nothing(b)
    if not bool(array_namespace(silent).any(silent)):
        xp, d = array_namespace(silent), b.X.shape[1]
        return xp.zeros((d, d), dtype=xp.float64, device=silent.device)
    return b.kernels.cross(b.X, b.weighted(silent).X)


def heard(b: Block) -> Block:
    """The same with rows that say nothing at their little weight in XᵀX: V of (2)."""
    silent = says_nothing(b)
    xp = array_namespace(silent)
    light = xp.asarray(SILENT_WEIGHT**0.5, dtype=xp.float64, device=silent.device)
    return b.weighted(xp.where(silent, light, xp.ones_like(light)))


def says_nothing(b: Block) -> Array:
    """The rows of which nothing is known."""
    said = b.Y if b.omega is None else b.omega
    return said.indptr[1:] == said.indptr[:-1]


def _both(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return a[0] + b[0], a[1] + b[1]
