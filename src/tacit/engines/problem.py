"""Problem: valid data on its backend, and the loop of a fit. All that a method's `_fit` sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tacit.backends import Array, Backend
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.descend import State

__all__ = ["Problem"]

_DRAWN_ROWS = 2**14


@dataclass(frozen=True)
class Problem:
    """Valid data on its backend: all that a method's `_fit` sees.

    `n_features` counts the constant feature, where there is one: it is the number of rows of W.
    """

    blocks: Blocks
    kind: str
    n_samples: int
    n_features: int
    n_labels: int
    backend: Backend
    rng: np.random.RandomState
    dtype: np.dtype
    _descend: Callable = field(repr=False)
    _batches: Callable = field(repr=False)
    _fold: Callable = field(repr=False)
    resumable: bool = False  # whether the state of the fit goes to a file

    def normal(self, *shape: int) -> Array:
        """Standard normal numbers, drawn by NumPy so that every backend starts alike.

        Of very many rows, those beyond `_DRAWN_ROWS` repeat others at random, with random signs:
        for a start that is as good, and a GPU need not wait for a hundred million draws.
        """
        n_rows, *rest = shape
        drawn = self.rng.standard_normal((min(n_rows, _DRAWN_ROWS), *rest)).astype(self.dtype)
        if n_rows <= _DRAWN_ROWS:
            return self.backend.asarray(drawn)
        row = np.arange(n_rows)
        row[_DRAWN_ROWS:] = self.rng.randint(_DRAWN_ROWS, size=n_rows - _DRAWN_ROWS)
        sign = self.rng.choice(np.array([-1, 1], self.dtype), size=(n_rows, 1))
        place = self.backend.asarray
        return place(drawn)[place(row)] * place(sign)

    def batches(self, size: int, seed: int) -> Iterator[Block]:
        """The rows in random mini-batches, once each."""
        return self._batches(size, seed)

    def fold(self, fold: int | tuple[int, ...], cv: int, *, inside: bool = True) -> Blocks:
        """The rows of one or more of `cv` folds, or all others; always dealt alike."""
        return self._fold(fold, cv, inside)

    def descend(
        self,
        start: Callable[[], State],
        step: Callable[[State], tuple[State, float]],
        until: Callable[[State], bool] | None = None,
    ) -> State:
        """Repeat `step` from `start()` until the objective settles; see `engines.descend`."""
        return self._descend(start, step, until)
