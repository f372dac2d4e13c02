"""Metrics of the k labels ranked first.

With y the truth of a row and y_(r) the truth of its r-th ranked label,

    P@k    = mean_i  Σ_{r≤k} y_(r) / k                                          (1)
    R@k    = mean_i  Σ_{r≤k} y_(r) / ‖y‖₁                                       (2)
    nDCG@k = mean_i  Σ_{r≤k} y_(r) / log₂(r+1)  /  Σ_{r≤min(k,‖y‖₁)} 1/log₂(r+1)   (3)

All follow from one (n_samples, k) table of hits, found by binary search among the positives: from a
`TopK` the cost is O(nnz + n k log nnz), and n × L is never laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.labels import Labels, TopK, as_labels

__all__ = ["ndcg_at_k", "precision_at_k", "recall_at_k"]

BLOCK_ENTRIES = 2**22
"""Entries of a dense score array that are ranked at a time: 32 MiB in float64."""


def precision_at_k(truth: Any, predicted: Any, k: int | Sequence[int] = 5) -> float | np.ndarray:
    """The share of the k labels ranked first that are relevant, (1).

    The denominator is k even where a row has, or is offered, fewer labels; rows without relevant
    labels count 0. A lower bound where the truth is positive-only.

    Parameters
    ----------
    truth, predicted
        See `tacit.metrics`.
    k : int or sequence of int, default=5
        Where to cut; a sequence gives an array of as many figures, for the price of one.

    Examples
    --------
    >>> Y = [[1, 0, 1], [0, 1, 0]]
    >>> scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.8, 0.3]])
    >>> precision_at_k(Y, scores, k=1)
    1.0
    >>> precision_at_k(Y, scores, k=[1, 3])
    array([1. , 0.5])
    """
    truth, top = ranked(truth, predicted, k)
    gained = contains(truth.positives, top).cumsum(axis=1)
    return at_k(mean_rows(gained) / np.arange(1, top.shape[1] + 1), k)


def recall_at_k(truth: Any, predicted: Any, k: int | Sequence[int] = 5) -> float | np.ndarray:
    """The share of a row's relevant labels that are among the k ranked first, (2).

    Rows without relevant labels are skipped. Parameters as for `precision_at_k`.
    """
    truth, top = ranked(truth, predicted, k)
    gained = contains(truth.positives, top).cumsum(axis=1)
    relevant = np.diff(truth.positives.indptr)
    some = relevant > 0
    return at_k(mean_rows(gained[some] / relevant[some, None]), k)


def ndcg_at_k(truth: Any, predicted: Any, k: int | Sequence[int] = 5) -> float | np.ndarray:
    """Normalised discounted cumulative gain of the k labels ranked first, (3).

    Rows without relevant labels are skipped. Parameters as for `precision_at_k`.
    """
    truth, top = ranked(truth, predicted, k)
    gains = discounts(top.shape[1])
    gained = (contains(truth.positives, top) * gains).cumsum(axis=1)
    relevant = np.diff(truth.positives.indptr)
    some = relevant > 0
    cut = np.minimum(relevant[some, None], np.arange(1, top.shape[1] + 1))
    return at_k(mean_rows(gained[some] / gains.cumsum()[cut - 1]), k)


def ranked(truth: Any, predicted: Any, k: int | Sequence[int]) -> tuple[Labels, np.ndarray]:
    """The truth as Labels, and the labels ranked first among the known: (n, max k), -1 for none."""
    truth = as_labels(truth)
    wanted = _checked_k(k)
    if isinstance(predicted, TopK):
        top = _top_of_topk(truth, predicted, wanted)
    elif sp.issparse(predicted):
        check_shape(truth, predicted.shape)
        top = _top_of_sparse(truth, predicted, wanted)
    else:
        blocks = score_blocks(truth, predicted)
        top = np.concatenate(
            [np.empty((0, min(wanted, truth.n_labels)), np.intp)]
            + [_largest(scores, wanted) for _, scores, _ in blocks]
        )
    missing = max(wanted - top.shape[1], 0)
    return truth, np.pad(top[:, :wanted], ((0, 0), (0, missing)), constant_values=-1)


def at_k(figures: np.ndarray, k: int | Sequence[int]) -> float | np.ndarray:
    """The figures at each k: a float where k is an int."""
    return float(figures[k - 1]) if isinstance(k, int | np.integer) else figures[np.array(k) - 1]


def discounts(k: int) -> np.ndarray:
    """1 / log₂(r+1) for the ranks r = 1 … k."""
    return 1 / np.log2(np.arange(2, k + 2))


def mean_rows(values: np.ndarray) -> np.ndarray:
    """The mean over rows; nan, and no warning, where there is none."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan)


def contains(pattern: sp.csr_array, columns: np.ndarray) -> np.ndarray:
    """Whether (i, columns[i, r]) is in the pattern; a negative column is not."""
    n, n_labels = pattern.shape
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    # Canonical CSR, so the cells are sorted; the last is a sentinel beyond all of them.
    cells = np.append(rows * n_labels + pattern.indices, n * n_labels)
    wanted = np.arange(n)[:, None] * n_labels + columns
    return (columns >= 0) & (cells[np.searchsorted(cells, wanted)] == wanted)


def check_shape(truth: Labels, shape: tuple[int, ...]) -> None:
    if tuple(shape) != truth.shape:
        raise ValueError(
            f"predicted has shape {tuple(shape)} but truth has shape {truth.shape}; "
            "give both one entry for each row and label"
        )


def checked_topk(truth: Labels, predicted: TopK) -> np.ndarray:
    """The labels that a TopK lists, which are labels of the truth."""
    listed = np.asarray(predicted.indices)
    if listed.ndim != 2 or len(listed) != truth.n_samples:
        raise ValueError(
            f"predicted lists labels of shape {listed.shape} but truth has shape {truth.shape}; "
            "give both the same rows"
        )
    if listed.max(initial=-1) >= truth.n_labels:
        raise ValueError(
            f"predicted lists label {listed.max()} but truth has {truth.n_labels} labels, "
            "counted from 0; give both the same labels"
        )
    return listed


def refuse_nan(scores: np.ndarray) -> None:
    if np.isnan(scores).any():
        raise ValueError("predicted has NaN among its scores; give -inf to offer no label")


def score_blocks(
    truth: Labels, predicted: Any
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of rows of dense scores: relevant, scores (-inf where not known), known."""
    scores = np.asarray(predicted)
    check_shape(truth, scores.shape)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"predicted must hold numbers; got values of type {scores.dtype}")
    step = max(BLOCK_ENTRIES // max(truth.n_labels, 1), 1)
    for start in range(0, truth.n_samples, step):
        rows = slice(start, start + step)
        block = scores[rows]
        block = block if block.dtype.kind == "f" else block.astype(np.float64)
        refuse_nan(block)
        relevant = truth.positives[rows].toarray()
        known = np.ones_like(relevant)
        if truth.observed is not None:
            known = truth.observed[rows].toarray()
            block = np.where(known, block, -np.inf)
        yield relevant, block, known


def _checked_k(k: int | Sequence[int]) -> int:
    """The largest k asked for."""
    ks = np.asarray(k)
    if ks.ndim > 1 or ks.size == 0 or ks.dtype.kind not in "iu" or ks.min() < 1:
        raise ValueError(f"k must be an int of at least 1, or a sequence of them; got {k!r}")
    return int(ks.max())


def _largest(scores: np.ndarray, k: int) -> np.ndarray:
    """The columns of the k largest of each row, best first, ties to the lowest; -1 for -inf."""
    n, n_labels = scores.shape
    if k < n_labels:
        # A partition leaves ties in any order, so it only finds the value to cut at.
        cut = np.partition(scores, n_labels - k, axis=1)[:, n_labels - k, None]
        above, tied = scores > cut, scores == cut
        room = k - above.sum(axis=1, keepdims=True)
        columns = (above | (tied & (tied.cumsum(axis=1) <= room))).nonzero()[1].reshape(n, k)
    else:
        columns = np.broadcast_to(np.arange(n_labels), scores.shape)
    best = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    columns, best = (np.take_along_axis(a, order, axis=1) for a in (columns, best))
    return np.where(best == -np.inf, -1, columns)


def _top_of_topk(truth: Labels, predicted: TopK, k: int) -> np.ndarray:
    top = checked_topk(truth, predicted)
    if top.shape[1] < min(k, truth.n_labels):
        raise ValueError(
            f"predicted lists {top.shape[1]} labels a row but k is {k}; ask for a TopK of {k}"
        )
    return _known_first(truth, top)


def _known_first(truth: Labels, top: np.ndarray) -> np.ndarray:
    """The known labels of each row moved up in their order, and -1 behind them."""
    if truth.observed is None:
        return top
    known = contains(truth.observed, top)
    order = np.argsort(~known, axis=1, kind="stable")
    return np.take_along_axis(np.where(known, top, -1), order, axis=1)


def _top_of_sparse(truth: Labels, predicted: Any, k: int) -> np.ndarray:
    """The stored entries of each row by score, then by label."""
    scores = sp.coo_array(predicted, copy=True)
    scores.sum_duplicates()
    refuse_nan(scores.data)
    offered = scores.data != -np.inf
    rows, columns, data = (a[offered] for a in (scores.row, scores.col, scores.data))
    order = np.lexsort((columns, -data.astype(np.float64), rows))
    counts = np.bincount(rows, minlength=truth.n_samples)
    rank = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
    top = np.full((truth.n_samples, counts.max(initial=0)), -1)
    top[rows[order], rank] = columns[order]
    return _known_first(truth, top)
