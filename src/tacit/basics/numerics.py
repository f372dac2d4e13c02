"""Functions that must not overflow, written once for every array library."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace, size

__all__ = ["cache_sized", "eta", "inner", "sigmoid", "softplus"]

_CHUNK = 2**18  # numbers that stay in cache: 1 MiB in float32


def softplus(z: Any) -> Any:
    """log(1 + eᶻ) = max(z, 0) + log(1 + e^(-|z|)): no exponent is ever positive."""
    xp = array_namespace(z)
    return xp.clip(z, min=0.0) + xp.log1p(xp.exp(-xp.abs(z)))


def sigmoid(z: Any) -> Any:
    """σ(z) = 1 / (1 + e⁻ᶻ) = ½ (1 + tanh(z/2)), which saturates instead of overflowing."""
    return 0.5 * (1 + array_namespace(z).tanh(0.5 * z))


def eta(z: Any) -> Any:
    """η(z) = tanh(z/2) / (2z), the mean of the Pólya–Gamma variable PG(1, z); η(0) = ¼."""
    xp = array_namespace(z)
    h = xp.clip(0.5 * xp.abs(z), min=1e-20)  # tanh(h) / h is accurate down to any h but 0
    return xp.tanh(h) / (4 * h)


def inner(a: Any, b: Any) -> float:
    """⟨a, b⟩ added up in float64: objectives are small differences of large sums."""
    xp = array_namespace(a)
    return float(xp.sum(a * b, dtype=xp.float64))


def cache_sized(a: Any) -> list[slice]:
    """Slices of the rows of a, each small enough for what is computed of it to stay in cache.

    On a GPU one for all: a launch costs more there than what the cache would save.
    """
    if getattr(a, "is_cuda", False):
        return [slice(None)]
    rows = max(1, _CHUNK * a.shape[0] // max(1, size(a) or 0))
    return [slice(start, start + rows) for start in range(0, max(1, a.shape[0]), rows)]
