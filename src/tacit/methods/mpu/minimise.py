"""How a training minimises J: AdaGrad on mini-batches, or Newton's method on all its rows.

Both begin as plain logistic regression, with c = 1, since J is convex there; with c it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.engines.descend import State, settled
from tacit.engines.labelwise import label_groups, newton_pass
from tacit.engines.losses import Logistic, Loss, PositiveUnlabelled
from tacit.estimators import Problem
from tacit.methods.mpu.descent import Descent, feature_counts
from tacit.methods.mpu.folded_batches import FoldedBatches

__all__ = ["Level", "LevelSolver", "Solver"]

_PLAIN = 1 / 3  # of the passes of a training, with c = 1


@dataclass(frozen=True)
class Level:
    """What all trainings of a level share.

    `rows` have all that is predicted of them below; `c` is of shape (1, n_labels), or None for
    plain logistic regression.
    """

    problem: Problem
    rows: FoldedBatches
    c: Array | None

    @cached_property
    def feature_counts(self) -> Array:
        """How many of all rows have each feature: λ is that of a fit on all of them."""
        like = self.problem.backend.asarray(np.zeros(1, self.problem.dtype))
        return sum(feature_counts(b, like) for _, b in self.rows.batches())

    def first_W(self, without: int | None) -> Array:
        """Zero, but for the log-odds of what is said where there is a constant feature."""
        b = next(b for _, b in self.rows.batches())
        width = sum(part.shape[1] for part, _ in b.features())
        W = np.zeros((width, self.problem.n_labels), self.problem.dtype)
        if self.problem.placement.fit_intercept:
            said, n = self.rows.said(without=without)
            W[self.problem.n_features - 1] = np.log(said + 0.5) - np.log(n - said + 0.5)
        return self.problem.backend.asarray(W)

    def shift_intercept_by_log_c(self, W: Array) -> Array:
        """Where c comes in: W whose cσ(f) is what σ(f) was, where it is small."""
        if self.c is None or not self.problem.placement.fit_intercept:
            return W
        xp = array_namespace(W)
        constant = self.problem.n_features - 1
        is_it = (xp.arange(W.shape[0], device=W.device) == constant)[:, None]
        return xp.where(is_it, W - xp.log(self.c), W)

    def loss(self, labels: slice) -> Loss:
        """That of some labels."""
        if self.c is None or bool((self.c >= 1).all()):
            return self.plain
        return PositiveUnlabelled(self.c[:, labels], noes=self.rows.with_noes)

    @property
    def plain(self) -> Loss:
        """That of all labels, where whatever was not said is a no."""
        return PositiveUnlabelled(1.0, noes=True) if self.rows.with_noes else Logistic()


class Solver(Protocol):
    """One training: its weights at the start, a pass over its rows, and when it is finished."""

    def start(self) -> State: ...

    def step(self, weights: State, n_before: int) -> tuple[State, float]:
        """The weights after a pass, which follows on `n_before` others, and J."""
        ...

    def finished(self, history: list[float]) -> bool: ...


@dataclass(frozen=True)
class LevelSolver:
    """The parameters of `MPU` that say how a training minimises J."""

    solver: Literal["sgd", "newton"]
    reg: float
    rate: float
    max_iter: int
    tol: float

    def solve(self, level: Level, *, without: int | None = None) -> Solver:
        """The training of a level on all rows, or on those of all folds but one."""
        return (_Newton if self.solver == "newton" else _AdaGrad)(self, level, without)

    def descent(self, counts: Array) -> Descent:
        """AdaGrad, where so many rows have each feature."""
        return Descent(self.rate, self.reg, counts)


@dataclass(frozen=True)
class _AdaGrad:
    how: LevelSolver
    level: Level
    without: int | None

    def start(self) -> State:
        W = self.level.first_W(self.without)
        return {"W": W, "W²": array_namespace(W).zeros_like(W)}

    def step(self, weights: State, n_before: int) -> tuple[State, float]:
        level, W = self.level, weights["W"]
        xp, c = array_namespace(W), level.c
        plain = self.how.max_iter if c is None else round(_PLAIN * self.how.max_iter)
        if n_before == plain:
            weights = weights | {"W": level.shift_intercept_by_log_c(W)}
        if n_before < plain:
            c = xp.ones((1, W.shape[1]), dtype=W.dtype, device=W.device)
        batches = (b for _, b in level.rows.batches(without=self.without))
        return self.how.descent(level.feature_counts).epoch(weights, batches, c)

    def finished(self, history: list[float]) -> bool:
        return len(history) >= self.how.max_iter


@dataclass(frozen=True)
class _Newton:
    how: LevelSolver
    level: Level
    without: int | None

    @cached_property
    def blocks(self) -> Any:
        return self.level.rows.for_newton(without=self.without)

    def start(self) -> State:
        return {"W": self.level.first_W(self.without)}

    def step(self, weights: State, n_before: int) -> tuple[State, float]:
        level, how, W = self.level, self.how, weights["W"]
        loss = level.loss if n_before else lambda labels: level.plain
        if n_before == 1:
            W = level.shift_intercept_by_log_c(W)
        groups = label_groups(level.problem.n_samples, level.problem.n_labels)
        W, J = newton_pass(self.blocks, loss, how.reg, W, groups, how.tol)
        return {"W": W}, float(array_namespace(J).sum(J))

    def finished(self, history: list[float]) -> bool:
        return len(history) >= self.how.max_iter or settled(history[1:], self.how.tol)
