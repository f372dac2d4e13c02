"""The low-rank model Z = X W Hᵀ, and the two linear maps one gets by fixing a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block

__all__ = ["FixedH", "FixedW", "LowRank"]


@dataclass(frozen=True)
class LowRank:
    """W of shape (n_features, rank) and H of shape (n_labels, rank); H None is the identity.

    With an intercept the last row of W belongs to the constant feature. W may be sparse, in CSR.
    """

    W: np.ndarray | sp.csr_array
    H: np.ndarray | None

    def codes(self, block: Block) -> Array:
        """The latent code X W of each row."""
        place = block.backend.sparse if sp.issparse(self.W) else block.backend.kept
        return block.project(place(self.W))

    def decoder(self, backend: Any) -> Array | None:
        """H where the codes are; scores are codes · Hᵀ, or the codes themselves without H."""
        return None if self.H is None else backend.kept(self.H)


class FixedH:
    """W ↦ P_Ω(X W Hᵀ), whose adjoint is G ↦ Xᵀ (G H)."""

    def __init__(self, block: Block, H: Array):
        self.block, self.H = block, H

    def forward(self, W: Array) -> Array:
        return self.block.backend.sddmm(self.block.omega, self.block.project(W), self.H)

    def adjoint(self, g: Array) -> Array:
        return self.block.project_t(self.block.backend.spmm(self.block.omega, self.H, g))


class FixedW:
    """H ↦ P_Ω(A Hᵀ) with A = X W computed once; its adjoint is G ↦ Gᵀ A."""

    def __init__(self, block: Block, W: Array):
        self.block, self.A = block, block.project(W)

    def forward(self, H: Array) -> Array:
        return self.block.backend.sddmm(self.block.omega, self.A, H)

    def adjoint(self, g: Array) -> Array:
        return self.block.backend.spmm_t(self.block.omega, self.A, g)

    def totals(self, e: Array) -> Array:
        """A sum a label, of shape (n_labels, 1): each row of H is a problem of its own."""
        omega, xp = self.block.omega, array_namespace(e)
        ones = xp.ones((omega.shape[0], 1), dtype=e.dtype, device=e.device)
        return self.block.backend.spmm_t(omega, ones, e)
