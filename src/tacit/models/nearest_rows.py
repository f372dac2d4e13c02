"""Rows that vote: a new row has the labels of the rows that are most like it.

The formulas (1) to (3) are in `tacit.baselines.neighbours`, the estimator that leaves such a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.basics.params import an_int
from tacit.blocks import Blocks
from tacit.models.explanation import Contributions
from tacit.models.model import Model, check_shape

__all__ = ["NearestRows"]

_COSINES = 2**24  # numbers laid out at a time: 64 MiB in float32
_ROUNDING = 32  # units in the last place; BLAS takes equal rows some 5 apart
_is_count, _ = an_int(at_least=1)


@dataclass(frozen=True, eq=False)
class NearestRows(Model):
    """Rows, and what was said of them: the nearest to a new row vote on its labels.

    Attributes
    ----------
    X : csr_array or ndarray of shape (n_rows, n_features)
        The rows, scaled as they were in the fit.
    Y : csr_array of shape (n_rows, n_labels)
        1 where a label was said.
    n_neighbors : int
        The k of (1).
    known : csr_array of shape (n_rows, n_labels), or None
        1 where a label is known; None where all are.
    """

    X: Any
    Y: sp.csr_array
    n_neighbors: int
    known: sp.csr_array | None = None

    H = None  # the scores are no inner products

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def n_codes(self) -> int:
        return self.n_labels

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.X.dtype)

    def factors(self, block: Block) -> tuple[Array, None]:
        scores = np.empty((block.Y.shape[0], self.n_labels), self.dtype)
        for rows in self._pieces(block):
            scores[rows] = self._scores(block.some(rows))
        return scores, None

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """Of each near row that has the label, its share of the votes."""
        pieces = [self._shares(block.some(rows), labels[rows]) for rows in self._pieces(block)]
        amounts, offsets = zip(*pieces)
        return Contributions({"row": sp.vstack(amounts, format="csr")}, np.concatenate(offsets))

    def _shares(self, part: Block, labels: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        """The terms of (2) or (3), and the rate of a label that no near row knows."""
        w = self._votes(part).astype(np.float64)
        has = sp.csr_array(w * self.Y[:, labels].T)
        if self.known is None:
            return sp.csr_array(has / _or_one(w.sum(axis=1))[:, None]), np.zeros(len(labels))
        heard = (w * self.known[:, labels].T).sum(axis=1)
        return (
            sp.csr_array(has / _or_one(heard)[:, None]),
            np.where(heard > 0, 0.0, self._known_rates[labels]),
        )

    def _pieces(self, block: Block) -> Iterator[slice]:
        """The rows of a block, so many at a time that their cosines can be laid out."""
        # Dense rows meet new ones that were laid out too, of as many features.
        width = self.X.shape[0] if sp.issparse(self.X) else max(self.X.shape)
        size = max(1, _COSINES // width)
        n = block.Y.shape[0]
        for start in range(0, n, size):
            yield slice(start, min(start + size, n))

    def _scores(self, part: Block) -> np.ndarray:
        """(2), or (3) where labels are masked."""
        place = part.backend.sparse
        w = place(self._votes(part))
        yes = part.backend.spmm(w, place(self.Y))
        if self.known is None:
            return yes / _or_one(w.data.reshape(len(yes), -1).sum(axis=1))[:, None]
        heard = part.backend.spmm(w, place(self.known))
        return np.where(heard > 0, yes / _or_one(heard), self._known_rates)

    def _votes(self, part: Block) -> sp.csr_array:
        """W of (1), with k entries in each row."""
        cosines = self._cosines(part)
        nearest = part.backend.top_k(cosines, None, self.n_neighbors, None)
        last, slack = nearest.scores[:, -1:], _ROUNDING * np.finfo(self.dtype).eps
        tied = (cosines > last * (1 - slack)) & (cosines < last * (1 + slack))
        np.copyto(cosines, last, where=tied)  # and now the earlier ones go first
        nearest = part.backend.top_k(cosines, None, self.n_neighbors, None)
        has_vote = nearest.scores > 0
        weight = np.where(has_vote, nearest.scores, 0).astype(self.dtype, copy=False)
        row = np.where(has_vote, nearest.indices, 0)  # who has no vote may be no row at all
        pointer = np.arange(len(row) + 1) * row.shape[1]
        return sp.csr_array((weight.ravel(), row.ravel(), pointer), shape=cosines.shape)

    def _cosines(self, part: Block) -> np.ndarray:
        """Of these rows with all rows of the model, laid out."""
        new, is_sparse = part.X, isinstance(part.X, Sparse)
        if not sp.issparse(self.X):
            return (new.scipy().toarray() if is_sparse else new) @ self.X.T
        new = new if is_sparse else part.backend.sparse(new)
        return part.backend.spmm(new, part.backend.sparse(self._columns))

    @cached_property
    def _columns(self) -> sp.csr_array:
        """Xᵀ in CSR: which rows have a feature."""
        return sp.csr_array(self.X.T)

    @cached_property
    def _known_rates(self) -> np.ndarray:
        """How often a label is true where it is known, and 0 where it never is."""
        assert self.known is not None
        yes, known = (np.asarray(S.sum(axis=0, dtype=np.float64)) for S in (self.Y, self.known))
        return (yes / _or_one(known)).astype(self.dtype)

    def probability(self, scores: Array) -> Array:
        """The score, which rounding can take beyond 1."""
        return np.clip(scores, 0.0, 1.0)

    # Files

    def numbers(self) -> dict[str, Any]:
        return {"n_neighbors": int(self.n_neighbors), "masked": self.known is not None}

    def arrays(self) -> dict[str, np.ndarray | None]:
        patterns = {"Y": self.Y} if self.known is None else {"Y": self.Y, "known": self.known}
        arrays = {
            f"{name}_{part}": getattr(S, part)
            for name, S in patterns.items()
            for part in ("indices", "indptr")
        }
        if not sp.issparse(self.X):
            return {"X": self.X, **arrays}
        return {
            f"X_{part}": getattr(self.X, part) for part in ("data", "indices", "indptr")
        } | arrays

    @classmethod
    def of(cls, blocks: Blocks, n_neighbors: int, dtype: np.dtype) -> Self:
        """These rows, brought together on the host."""
        X, Y, known = zip(*blocks.sum(_listed))
        whole = lambda parts: None if parts[0] is None else _stacked(parts).astype(dtype)
        return cls(_stacked(X), _stacked(Y).astype(dtype), n_neighbors, whole(known))

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        n_neighbors, masked = numbers["n_neighbors"], numbers["masked"]
        if not _is_count(n_neighbors) or not isinstance(masked, bool):
            raise ValueError(f"its numbers are {numbers!r}")
        if "X" in arrays:
            X: Any = check_shape("X", arrays["X"], None, n_weights)
        else:
            X = _sparse("X", (None, n_weights), arrays)
        shape = (X.shape[0], n_labels)
        Y = _sparse("Y", shape, arrays, X.dtype)
        known = _sparse("known", shape, arrays, X.dtype) if masked else None
        if known is not None and Y.multiply(known).nnz < Y.nnz:
            raise ValueError("its labels say yes where nothing is known")
        return cls(X, Y, n_neighbors, known)


def _listed(b: Block) -> list[tuple[Any, Any, Any]]:
    """A list of one: lists add to longer ones."""
    X = b.X.scipy() if isinstance(b.X, Sparse) else b.X
    return [(X, b.Y.scipy(), None if b.omega is None else b.omega.scipy())]


def _stacked(parts: tuple) -> Any:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _or_one(totals: np.ndarray) -> np.ndarray:
    """What may be divided by: 1 where there was nothing."""
    return np.where(totals > 0, totals, 1)


def _sparse(
    name: str,
    shape: tuple[int | None, int],
    arrays: dict[str, np.ndarray],
    ones: np.dtype | None = None,
) -> sp.csr_array:
    """A sparse matrix, or a pattern of `ones`; SciPy trusts its arrays, and so they are checked."""
    part = lambda which: (f"{name}_{which}", arrays.get(f"{name}_{which}"))
    n_rows, n_columns = shape
    pointer = check_shape(*part("indptr"), None if n_rows is None else n_rows + 1, integers=True)
    n_rows, size = len(pointer) - 1, int(pointer[-1])
    indices = check_shape(*part("indices"), size, integers=True)
    data = check_shape(*part("data"), size) if ones is None else np.ones(size, ones)
    if n_rows < 1:
        raise ValueError(f"its {name} has no rows")
    found = sp.csr_array((data, indices, pointer), shape=(n_rows, n_columns))
    found.check_format(full_check=True)
    return found
