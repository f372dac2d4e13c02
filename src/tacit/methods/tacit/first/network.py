"""A network of one hidden layer, which shares what it learns among all labels.

    U = max(0, XW),  Z = U Vᵀ + 1bᵀ,  Σ log-loss of what is known, half the units silent       (1)

by AdaGrad on mini-batches (`tacit.engines.network`; Nam et al. 2014). Rows that say nothing are
left out. It sees what no linear model does: features that tell only together, and labels that
share a cause. Two cores take some `Limits.flops` operations a second.

**Cost** of a pass: 6 (n L + nnz) × 300 operations. It wants all rows in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.backends.block import Block
from tacit.engines.descend import Loop
from tacit.engines.network import Network
from tacit.methods.tacit.deal import SomeRows
from tacit.models.hidden_layer import HiddenLayer

__all__ = ["FirstNetwork", "telling"]


@dataclass(frozen=True)
class FirstNetwork:
    """(1), as it did well on the board of missing labels."""

    rank: int = 300
    passes: int = 15
    rate: float = 0.03
    dropout: float = 0.5
    batch_size: int = 200
    seed: int = 0

    def seconds(self, n: float, n_labels: int, entries: float, flops: float) -> float:
        """What a fit takes."""
        return self.passes * 6 * self.rank * (n * n_labels + entries) / flops

    def fit(self, rows: SomeRows) -> HiddenLayer:
        """The network of these scaled rows, of which some are known to say nothing."""
        those = replace(rows, blocks=rows.blocks.map(telling))
        problem = those.as_problem(Loop("network", self.passes, -np.inf), self.seed)
        network = Network("relu", "logistic", self.rate, dropout=self.dropout)
        state, _ = network.fitted(problem, self.rank, self.batch_size)
        W, V, b = (rows.to_host(state[name]) for name in ("W", "V", "b"))
        return HiddenLayer(W, np.hstack([V, b[:, None]]))


def telling(b: Block) -> Block:
    """The rows that say something; of masked labels, of which something is known."""
    said = b.Y if b.omega is None else b.omega
    pointer = b.backend.to_numpy(said.indptr)
    return b.rows(b.backend.asarray(np.flatnonzero(np.diff(pointer))))
