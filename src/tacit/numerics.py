"""Functions that must not overflow, written once for every array library."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

__all__ = ["inner", "sigmoid", "softplus"]


def softplus(z: Any) -> Any:
    """log(1 + eᶻ) = max(z, 0) + log(1 + e^(-|z|)): no exponent is ever positive."""
    xp = array_namespace(z)
    return xp.clip(z, min=0.0) + xp.log1p(xp.exp(-xp.abs(z)))


def sigmoid(z: Any) -> Any:
    """σ(z) = 1 / (1 + e⁻ᶻ) = ½ (1 + tanh(z/2)), which saturates instead of overflowing."""
    return 0.5 * (1 + array_namespace(z).tanh(0.5 * z))


def inner(a: Any, b: Any) -> float:
    """⟨a, b⟩ added up in float64: objectives are small differences of large sums."""
    xp = array_namespace(a)
    return float(xp.sum(a * b, dtype=xp.float64))
