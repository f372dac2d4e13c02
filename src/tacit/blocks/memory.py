"""Blocks in memory, and the protocol that all blocks keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from tacit.blocks.rows import Rows, add

__all__ = ["Blocks", "MemoryBlocks"]


class Blocks(Protocol):
    """Blocks of rows: what every method may ask of the place where its data lives."""

    def map(self, f: Callable, *args: Any) -> Blocks: ...
    def sum(self, f: Callable, *args: Any) -> Any: ...
    def zip(self, values: Sequence) -> Blocks: ...
    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Rows]: ...


@dataclass(frozen=True)
class MemoryBlocks:
    """Blocks held in this process.

    Examples
    --------
    >>> blocks = MemoryBlocks((1, 2, 3)).map(lambda part, by: part * by, 10)
    >>> blocks.sum(lambda part: part)
    60
    """

    parts: tuple

    @classmethod
    def from_rows(cls, rows: Rows, n_blocks: int = 1) -> MemoryBlocks:
        return cls(tuple(rows.cut(n_blocks)))

    def map(self, f: Callable, *args: Any) -> MemoryBlocks:
        return MemoryBlocks(tuple(f(part, *args) for part in self.parts))

    def sum(self, f: Callable, *args: Any) -> Any:
        return reduce(add, (f(part, *args) for part in self.parts))

    def zip(self, values: Sequence) -> MemoryBlocks:
        return MemoryBlocks(tuple(zip(self.parts, values, strict=True)))

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Rows]:
        for i in rng.permutation(len(self.parts)):
            yield from self.parts[i].batches(size, rng)
