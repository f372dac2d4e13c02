"""The Numba kernels of the CPU backend.

Each loops over rows that one thread owns, so results do not depend on the number of threads; those
that go with matrix products are serial, for `NumpyBackend.over`.
`cuts` splits the rows into pieces with about the same number of entries: rows of a transposed
matrix are as uneven as word counts, and equal numbers of rows would leave a core idle.

Entry e has the value 1 (a pattern), `data[e]`, or `data[order[e]]` (values given in another order);
`data` and `order` are empty where they do not apply.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import overload

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


def _exp(x: Any) -> Any:
    """exp(x) for |x| ≤ 80 in a form that vectorises in float32; libm's does not."""


@overload(_exp, inline="always")
def _exp_of(x):  # type: ignore[no-untyped-def]
    if x != numba.float32:
        return lambda x: np.exp(x)

    def single(x):  # type: ignore[no-untyped-def]
        # exp(x) = 2ⁿ exp(r) with |r| ≤ ½ log 2, and a polynomial for exp(r): error below 2 ulp.
        n = np.int32(x * np.float32(1.44269504) + np.float32(128.5)) - np.int32(128)
        r = x - np.float32(n) * np.float32(0.693359375)
        r -= np.float32(n) * np.float32(-2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * r + np.float32(1.3981999507e-3)
        p = p * r + np.float32(8.3334519073e-3)
        p = p * r + np.float32(4.1665795894e-2)
        p = p * r + np.float32(1.6666665459e-1)
        p = p * r + np.float32(5.0000001201e-1)
        return (p * r * r + r + np.float32(1)) * np.int32((n + 127) << 23).view(np.float32)

    return single


def _log(x: Any) -> Any:
    """log(x) for x > 0, likewise."""


@overload(_log, inline="always")
def _log_of(x):  # type: ignore[no-untyped-def]
    if x != numba.float32:
        return lambda x: np.log(x)

    def single(x):  # type: ignore[no-untyped-def]
        # x = 2ⁿ m with ½√2 ≤ m < √2, and a polynomial in m - 1 for log(m).
        bits = np.float32(x).view(np.int32) + np.int32(0x3F800000 - 0x3F3504F3)
        n = np.float32((bits >> 23) - 127)
        m = np.int32((bits & 0x007FFFFF) + 0x3F3504F3).view(np.float32) - np.float32(1)
        p = np.float32(7.0376836292e-2)
        p = p * m + np.float32(-1.1514610310e-1)
        p = p * m + np.float32(1.1676998740e-1)
        p = p * m + np.float32(-1.2420140846e-1)
        p = p * m + np.float32(1.4249322787e-1)
        p = p * m + np.float32(-1.6668057665e-1)
        p = p * m + np.float32(2.0000714765e-1)
        p = p * m + np.float32(-2.4999993993e-1)
        p = p * m + np.float32(3.3333331174e-1)
        square = m * m
        low = p * m * square + n * np.float32(-2.12194440e-4) - np.float32(0.5) * square
        return m + low + n * np.float32(0.693359375)

    return single


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def _silent_row(f: Any, m: Any, label_weights: Any, weight: Any, sums: Any) -> Any:
    """A row of `exposed` as if nothing was said; a function of its own, or it is not vectorised."""
    one, top = f.dtype.type(1), f.dtype.type(40)
    value, curvature = f.dtype.type(0), f.dtype.type(0)
    if sums is not None:
        likelihoods, exposures, curvatures = sums[0], sums[1], sums[2]
    for j in range(f.shape[0]):
        e = _exp(min(max(f[j], -top), top))
        a, b = one + e, one + (one - m[j]) * e
        inverse = one / (a * b)
        likelihood, r = _log(b * b * inverse), m[j] * e * inverse
        f[j] = -r
        value += likelihood
        if label_weights is not None:
            curvature += r * label_weights[j]
        if sums is not None:
            likelihoods[j] += likelihood
            exposures[j] += m[j] * a * inverse
            curvatures[j] += r * weight
    return value, curvature


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def exposed(
    F: Any,
    mu: Any,
    indptr: Any,
    indices: Any,
    label_weights: Any,
    row_weights: Any,
    row_sums: Any,
    sums: Any,
) -> None:
    """F ← R and the sums of `Backend.exposed`; silence is everywhere but on the pattern.

    Weights and sums that are None are left out when this is compiled.
    With e = exp(ψ), silence has the likelihood (1 + (1-μ)e) / (1 + e), exposure the posterior
    μ / (1 + (1-μ)e), and R is -p σ(ψ): one exponential, one logarithm and one division an entry.
    """
    one, top = F.dtype.type(1), F.dtype.type(40)
    for i in range(F.shape[0]):
        f, m = F[i], mu[i % mu.shape[0]]
        said = indices[indptr[i] : indptr[i + 1]]
        kept = f[said]
        weight = one if row_weights is None else row_weights[i]
        value, curvature = _silent_row(f, m, label_weights, weight, sums)
        for s in range(said.shape[0]):  # what was said: take silence back, put speech in
            j, e = said[s], _exp(min(max(kept[s], -top), top))
            a, b = one + e, one + (one - m[j]) * e
            inverse = one / (a * b)
            likelihood = _log(m[j] * e / a) - _log(b * b * inverse)
            f[j] = one / a
            more = f[j] - m[j] * e * inverse
            value += likelihood
            if label_weights is not None:
                curvature += more * label_weights[j]
            if sums is not None:
                sums[0, j] += likelihood
                sums[1, j] += one - m[j] * a * inverse
                sums[2, j] += more * weight
        row_sums[0, i], row_sums[1, i] = value, curvature


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def observed(
    F: Any,
    indptr: Any,
    indices: Any,
    y: Any,
    label_weights: Any,
    row_weights: Any,
    row_sums: Any,
    sums: Any,
) -> None:
    """The same where the pattern is known to be y, and all else known to be missing."""
    one, top = F.dtype.type(1), F.dtype.type(40)
    for i in range(F.shape[0]):
        f = F[i]
        known = indices[indptr[i] : indptr[i + 1]]
        kept = f[known]
        f[:] = 0
        value, curvature = F.dtype.type(0), F.dtype.type(0)
        for s in range(known.shape[0]):
            j, truth = known[s], y[indptr[i] - indptr[0] + s]
            e = _exp(min(max(kept[s], -top), top))
            q = one / (one + e)
            likelihood = _log(truth * e * q + (one - truth) * q)
            f[j] = truth - e * q
            value += likelihood
            if label_weights is not None:
                curvature += abs(f[j]) * label_weights[j]
            if sums is not None:
                sums[0, j] += likelihood
                sums[1, j] += one
                sums[2, j] += abs(f[j]) * row_weights[i]
        row_sums[0, i], row_sums[1, i] = value, curvature


@numba.njit(cache=True, fastmath=_REORDER | {"nnan"}, nogil=True)
def _lifted(f: Any, offset: Any) -> Any:
    """f + offset in place of f, and its largest."""
    top = f[0] + offset[0]
    for j in range(f.shape[0]):
        f[j] += offset[j]
        top = max(top, f[j])
    return top


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def _exponentials(f: Any, top: Any) -> Any:
    """exp(f - top) in place of f, and their sum."""
    total, least = f.dtype.type(0), f.dtype.type(-80)
    for j in range(f.shape[0]):
        f[j] = _exp(max(f[j] - top, least))
        total += f[j]
    return total


@numba.njit(cache=True, nogil=True)
def log_sum_exp(F: Any, offset: Any, out: Any) -> None:
    for i in range(F.shape[0]):
        top = _lifted(F[i], offset)
        out[i] = top + np.log(_exponentials(F[i], top))


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def softmax(F: Any, offset: Any, indptr: Any, indices: Any, by_count: bool, losses: Any) -> None:
    """F ← w (P - G), row by row, and the losses w (log Σ exp h - mean of the positives' h)."""
    for i in range(F.shape[0]):
        f, said = F[i], indices[indptr[i] : indptr[i + 1]]
        count = said.shape[0]
        if count == 0:
            f[:] = 0
            losses[i] = 0
            continue
        top = _lifted(f, offset)
        mean = f.dtype.type(0)
        for s in range(count):
            mean += f[said[s]] / count
        total = _exponentials(f, top)
        weight = f.dtype.type(count if by_count else 1)
        losses[i] = weight * (top + np.log(total) - mean)
        f *= weight / total
        for s in range(count):
            f[said[s]] -= weight / count


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def softmax_known(
    F: Any,
    offset: Any,
    indptr: Any,
    indices: Any,
    known_indptr: Any,
    known_indices: Any,
    by_count: bool,
    losses: Any,
) -> None:
    """The same over the known entries of each row; R is 0 at the others."""
    for i in range(F.shape[0]):
        f, said = F[i], indices[indptr[i] : indptr[i + 1]]
        known = known_indices[known_indptr[i] : known_indptr[i + 1]]
        count = said.shape[0]
        losses[i] = 0
        if count == 0:
            f[:] = 0
            continue
        kept, mean = f[known] + offset[known], f.dtype.type(0)
        for s in range(count):
            mean += (f[said[s]] + offset[said[s]]) / count
        top = kept.max()
        total = _exponentials(kept, top)
        weight = f.dtype.type(count if by_count else 1)
        losses[i] = weight * (top + np.log(total) - mean)
        f[:] = 0
        for s in range(known.shape[0]):
            f[known[s]] = kept[s] * (weight / total)
        for s in range(count):
            f[said[s]] -= weight / count


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def adagrad(theta: Any, S: Any, G: Any, rows: Any, rate: float, epsilon: float) -> None:
    """S ← S + g², θ ← θ - ρ g / (√S + ε), where row i of G is row `rows[i]` of the others."""
    rate, epsilon = theta.dtype.type(rate), theta.dtype.type(epsilon)
    for i in range(G.shape[0]):
        r = rows[i] if rows.shape[0] > 0 else i
        t, s, g = theta[r], S[r], G[i]
        for j in range(g.shape[0]):
            s[j] += g[j] * g[j]
            t[j] -= rate * g[j] / (np.sqrt(s[j]) + epsilon)


@numba.njit(cache=True, fastmath=_REORDER, nogil=True, error_model="numpy")
def adagrad_spmm(
    theta: Any,
    S: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    D: Any,
    rows: Any,
    decay: Any,
    rate: float,
    epsilon: float,
) -> None:
    """`adagrad` with g = Σ_e data[e] D[indices[e]] + decay_i θ, a row at a time, still in cache."""
    rate, epsilon = theta.dtype.type(rate), theta.dtype.type(epsilon)
    width = theta.shape[1]
    g = np.empty(width, theta.dtype)
    for i in range(rows.shape[0]):
        t, s, keep = theta[rows[i]], S[rows[i]], decay[i]
        for j in range(width):
            g[j] = keep * t[j]
        e, stop = indptr[i], indptr[i + 1]
        while e + 4 <= stop:
            d0, d1 = D[indices[e]], D[indices[e + 1]]
            d2, d3 = D[indices[e + 2]], D[indices[e + 3]]
            v0, v1, v2, v3 = data[e], data[e + 1], data[e + 2], data[e + 3]
            for j in range(width):
                g[j] += v0 * d0[j] + v1 * d1[j] + v2 * d2[j] + v3 * d3[j]
            e += 4
        while e < stop:
            d0, v0 = D[indices[e]], data[e]
            for j in range(width):
                g[j] += v0 * d0[j]
            e += 1
        for j in range(width):
            s[j] += g[j] * g[j]
            t[j] -= rate * g[j] / (np.sqrt(s[j]) + epsilon)


# Problems that `solve_packed` takes at a time: two AVX2 registers in float32, four in float64, and
# the matrices of 16 problems at k = 100 (0.3 and 0.6 MiB) stay in the second-level cache.
_LANES = 16
_TILE = 16 * _LANES
# Products of a sum stay in order: as chains of fused multiply-adds they need the fewest operations.
_CHAINED: Any = {"fastmath": {"contract", "nsz"}, "error_model": "numpy", "nogil": True}


@numba.njit(cache=True, **_CHAINED)
def solve_packed(G: Any, B: Any, reg: Any, out: Any) -> None:
    """out[i] = (G_i + diag(reg))⁻¹ b_i by Cholesky; not finite where a pivot is not positive.

    `_LANES` problems are taken at a time, and each step is done for all of them: the innermost
    loop is over the problems, so it vectorises whatever k is. The lower triangle lies in tiles of
    4 × 4, one row of tiles after the other, each entry as the values of all problems. A step on
    tiles then has fixed offsets, and LLVM keeps the tiles in registers: 64 multiply-adds for 48
    vectors read. Rows that fill up the last tiles are those of the identity.
    """
    k, height = len(reg), (len(reg) + 3) // 4
    for chunk in range((len(B) + _LANES - 1) // _LANES):
        first, last = chunk * _LANES, min((chunk + 1) * _LANES, len(B))
        L = np.zeros(height * (height + 1) // 2 * _TILE, G.dtype)
        x = np.zeros(4 * height * _LANES, G.dtype)
        for p in range(k):
            for q in range(p + 1):
                entry = _tile(p // 4, q // 4) + (p % 4 * 4 + q % 4) * _LANES
                values, given = L[entry : entry + _LANES], G[p * (p + 1) // 2 + q, first:last]
                for lane in range(len(given)):
                    values[lane] = given[lane]
            entry = _tile(p // 4, p // 4) + p % 4 * 5 * _LANES
            for lane in range(_LANES):
                L[entry + lane] += reg[p]
            for lane in range(last - first):
                x[p * _LANES + lane] = B[first + lane, p]
        for p in range(k, 4 * height):
            entry = _tile(p // 4, p // 4) + p % 4 * 5 * _LANES
            L[entry : entry + _LANES] = 1
        _factorise(L, height)
        _substitute(L, x, height)
        for lane in range(last - first):
            for p in range(k):
                out[first + lane, p] = x[p * _LANES + lane]


@numba.njit(forceinline=True)
def _tile(i: int, j: int) -> int:
    """Where tile (i, j) begins."""
    return (i * (i + 1) // 2 + j) * _TILE


@numba.njit(**_CHAINED)
def _factorise(L: Any, height: int) -> None:
    """The tiles of L Lᵀ become those of L, with 1 / l_pp for l_pp: divisions are slow."""
    for i in range(height):
        for j in range(i + 1):
            C = L[_tile(i, j) : _tile(i, j + 1)]
            for t in range(j):
                _update(C, L[_tile(i, t) : _tile(i, t + 1)], L[_tile(j, t) : _tile(j, t + 1)])
            if j < i:
                _divide(C, L[_tile(j, j) : _tile(j, j + 1)])
            else:
                _root(C)


@numba.njit(forceinline=True, **_CHAINED)
def _update(C: Any, A: Any, B: Any) -> None:
    """C − A Bᵀ in place of C."""
    for lane in range(_LANES):
        for p in range(4):
            for q in range(4):
                total = C[lane + (4 * p + q) * _LANES]
                for t in range(4):
                    total -= A[lane + (4 * p + t) * _LANES] * B[lane + (4 * q + t) * _LANES]
                C[lane + (4 * p + q) * _LANES] = total


@numba.njit(forceinline=True, **_CHAINED)
def _divide(C: Any, D: Any) -> None:
    """C D⁻ᵀ in place of C, for a factorised D."""
    for lane in range(_LANES):
        for p in range(4):
            for q in range(4):
                total = C[lane + (4 * p + q) * _LANES]
                for t in range(q):
                    total -= C[lane + (4 * p + t) * _LANES] * D[lane + (4 * q + t) * _LANES]
                C[lane + (4 * p + q) * _LANES] = total * D[lane + 5 * q * _LANES]


@numba.njit(forceinline=True, **_CHAINED)
def _root(C: Any) -> None:
    """The Cholesky factor of C in place of C."""
    for lane in range(_LANES):
        for q in range(4):
            for p in range(q, 4):
                total = C[lane + (4 * p + q) * _LANES]
                for t in range(q):
                    total -= C[lane + (4 * p + t) * _LANES] * C[lane + (4 * q + t) * _LANES]
                if p == q:
                    total = C.dtype.type(1) / np.sqrt(total)
                else:
                    total *= C[lane + 5 * q * _LANES]
                C[lane + (4 * p + q) * _LANES] = total


@numba.njit(**_CHAINED)
def _substitute(L: Any, x: Any, height: int) -> None:
    """(L Lᵀ)⁻¹ x in place of x, for a factorised L."""
    step = 4 * _LANES
    for i in range(height):
        y = x[i * step : (i + 1) * step]
        for t in range(i):
            _subtract(y, L[_tile(i, t) : _tile(i, t + 1)], x[t * step : (t + 1) * step], 4, 1)
        D = L[_tile(i, i) : _tile(i, i + 1)]
        for lane in range(_LANES):
            for p in range(4):
                total = y[lane + p * _LANES]
                for q in range(p):
                    total -= D[lane + (4 * p + q) * _LANES] * y[lane + q * _LANES]
                y[lane + p * _LANES] = total * D[lane + 5 * p * _LANES]
    for i in range(height - 1, -1, -1):
        y = x[i * step : (i + 1) * step]
        for t in range(i + 1, height):
            _subtract(y, L[_tile(t, i) : _tile(t, i + 1)], x[t * step : (t + 1) * step], 1, 4)
        D = L[_tile(i, i) : _tile(i, i + 1)]
        for lane in range(_LANES):
            for p in range(3, -1, -1):
                total = y[lane + p * _LANES]
                for q in range(p + 1, 4):
                    total -= D[lane + (4 * q + p) * _LANES] * y[lane + q * _LANES]
                y[lane + p * _LANES] = total * D[lane + 5 * p * _LANES]


@numba.njit(forceinline=True, **_CHAINED)
def _subtract(y: Any, A: Any, x: Any, row: int, column: int) -> None:
    """y − A x in place of y for steps (4, 1) between A's rows and columns, y − Aᵀ x for (1, 4)."""
    for lane in range(_LANES):
        for p in range(4):
            total = y[lane + p * _LANES]
            for q in range(4):
                total -= A[lane + (row * p + column * q) * _LANES] * x[lane + q * _LANES]
            y[lane + p * _LANES] = total
