"""Sparse: a CSR matrix in the arrays of a backend, with its transpose made once, when needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

__all__ = ["Sparse"]


@dataclass(frozen=True)
class Sparse:
    """A matrix in CSR; `data` None means a pattern of ones.

    Attributes
    ----------
    order : array or None
        Of a transposed pattern: entry e here is entry `order[e]` of the original, so that values
        given for the original's entries can be read in this one's order.
    """

    shape: tuple[int, int]
    indptr: Any
    indices: Any
    data: Any
    backend: Any
    order: Any = None

    @cached_property
    def transposed(self) -> Sparse:
        """The transpose in CSR. A product with it gathers rows, where one with Sᵀ would scatter."""
        return self.backend.transpose(self)

    @cached_property
    def plan(self) -> Any:
        """How the backend shares out products with this matrix, where it plans them."""
        return self.backend.plan(self)

    @cached_property
    def occupied(self) -> tuple[Any, Sparse]:
        """Which rows have entries, and the matrix of those rows alone."""
        xp = array_namespace(self.indptr)
        rows = xp.nonzero(self.indptr[1:] > self.indptr[:-1])[0]
        indptr = xp.concat([self.indptr[rows], self.indptr[-1:]])  # empty rows hold nothing between
        return rows, replace(self, shape=(rows.shape[0], self.shape[1]), indptr=indptr)

    def rows(self, rows: Any) -> tuple[Sparse, Any]:
        """These rows, in this order, and where their entries stand here."""
        xp = array_namespace(self.indptr)
        start, n_entries = self.indptr[rows], self.indptr[rows + 1] - self.indptr[rows]
        indptr = xp.concat([xp.zeros_like(self.indptr[:1]), xp.cumulative_sum(n_entries)])
        indptr = xp.astype(indptr, self.indptr.dtype)
        entries = xp.repeat(start - indptr[:-1], n_entries)
        entries = entries + xp.arange(
            entries.shape[0], dtype=entries.dtype, device=self.indptr.device
        )
        take = lambda a: None if a is None else a[entries]
        return replace(
            self, shape=(rows.shape[0], self.shape[1]), indptr=indptr,
            indices=self.indices[entries], data=take(self.data), order=None,
        ), entries  # fmt: skip

    def some(self, rows: slice) -> Sparse:
        """Some consecutive rows."""
        if (rows.start, rows.stop) == (0, self.shape[0]):
            return self  # with what it has kept
        indptr = self.indptr[rows.start : rows.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        take = lambda a: None if a is None else a[entries]
        return replace(
            self, shape=(len(indptr) - 1, self.shape[1]), indptr=indptr - indptr[0],
            indices=self.indices[entries], data=take(self.data), order=take(self.order),
        )  # fmt: skip

    def scipy(self) -> sp.csr_array:
        """The same in SciPy; a pattern is True on its entries."""
        numbers = self.backend.to_numpy
        data = np.ones(self.nnz, bool) if self.data is None else numbers(self.data)
        return sp.csr_array((data, numbers(self.indices), numbers(self.indptr)), shape=self.shape)

    @property
    def nnz(self) -> int:
        return int(self.indices.shape[0])
