"""Conjugate gradients for A x = b with A symmetric positive definite, given only v ↦ A v."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from tacit.basics.numerics import cache_sized

__all__ = ["Solved", "cg", "ratio"]


class Solved(NamedTuple):
    """The solution, and how many products with A it took."""

    x: Any
    n_products: int


def cg(
    matvec: Callable[[Any], Any],
    b: Any,
    x: Any = None,
    *,
    rtol: Any,
    max_iter: int,
    axis: int | None = None,
    dot: Callable[[Any, Any], Any] | None = None,
    precondition: Callable[[Any], Any] | None = None,
) -> Solved:
    """Solve A x = b from x until ‖b - A x‖ ≤ rtol ‖b‖.

    Parameters
    ----------
    matvec : callable
        v ↦ A v, for v of the shape of b.
    b, x : array
        The right-hand side and the start; None starts at 0 and saves one product.
    rtol, max_iter : float, int
        When to stop: at this residual (an array: one a problem), or after this many steps.
    axis : int, default=None
        Solve many problems at once: the variables of each run along this axis of b (0: a column is
        a problem, 1: a row is), and A acts on each by itself. Each has its own step sizes, and all
        must converge. One product serves all, as before, but the error of each now falls at the
        rate of its own condition number.
    dot : callable, default=None
        The inner product of each problem, broadcast to its variables, where they are not an axis.
    precondition : callable, default=None
        r ↦ P r with P symmetric positive definite, close to the inverse of A and cheap.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.diag([1.0, 10.0])
    >>> cg(lambda v: A @ v, np.ones(2), rtol=1e-12, max_iter=10)
    Solved(x=array([1. , 0.1]), n_products=2)
    """
    xp = array_namespace(b)
    chunks = [slice(None)] if dot is not None or axis == 1 else cache_sized(b)
    if dot is None:
        dot = lambda u, v: sum(
            xp.sum(u[rows] * v[rows], axis=axis, keepdims=True) for rows in chunks
        )
    stop = rtol**2 * dot(b, b)
    if x is None:
        x, r, n_products = xp.zeros_like(b), xp.asarray(b, copy=True), 0
    else:
        x, r, n_products = xp.asarray(x, copy=True), b - matvec(x), 1
    z = r if precondition is None else precondition(r)
    p, rr = xp.asarray(z, copy=True), dot(r, r)
    rz = rr if precondition is None else dot(r, z)
    for _ in range(max_iter):
        if not bool(xp.any(rr > stop)):
            break
        Ap = matvec(p)
        n_products += 1
        # A problem already solved exactly has p = 0: its step is 0/0, to be read as 0.
        step = ratio(rz, dot(p, Ap))
        for rows in chunks:  # in place and by chunks, since whole arrays would go through memory
            x[rows] += step * p[rows]
            r[rows] -= step * Ap[rows]
        z = r if precondition is None else precondition(r)
        rr, rz_old = dot(r, r), rz
        rz = rr if precondition is None else dot(r, z)
        turn = ratio(rz, rz_old)
        for rows in chunks:
            p[rows] *= turn
            p[rows] += z[rows]
    return Solved(x, n_products)


def ratio(a: Any, b: Any) -> Any:
    """a / b, or 0 where b is not positive."""
    xp = array_namespace(b)
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(b))
