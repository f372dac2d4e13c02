"""What is completed: entries that nobody said and that are likely true."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.labels import TopK

__all__ = ["Completion"]


class Completion(NamedTuple):
    """Unsaid entries that are likely true, the most probable first: three arrays of one length."""

    row: np.ndarray
    label: np.ndarray
    probability: np.ndarray

    def by_row(self, n_samples: int, k: int) -> TopK:
        """The k best completions of each row, best first, -1 where it has fewer: for `metrics`.

        Examples
        --------
        >>> Completion(np.array([1, 0, 1]), np.array([5, 2, 7]), np.array([0.9, 0.8, 0.1])).by_row(
        ...     n_samples=2, k=2
        ... ).indices
        array([[ 2, -1],
               [ 5,  7]])
        """
        order = np.argsort(self.row, kind="stable")  # keeps the best of a row first
        row = self.row[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        order, row, place = (each[place < k] for each in (order, row, place))
        indices, scores = np.full((n_samples, k), -1), np.full((n_samples, k), -np.inf)
        indices[row, place], scores[row, place] = self.label[order], self.probability[order]
        return TopK(indices, scores)
