"""Thresholds: how much of what lies above one is right, and from which one on enough of it is.

With T the relevant entries and P_t those whose score is at least t, both within the known ones,

    precision  |T ∩ P_t| / |P_t|                                                        (1)
    recall     |T ∩ P_t| / |T|                                                          (2)
    F1         2 |T ∩ P_t| / (|T| + |P_t|)                                              (3)

of all entries, or of those of each label. With p of n entries right, Wilson's interval of 95 % for
the precision is, z = 1.96,

    (p + z² / 2n ± z √(p (1 − p) / n + z² / 4n²)) / (1 + z² / n).                       (4)

Where the truth is positive-only, what is right and was never said counts as wrong: precision by (1)
is a lower bound, and so is the lower end of (4).

References
----------
E. B. Wilson. Probable inference, the law of succession, and statistical inference. JASA 1927.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tacit.labels import Labels, as_labels
from tacit.metrics.sets import is_in, scored_cells

__all__ = ["AtThresholds", "PrecisionThreshold", "at_thresholds", "precision_threshold", "wilson"]

_Z = 1.96
_GROUPS = ("all", "labels")


class AtThresholds(NamedTuple):
    """What is chosen at each threshold; arrays of shape (n_thresholds,) or (…, n_labels)."""

    chosen: np.ndarray
    """How many entries, |P_t|."""
    precision: np.ndarray
    """By (1); nan where nothing is chosen."""
    low: np.ndarray
    """The ends of (4)."""
    high: np.ndarray
    recall: np.ndarray
    """By (2); nan where nothing is relevant."""
    f1: np.ndarray
    """By (3); nan where nothing is chosen or relevant."""


class PrecisionThreshold(NamedTuple):
    """The threshold that reaches a precision: numbers, or arrays of shape (n_labels,)."""

    threshold: np.ndarray
    """The least t that reaches it, one of the scores; nan where none does."""
    chosen: np.ndarray
    """How many entries have at least this score; 0 where none reaches it."""
    precision: np.ndarray
    """By (1), and the ends of (4)."""
    low: np.ndarray
    high: np.ndarray
    best: np.ndarray
    """The highest precision that could have been asked for: the largest lower end of (4)."""


def wilson(right: Any, n: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ends of (4), for `right` of `n`; nan where n is 0.

    Examples
    --------
    >>> low, high = wilson(9, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.596, 0.982)
    """
    n = np.asarray(n, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        p, share = np.asarray(right) / n, _Z**2 / n
        half = np.sqrt(share * (p * (1 - p) + share / 4))
        return (p + share / 2 - half) / (1 + share), (p + share / 2 + half) / (1 + share)


def at_thresholds(
    truth: Any,
    predicted: Any,
    thresholds: Sequence[float],
    by: Literal["all", "labels"] = "all",
) -> AtThresholds:
    """Precision, recall and F1 of the entries whose score is at least a threshold, (1) to (4).

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`; `predicted` holds scores. What a `TopK` or sparse matrix does not list
        is not chosen at any threshold.
    thresholds : sequence of float
        The thresholds t.
    by : {"all", "labels"}, default="all"
        Of all entries together, or of each label.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.6], [0.5, 0.4]])
    >>> found = at_thresholds([[1, 0], [0, 1]], scores, [0.5, 0.7])
    >>> found.precision.round(2), found.recall
    (array([0.33, 1.  ]), array([0.5, 0.5]))
    """
    truth, n_groups, groups, right, scores = _cells(truth, predicted, by)
    relevant = np.bincount(
        truth.positives.indices if by == "labels" else np.zeros(truth.positives.nnz, np.intp),
        minlength=n_groups,
    )
    counts = []
    for t in thresholds:
        above = scores >= t
        chosen = np.bincount(groups[above], minlength=n_groups)
        hits = np.bincount(groups[above & right], minlength=n_groups)
        with np.errstate(invalid="ignore"):
            precision, recall = hits / chosen, hits / relevant
            f1 = 2 * hits / (relevant + chosen)
        counts.append((chosen, precision, *wilson(hits, chosen), recall, f1))
    stacked = [np.stack(part) for part in zip(*counts)]
    return AtThresholds(*(part[:, 0] if by == "all" else part for part in stacked))


def precision_threshold(
    truth: Any, predicted: Any, precision: float, by: Literal["all", "labels"] = "all"
) -> PrecisionThreshold:
    """The least threshold from which on so many entries are right, with 97.5 % confidence.

    It is the least score t of which the lower end of (4), not the precision itself, reaches what is
    wanted: a few entries that happen to be right are no ground for trust, and 0.9 takes at least 35
    of them. Give rows that the model has not seen. The interval is that of a single threshold; this
    one is the best of many on the same rows, so that it holds a little less often.

    Parameters
    ----------
    truth, predicted, by
        As for `at_thresholds`.
    precision : float
        The share that is to be right, above 0 and below 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((1000, 2))
    >>> found = precision_threshold(rng.random(p.shape) < p, p, 0.9)
    >>> bool(0.8 < found.threshold < 0.9), bool(found.low >= 0.9)
    (True, True)
    """
    if not 0 < precision < 1:
        raise ValueError(f"precision must be above 0 and below 1; got {precision!r}")
    _, n_groups, groups, right, scores = _cells(truth, predicted, by)
    order = np.lexsort((-scores, groups))
    groups, right, scores = groups[order], right[order], scores[order]
    first = np.searchsorted(groups, np.arange(n_groups))
    before = np.append(0, np.cumsum(right))
    chosen = np.arange(len(groups)) - first[groups] + 1
    hits = before[1:] - before[first[groups]]
    same = (np.diff(scores) == 0) & (np.diff(groups) == 0)
    whole = np.append(~same, [True] * bool(len(scores)))  # no cut between equal scores
    low, high = wilson(hits, chosen)
    best = np.full(n_groups, np.nan)
    np.fmax.at(best, groups[whole], low[whole])
    found = np.full((5, n_groups), np.nan)
    found[1] = 0
    reached = np.flatnonzero(whole & (low >= precision))
    at = groups[reached]  # the last of a group is written last, and stays
    found[:, at] = np.stack([scores, chosen, hits / np.maximum(chosen, 1), low, high])[:, reached]
    parts = (*found, best)
    return PrecisionThreshold(*(part[0] if by == "all" else part for part in parts))


def _cells(
    truth: Any, predicted: Any, by: str
) -> tuple[Labels, int, np.ndarray, np.ndarray, np.ndarray]:
    """The truth, the number of groups, and of each known entry offered its group, truth, score."""
    if by not in _GROUPS:
        raise ValueError(f'by must be "all" or "labels"; got {by!r}')
    truth = as_labels(truth)
    rows, columns, scores = scored_cells(truth, predicted)
    right = is_in(truth.positives, rows, columns)
    if by == "labels":
        return truth, truth.n_labels, columns, right, scores
    return truth, 1, np.zeros_like(columns), right, scores
