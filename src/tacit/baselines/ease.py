"""EASE: what else was said of a row tells its missing labels (Steck).

Y is n × L, 1 where a label was said. Each label is predicted of all others by ridge regression,

    B = argmin ½ ‖Y - Y B‖² + ½ λ ‖B‖²,  diag(B) = 0,                                            (1)

where no label may predict itself: it would be its own best witness. With a Lagrange multiplier for
each number of the diagonal,

    B = I - P diag(1 / diag P),  P = (YᵀY + λI)⁻¹.                                               (2)

A row of which y was said has the scores

    s = yB,                                                                                      (3)

and a row of which nothing was said has the label's rate, its share among the training rows. So has
a new row, whatever its features: this method does not look at them.

**Cost**: O(Σ_i ℓ_i²) for YᵀY, where row i has ℓ_i labels, and O(L³) for P. Completing a row takes
O(ℓ_i L). Memory: some three matrices of L × L in float64, and B.

Reference: H. Steck. Embarrassingly shallow autoencoders for sparse data. WWW 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tacit import labels
from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.params import a_float
from tacit.engines.ease import ease
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.models.model import Model, check_shape

__all__ = ["EASE", "LabelLinks"]


@dataclass(frozen=True, eq=False)
class LabelLinks(Model):
    """How each label follows from the others, and how often it is said.

    Attributes
    ----------
    B : ndarray of shape (n_labels, n_labels)
        The links (2).
    shares : ndarray of shape (n_labels,)
        The rate of each label, for rows of which nothing is known.
    """

    B: np.ndarray
    shares: np.ndarray

    folds_in = True
    n_codes = 1

    @property
    def H(self) -> np.ndarray:  # type: ignore[override]
        return self.shares[:, None]

    @property
    def n_labels(self) -> int:
        return len(self.shares)

    @property
    def dtype(self) -> np.dtype:
        return self.B.dtype

    @property
    def completion_width(self) -> int:
        return self.n_labels

    def factors(self, block: Block) -> tuple[Array, Array]:
        """The same code for all rows: their scores are the rates."""
        return np.ones((block.Y.shape[0], 1), self.dtype), self.H

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, Array | None]:
        """(3), or the rates of rows of which nothing was said."""
        if not fold_in:
            return self.factors(block)
        scores = block.backend.spmm(block.Y, self.B)
        scores[np.diff(block.Y.indptr) == 0] = self.shares
        return scores, None

    def probability(self, scores: Array) -> Array:
        return np.clip(scores, 0.0, 1.0)

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"B": self.B, "shares": self.shares}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict, arrays: dict[str, np.ndarray]
    ) -> Self:
        B = check_shape("B", arrays.get("B"), n_labels, n_labels)
        shares = check_shape("shares", arrays.get("shares"), n_labels)
        if shares.dtype != B.dtype:
            raise ValueError(f"its B and shares are of {B.dtype} and {shares.dtype}")
        return cls(B, shares)


class EASE(MultiLabelEstimator):
    """Embarrassingly shallow autoencoder: labels that follow from other labels of the row.

    It reads a said no as silence, though `complete` leaves it out.
    It looks at no feature, and so ranks new rows far behind ridge.

    Parameters
    ----------
    reg : float, default=100.0
        The weight λ of (1): a label that was said λ times tells half of what its counts would.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.

    Attributes
    ----------
    model_ : LabelLinks
        B of (2), and the rates.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    The first two labels go together. Of the last row only the second was said:

    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0]])
    >>> X = np.zeros((5, 1))  # features are not looked at
    >>> model = EASE(reg=1.0).fit(X, Y)
    >>> found = model.complete(X[4:], Y[4:], k=1)
    >>> found.label, found.probability.round(2)
    (array([0]), array([0.6]))
    """

    behind_ridge = "It looks at no feature, and so ranks new rows far behind ridge."
    label_kinds = ("positive-only", "complete")
    model_kinds = (LabelLinks,)
    _checks = {"reg": a_float(above=0), **{n: shared_checks()[n] for n in ("threshold", "k")}}

    # It looks at no feature: where it is computed and how rows are scaled is not a choice.
    normalize, fit_intercept, device, random_state, verbose = None, False, "cpu", None, False

    def __init__(self, reg: float = 100.0, *, threshold: float = 0.5, k: int | None = None):
        self.reg = reg
        self.threshold = threshold
        self.k = k

    def _fit(self, problem: Problem) -> Fit:
        n_labels = problem.n_labels
        labels.check_dense((n_labels, n_labels), "EASE's links between labels", "LEML")
        YtY = problem.blocks.sum(_label_gram)
        B, shares = ease(YtY, self.reg), np.diagonal(YtY) / problem.n_samples
        return Fit(LabelLinks(problem.to_host(B), problem.to_host(shares)))


def _label_gram(b: Block) -> Array:
    """YᵀY: whole numbers, so that no cut into blocks changes it."""
    return b.backend.cross(b.Y, b.Y)
