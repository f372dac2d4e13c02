"""All rows at once, for methods whose steps are no sums over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.backends import Sparse
from tacit.backends.block import Block
from tacit.estimators import Problem

__all__ = ["rows_in_memory"]


def rows_in_memory(problem: Problem) -> tuple[sp.csr_array, np.ndarray]:
    """X in float64 and CSR, and what its rows say as True and False, n_samples × n_labels."""
    parts = problem.blocks.sum(_listed)
    X = sp.vstack([X for X, _ in parts], format="csr", dtype=np.float64)
    return X, np.concatenate([said for _, said in parts])


def _listed(b: Block) -> list[tuple[Any, np.ndarray]]:
    """A list of one: lists add to longer ones."""
    X = b.X.scipy() if isinstance(b.X, Sparse) else b.X
    said = b.backend.dense(b.Y, slice(0, b.Y.shape[0]), bool)
    return [(sp.csr_array(X), said)]
