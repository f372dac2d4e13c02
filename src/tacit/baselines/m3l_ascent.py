"""The Numba kernel behind `m3l`."""

from __future__ import annotations

from typing import Any

import numba


@numba.njit(cache=True, nogil=True)
def ascend(
    indptr: Any,
    indices: Any,
    data: Any,
    said: Any,
    R: Any,
    reg: float,
    order: Any,
    alpha: Any,
    Z: Any,
    z: Any,
    moved: Any,
) -> None:
    """A pass over the rows: each α_il in turn to its best, and Z of (3) with it, in place.

    z and moved are room for one number a label.
    """
    n_labels = R.shape[0]
    for i in order:
        square = 0.0
        z[:], moved[:] = 0.0, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            square += data[e] * data[e]
            for label in range(n_labels):
                z[label] += data[e] * Z[indices[e], label]
        if square == 0:  # no feature, so that its hinges are what they are
            alpha[i] = 1.0
            continue
        any_moved = False
        for label in range(n_labels):
            y = 1.0 if said[i, label] else -1.0
            gradient = 1 - 2 * y * (z[label] + square * moved[label])
            old = alpha[i, label]
            curvature = 4 * R[label, label] * square / reg
            new = min(max(old + gradient / curvature, 0.0), 1.0)
            if new != old:
                any_moved = True
                alpha[i, label] = new
                for other in range(n_labels):
                    moved[other] += 2 / reg * y * (new - old) * R[label, other]
        if any_moved:
            for e in range(indptr[i], indptr[i + 1]):
                for label in range(n_labels):
                    Z[indices[e], label] += data[e] * moved[label]
