"""Conjugate gradients for A x = b with A symmetric positive definite, given only v ↦ A v."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from array_api_compat import array_namespace

__all__ = ["Solved", "cg"]


class Solved(NamedTuple):
    """The solution, and how many products with A it took."""

    x: Any
    n_products: int


def cg(
    matvec: Callable[[Any], Any],
    b: Any,
    x: Any = None,
    *,
    rtol: float,
    max_iter: int,
    columns: bool = False,
) -> Solved:
    """Solve A x = b from x until ‖b - A x‖ ≤ rtol ‖b‖.

    Parameters
    ----------
    matvec : callable
        v ↦ A v, for v of the shape of b.
    b, x : array
        The right-hand side and the start; None starts at 0 and saves one product.
    rtol, max_iter : float, int
        When to stop: at this residual, or after this many steps.
    columns : bool, default=False
        A acts on each column of b by itself (A = diag(A_1, …, A_k)): give each column its own step
        sizes and stop when all have converged. One product serves all columns, as before, but each
        column's error now falls at the rate of its own condition number.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.diag([1.0, 10.0])
    >>> cg(lambda v: A @ v, np.ones(2), rtol=1e-12, max_iter=10)
    Solved(x=array([1. , 0.1]), n_products=2)
    """
    xp = array_namespace(b)
    dot = (lambda u, v: xp.sum(u * v, axis=0)) if columns else (lambda u, v: xp.sum(u * v))
    stop = rtol**2 * dot(b, b)
    if x is None:
        x, r, n_products = xp.zeros_like(b), b, 0
    else:
        r, n_products = b - matvec(x), 1
    p, rr = r, dot(r, r)
    for _ in range(max_iter):
        if not bool(xp.any(rr > stop)):
            break
        Ap = matvec(p)
        n_products += 1
        # A column already solved exactly has p = 0: its step is 0/0, to be read as 0.
        step = _ratio(rr, dot(p, Ap), xp)
        x, r = x + step * p, r - step * Ap
        rr, rr_old = dot(r, r), rr
        p = r + _ratio(rr, rr_old, xp) * p
    return Solved(x, n_products)


def _ratio(a: Any, b: Any, xp: Any) -> Any:
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(b))
