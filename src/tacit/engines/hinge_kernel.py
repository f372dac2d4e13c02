"""The Numba kernel behind `tacit.engines.hinge`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(parallel=True, cache=True, nogil=True)
def descend(
    X: Any, Y: Any, omega: Any, reg: float, tol: float, epochs: int, Z: Any, J: Any, gap: Any
) -> None:
    """Z[j] is the w of label j, J[j] its objective, and gap[j] how far from the least that may be.

    X, Y and Ω are (indptr, indices, …), the last two by label; an empty Ω is all entries.
    """
    norms = _squared_norms(X)
    for j in numba.prange(Z.shape[0]):
        y = np.full(norms.shape[0], -1.0)
        for e in range(Y[0][j], Y[0][j + 1]):
            y[Y[1][e]] = 1.0
        if omega[0].shape[0] == 0:
            rows = np.arange(norms.shape[0])
        else:
            rows = omega[1][omega[0][j] : omega[0][j + 1]].astype(np.int64)
        J[j], gap[j] = _one_label(X, y, rows, norms, reg, tol, epochs, j, Z[j])


@numba.njit(nogil=True)
def _one_label(
    X: Any,
    y: Any,
    rows: Any,
    norms: Any,
    reg: float,
    tol: float,
    epochs: int,
    seed: int,
    w: Any,
) -> tuple[float, float]:
    """Descend until the gap is at most tol J; `rows` are reordered."""
    alpha = np.zeros(y.shape[0])
    state = np.uint64(seed + 1)
    active, bound, accuracy = rows.shape[0], np.inf, 0.1
    w[:] = 0
    for _ in range(epochs):
        high, low, k = -np.inf, np.inf, 0
        for at in range(active - 1, 0, -1):  # a new order of the rows that are active
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            other = int((state >> np.uint64(33)) % np.uint64(at + 1))
            rows[at], rows[other] = rows[other], rows[at]
        while k < active:
            i = rows[k]
            slope = y[i] * _product(X, i, w) - 1 + alpha[i]
            if alpha[i] == 0 and slope > bound:  # it will stay at 0, most likely
                active -= 1
                rows[k], rows[active] = rows[active], rows[k]
                continue
            k += 1
            held = slope if alpha[i] > 0 else min(slope, 0.0)
            high, low = max(high, held), min(low, held)
            if held != 0:
                before = alpha[i]
                alpha[i] = max(before - slope / (norms[i] / reg + 1), 0.0)
                _add(X, i, (alpha[i] - before) * y[i] / reg, w)
        if high - low > accuracy:
            bound = high if high > 0 else np.inf
        elif active < rows.shape[0]:  # look at all of them again
            active, bound = rows.shape[0], np.inf
        else:
            value, gap = _judged(X, y, rows, alpha, reg, w)
            if gap <= tol * value:
                return value, gap
            accuracy, bound = accuracy / 4, np.inf
    return _judged(X, y, rows, alpha, reg, w)


@numba.njit(nogil=True)
def _judged(X: Any, y: Any, rows: Any, alpha: Any, reg: float, w: Any) -> tuple[float, float]:
    """J(w), and how much it is above the value of the dual."""
    square = 0.5 * reg * np.dot(w, w)
    value, dual = square, -square
    for i in rows:
        short = max(1 - y[i] * _product(X, i, w), 0.0)
        value += 0.5 * short * short
        dual += alpha[i] - 0.5 * alpha[i] * alpha[i]
    return value, value - dual


@numba.njit(nogil=True)
def _squared_norms(X: Any) -> Any:
    norms = np.zeros(X[0].shape[0] - 1)
    for i in range(norms.shape[0]):
        for e in range(X[0][i], X[0][i + 1]):
            norms[i] += float(X[2][e]) ** 2
    return norms


@numba.njit(nogil=True, inline="always")
def _product(X: Any, i: int, w: Any) -> float:
    total = 0.0
    for e in range(X[0][i], X[0][i + 1]):
        total += X[2][e] * w[X[1][e]]
    return total


@numba.njit(nogil=True, inline="always")
def _add(X: Any, i: int, factor: float, w: Any) -> None:
    for e in range(X[0][i], X[0][i + 1]):
        w[X[1][e]] += factor * X[2][e]
