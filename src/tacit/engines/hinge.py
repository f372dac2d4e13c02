"""Squared hinge, one linear model a label, by dual coordinate descent: LIBLINEAR's algorithm.

    J(w) = Σ_i ½ max(0, 1 - y_i wᵀx_i)² + ½ λ ‖w‖²,    y_i = ±1                                 (1)

has the dual, with w = Σ_i α_i y_i x_i / λ at every step,

    min over α ≥ 0 of    ½ λ ‖w‖² + ½ ‖α‖² - Σ_i α_i.                                          (2)

A step solves (2) for one α_i and moves w along x_i, at the cost of one row; rows come in random
order, and those whose α_i will stay 0, most likely, are left out until the others are solved. A
label is finished once J is within `tol` J of minus (2), and so of its minimum.

**Cost**: O(nnz(X)) an epoch and label, and some ten to a hundred epochs; more for a small λ, where
Newton's method goes on from here. That takes fewer products, but each with the vectors of all
features; this one pays where rows are sparse. It needs all of them at hand, and goes from row to
row, so it is for rows in memory and the CPU.

Reference: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan. A dual coordinate
descent method for large-scale linear SVM. ICML 2008.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from tacit.backends import Sparse
from tacit.blocks import Blocks, MemoryBlocks

__all__ = ["hinge_weights", "suits_dual_descent"]

_EPOCHS = 200  # a label that is not finished then is one for Newton's method
_ROUNDING = 1e-14  # a gap is a difference of sums


def suits_dual_descent(blocks: Blocks) -> TypeGuard[MemoryBlocks]:
    """Whether these placed rows are sparse and in memory, and the arithmetic NumPy's."""
    return isinstance(blocks, MemoryBlocks) and all(
        isinstance(b.X, Sparse) and isinstance(b.X.data, np.ndarray) for b in blocks.parts
    )


def hinge_weights(blocks: MemoryBlocks, reg: float, tol: float) -> tuple[np.ndarray, float, bool]:
    """The w of each label in a column, the sum of their J, and whether all are finished."""
    from tacit.engines.hinge_kernel import descend

    X, Y, omega = (_whole([getattr(b, name) for b in blocks.parts]) for name in ("X", "Y", "omega"))
    nothing = np.empty(0, np.int64)
    seen = (nothing, nothing) if omega is None else _by_label(omega)
    Z, (J, gap) = np.empty((Y.shape[1], X.shape[1])), np.empty((2, Y.shape[1]))
    rows = X.indptr, X.indices, X.data
    descend(rows, _by_label(Y), seen, reg, max(tol, _ROUNDING), _EPOCHS, Z, J, gap)
    finished = bool((gap <= max(tol, _ROUNDING) * J).all())
    return np.ascontiguousarray(Z.T, dtype=X.dtype), float(J.sum()), finished


def _whole(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    found = [part.scipy() for part in parts]
    return found[0] if len(found) == 1 else sp.vstack(found, format="csr")


def _by_label(pattern: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    columns = pattern.tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
