"""Block: rows of a problem placed on a backend, in the form every method sees.

What decides more than the method does is done here, once and for all methods: rows scaled to unit
length (`normalize="l2"`) and a constant feature (`fit_intercept`), whose weight is the last row
of W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array, Backend, Sparse
from tacit.blocks import Rows

__all__ = ["Block", "Placement", "place"]


@dataclass(frozen=True)
class Placement:
    """How rows become blocks: on which backend, in which float type, scaled and extended or not."""

    backend: Backend
    dtype: str
    normalize: str | None
    fit_intercept: bool


@dataclass(frozen=True)
class Block:
    """Features, positives and observed entries of some rows, in the arrays of a backend.

    Attributes
    ----------
    X : Sparse or dense array, (n_rows, n_features)
    Y : Sparse
        The pattern of the positives.
    omega : Sparse or None
        The pattern Ω of the observed entries; None means all of them.
    y : array or None
        The labels 0/1 on Ω.
    constant : bool
        Whether a feature that is always 1 stands behind the last column of X.
    """

    X: Any
    Y: Sparse
    omega: Any
    y: Array
    constant: bool
    kernels: Backend

    def project(self, W: Array) -> Array:
        """X W, the constant feature included."""
        if not self.constant:
            return self.kernels.spmm(self.X, W)
        return self.kernels.spmm(self.X, W[:-1]) + W[-1]

    def project_t(self, B: Array) -> Array:
        """Xᵀ B, the constant feature included: the adjoint of `project`."""
        product = self.kernels.spmm_t(self.X, B)
        if not self.constant:
            return product
        xp = array_namespace(B)
        return xp.concat([product, xp.sum(B, axis=0)[None, :]], axis=0)


def place(rows: Rows, placement: Placement) -> Block:
    """Put rows onto a backend."""
    backend, labels = placement.backend, rows.labels
    omega = y = None
    if labels.observed is not None:
        omega = backend.sparse(labels.observed, pattern=True)
        # Ω contains the positives, so Ω + positives has the pattern of Ω and the values 1 + y.
        said = labels.observed.astype(np.int8) + labels.positives.astype(np.int8)
        y = backend.asarray((said.data - 1).astype(placement.dtype))
    return Block(
        X=_features(rows, placement),
        Y=backend.sparse(labels.positives, pattern=True),
        omega=omega,
        y=y,
        constant=placement.fit_intercept,
        kernels=backend,
    )


def _features(rows: Rows, placement: Placement) -> Any:
    backend, X = placement.backend, rows.X
    unit = placement.normalize == "l2"
    if not sp.issparse(X):
        X = np.asarray(X, dtype=placement.dtype)
        return backend.asarray(X * _unit(np.einsum("ij,ij->i", X, X))[:, None] if unit else X)
    X = sp.csr_array(X)
    scale = np.ones(0)
    if unit:
        scale = _unit(np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)))
    placed = _sparse(X, np.repeat(scale, np.diff(X.indptr)) if unit else None, placement)
    if rows.X_t is not None:  # the shard brought its transpose along
        X_t = rows.X_t
        # `transposed` is a cached property: filling the cache here is the same as having asked
        # for it.
        placed.__dict__["transposed"] = _sparse(
            X_t, scale[X_t.indices] if unit else None, placement
        )
    return placed


def _sparse(X: sp.csr_array, scale: np.ndarray | None, placement: Placement) -> Sparse:
    data = X.data.astype(placement.dtype, copy=False)
    if scale is not None:
        data = (data * scale).astype(placement.dtype)
    return placement.backend.sparse(sp.csr_array((data, X.indices, X.indptr), shape=X.shape))


def _unit(squares: np.ndarray) -> np.ndarray:
    """1 / norm, and 1 for a row of zeros."""
    norms = np.sqrt(squares)
    return 1 / np.where(norms > 0, norms, 1)
