"""Stacking: a fit under way, one training of its plan after the other (figure 3 of the paper).

The state of a fit is all that the rest of it depends on:

    "training"      the cursor: which training of the plan is running
    "history"       J after each of its passes
    "W", "W²"       its weights so far; W is absent before its first pass
    <its name>      the weights of each training that is finished, such as "level 0 without fold 2"

What follows from finished weights (c, what is predicted of the rows, the threshold) is no part of
it. `learn` works it out when a training ends, and for a resumed fit from the weights in the state.
Where no file keeps the state, the weights that nobody needs again are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.backends import Array
from tacit.engines.descend import State
from tacit.estimators import Problem
from tacit.methods.mpu.folded_batches import FoldedBatches, Predictions, predictions
from tacit.methods.mpu.held_out import tuned_threshold
from tacit.methods.mpu.minimise import Level, LevelSolver, Solver
from tacit.methods.mpu.plan import Training
from tacit.missing import Rates

__all__ = ["Stacking", "level_under"]

_RUNNING = ("W", "W²")


@dataclass
class Stacking:
    """A fit under way.

    Attributes
    ----------
    problem : Problem
        All rows.
    plan : sequence of Training
        What is trained, in turn.
    minimiser : LevelSolver
        How it is trained.
    top : int or None
        How many of a row's predictions the next level sees; None is all.
    rows : FoldedBatches
        The rows in batches and folds.
    rates : Rates or None
        The rates c; None until they are known.
    estimate_c : function of FoldedBatches and weights
        The rates, by weights that have not seen fold 0.
    level : Level
        The level that is being trained.
    predicted : Predictions
        What is predicted of the rows for the next level, so far.
    threshold : float or None
        The tuned threshold; None until it is known.
    n_learned : int
        From so many trainings all has been learned.
    """

    problem: Problem
    plan: Sequence[Training]
    minimiser: LevelSolver
    top: int | None
    rows: FoldedBatches
    rates: Rates | None
    estimate_c: Callable[[FoldedBatches, Array], Rates]
    level: Level = field(init=False)
    predicted: Predictions = field(init=False, default_factory=dict)
    threshold: float | None = field(init=False, default=None)
    n_learned: int = field(init=False, default=0)
    _running: tuple[Training, Solver] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.level = level_under(self.problem, self.rows, self.rates)

    def start(self) -> State:
        return {"training": self._numbers([0]), "history": self._numbers([])}

    def over(self, state: State) -> bool:
        return _cursor(state) >= len(self.plan)

    def step(self, state: State) -> tuple[State, float]:
        """A pass of the training that is running."""
        self.learn(state)
        training = self.plan[_cursor(state)]
        solver = self._solver(training)
        if "W" not in state:
            state = state | solver.start()
        weights = {name: state[name] for name in _RUNNING if name in state}
        weights, value = solver.step(weights, len(state["history"]))
        history = [*self.problem.backend.to_numpy(state["history"]).tolist(), value]
        state = state | weights | {"history": self._numbers(history)}
        return (self._ended(state, training) if solver.finished(history) else state), value

    def _ended(self, state: State, training: Training) -> State:
        """The state once a training is finished: its weights have its name."""
        state = state | {
            training.name: state["W"],
            "training": state["training"] + 1,
            "history": self._numbers([]),
        }
        del state["W"]
        self.learn(state)
        if self.problem.loop.checkpoint is None and training.without is not None:
            del state[training.name]  # all that is needed of it has been learned
        return state

    def learn(self, state: State) -> None:
        """What follows from the trainings that were finished since the last time."""
        for training in self.plan[self.n_learned : _cursor(state)]:
            self._learn(training, state[training.name])
            self.n_learned += 1

    def _learn(self, training: Training, W: Array) -> None:
        rows, backend = self.level.rows, self.problem.backend
        if training.purpose == "c":
            self.rates = self.estimate_c(rows, W)
            self.level = level_under(self.problem, rows, self.rates)
        elif training.purpose == "threshold":
            assert self.rates is not None  # every plan that has no training for c is given them
            self.threshold = tuned_threshold(rows, W, self.rates.c)
        elif training.without is not None:
            for t, b in rows.batches(only=training.without):
                self.predicted[t] = predictions(b.project(W), self.top, backend)
        elif self.predicted:
            self.level = replace(self.level, rows=rows.beside(self.predicted))
            self.predicted = {}

    def _solver(self, training: Training) -> Solver:
        """That of the running training: made once for all its passes."""
        if self._running is None or self._running[0] != training:
            solver = self.minimiser.solve(self.level, without=training.without)
            self._running = training, solver
        return self._running[1]

    def _numbers(self, values: list[float]) -> Array:
        return self.problem.backend.asarray(np.asarray(values, np.float64))


def level_under(problem: Problem, rows: FoldedBatches, rates: Rates | None) -> Level:
    """The level that sees these rows, under these rates; without them as if all were said."""
    if rates is None:
        return Level(problem, rows, None)
    c = np.asarray(rates.c, np.float64).astype(problem.dtype)
    return Level(problem, rows, problem.backend.asarray(c[None, :]))


def _cursor(state: State) -> int:
    return int(state["training"][0])
