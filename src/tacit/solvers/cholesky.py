"""Solve G x = b for many b with one factorisation of G."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace, is_numpy_namespace

__all__ = ["cholesky"]


def cholesky(G: Any) -> Callable[[Any], Any]:
    """The map B ↦ G⁻¹B of a symmetric positive definite G, at two triangular solves a call.

    The array API has no triangular solve, so each library's own is called here.
    """
    xp = array_namespace(G)
    factor = xp.linalg.cholesky(G)
    if is_numpy_namespace(xp):
        from scipy.linalg import cho_solve

        return lambda B: cho_solve((factor, True), B)
    import torch

    return lambda B: torch.cholesky_solve(B, factor)
