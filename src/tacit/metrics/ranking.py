"""Metrics of the whole ranking: they need a score for every label.

Of a row with p relevant and q other known labels, let a_j be how many known labels score at least
as much as relevant label j, b_j how many of these are relevant, and r_j the mid-rank of j (best is
1; tied labels share the mean of their ranks):

    AUC          = 1 − (Σ_j r_j − p(p+1)/2) / (p q)          (1)
    coverage     = max_j a_j                                 (2)
    ranking loss = Σ_j (a_j − b_j) / (p q)                   (3)
    AP           = Σ_j (b_j / a_j) / p                       (4)

Each metric is the mean of its figure over rows, which are sorted in blocks. Ties follow
scikit-learn: half an error in (1), a whole one in (2) to (4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.labels import Labels, TopK, as_labels
from tacit.metrics.top import check_shape, mean_rows, score_blocks

__all__ = ["auc_per_instance", "auc_per_label", "coverage", "label_ranking_ap", "ranking_loss"]


def auc_per_instance(truth: Any, predicted: Any) -> float:
    """The AUC of each row over its labels, averaged: the "average AUC" of the LEML paper, (1).

    Rows in which all known labels are relevant, or none, are skipped.

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`; `predicted` is a dense array of scores.

    Examples
    --------
    >>> auc_per_instance([[1, 0, 0], [0, 1, 0]], np.array([[0.9, 0.5, 0.1], [0.2, 0.2, 0.3]]))
    0.625
    """
    return _mean_figure(truth, predicted, _auc)


def auc_per_label(truth: Any, predicted: Any) -> float:
    """The AUC of each label over the rows, averaged over labels (macro AUC), (1).

    Labels whose known rows are all relevant, or none, are skipped. Parameters as for
    `auc_per_instance`.
    """
    truth = as_labels(truth)
    scores = _dense(truth, predicted)
    return _mean_figure(_transposed(truth), scores.T, _auc)


def coverage(truth: Any, predicted: Any) -> float:
    """How far down the ranking one must go to meet every relevant label, (2).

    As in scikit-learn's `coverage_error`, the best value is the mean number of relevant labels
    (some authors subtract 1), and rows without relevant labels count 0. Parameters as for
    `auc_per_instance`.
    """
    return _mean_figure(truth, predicted, _coverage)


def ranking_loss(truth: Any, predicted: Any) -> float:
    """The share of pairs of a relevant and another label in the wrong order, (3).

    As in scikit-learn's `label_ranking_loss`, a tie is a wrong order, and rows in which all known
    labels are relevant, or none, count 0. Parameters as for `auc_per_instance`.
    """
    return _mean_figure(truth, predicted, _ranking_loss)


def label_ranking_ap(truth: Any, predicted: Any) -> float:
    """Label-ranking average precision, (4).

    As in scikit-learn's `label_ranking_average_precision_score`, rows in which all known labels are
    relevant, or none, count 1. Parameters as for `auc_per_instance`.
    """
    return _mean_figure(truth, predicted, _average_precision)


Figure = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _mean_figure(truth: Any, predicted: Any, figure: Figure) -> float:
    """The mean of figure(relevant, scores, known) over rows."""
    truth = as_labels(truth)
    blocks = score_blocks(truth, _dense(truth, predicted))
    figures = [
        figure(relevant, _finite(scores, known), known) for relevant, scores, known in blocks
    ]
    return float(mean_rows(np.concatenate([np.empty(0), *figures])))


def _dense(truth: Labels, predicted: Any) -> np.ndarray:
    if isinstance(predicted, TopK) or sp.issparse(predicted):
        what = "TopK" if isinstance(predicted, TopK) else "sparse matrix"
        raise ValueError(
            f"predicted is a {what}, but this metric needs a score for every label; give a dense "
            "array, or use a metric at k"
        )
    scores = np.asarray(predicted)
    check_shape(truth, scores.shape)
    return scores


def _transposed(truth: Labels) -> Labels:
    observed = None if truth.observed is None else sp.csr_array(truth.observed.T)
    return Labels(truth.kind, sp.csr_array(truth.positives.T), observed)


def _finite(scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Scores in which only what is not known is -inf, so that it ranks behind all that is."""
    return np.where(known, np.maximum(scores, np.finfo(scores.dtype).min), -np.inf)


def _auc(relevant: np.ndarray, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    p, q = _counts(relevant, known)
    rows, more, at_least = _standing(relevant, scores)
    mid_rank = (more + 1 + at_least) / 2
    wrong = np.bincount(rows, mid_rank, minlength=len(p)) - p * (p + 1) / 2
    defined = p * q > 0
    return 1 - wrong[defined] / (p * q)[defined]


def _coverage(relevant: np.ndarray, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    rows, _, at_least = _standing(relevant, scores)
    depth = np.zeros(len(relevant))
    np.maximum.at(depth, rows, at_least)
    return depth


def _ranking_loss(relevant: np.ndarray, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    p, q = _counts(relevant, known)
    rows, _, at_least = _standing(relevant, scores)
    wrong = np.bincount(rows, at_least - _relevant_at_least(relevant, scores), minlength=len(p))
    return wrong / np.maximum(p * q, 1)


def _average_precision(relevant: np.ndarray, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    p, q = _counts(relevant, known)
    rows, _, at_least = _standing(relevant, scores)
    precision = np.bincount(rows, _relevant_at_least(relevant, scores) / at_least, minlength=len(p))
    return np.where(p * q == 0, 1.0, precision / np.maximum(p, 1))


def _counts(relevant: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many labels of each row are relevant, and how many of the known are not."""
    p = relevant.sum(axis=1)
    return p, known.sum(axis=1) - p


def _relevant_at_least(relevant: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Of each relevant entry, how many relevant labels of its row score at least as much."""
    return _standing(relevant, np.where(relevant, scores, -np.inf))[2]


def _standing(
    relevant: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each relevant entry: its row, how many labels score more, and how many at least as much.

    Sorting values and searching for the few that matter is several times faster than ranking all.
    """
    rows, columns = relevant.nonzero()
    values = scores[rows, columns]
    ascending = np.sort(scores, axis=1)
    n_labels = scores.shape[1]
    more = n_labels - _search(ascending, rows, values, np.less_equal)
    return rows, more, n_labels - _search(ascending, rows, values, np.less)


def _search(
    ascending: np.ndarray, rows: np.ndarray, values: np.ndarray, below: np.ufunc
) -> np.ndarray:
    """How many entries of ascending[rows[i]] are below values[i]: all binary searches at once."""
    low = np.zeros(len(rows), np.intp)
    high = np.full(len(rows), ascending.shape[1])
    while (low < high).any():
        middle = (low + high) // 2
        # A search that has ended stays where it is: its middle may lie beyond the last column.
        right = (low < high) & below(ascending[rows, middle - (low == high)], values)
        low, high = np.where(right, middle + 1, low), np.where(right, high, middle)
    return low
