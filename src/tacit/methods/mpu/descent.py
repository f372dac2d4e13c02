"""Stochastic gradient descent for all labels at once: AdaGrad on mini-batches.

With R = p ∘ (σ(F) - y) the derivative of the loss in the scores F = X_b W of a batch,

    G = X_bᵀ R + λ D_b W,     S ← S + G²,    W ← W - ρ G / (√S + ε),   entry by entry,

one product with X_b and one with its transpose for all labels. Features that no row of the batch
has are neither read nor written. So that the penalty is as lazy, it is shared out among the rows
that have the feature, ½λ‖W‖² = Σ_i Σ_{j ∈ x_i} ½ (λ/n_j) ‖w_j‖² with n_j their number: D_b is
diagonal, the share n_jb / n_j of them that are in the batch, and a pass adds up to λW.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block, pieces
from tacit.basics.numerics import cache_sized, inner
from tacit.engines.descend import State
from tacit.engines.exposure import with_noes

__all__ = ["Descent", "feature_counts"]

_FLOPS = 100  # about so many times more work for a score than for an entry laid out


@dataclass(frozen=True)
class Descent:
    """AdaGrad of step size ρ (`rate`) with penalty λ (`reg`); `counts` are the n_j."""

    rate: float
    reg: float
    counts: Array

    def epoch(self, state: State, batches: Iterable[Block], c: Array) -> tuple[State, float]:
        """One update a batch, in place, and the penalised loss, of each batch when it was met."""
        loss = sum(self.update(state, b, c) for b in batches)  # on the device until here
        return state, float(loss) + 0.5 * self.reg * _squares(state["W"])

    def update(self, state: State, b: Block, c: Array) -> Array:
        """Change `state` by a batch, and return the loss of the batch before that."""
        # A batch is small: threads that BLAS leaves spinning would cost more than they bring.
        [loss] = b.backend.parallel_map(lambda b: self._updated(state["W"], state["W²"], b, c), [b])
        return loss

    def _updated(self, W: Array, S: Array, b: Block, c: Array) -> Array:
        R, loss = residual(W, b, c)
        for part, rows in b.features():
            self._step(W[rows], S[rows], part, R, self.counts[rows], b)
        return loss

    def _step(self, W: Array, S: Array, part: Any, R: Array, counts: Array, b: Block) -> None:
        decay = self.reg * _present(part, W) / array_namespace(W).clip(counts, min=1.0)
        if not isinstance(part, Sparse):
            G = b.backend.spmm_t(part, R) + decay[:, None] * W
            b.backend.adagrad(W, S, G, self.rate)
            return
        features, columns = part.transposed.occupied
        b.backend.adagrad_spmm(W, S, columns, R, self.rate, features, decay[features])


def residual(W: Array, b: Block, c: Array) -> tuple[Array, Array]:
    """R = p ∘ (σ(F) - y), and minus the log-likelihood."""
    n_labels = b.Y.shape[1]
    xp = array_namespace(W)
    S, y = (b.Y, None) if b.omega is None else (b.omega, b.y)
    rates = with_noes(b, lambda rows: c)

    def piece(rows: slice) -> tuple[Array, Array]:
        F = b.some(rows).project(W)
        found = b.backend.exposed(F, rates(rows), S, y, rows, None, None)
        return -found.residual, -xp.sum(found.rows[0], dtype=xp.float64)

    parts, losses = zip(*b.backend.parallel_map(piece, pieces(b, n_labels, _FLOPS)))
    return parts[0] if len(parts) == 1 else xp.concat(list(parts)), sum(losses)


def _squares(W: Array) -> float:
    return sum(inner(W[rows], W[rows]) for rows in cache_sized(W))


def feature_counts(b: Block, like: Array) -> Array:
    """How many rows of a batch have each feature."""
    return array_namespace(like).concat([_present(part, like) for part, _ in b.features()])


def _present(part: Any, like: Array) -> Array:
    xp = array_namespace(like)
    if isinstance(part, Sparse):
        return xp.astype(xp.diff(part.transposed.indptr), like.dtype)
    return xp.sum(xp.astype(part != 0, like.dtype), axis=0)
