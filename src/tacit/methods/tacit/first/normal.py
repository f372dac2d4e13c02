"""The normal equations of ridge regression: XᵀVX and XᵀY, or what they are in eigenvectors.

V is 1 where a row says something and a little weight where it says nothing. Of more features than
rows the eigenvectors of XᵀVX are had from those of XXᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.moments import Moments
from tacit.engines.solvers import inverse_root
from tacit.methods.tacit.deal import SomeRows
from tacit.methods.tacit.limits import Limits

__all__ = ["Normal", "silent", "weighed"]

_LARGE = 512  # features


@dataclass(frozen=True)
class Normal:
    """XᵀVX and XᵀY of some rows, or the eigenvectors of XᵀVX that the rows span."""

    xx: Array | None
    xy: Array
    mean: float
    eigen: tuple[Array, Array] | None

    @classmethod
    def of(cls, rows: SomeRows, weight: float, spectrum: bool, limits: Limits) -> Normal:
        """Those of scaled rows; the eigenvectors too where they are asked for."""
        d, heard = rows.n_features, weighed(rows.blocks, weight)
        if rows.n_samples < d and rows.n_samples <= limits.exact_rows:
            return _from_rows(heard, rows.backend)
        moments = Moments.of(heard, label_gram=False)
        xx, xp = moments.xx, array_namespace(moments.xx)
        mean = float(xp.linalg.trace(xx)) / d
        if not spectrum:
            return cls(xx, moments.xy, mean, None)
        if d > _LARGE:  # float32 is enough for eigenvectors that (1) shrinks, and twice as fast
            xx = xp.astype(xx, xp.float32)
        g, Q = xp.linalg.eigh(xx)
        return cls(None, moments.xy, mean, (xp.clip(g, min=mean * 1e-12), Q))

    def root(self, reg: float, power: float) -> Array:
        """F with F Fᵀ = (XᵀVX + λP)⁻¹ for P = (XᵀVX / mean eigenvalue)^(-power)."""
        if self.eigen is None:
            return inverse_root(self.shifted(reg))
        return self.eigen[1] * self.shrunk(reg, power)[None, :]

    def shifted(self, reg: float) -> Array:
        """XᵀVX + λI."""
        assert self.xx is not None
        G, diagonal = array_namespace(self.xx).asarray(self.xx, copy=True), np.arange(len(self.xx))
        G[diagonal, diagonal] += reg
        return G

    def shrunk(self, reg: float, power: float) -> Array:
        """√(q / (g q + λ)) of the eigenvectors."""
        assert self.eigen is not None
        g = self.eigen[0]
        q = (g / self.mean) ** power if power else array_namespace(g).ones_like(g)
        return array_namespace(g).sqrt(q / (g * q + reg))

    def cast(self, dtype: Any) -> Normal:
        """The same in another float type."""
        to = lambda M: None if M is None else array_namespace(M).astype(M, dtype)
        eigen = None if self.eigen is None else (to(self.eigen[0]), to(self.eigen[1]))
        return Normal(to(self.xx), to(self.xy), self.mean, eigen)


def weighed(blocks: Blocks, weight: float) -> Blocks:
    """The rows that say nothing at their little weight in XᵀX."""
    return blocks.map(_weighed, weight) if weight < 1 else blocks


def _from_rows(heard: Blocks, backend: Backend) -> Normal:
    """Of more features than rows: the eigenvectors of XᵀVX are Xᵀ times those of XXᵀ."""
    X, Y = zip(*heard.sum(_listed))
    X, Y = (sp.vstack(part, format="csr").astype(np.float32) for part in (X, Y))
    K = (X @ X.T).toarray()
    g, U = np.linalg.eigh(K if len(K) > _LARGE else K.astype(np.float64))
    spanned = g > g[-1] * len(g) * np.finfo(g.dtype).eps
    g, U = g[spanned], U[:, spanned]
    Q = (X.T @ U) / np.sqrt(g)
    mean, place = float(g.sum()) / X.shape[1], backend.asarray
    return Normal(None, place((X.T @ Y).toarray()), mean, (place(g), place(Q)))


def _weighed(b: Block, weight: float) -> Block:
    """The block with the rows that say nothing at their little weight in XᵀX."""
    nothing = silent(b)
    xp = array_namespace(nothing)
    light = xp.asarray(weight**0.5, dtype=xp.float64, device=nothing.device)
    return b.weighted(xp.where(nothing, light, xp.ones_like(light)))


def silent(b: Block) -> Array:
    """The rows of which nothing was said."""
    return b.Y.indptr[1:] == b.Y.indptr[:-1]


def _listed(b: Block) -> list[tuple[sp.csr_array, sp.csr_array]]:
    """A list of one: lists add to longer ones."""
    X = b.X.scipy() if isinstance(b.X, Sparse) else sp.csr_array(b.backend.to_numpy(b.X))
    return [(X, b.Y.scipy())]
