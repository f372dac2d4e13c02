"""Batch EM (section 4 of the paper, with the corrections its formulas need).

    J = Σ_yes log μσ(ψ) + Σ_no log μσ(-ψ) + Σ_silent log(1 - μσ(ψ))
        - ½ (λ_u‖U - XW‖² + λ_v‖V‖² + λ_w‖W‖²) + log p(μ)                                      (1)

with ψ_nl = u_nᵀv_l + b_l. Of masked labels a no counts as log σ(-ψ), for all that is observed was
asked, and what is not observed counts not at all. The
E step is p_nl = P(asked | silence) and, for each M step, the slope R = p ∘ (y - σ(ψ)) of J: all of
it is one pass over the scores (`Backend.exposed`), some rows at a time.

**U step**, row by row, and **V step**, label by label (b_l rides along as v's last coordinate, its
u being 1). Two curvatures lead to the same fixed points:

- `shared`: u_n + (c_n VᵀV + λ_u I)⁻¹ (Vᵀr_n - λ_u (u_n - Wᵀx_n)), one matrix for all rows up to
  the scale c_n ≤ ¼ (`tacit.engines.solvers.climb`). O(n L k) a step, k² memory.
- `polya-gamma`, the paper's: with ω = p η(ψ) and κ = y - ½, u_n = (Σ_l ω v_lv_lᵀ + λ_u I)⁻¹
  (Σ_l (p κ - ω b_l) v_l + λ_u Wᵀx_n). The Grams of the labels are one matrix product, O(n L k²),
  some labels at a time. Those of the rows, needed only here, are not formed: ω varies little, so
  conjugate gradients with the shared curvature as preconditioner take some eight products O(n L k).

**W step** (free codes): (XᵀX + (λ_w/λ_u) I) W = XᵀU. The paper prints λ_w alone.
**W step** (tied codes, U = XW): on the bound of (1) in W, as in logistic LEML.
**μ step**: `tacit.engines.exposure`.
Each step raises J, or leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from tacit.backends import Array, Exposed
from tacit.backends.block import Block, label_counts, pieces
from tacit.basics.numerics import eta, inner
from tacit.blocks import Blocks
from tacit.blocks.rows import add
from tacit.engines.descend import State
from tacit.engines.exposure import CovariateExposure, Exposure, PerLabel, Rates, with_noes
from tacit.engines.moments import Equations, Products
from tacit.engines.solvers import Climbing, cg, climb, leverage, leverages, shared_curvature
from tacit.estimators import Problem
from tacit.methods.leml.squared import leading_labels

__all__ = ["EM", "Context", "Priors", "folded_codes", "label_map"]

_GRAM_ENTRIES = 2**26  # numbers of label Grams at a time: 256 MiB in float32
_PIECES = 8  # of many problems, for threads to share
_CG_STEPS = 50  # at most, of a U step with Pólya–Gamma curvature; some eight are taken
STEPS = 3  # of a block of variables in a pass
INTERCEPT_REG = 0.01  # b_l ~ N(0, 10²): wide enough for the rarest label
LOGISTIC_BOUND = 0.25


@dataclass(frozen=True)
class Priors:
    """The precisions of (1)."""

    u: float
    v: float
    w: float

    def of_labels(self, rank: int, width: int, like: Array) -> Array:
        """One for each column of V, the intercept's last where there is one."""
        xp = array_namespace(like)
        regs = [self.v] * rank + [INTERCEPT_REG] * (width - rank)
        return xp.asarray(regs, dtype=like.dtype, device=like.device)


class EM:
    """Passes over all rows; the state is W, V, the exposure's parameters and, where free, U."""

    def __init__(
        self,
        problem: Problem,
        equations: Equations,
        exposure: Exposure,
        priors: Priors,
        *,
        tied: bool,
        polya_gamma: bool,
        intercept: bool,
        label_features: Array | None,
    ):
        self.problem, self.equations, self.exposure = problem, equations, exposure
        self.priors, self.tied, self.polya_gamma = priors, tied, polya_gamma
        self.intercept, self.label_features = intercept, label_features
        self.counts: list[int] = problem.blocks.sum(_counts)

    def start(self, rank: int) -> State:
        """Reduced-rank ridge with scores times 4, the inverse of the logistic slope at 0."""
        products = Products(self.problem.blocks, 0.0, 0)
        ridge = lambda V: self.equations.regress(products.cross(V), 1.0)
        V = leading_labels(self.problem, products, ridge, rank)[:, :rank]
        xp = array_namespace(V)
        W = xp.astype(ridge(V), V.dtype)
        norms = xp.sqrt(xp.sum(W * W, axis=0))
        scale = xp.sqrt(4 * xp.where(norms > 0, norms, xp.ones_like(norms)))  # for both alike
        W, V = 4 * W / scale, V * scale
        if self.intercept:
            said = self.problem.blocks.sum(label_counts)
            rate = (said + 0.5) / (self.problem.n_samples + 1)
            b = xp.astype(xp.log(rate) - xp.log1p(-rate), W.dtype)
            V = xp.concat([V, b[:, None]], axis=1)
        state = {"W": W, "V": V} | self.exposure.start(V)
        return state if self.tied else state | {"U": _stacked(self.problem.blocks, _codes, W)}

    def step(self, state: State) -> tuple[State, float]:
        state = dict(state)
        if self.tied:
            state["W"] = self._solve_W_tied(state)
        else:
            state["U"] = _stacked(self._coded(state), _step_codes, self._context(state))
            XtU = self._coded(state).sum(_project_t)
            reg = self.priors.w / self.priors.u
            W = self.equations.regress(XtU, reg, state["W"])
            state["W"] = array_namespace(W).astype(W, XtU.dtype)
        coded = self._coded(state)
        state["V"], fit, asked = self._solve_V(coded, state)
        objective = -(fit + self._log_prior(coded, state))
        if isinstance(self.exposure, PerLabel):
            state |= self.exposure.updated(asked, self.problem.n_samples, state["V"])
        elif isinstance(self.exposure, CovariateExposure):
            slopes = coded.sum(_exposure_slopes, self._context(state), self.exposure.features)
            n = self.problem.n_samples
            state |= self.exposure.stepped(self._asked(state), slopes, n, self.equations)
        return state, objective

    def _log_prior(self, coded: Blocks, state: State) -> float:
        priors, W, V = self.priors, state["W"], state["V"]
        reg = priors.of_labels(W.shape[1], V.shape[1], V)
        D = V - self._centre(V)
        total = -0.5 * (priors.w * inner(W, W) + inner(D * reg, D))
        if self.label_features is not None:
            M = label_map(V, self.label_features)
            total -= 0.5 * inner(M * reg, M)
        if not self.tied:
            total -= 0.5 * priors.u * coded.sum(_deviation, W)
        return total + self.exposure.log_prior(self._asked(state))

    def _centre(self, V: Array) -> Array:
        """The prior mean of V: 0, or M f_l with M the ridge fit of V to the label features."""
        xp = array_namespace(V)
        if self.label_features is None:
            return xp.zeros_like(V)
        return self.label_features @ label_map(V, self.label_features)

    def _asked(self, state: State) -> State:
        return {name: state[name] for name in self.exposure.learned}

    def _context(self, state: State) -> Context:
        W, V, asked = state["W"], state["V"], self._asked(state)
        return Context(W, V, self.exposure, asked, self.priors.u, self.polya_gamma)

    def _coded(self, state: State) -> Blocks:
        """(block, codes) pairs."""
        if self.tied:
            return self.problem.blocks.map(_tied, state["W"])
        parts, start = [], 0
        for count in self.counts:
            parts.append(state["U"][start : start + count])
            start += count
        return self.problem.blocks.zip(parts)

    def _solve_V(self, coded: Blocks, state: State) -> tuple[Array, float, Array]:
        """V, the log-likelihood there, and Σ_n p_nl there."""
        V, context = state["V"], self._context(state)
        xp = array_namespace(V)
        reg = self.priors.of_labels(context.rank, V.shape[1], V)
        centre = self._centre(V)
        gram = coded.sum(_gram, V)
        lever = leverage(gram, V.dtype)

        def evaluate(V: Array) -> Climbing:
            sums, RtU, total = coded.sum(label_pass, context, V, lever)
            D = V - centre
            value = sums[0] - 0.5 * xp.sum(xp.astype(reg * D * D, sums.dtype), axis=1)
            return Climbing(value, RtU - reg * D, xp.astype(sums[2] / total, V.dtype), sums[1])

        if self.polya_gamma:
            V = self._polya_gamma_V(coded, context, V, reg, centre)
            at = evaluate(V)
        else:
            V, at = climb(evaluate, V, shared_curvature(gram, reg), LOGISTIC_BOUND, STEPS)
        D = V - centre
        fit = float(xp.sum(at.value)) + 0.5 * inner(reg * D, D)
        return V, fit, at.more

    def _polya_gamma_V(
        self, coded: Blocks, context: Context, V: Array, reg: Array, centre: Array
    ) -> Array:
        size = max(1, _GRAM_ENTRIES // (V.shape[1] * (V.shape[1] + 1) // 2))
        parts = []
        for start in range(0, V.shape[0], size):
            labels = slice(start, start + size)
            grams, B = coded.sum(label_grams, context, V, labels)
            parts.append(solved(self.problem.backend, grams, B + reg * centre[labels], reg))
        return array_namespace(V).concat(parts)

    def _solve_W_tied(self, state: State) -> Array:
        W, V, context = state["W"], state["V"], self._context(state)
        xp, shape = array_namespace(W), W.shape
        basis = V[:, : context.rank]
        m, R = xp.linalg.eigh(basis.T @ basis)
        weights = leverages(basis, leverage(basis.T @ basis, V.dtype))

        def evaluate(x: Array) -> Climbing:
            W = xp.reshape(x, shape)
            value, slope, curvature = self.problem.blocks.sum(_tied_pass, context, W, weights)
            value = value - 0.5 * self.priors.w * inner(W, W)
            slope = xp.reshape(slope - self.priors.w * W, (1, -1))
            scale = curvature / (float(xp.sum(weights)) * self.problem.n_samples)
            number = lambda v: xp.asarray([v], dtype=W.dtype, device=W.device)
            return Climbing(xp.asarray([value], dtype=xp.float64, device=W.device), slope,
                            number(scale))  # fmt: skip

        def solve(S: Array, c: Array) -> Array:
            B = xp.reshape(S, shape) @ R
            step = self.equations.solve(B, float(c[0]) * m, self.priors.w) @ R.T
            return xp.reshape(xp.astype(step, S.dtype), (1, -1))

        x, _ = climb(evaluate, xp.reshape(W, (1, -1)), solve, LOGISTIC_BOUND, STEPS)
        return xp.reshape(x, shape)


def solved(backend: Any, grams: Array, B: Array, reg: Array) -> Array:
    """`solve_packed`, some problems at a time."""
    size = -(-B.shape[0] // _PIECES)
    parts = [slice(start, start + size) for start in range(0, B.shape[0], size)]
    solve = lambda part: backend.solve_packed(grams[:, part], B[part], reg)
    return array_namespace(B).concat(backend.parallel_map(solve, parts))


def label_map(V: Array, F: Array) -> Array:
    """M with V ≈ F M, whose entries have the same prior precision as those of V."""
    xp = array_namespace(V)
    eye = xp.eye(F.shape[1], dtype=F.dtype, device=F.device)
    return xp.linalg.solve(F.T @ F + eye, F.T @ V)


@dataclass(frozen=True)
class Context:
    """What a pass over some rows needs to know."""

    W: Array
    V: Array
    exposure: Exposure
    asked: State
    reg: float
    polya_gamma: bool

    @property
    def rank(self) -> int:
        return self.W.shape[1]

    def rates(self, b: Block) -> Rates:
        """μ of some rows, and 1 where somebody said no."""
        return with_noes(b, self.mu(b))

    def mu(self, b: Block) -> Rates:
        """μ of some rows, as the exposure has it."""
        return self.exposure.rates(b, self.asked, self.V)

    @cached_property
    def coordinates(self) -> Coordinates:
        return Coordinates.of(self.V, self.rank, self.reg)


class Coordinates(NamedTuple):
    """z with u = B z, in which λ_u I is the identity and VᵀV diagonal.

    The shared curvature of a row is then a vector, as a step and as a preconditioner. The constant
    1 of the intercepts rides along as z's last coordinate: nothing moves it.
    """

    B: Array
    V: Array  # VB, and the intercepts behind
    basis: Array  # the same with 0 for the intercepts
    spectrum: Array  # of its Gram matrix
    weights: Array  # how much each label decides of a row: `leverages`, in these coordinates

    @classmethod
    def of(cls, V: Array, rank: int, reg: float) -> Coordinates:
        xp = array_namespace(V)
        basis, b = V[:, :rank], V[:, rank:]
        w, Q = xp.linalg.eigh(xp.astype(basis.T @ basis, xp.float64) / reg)
        spectrum, B = (xp.astype(a, V.dtype) for a in (xp.clip(w, min=0.0), Q / reg**0.5))
        basis = basis @ B
        weights = xp.sum(basis * basis / (spectrum + 1e-3), axis=1)
        weights = weights / max(float(xp.sum(weights)), 1e-30)
        behind = lambda A, more: xp.concat([A, more], axis=-1)
        still = behind(basis, xp.zeros_like(b)), behind(spectrum, xp.zeros_like(b[0, :]))
        return cls(B, behind(basis, b), *still, weights)


def folded_codes(b: Block, context: Context, steps: int) -> Array:
    """The codes of rows given what was said of them, from those their features give."""
    XW = b.project(context.W)
    return raised(b, XW, XW, context, steps)


def raised(b: Block, U: Array, XW: Array, context: Context, steps: int) -> Array:
    """`steps` U steps, in `Coordinates`."""
    B, V, basis, spectrum, weights = context.coordinates
    rates, xp = context.rates(b), array_namespace(V)
    solve = lambda S, c: S / (c[:, None] * spectrum + 1)
    rtol = float(xp.finfo(V.dtype).eps) ** 0.75  # 6e-6 in float32, 2e-12 in float64
    means = extended(context.reg * (XW @ B), V)
    Z = means if U is XW else extended(context.reg * (U @ B), V)

    def shared(rows: slice) -> Array:
        mu, mean = rates(rows), means[rows]

        def evaluate(z: Array) -> Climbing:
            at = _exposed(b, rows, z @ V.T, mu, None, weights)
            D = z - mean
            value = at.rows[0] - 0.5 * xp.vecdot(D, D)
            return Climbing(value, at.residual @ basis - D, at.rows[1])

        return climb(evaluate, Z[rows], solve, LOGISTIC_BOUND, steps)[0]

    def polya_gamma(rows: slice) -> Array:
        z, mu, mean = Z[rows], rates(rows), means[rows]
        for _ in range(steps):
            z = polya_gamma_step(z, mu, mean, rows)
        return z

    def polya_gamma_step(z: Array, mu: Array, mean: Array, rows: slice) -> Array:
        F = z @ V.T
        p, y = _posterior(b, rows, F, mu)
        weight = p * eta(F)
        scale = weight @ weights
        matvec = lambda D: (weight * (D @ basis.T)) @ basis + D
        precondition = lambda S: solve(S, scale)
        intercepts = xp.sum(V - basis, axis=1)
        b_z = (p * (y - 0.5) - weight * intercepts) @ basis + mean  # Σ (p κ - ω b) v + λ_u Wᵀx
        return cg(
            matvec, b_z, z, rtol=rtol, max_iter=_CG_STEPS, axis=1, precondition=precondition
        ).x

    f = polya_gamma if context.polya_gamma else shared
    return xp.concat(b.backend.parallel_map(f, pieces(b, V.shape[0])))[:, : context.rank] @ B.T


def _posterior(b: Block, rows: slice, F: Array, mu: Array) -> tuple[Array, Array]:
    """p and y of some rows, laid out."""
    xp = array_namespace(F)
    y = b.backend.dense(b.Y, rows, F.dtype)
    if b.omega is not None:
        return b.backend.dense(b.omega, rows, F.dtype), y
    p = mu / (1 + (1 - mu) * xp.exp(xp.clip(F, min=-40.0, max=40.0)))
    return xp.where(y > 0, xp.ones_like(p), p), y


def _exposed(
    b: Block,
    rows: slice,
    F: Array,
    mu: Array,
    row_weights: Array | None,
    label_weights: Array | None,
) -> Exposed:
    S, y = (b.Y, None) if b.omega is None else (b.omega, b.y)
    return b.backend.exposed(F, mu, S, y, rows, row_weights, label_weights)


def extended(U: Array, V: Array) -> Array:
    """The codes, with a constant 1 behind the last where V has intercepts."""
    if V.shape[1] == U.shape[1]:
        return U
    xp = array_namespace(U)
    one = xp.ones((U.shape[0], 1), dtype=U.dtype, device=U.device)
    return xp.concat([U, one], axis=1)


def _stacked(blocks: Blocks, f: Any, *args: Any) -> Array:
    """The arrays that f gives for each block, one below the other."""
    parts = blocks.sum(f, *args)
    return array_namespace(parts[0]).concat(parts)


def _counts(b: Block) -> list[int]:
    return [b.Y.shape[0]]


def _codes(b: Block, W: Array) -> list[Array]:
    return [b.project(W)]


def _tied(b: Block, W: Array) -> tuple[Block, Array]:
    return b, b.project(W)


def _step_codes(coded: tuple[Block, Array], context: Context) -> list[Array]:
    b, U = coded
    return [raised(b, U, b.project(context.W), context, 1 if context.polya_gamma else STEPS)]


def _project_t(coded: tuple[Block, Array]) -> Array:
    return coded[0].project_t(coded[1])


def _deviation(coded: tuple[Block, Array], W: Array) -> float:
    D = coded[1] - coded[0].project(W)
    return inner(D, D)


def _gram(coded: tuple[Block, Array], V: Array) -> Array:
    U = extended(coded[1], V)
    return U.T @ U


def label_pass(
    coded: tuple[Block, Array], context: Context, V: Array, lever: Array
) -> tuple[Array, Array, float]:
    """The sums over each label, RᵀU, and the sum of the weights of the rows."""
    b, U = coded
    rates, mu, xp = context.rates(b), context.mu(b), array_namespace(V)

    def piece(rows: slice) -> tuple[Array, Array, float]:
        A = extended(U[rows], V)
        weights = leverages(A, lever)
        at = _exposed(b, rows, A @ V.T, rates(rows), weights, None)
        sums: Any = at.labels
        if b.noes is not None:  # they were asked: log μ, which moves no score
            no = b.backend.dense(b.noes, rows, V.dtype)
            sums[0] += xp.astype(xp.sum(no * xp.log(mu(rows)), axis=0), sums.dtype)
        return sums, at.residual.T @ A, float(xp.sum(weights))

    return reduce(add, b.backend.parallel_map(piece, pieces(b, V.shape[0])))


def label_grams(
    coded: tuple[Block, Array], context: Context, V: Array, labels: slice
) -> tuple[Array, Array]:
    """Σ_n ω u_nu_nᵀ, packed, and Σ_n p κ u_n, for some labels."""
    b, U = coded
    rates = context.rates(b)

    def piece(rows: slice) -> tuple[Array, Array]:
        A = extended(U[rows], V)
        F = A @ V.T
        p, y = _posterior(b, rows, F, rates(rows))
        p, y, F = p[:, labels], y[:, labels], F[:, labels]
        return b.backend.packed_grams(A, p * eta(F)), (p * (y - 0.5)).T @ A

    return reduce(add, b.backend.parallel_map(piece, pieces(b, V.shape[0], V.shape[1])))


def _tied_pass(b: Block, context: Context, W: Array, weights: Array) -> tuple[float, Array, float]:
    """The log-likelihood, XᵀRV, and the sum of |R| by the labels' weights."""
    V, U, rates = context.V, b.project(W), context.rates(b)
    xp = array_namespace(V)

    def piece(rows: slice) -> tuple[float, list[Array], float]:
        at = _exposed(b, rows, extended(U[rows], V) @ V.T, rates(rows), None, weights)
        slope = at.residual @ V[:, : context.rank]
        total = float(xp.sum(at.rows[1], dtype=xp.float64))
        return float(xp.sum(at.rows[0], dtype=xp.float64)), [slope], total

    value, slopes, curvature = reduce(add, b.backend.parallel_map(piece, pieces(b, V.shape[0])))
    return value, b.project_t(xp.concat(slopes)), curvature


def _exposure_slopes(
    coded: tuple[Block, Array], context: Context, features: Array
) -> tuple[Array, Array]:
    """Xᵀ(P - M)F and Σ_n (P - M), with M the exposures."""
    b, U = coded
    V, rates, xp = context.V, context.rates(b), array_namespace(context.V)
    of_exposure = context.mu(b)

    def piece(rows: slice) -> tuple[list[Array], Array]:
        mu = of_exposure(rows)
        p, _ = _posterior(b, rows, extended(U[rows], V) @ V.T, rates(rows))
        return [(p - mu) @ features], xp.sum(p - mu, axis=0)

    parts, totals = reduce(add, b.backend.parallel_map(piece, pieces(b, V.shape[0])))
    return b.project_t(xp.concat(parts)), totals
