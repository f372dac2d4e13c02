"""The rows of every level: dealt into batches that each belong to one fold (figure 4 of the paper).

The same seed deals the same batches in every pass, wherever the rows live, so a batch is known by
its number t and belongs to fold t mod m. What a level predicts of a batch stands beside its sparse
features in a form of its own, [X | P]: dense, or the t largest probabilities of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block, label_counts
from tacit.basics.numerics import sigmoid
from tacit.blocks import MemoryBlocks
from tacit.estimators import Problem

__all__ = ["FoldedBatches", "Predictions", "predictions"]

Predictions = dict[int, Array | Sparse]
"""What a level predicts of each batch, by its number."""


@dataclass(frozen=True)
class FoldedBatches:
    """Rows in batches. Those of data in memory are placed once; others anew in every pass.

    Attributes
    ----------
    dealt : function without arguments
        The batches, always the same ones.
    size, n_folds : int
        Rows of a batch, at most, and folds.
    below : tuple of Predictions
        What stands beside the features: the predictions of each level below.
    """

    dealt: Callable[[], Iterable[Block]]
    size: int
    n_folds: int
    below: tuple[Predictions, ...] = ()

    @classmethod
    def of(cls, problem: Problem, size: int, seed: int, n_folds: int) -> FoldedBatches:
        """All rows, as this seed deals them."""
        dealt = lambda: problem.batches(size, seed)
        if not isinstance(problem.blocks, MemoryBlocks):
            return cls(dealt, size, n_folds)
        kept = list(dealt())
        return cls(lambda: kept, size, n_folds)

    def batches(
        self, *, without: int | None = None, only: int | None = None
    ) -> Iterator[tuple[int, Block]]:
        """The batches with their numbers, without those of a fold or only those of one."""
        for t, b in enumerate(self.dealt()):
            if t % self.n_folds != without and only in (None, t % self.n_folds):
                yield t, replace(b, more=tuple(level[t] for level in self.below))

    @cached_property
    def with_noes(self) -> bool:
        """Whether anybody said no to anything."""
        return any(b.noes is not None for _, b in self.batches())

    def for_newton(self, *, without: int | None = None) -> Any:
        """The batches as blocks for `newton_pass`, with y = -1 where somebody said no."""
        blocks = MemoryBlocks(tuple(b for _, b in self.batches(without=without)))
        return _WithNoes(blocks) if self.with_noes else blocks

    def beside(self, predicted: Predictions) -> FoldedBatches:
        """The same, but the features of batch t are [those so far | predicted[t]]."""
        return replace(self, below=(*self.below, predicted))

    def said(self, *, without: int | None = None) -> tuple[np.ndarray, int]:
        """How often each label was said, and of how many rows."""
        counts, n = 0.0, 0
        for _, b in self.batches(without=without):
            counts, n = counts + b.backend.to_numpy(label_counts(b)), n + b.Y.shape[0]
        return np.asarray(counts), n


@dataclass(frozen=True)
class _WithNoes:
    """Blocks whose maps have y = -1 where somebody said no; `newton_pass` does nothing but map."""

    blocks: MemoryBlocks

    def map(self, make: Callable, labels: slice) -> MemoryBlocks:
        return self.blocks.map(_with_noes, make, labels)


def _with_noes(b: Block, make: Callable, labels: slice) -> Any:
    columns = make(b, labels)
    part = columns.block
    if part.noes is not None:
        no = b.backend.dense(part.noes, slice(0, part.Y.shape[0]), part.y.dtype)
        columns.block = replace(part, y=part.y - no)
    return columns


def predictions(F: Array, top: int | None, backend: Backend) -> Array | Sparse:
    """The probabilities σ(F) of all labels, or of the `top` best of each row."""
    if top is None or top >= F.shape[1]:
        return sigmoid(F)
    best = backend.top_k(F, None, top, None)
    pointer = np.arange(len(best.indices) + 1) * top
    found = (sigmoid(best.scores).ravel(), best.indices.ravel(), pointer)
    return backend.sparse(sp.csr_array(found, shape=tuple(F.shape)))
