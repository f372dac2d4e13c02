"""Labels of which only the entries Ω are known (Algorithm 1 of the paper).

**W step.** The Hessian is S ↦ Xᵀ((ℓ'' ⊙ P_Ω(X S Hᵀ)) H) + λS, in O((nnz(X) + |Ω|) rank) a product
and without the n_samples · n_labels × n_features · rank design that (1) has as a function of W:
conjugate gradients for the squared loss, of which it is one Newton step, TRON for the others.

**H step.** Every label is a problem of `rank` variables. With squared loss it is a ridge problem,
(A_jᵀA_j + λI) h_j = A_jᵀ y_j with the rows A_j observed for label j: all Gram matrices are built
by one kernel and solved as a batch. With the others TRON solves all labels at once, each with its
own trust region.

The start is that of complete labels, with what was not said as 0.
"""

from __future__ import annotations

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner
from tacit.blocks import Blocks
from tacit.engines.descend import State
from tacit.engines.losses import Loss
from tacit.engines.moments import Products
from tacit.engines.risk import Risk
from tacit.engines.solvers import cg, tron
from tacit.estimators import Problem
from tacit.methods.leml.squared import ridge_start
from tacit.models import FixedH, FixedW

__all__ = ["MaskedNewton", "MaskedSquared"]

_GRAM_NUMBERS = 2**26  # Gram matrices held at a time: 512 MiB in float64
_TRON_STEPS = 5  # a pass, as in the released solver


class MaskedSquared:
    """The alternation for squared loss: conjugate gradients for W, batched solves for H."""

    def __init__(self, problem: Problem, loss: Loss, cg_tol: float, cg_max_iter: int):
        self.problem, self.loss = problem, loss
        self.cg_tol, self.cg_max_iter = cg_tol, cg_max_iter

    def start(self, rank: int, reg: float) -> State:
        products = Products(self.problem.blocks, self.cg_tol, self.cg_max_iter)
        W = ridge_start(self.problem, products, rank, reg)
        return {"W": W, "H": self._solve_H(W, reg)[0]}

    def step(self, state: State, reg: float) -> tuple[State, float]:
        W = self._solve_W(state["W"], state["H"], reg)
        H, B = self._solve_H(W, reg)
        n_positives = self.problem.blocks.sum(_n_positives)
        return {"W": W, "H": H}, 0.5 * (n_positives - inner(H, B) + reg * inner(W, W))

    def risk(self, W: Array, H: Array) -> float:
        return Risk(self.problem.blocks.map(FixedH, H), self.loss, 0.0).value(W)

    def _solve_W(self, W: Array, H: Array, reg: float) -> Array:
        """J is quadratic in W, with the Hessian at 0 and minus the gradient there as its system."""
        risk = Risk(self.problem.blocks.map(FixedH, H), self.loss, reg)
        zero = array_namespace(W).zeros_like(W)
        b = -risk.grad(zero)
        return cg(risk.hessp(zero), b, W, rtol=self.cg_tol, max_iter=self.cg_max_iter).x

    def _solve_H(self, W: Array, reg: float) -> tuple[Array, Array]:
        coded = self.problem.blocks.map(_with_codes, W)
        B = coded.sum(_said_by_codes)
        return _batched_ridge(self.problem, coded, B, reg), B


class MaskedNewton:
    """The alternation for the other losses: TRON for both factors.

    TRON stops at a share of the gradient norm of the *first* pass, kept in the state, since the
    gradient it starts from shrinks with every pass.
    """

    def __init__(self, problem: Problem, loss: Loss, cg_tol: float, cg_max_iter: int):
        self.problem, self.loss = problem, loss
        self.cg_tol, self.cg_max_iter = cg_tol, cg_max_iter

    def start(self, rank: int, reg: float) -> State:
        state = MaskedSquared(self.problem, self.loss, self.cg_tol, self.cg_max_iter).start(
            rank, reg
        )
        W, H = state["W"], state["H"]
        xp = array_namespace(W)
        norm = lambda risk, w: xp.sqrt(
            xp.sum(risk.grad(w) ** 2, axis=risk.axis, keepdims=True, dtype=w.dtype)
        )
        gtol_W, gtol_H = norm(self._over_W(H, reg), W), norm(self._over_H(W, reg), H)
        return {**state, "gtol_W": gtol_W, "gtol_H": gtol_H}

    def step(self, state: State, reg: float) -> tuple[State, float]:
        limits = dict(max_iter=_TRON_STEPS, cg_max_iter=self.cg_max_iter)
        W = tron(
            self._over_W(state["H"], reg), state["W"], gtol=self.cg_tol * state["gtol_W"], **limits
        ).w
        H, values, _ = tron(
            self._over_H(W, reg), state["H"], gtol=self.cg_tol * state["gtol_H"], **limits
        )
        objective = float(array_namespace(values).sum(values)) + 0.5 * reg * inner(W, W)
        return {**state, "W": W, "H": H}, objective

    def risk(self, W: Array, H: Array) -> float:
        return self._over_W(H, 0.0).value(W)

    def _over_W(self, H: Array, reg: float) -> Risk:
        return Risk(self.problem.blocks.map(FixedH, H), self.loss, reg)

    def _over_H(self, W: Array, reg: float) -> Risk:
        return Risk(self.problem.blocks.map(FixedW, W), self.loss, reg, axis=1)


def _batched_ridge(problem: Problem, coded: Blocks, B: Array, reg: float) -> Array:
    """The h_j = (A_jᵀA_j + λI)⁻¹ b_j of all labels, some at a time."""
    xp = array_namespace(B)
    n_labels, rank = B.shape
    ridge = reg * xp.eye(rank, dtype=xp.float64, device=B.device)
    width = max(1, _GRAM_NUMBERS // rank**2)
    parts = []
    for j in range(0, n_labels, width):
        labels = slice(j, min(j + width, n_labels))
        grams = xp.astype(coded.sum(_grams, labels), xp.float64)
        parts.append(problem.backend.solve_spd(grams + ridge, xp.astype(B[labels], xp.float64)))
    return xp.astype(xp.concat(parts), B.dtype)


def _n_positives(b: Block) -> int:
    return b.Y.nnz


def _with_codes(b: Block, W: Array) -> tuple[Block, Array]:
    return b, b.project(W)


def _said_by_codes(coded: tuple[Block, Array]) -> Array:
    """YᵀA: only entries said yes count, and all of those are in Ω."""
    b, U = coded
    return b.backend.spmm_t(b.Y, U)


def _grams(coded: tuple[Block, Array], labels: slice) -> Array:
    b, U = coded
    return b.backend.grams(b.omega, U, labels)
