"""The k largest eigenvalues of a symmetric matrix, and their eigenvectors, to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

__all__ = ["leading_eigenpairs"]

_DENSE = 2048  # rows up to which LAPACK takes a second or two, whatever k is


def leading_eigenpairs(T: Any, k: int) -> tuple[Any, Any]:
    """(w, V) with T V = V diag(w), largest w first.

    T is an array, or for many rows a SciPy LinearOperator. LAPACK finds the whole spectrum where T
    is small or much of it is wanted; otherwise Lanczos' method finds the part (ARPACK), only
    multiplying by T. PyTorch has no such thing, and finds all of it.
    """
    n = T.shape[0]
    if isinstance(T, LinearOperator) or is_numpy_namespace(array_namespace(T)):
        operator = isinstance(T, LinearOperator)
        if 8 * k < n and (operator or n > _DENSE):
            start = np.random.default_rng(0).standard_normal(n)  # the same model on every run
            w, V = eigsh(T, k, which="LA", v0=start, ncv=min(n, 2 * k + 20))
        else:
            # Divide and conquer finds all of them, in the time in which LAPACK finds some, and in
            # less where many are alike, as the eigenvalues of FaIE are.
            # (SciPy's, since NumPy's takes float64 for float32.)
            w, V = eigh(T @ np.eye(n) if operator else T, driver="evd", check_finite=False)
            w, V = w[n - k :], V[:, n - k :]
        return w[::-1], V[:, ::-1]
    import torch

    w, V = torch.linalg.eigh(T)
    return torch.flip(w, (0,))[:k], torch.flip(V, (1,))[:, :k]
