"""Leading eigenvectors of a symmetric positive semidefinite A, given only V ↦ A V."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

__all__ = ["leading_subspace"]


def leading_subspace(apply: Callable[[Any], Any], V: Any, *, n_iter: int) -> Any:
    """Orthonormal columns close to the leading eigenvectors of A, best first.

    Subspace iteration from V, then Rayleigh–Ritz inside the subspace (Halko, Martinsson and Tropp
    2011). Start with a few more columns than are wanted: the last ones converge last.
    """
    xp = array_namespace(V)
    for _ in range(n_iter):
        V, _ = xp.linalg.qr(V)
        V = apply(V)
    V, _ = xp.linalg.qr(V)
    _, R = xp.linalg.eigh(V.T @ apply(V))
    return xp.flip(V @ R, axis=1)
