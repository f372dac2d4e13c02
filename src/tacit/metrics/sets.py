"""Metrics of predicted sets of labels, by counting agreements on the known entries.

With T the relevant and P the predicted entries, both within the known ones, and |·|_i, |·|_l their
number in row i or for label l:

    Hamming loss      (|T| + |P| − 2 |T ∩ P|) / known entries             (1)
    micro-F1          2 |T ∩ P| / (|T| + |P|)                             (2)
    macro-F1          mean_l  2 |T ∩ P|_l / (|T|_l + |P|_l)               (3)
    example accuracy  mean_i  |T ∩ P|_i / (|T|_i + |P|_i − |T ∩ P|_i)     (4)
    example F1        mean_i  2 |T ∩ P|_i / (|T|_i + |P|_i)               (5)

Where true labels of kind l are said with probability c_l only, each that was said stands for 1/c_l,
and with P_t the entries whose score is above t the micro-F1 of the truth is about

    F(t)              2 Σ_{T ∩ P_t} 1/c_l / (Σ_T 1/c_l + |P_t|)           (6)

A label (or a whole table) without relevant and predicted entries has F1 0; a row without either is
perfect, 1. Everything is sparse: the cost of (1) to (5) is O(|T| + |P|), that of a maximum of (6)
a sort of the scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tacit.labels import Labels, TopK, as_labels
from tacit.metrics.top import check_shape, checked_topk, mean_rows, refuse_nan

__all__ = [
    "best_threshold",
    "example_accuracy",
    "example_f1",
    "hamming_loss",
    "is_in",
    "macro_f1",
    "micro_f1",
    "scored_cells",
]


def hamming_loss(truth: Any, predicted: Any) -> float:
    """The share of known entries that were predicted wrongly, (1).

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`; `predicted` is an indicator of 0 and 1, or a `TopK`, of which all
        listed labels are predicted.

    Examples
    --------
    >>> hamming_loss([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.25
    """
    truth = as_labels(truth)
    both, relevant, chosen = (c.sum() for c in _counts(truth, predicted, axis=0))
    known = truth.n_samples * truth.n_labels if truth.observed is None else truth.observed.nnz
    return float((relevant + chosen - 2 * both) / known) if known else np.nan


def micro_f1(truth: Any, predicted: Any) -> float:
    """F1 of all known entries together, (2). Parameters as for `hamming_loss`."""
    both, relevant, chosen = (c.sum() for c in _counts(as_labels(truth), predicted, axis=0))
    return float(2 * both / max(relevant + chosen, 1))


def macro_f1(truth: Any, predicted: Any, *, present_only: bool = False) -> float:
    """F1 of each label, averaged, (3).

    Parameters
    ----------
    truth, predicted
        As for `hamming_loss`.
    present_only : bool, default=False
        Average over the labels that are relevant to some row, not over all. With many rare labels
        the two differ much: a label that neither occurs nor is predicted counts 0.
    """
    both, relevant, chosen = _counts(as_labels(truth), predicted, axis=0)
    f1 = 2 * both / np.maximum(relevant + chosen, 1)
    return float(mean_rows(f1[relevant > 0] if present_only else f1))


def example_accuracy(truth: Any, predicted: Any) -> float:
    """The Jaccard index of each row's sets, averaged, (4). Parameters as for `hamming_loss`."""
    both, relevant, chosen = _counts(as_labels(truth), predicted, axis=1)
    return _mean_ratio(both, relevant + chosen - both)


def example_f1(truth: Any, predicted: Any) -> float:
    """F1 of each row's sets, averaged, (5). Parameters as for `hamming_loss`."""
    both, relevant, chosen = _counts(as_labels(truth), predicted, axis=1)
    return _mean_ratio(2 * both, relevant + chosen)


def best_threshold(truth: Any, predicted: Any, *, c: Any = 1.0) -> float:
    """The threshold t above which scores are to be predicted for the largest micro-F1, (6).

    It is one of the scores (or just below the lowest): {score > t} begins with the next larger one.
    Of thresholds that are equally good the largest is taken, and where nothing was said that is the
    largest score, above which nothing is predicted. nan where no known entry has a score.

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`; `predicted` holds scores. A `TopK` or sparse matrix offers only what it
        lists, and the rest of the truth is missed at any threshold.
    c : float or array of shape (n_labels,), default=1.0
        The probability that a label is said where it is true; 1 is plain micro-F1. A smaller c
        never raises the threshold.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.6], [0.5, 0.4], [0.3, 0.1]])
    >>> best_threshold([[1, 0], [0, 1], [0, 0]], scores)
    0.6
    >>> best_threshold([[1, 0], [0, 1], [0, 0]], scores, c=0.5)
    0.3
    """
    truth = as_labels(truth)
    weights = 1 / _checked_rates(c, truth)
    rows, columns, scores = scored_cells(truth, predicted)
    if not len(scores):
        return np.nan
    gains = np.where(is_in(truth.positives, rows, columns), weights[columns], 0.0)
    order = np.argsort(-scores)
    scores, hits = scores[order], np.cumsum(gains[order])
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # of each run of equals
    total = weights[truth.positives.indices].sum()
    f1 = np.append(0.0, 2 * hits[last] / (last + 1 + total))  # above the largest is nothing
    least = np.nextafter(scores[-1], -np.inf)
    below = np.concatenate([scores[:1], scores[last[:-1] + 1], [least]])
    return float(below[f1.argmax()])


class _Counts(NamedTuple):
    both: np.ndarray
    relevant: np.ndarray
    chosen: np.ndarray


def _counts(truth: Labels, predicted: Any, axis: int) -> _Counts:
    """|T ∩ P|, |T| and |P| of each label (axis 0) or row (axis 1)."""
    chosen = _indicator(truth, predicted)
    if truth.observed is not None:
        chosen = chosen.multiply(truth.observed)
    parts = (truth.positives.multiply(chosen), truth.positives, chosen)
    # int64: a sum of booleans is a boolean.
    return _Counts(*(sp.csr_array(part).astype(np.int64).sum(axis=axis) for part in parts))


def _mean_ratio(part: np.ndarray, whole: np.ndarray) -> float:
    """The mean of part / whole, where nothing of nothing is perfect."""
    return float(mean_rows(np.where(whole == 0, 1.0, part / np.maximum(whole, 1))))


def _indicator(truth: Labels, predicted: Any) -> sp.csr_array:
    if isinstance(predicted, TopK):
        listed = checked_topk(truth, predicted)
        rows, ranks = np.nonzero(listed >= 0)
        cells = (rows, listed[rows, ranks])
        return sp.csr_array((np.ones(len(rows), bool), cells), shape=truth.shape)
    if not sp.issparse(predicted):
        predicted = np.asarray(predicted)
    check_shape(truth, predicted.shape)
    values = predicted.data if sp.issparse(predicted) else predicted
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise ValueError(
            f"predicted must hold 0 and 1 for this metric; got {values[wrong][0]!s}; compare the "
            "scores with a threshold, or give a TopK"
        )
    chosen = sp.csr_array(predicted).astype(bool)
    chosen.sum_duplicates()  # astype has copied: the caller's matrix stays as it was
    return chosen


def scored_cells(truth: Labels, predicted: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, label and score of each known entry that is offered."""
    if isinstance(predicted, TopK):
        listed = checked_topk(truth, predicted)
        rows, ranks = np.nonzero(listed >= 0)
        columns, scores = listed[rows, ranks], np.asarray(predicted.scores)[rows, ranks]
    elif sp.issparse(predicted):
        check_shape(truth, predicted.shape)
        cells = sp.coo_array(predicted, copy=True)
        cells.sum_duplicates()
        rows, columns, scores = cells.row, cells.col, cells.data
    else:
        dense = np.asarray(predicted)
        check_shape(truth, dense.shape)
        rows, columns = np.divmod(np.arange(dense.size), max(truth.n_labels, 1))
        scores = dense.ravel()
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"predicted must hold numbers; got values of type {scores.dtype}")
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    refuse_nan(scores)
    offered = scores > -np.inf
    if truth.observed is not None:
        offered &= is_in(truth.observed, rows, columns)
    return rows[offered], columns[offered], scores[offered]


def is_in(pattern: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Whether each cell is in the pattern, whose cells are sorted since it is canonical."""
    n, n_labels = pattern.shape
    stored = np.repeat(np.arange(n), np.diff(pattern.indptr)) * n_labels + pattern.indices
    wanted = rows.astype(np.int64) * n_labels + columns
    place = np.searchsorted(stored, wanted)
    return np.append(stored, -1)[place] == wanted


def _checked_rates(c: Any, truth: Labels) -> np.ndarray:
    rates = np.asarray(c, np.float64)
    if rates.shape not in ((), (truth.n_labels,)) or not ((rates > 0) & (rates <= 1)).all():
        raise ValueError(
            f"c must be one number above 0 and at most 1, or one for each of {truth.n_labels} "
            f"labels; got {c!r}"
        )
    return np.broadcast_to(rates, truth.n_labels)
