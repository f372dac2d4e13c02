"""Exact draws of the Pólya-Gamma distribution PG(1, c), which turns logistic models Gaussian.

    σ(ψ)ʸ σ(-ψ)¹⁻ʸ = ½ e^((y - ½)ψ) ∫ e^(-½ωψ²) PG(ω | 1, 0) dω,     ω | ψ ~ PG(1, ψ)           (1)

(Polson, Scott & Windle 2013). The mean of PG(1, c) is tanh(c/2) / (2c).

PG(1, c) = ¼ J*(1, z) with z = ½|c|, and the density of J*(1, z) is an alternating series,

    cosh(z) e^(-½z²x) a(x) Σ_i (-1)^i (2i + 1) e^(-i(i+1)r(x)),                                 (2)
    x ≤ t:  a(x) = √(2/π) x^(-3/2) e^(-1/(2x)),   r(x) = 2/x,
    x > t:  a(x) = ½π e^(-⅛π²x),                  r(x) = ½π²x,

either of which holds for all x and converges fast where it is used. Draws come from its first
term: beyond t an exponential of rate K = ⅛π² + ½z², below t an inverse Gaussian IG(1/z, 1), in the
proportion

    p = π/(2K) e^(-Kt)   to   q = 2e⁻ᶻΦ((tz - 1)/√t) + 2eᶻΦ(-(tz + 1)/√t);

a draw is kept with the probability of the sum in (2), which the partial sums bound from both sides
(Devroye 2009): one term is enough nearly always, 0.9992 of the draws are kept, and none is
approximate.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np

__all__ = ["polya_gamma"]


def polya_gamma(c: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Independent draws ω ~ PG(1, c), one for each entry of c.

    Parameters
    ----------
    c : array of float64, any shape
        The tilt; its sign does not matter.
    rng : RandomState
        Gives the seed of all draws of this call, whatever the number of threads.

    Examples
    --------
    >>> omega = polya_gamma(np.zeros(100_000), np.random.RandomState(0))
    >>> round(omega.mean(), 2)  # ¼
    np.float64(0.25)
    """
    if not np.isfinite(c).all():  # no draw from them would ever be accepted
        raise ValueError("c must be finite; got NaN or infinite entries")
    generator = np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    omega = np.empty(c.size)
    _kernels().draw(np.ascontiguousarray(c).reshape(-1), generator, omega)
    return omega.reshape(c.shape)


@cache
def _kernels() -> ModuleType:
    try:
        from tacit.methods.geneml import polya_gamma_kernels
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Pólya-Gamma draws need Numba, which is not installed; pip install numba"
        ) from None
    return polya_gamma_kernels
