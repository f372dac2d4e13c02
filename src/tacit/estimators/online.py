"""Online: `partial_fit`, and what it goes on from, once for all methods that learn row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

from tacit.basics.params import check_params
from tacit.blocks.facts import Facts
from tacit.engines.descend import State
from tacit.engines.problem import Problem
from tacit.estimators.fit import Fit
from tacit.estimators.names import labels_of
from tacit.labels import Kind

__all__ = ["Online"]


class Online(ABC):
    """Beside `MultiLabelEstimator`: a method that can go on learning from more rows.

    Its `_fit` leaves in `Fit.online` what an update goes on from, where there is such a thing.
    """

    _stream: tuple[State, Facts] | None = None
    history_: list[float]

    @abstractmethod
    def _check_online(self) -> None:
        """Raise one sentence if these parameters do not allow for updates."""

    @abstractmethod
    def _update(self, problem: Problem, state: State | None, n_before: int) -> Fit:
        """The model after these rows too: `online` is the new state, `history` its one objective.

        `state` is None for the first rows; `n_before` updates were made already.
        """

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Learn from some more rows: one update, or one pass over them.

        The first batch also starts the model: make it some hundred rows at least. It also goes on
        from `fit`, in the same process.
        """
        check_params(self)
        self._check_online()
        if self._stream is None and hasattr(self, "model_"):
            raise ValueError(
                f"partial_fit cannot go on with this {type(self).__name__}, which was loaded or "
                "fitted in a way that leaves nothing to go on from; begin with a new estimator"
            )
        state, first = self._stream or (None, None)
        if first is not None:
            self._features(X)  # as wide as the first batch
            Y = None if Y is None else labels_of(Y, self.label_kinds[0], self.classes_)
        blocks, known = self._rows(X, Y, first)
        if first is not None and (known.n_labels, known.kind) != (first.n_labels, first.kind):
            raise ValueError(
                f"this batch has {known.n_labels} {known.kind} labels, the first had "
                f"{first.n_labels} {first.kind} ones; give the same in every batch"
            )
        before = [] if first is None else self.history_
        fit = self._update(self._problem(blocks, known), state, len(before))
        return self.adopt(replace(fit, history=[*before, *fit.history]), first or known)

    # What `MultiLabelEstimator` has

    label_kinds: ClassVar[tuple[Kind, ...]]
    classes_: Any
    _features: Any
    _rows: Any
    _problem: Any
    adopt: Any
