"""MPU (Kong et al. 2014): figure 5, micro-F1 on RCV1 with ever fewer of the positives said.

6,000 articles in ten folds, of which the first three are run. Each positive of the training rows is
removed with the same probability; test labels are complete. As in the paper nothing is chosen by
method: all have their defaults and say yes where they do by themselves. γ = ½ is one over the
median squared distance of rows of unit length. The paper plots its figures and prints none.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from tacit.baselines import M3L, WELL, Elkan08
from tacit.features.kernel_features import KernelFeatures
from tacit.labels import Labels
from tacit.methods.mpu import MPU
from tacit.metrics import micro_f1, precision_at_k
from tacit_bench.boards.papers.protocol import Method, Metric, Protocol
from tacit_bench.boards.papers.splits import as_given, hidden_positives
from tacit_bench.boards.papers.statistics import statistics

__all__ = ["PROTOCOLS"]


class Completing(BaseEstimator):
    """WELL labels only rows that it learns from: it is given the new ones, without labels."""

    def __init__(self, model: WELL, X_new: Any):
        self.model = model
        self.X_new = X_new

    def fit(self, X: Any, Y: Labels) -> Self:
        n_new = self.X_new.shape[0]
        silent = sp.csr_array((n_new, Y.n_labels), dtype=bool)
        said = Labels.positive_only(sp.vstack([Y.positives, silent], format="csr"))
        self.model.fit(sp.vstack([X, self.X_new], format="csr"), said)
        self.scores_ = self.model.completed_[-n_new:]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores_

    def predict(self, X: Any) -> np.ndarray:
        return self.scores_ > self.model.threshold

    def __repr__(self) -> str:  # not of the rows
        return repr(self.model)


UNIT: dict[str, Any] = {"normalize": "l2"}


def mpu(**settings: Any) -> Method:
    # Ten passes are enough for 6,000 rows; the defaults are for larger data.
    return Method(
        lambda cell, split: MPU(rate=0.3, max_iter=10, **UNIT, random_state=split.seed, **settings)
    )


METHODS = {
    "MPU": mpu(),
    "MPU-base": mpu(levels=1),
    "Elkan08": Method(lambda cell, split: Elkan08(reg=1.0, **UNIT, random_state=split.seed)),
    # Its λ is that of a regression for new rows, of no use here, and the shorter the larger λ is.
    "WELL": Method(lambda cell, split: Completing(WELL(reg=1e6, **UNIT), split.X_test)),
    "M3L-linear": Method(
        lambda cell, split: M3L(**UNIT, random_state=split.seed), Labels.as_complete
    ),
    "M3L-RBF": Method(
        lambda cell, split: make_pipeline(
            KernelFeatures("rbf", gamma=0.5, random_state=split.seed),
            M3L(normalize=None, random_state=split.seed),
        ),
        Labels.as_complete,
    ),
    "BR": mpu(levels=1, c=1.0),  # logistic regression: silence is no
}

FIGURE_5 = Protocol(
    "MPU",
    "figure 5",
    data={"rcv1sub1": "rcv1sub1", "rcv1sub2": "rcv1sub2"},
    split=hidden_positives,
    methods=METHODS,
    metrics={
        "micro-F1 (%)": Metric(lambda t, a: micro_f1(t.Y_test, a.labels), 1.0),
        "P@3 (%)": Metric(lambda t, a: precision_at_k(t.Y_test, a.scores, 3), 1.0),
    },
    settings=tuple({"rate": tenths / 10} for tenths in range(10)),
    trials=3,
    quick={
        "data": ["rcv1sub1"],
        "methods": [name for name in METHODS if name != "M3L-RBF"],  # ten times the others' time
        "settings": ({"rate": 0.5},),
        "trials": 1,
    },
)

PROTOCOLS = (
    statistics("MPU", "2", {"RCV1 small": "rcv1sub1"}, as_given, ("n", "L", "d")),
    FIGURE_5,
)
