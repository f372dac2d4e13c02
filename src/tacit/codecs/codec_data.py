"""What a codec learns from: rows in blocks and, for whoever asks, their Gram triple.

Where features are more than rows, all of these in one block, for a Gram matrix of the smaller side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from scipy.sparse.linalg import LinearOperator

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block, label_counts
from tacit.blocks import Blocks
from tacit.engines.moments import Equations, Moments, Products
from tacit.engines.problem import Problem
from tacit.engines.solvers import leading_eigenpairs
from tacit.labels import DENSE_LIMIT, check_dense

__all__ = ["CodecData", "gram_triple", "on_host", "stacked"]

_INSTEAD = 'LabelSpaceReduction(codec="rembed") or LEML'


def gram_triple(blocks: Blocks, n_features: int, n_labels: int) -> Moments:
    """The moments of some rows, if they can be laid out."""
    d, L = n_features, n_labels
    for shape, name in (((d, d), "XᵀX"), ((d, L), "XᵀY"), ((L, L), "YᵀY")):
        check_dense(shape, f"the {name} of this codec", _INSTEAD)
    return Moments.of(blocks)


class CodecData:
    """Rows that codes are to be learnt from.

    Parameters
    ----------
    blocks : Blocks of placed rows
        With `centred`, their last feature is the constant one.
    n_features, n_labels : int
        Those of the blocks, the constant feature included.
    centred : bool
        Whether linear codes are of features and labels less their means, which stands for an
        intercept that no penalty sees.
    backend, dtype : Backend, dtype
        Where the blocks are, and their float type.
    rng : RandomState
        For codecs that draw.
    sums : Moments or None
        The moments of the blocks, where somebody has them already.
    rough : bool, default=False
        Find eigenvectors in single precision, in half the time: enough to judge a fold.
    """

    def __init__(
        self,
        blocks: Blocks,
        n_features: int,
        n_labels: int,
        *,
        centred: bool,
        backend: Backend,
        dtype: np.dtype,
        rng: np.random.RandomState,
        sums: Moments | None = None,
        rough: bool = False,
    ):
        self.blocks, self.n_features, self.n_labels = blocks, n_features, n_labels
        self.centred, self.backend, self.dtype, self.rng = centred, backend, dtype, rng
        self.rough = rough
        if sums is not None:
            self.sums = sums

    @classmethod
    def of(
        cls, problem: Problem, centred: bool, sums: Moments | None = None, rough: bool = False
    ) -> Self:
        """The rows of a problem."""
        return cls(
            problem.blocks,
            problem.n_features,
            problem.n_labels,
            centred=centred,
            backend=problem.backend,
            dtype=problem.dtype,
            rng=problem.rng,
            sums=sums,
            rough=rough,
        )

    @cached_property
    def sums(self) -> Moments:
        return gram_triple(self.blocks, self.n_features, self.n_labels)

    @cached_property
    def moments(self) -> Moments:
        """The Gram triple, about the means if `centred`, and then without the constant feature."""
        return self.sums.centred() if self.centred else self.sums

    @cached_property
    def by_rows(self) -> bool:
        """Whether to take a Gram matrix of the rows: it is smaller, or all that can be laid out.

        Sums that somebody has are of rows that the blocks may not be.
        """
        if "sums" in vars(self):
            return False
        n, widest = self.blocks.sum(_n_rows), max(self.n_features, self.n_labels)
        return n * n <= DENSE_LIMIT and (n < self.n_features or widest**2 > DENSE_LIMIT)

    @cached_property
    def rows(self) -> Block:
        """All rows in one block, in any order."""
        X, Y = (stacked(parts) for parts in zip(*self.blocks.sum(_listed)))
        place = self.backend.sparse if sp.issparse(X) else self.backend.asarray
        return Block(place(X), self.backend.sparse(Y, pattern=True), None, None, self.backend)

    @cached_property
    def label_means(self) -> Array:
        if "sums" in vars(self):
            return self.sums.y_sum / self.sums.n
        return self.blocks.sum(label_counts) / self.blocks.sum(_n_rows)

    @cached_property
    def equations(self) -> Equations:
        """Ridge regressions on the features, by conjugate gradients where XᵀX is too large."""
        if self.n_features**2 > DENSE_LIMIT:
            return Products(self.blocks, rtol=1e-4, max_iter=100)
        return Moments.of(self.blocks, cross=False, label_gram=False)

    def leading(self, T: Any, k: int) -> tuple[Array, Array]:
        """The k largest eigenvalues of T, or all if there are fewer, and their eigenvectors."""
        k = min(k, T.shape[0])
        if not self.rough or isinstance(T, LinearOperator):
            return leading_eigenpairs(T, k)
        xp = array_namespace(T)
        w, V = leading_eigenpairs(xp.astype(T, xp.float32), k)
        return xp.astype(w, T.dtype), xp.astype(V, T.dtype)


def on_host(X: Any, backend: Backend) -> Any:
    """Features or labels of a block in SciPy's or NumPy's form."""
    return X.scipy() if isinstance(X, Sparse) else backend.to_numpy(X)


def stacked(parts: Sequence[Any]) -> Any:
    """Rows on the host, one part below the other."""
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    X = sp.csr_array(sp.vstack(parts, format="csr"))
    if X.nnz < 2**31:  # some of scikit-learn's regressors want indices of 32 bits
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _n_rows(b: Block) -> int:
    return b.Y.shape[0]


def _listed(b: Block) -> list[tuple[Any, Any]]:
    """A list of one: lists add to longer ones."""
    return [(on_host(b.X, b.backend), on_host(b.Y, b.backend))]
