"""Each feature by itself: sparse weights, where those of ridge regression have no room.

Ridge regression has W = (XᵀX + λI)⁻¹ XᵀY, a number for every feature and label. With the diagonal
in place of XᵀX,

    w_jl = Σ_i x_ij y_il / (Σ_i x_ij² + λ) · (n_l / n̄)^(-p),                                     (1)

is 0 wherever a feature and a label never met, and takes one pass. n_l is how often label l was
said, n̄ the mean of all; p > 0 takes from frequent labels what they have from meeting every feature.
Features that come together are counted each: (1) is not to rank labels, but to draw up the
shortlists that a second look (`tacit.methods.tacit.second_look`) puts in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tacit.backends.block import Block

__all__ = ["RARITIES", "Tally"]

RARITIES = (0.25, 0.0, 0.5)  # p


@dataclass(frozen=True)
class Tally:
    """The sums of (1) over some rows: XᵀY, Σ x_j² and n_l.

    `blocks.sum(Tally.of)` is that of all rows, and tallies of folds add up to it.
    """

    xy: sp.csr_array
    xx: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, block: Block) -> Tally:
        X, Y = (M.scipy().astype(np.float64) for M in (block.X, block.Y))
        X.data[X.indices == X.shape[1] - 1] = 0  # the constant feature, which meets every label
        X.eliminate_zeros()
        return cls(sp.csr_array(X.T @ Y), (X * X).sum(axis=0), Y.sum(axis=0))

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.xy + other.xy, self.xx + other.xx, self.y + other.y)

    def weights(self, reg: float, power: float, dtype: np.dtype) -> sp.csr_array:
        """(1), in CSR with a row for each feature, the constant one's empty."""
        mean = self.y.sum() / len(self.y)
        rarity = (np.maximum(self.y, 1) / max(mean, 1)) ** -power
        W = sp.csr_array(self.xy.multiply(1 / (self.xx + reg)[:, None]).multiply(rarity))
        W.sort_indices()
        return W.astype(dtype)
