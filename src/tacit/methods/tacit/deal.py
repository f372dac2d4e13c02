"""Dealing rows into folds: by row and not by block, so that no cut into blocks changes a fold.

Row i of all rows gets the number of place i in one random order of them. The order depends on
nothing but how many rows there are: memory, shards and a cluster deal alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Backend, Sparse
from tacit.backends.block import Block
from tacit.blocks import Blocks, MemoryBlocks
from tacit.engines.descend import Loop
from tacit.estimators import Problem
from tacit.features.scaling import Scaling

__all__ = ["Dealt", "SomeRows", "only", "together"]


@dataclass(frozen=True)
class SomeRows:
    """Some rows of a problem, as a first model sees them; the `whole` of them lack nothing."""

    problem: Problem
    blocks: Blocks
    n_samples: int
    n_features: int
    whole: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """All rows of a problem."""
        return cls(problem, problem.blocks, problem.n_samples, problem.n_features, whole=True)

    @property
    def backend(self) -> Backend:
        return self.problem.backend

    @property
    def dtype(self) -> np.dtype:
        return self.problem.dtype

    def to_host(self, array: Any) -> Any:
        return self.problem.to_host(array)

    def scaled(self, scaling: Scaling) -> SomeRows:
        width = scaling.n_features(self.n_features)
        return replace(self, blocks=self.blocks.map(scaling), n_features=width)

    def as_problem(self, loop: Loop, seed: int) -> Problem:
        """A problem of its own: these rows in one block, so that no cut changes a mini-batch."""
        return replace(
            self.problem,
            blocks=MemoryBlocks((together(self.blocks, self.backend),)),
            n_samples=self.n_samples,
            n_features=self.n_features,
            rng=np.random.RandomState(seed),
            loop=loop,
        )


@dataclass(frozen=True)
class Dealt:
    """The rows of a problem, and the place of each in one random order of all of them."""

    all: SomeRows
    places: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, rows: SomeRows) -> Self:
        """These rows, dealt."""
        ends = np.cumsum([0, *rows.blocks.sum(_length)])
        order = np.random.RandomState(0).permutation(ends[-1])
        return cls(rows, tuple(order[a:b] for a, b in pairwise(ends)))

    def fold(self, fold: int, cv: int, most: int) -> SomeRows:
        """The rows of one of `cv` folds, about `most` of them at most."""
        return self._where(lambda place: (place % cv == fold) & (place < most * cv))

    def rest(self, fold: int, cv: int, most: float = np.inf) -> SomeRows:
        """The rows of all other folds, about `most` of them at most."""
        return self._where(lambda place: (place % cv != fold) & (place * (cv - 1) < most * cv))

    def without_cells(self) -> SomeRows:
        """All rows of masked labels, a fifth of whose known cells are taken for unknown."""
        blocks = self.all.blocks.zip(self.places).map(_without_cells)
        return replace(self.all, blocks=blocks, whole=False)

    def cells(self, most: int) -> tuple[Block, sp.csr_array]:
        """About the first `most` rows in one block, and the cells that were taken away."""
        rows = [np.flatnonzero(place < most) for place in self.places]
        parts = self.all.blocks.zip(rows).map(_rows)
        places = np.concatenate([place[row] for place, row in zip(self.places, rows)])
        block = together(parts, self.all.backend)
        known = block.omega.scipy()
        return block, only(known, _taken(known, places))

    def first(self, n: int) -> SomeRows:
        """The first n rows in that order."""
        return self._where(lambda place: place < n)

    def _where(self, chosen: Callable[[np.ndarray], np.ndarray]) -> SomeRows:
        rows = [np.flatnonzero(chosen(places)) for places in self.places]
        blocks = self.all.blocks.zip(rows).map(_rows)
        return replace(self.all, blocks=blocks, n_samples=sum(map(len, rows)), whole=False)


def together(blocks: Blocks, backend: Backend) -> Block:
    """All rows in one block."""
    parts = blocks.sum(_listed)
    if len(parts) == 1:
        return replace(parts[0], backend=backend)
    xp = array_namespace(parts[0].y if parts[0].y is not None else parts[0].Y.indices)
    patterns = lambda name: [getattr(part, name).scipy() for part in parts]
    stack = lambda name: backend.sparse(sp.vstack(patterns(name), format="csr"), pattern=True)
    if isinstance(parts[0].X, Sparse):
        X = backend.sparse(sp.vstack([part.X.scipy() for part in parts], format="csr"))
    else:
        X = xp.concat([part.X for part in parts])
    if parts[0].omega is None:
        return Block(X, stack("Y"), None, None, backend, noes=_noes(parts, backend))
    return Block(X, stack("Y"), stack("omega"), xp.concat([part.y for part in parts]), backend)


def _noes(parts: list[Block], backend: Backend) -> Sparse | None:
    """What was said no in these blocks, if anything was."""
    if all(part.noes is None for part in parts):
        return None
    silent = [sp.csr_array(part.Y.shape, dtype=bool) for part in parts]
    each = [s if part.noes is None else part.noes.scipy() for s, part in zip(silent, parts)]
    return backend.sparse(sp.vstack(each, format="csr"), pattern=True)


def _listed(b: Block) -> list[Block]:
    """A list of one: lists add to longer ones."""
    return [b]


def _length(b: Block) -> list[int]:
    """A list of one: lists add to longer ones."""
    return [b.Y.shape[0]]


def _rows(pair: tuple[Block, np.ndarray]) -> Block:
    block, rows = pair
    return block.rows(block.backend.asarray(rows))


def _taken(known: sp.csr_array, places: np.ndarray) -> np.ndarray:
    """Which of the known cells are held out: by row and label, whatever the cut into blocks."""
    row = np.repeat(places.astype(np.uint64), np.diff(known.indptr))
    mixed = _mixed(_mixed(row) + known.indices.astype(np.uint64))
    return mixed % np.uint64(5) == 0


def _mixed(x: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits that look drawn at random (SplitMix64, Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _without_cells(pair: tuple[Block, np.ndarray]) -> Block:
    block, places = pair
    known = block.omega.scipy()
    left = ~_taken(known, places)
    y = block.backend.to_numpy(block.y)
    place = lambda which: block.backend.sparse(only(known, which), pattern=True)
    kept = block.backend.asarray(y[left])
    return replace(block, Y=place(left & (y > 0)), omega=place(left), y=kept)


def only(pattern: sp.csr_array, which: np.ndarray) -> sp.csr_array:
    """Some entries of a pattern."""
    pointer = np.append(0, np.cumsum(which))[pattern.indptr]
    indices = pattern.indices[which]
    return sp.csr_array((np.ones(len(indices), bool), indices, pointer), shape=pattern.shape)
