"""Blocks on a Dask cluster: each block lives on a worker, and only sums travel.

Blocks are the results of tasks that the scheduler can run again, so a lost worker costs time,
never the answer. Large arguments are sent once, as tasks too; small ones ride in every task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.blocks.disk import DiskBlocks, read_shard
from tacit.blocks.rows import Rows, add

__all__ = ["DaskBlocks"]

_LARGE = 2**16
"""Bytes from which an argument is a task of its own rather than sent with every task."""


@dataclass(frozen=True)
class DaskBlocks:
    """Futures of blocks, and the client that made them.

    Examples
    --------
    Rows from memory, or better from shards that every worker can reach::

        DaskBlocks.from_rows(client, Rows(X, labels), n_blocks=8)
        DaskBlocks.from_shards(client, open_shards(path))
    """

    client: Any
    parts: tuple

    @classmethod
    def from_rows(cls, client: Any, rows: Rows, n_blocks: int) -> DaskBlocks:
        # The rows ride in the task, not in `scatter`: scattered data dies with its worker.
        parts = tuple(client.submit(_same, part, pure=False) for part in rows.cut(n_blocks))
        return cls(client, parts)

    @classmethod
    def from_shards(cls, client: Any, shards: DiskBlocks) -> DaskBlocks:
        parts = tuple(
            client.submit(read_shard, folder, shards.classes, pure=False)
            for folder in shards.folders
        )
        return cls(client, parts)

    def map(self, f: Callable, *args: Any) -> DaskBlocks:
        sent = self._send(args)
        return DaskBlocks(
            self.client,
            tuple(self.client.submit(f, part, *sent, pure=False) for part in self.parts),
        )

    def sum(self, f: Callable, *args: Any) -> Any:
        terms = list(self.map(f, *args).parts)
        while len(terms) > 1:  # a tree: each level adds neighbours, wherever they are
            pairs = zip(terms[::2], terms[1::2])
            odd = terms[-1:] if len(terms) % 2 else []
            terms = [self.client.submit(add, a, b, pure=False) for a, b in pairs] + odd
        return terms[0].result()

    def zip(self, values: Sequence) -> DaskBlocks:
        pairs = zip(self.parts, self._send(tuple(values)), strict=True)
        submit = lambda part, value: self.client.submit(_pair, part, value, pure=False)
        return DaskBlocks(self.client, tuple(submit(*pair) for pair in pairs))

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Rows]:
        for i in rng.permutation(len(self.parts)):
            yield from self.parts[i].result().batches(size, rng)

    def _send(self, args: tuple) -> list:
        # A task, not `scatter`: scattered data dies with its worker, and a fit that waits for it
        # would wait for ever.
        return [
            self.client.submit(_same, arg, pure=False)
            if getattr(arg, "nbytes", 0) > _LARGE
            else arg
            for arg in args
        ]


def _pair(part: Any, value: Any) -> tuple:
    return part, value


def _same(value: Any) -> Any:
    return value
