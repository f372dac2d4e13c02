"""The regularised risk of a linear map: the one objective that the solvers see.

    f(w)      = Σ_b Σ_{e ∈ Ω_b} ℓ(y_e, (𝒜_b w)_e) + ½ λ ‖w‖²
    ∇f(w)     = Σ_b 𝒜_bᵀ ℓ'(y, 𝒜_b w) + λ w
    ∇²f(w) v  = Σ_b 𝒜_bᵀ (ℓ''(y, 𝒜_b w) ⊙ 𝒜_b v) + λ v

A method chooses the map 𝒜; the blocks b of rows may sit in memory, on disk or on many machines.
Where the map couples nothing but the entries of one label, f is a sum of independent problems, one
a label, and `values` gives each its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.losses import Loss

__all__ = ["LinearMap", "Risk"]


class LinearMap(Protocol):
    """A linear map to the observed entries of one block of rows.

    Where each label is a problem of its own, `totals` sums numbers on those entries by label, in
    the shape of one number a problem.
    """

    block: Block

    def forward(self, w: Array) -> Array: ...
    def adjoint(self, g: Array) -> Array: ...
    def totals(self, e: Array) -> Array: ...


@dataclass(frozen=True)
class Risk:
    """f above, from blocks of linear maps, a loss ℓ and the weight λ.

    `axis` is the axis of w along which the variables of one problem run; None is one problem.
    """

    maps: Blocks
    loss: Loss
    reg: float
    axis: int | None = None

    def value(self, w: Array) -> float:
        xp = array_namespace(w)
        return float(xp.sum(self.values(w)))

    def values(self, w: Array) -> Array:
        """The value of each problem, in float64, in an array that broadcasts against w."""
        xp = array_namespace(w)
        squares = xp.sum(w * w, axis=self.axis, keepdims=True, dtype=xp.float64)
        return self.maps.sum(_values, self.loss, w, self.axis) + 0.5 * self.reg * squares

    def grad(self, w: Array) -> Array:
        return self.maps.sum(_grad, self.loss, w) + self.reg * w

    def hessp(self, w: Array) -> Callable[[Array], Array]:
        """The map v ↦ ∇²f(w) v. The curvature is computed once and stays with its rows."""
        curved = self.maps.map(_curve, self.loss, w)
        return lambda v: curved.sum(_product, v) + self.reg * v


def _values(m: LinearMap, loss: Loss, w: Array, axis: int | None) -> Array:
    losses = loss.value(m.block.y, m.forward(w))
    xp = array_namespace(losses)
    losses = xp.astype(losses, xp.float64)
    return xp.sum(losses)[None, None] if axis is None else m.totals(losses)


def _grad(m: LinearMap, loss: Loss, w: Array) -> Array:
    return m.adjoint(loss.grad(m.block.y, m.forward(w)))


def _curve(m: LinearMap, loss: Loss, w: Array) -> tuple[LinearMap, Array]:
    return m, loss.hess(m.block.y, m.forward(w))


def _product(curved: tuple[LinearMap, Array], v: Array) -> Array:
    m, curvature = curved
    return m.adjoint(curvature * m.forward(v))
