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

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first.products import FOLDS, mean_gain
from tacit.methods.tacit.first.ridge import Unseen
from tacit.methods.tacit.limits import Limits
from tacit.models.model import Model
from tacit.models.sparse import sparse_of

__all__ = ["RARITIES", "ByThemselves", "SparseWeights", "Tally"]

RARITIES = (0.25, 0.0, 0.5)  # p
REGS = (1.0, 10.0)


@dataclass(frozen=True)
class ByThemselves:
    """(1) with its λ and p chosen."""

    reg: float
    power: float

    name: ClassVar[str] = "features by themselves"
    rough: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"each feature by itself, with λ = {self.reg:g} and p = {self.power:g}"

    def fit(self, rows: SomeRows, limits: Limits) -> tuple[SparseWeights, list[Unseen]]:
        """The model of these scaled rows, and those of all but each fold of them."""
        dealt = Dealt.of(rows)
        tallies = [dealt.fold(k, FOLDS, rows.n_samples).blocks.sum(Tally.of) for k in range(FOLDS)]
        of = lambda some: sum(some[1:], some[0]).weights(self.reg, self.power, rows.dtype)
        place, held = rows.backend.sparse, list[Unseen]()
        for k in range(FOLDS):
            held.append((k, SparseProduct(place(of([t for j, t in enumerate(tallies) if j != k])))))
        return SparseWeights(of(tallies)), held

    @classmethod
    def choose(cls, rows: SomeRows, limits: Limits) -> tuple[float, ByThemselves]:
        """λ and p by one fold of five."""
        dealt = Dealt.of(rows)
        tally = dealt.rest(0, 5).blocks.sum(Tally.of)
        judged, place = dealt.fold(0, 5, limits.choosing_rows).blocks, rows.backend.sparse
        tried = [
            (mean_gain(judged, SparseProduct(place(tally.weights(reg, p, rows.dtype)))), reg, p)
            for reg in REGS
            for p in RARITIES
        ]
        gain, reg, power = max(tried)
        return gain, cls(reg, power)


@dataclass(frozen=True)
class SparseProduct:
    """The scores XW of sparse weights."""

    W: Sparse

    def scores(self, b: Block) -> Array:
        return times(b, self.W)


def times(b: Block, W: Sparse) -> Array:
    """XW; of dense rows through WᵀXᵀ, since a backend has sparse matrices on the left."""
    return b.project(W) if isinstance(b.X, Sparse) else b.backend.spmm_t(W, b.X.T).T


@dataclass(frozen=True, eq=False)
class SparseWeights(Model):
    """Scores XW of sparse weights, for labels and features that never met: none."""

    W: sp.csr_array
    _placed: Any = field(default=None, init=False, repr=False)  # kept for the next rows

    H = None

    @property
    def n_labels(self) -> int:
        return int(self.W.shape[1])

    @property
    def n_codes(self) -> int:
        return self.n_labels

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.W.dtype)

    def factors(self, block: Block) -> tuple[Array, None]:
        if self._placed is None or self._placed.backend is not block.backend:
            object.__setattr__(self, "_placed", block.backend.sparse(self.W))
        return times(block, self._placed), None

    def probability(self, scores: Any) -> Any:
        return np.clip(scores, 0.0, 1.0)

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W_values": self.W.data, "W_labels": self.W.indices, "W_pointer": self.W.indptr}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        return cls(sparse_of("W_values", "W_labels", "W_pointer", (n_weights, n_labels), arrays))


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
        X = block.X.scipy() if isinstance(block.X, Sparse) else sp.csr_array(block.X)
        X, Y = X.astype(np.float64), block.Y.scipy().astype(np.float64)
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
