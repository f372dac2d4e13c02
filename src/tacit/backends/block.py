"""Block: rows of a problem placed on a backend, in the form every method sees.

What decides more than the method does is done here, once and for all methods: columns standardised
(where `normalize="auto"` found them dense), rows scaled to unit length (`normalize`) and a constant
feature (`fit_intercept`), whose weight is the last row of W.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array, Backend, Sparse
from tacit.blocks import Rows

__all__ = ["Block", "Placement", "label_counts", "pieces", "place"]

_LEAST = 2**16  # entries that are worth a thread of their own


@dataclass(frozen=True)
class Placement:
    """How rows become blocks: on which backend, in which float type, scaled and extended or not."""

    backend: Backend
    dtype: str
    normalize: str | None
    fit_intercept: bool
    scaling: Any = None  # a `features.scaling.Scaling` that standardises columns, before all else


@dataclass(frozen=True)
class Block:
    """Features, positives and observed entries of some rows, in the arrays of a backend.

    Attributes
    ----------
    X : Sparse or dense array, (n_rows, n_features)
        The features as methods see them: scaled, and with the constant one behind the last.
    Y : Sparse
        The pattern of the positives.
    omega : Sparse or None
        The pattern Ω of the observed entries; None means all of them.
    y : array or None
        The labels 0/1 on Ω.
    more : tuple of Sparse or dense arrays
        Further features, each kept in its own form: what a lower level of a stack predicts.
    noes : Sparse or None
        The pattern of what was said no, where other silence means nothing; None where nothing was.
    """

    X: Any
    Y: Sparse
    omega: Any
    y: Array
    backend: Backend
    more: tuple = ()
    noes: Any = None

    @cached_property
    def said(self) -> tuple[Sparse, Array]:
        """The pattern of what was said, yes or no, and 1 or 0 on it."""
        if self.omega is not None:
            return self.omega, self.y
        dtype = self.X.data.dtype if isinstance(self.X, Sparse) else self.X.dtype
        xp, place = array_namespace(self.Y.indices), self.backend.asarray
        if self.noes is None:
            return self.Y, xp.astype(xp.ones_like(self.Y.indices), dtype)
        yes = self.Y.scipy()
        both = sp.csr_array(yes + self.noes.scipy())
        truth = xp.astype(place(_truth(both, yes)), dtype)
        return self.backend.sparse(both, pattern=True), truth

    def features(self) -> list[tuple[Any, slice]]:
        """X and what stands beside it, each with its rows of W."""
        parts = (self.X, *self.more)
        ends = accumulate(part.shape[1] for part in parts)
        return [(part, slice(end - part.shape[1], end)) for part, end in zip(parts, ends)]

    def some(self, rows: slice) -> Block:
        """Some consecutive rows: their features and positives, but nothing of Ω or of noes."""
        cut = lambda part: part.some(rows) if isinstance(part, Sparse) else part[rows]
        X, Y, more = cut(self.X), cut(self.Y), tuple(map(cut, self.more))
        return replace(self, X=X, Y=Y, omega=None, y=None, more=more, noes=None)

    def rows(self, rows: Array) -> Block:
        """These rows, in this order."""
        take = lambda part: part.rows(rows)[0] if isinstance(part, Sparse) else part[rows]
        omega, y = self.omega, self.y
        if omega is not None:
            omega, entries = omega.rows(rows)
            y = y[entries]
        X, Y, more = take(self.X), take(self.Y), tuple(map(take, self.more))
        noes = None if self.noes is None else take(self.noes)
        return replace(self, X=X, Y=Y, omega=omega, y=y, more=more, noes=noes)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """These rows in random order, `size` at a time, taken where they are."""
        order = self.backend.asarray(rng.permutation(self.Y.shape[0]))
        for start in range(0, len(order), size):
            yield self.rows(order[start : start + size])

    def weighted(self, weights: Array) -> Block:
        """The same with each row of [X, more] multiplied by its weight."""
        xp = array_namespace(weights)

        def times(part: Any) -> Any:
            if not isinstance(part, Sparse):
                return part * xp.astype(weights, part.dtype)[:, None]
            each = xp.repeat(xp.astype(weights, part.data.dtype), xp.diff(part.indptr))
            return replace(part, data=part.data * each)

        return replace(self, X=times(self.X), more=tuple(map(times, self.more)))

    def cross(self, other: Block) -> Array:
        """[X, more]ᵀ [X, more] of these rows and the same rows otherwise weighted, in float64."""
        mine, theirs = ((b.X, *b.more) for b in (self, other))
        each = range(len(mine))
        above = {
            (i, j): self.backend.cross(mine[i], theirs[j]) for j in each for i in each[: j + 1]
        }
        if not self.more:
            return above[0, 0]
        xp = array_namespace(above[0, 0])
        rows = ([above[i, j] if i <= j else above[j, i].T for j in each] for i in each)
        return xp.concat([xp.concat(row, axis=1) for row in rows])

    def project(self, W: Array) -> Array:
        """[X, more] W; W may be sparse."""
        some = lambda rows: W.some(rows) if isinstance(W, Sparse) else W[rows]
        products = (self.backend.spmm(part, some(rows)) for part, rows in self.features())
        return reduce(add, products)

    def project_t(self, B: Array) -> Array:
        """[X, more]ᵀ B, the adjoint of `project`."""
        products = [self.backend.spmm_t(part, B) for part, _ in self.features()]
        return products[0] if len(products) == 1 else array_namespace(B).concat(products)


def label_counts(b: Block) -> Array:
    """How often each label was said, in float64."""
    like = b.backend.asarray([[1.0]])
    xp = array_namespace(like)
    ones = xp.ones((b.Y.shape[0], 1), dtype=xp.float64, device=like.device)
    return b.backend.spmm_t(b.Y, ones)[:, 0]


def pieces(b: Block, n_labels: int, flops: int = 1) -> list[slice]:
    """The rows of a block in pieces: of a size that the backend likes, but enough to share out.

    `flops` is how many times more there is to do for an entry than its score.
    """
    n = b.Y.shape[0]
    most = max(1, min(b.backend.pieces, n * n_labels * flops // _LEAST))
    size = max(1, min(b.backend.chunk // max(1, n_labels), -(-n // most)))
    starts = range(0, max(1, n), size)  # at least one: a block may be empty
    return [slice(start, min(start + size, n)) for start in starts]


def place(rows: Rows, placement: Placement) -> Block:
    """Put rows onto a backend."""
    backend, labels = placement.backend, rows.labels
    pattern: Any = lambda S: None if S is None else backend.sparse(S, pattern=True)
    y = None
    if labels.observed is not None:
        truth = _truth(labels.observed, labels.positives)
        y = backend.asarray(truth.astype(placement.dtype))
    return Block(
        X=_features(rows, placement),
        Y=pattern(labels.positives),
        omega=pattern(labels.observed),
        y=y,
        backend=backend,
        noes=pattern(labels.noes),
    )


def _truth(said: sp.csr_array, yes: sp.csr_array) -> np.ndarray:
    """1 or 0 on the entries that were said, of which those that were said yes are some."""
    return (said.astype(np.int8) + yes.astype(np.int8)).data - 1


def _features(rows: Rows, placement: Placement) -> Any:
    X, dtype = rows.X, placement.dtype
    one = np.ones((len(rows), 1 if placement.fit_intercept else 0), dtype)
    if placement.scaling is not None:
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=dtype)
        X = placement.scaling.standardised(X, lambda a: a.astype(dtype))
    if not sp.issparse(X):
        X = np.asarray(X, dtype=dtype)
        scale = _scale(np.einsum("ij,ij->i", X, X), placement)
        return placement.backend.asarray(np.hstack([X * scale[:, None], one]))
    scale = _scale(np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)), placement)
    scaled = _with_data(X, X.data * np.repeat(scale, np.diff(X.indptr)), dtype)
    placed = placement.backend.sparse(sp.hstack([scaled, sp.csr_array(one)], format="csr"))
    if rows.X_t is not None:  # the shard brought its transpose along
        X_t = _with_data(rows.X_t, rows.X_t.data * scale[rows.X_t.indices], dtype)
        transposed = sp.vstack([X_t, sp.csr_array(one.T)], format="csr")
        # `transposed` is a cached property: to fill the cache is to have asked for it.
        placed.__dict__["transposed"] = placement.backend.sparse(transposed)
    return placed


def _scale(squares: np.ndarray, placement: Placement) -> np.ndarray:
    """What each row is multiplied by: 1 / norm, but 1 for a row of zeros, or 1 for all."""
    if placement.normalize is None:
        return np.ones(len(squares), placement.dtype)
    norms = np.sqrt(squares)
    return (1 / np.where(norms > 0, norms, 1)).astype(placement.dtype)


def _with_data(X: sp.csr_array, data: np.ndarray, dtype: str) -> sp.csr_array:
    return sp.csr_array((data.astype(dtype, copy=False), X.indices, X.indptr), shape=X.shape)
