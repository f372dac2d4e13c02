"""Popularity: every row gets the labels that are said most often, whatever its features.

    P(label j) = #{i : y_ij said yes} / #{i : y_ij said at all}

The floor that any method must clear; for masked labels "said at all" counts the observed entries.
"""

from __future__ import annotations

import numpy as np

from tacit.backends.block import Block
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.models import LowRank

__all__ = ["Popularity"]


class Popularity(MultiLabelEstimator):
    """Rank labels by how often they are said.

    It reads a said no as silence, though `complete` leaves it out.
    It looks at no feature, and so ranks far behind ridge wherever features tell anything.

    Parameters
    ----------
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 0], [1, 0], [1, 1]])
    >>> Popularity().fit(X, Y).predict_proba(X[:1]).round(2)
    array([[1.  , 0.33]])
    """

    behind_ridge = (
        "It looks at no feature, and so ranks far behind ridge wherever features tell anything."
    )
    label_kinds = ("complete", "masked", "positive-only")
    _checks = {name: shared_checks()[name] for name in ("threshold", "k")}

    # It looks at no feature: where it is computed and how rows are scaled is not a choice.
    normalize, fit_intercept, device, random_state, verbose = None, True, "cpu", None, False

    def __init__(self, *, threshold: float = 0.5, k: int | None = None):
        self.threshold = threshold
        self.k = k

    def _fit(self, problem: Problem) -> Fit:
        yes, said = problem.blocks.sum(_counts)
        W = np.zeros((problem.n_features, 1))
        W[-1] = 1.0  # the constant feature
        shares = (yes / np.maximum(said, 1))[:, None]
        return Fit(LowRank(problem.to_host(W), problem.to_host(shares)))


def _counts(b: Block) -> tuple[np.ndarray, np.ndarray]:
    ones = np.ones((b.Y.shape[0], 1))
    yes = b.backend.spmm_t(b.Y, ones)[:, 0]
    said = (
        np.full_like(yes, len(ones)) if b.omega is None else b.backend.spmm_t(b.omega, ones)[:, 0]
    )
    return yes, said
