"""Paths: LEML at every rank and λ of a grid, and the held-out risk that chooses among them.

A path starts once for each rank, at the smallest λ, and goes up: each point begins where the last
one ended, and a larger λ only shrinks. (Downwards, directions that a large λ had driven to 0 would
have to grow again out of nothing.)

The folds of a cross-validation are rows, and the held-out risk is the mean loss over the observed
entries of the rows left out, scored from their features. With squared loss and complete labels the
rows are read once for everything: the moments of each fold are summed, a training set is the total
minus its fold, and the risk of a fold needs nothing but its moments. There the W of every λ is also
nearly a combination of ridge solutions, so each fold solves for three of those and walks its path
among their combinations, in some hundred dimensions in place of n_features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.basics.params import an_int, check_params
from tacit.blocks import Blocks
from tacit.blocks.facts import Facts
from tacit.blocks.rows import rows_of_fold
from tacit.engines.descend import State
from tacit.engines.moments import Equations, Moments
from tacit.estimators import Problem
from tacit.methods.leml.squared import CompleteSquared, leading_labels
from tacit.models import LowRank

if TYPE_CHECKING:
    from tacit.methods.leml import LEML, Alternation

__all__ = ["Path", "Point", "choose", "fit_path"]

_RANKS = (25, 50, 100, 200, 400)
_REGS = tuple(float(f"{reg:.2g}") for reg in np.geomspace(0.03, 30, 10))
_EASE = 3.0  # the ridge problems that a λ splits into have λ over eigenvalues of HᵀH
_FOLD_PASSES, _FOLD_TOL = 3, 3e-3  # a fold need not be fitted better than it can be judged


@dataclass(frozen=True)
class Point:
    """One rank and λ: the model there, and the risk of each fold (empty without folds)."""

    rank: int
    reg: float
    risks: tuple[float, ...]
    model: Any

    @property
    def risk(self) -> float:
        """The mean held-out loss an observed entry."""
        return float(np.mean(self.risks)) if self.risks else float("nan")


@dataclass(frozen=True)
class Path:
    """The points of a path, rank by rank and λ by λ.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import LEML
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = (X @ rng.standard_normal((5, 8)) > 0.5).astype(int)
    >>> path = LEML(random_state=0).fit_path(X, Y, ranks=[2, 5], regs=[0.1, 1, 1000], cv=3)
    >>> path.best.rank, path.best.reg
    (5, 0.1)
    >>> path.best.model.predict(X).shape
    (60, 8)
    """

    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point of least held-out risk; of two alike, the smaller rank."""
        if not self.points[0].risks:
            raise ValueError("best needs held-out risks; call fit_path with cv=5, say")
        return min(self.points, key=lambda point: (point.risk, point.rank))


def fit_path(
    estimator: LEML,
    X: Any,
    Y: Any,
    ranks: Sequence[int] | None,
    regs: Sequence[float] | None,
    cv: int | None,
) -> Path:
    """Fit every point of the grid; see `LEML.fit_path`."""
    cross = _Grid(estimator, X, Y, ranks, regs, cv)
    models = dict(cross.walk(cross.whole, estimator.max_iter, estimator.tol))
    points = []
    for (rank, reg), risks in cross.risks().items():
        W, H = (cross.problem.backend.to_numpy(factor) for factor in models[rank, reg])
        points.append(Point(rank, reg, risks, cross.fitted(rank, reg, LowRank(W, H))))
    return Path(tuple(points))


def choose(estimator: LEML, X: Any, Y: Any) -> tuple[int, float]:
    """The rank and λ of least held-out risk, where the estimator says "auto"."""
    risks = _Grid(estimator, X, Y, None, None, 5).risks()
    return min(risks, key=lambda point: (np.mean(risks[point]), point[0]))


class _Grid:
    """The grid, the data in folds, and the alternations on them."""

    def __init__(
        self,
        estimator: LEML,
        X: Any,
        Y: Any,
        ranks: Sequence[int] | None,
        regs: Sequence[float] | None,
        cv: int | None,
    ):
        check_params(estimator)
        if cv is not None and not an_int(at_least=2)[0](cv):
            raise ValueError(f"cv must be None or an int of at least 2; got {cv!r}")
        self.estimator = estimator
        blocks, self.known = estimator._rows(X, Y)
        if cv is not None and cv > self.known.n_samples:
            raise ValueError(f"cv={cv} folds need as many rows; got {self.known.n_samples}")
        self.problem = estimator._problem(blocks, self.known)
        widest = min(self.problem.n_features, self.problem.n_labels)
        self.ranks = sorted({min(rank, widest) for rank in self._values("rank", ranks, _RANKS)})
        self.regs = sorted({float(reg) for reg in self._values("reg", regs, _REGS)})
        estimator._check_reg(self.regs[0])
        self.folds = (
            [] if cv is None else [_fold(estimator, blocks, self.known, f, cv) for f in range(cv)]
        )
        total = self._sum_of_folds()
        equations = estimator._equations(self.problem) if total is None else total
        self.whole = estimator._alternation(self.problem, equations)

    def _values(self, name: str, given: Sequence | None, default: tuple) -> list:
        if given is not None and np.ndim(given) != 1:
            raise ValueError(f"{name}s must be a sequence of values; got {given!r}")
        values = list(given) if given is not None else [getattr(self.estimator, name)]
        values = list(default) if values == ["auto"] else values
        if not values:
            raise ValueError(f"{name}s must hold at least one value; got none")
        for value in values:
            check_params(copy(self.estimator).set_params(**{name: value}))
        return values

    def _sum_of_folds(self) -> Moments | None:
        """The moments of all rows, where those of the folds are known."""
        parts = [fold.held for fold in self.folds if isinstance(fold.held, Moments)]
        return reduce(add, parts) if parts else None

    def risks(self) -> dict[tuple[int, float], tuple[float, ...]]:
        """The mean held-out loss of each fold at each point."""
        found: dict[tuple[int, float], tuple[float, ...]] = {
            (rank, reg): () for rank in self.ranks for reg in self.regs
        }
        total = self._sum_of_folds()
        for fold in self.folds:
            train, held = fold.alternations(self.estimator, self.problem, total)
            if isinstance(train, CompleteSquared) and isinstance(held, CompleteSquared):
                train, held = self._in_small_space(train, held)
            for point, (W, H) in self.walk(train, _FOLD_PASSES, _FOLD_TOL):
                found[point] += (held.risk(W, H) / fold.n_entries,)
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

    def walk(self, alternation: Alternation, max_iter: int, tol: float):
        """Each point with its factors: for each rank, up the λs from the state before."""
        for rank in self.ranks:
            state = alternation.start(rank, self.regs[0])
            for reg in self.regs:
                state = _settled(alternation, state, reg, max_iter, tol)
                yield (rank, reg), (state["W"], state["H"])

    def fitted(self, rank: int, reg: float, model: LowRank) -> LEML:
        point = copy(self.estimator).set_params(rank=rank, reg=reg)
        point.rank_, point.reg_, point.history_ = rank, reg, []
        point.unsaid_weight_ = self.estimator._unsaid_weight(self.problem)
        return point._fitted(model, self.known)


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
    rest: Callable[[], Blocks]
    known: Facts
    n_entries: float

    def alternations(
        self, estimator: LEML, whole: Problem, total: Moments | None
    ) -> tuple[Alternation, Alternation]:
        held = estimator._alternation(self.problem, self.held)
        rest: Equations | None = None if total is None else total - self.held  # type: ignore[operator]
        if rest is not None and whole.kind == "complete" and estimator.loss == "squared":
            return estimator._alternation(whole, rest), held  # which reads the equations alone
        problem = estimator._problem(self.rest(), self.known)
        return estimator._alternation(problem, rest or estimator._equations(problem)), held


def _fold(estimator: LEML, blocks: Blocks, known: Facts, fold: int, cv: int) -> _Fold:
    problem = estimator._problem(blocks.map(rows_of_fold, fold, cv, True), known)
    n_entries = float(problem.blocks.sum(_n_entries))
    if n_entries == 0:
        raise ValueError(
            f"one of the cv={cv} folds has no observed entry; use fewer folds, or larger blocks"
        )
    return _Fold(
        problem=problem,
        held=estimator._equations(problem),
        rest=lambda: blocks.map(rows_of_fold, fold, cv, False),
        known=known,
        n_entries=n_entries,
    )


def _n_entries(b: Any) -> int:
    return b.Y.shape[0] * b.Y.shape[1] if b.omega is None else b.omega.nnz
