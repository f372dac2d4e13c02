"""A model that knows the rows of its fit again: each row has a weight of its own in every code.

    z = f([x, e_i])  for a row like row i of the fit,      z = f([x, 0])  for any other         (1)

with e_i the i-th unit vector and f a model of as many features more. Rows are known again by

    m = xᵀD,    D of shape (n_features, 4), normal draws that depend on nothing else            (2)

to a few digits: rows that differ by δ agree in all four to τ with probability of about (τ/δ)⁴. So
no row has to be kept, and rows that are equal are one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.models.explanation import Contributions
from tacit.models.hidden_layer import HiddenLayer
from tacit.models.low_rank import LowRank
from tacit.models.model import Model, check_shape

__all__ = ["KnownRows", "beside", "distinct", "marks_of"]

_DRAWS, _SAME = 4, 1e-5  # columns of D; how far marks of equal rows may be apart, a unit of them
_KINDS: dict[str, type[LowRank] | type[HiddenLayer]] = {
    "LowRank": LowRank,
    "HiddenLayer": HiddenLayer,
}


@dataclass(frozen=True, eq=False)
class KnownRows(Model):
    """(1).

    Attributes
    ----------
    inner : LowRank or HiddenLayer
        f, whose last rows of W belong to the rows that are known.
    marks : ndarray of shape (n_known, 4)
        (2) of these.
    """

    inner: LowRank | HiddenLayer
    marks: np.ndarray

    @property
    def H(self) -> Any:  # type: ignore[override]
        return self.inner.H

    @property
    def n_labels(self) -> int:
        return self.inner.n_labels

    @property
    def n_codes(self) -> int:
        return self.inner.n_codes

    @property
    def dtype(self) -> np.dtype:
        return self.inner.dtype

    def codes(self, block: Block) -> Array:
        return self.inner.codes(self._told(block))

    def factors(self, block: Block) -> tuple[Array, Array | None]:
        return self.inner.factors(self._told(block))

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """The weight that a known row has of its own comes behind those of all features."""
        return self.inner.contributions(self._told(block), labels)

    def probability(self, scores: Array) -> Array:
        return self.inner.probability(scores)

    def _told(self, block: Block) -> Block:
        """The rows, and beside their features which of the known ones they are."""
        marks = marks_of(block)
        near, which = self._tree.query(marks, p=np.inf)
        return beside(block, np.where(near <= _slack(marks), which, -1), len(self.marks))

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.marks)

    # Files

    def numbers(self) -> dict[str, Any]:
        return {"kind": type(self.inner).__name__, "own": self.inner.numbers()}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"marks": self.marks, **self.inner.arrays()}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        if numbers["kind"] not in _KINDS:
            raise ValueError(f"it knows the rows of {numbers['kind']!r}")
        marks = check_shape("marks", arrays.get("marks"), None, _DRAWS)
        if not np.isfinite(marks).all():
            raise ValueError("its marks are not finite")
        width, kind = n_weights + len(marks), _KINDS[numbers["kind"]]
        return cls(kind.from_arrays(width, n_labels, numbers["own"], arrays), marks)


def marks_of(block: Block) -> np.ndarray:
    """(2) of some rows, in float64."""
    d = block.X.shape[1]
    D = np.random.RandomState(0).standard_normal((d, _DRAWS))
    found = replace(block, more=()).project(block.backend.asarray(D.astype(_dtype(block))))
    return block.backend.to_numpy(found).astype(np.float64)


def distinct(marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The marks that differ, and which of them each row has.

    Examples
    --------
    >>> marks, which = distinct(np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0 + 1e-9]]))
    >>> marks.tolist(), which.tolist()
    ([[1.0, 1.0], [2.0, 1.0]], [1, 0, 1])
    """
    order = np.lexsort(marks.T[::-1])  # the first column decides: what is equal comes together
    steps = np.abs(np.diff(marks[order], axis=0)).max(axis=1) > _slack(marks[order[1:]])
    is_first = np.append(True, steps)[: len(order)]
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(is_first) - 1
    return marks[order[is_first]], which


def beside(block: Block, which: np.ndarray, n_known: int, weight: float = 1.0) -> Block:
    """The block with a further feature a known row: `weight` in that of the row, -1 is none."""
    known = which >= 0
    pointer = np.append(0, np.cumsum(known))
    data = np.full(pointer[-1], weight, _dtype(block))
    own = sp.csr_array((data, which[known], pointer), shape=(len(which), n_known))
    return replace(block, more=(*block.more, block.backend.sparse(own)))


def _dtype(block: Block) -> np.dtype:
    like = block.X.data if isinstance(block.X, Sparse) else block.X
    return block.backend.to_numpy(like[:0]).dtype


def _slack(marks: np.ndarray) -> np.ndarray:
    return _SAME * np.abs(marks).max(axis=1, initial=0.0)
