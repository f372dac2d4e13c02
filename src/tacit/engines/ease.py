"""Links between labels: how the labels that were said of a row predict each other label.

    B = argmin ‖Y - YB‖² + λ‖B‖²  with diag B = 0,    B_ij = -P_ij / P_jj,  P = (YᵀY + λI)⁻¹     (1)

(EASE, Steck 2019): a ridge regression of each label on all others, from one inverse.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from tacit.engines.solvers import inverse

__all__ = ["ease"]


def ease(YtY: Any, reg: float) -> Any:
    """The B of (1)."""
    xp = array_namespace(YtY)
    P = inverse(YtY + reg * xp.eye(YtY.shape[0], dtype=YtY.dtype, device=YtY.device))
    B = -P / xp.linalg.diagonal(P)
    diagonal = xp.arange(B.shape[0], device=B.device)
    B[diagonal, diagonal] = 0.0
    return B
