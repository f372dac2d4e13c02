"""Paths: LEML at every rank and λ of a grid, and the held-out risk that chooses among them.

A path starts once for each rank, at the smallest λ, and goes up: each point begins where the last
one ended, and a larger λ only shrinks. (Downwards, directions that a large λ had driven to 0 would
have to grow again out of nothing.)

The folds of a cross-validation are rows, and the held-out risk is the mean loss over the observed
entries of the rows left out, scored from their features; of positive-only labels, the share of what
was said of those rows that is not among their five best labels. With squared loss and complete
labels the rows are read once for everything: the moments of each fold are summed, a training set is
the total minus its fold, and the risk of a fold needs nothing but its moments. There the W of every
λ is also nearly a combination of ridge solutions, so each fold solves for three of those and walks
its path among their combinations, in some hundred dimensions in place of n_features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.engines.descend import State
from tacit.engines.moments import Equations, Moments
from tacit.estimators import Fit, Problem
from tacit.estimators.paths import Path, Point, checked_cv
from tacit.methods.leml.minimise import Alternation, Minimiser
from tacit.methods.leml.squared import CompleteSquared, leading_labels

__all__ = ["RANKS", "REGS", "choose", "fit_path"]

RANKS = (25, 50, 100, 200, 400)
REGS = tuple(float(f"{reg:.2g}") for reg in np.geomspace(0.03, 30, 10))
_EASE = 3.0  # the ridge problems that a λ splits into have λ over eigenvalues of HᵀH
_ON_TOP = 5  # labels of a row that count as found
_FOLD_PASSES, _FOLD_TOL = 3, 3e-3  # a fold need not be fitted better than it can be judged


def fit_path(
    how: Minimiser,
    problem: Problem,
    ranks: Sequence[int],
    regs: Sequence[float],
    cv: int | None,
    adopted: Callable[[dict[str, Any], Fit], Any],
) -> Path:
    """Fit every point of the grid; see `LEML.fit_path`. `adopted` makes estimators of the fits."""
    grid = _Grid(how, problem, ranks, regs, cv)
    # The loop of a point is the path itself: its estimator has no history of its own.
    walked = grid.walk(grid.whole, problem.loop.max_iter or 1, problem.loop.tol)
    fits = {point: how.fitted(grid.problem, {"W": W, "H": H}, []) for point, (W, H) in walked}
    points = []
    for (rank, reg), risks in grid.risks().items():
        fit = fits[rank, reg]
        fit = replace(fit, chosen={"rank_": rank, "reg_": reg, **fit.chosen})
        params, scores = {"rank": rank, "reg": reg}, tuple(-risk for risk in risks)
        points.append(Point(params, scores, partial(adopted, params, fit)))
    return Path(tuple(points))


def choose(
    how: Minimiser, problem: Problem, ranks: Sequence[int], regs: Sequence[float]
) -> tuple[int, float]:
    """The rank and λ of least held-out risk; of two alike, the smaller rank."""
    risks = _Grid(how, problem, ranks, regs, 5).risks()
    return min(risks, key=lambda point: (np.mean(risks[point]), point[0]))


class _Grid:
    """The grid, the data in folds, and the alternations on them."""

    def __init__(
        self,
        how: Minimiser,
        problem: Problem,
        ranks: Sequence[int],
        regs: Sequence[float],
        cv: int | None,
    ):
        checked_cv(cv, problem.n_samples)
        self.how, self.problem = how, problem.afresh()
        widest = min(problem.n_features, problem.n_labels)
        self.ranks = sorted({min(rank, widest) for rank in ranks})
        self.regs = sorted(set(regs))
        how.check_reg(self.regs[0])
        self.folds = [] if cv is None else [_fold(how, problem, f, cv) for f in range(cv)]
        total = self._sum_of_folds()
        equations = how.equations(self.problem) if total is None else total
        self.whole = how.alternation(self.problem, equations)

    def _sum_of_folds(self) -> Moments | None:
        """The moments of all rows, where those of the folds are known."""
        parts = [fold.held for fold in self.folds if isinstance(fold.held, Moments)]
        return reduce(add, parts) if parts else None

    def risks(self) -> dict[tuple[int, float], tuple[float, ...]]:
        """The mean held-out loss of each fold at each point, or what its ranking misses."""
        found: dict[tuple[int, float], tuple[float, ...]] = {
            (rank, reg): () for rank in self.ranks for reg in self.regs
        }
        total = self._sum_of_folds()
        for fold in self.folds:
            train, held = fold.alternations(self.how, self.problem, total)
            if isinstance(train, CompleteSquared) and isinstance(held, CompleteSquared):
                train, held = self._in_small_space(train, held)
            for point, (W, H) in self.walk(train, _FOLD_PASSES, _FOLD_TOL):
                found[point] += (fold.risk(held, W, H),)
        return found

    def _in_small_space(
        self, train: CompleteSquared, held: CompleteSquared
    ) -> tuple[CompleteSquared, CompleteSquared]:
        """Both with W = Q W', where Q spans the ridge solutions of three λs from least to most."""
        rows, problem = train.equations, train.problem
        low, high = self.regs[0] / _EASE, self.regs[-1]
        ridge = lambda V, reg: rows.regress(rows.cross(V), reg)
        middle = (low * high) ** 0.5
        V = leading_labels(problem, rows, lambda V: ridge(V, middle), self.ranks[-1])
        if 3 * V.shape[1] >= problem.n_features:
            return train, held
        xp = array_namespace(V)
        Q, _ = xp.linalg.qr(xp.concat([ridge(V, reg) for reg in (low, middle, high)], axis=1))
        small = replace(problem, n_features=Q.shape[1])
        return (
            CompleteSquared(small, _in_basis(rows, Q)),
            CompleteSquared(small, _in_basis(held.equations, Q)),
        )

    def walk(
        self, alternation: Alternation, max_iter: int, tol: float
    ) -> Iterator[tuple[tuple[int, float], tuple[Array, Array]]]:
        """Each point with its factors: for each rank, up the λs from the state before."""
        for rank in self.ranks:
            state = alternation.start(rank, self.regs[0])
            for reg in self.regs:
                state = _settled(alternation, state, reg, max_iter, tol)
                yield (rank, reg), (state["W"], state["H"])


def _in_basis(equations: Equations, Q: Array) -> Moments:
    """The moments of the features X Q."""
    B, gram = equations.statistics(Q)
    xp = array_namespace(gram)
    wide = lambda a: xp.astype(a, xp.float64)
    count = xp.asarray([equations.n_positives], dtype=xp.float64, device=gram.device)
    return Moments(n=0.0, x_sum=None, y_sum=count, xx=wide(gram), xy=wide(B).T, yy=None)


def _settled(
    alternation: Alternation, state: State, reg: float, max_iter: int, tol: float
) -> State:
    before = float("inf")
    for _ in range(max_iter):
        state, objective = alternation.step(state, reg)
        if before - objective <= tol * abs(objective):
            break
        before = objective
    return state


@dataclass(frozen=True)
class _Fold:
    """One fold: its rows held out, and the others, placed only if they are needed."""

    problem: Problem
    held: Equations
    rest: Callable[[], Problem]
    n_entries: float

    def alternations(
        self, how: Minimiser, whole: Problem, total: Moments | None
    ) -> tuple[Alternation, Alternation]:
        held = how.alternation(self.problem, self.held)
        rest: Equations | None = None if total is None else total - self.held  # type: ignore[operator]
        if rest is not None and whole.kind == "complete" and how.loss == "squared":
            return how.alternation(whole, rest), held  # which reads the equations alone
        problem = self.rest()
        return how.alternation(problem, rest or how.equations(problem)), held

    def risk(self, held: Alternation, W: Array, H: Array) -> float:
        """The mean loss of an entry; of positive-only labels, the share said that is not on top.

        There the loss is mostly of what was not said, whose weight is a guess, and follows how many
        labels are said rather than which.
        """
        if self.problem.kind != "positive-only":
            return held.risk(W, H) / self.n_entries
        on_top, said = self.problem.blocks.sum(_on_top, W, H)
        return 1 - on_top / max(said, 1)


def _fold(how: Minimiser, problem: Problem, fold: int, cv: int) -> _Fold:
    held = problem.afresh(problem.fold(fold, cv))
    n_entries = float(held.blocks.sum(_n_entries))
    if n_entries == 0:
        raise ValueError(
            f"one of the cv={cv} folds has no observed entry; use fewer folds, or larger blocks"
        )
    return _Fold(
        problem=held,
        held=how.equations(held),
        rest=lambda: problem.afresh(problem.fold(fold, cv, inside=False)),
        n_entries=n_entries,
    )


def _on_top(b: Block, W: Array, H: Array) -> tuple[int, int]:
    """How many of the labels said are among the best of their row, and how many there are."""
    best, Y = b.backend.top_k(b.project(W), H, _ON_TOP, None).indices, b.Y.scipy()
    row = np.repeat(np.arange(len(best)), best.shape[1])
    return int(Y[row, best.ravel()].sum()), Y.nnz


def _n_entries(b: Any) -> int:
    return b.Y.shape[0] * b.Y.shape[1] if b.omega is None else b.omega.nnz
