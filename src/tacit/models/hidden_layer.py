"""One hidden layer of rectified units, and a sigmoid for each label: what a network is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.models.explanation import Contributions, of_features
from tacit.models.model import Model, check_shape

__all__ = ["HiddenLayer"]


@dataclass(frozen=True, eq=False)
class HiddenLayer(Model):
    """Scores max(0, XW) Vᵀ + 1bᵀ, with H = [V, b]."""

    W: np.ndarray
    H: np.ndarray

    @property
    def n_labels(self) -> int:
        return len(self.H)

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    def codes(self, block: Block) -> Array:
        A = block.project(block.backend.kept(self.W))
        return array_namespace(A).clip(A, min=0.0)

    def factors(self, block: Block) -> tuple[Array, Array]:
        U = self.codes(block)
        xp = array_namespace(U)
        one = xp.ones((U.shape[0], 1), dtype=U.dtype, device=U.device)
        return xp.concat([U, one], axis=1), block.backend.kept(self.H)

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """Of the units that are above 0 in a row: among them alone the network is linear."""
        V = self.H[labels, :-1] * (block.backend.to_numpy(self.codes(block)) > 0)
        amounts = of_features(block, lambda i, at: self.W[at] @ V[i])
        return Contributions({"feature": amounts}, self.H[labels, -1].astype(np.float64))

    def probability(self, scores: Array) -> Array:
        return sigmoid(scores)

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W": self.W, "H": self.H}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        W = check_shape("W", arrays.get("W"), n_weights, None)
        return cls(W, check_shape("H", arrays.get("H"), n_labels, W.shape[1] + 1))
