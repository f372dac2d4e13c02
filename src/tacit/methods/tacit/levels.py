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

Entries unsaid may weigh less than those said, a in place of 1. With O those said (of masked labels,
those known) and S = XW, weighted least squares is the fixed point of

    W ← (XᵀVX + λ P)⁻¹ Xᵀ (Y - (1 - a) O ∘ S) / a,    λ standing for λ/a,                        (3)

of which one step is taken. Its scores no longer estimate P(said): their odds are 1/a as large, and
what follows takes that back.

Of masked labels, (2) reads the unknown as no and (3) only mends it. LEML of the known entries alone
does neither, and its factors of low rank (10, 30 or 100) let labels learn from each other: they
take the place of W where they rank better. Then level 1 is left out, and a = 0 in what follows.

**Level 1** lets labels speak for each other: with S the scores of rows by models that have not seen
them, ridge regression in label space, shrunk towards the identity,

    B = (SᵀS + βI)⁻¹ (SᵀY + βI),    W ← W B.                                                     (4)

SᵀS = Σ_k W₋ₖᵀ (XᵀX)ₖ W₋ₖ and SᵀY likewise: no score is formed. To judge β, two folds are left out,
one for the scores that B learns from, one to be judged on: judged on scores that B has seen, the
level looks worse than it is.

**Products** of what rows have along their leading directions may stand beside X, [X, Φ] in place of
X (`tacit.features.scaling`, (6)), so that features also tell by coming together: ridge again, with
the same λ and with P = 1 for what is new, and level 1 upon it. They stay if that ranks better.

**Level 2** fills in what was probably true, once, and fits again. With c = P(said | true) and s the
score, which estimates P(said), P(true | unsaid) follows from Bayes' theorem,

    ŷ = 1 where said, else (1 - c) s / (c (1 - s)), at most 1,                                   (5)

and W is (2) for Ŷ in place of Y, with V = 1 and λ / 10, since every row now says something. Where
labels are masked, c is the share of a label's entries that is known, and ŷ = s / c where it is not.
After (3), c / (c + a (1 - c)) stands for c in both.

**Level 3**, the second look, is in `tacit.methods.tacit.second_look`. **Links** (`ease_links`) are
for completion alone, and judged by the half of what was said that is asked for, over twenty ranks.
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
from tacit.engines.moments import Moments, turned
from tacit.methods.tacit.second_look import SecondLook, rows_of
from tacit.metrics.top import contains

__all__ = [
    "EXPOSURES",
    "SHRINKAGES",
    "SILENT",
    "UNSAID",
    "Fold",
    "Folds",
    "HeldOutModel",
    "Solution",
    "down_weight_silent_rows",
    "ease_links",
    "gain",
    "gain_of_completion",
    "gains_of",
    "is_silent_row",
    "mean_gain",
    "ridge_in_labels",
    "scored",
]

SILENT = (0.2, 1.0, 0.05)  # w₀, the first unless another is better
UNSAID = (0.3, 0.1)  # a
LADDER = tuple(10.0 ** (j / 2) for j in range(-5, 6))
START = 6  # on the ladder: λ = 3.2, the best single choice of plain ridge
POWERS = (0.0, 1.0, 2.0)
SHRINKAGES = (1.0, 3.0, 10.0)
EXPOSURES = (0.4, 0.2, 0.1)
RANKS, RANKS_COMPLETED = 5, 20  # a steward reads further


@dataclass(frozen=True)
class Fold:
    """Some rows: where they are, their moments, and XᵀX of those that say nothing, if any do."""

    blocks: Blocks
    all: Moments
    silent: Array | None

    @classmethod
    def of(cls, blocks: Blocks, dtype: Any) -> Fold:
        sums = Moments.of(blocks, label_gram=False)  # in float64; what follows, in `dtype`
        silent = blocks.sum(_silent) if blocks.sum(_n_silent) else None
        cast = lambda a: array_namespace(a).astype(a, dtype) if hasattr(a, "dtype") else a
        return cls(blocks, sums.each(cast), cast(silent))

    def rotated(self, R: Array) -> Fold:
        silent = self.silent
        if silent is not None:
            silent = turned(R.T, turned(R.T, silent).T)
        return Fold(self.blocks, self.all.rotated(R), silent)

    def with_silent_rows_at(self, weight: float) -> Moments:
        """The moments with rows that say nothing at this weight."""
        if self.silent is None:
            return self.all
        return replace(self.all, xx=self.all.xx - (1 - weight) * self.silent)


@dataclass(frozen=True)
class Solution:
    """Weights fitted to all rows, and to all but each fold, in the features X R.

    `pair(k, j)` makes those of all but fold k *and* fold j: what is to be judged on fold k must not
    learn from scores of the others that its labels have gone into.
    """

    W: Array
    without: tuple[Array, ...]
    pair: Callable[[int, int], Array]
    unsaid: float = 1.0  # the a of (3), and 0 where the unknown did not count

    def nested_folds(self, k: int) -> tuple[Array, ...]:
        """`pair(k, j)` for each other fold."""
        return tuple(self.pair(k, j) for j in range(len(self.without)) if j != k)


class Folds:
    """The rows in folds, in the features X R of (2), with w₀."""

    def __init__(self, folds: list[Fold], R: Array | None = None, silent: float = SILENT[0]):
        self.folds, self.R, self.silent = folds, R, silent

    def with_prior(self, power: float) -> Folds:
        """The same rows where the prior of (2) is plain."""
        if power == 0:
            return self
        g, Q = self._spectrum
        R = Q * array_namespace(g).pow(g / array_namespace(g).mean(g), power / 2)
        return Folds([fold.rotated(R) for fold in self.folds], R, self.silent)

    def beside(self, folds: list[Fold]) -> Folds:
        """The same of these rows, whose features behind the first ones have a plain prior."""
        R = self.R
        return Folds(folds if R is None else [f.rotated(R) for f in folds], R, self.silent)

    def with_silent(self, weight: float) -> Folds:
        """The same with another w₀."""
        return Folds(self.folds, self.R, weight)

    @property
    def some_silent(self) -> bool:
        return any(fold.silent is not None for fold in self.folds)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        xx = self._totals["all"].xx
        xp = array_namespace(xx)
        g, Q = xp.linalg.eigh(xx)
        return xp.clip(g, min=1e-9 * float(xp.max(g))), Q

    @cached_property
    def _totals(self) -> dict[str, Moments]:
        return {
            which: reduce(add, (self._of(fold, which) for fold in self.folds))
            for which in ("all", "weighted")
        }

    def _of(self, fold: Fold, which: str) -> Moments:
        return fold.all if which == "all" else fold.with_silent_rows_at(self.silent)

    def _rest(self, which: str, without: tuple[int, ...]) -> Moments:
        rest = self._totals[which]
        for k in without:
            rest = rest - self._of(self.folds[k], which)
        return rest

    def into(self, W: Array) -> Array:
        """Weights of the features X R, from those of X."""
        return W if self.R is None else array_namespace(W).linalg.solve(self.R, W)

    def back(self, W: Array) -> Array:
        """Weights of the features X, from those of X R."""
        return W if self.R is None else turned(self.R, W)

    def gain(self, without: tuple[Array, ...]) -> float:
        """(1), each fold ranked by the weights that have not seen it."""
        pairs = zip(self.folds, without)
        return mean_gain([f.blocks.sum(gain, HeldOutModel(self.back(W))) for f, W in pairs])

    # Level 0

    def level_0(self, step: int, judged: int | None = None) -> tuple[float, tuple[Array, ...]]:
        """(2) without each fold, or each of the first `judged`, for a λ of the ladder; its gain."""
        reg, folds = LADDER[step], range(len(self.folds) if judged is None else judged)
        found = tuple(self._rest("weighted", (k,)).ridge(reg) for k in folds)
        return self.gain(found), found

    def ridge(self, reg: float, without: tuple[Array, ...]) -> Solution:
        """(2) for a λ, of which what leaves out one fold is there already."""
        pair = lambda k, j: self._rest("weighted", (k, j)).ridge(reg)
        return Solution(self._totals["weighted"].ridge(reg), without, pair)

    def weighed(self, found: Solution, reg: float, unsaid: float) -> Solution:
        """(3), from these scores; of all rows, and of all but each fold."""
        again = self._again(found, "weighted", reg, _weighed_cross, unsaid)
        return replace(again, unsaid=unsaid)

    def _again(self, found: Solution, which: str, reg: float, cross: Callable, of: Any) -> Solution:
        """(2) for labels that `cross` makes from the scores, each of the same rows."""

        def fitted(W: Array, *without: int) -> Array:
            seen = [f for k, f in enumerate(self.folds) if k not in without]
            weights = self.back(W)
            xy = sum(f.blocks.sum(cross, weights, of) for f in seen)
            xp = array_namespace(W)
            xy = xp.astype(xy, W.dtype)
            xy = xy if self.R is None else turned(self.R.T, xy)
            return self._rest(which, without).regress(xy, reg)

        return Solution(
            fitted(found.W),
            tuple(fitted(W, k) for k, W in enumerate(found.without)),
            lambda k, j: fitted(found.pair(k, j), k, j),
        )

    # Level 1

    def in_labels(self, found: Solution) -> Iterator[tuple[float, Solution]]:
        """(4) for each β; the weights of a fold learn from scores that have not seen it."""
        every = [f.all.statistics(W) for f, W in zip(self.folds, found.without)]
        whole = reduce(_both, every)
        rest: list[Any] = [None] * len(self.folds)
        for k in range(len(self.folds)):
            for j in range(k):
                W = found.pair(k, j)  # of level 0, so that it is pair(j, k) too
                for judged, scored in ((k, j), (j, k)):
                    part = self.folds[scored].all.statistics(W)
                    rest[judged] = part if rest[judged] is None else _both(rest[judged], part)
        for beta in SHRINKAGES:
            B = ridge_in_labels(whole[0], whole[1], beta)
            each = [ridge_in_labels(YtS, StS, beta) for YtS, StS in rest]
            mixed = tuple(W @ own for W, own in zip(found.without, each))
            pair = lambda k, j, each=each: found.pair(k, j) @ each[k]
            yield beta, replace(found, W=found.W @ B, without=mixed, pair=pair)

    # Level 2

    def imputed(self, found: Solution, reg: float, exposure: Any) -> Solution:
        """(5), and (2) again; of all rows, and of all but each fold."""
        exposure = exposure / (exposure + found.unsaid * (1 - exposure))
        return self._again(found, "all", reg / 10, _filled_cross, exposure)


def ridge_in_labels(YtS: Array, StS: Array, beta: float) -> Array:
    """The B of (4)."""
    xp = array_namespace(StS)
    shrunk = beta * xp.eye(StS.shape[0], dtype=StS.dtype, device=StS.device)
    return xp.linalg.solve(StS + shrunk, YtS.T + shrunk)


def ease_links(YtY: Array, reg: float) -> Array:
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
class HeldOutModel:
    """A model, seen from the rows it has not seen: factors, links between labels, a second look."""

    W: Array
    H: Array | None = None
    links: Array | None = None
    look: SecondLook | None = None


def gain(b: Block, seen: HeldOutModel) -> tuple[float, int]:
    """The sum of (1) over some rows, and their number."""
    total = 0.0
    for part, S in scored(b, seen):
        best = b.backend.top_k(S, None, RANKS, None).indices
        total += float(gains_of(contains(part.Y.scipy(), best)).sum())
    return total, b.Y.shape[0]


def gains_of(hit: np.ndarray, ranks: int = RANKS) -> np.ndarray:
    """The sum of (1) in each row, where the labels at each rank were said or not."""
    hit = hit[:, :ranks]
    return (hit / np.log2(np.arange(2, hit.shape[1] + 2))).sum(axis=1)


def gain_of_completion(b: Block, seen: HeldOutModel, most: int = 0) -> tuple[float, int]:
    """As `gain`, but of the half of what was said that is asked, where the other half is known.

    A second look, if there is one, reorders the first `most` labels of a row.
    """
    total, rng, k = 0.0, np.random.default_rng(0), b.backend
    for part, S in scored(b, replace(seen, links=None)):
        said = part.Y.scipy()
        asked = rng.random(said.nnz) < 0.5
        left, wanted = (_only(said, which) for which in (~asked, asked))
        left = k.sparse(left, pattern=True)
        if seen.links is not None:
            S = S + k.spmm(left, seen.links)
        if seen.look is None:
            best = k.top_k(S, None, RANKS_COMPLETED, left).indices
        else:
            found = k.top_k(S, None, RANKS_COMPLETED + most, left)
            best = seen.look.ranked(rows_of(part.X), found, most).indices[:, :RANKS_COMPLETED]
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


def scored(b: Block, seen: HeldOutModel) -> Iterator[tuple[Block, Array]]:
    """Some rows after the other, and their scores: -inf where a masked entry is not known."""
    for rows in pieces(b, b.Y.shape[1]):
        part = b.some(rows)
        S = part.project(seen.W)
        if seen.H is not None:
            S = S @ seen.H.T
        if seen.links is not None:
            S = S + b.backend.spmm(part.Y, seen.links)
        if b.omega is not None:
            xp = array_namespace(S)
            S = xp.where(b.backend.dense(b.omega, rows, S.dtype) > 0, S, -xp.inf)
        yield part, S


def _filled_cross(b: Block, W: Array, exposure: Any) -> Array:
    """XᵀŶ with Ŷ by (5)."""
    k, n_labels, total = b.backend, b.Y.shape[1], None
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


def _weighed_cross(b: Block, W: Array, unsaid: float) -> Array:
    """Xᵀ(Y - (1 - a) O ∘ S) / a of (3)."""
    k, total = b.backend, None
    for rows in pieces(b, b.Y.shape[1]):
        part = b.some(rows)
        S = part.project(W)
        said = k.dense(b.Y, rows, S.dtype)
        known = said if b.omega is None else k.dense(b.omega, rows, S.dtype)
        cross = part.project_t((said - (1 - unsaid) * known * S) / unsaid)
        total = cross if total is None else total + cross
    return total


def _n_silent(b: Block) -> int:
    silent = is_silent_row(b)
    return int(array_namespace(silent).count_nonzero(silent))


def _silent(b: Block) -> Array:
    """XᵀX of the rows that say nothing."""
    return b.cross(b.weighted(is_silent_row(b)))


def down_weight_silent_rows(b: Block) -> Block:
    """The same with rows that say nothing at their little weight in XᵀX: V of (2)."""
    silent = is_silent_row(b)
    xp = array_namespace(silent)
    light = xp.asarray(SILENT[0] ** 0.5, dtype=xp.float64, device=silent.device)
    return b.weighted(xp.where(silent, light, xp.ones_like(light)))


def is_silent_row(b: Block) -> Array:
    """The rows of which nothing is known."""
    said = b.Y if b.omega is None else b.omega
    return said.indptr[1:] == said.indptr[:-1]


def _both(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return a[0] + b[0], a[1] + b[1]
