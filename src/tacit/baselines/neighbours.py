"""Neighbours: the rows that are most like a new one vote, each with the weight of its cosine.

Let N(i) be the k training rows whose cosine with row i is largest. Cosines that rounding alone
tells apart are equal, and of equal cosines the earlier row goes first. A row that has nothing in
common with row i, or points away from it, has no vote:

    w_ij = max(cos(x_i, x_j), 0) for j in N(i), else 0.                                          (1)

With y_jl = 1 where label l was said of row j, the score is the share of the votes that say yes,

    s_il = Σ_j w_ij y_jl / Σ_j w_ij, and 0 where nothing is near.                                (2)

Where labels are masked, o_jl = 1 tells that label l of row j is known, and only those that know a
label vote on it,

    s_il = Σ_j w_ij y_jl / Σ_j w_ij o_jl,                                                        (3)

or Σ_j y_jl / Σ_j o_jl over all training rows, the rate of label l, where none of N(i) knows it.

**Cost**: nothing is fitted; the model is the rows themselves, as sparse or dense as they came. A
new row takes its n cosines, O(n d) with dense features and O(Σ_f n_f) with sparse ones, where n_f
training rows have the feature f that it has; choosing k of them, O(n); and O(k) rows of votes.
Memory: the rows, and some 2²⁴ cosines at a time.

Reference: S. A. Dudani. The distance-weighted k-nearest-neighbor rule. IEEE Transactions on
Systems, Man, and Cybernetics, 1976. There nearness is a distance; here it is the cosine.
"""

from __future__ import annotations

from typing import Literal

from tacit.basics.params import an_int
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.models.nearest_rows import NearestRows

__all__ = ["NearestRows", "Neighbours"]


class Neighbours(MultiLabelEstimator):
    """Nearest neighbours: the share of the rows most like a new one that say yes.

    It reads a said no as silence, though `complete` leaves it out.
    All features count alike in a cosine: where a few of many tell, it ranks two to six points of
    P@3 behind tuned ridge.

    Parameters
    ----------
    n_neighbors : int, default=50
        The k of (1): how many training rows vote at most.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before. With None inner products take the place of the cosines
        in (1), so that long rows are near to all.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.

    Attributes
    ----------
    model_ : NearestRows
        The rows of the fit, and what was said of them.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    The new row has a cosine of 0.8 with the first row and of 0.6 with the second:

    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> Neighbours(n_neighbors=2).fit(X, Y).predict_proba([[4.0, 3.0, 0.0]]).round(2)
    array([[0.57, 1.  , 0.  ]])
    """

    behind_ridge = (
        "All features count alike in a cosine: where a few of many tell, it ranks two to six "
        "points of P@3 behind tuned ridge."
    )
    label_kinds = ("positive-only", "complete", "masked")
    model_kinds = (NearestRows,)
    _checks = {
        "n_neighbors": an_int(at_least=1),
        **shared_checks("fit_intercept", "device", "verbose"),
    }

    # A constant feature would make all rows alike; nothing is drawn, and nothing repeated.
    fit_intercept, device, random_state, verbose = False, "cpu", None, False

    def __init__(
        self,
        n_neighbors: int = 50,
        *,
        normalize: Literal["auto", "l2"] | None = "auto",
        threshold: float = 0.5,
        k: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.threshold = threshold
        self.k = k

    def _fit(self, problem: Problem) -> Fit:
        return Fit(NearestRows.of(problem.blocks, self.n_neighbors, problem.dtype))
