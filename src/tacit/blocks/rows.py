"""Rows: some rows of X with their labels, as they come, before any backend has seen them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.labels import Labels

__all__ = ["Rows", "add", "rows_of_fold"]


@dataclass(frozen=True)
class Rows:
    """Rows of X (CSR or dense) and their labels; `X_t` is Xᵀ in CSR where it is already known."""

    X: Any
    labels: Labels
    X_t: sp.csr_array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: Any) -> Rows:
        return Rows(self.X[rows], self.labels[rows])

    def cut(self, n_blocks: int) -> list[Rows]:
        """These rows in `n_blocks` consecutive pieces of nearly equal length."""
        if n_blocks == 1:
            return [self]
        cuts = np.linspace(0, len(self), n_blocks + 1).astype(int)
        return [self[a:b] for a, b in pairwise(cuts)]

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Rows]:
        """These rows in random order, `size` at a time."""
        order = rng.permutation(len(self))
        for start in range(0, len(self), size):
            yield self[order[start : start + size]]


def rows_of_fold(rows: Rows, fold: int | tuple[int, ...], cv: int, inside: bool) -> Rows:
    """The rows of some folds, or all others: each block is dealt at random, but always alike."""
    order = np.random.RandomState(0).permutation(len(rows)) % cv
    return rows[np.flatnonzero(np.isin(order, fold) == inside)]


def add(a: Any, b: Any) -> Any:
    """a + b, entry by entry where they are tuples: one pass may collect several sums."""
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return a + b
