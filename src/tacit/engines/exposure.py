"""Exposure: the probability μ that somebody was asked whether a label applies.

Silence has the likelihood 1 - μσ(ψ). How μ depends on the entry is an `Exposure`:

    AllAsked            μ = 1                  complete labels, masked ones, or no exposure model
    PerLabel            μ_nl = μ_l             with a Beta(α₁, α₂) prior
    CovariateExposure   logit μ_nl = m_l + x_nᵀ B f_l

Where somebody said no, somebody was asked: with μ = 1 there (`with_noes`) the likelihood of silence
becomes that of a no, 1 - σ(ψ), and the posterior of having been asked is 1.

`CovariateExposure` is μ = σ(βᵀφ_nl) for φ_nl = [x_n; f_l; x_n ⊗ f_l] and one intercept a label: x
holds a constant feature where the model has an intercept, and f_l = (1, features of the label). In
this form βᵀφ is two matrix products, and nothing of size n_samples × n_labels × (features of both)
occurs.

The M step of `PerLabel` is μ_l = (Σ_n p_nl + α₁ - 1) / (n + α₁ + α₂ - 2). That of
`CovariateExposure` is a logistic regression with the posteriors p as targets; one step on its bound
of curvature ¼,

    ¼ XᵀX S FᵀF + λS = Xᵀ(P - M)F - λB,    B ← B + S,

raises it, and is the same equation as a W step of LEML (`tacit.engines.moments`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner, sigmoid
from tacit.engines.moments import Equations

__all__ = ["EDGE", "AllAsked", "CovariateExposure", "Exposure", "PerLabel", "with_noes"]

EDGE = 1e-6  # μ stays this far from 0 and 1

Rates = Callable[[slice], Array]


@dataclass(frozen=True)
class AllAsked:
    n_labels: int
    learned = ()

    def start(self, like: Array) -> dict[str, Array]:
        return {}

    def rates(self, block: Block, state: dict[str, Array], like: Array) -> Rates:
        """Rows ↦ their μ, of shape (1 or n_rows, n_labels)."""
        xp = array_namespace(like)
        ones = xp.ones((1, self.n_labels), dtype=like.dtype, device=like.device)
        return lambda rows: ones

    def log_prior(self, state: dict[str, Array]) -> float:
        return 0.0


@dataclass(frozen=True)
class PerLabel:
    n_labels: int
    alpha1: float
    alpha2: float
    learned = ("mu",)

    def start(self, like: Array) -> dict[str, Array]:
        xp = array_namespace(like)
        return {"mu": 0.5 * xp.ones(self.n_labels, dtype=like.dtype, device=like.device)}

    def rates(self, block: Block, state: dict[str, Array], like: Array) -> Rates:
        mu = state["mu"][None, :]
        return lambda rows: mu

    def log_prior(self, state: dict[str, Array]) -> float:
        mu = state["mu"]
        xp = array_namespace(mu)
        wide = xp.astype(mu, xp.float64)
        logs = (self.alpha1 - 1) * xp.log(wide) + (self.alpha2 - 1) * xp.log1p(-wide)
        return float(xp.sum(logs))

    def updated(self, asked: Array, n: float, like: Array) -> dict[str, Array]:
        """The M step from Σ_n p_nl."""
        xp = array_namespace(asked)
        mu = (asked + (self.alpha1 - 1)) / (n + self.alpha1 + self.alpha2 - 2)
        return {"mu": xp.astype(xp.clip(mu, min=EDGE, max=1 - EDGE), like.dtype)}


@dataclass(frozen=True)
class CovariateExposure:
    features: Array  # f_l, (n_labels, 1 + n_label_features)
    n_features: int
    reg: float
    learned = ("beta", "bias")

    def start(self, like: Array) -> dict[str, Array]:
        xp = array_namespace(like)
        zeros = lambda *shape: xp.zeros(shape, dtype=like.dtype, device=like.device)
        return {
            "beta": zeros(self.n_features, self.features.shape[1]),
            "bias": zeros(self.features.shape[0]),
        }

    def rates(self, block: Block, state: dict[str, Array], like: Array) -> Rates:
        A = block.project(state["beta"])
        xp = array_namespace(A)
        logits = lambda rows: A[rows] @ self.features.T + state["bias"]
        return lambda rows: xp.clip(sigmoid(logits(rows)), min=EDGE, max=1 - EDGE)

    def log_prior(self, state: dict[str, Array]) -> float:
        beta, bias = state["beta"], state["bias"]
        return -0.5 * self.reg * (inner(beta, beta) + inner(bias, bias))

    def stepped(
        self, state: dict[str, Array], slopes: tuple[Array, Array], n: int, equations: Equations
    ) -> dict[str, Array]:
        """One step from the slopes Xᵀ(P - M)F and Σ_n (P - M)."""
        beta, bias, F = state["beta"], state["bias"], self.features
        xp = array_namespace(beta)
        # Half of the step each, for each moves the same logits: together they keep the bound.
        m, R = xp.linalg.eigh(F.T @ F)
        rotated = equations.solve((slopes[0] - self.reg * beta) @ R, 0.5 * m, self.reg)
        return {
            "beta": beta + xp.astype(rotated @ R.T, beta.dtype),
            "bias": bias + (slopes[1] - self.reg * bias) / (0.5 * n + self.reg),
        }


Exposure = AllAsked | PerLabel | CovariateExposure


def with_noes(block: Block, rates: Rates) -> Rates:
    """The same μ, but 1 where somebody said no."""
    if block.noes is None:
        return rates

    def known(rows: slice) -> Array:
        mu = rates(rows)
        no = block.backend.dense(block.noes, rows, mu.dtype)
        return mu + no * (1 - mu)

    return known
