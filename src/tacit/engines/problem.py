"""Problem: valid data on its backend, and the loop of a fit. All that a method's `_fit` sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tacit.backends import Array, Backend
from tacit.backends.block import Block, Placement, place
from tacit.blocks import Blocks
from tacit.blocks.rows import rows_of_fold
from tacit.engines.descend import Loop, State

__all__ = ["Problem"]

_DRAWN_ROWS = 2**14


@dataclass(frozen=True)
class Problem:
    """Valid data on its backend: all that a method's `_fit` sees.

    Attributes
    ----------
    blocks : Blocks of `Block`
        The rows, placed.
    kind : str
        The kind of labels.
    n_samples, n_features, n_labels : int
        `n_features` counts the constant feature, where there is one: it is the number of rows of W.
    backend : Backend
        Where the arithmetic happens.
    rng : RandomState
        Whatever is drawn comes from it.
    dtype : dtype
        The float type of the data, and so of the model.
    loop : Loop
        How a fit repeats its step.
    side : mapping of str to ndarray
        What a fit learns from beside the rows, such as features of the labels.
    """

    blocks: Blocks
    kind: str
    n_samples: int
    n_features: int
    n_labels: int
    backend: Backend
    rng: np.random.RandomState
    dtype: np.dtype
    loop: Loop
    side: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: Blocks = field(repr=False, kw_only=True)  # before they were placed
    placement: Placement = field(repr=False, kw_only=True)
    seed: Any = field(repr=False, kw_only=True)  # of `rng`

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
        return self.blocks.batches(size, np.random.default_rng(seed))

    def fold(self, fold: int | tuple[int, ...], cv: int, *, inside: bool = True) -> Blocks:
        """The rows of one or more of `cv` folds, or all others; always dealt alike."""
        return self.rows.map(rows_of_fold, fold, cv, inside).map(place, self.placement)

    def afresh(self, blocks: Blocks | None = None) -> Problem:
        """The same, or these rows of it, with the random numbers from their beginning."""
        rng = check_random_state(self.seed)
        return replace(self, blocks=self.blocks if blocks is None else blocks, rng=rng)

    def descend(
        self,
        start: Callable[[], State],
        step: Callable[[State], tuple[State, float]],
        until: Callable[[State], bool] | None = None,
    ) -> tuple[State, list[float]]:
        """Repeat `step` from `start()`: the last state, and the objectives; see `Loop.descend`."""
        return self.loop.descend(self.backend, start, step, until)

    def to_host(self, array: Any) -> Any:
        """Numbers of the model: NumPy's or SciPy's, in the float type of the data.

        They are laid out row by row, as a saved model comes back: BLAS rounds by the layout.
        """
        if sp.issparse(array):
            return array.astype(self.dtype)
        return np.ascontiguousarray(self.backend.to_numpy(array), dtype=self.dtype)
