"""Sparse: a CSR matrix in the arrays of a backend, with its transpose made once, when needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
    kernels: Any
    order: Any = None

    @cached_property
    def transposed(self) -> Sparse:
        """The transpose in CSR. A product with it gathers rows, where one with Sᵀ would scatter."""
        return self.kernels.transpose(self)

    @property
    def nnz(self) -> int:
        return int(self.indices.shape[0])
