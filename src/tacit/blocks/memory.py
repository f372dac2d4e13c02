"""Blocks in memory, placed once or passed through, and the protocol that all blocks keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol, Self

import numpy as np

from tacit.blocks.rows import Rows, add

__all__ = ["Blocks", "MemoryBlocks", "StreamedBlocks"]


class Blocks(Protocol):
    """Blocks of rows: what every method may ask of the place where its data lives."""

    def map(self, f: Callable, *args: Any) -> Blocks: ...
    def sum(self, f: Callable, *args: Any) -> Any: ...
    def zip(self, values: Sequence) -> Blocks: ...
    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Any]: ...


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


@dataclass(frozen=True)
class StreamedBlocks:
    """Blocks that go where the arithmetic happens one at a time, in every pass, and are let go.

    For data that the host's memory holds and a GPU's does not: `map` only remembers what to do, and
    `sum` does it for one block after the other.

    Examples
    --------
    >>> blocks = StreamedBlocks((1, 2, 3)).map(lambda part, by: part * by, 10)
    >>> blocks.steps[0][1], blocks.sum(lambda part: part)
    ((10,), 60)
    """

    parts: tuple
    steps: tuple[tuple[Callable | None, tuple], ...] = ()  # those of `map`, and of `zip` (None)

    @classmethod
    def from_rows(cls, rows: Rows, n_blocks: int) -> StreamedBlocks:
        return cls(tuple(rows.cut(n_blocks)))

    def map(self, f: Callable, *args: Any) -> Self:
        return replace(self, steps=(*self.steps, (f, args)))

    def sum(self, f: Callable, *args: Any) -> Any:
        todo = self.map(f, *args)
        return reduce(add, (todo._run(i) for i in range(len(self.parts))))

    def zip(self, values: Sequence) -> Self:
        if len(values) != len(self.parts):
            raise ValueError(f"{len(values)} values for {len(self.parts)} blocks")
        return replace(self, steps=(*self.steps, (None, tuple(values))))

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Rows]:
        for i in rng.permutation(len(self.parts)):
            yield from self._run(i).batches(size, rng)

    def _open(self, i: int) -> Any:
        return self.parts[i]

    def _run(self, i: int) -> Any:
        result = self._open(i)
        for f, args in self.steps:
            result = (result, args[i]) if f is None else f(result, *args)
        return result
