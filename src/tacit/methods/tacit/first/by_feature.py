"""Each feature by itself: sparse weights, where those of ridge regression have no room.

Ridge regression has W = (XᵀX + λI)⁻¹ XᵀY, a number for every feature and label. With the diagonal
in place of XᵀX,

    w_jl = Σ_i x_ij y_il / (Σ_i x_ij² + λ) · (n_l / n̄)^(-p),                                     (1)

is 0 wherever a feature and a label never met, and takes one pass. n_l is how often label l was
said, n̄ the mean of all; p > 0 takes from frequent labels what they have from meeting every feature.
Features that come together are counted each: (1) is not to rank labels, but to draw up the
shortlists that a second look (`tacit.methods.tacit.second_look`) puts in order. For that the few
hundred labels that a feature weighs most for are enough: of subject headings for 570,000 titles, a
hundredth fewer of those that are true then stand on the shortlists, in a fifth of the time.

**Cost**: a pass over the rows, and a few thousand additions a row for its best labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.labels import TopK
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first.products import FOLDS
from tacit.methods.tacit.first.ridge import Unseen
from tacit.methods.tacit.judge import RANKS, gains
from tacit.methods.tacit.limits import Limits
from tacit.metrics.top import contains
from tacit.models.explanation import Contributions
from tacit.models.model import Model, check_shape
from tacit.models.sparse import sparse_of

__all__ = ["RARITIES", "ByThemselves", "SparseWeights", "Tally"]

RARITIES = (0.25, 0.0)  # p
REGS = (10.0, 30.0, 3.0)
_KEPT = 300  # labels of a feature


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
        held = list[Unseen]()
        for k in range(FOLDS):
            held.append((k, of([tally for j, tally in enumerate(tallies) if j != k])))
        return of(tallies), held

    @classmethod
    def choose(
        cls, rows: SomeRows, judged: Blocks, weight: float, limits: Limits
    ) -> tuple[float, ByThemselves]:
        """λ and p by one fold of five."""
        dealt = Dealt.of(rows)
        tally = dealt.rest(0, 5).blocks.sum(Tally.of)
        fold = dealt.fold(0, 5, limits.choosing_rows)
        tried = []
        for reg in REGS:
            for p in RARITIES:
                found = fold.blocks.sum(_gained, tally.weights(reg, p, rows.dtype))
                tried.append((found / max(fold.n_samples, 1), reg, p))
        gain, reg, power = max(tried)
        return gain, cls(reg, power)

    def refined(self, rows: SomeRows, judged: Blocks, limits: Limits) -> ByThemselves:
        """Itself: all was chosen at once."""
        return self


def _gained(b: Block, weights: SparseWeights) -> float:
    top = weights.best(b, min(RANKS, weights.n_labels), None)
    return float(gains(contains(b.Y.scipy(), top.indices)).sum())


@dataclass(frozen=True, eq=False)
class SparseWeights(Model):
    """Scores XW of sparse weights, for labels and features that never met: none.

    Rows are scored on the host, whatever the device (`tacit.engines.sparse_best`).

    Attributes
    ----------
    W : csr_array of shape (n_features, n_labels)
        The weights.
    order : ndarray of shape (n_labels,)
        All labels, the most frequent first, for rows with fewer scored labels than are asked for.
    """

    W: sp.csr_array
    order: np.ndarray

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
        scores = sp.csr_array(_sparse(block) @ self.W).toarray()
        return block.backend.asarray(scores), None

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        own = sp.csr_array(self.W[:, labels].T)
        amounts = sp.csr_array(_sparse(block).multiply(own), dtype=np.float64)
        return Contributions({"feature": amounts}, np.zeros(len(labels)))

    def best(self, block: Block, m: int, skip: Any) -> TopK:
        """The best m labels of the rows, without those of the pattern `skip`."""
        from tacit.engines.sparse_best import best  # Numba, which others can do without

        X = _sparse(block)
        none = sp.csr_array((X.shape[0], self.n_labels), dtype=bool)
        return best(X, self.W, m, self.order, none if skip is None else skip.scipy())

    def entries(self, block: Block, row: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Some scores."""
        from tacit.engines.sparse_best import entries

        return entries(_sparse(block), self.W, row, label)

    def probability(self, scores: Any) -> Any:
        return np.clip(scores, 0.0, 1.0)

    def arrays(self) -> dict[str, np.ndarray | None]:
        W = self.W
        arrays = {"W_values": W.data, "W_labels": W.indices, "W_pointer": W.indptr}
        return arrays | {"order": self.order.astype(np.int32)}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        W = sparse_of("W_values", "W_labels", "W_pointer", (n_weights, n_labels), arrays)
        order = check_shape("order", arrays.get("order"), n_labels, integers=True)
        if not np.array_equal(np.sort(order), np.arange(n_labels)):
            raise ValueError("its order of labels is not one of all labels")
        return cls(W, order)


def _sparse(block: Block) -> sp.csr_array:
    if isinstance(block.X, Sparse):
        return block.X.scipy()
    return sp.csr_array(block.backend.to_numpy(block.X))


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

    def weights(self, reg: float, power: float, dtype: np.dtype) -> SparseWeights:
        """(1), in CSR with a row for each feature, the constant one's empty."""
        mean = self.y.sum() / len(self.y)
        rarity = (np.maximum(self.y, 1) / max(mean, 1)) ** -power
        W = sp.csr_array(self.xy.multiply(1 / (self.xx + reg)[:, None]).multiply(rarity))
        for j in np.flatnonzero(np.diff(W.indptr) > _KEPT):
            own = W.data[W.indptr[j] : W.indptr[j + 1]]
            own[own < np.partition(own, -_KEPT)[-_KEPT]] = 0
        W.eliminate_zeros()
        W.sort_indices()
        return SparseWeights(W.astype(dtype), np.argsort(-self.y, kind="stable"))
