"""Pointwise losses ℓ(y, z) of a label y ∈ {0, 1} and a score z.

A loss knows nothing of features, sparsity, devices or blocks: it maps two arrays of one shape to
a third, through the array namespace of its input. That is why each one is written once.

    ============= ==================== =================== =================== =====================
    name          ℓ(y, z)              ∂ℓ/∂z               ∂²ℓ/∂z² (≤ bound)   P(y = 1 | z)
    ============= ==================== =================== =================== =====================
    squared       ½ (z - y)²           z - y               1                   z, cut to [0, 1]
    logistic      log(1 + exp(-t z))   σ(z) - y            σ(z) σ(-z) (≤ ¼)    σ(z)
    squared_hinge ½ max(0, 1 - t z)²   -t max(0, 1 - t z)  1 where t z < 1     (1+z)/2, in [0, 1]
    pu            -log P(s = y)        p (σ(z) - y)        p σ(z) σ(-z) (≤ ¼)  σ(z)
    ============= ==================== =================== =================== =====================

with t = 2y - 1 ∈ {-1, +1} and σ the logistic function. The squared hinge has no second derivative
at t z = 1; the generalised one above is what Newton's method uses. Its minimiser at a point where
P(y = 1) = p is z = 2p - 1, which is where its probability comes from.

`pu` is `PositiveUnlabelled(c)`: saying has P(s = 1) = c σ(z), and silence 1 - c σ(z); p is the
probability that silence comes from somebody who would have spoken, c σ(-z) / (1 - c σ(z)), and 1
where something was said. Of its y ∈ {-1, 0, 1}, 0 is silence and -1 a said no: c is 1 there.
"""

from __future__ import annotations

from typing import Any, Protocol

from array_api_compat import array_namespace

from tacit.basics.numerics import sigmoid, softplus

__all__ = [
    "LOSSES",
    "Logistic",
    "Loss",
    "PositiveUnlabelled",
    "Probability",
    "Squared",
    "SquaredHinge",
]

Array = Any  # an array of the backend: numpy.ndarray or torch.Tensor


class Probability(Protocol):
    """What a model may ask: how likely a label of score z is true."""

    def probability(self, z: Array) -> Array: ...


class Loss(Probability, Protocol):
    """What an objective, a solver and a model may ask of a loss; `bound` is that of ∂²ℓ/∂z²."""

    bound: float

    def value(self, y: Array, z: Array) -> Array: ...
    def grad(self, y: Array, z: Array) -> Array: ...
    def hess(self, y: Array, z: Array) -> Array: ...


class Squared:
    bound = 1.0

    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * (z - y) ** 2

    def grad(self, y: Array, z: Array) -> Array:
        return z - y

    def hess(self, y: Array, z: Array) -> Array:
        return array_namespace(z).ones_like(z)

    def probability(self, z: Array) -> Array:
        return array_namespace(z).clip(z, min=0.0, max=1.0)


class Logistic:
    bound = 0.25

    def value(self, y: Array, z: Array) -> Array:
        return softplus(z) - y * z

    def grad(self, y: Array, z: Array) -> Array:
        return sigmoid(z) - y

    def hess(self, y: Array, z: Array) -> Array:
        p = sigmoid(z)
        return p * (1 - p)

    def probability(self, z: Array) -> Array:
        return sigmoid(z)


class PositiveUnlabelled:
    """MPU's loss for s ∈ {0, 1}, in a form that neither overflows nor forgets the silence.

        s = 1:  softplus(-z) - log c,      s = 0:  softplus(z) - softplus(z + log(1 - c)),
        s = -1, a said no:  softplus(z).

    Not convex where z > -½ log(1 - c): its `hess` is the curvature of the bound that EM climbs
    (p held fixed), which is never negative and never less than the second derivative.
    """

    bound = 0.25

    def __init__(self, c: Array, *, noes: bool = False):
        self.c = c  # a number, or an array that broadcasts against z: one a label
        self.noes = noes  # whether any y is -1

    def value(self, y: Array, z: Array) -> Array:
        y, c, shift = self._read(y, z)
        said = softplus(-z) - array_namespace(z).log(c)
        return y * said + (1 - y) * (softplus(z) - softplus(z + shift))

    def grad(self, y: Array, z: Array) -> Array:
        y, _, shift = self._read(y, z)
        return sigmoid(z) - y - (1 - y) * sigmoid(z + shift)

    def hess(self, y: Array, z: Array) -> Array:
        y, c, shift = self._read(y, z)
        p = y + (1 - y) * c * sigmoid(-z - shift)
        q = sigmoid(z)
        return p * q * (1 - q)

    def probability(self, z: Array) -> Array:
        return sigmoid(z)

    def _read(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """y with 0 for a no, c and log(1 - c), that of 1 so small that it makes no difference."""
        xp = array_namespace(z)
        c = xp.asarray(self.c, dtype=z.dtype, device=z.device)
        if self.noes:
            c, y = xp.where(y < 0, xp.ones_like(c), c), xp.clip(y, min=0.0)
        return y, c, xp.log(xp.clip(1 - c, min=float(xp.finfo(z.dtype).tiny)))


class SquaredHinge:
    bound = 1.0

    def value(self, y: Array, z: Array) -> Array:
        return 0.5 * self._gap(y, z) ** 2

    def grad(self, y: Array, z: Array) -> Array:
        return (1 - 2 * y) * self._gap(y, z)

    def hess(self, y: Array, z: Array) -> Array:
        return array_namespace(z).astype(self._gap(y, z) > 0, z.dtype)

    def probability(self, z: Array) -> Array:
        return array_namespace(z).clip(0.5 * (1 + z), min=0.0, max=1.0)

    def _gap(self, y: Array, z: Array) -> Array:
        return array_namespace(z).clip(1 - (2 * y - 1) * z, min=0.0)


LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
}
