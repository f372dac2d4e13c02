"""Pointwise losses ℓ(y, z) of a label y ∈ {0, 1} and a score z.

A loss knows nothing of features, sparsity, devices or blocks: it maps two arrays of one shape to
a third, through the array namespace of its input. That is why each one is written once.

    ============= ============================ =============== ==================== ===============
    name          ℓ(y, z)                      ∂ℓ/∂z           ∂²ℓ/∂z²              P(y = 1 | z)
    ============= ============================ =============== ==================== ===============
    squared       ½ (z - y)²                   z - y           1                    z, cut to [0, 1]
    logistic      log(1 + exp(-t z))           σ(z) - y        σ(z) (1 - σ(z))      σ(z)
    ============= ============================ =============== ==================== ===============

with t = 2y - 1 ∈ {-1, +1} and σ the logistic function.
"""

from __future__ import annotations

from typing import Any, Protocol

from array_api_compat import array_namespace

from tacit.numerics import sigmoid, softplus

__all__ = ["LOSSES", "Logistic", "Loss", "Squared"]

Array = Any  # an array of the backend: numpy.ndarray or torch.Tensor


class Loss(Protocol):
    """What an objective, a solver and a model may ask of a loss."""

    def value(self, y: Array, z: Array) -> Array: ...
    def grad(self, y: Array, z: Array) -> Array: ...
    def hess(self, y: Array, z: Array) -> Array: ...
    def probability(self, z: Array) -> Array: ...


class Squared:
    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * (z - y) ** 2

    def grad(self, y: Array, z: Array) -> Array:
        return z - y

    def hess(self, y: Array, z: Array) -> Array:
        return array_namespace(z).ones_like(z)

    def probability(self, z: Array) -> Array:
        return array_namespace(z).clip(z, min=0.0, max=1.0)


class Logistic:
    def value(self, y: Array, z: Array) -> Array:
        return softplus(z) - y * z

    def grad(self, y: Array, z: Array) -> Array:
        return sigmoid(z) - y

    def hess(self, y: Array, z: Array) -> Array:
        p = sigmoid(z)
        return p * (1 - p)

    def probability(self, z: Array) -> Array:
        return sigmoid(z)


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}
