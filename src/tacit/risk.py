"""The regularised risk of a linear map: the one objective that the solvers see.

    f(w)      = Σ_b Σ_{e ∈ Ω_b} ℓ(y_e, (𝒜_b w)_e) + ½ λ ‖w‖²
    ∇f(w)     = Σ_b 𝒜_bᵀ ℓ'(y, 𝒜_b w) + λ w
    ∇²f(w) v  = Σ_b 𝒜_bᵀ (ℓ''(y, 𝒜_b w) ⊙ 𝒜_b v) + λ v

A method chooses the map 𝒜; the blocks b of rows may sit in memory, on disk or on many machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.losses import Loss
from tacit.numerics import inner

__all__ = ["LinearMap", "Risk"]


class LinearMap(Protocol):
    """A linear map to the observed entries of one block of rows."""

    block: Block

    def forward(self, w: Array) -> Array: ...
    def adjoint(self, g: Array) -> Array: ...


@dataclass(frozen=True)
class Risk:
    """f above, from blocks of linear maps, a loss ℓ and the weight λ."""

    maps: Blocks
    loss: Loss
    reg: float

    def value(self, w: Array) -> float:
        return self.maps.sum(_value, self.loss, w) + 0.5 * self.reg * inner(w, w)

    def grad(self, w: Array) -> Array:
        return self.maps.sum(_grad, self.loss, w) + self.reg * w

    def hessp(self, w: Array) -> Callable[[Array], Array]:
        """The map v ↦ ∇²f(w) v. The curvature is computed once and stays with its rows."""
        curved = self.maps.map(_curve, self.loss, w)
        return lambda v: curved.sum(_product, v) + self.reg * v


def _value(m: LinearMap, loss: Loss, w: Array) -> float:
    losses = loss.value(m.block.y, m.forward(w))
    xp = array_namespace(losses)
    return float(xp.sum(losses, dtype=xp.float64))


def _grad(m: LinearMap, loss: Loss, w: Array) -> Array:
    return m.adjoint(loss.grad(m.block.y, m.forward(w)))


def _curve(m: LinearMap, loss: Loss, w: Array) -> tuple[LinearMap, Array]:
    return m, loss.hess(m.block.y, m.forward(w))


def _product(curved: tuple[LinearMap, Array], v: Array) -> Array:
    m, curvature = curved
    return m.adjoint(curvature * m.forward(v))
