"""Positive-only labels and squared loss: silence gets a small weight, and a row its own deviation.

    J(U, W, H) = ½ Σ_said a_ij (y_ij - u_iᵀh_j)² + ½ w Σ_unsaid (u_iᵀh_j)²
                 + ½ λ (‖U - X W‖² + ‖W‖² + ‖H‖²)                                               (4)

Two things differ from (1). What was not said counts as a no, but only with the weight w
(`unsaid_weight`), as in one-class and implicit matrix factorisation (Hu et al. 2008; Yu et al.
2017); a_ij is 1 for a yes and √w for a no (`tacit.models.fold_in`). And the code u_i of a row may
deviate from Wᵀx_i, at the same price λ as the weights: (4) is LEML with one more feature for each
row, its own. Codes that fit what was said leave H to learn which labels go together, rather than
what little of it the features foretell; new rows, of which nothing was said, get the code Wᵀx.

Each pass solves for U, W and H in turn. Since Σ_all (uᵀh)² = ⟨UᵀU, HᵀH⟩, the unsaid cost nothing:

**U step.** `tacit.models.fold_in`, for all rows at once: the code is the ridge fit to what was
said, centred on Wᵀx. `complete` uses the same.
**W step.** (XᵀX + I) W = XᵀU: one factorisation for the whole fit, or conjugate gradients.
**H step.** Label by label (w UᵀU + Σ_{i ∈ S_j} (a_ij - w) u_iu_iᵀ + λI) h_j = Σ_{i ∈ S_j} y_ij u_i,
by conjugate gradients for all labels at once, preconditioned with the first and last terms, which
all share: what remains has the rank of what was said, and no rank × rank matrix is formed.

The start is W = 0 and small label codes: the sum, over the rows a label was said of, of cosines of
random combinations of their features. Those scatter rows that differ, so labels start far apart.
Few passes are best: the later ones spend the rank on the frequent labels.
"""

from __future__ import annotations

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner
from tacit.blocks import Blocks
from tacit.engines.descend import State
from tacit.engines.losses import LOSSES
from tacit.engines.moments import Equations
from tacit.engines.solvers import cg
from tacit.estimators import Problem
from tacit.models.fold_in import fold_in, no_weight, trust

__all__ = ["OneClass"]

_SCATTER = 10.0  # the spread of those combinations, in radians, for rows of unit length
_START = 0.1  # the length of a label's code at the start


class OneClass:
    """The alternation of (4)."""

    def __init__(
        self,
        problem: Problem,
        equations: Equations,
        unsaid_weight: float,
        cg_tol: float,
        cg_max_iter: int,
    ):
        self.problem, self.equations = problem, equations
        self.unsaid_weight = unsaid_weight
        self.cg_tol, self.cg_max_iter = cg_tol, cg_max_iter

    def start(self, rank: int, reg: float) -> State:
        draws = self.problem.normal(self.problem.n_features, rank)
        H = self.problem.blocks.sum(_scattered, draws)
        xp = array_namespace(H)
        norms = xp.sqrt(xp.sum(H * H, axis=1, keepdims=True))
        H = _START * H / xp.where(norms > 0, norms, xp.ones_like(norms))
        return {"W": xp.zeros_like(draws), "H": H}

    def step(self, state: State, reg: float) -> tuple[State, float]:
        w = self.unsaid_weight
        coded = self.problem.blocks.map(_coded, state["W"], state["H"], w, reg)
        XtU, YtU = coded.sum(_cross)
        xp = array_namespace(XtU)
        W = xp.astype(self.equations.regress(XtU, 1.0, state["W"]), XtU.dtype)
        H = self._solve_H(coded, YtU, state["H"], reg)
        misfit, deviation = coded.sum(_misfit, W, H, w)
        penalty = deviation + inner(W, W) + inner(H, H)
        return {"W": W, "H": H}, 0.5 * (misfit + reg * penalty)

    def _solve_H(self, coded: Blocks, YtU: Array, H: Array, reg: float) -> Array:
        xp, w = array_namespace(H), self.unsaid_weight
        eye = xp.eye(H.shape[1], dtype=xp.float64, device=H.device)
        shared = w * xp.astype(coded.sum(_gram), xp.float64) + reg * eye
        inverse = xp.astype(xp.linalg.inv(shared), H.dtype)
        shared = xp.astype(shared, H.dtype)
        matvec = lambda V: V @ shared + (1 - w) * coded.sum(_said_product, V, w)
        return cg(
            matvec, YtU, H, rtol=self.cg_tol, max_iter=self.cg_max_iter, axis=1,
            precondition=lambda r: r @ inverse,
        ).x  # fmt: skip

    def risk(self, W: Array, H: Array) -> float:
        """The first two sums of (4), with the codes that the features alone give."""
        return 0.5 * self.problem.blocks.sum(_risk, W, H, self.unsaid_weight)


def _scattered(b: Block, draws: Array) -> Array:
    A = b.project(_SCATTER * draws)
    return b.backend.spmm_t(b.Y, array_namespace(A).cos(A))


def _coded(b: Block, W: Array, H: Array, unsaid_weight: float, reg: float) -> tuple[Block, Array]:
    return b, fold_in(b, W, H, LOSSES["squared"], unsaid_weight, reg)


def _cross(coded: tuple[Block, Array]) -> tuple[Array, Array]:
    b, U = coded
    return b.project_t(U), b.backend.spmm_t(b.Y, U)


def _gram(coded: tuple[Block, Array]) -> Array:
    return coded[1].T @ coded[1]


def _said_product(coded: tuple[Block, Array], V: Array, w: float) -> Array:
    """Σ_{i ∈ S_j} r_ij² u_iu_iᵀ v_j for each label j."""
    b, U = coded
    said, _ = b.said
    r2 = trust(b, w, no_weight(w))
    return b.backend.spmm_t(said, U, r2 * b.backend.sddmm(said, U, V))


def _misfit(coded: tuple[Block, Array], W: Array, H: Array, w: float) -> tuple[float, float]:
    b, U = coded
    D = U - b.project(W)
    return _weighted_squares(b, U, H, w), inner(D, D)


def _risk(b: Block, W: Array, H: Array, w: float) -> float:
    return _weighted_squares(b, b.project(W), H, w)


def _weighted_squares(b: Block, U: Array, H: Array, w: float) -> float:
    """Σ_said a (y - z)² + w Σ_unsaid z² = Σ_said (y - 2yz + (1 - w) r² z²) + w ⟨UᵀU, HᵀH⟩."""
    said, y = b.said
    z, r2 = b.backend.sddmm(said, U, H), trust(b, w, no_weight(w))
    xp = array_namespace(z)
    of_said = xp.sum(y * (1 - 2 * z) + (1 - w) * r2 * z * z, dtype=xp.float64)  # ay² is y
    return float(of_said) + w * inner(U.T @ U, H.T @ H)
