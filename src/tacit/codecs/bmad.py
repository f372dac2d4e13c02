"""MLC-BMaD: codes are groups of labels, by Boolean matrix decomposition.

    Y ≈ Z ∘ B,  y_il = OR_j (z_ij AND b_jl):  row i has label l if one of its groups j does      (1)

Groups are taken greedily (ASSO). The candidates are the rows of A, A_il = 1 if at least the share τ
of the rows with label i have l too. A row gains from a group the ones that it newly covers less
such zeros, and has it if that is more than 0; the candidate of the largest sum of gains over the
rows that have it is next. With M = 1 for a one not covered yet, -1 for such a zero, and 0 for what
is covered, all gains are M Aᵀ. A step changes only those of the rows that took the last group from
candidates that share a label with it.

A label scores what the best of its groups does, max_j ẑ_j b_jl, so that it passes 0.5 if one of
them does.

References: J. Wicker, B. Pfahringer and S. Kramer. Multi-label classification using Boolean matrix
decomposition. ACM SAC 2012. P. Miettinen, T. Mielikäinen, A. Gionis, G. Das and H. Mannila. The
discrete basis problem. IEEE TKDE 20(10), 2008.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.codecs.code import weights_by_rows
from tacit.codecs.codec_data import CodecData
from tacit.labels import check_dense

__all__ = ["BMaD"]


@dataclass(frozen=True)
class GroupCode:
    """z_ij = 1 if row i gains from group j, after those before it; H = Bᵀ."""

    H: Array

    def encode(self, b: Block) -> Array:
        M, B = _signs(b.Y.scipy()), b.backend.to_numpy(self.H).T
        Z = np.empty((len(B), M.shape[1]), B.dtype)
        for z, group in zip(Z, map(np.flatnonzero, B)):
            z[:] = M[group].sum(axis=0) > 0
            M[np.ix_(group, z > 0)] = 0
        return b.backend.asarray(np.ascontiguousarray(Z.T))

    def weights(self, training: CodecData, reg: float) -> Array:
        return weights_by_rows(self, training, reg)


@dataclass(frozen=True)
class BMaD:
    tau: float = 0.5

    def learn(self, training: CodecData, rank: int, reg: float) -> GroupCode:
        Y = sp.vstack(training.blocks.sum(_listed), format="csr")
        for shape in (Y.shape, (Y.shape[1],) * 2):
            check_dense(shape, "the labels of MLC-BMaD", 'codec="cplst" or codec="rembed"')
        A, M = _associations(Y, self.tau), _signs(Y)
        gains = sp.csr_array(A) @ M
        totals = _positive(gains)
        chosen: list[int] = []  # one at least, since a model has codes; then while anybody gains
        while len(chosen) < min(rank, len(A)) and (totals.any() or not chosen):
            best = int(np.argmax(totals))
            chosen.append(best)
            group, takers = np.flatnonzero(A[best]), np.flatnonzero(gains[best] > 0)
            near = np.flatnonzero(A[:, group].any(axis=1))
            old = gains[np.ix_(near, takers)]
            new = old - A[np.ix_(near, group)] @ M[np.ix_(group, takers)]
            gains[np.ix_(near, takers)] = new
            totals[near] += _positive(new) - _positive(old)
            M[np.ix_(group, takers)] = 0
        return GroupCode(training.backend.asarray(A[chosen].T.astype(training.dtype)))

    def decode(self, codes: Array, H: Array) -> Array:
        """max_j ẑ_j b_jl, and 0 at least."""
        xp = array_namespace(codes)
        scores = xp.zeros((len(codes), len(H)), dtype=codes.dtype, device=codes.device)
        for j in range(H.shape[1]):
            group = xp.nonzero(H[:, j])[0]
            scores[:, group] = xp.maximum(scores[:, group], codes[:, j : j + 1])
        return scores


def _listed(b: Block) -> list[sp.csr_array]:
    """A list of one: lists add to longer ones."""
    return [b.Y.scipy()]


def _associations(Y: sp.csr_array, tau: float) -> np.ndarray:
    Y = Y.astype(np.float64)
    together = (Y.T @ Y).toarray()
    # Divided, since multiplied by τ, 7 of 25 were less than 0.28: 0.28 × 25 is more than 7.
    shares = together / np.maximum(np.diagonal(together), 1)[:, None]
    return (shares >= tau).astype(np.float32)


def _signs(Y: sp.csr_array) -> np.ndarray:
    """Mᵀ of no groups, labels first: 1 for what a row says and -1 for the rest."""
    M = Y.T.astype(np.float32).toarray(order="C")
    M *= 2
    M -= 1
    return M


def _positive(gains: np.ndarray) -> np.ndarray:
    """The sum of the positive gains of each candidate: whole numbers, so nothing is rounded."""
    return np.maximum(gains, 0).sum(axis=1, dtype=np.float64)
