"""Complete labels and squared loss (Algorithm 2 of the paper, and its closed form).

With the codes A = X W and M = HᵀH, n_samples × n_labels never occurs:

**W step.** The gradient is XᵀX W M - XᵀY H + λW. The paper runs conjugate gradients on it.
Rotating by the eigenvectors of M = R diag(m) Rᵀ first,

    XᵀX W̃ diag(m) + λW̃ = XᵀY H R,    W = W̃ Rᵀ,                                              (2)

splits it into `rank` ridge problems, solved exactly from the moments where n_features allows, and
by conjugate gradients with one step size a column where not (`tacit.engines.moments`).

**H step.** One rank × rank matrix for all labels, H = (YᵀA)(AᵀA + λI)⁻¹.

**Closed form.** With the penalty ½λ‖Z‖² on the product Z = W Hᵀ in place of (1)'s, the best Z of
rank k is the ridge solution seen through its leading label directions,

    Z = (XᵀX + λI)⁻¹XᵀY V_k V_kᵀ,    V_k the top eigenvectors of YᵀX(XᵀX + λI)⁻¹XᵀY.            (3)

It is Claim 1 for λ → 0, CPLST with the ridge hat matrix, plain ridge at full rank, and, with the
columns of W and H scaled to equal norms, where the alternation starts.
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.basics.numerics import inner
from tacit.engines.descend import State
from tacit.engines.moments import Equations, Moments
from tacit.engines.solvers import leading_subspace
from tacit.estimators import Problem

__all__ = ["ClosedForm", "CompleteSquared", "leading_labels", "ridge_rows", "ridge_start"]

_OVERSAMPLE = 10  # columns beyond `rank` in the start's subspace iteration


class CompleteSquared:
    """The alternation from `Equations`: moments, or products with the rows."""

    def __init__(self, problem: Problem, equations: Equations):
        self.problem, self.equations = problem, equations

    def start(self, rank: int, reg: float) -> State:
        W = ridge_start(self.problem, self.equations.rough(), rank, reg)
        return {"W": W, "H": self._solve_H(W, reg)[0]}

    def step(self, state: State, reg: float) -> tuple[State, float]:
        W = self._solve_W(state["W"], state["H"], reg)
        H, B = self._solve_H(W, reg)
        # At the minimum over H the risk needs no pass: ½ (Σ y² - ⟨H, B⟩ - λ‖H‖²) + ½ λ‖H‖².
        objective = 0.5 * (self.equations.n_positives - inner(H, B) + reg * inner(W, W))
        return {"W": W, "H": H}, objective

    def risk(self, W: Array, H: Array) -> float:
        return squared_risk(self.equations, W, H)

    def _solve_W(self, W: Array, H: Array, reg: float) -> Array:
        """Solve (2)."""
        m, R = array_namespace(H).linalg.eigh(H.T @ H)
        return self.equations.solve(self.equations.cross(H) @ R, m, reg, start=W @ R) @ R.T

    def _solve_H(self, W: Array, reg: float) -> tuple[Array, Array]:
        B, gram = self.equations.statistics(W)
        return ridge_rows(gram, B, reg), B


class ClosedForm:
    """The W and H of (3), which need no alternation; λ = 0 takes the pseudo-inverse."""

    def __init__(self, moments: Moments):
        self.moments = moments

    def start(self, rank: int, reg: float) -> State:
        xy = self.moments.xy
        xp = array_namespace(xy)
        if reg > 0:
            ridge = self.moments.ridge(reg)
        else:
            g, Q = self.moments.spectrum
            # XᵀX knows the squares of the singular values of X to rounding only.
            kept = g > g.shape[0] * xp.finfo(g.dtype).eps * xp.max(g)
            ridge = (Q * xp.where(kept, 1 / xp.where(kept, g, 1.0), 0.0)) @ (Q.T @ xy)
        _, V = xp.linalg.eigh(xy.T @ ridge)
        V = xp.flip(V, axis=1)[:, :rank]
        return {"W": ridge @ V, "H": V}

    def step(self, state: State, reg: float) -> tuple[State, float]:
        state = self.start(state["W"].shape[1], reg)
        W, H = state["W"], state["H"]
        return state, self.risk(W, H) + 0.5 * reg * inner(W, W)  # ‖W Hᵀ‖ = ‖W‖: HᵀH = I

    def risk(self, W: Array, H: Array) -> float:
        return squared_risk(self.moments, W, H)


def ridge_start(problem: Problem, equations: Equations, rank: int, reg: float) -> Array:
    """The W of (3), by subspace iteration, scaled for H = V to the same column norms."""

    def ridge(V: Array) -> Array:
        return equations.solve(equations.cross(V), array_namespace(V).ones_like(V[0]), reg)

    W = ridge(leading_labels(problem, equations, ridge, rank)[:, :rank])
    xp = array_namespace(W)
    norms = xp.sqrt(xp.sum(W * W, axis=0))  # those of H = V are 1
    return W / xp.sqrt(xp.where(norms > 0, norms, xp.ones_like(norms)))


def leading_labels(
    problem: Problem, equations: Equations, ridge: Callable[[Array], Array], rank: int
) -> Array:
    """The V of (3), and some columns more, with `ridge` as V ↦ (XᵀX + λI)⁻¹XᵀY V."""
    # Random numbers are drawn for the features, so that permuting labels permutes the start.
    width = min(rank + _OVERSAMPLE, problem.n_labels)
    V, _ = equations.statistics(problem.normal(problem.n_features, width))
    return leading_subspace(lambda V: equations.statistics(ridge(V))[0], V, n_iter=2)


def squared_risk(equations: Equations, W: Array, H: Array) -> float:
    """½ ‖Y - X W Hᵀ‖², from sums of size rank."""
    B, gram = equations.statistics(W)
    return 0.5 * (equations.n_positives - 2 * inner(H, B) + inner(gram, H.T @ H))


def ridge_rows(gram: Array, B: Array, reg: float) -> Array:
    """B (gram + λI)⁻¹ in float64, since rank × rank costs nothing and conditioning may."""
    xp = array_namespace(gram)
    wide = xp.astype(gram, xp.float64)
    eye = xp.eye(gram.shape[0], dtype=xp.float64, device=gram.device)
    H = xp.linalg.solve(wide + reg * eye, xp.astype(B, xp.float64).T).T
    return xp.astype(H, B.dtype)
