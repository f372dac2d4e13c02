"""Models of several ranks from one fit, each with the parameters that are best for its rank.

A chooser is called as `choose(estimator, X, Y, ranks)` and gives one fitted model a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from tacit.features.kernel_features import KernelFeatures
from tacit.metrics import macro_f1
from tacit_bench.boards.papers.protocol import Setting

__all__ = ["RATIOS", "Ranks", "along_path", "each", "held_out"]

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5)


class Ranks(BaseEstimator):
    """An estimator at each k / L (None: at full rank), with what `choose` finds best for it.

    With `kernel` it is given features of the Gaussian kernel exp(-‖x - x'‖² / 2σ²), σ twice the
    mean distance of rows.
    """

    def __init__(
        self, estimator: Any, choose: Callable, ratios: tuple = RATIOS, kernel: bool = False
    ):
        self.estimator = estimator
        self.choose = choose
        self.ratios = ratios
        self.kernel = kernel

    def fit(self, X: Any, Y: Any) -> Self:
        ranks = [max(1, int((ratio or 1) * Y.n_labels)) for ratio in self.ratios]
        if not self.kernel:
            models = self.choose(self.estimator, X, Y, ranks)
        else:
            some = np.random.default_rng(0).permutation(len(X))[:1000]
            sigma = 2 * pdist(X[some]).mean()
            features = KernelFeatures("rbf", gamma=1 / (2 * sigma**2), random_state=0).fit(X)
            models = self.choose(self.estimator, features.transform(X), Y, ranks)
            models = [make_pipeline(features, model) for model in models]
        self.models_ = dict(zip(self.ratios, models))
        return self

    def at(self, setting: Setting) -> Any:
        return self.models_[setting.get("k_over_L")]

    def __repr__(self) -> str:  # with what was chosen
        return "; ".join(map(repr, getattr(self, "models_", {None: self.estimator}).values()))


def along_path(
    estimator: Any, X: Any, Y: Any, ranks: list[int], **grid: Sequence[float]
) -> list[Any]:
    """The point of a path of the largest macro-F1 in five folds."""
    points = estimator.fit_path(X, Y, ranks=ranks, cv=5, **grid).points
    of_rank = lambda rank: [point for point in points if point.params["rank"] == rank]
    return [max(of_rank(rank), key=lambda point: point.score).model for rank in ranks]


def each(estimator: Any, X: Any, Y: Any, ranks: list[int]) -> list[Any]:
    """A fit a rank: nothing is chosen."""
    return [clone(estimator).set_params(rank=rank).fit(X, Y) for rank in ranks]


def held_out(
    estimator: Any, X: Any, Y: Any, ranks: list[int], name: str, values: Sequence[float]
) -> list[Any]:
    """The value of one parameter with the largest macro-F1 on a fifth of the rows."""
    A, B, S, T = train_test_split(X, Y, test_size=0.2, random_state=0)
    models = []
    for rank in ranks:
        at = lambda value: clone(estimator).set_params(**{"rank": rank, name: value})  # noqa: B023
        score = lambda value: macro_f1(T, at(value).fit(A, S).predict(B))  # noqa: B023
        models.append(at(max(values, key=score)).fit(X, Y))
    return models
