"""The best labels of sparse rows by sparse weights, without laying out the scores of all labels.

    s_i = x_iᵀW,  its m largest                                                                 (1)

A row has a few features, and a feature has weights for a few labels, so that few labels get a score
at all. They are added up in one dense row, selected from among themselves and cleared again: that
takes O(Σ_j nnz(w_j)) a row in place of O(L). SciPy's sparse product sorts what it finds and keeps
all of it, and takes ten times as long.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from tacit.labels import TopK

__all__ = ["best", "entries"]

_ROWS, _ENTRIES = 2**11, 2**17  # to a task


def best(X: sp.csr_array, W: sp.csr_array, m: int, others: np.ndarray, skip: sp.csr_array) -> TopK:
    """(1), the best first; rows with fewer scored labels go on with `others`, whose score is 0.

    Labels in the pattern `skip` are left out; where no label is left its index is -1.

    Examples
    --------
    >>> X, W = sp.csr_array([[1.0, 0.0], [1.0, 2.0]]), sp.csr_array([[3.0, 0, 0], [0, 0, 2.0]])
    >>> found = best(X, W, 2, np.array([1, 0, 2]), sp.csr_array((2, 3)))
    >>> found.indices, found.scores
    (array([[0, 1],
           [2, 0]]), array([[3., 0.],
           [4., 3.]]))
    """
    label = np.full((X.shape[0], m), -1, np.int64)
    score = np.full(label.shape, -np.inf, W.dtype)
    arrays = X.indptr, X.indices, X.data, W.indptr, W.indices, W.data, skip.indptr, skip.indices
    parts = ((a, min(a + _ROWS, len(label))) for a in range(0, len(label), _ROWS))
    Parallel(n_jobs=-1, prefer="threads")(
        delayed(_best)(*arrays, others, W.shape[1], *part, label, score) for part in parts
    )
    return TopK(label, score)


def entries(X: sp.csr_array, W: sp.csr_array, row: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Some scores of (1); the labels of each row of W ascend."""
    arrays = X.indptr, X.indices, X.data, W.indptr, W.indices, W.data
    parts = [slice(a, a + _ENTRIES) for a in range(0, len(row), _ENTRIES)]
    found = Parallel(n_jobs=-1, prefer="threads")(
        delayed(_entries)(*arrays, row[part], label[part]) for part in parts
    )
    return np.concatenate([np.empty(0), *found])


@numba.njit(nogil=True, cache=True)
def _best(  # type: ignore[no-untyped-def]
    xp, xi, x, wp, wi, w, skip_p, skip_i, others, n_labels, first, last, label, score
):
    m, found = label.shape[1], np.empty(n_labels, np.int64)
    total, scored = np.zeros(n_labels, w.dtype), np.zeros(n_labels, np.bool_)
    for i in range(first, last):
        for a in range(skip_p[i], skip_p[i + 1]):
            scored[skip_i[a]] = True  # and so is not found
        width = 0
        for a in range(xp[i], xp[i + 1]):
            for b in range(wp[xi[a]], wp[xi[a] + 1]):
                each = wi[b]
                if not scored[each]:
                    scored[each] = True
                    found[width] = each
                    width += 1
                total[each] += x[a] * w[b]
        sums = total[found[:width]]
        place = np.arange(width)
        if width > m:
            place = np.flatnonzero(sums >= np.partition(sums, width - m)[width - m])
        place = place[np.argsort(-sums[place], kind="mergesort")][:m]
        k = len(place)
        label[i, :k], score[i, :k] = found[place], sums[place]
        for each in others:
            if k == m:
                break
            if not scored[each]:
                label[i, k], score[i, k] = each, 0.0
                k += 1
        for a in range(xp[i], xp[i + 1]):
            for b in range(wp[xi[a]], wp[xi[a] + 1]):
                total[wi[b]], scored[wi[b]] = 0.0, False
        for a in range(skip_p[i], skip_p[i + 1]):
            scored[skip_i[a]] = False


@numba.njit(nogil=True, cache=True)
def _entries(xp, xi, x, wp, wi, w, row, label):  # type: ignore[no-untyped-def]
    out = np.zeros(len(row))
    for e in range(len(row)):
        for a in range(xp[row[e]], xp[row[e] + 1]):
            own = wi[wp[xi[a]] : wp[xi[a] + 1]]
            at = np.searchsorted(own, label[e])
            if at < len(own) and own[at] == label[e]:
                out[e] += x[a] * w[wp[xi[a]] + at]
    return out
