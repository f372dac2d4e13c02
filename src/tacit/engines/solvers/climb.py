"""Raise many functions of few variables at once, each with a step of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from array_api_compat import array_namespace

__all__ = ["Climbing", "climb", "leverage", "leverages", "shared_curvature"]

_TRUST = 2.0  # times the mean curvature where a function stands: it may grow within a step
_BACK = 4.0  # times more curvature after a step that went down

Solve = Callable[[Any, Any], Any]


class Climbing(NamedTuple):
    """m functions at a point each: values, slopes (m, k), curvatures, and `more`, carried along."""

    value: Any
    slope: Any
    curvature: Any
    more: Any = None


def shared_curvature(gram: Any, reg: Any) -> Solve:
    """The map (S, c) ↦ the rows (c_i gram + diag(reg))⁻¹ s_i, by one eigendecomposition for all."""
    xp = array_namespace(gram)
    root = xp.sqrt(xp.astype(reg, xp.float64))
    w, Q = xp.linalg.eigh(xp.astype(gram, xp.float64) / root[:, None] / root[None, :])
    out_of, into = Q / root[:, None], xp.clip(w, min=0.0)

    def solve(S: Any, c: Any) -> Any:
        B = xp.astype(out_of, S.dtype)
        return ((S @ B) / (c[:, None] * xp.astype(into, S.dtype) + 1)) @ B.T

    return solve


def climb(
    evaluate: Callable[[Any], Climbing], x: Any, solve: Solve, bound: float, steps: int
) -> tuple[Any, Climbing]:
    """Rows of x, each a point of its own function, after `steps` steps; no function goes down.

    A step is x + (c · gram + diag(reg))⁻¹ slope with one matrix for all functions and a curvature
    c for each. At c = `bound` it cannot go down (Böhning 1992), but for a rare label the bound is
    a hundred times the truth; so c is twice the curvature found where the function stands, and a
    function that went down goes back and tries again with four times more, up to the bound.
    """
    xp = array_namespace(x)
    at = evaluate(x)
    caution = _TRUST * xp.ones_like(at.curvature)
    for _ in range(steps):
        c = xp.clip(caution * at.curvature, max=bound)
        tried = x + solve(at.slope, c)
        new = evaluate(tried)
        better = new.value >= at.value
        x = _chosen(better, tried, x)
        at = Climbing(*(_chosen(better, a, b) for a, b in zip(new, at)))
        caution = xp.where(better, _TRUST * xp.ones_like(caution), _BACK * caution)
    return x, at


def _chosen(better: Any, new: Any, old: Any) -> Any:
    if new is None:
        return None
    xp = array_namespace(new)
    return xp.where(better[:, None] if new.ndim == 2 else better, new, old)


def leverage(gram: Any, dtype: Any) -> Any:
    """The matrix whose quadratic form weighs rows by how much they decide."""
    xp = array_namespace(gram)
    wide = xp.astype(gram, xp.float64)
    eye = xp.eye(gram.shape[0], dtype=xp.float64, device=gram.device)
    return xp.astype(xp.linalg.inv(wide + 1e-3 * eye), dtype)


def leverages(A: Any, lever: Any) -> Any:
    """How much each row of A decides: its quadratic form."""
    return array_namespace(A).sum((A @ lever) * A, axis=1)
