"""Propensity-scored metrics: each label weighs 1/p_l, p_l the chance that it is said where true.

With y_(r) the truth and p_(r) the propensity of the r-th ranked label,

    PSP@k    = Σ_i Σ_{r≤k} y_(r) / p_(r)               /  its largest value       (1)
    PSnDCG@k = Σ_i Σ_{r≤k} y_(r) / (p_(r) log₂(r+1))   /  its largest value       (2)
    p_l      = 1 / (1 + C (N_l + B)^{-A}),   C = (ln N − 1)(B + 1)^A             (3)

where the largest value is reached by ranking each row's relevant labels by 1/p, and N_l of the N
training rows are said to have label l.

References
----------
Jain, Prabhu, Varma (2016). Extreme multi-label loss functions for recommendation, tagging, ranking
and other missing label applications. KDD.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.labels import Labels, as_labels
from tacit.metrics.top import at_k, contains, discounts, ranked

__all__ = ["propensities", "psndcg_at_k", "psp_at_k"]


def propensities(Y_train: Any, A: float = 0.55, B: float = 1.5) -> np.ndarray:
    """The propensity of each label by the formula (3), which was fitted to Wikipedia and Amazon.

    Parameters
    ----------
    Y_train : Labels, or 0/1 array or sparse matrix
        The labels trained on, never those tested on.
    A, B : float, default=0.55 and 1.5
        The authors' constants for most data; (0.5, 0.4) for Wikipedia, (0.6, 2.6) for Amazon.

    Examples
    --------
    >>> Y = np.eye(100, 3, dtype=int)
    >>> propensities(Y).round(3)
    array([0.217, 0.217, 0.217])
    """
    positives = as_labels(Y_train).positives
    n, n_labels = positives.shape
    if n < 3:
        raise ValueError(f"Y_train has {n} rows; the formula needs at least 3, so that ln N > 1")
    counts = np.bincount(positives.indices, minlength=n_labels)
    C = (np.log(n) - 1) * (B + 1) ** A
    said = (counts + B) ** A
    return said / (said + C)


def psp_at_k(
    truth: Any, predicted: Any, propensities: Any, k: int | Sequence[int] = 5
) -> float | np.ndarray:
    """Propensity-scored precision at k, (1): an estimate of P@k on labels of which some are unsaid.

    It is a ratio of sums over all rows, as its authors report it; rows without relevant labels add
    nothing to either.

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`.
    propensities : array of shape (n_labels,)
        The chance that each label is said where it is true; from `propensities(Y_train)`.
    k : int or sequence of int, default=5
        Where to cut; a sequence gives an array of as many figures, for the price of one.
    """
    return _scored(truth, predicted, propensities, k, lambda width: np.ones(width))


def psndcg_at_k(
    truth: Any, predicted: Any, propensities: Any, k: int | Sequence[int] = 5
) -> float | np.ndarray:
    """Propensity-scored nDCG at k, (2). Parameters as for `psp_at_k`.

    Some toolkits divide each row by Σ_{r≤min(k,‖y‖₁)} 1/log₂(r+1) before they sum; the authors'
    constant Σ_{r≤k} 1/log₂(r+1) cancels in (2).
    """
    return _scored(truth, predicted, propensities, k, discounts)


def _scored(
    truth: Any, predicted: Any, propensities: Any, k: int | Sequence[int], discount: Any
) -> float | np.ndarray:
    truth, top = ranked(truth, predicted, k)
    weights = 1 / _checked_propensities(propensities, truth)
    width = top.shape[1]
    gained = np.where(contains(truth.positives, top), weights[top], 0).sum(axis=0)
    reached = (gained * discount(width)).cumsum()
    largest = (_ideal(truth, weights, width) * discount(width)).cumsum()
    return at_k(np.divide(reached, largest, out=np.full(width, np.nan), where=largest > 0), k)


def _ideal(truth: Labels, weights: np.ndarray, k: int) -> np.ndarray:
    """The weights at rank r = 1 … k, summed over rows, if each ranked its positives by weight."""
    counts = np.diff(truth.positives.indptr)
    rows = np.repeat(np.arange(truth.n_samples), counts)
    weight = weights[truth.positives.indices]
    weight = weight[np.lexsort((-weight, rows))]
    rank = np.arange(len(rows)) - truth.positives.indptr[rows]
    first = rank < k
    return np.bincount(rank[first], weight[first], minlength=k)


def _checked_propensities(propensities: Any, truth: Labels) -> np.ndarray:
    p = np.asarray(propensities, dtype=np.float64)
    if p.shape != (truth.n_labels,):
        raise ValueError(
            f"propensities has shape {p.shape} but truth has {truth.n_labels} labels; "
            "give one number for each"
        )
    if not ((p > 0) & (p <= 1)).all():
        raise ValueError("propensities must be above 0 and at most 1; use metrics.propensities")
    return p
