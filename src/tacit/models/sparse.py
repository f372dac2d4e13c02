"""Sparse matrices of a model file: SciPy trusts the arrays it is given, so they are checked."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tacit.models.model import check_shape

__all__ = ["sparse_of"]


def sparse_of(
    values: str, indices: str, pointer: str, shape: tuple[int, int], arrays: dict[str, np.ndarray]
) -> sp.csr_array:
    """A sparse matrix; SciPy trusts its arrays, and so they are checked."""
    own = (
        check_shape(values, arrays.get(values), None) if arrays[values].size else arrays[values],
        arrays[indices],
        check_shape(pointer, arrays.get(pointer), shape[0] + 1, integers=True),
    )
    if own[0].ndim != 1 or own[0].dtype.kind != "f" or own[1].dtype.kind != "i":
        raise ValueError(f"its {values} and {indices} are of {own[0].dtype} and {own[1].dtype}")
    found = sp.csr_array(own, shape=shape)
    found.check_format(full_check=True)
    return found
