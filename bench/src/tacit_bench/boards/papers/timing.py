"""The seconds of a fit, without what it compiles."""

from __future__ import annotations

import time
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from tacit.labels import Labels
from tacit_bench.boards.papers.protocol import Method, Metric

__all__ = ["SECONDS", "timed"]

FEW = 400  # rows of the fit that compiles


class TimedEstimator(BaseEstimator):
    """A fit after one of few rows, and its own seconds."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Any, Y: Labels) -> Self:
        clone(self.estimator).fit(X[:FEW], Y[:FEW])
        start = time.perf_counter()
        clone(self.estimator).fit(X, Y)
        self.seconds_ = time.perf_counter() - start
        return self


def timed(estimator: Any) -> Method:
    return Method(lambda cell, split: TimedEstimator(clone(estimator)))


# Of another machine than the paper's: there is no tolerance.
SECONDS = Metric(lambda split, answer: answer.model.seconds_, None, better="lower")
