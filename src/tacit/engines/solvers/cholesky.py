"""Solve G x = b for many b with one factorisation of G."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace, is_numpy_namespace

__all__ = ["cholesky", "inverse", "inverse_root"]


def cholesky(G: Any) -> Callable[[Any], Any]:
    """The map B ↦ G⁻¹B of a symmetric positive definite G, at two triangular solves a call.

    The array API has no triangular solve, so each library's own is called here.
    """
    if is_numpy_namespace(array_namespace(G)):
        from scipy.linalg import cho_factor, cho_solve

        # SciPy's, not NumPy's, which is three times slower at 5,000 rows; G = Gᵀ, and Gᵀ is in
        # the order that LAPACK wants.
        factor = cho_factor(G.T, lower=True)
        return lambda B: cho_solve(factor, B)
    import torch

    factor = torch.linalg.cholesky(G)
    return lambda B: torch.cholesky_solve(B, factor)


def inverse(G: Any) -> Any:
    """G⁻¹ of a symmetric positive definite G.

    For a G that stays while right-hand sides come one small lot after the other: a product runs
    at several times the rate of two triangular solves, and this costs as much as three factors.
    """
    if is_numpy_namespace(array_namespace(G)):
        import numpy as np
        from scipy.linalg import cho_factor, get_lapack_funcs

        factor, _ = cho_factor(G.T, lower=True)
        (potri,) = get_lapack_funcs(("potri",), (factor,))
        lower, _ = potri(factor, lower=True)
        lower = np.tril(lower)
        return lower + np.tril(lower, -1).T
    import torch

    return torch.cholesky_inverse(torch.linalg.cholesky(G))


def inverse_root(G: Any) -> Any:
    """An F with F Fᵀ = G⁻¹, of a symmetric positive definite G: its Cholesky factor, inverted."""
    xp = array_namespace(G)
    if is_numpy_namespace(xp):
        from scipy.linalg import cholesky as factored
        from scipy.linalg import get_lapack_funcs

        factor = factored(G.T, lower=True)
        (trtri,) = get_lapack_funcs(("trtri",), (factor,))
        inverted, _ = trtri(factor, lower=True)  # a third of the triangular solves of I
        return inverted.T
    import torch

    eye = xp.eye(G.shape[0], dtype=G.dtype, device=G.device)
    return torch.linalg.solve_triangular(torch.linalg.cholesky(G), eye, upper=False).T
