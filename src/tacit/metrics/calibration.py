"""Calibration: whether the share p is true of what was given the probability p.

The known entries are cut by their probability into B bins of equal width. With n_b of the n entries
in bin b, p̄_b their mean probability and ȳ_b the share of them that is true,

    calibration error = Σ_b (n_b / n) |p̄_b − ȳ_b|                        (1)

A `TopK` of probabilities counts the entries that it lists: with thousands of labels almost all
entries are a certain no, and (1) over all of them is small whatever a model says of the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.labels import TopK, as_labels
from tacit.metrics.top import checked_topk, contains, score_blocks

__all__ = ["Reliability", "calibration_error", "reliability"]


class Reliability(NamedTuple):
    """The points of a reliability diagram, one a bin; a bin without entries has NaN for means."""

    probability: np.ndarray
    """The mean probability of the entries of a bin, p̄_b."""
    true: np.ndarray
    """The share of them that is true, ȳ_b."""
    entries: np.ndarray
    """How many there are, n_b."""


def calibration_error(truth: Any, predicted: Any, n_bins: int = 10) -> float:
    """The mean distance of what was promised from what came true, (1).

    Parameters
    ----------
    truth
        See `tacit.metrics`. A lower bound on what is true where it is positive-only.
    predicted : array (n_samples, n_labels) or TopK
        Probabilities; of a `TopK`, those of the entries it lists.
    n_bins : int, default=10
        The number of bins, B.

    Examples
    --------
    >>> round(calibration_error([[1, 0]], np.array([[0.8, 0.1]])), 3)
    0.15
    """
    probability, true, entries = reliability(truth, predicted, n_bins)
    some = entries > 0
    if not some.any():
        return np.nan
    return float(np.average(np.abs(probability - true)[some], weights=entries[some]))


def reliability(truth: Any, predicted: Any, n_bins: int = 10) -> Reliability:
    """Promised and true shares, bin by bin, for a diagram. Parameters as of `calibration_error`.

    Examples
    --------
    >>> reliability([[1, 0, 1]], np.array([[0.8, 0.1, 0.2]]), n_bins=2).true
    array([0.5, 1. ])
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins}")
    truth = as_labels(truth)
    sums = np.zeros((3, n_bins))  # of probability, truth and ones
    if isinstance(predicted, TopK):
        listed = checked_topk(truth, predicted)
        known = listed >= 0
        if truth.observed is not None:
            known &= contains(truth.observed, listed)
        true = contains(truth.positives, listed)
        sums += _binned(np.asarray(predicted.scores)[known], true[known], n_bins)
    else:
        for relevant, scores, known in score_blocks(truth, predicted):
            sums += _binned(scores[known], relevant[known], n_bins)
    with np.errstate(invalid="ignore"):
        return Reliability(sums[0] / sums[2], sums[1] / sums[2], sums[2].astype(np.intp))


def _binned(probability: np.ndarray, true: np.ndarray, n_bins: int) -> np.ndarray:
    if probability.size and not (probability.min() >= 0 and probability.max() <= 1):
        raise ValueError(
            "predicted must hold probabilities, from 0 to 1; got values from "
            f"{probability.min():.3g} to {probability.max():.3g}: call predict_proba"
        )
    bins = np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)
    weights = (probability, true, np.ones_like(bins))
    return np.stack([np.bincount(bins, each, minlength=n_bins) for each in weights])
