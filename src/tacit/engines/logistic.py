"""Many small logistic regressions, one a label, each on sparse rows of its own, in Numba.

For each label, with rows x_i of which it knows some, a constant feature among them, y_i = ±1, what
is thought of each entry before, f_i, and what it counts, v_i,

    ½‖w‖² + C Σ_i v_i log(1 + exp(-y_i (f_i + wᵀx_i)))  least,

by Newton's method: conjugate gradients for each step, halved until the objective falls. LIBLINEAR
solves the same to the same accuracy, but through scikit-learn a problem costs milliseconds before
it begins, and there are tens of thousands of a millisecond each. Only features that the label's
rows have get a weight: the problem is renumbered to them.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["regressions"]

_NEWTON, _CG, _HALVINGS = 30, 50, 20


@numba.njit(nogil=True, cache=True, fastmath=True)
def regressions(  # type: ignore[no-untyped-def]
    indptr, indices, data, extra, before, weight, row, start, yes, C, tol, small, n_features
):
    """Weights of the features beyond `small`, and of `extra` and the constant, for some labels.

    Label l knows the rows `row[start[l]:start[l + 1]]` of a CSR matrix, each with one more feature
    `extra` of its own, f_i in `before`, v_i in `weight` and its answer `yes`. Returned are
    features, weights and pointer in CSR, and (2, labels): those of `extra` and of the constant.
    """
    n_labels = len(start) - 1
    place = np.full(n_features, -1, np.int32)
    most = 0
    for label in range(n_labels):
        most += min(_stored(indptr, row[start[label] : start[label + 1]]), n_features)
    features, weights = np.empty(most, np.int32), np.empty(most, np.float64)
    pointer, trust = np.zeros(n_labels + 1, np.int64), np.empty((2, n_labels), np.float64)
    filled = 0
    for label in range(n_labels):
        first, last = start[label], start[label + 1]
        n = last - first
        nnz = _stored(indptr, row[first:last])
        own = np.empty(min(nnz, n_features), np.int32)
        column, value = np.empty(nnz, np.int32), np.empty(nnz)
        at = np.zeros(n + 1, np.int64)
        width, k = 0, 0
        for i in range(n):
            r = row[first + i]
            for j in range(indptr[r], indptr[r + 1]):
                f = indices[j]
                if place[f] < 0:
                    place[f] = width
                    own[width] = f
                    width += 1
                column[k], value[k] = place[f], data[j]
                k += 1
            at[i + 1] = k
        cost = C * weight[first:last]
        known = extra[first:last], before[first:last], yes[first:last]
        w = _solved(at, column, value, *known, cost, tol, width)
        for f in range(width):
            place[own[f]] = -1
            if abs(w[f]) > small:
                features[filled], weights[filled] = own[f], w[f]
                filled += 1
        pointer[label + 1] = filled
        trust[0, label], trust[1, label] = w[width], w[width + 1]
    return features[:filled].copy(), weights[:filled].copy(), pointer, trust


@numba.njit(nogil=True, cache=True)
def _stored(indptr, row):  # type: ignore[no-untyped-def]
    total = 0
    for r in row:
        total += indptr[r + 1] - indptr[r]
    return total


@numba.njit(nogil=True, cache=True, fastmath=True)
def _solved(at, column, value, extra, before, yes, cost, tol, width):  # type: ignore[no-untyped-def]
    n = len(extra)
    w, step, g = np.zeros(width + 2), np.empty(width + 2), np.empty(width + 2)
    z, moved, slope, curvature = before.copy(), np.empty(n), np.empty(n), np.empty(n)
    r, p, Hp = np.empty(width + 2), np.empty(width + 2), np.empty(width + 2)
    objective, first = _log_loss(z, yes, cost), -1.0
    rarer = min(np.sum(yes), n - np.sum(yes))
    tol *= max(rarer, 1) / n  # as LIBLINEAR: few answers of one kind move the gradient little
    for _ in range(_NEWTON):
        for i in range(n):
            s = 1 / (1 + np.exp(-z[i]))
            slope[i] = cost[i] * (s - 1 if yes[i] else s)
            curvature[i] = cost[i] * max(s * (1 - s), 1e-12)
        _adjoint(at, column, value, extra, slope, g)
        g += w
        size = np.sqrt(g @ g)
        first = size if first < 0 else first
        if size <= tol * first:
            break
        # Conjugate gradients for (I + AᵀDA) step = -g.
        step[:] = 0
        r[:] = -g
        p[:] = r
        rr = r @ r
        for _ in range(_CG):
            if rr <= 0.01 * size * size:
                break
            _product(at, column, value, extra, p, moved)
            moved *= curvature
            _adjoint(at, column, value, extra, moved, Hp)
            Hp += p
            alpha = rr / (p @ Hp)
            step += alpha * p
            r -= alpha * Hp
            new = r @ r
            p *= new / rr
            p += r
            rr = new
        _product(at, column, value, extra, step, moved)
        length, fell = 1.0, g @ step
        for _ in range(_HALVINGS):
            found = 0.5 * ((w + length * step) @ (w + length * step))
            found += _log_loss(z + length * moved, yes, cost)
            if found <= objective + 1e-4 * length * fell:
                break
            length *= 0.5
        w += length * step
        z += length * moved
        objective = found
    return w


@numba.njit(nogil=True, cache=True, fastmath=True)
def _log_loss(z, yes, cost):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(z)):
        f = -z[i] if yes[i] else z[i]
        total += cost[i] * (max(f, 0.0) + np.log1p(np.exp(-abs(f))))
    return total


@numba.njit(nogil=True, cache=True, fastmath=True)
def _product(at, column, value, extra, w, out):  # type: ignore[no-untyped-def]
    a, b = w[len(w) - 2], w[len(w) - 1]
    for i in range(len(out)):
        total = a * extra[i] + b
        for e in range(at[i], at[i + 1]):
            total += value[e] * w[column[e]]
        out[i] = total


@numba.njit(nogil=True, cache=True, fastmath=True)
def _adjoint(at, column, value, extra, u, out):  # type: ignore[no-untyped-def]
    out[:] = 0
    a, b = 0.0, 0.0
    for i in range(len(u)):
        a += extra[i] * u[i]
        b += u[i]
        for e in range(at[i], at[i + 1]):
            out[column[e]] += value[e] * u[i]
    out[len(out) - 2], out[len(out) - 1] = a, b
