"""The rows of every level: dealt into batches that each belong to one fold (figure 4 of the paper).

The same seed deals the same batches in every pass, wherever the rows live, so a batch is known by
its number t and belongs to fold t mod m. What a level predicts of a batch stands beside its sparse
features in a form of its own, [X | P]: dense, or the t largest probabilities of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.blocks import MemoryBlocks
from tacit.estimators import Problem

__all__ = ["FoldedBatches", "predictions"]


class FoldedBatches:
    """Rows in batches. Those of data in memory are placed once; others anew in every pass."""

    def __init__(self, problem: Problem, size: int, seed: int, n_folds: int):
        self.n_folds, self.size = n_folds, size
        self._made: Callable[[], Iterator[Block]] = lambda: problem.batches(size, seed)
        self._kept = list(self._made()) if isinstance(problem.blocks, MemoryBlocks) else None
        self._levels: list[dict[int, Array | Sparse]] = []

    def batches(
        self, *, without: int | None = None, only: int | None = None
    ) -> Iterator[tuple[int, Block]]:
        """The batches with their numbers, without those of a fold or only those of one."""
        for t, b in enumerate(self._made() if self._kept is None else self._kept):
            if t % self.n_folds != without and only in (None, t % self.n_folds):
                yield t, replace(b, more=tuple(level[t] for level in self._levels))

    def set_beside(self, predicted: dict[int, Array | Sparse]) -> None:
        """From here on the features of batch t are [those so far | predicted[t]]."""
        self._levels.append(predicted)


def predictions(F: Array, top: int | None, backend: Backend) -> Array | Sparse:
    """The probabilities σ(F) of all labels, or of the `top` best of each row."""
    if top is None or top >= F.shape[1]:
        return sigmoid(F)
    best = backend.top_k(F, None, top, None)
    pointer = np.arange(len(best.indices) + 1) * top
    found = (sigmoid(best.scores).ravel(), best.indices.ravel(), pointer)
    return backend.sparse(sp.csr_array(found, shape=tuple(F.shape)))
