"""The Numba kernel behind `polya_gamma`."""

from __future__ import annotations

import math
from typing import Any

import numba

_T = 0.64  # where the two series change over: Devroye's choice, the acceptance is then 0.9992
_SQRT_T = math.sqrt(_T)
_TAIL_RATE = math.pi**2 / 8
_ONE_SIDED = 20.0  # the tilt beyond which e²ᶻΦ(-(tz + 1)/√t) < 1e-40, and soon e²ᶻ overflows


@numba.njit(cache=True, nogil=True)
def draw(c: Any, generator: Any, out: Any) -> None:
    """out[i] ~ PG(1, c[i]) = ¼ J*(1, ½|c[i]|), one after the other."""
    for i in range(c.shape[0]):
        out[i] = 0.25 * _jacobi(0.5 * abs(c[i]), generator)


@numba.njit(nogil=True)
def _jacobi(z: float, generator: Any) -> float:
    """J*(1, z): propose from the first term of the series, then accept by (2)."""
    rate = _TAIL_RATE + 0.5 * z * z
    share = _tail_share(z, rate)
    while True:
        if generator.random() < share:
            x = _T + generator.standard_exponential() / rate
            decay = 0.5 * math.pi**2 * x
        else:
            x = _truncated_inverse_gaussian(z, generator)
            decay = 2 / x
        if _accept(decay, generator.random()):
            return x


@numba.njit(nogil=True)
def _tail_share(z: float, rate: float) -> float:
    """The part of the proposal's mass that lies beyond t: p / (p + q), both times eᶻ."""
    p = 0.5 * math.pi / rate * math.exp(z - rate * _T)
    q = 2 * _normal_cdf((_T * z - 1) / _SQRT_T)
    if z < _ONE_SIDED:
        q += 2 * math.exp(2 * z) * _normal_cdf(-(_T * z + 1) / _SQRT_T)
    return p / (p + q)


@numba.njit(nogil=True)
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@numba.njit(nogil=True)
def _truncated_inverse_gaussian(z: float, generator: Any) -> float:
    """IG(1/z, 1) given that it is at most t."""
    if z * _T < 1:  # the mean is beyond t
        while True:
            # Without the tilt x = 1/N², N a normal beyond 1/√t: one from its exponential bound.
            e = generator.standard_exponential()
            if _T * e * e <= 2 * generator.standard_exponential():
                x = _T / (1 + _T * e) ** 2
                if generator.random() < math.exp(-0.5 * z * z * x):
                    return x
    while True:
        # N² = (zx - 1)²/x has two roots, of product 1/z²: the smaller one, or else the other.
        w = 0.5 * generator.standard_normal() ** 2 / z
        root = 1 / (1 + w + math.sqrt(w * (2 + w)))
        x = (root if generator.random() * (1 + root) < 1 else 1 / root) / z
        if x <= _T:
            return x


@numba.njit(nogil=True)
def _accept(decay: float, u: float) -> bool:
    """Whether u < Σ_i (-1)^i (2i + 1) e^(-i(i+1) decay), from as few terms as tell."""
    total, i = 1.0, 0
    while True:
        i += 1
        total -= (2 * i + 1) * math.exp(-i * (i + 1) * decay)
        if u <= total:
            return True
        i += 1
        total += (2 * i + 1) * math.exp(-i * (i + 1) * decay)
        if u > total:
            return False
