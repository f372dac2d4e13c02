"""The Numba kernels of the CPU backend.

Each loops over rows that one thread owns, so results do not depend on the number of threads.
`cuts` splits the rows into pieces with about the same number of entries: rows of a transposed
matrix are as uneven as word counts, and equal numbers of rows would leave a core idle.

Entry e has the value 1 (a pattern), `data[e]`, or `data[order[e]]` (values given in another order);
`data` and `order` are empty where they do not apply.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

# Sums may be reordered (so that they vectorise), but NaN and infinity keep their meaning.
_REORDER = {"reassoc", "contract", "nsz"}


@numba.njit(inline="always")
def _value(data: Any, order: Any, e: int) -> Any:
    if data.shape[0] == 0:
        return data.dtype.type(1)
    if order.shape[0] > 0:
        return data[order[e]]
    return data[e]


@numba.njit(parallel=True, cache=True, fastmath=_REORDER, nogil=True)
def spmm(indptr: Any, indices: Any, data: Any, order: Any, B: Any, cuts: Any, out: Any) -> None:
    """out = S B: every row of `out` is a weighted sum of rows of B.

    Four rows of B are read at a time: their cache misses overlap, and `out` is touched a quarter
    as often.
    """
    width = B.shape[1]
    for piece in numba.prange(cuts.shape[0] - 1):
        for i in range(cuts[piece], cuts[piece + 1]):
            row = out[i]
            row[:] = 0
            e, stop = indptr[i], indptr[i + 1]
            while e + 4 <= stop:
                b0, b1 = B[indices[e]], B[indices[e + 1]]
                b2, b3 = B[indices[e + 2]], B[indices[e + 3]]
                v0, v1 = _value(data, order, e), _value(data, order, e + 1)
                v2, v3 = _value(data, order, e + 2), _value(data, order, e + 3)
                for j in range(width):
                    row[j] += v0 * b0[j] + v1 * b1[j] + v2 * b2[j] + v3 * b3[j]
                e += 4
            while e < stop:
                b0, v0 = B[indices[e]], _value(data, order, e)
                for j in range(width):
                    row[j] += v0 * b0[j]
                e += 1


@numba.njit(parallel=True, cache=True, fastmath=_REORDER, nogil=True)
def sddmm(indptr: Any, indices: Any, A: Any, B: Any, cuts: Any, out: Any) -> None:
    """out[e] = a_iᵀ b_j for the entry e = (i, j)."""
    width = A.shape[1]
    for piece in numba.prange(cuts.shape[0] - 1):
        for i in range(cuts[piece], cuts[piece + 1]):
            a = A[i]
            for e in range(indptr[i], indptr[i + 1]):
                b = B[indices[e]]
                total = A.dtype.type(0)
                for j in range(width):
                    total += a[j] * b[j]
                out[e] = total


@numba.njit(parallel=True, cache=True, nogil=True)
def cross(
    t_indptr: Any,
    t_indices: Any,
    t_data: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    cuts: Any,
    out: Any,
) -> None:
    """out = SᵀT from the rows of Sᵀ and of T, in float64."""
    for piece in numba.prange(cuts.shape[0] - 1):
        for a in range(cuts[piece], cuts[piece + 1]):
            row = out[a]
            for e in range(t_indptr[a], t_indptr[a + 1]):
                i = t_indices[e]
                left = 1.0 if t_data.shape[0] == 0 else np.float64(t_data[e])
                for f in range(indptr[i], indptr[i + 1]):
                    right = 1.0 if data.shape[0] == 0 else np.float64(data[f])
                    row[indices[f]] += left * right


@numba.njit(parallel=True, cache=True, fastmath=_REORDER, nogil=True)
def grams(
    t_indptr: Any, t_indices: Any, data: Any, order: Any, A: Any, cuts: Any, out: Any
) -> None:
    """out[j] = Σ_i s_ij a_i a_iᵀ over the entries of column j."""
    width = A.shape[1]
    for piece in numba.prange(cuts.shape[0] - 1):
        for j in range(cuts[piece], cuts[piece + 1]):
            G = out[j]
            G[:] = 0
            for e in range(t_indptr[j], t_indptr[j + 1]):
                a = A[t_indices[e]]
                value = _value(data, order, e)
                for p in range(width):
                    scaled = value * a[p]
                    line = G[p]
                    for q in range(p + 1):
                        line[q] += scaled * a[q]
            for p in range(width):
                for q in range(p):
                    G[q, p] = G[p, q]


@numba.njit(parallel=True, cache=True, nogil=True)
def top_k(scores: Any, indices: Any, best: Any) -> None:
    """The k largest of each row of `scores`, in order; the lower index wins a tie.

    Where fewer than k scores are above -inf, the rest is index -1 and score -inf.
    """
    k = indices.shape[1]
    for i in numba.prange(scores.shape[0]):
        where, value, row = indices[i], best[i], scores[i]
        where[:] = -1
        value[:] = -np.inf
        for j in range(row.shape[0]):
            s = row[j]
            if s > value[k - 1]:
                place = k - 1
                while place > 0 and s > value[place - 1]:
                    value[place] = value[place - 1]
                    where[place] = where[place - 1]
                    place -= 1
                value[place] = s
                where[place] = j
