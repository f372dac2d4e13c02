"""TRON: trust-region Newton for a convex f, given its value, gradient and Hessian products.

At w, conjugate gradients (Steihaug 1983) minimise the model gᵀs + ½ sᵀ∇²f(w)s inside ‖s‖ ≤ Δ, up
to the residual 0.1 ‖g‖ or the edge of the region. The step is taken if f falls by at least η₀ of
what the model foretold, and Δ grows or shrinks with that share. The constants and rules are those
of Lin and Moré (1999), as in LIBLINEAR. Two things differ from LIBLINEAR, since here the solver
runs again and again inside an alternation: it starts where it is told to, not at 0, and it stops
at a gradient norm given from outside, not relative to its own start, which would never be met.

Many problems are solved at once: `f.axis` is the axis of w along which the variables of one
problem run, and each problem has its own region, step and verdict. The products serve all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from array_api_compat import array_namespace

from tacit.engines.solvers.cg import ratio

__all__ = ["Minimised", "Objective", "tron"]

_ETA = (1e-4, 0.25, 0.75)
_SIGMA = (0.25, 0.5, 4.0)
_FORCING = 0.1  # how well the model is minimised, relative to ‖g‖


class Objective(Protocol):
    """f: the values have one entry a problem, in an array that broadcasts against w."""

    @property
    def axis(self) -> int | None: ...
    def values(self, w: Any) -> Any: ...
    def grad(self, w: Any) -> Any: ...
    def hessp(self, w: Any) -> Callable[[Any], Any]: ...


class Minimised(NamedTuple):
    """Where it stopped, f there (one value a problem), and how many Hessian products it took."""

    w: Any
    values: Any
    n_products: int


def tron(f: Objective, w: Any, *, gtol: Any, max_iter: int, cg_max_iter: int) -> Minimised:
    """Minimise f from w until ‖∇f‖ ≤ gtol in every problem, or `max_iter` steps were tried."""
    xp = array_namespace(w)
    dot = lambda u, v: xp.sum(u * v, axis=f.axis, keepdims=True)
    value, g, n_products = f.values(w), f.grad(w), 0
    size = xp.sqrt(dot(g, g))
    radius, rounding = size, xp.finfo(w.dtype).eps
    done = size <= gtol
    for iteration in range(max_iter):
        if bool(xp.all(done)):
            break
        s, r, products = _steihaug(f.hessp(w), g, radius, done, dot, cg_max_iter)
        n_products += products
        gs, length = dot(g, s), xp.sqrt(dot(s, s))
        foretold = -0.5 * (gs - dot(s, r))
        tried = f.values(w + s)
        actual = value - tried
        if iteration == 0:
            radius = xp.minimum(radius, length)
        # Values are float64 whatever w is; a radius of theirs would widen the step, and then w.
        radius = xp.astype(_next_radius(radius, length, gs, actual, foretold), w.dtype)
        taken = (actual > _ETA[0] * foretold) & ~done
        # Below the rounding of f its changes say nothing, so that is where a problem ends too.
        lost = (abs(actual) <= rounding * abs(value)) & (foretold <= rounding * abs(value))
        w, value = xp.where(taken, w + s, w), xp.where(taken, tried, value)
        if bool(xp.any(taken)):
            g = f.grad(w)
        done = done | lost | (xp.sqrt(dot(g, g)) <= gtol)
    return Minimised(w, value, n_products)


def _steihaug(
    hessp: Callable, g: Any, radius: Any, done: Any, dot: Callable, max_iter: int
) -> tuple[Any, Any, int]:
    """The step s inside the region, its residual r = -g - ∇²f s, and the number of products."""
    xp = array_namespace(g)
    s, r = xp.zeros_like(g), -g
    d, rr = r, dot(r, r)
    stop, going, n_products = _FORCING**2 * rr, ~done, 0
    while n_products < max_iter and bool(xp.any(going)):
        Hd = hessp(d)
        n_products += 1
        alpha = ratio(rr, dot(d, Hd))
        ss, sd, dd = dot(s, s), dot(s, d), dot(d, d)
        leaves = ss + 2 * alpha * sd + alpha**2 * dd > radius**2
        room = xp.clip(radius**2 - ss, min=0.0)
        root = xp.sqrt(sd**2 + dd * room)
        # Two forms of the positive root of ‖s + τ d‖ = Δ, each exact where the other cancels.
        edge = xp.where(sd >= 0, ratio(room, sd + root), ratio(root - sd, dd))
        step = xp.where(going, xp.where(leaves, edge, alpha), xp.zeros_like(alpha))
        s, r = s + step * d, r - step * Hd
        rr, rr_old = dot(r, r), rr
        going = going & ~leaves & (rr > stop)
        d = r + ratio(rr, rr_old) * d
    return s, r, n_products


def _next_radius(radius: Any, length: Any, gs: Any, actual: Any, foretold: Any) -> Any:
    xp = array_namespace(radius)
    low, half, high = _SIGMA
    excess = -actual - gs  # f(w + s) - f(w) - gᵀs
    alpha = xp.where(excess > 0, xp.clip(ratio(-0.5 * gs, excess), min=low), high + 0 * excess)
    reach = alpha * length
    return xp.where(
        actual < _ETA[0] * foretold,
        xp.minimum(reach, half * radius),
        xp.where(
            actual < _ETA[1] * foretold,
            xp.maximum(low * radius, xp.minimum(reach, half * radius)),
            xp.where(
                actual < _ETA[2] * foretold,
                xp.maximum(low * radius, xp.minimum(reach, high * radius)),
                xp.maximum(radius, xp.minimum(reach, high * radius)),
            ),
        ),
    )
