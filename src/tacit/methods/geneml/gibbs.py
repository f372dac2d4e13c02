"""GenEML by Gibbs sampling: the posterior itself, of a problem that fits in memory n × L.

    w_dk ~ N(0, 1/λ_w),   u_i ~ N(Wᵀx_i, I/λ_u),   v_j ~ N(0, I/λ_v),   b_j ~ N(0, 1/0.01),
    μ_j ~ Beta(α₁, α₂),   ξ_ij ~ Bernoulli(μ_j),   ψ_ij = u_iᵀv_j + b_j,                         (1)
    y_ij ~ Bernoulli(σ(ψ_ij)) where ξ_ij = 1 (exposed), and y_ij = 0 where it is not

(Jain, Modhe & Rai 2017; the intercepts b are ours). Given a Pólya-Gamma ω for each exposed entry,
the likelihood is Gaussian in ψ,

    σ(ψ)ʸ σ(-ψ)¹⁻ʸ ∝ E_ω e^(κψ - ½ωψ²),     κ = y - ½,     ω ~ PG(1, 0),                        (2)

so that each block has a conditional to draw from. A sweep goes through them in this order, with
κ and ω zero wherever ξ is:

**ξ.** ξ_ij ~ Bernoulli(μ_jσ(-ψ_ij) / (μ_jσ(-ψ_ij) + 1 - μ_j)) where silence leaves it open.
**ω.** ω_ij ~ PG(1, ψ_ij) where ξ_ij = 1.
**U.** u_i ~ N(P⁻¹r, P⁻¹), P = Σ_j ω_ij v_jv_jᵀ + λ_uI, r = Σ_j (κ_ij - ω_ijb_j) v_j + λ_uWᵀx_i.
**V.** (v_j, b_j) ~ N(P⁻¹r, P⁻¹), P = Σ_i ω_ij ũ_iũ_iᵀ + diag(λ_v, …, λ_v, 0.01),
r = Σ_i κ_ij ũ_i, ũ_i = (u_i, 1).
**W.** w_·k ~ N(λ_uP⁻¹XᵀU_·k, P⁻¹), P = λ_uXᵀX + λ_wI: one factorisation for the whole run. (The
paper prints XᵀX + λ_wI, without λ_u.)
**μ.** μ_j ~ Beta(α₁ + Σ_i ξ_ij, α₂ + n - Σ_i ξ_ij).

A normal draw is P⁻¹(r + Cε) with CCᵀ = P, ε ~ N(0, I): its covariance is P⁻¹PP⁻¹ = P⁻¹. The sums
Σ ω vvᵀ of all rows are one product of ω with the L × k² matrix of the vvᵀ. A sweep takes
O(nLk² + (n + L)k³ + d²k) time, and memory for a few n × L and (n + L) × k² arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit, logit

from tacit.methods.geneml.polya_gamma import polya_gamma

__all__ = ["Draws", "gibbs"]

_INTERCEPT_REG = 0.01  # a prior standard deviation of 10 for b: all but flat
_START = 0.1  # the standard deviation of V and W at the start


@dataclass(frozen=True)
class Draws:
    """S draws from the posterior of (1).

    W and V are known only up to a rotation of the codes, which wanders from draw to draw: average
    predictions such as σ(xᵀWvⱼ + bⱼ) over the draws, never the factors.

    Attributes
    ----------
    W : array (S, n_features, rank)
    V : array (S, n_labels, rank), or (S, n_labels, rank + 1) with the intercept b last
    mu : array (S, n_labels)
        The probability that an entry of the label is exposed.
    """

    W: np.ndarray
    V: np.ndarray
    mu: np.ndarray


def gibbs(
    X: Any,
    Y: np.ndarray,
    exposed: np.ndarray,
    *,
    rank: int,
    reg_u: float,
    reg_v: float,
    reg_w: float,
    alpha1: float,
    alpha2: float,
    intercept: bool,
    burn: int,
    draws: int,
    thin: int,
    rng: np.random.RandomState,
    watch: Callable[[int], None] = lambda done: None,
) -> Draws:
    """Draw from the posterior of (1), after `burn` sweeps, once every `thin` sweeps.

    Parameters
    ----------
    X : float64 array or CSR (n_samples, n_features)
    Y : bool array (n_samples, n_labels)
    exposed : int8 array (n_samples, n_labels)
        What is known of ξ. 1: exposed, so Y is the truth. 0: missing, so Y is not read. -1: where
        Y is False, silence, and ξ is drawn; a yes is always exposed.
    rank : int
        The length k of the codes.
    reg_u, reg_v, reg_w : float
        The precisions λ_u, λ_v and λ_w.
    alpha1, alpha2 : float
        The prior of μ.
    intercept : bool
        Whether the scores have the intercepts b.
    burn, draws, thin : int
        burn + draws × thin sweeps are made and `draws` of them kept.
    rng : RandomState
    watch : function
        Called with the number of sweeps done, after each.
    """
    n_samples, n_labels = Y.shape
    silent = (exposed < 0) & ~Y
    xi = exposed != 0
    ones = np.ones((n_samples, int(intercept)))
    reg_codes = reg_u * np.eye(rank)
    reg_labels = np.diag([reg_v] * rank + [_INTERCEPT_REG] * ones.shape[1])
    ridge = cholesky(reg_u * (X.T @ X) + reg_w * np.eye(X.shape[1]), lower=True)

    W = _START * rng.standard_normal((X.shape[1], rank))
    V = _START * rng.standard_normal((n_labels, rank))
    if intercept:
        frequency = ((Y & xi).sum(axis=0) + 1) / (xi.sum(axis=0) + 2)
        V = np.column_stack([V, logit(frequency)])
    mu = np.full(n_labels, 0.5)
    codes = np.hstack([X @ W, ones])

    kept = []
    for done in range(1, burn + draws * thin + 1):
        psi = codes @ V.T
        xi[silent] = _draw_exposed(psi, mu, rng)[silent]
        omega = np.zeros(Y.shape)
        omega[xi] = polya_gamma(psi[xi], rng)
        kappa = np.where(xi, Y - 0.5, 0.0)

        directions, b = V[:, :rank], V[:, rank:].sum(axis=1)
        pull = (kappa - omega * b) @ directions + reg_u * (X @ W)
        U = _draw_normal(_grams(omega, directions) + reg_codes, pull, rng)
        codes = np.hstack([U, ones])
        V = _draw_normal(_grams(omega.T, codes) + reg_labels, kappa.T @ codes, rng)
        noise = ridge @ rng.standard_normal(W.shape)
        W = cho_solve((ridge, True), reg_u * (X.T @ U) + noise)
        n_exposed = xi.sum(axis=0)
        mu = rng.beta(alpha1 + n_exposed, alpha2 + n_samples - n_exposed)

        if done > burn and (done - burn) % thin == 0:
            kept.append((W, V, mu))
        watch(done)
    return Draws(*(np.stack(part) for part in zip(*kept)))


def _draw_exposed(psi: np.ndarray, mu: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """ξ of entries that were not said; without a quotient, as both of its parts may be 0."""
    seen = mu * expit(-psi)
    return rng.random_sample(psi.shape) * (seen + 1 - mu) < seen


def _grams(omega: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Σ_j ω_ij a_ja_jᵀ for every i."""
    squares = A[:, :, None] * A[:, None, :]
    return (omega @ squares.reshape(len(A), -1)).reshape(-1, *squares.shape[1:])


def _draw_normal(P: np.ndarray, r: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A draw of N(P⁻¹r, P⁻¹) for every P of the stack and its row of r."""
    noise = np.linalg.cholesky(P) @ rng.standard_normal(r.shape)[..., None]
    return np.linalg.solve(P, r[..., None] + noise)[..., 0]
