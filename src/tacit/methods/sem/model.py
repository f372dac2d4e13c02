"""What SEM and SEM-K leave behind: a code σ(Wᵀx), and the softmax or the kernel head upon it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, pieces
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_float
from tacit.models.model import Model, check_shape

__all__ = ["KernelHead", "Softmax", "lift"]

_count, _ = a_float(at_least=0)


@dataclass(frozen=True, eq=False)
class Softmax(Model):
    """Scores are log p_ij, and a label is true with probability min(1, ℓ̄ p_ij).

    Attributes
    ----------
    W : ndarray of shape (n_features, rank)
    H : ndarray of shape (n_labels, rank + 2)
        [V, b, 1]: the codes are [U, 1, -log Σ exp h].
    label_count : float
        ℓ̄, the mean number of labels of the rows that have any.
    """

    W: np.ndarray
    H: np.ndarray
    label_count: float

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
        return sigmoid(block.project(block.backend.kept(self.W)))

    def factors(self, block: Block) -> tuple[Array, Array]:
        U = self.codes(block)
        xp, H = array_namespace(U), block.backend.asarray(self.H)
        V, b = H[:, :-2], H[:, -2]
        total = lambda rows: block.backend.log_sum_exp(U[rows] @ V.T, b)
        totals = xp.concat(block.backend.parallel_map(total, pieces(block, V.shape[0])))
        one = xp.ones((U.shape[0], 1), dtype=U.dtype, device=U.device)
        return xp.concat([U, one, -totals[:, None]], axis=1), block.backend.kept(self.H)

    def probability(self, scores: Array) -> Array:
        xp = array_namespace(scores)
        return xp.clip(self.label_count * xp.exp(scores), max=1.0)

    def numbers(self) -> dict[str, Any]:
        return {"label_count": self.label_count}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W": self.W, "H": self.H}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        count = numbers["label_count"]
        if not _count(count):
            raise ValueError(f"its label_count is {count!r}")
        W = check_shape("W", arrays.get("W"), n_weights, None)
        return cls(W, check_shape("H", arrays.get("H"), n_labels, W.shape[1] + 2), float(count))


@dataclass(frozen=True, eq=False)
class KernelHead(Model):
    """Scores are those of a logistic model on random features ψ(x) of the code Wᵀx.

    Attributes
    ----------
    W : ndarray of shape (n_features, rank)
    H : ndarray of shape (n_labels, n_components + 1)
        Z, with the intercepts as last column.
    frequencies, phases : ndarray of shape (rank, n_components), (n_components,)
        Φ and θ.
    label_count : float
        As that of `Softmax`; no part of the scores.
    """

    W: np.ndarray
    H: np.ndarray
    frequencies: np.ndarray
    phases: np.ndarray
    label_count: float

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
        return block.project(block.backend.kept(self.W))

    def factors(self, block: Block) -> tuple[Array, Array]:
        raised = lift(block.backend, self.frequencies, self.phases)(self.codes(block))
        return raised, block.backend.kept(self.H)

    def probability(self, scores: Array) -> Array:
        return sigmoid(scores)

    def numbers(self) -> dict[str, Any]:
        return {"label_count": self.label_count}

    def arrays(self) -> dict[str, np.ndarray | None]:
        names = ("W", "H", "frequencies", "phases")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        count = numbers["label_count"]
        if not _count(count):
            raise ValueError(f"its label_count is {count!r}")
        phases = check_shape("phases", arrays.get("phases"), None)
        W = check_shape("W", arrays.get("W"), n_weights, None)
        return cls(
            W,
            check_shape("H", arrays.get("H"), n_labels, len(phases) + 1),
            check_shape("frequencies", arrays.get("frequencies"), W.shape[1], len(phases)),
            phases,
            float(count),
        )


def lift(backend: Any, frequencies: np.ndarray, phases: np.ndarray) -> Callable[[Array], Array]:
    """Codes Wᵀx ↦ [ψ(x), 1], with ψ(x) = √(2/s) cos(Φᵀ Wᵀx + θ)."""
    Phi, theta = backend.asarray(frequencies), backend.asarray(phases)
    scale = (2 / theta.shape[0]) ** 0.5

    def raised(A: Array) -> Array:
        xp = array_namespace(A)
        one = xp.ones((A.shape[0], 1), dtype=A.dtype, device=A.device)
        return xp.concat([scale * xp.cos(A @ Phi + theta), one], axis=1)

    return raised
