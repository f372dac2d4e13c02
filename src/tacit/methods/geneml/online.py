"""Online EM (section 4.2 of the paper): mini-batches, and a memory of the past that fades.

What the M steps need is kept as a mean over examples, S ← (1 - γ_t) S + γ_t · mean over the batch,
with γ_t = (a0 + t)^(-ε). The paper adds up sums over batches, against which the priors weigh too
much; with means, a prior of precision λ counts λ/n, and one batch of all rows with γ = 1 is batch
EM.

**U**: a few U steps from Wᵀx; the codes of a batch are forgotten with it.
**V**: `polya-gamma` keeps S_A = mean(ω ũũᵀ) and S_b = mean(p κ ũ) of every label, and solves
(S_A + Λ/n) v = S_b. `shared` keeps mean(ũũᵀ) and one curvature c_l a label, and steps

    v_l ← v_l + γ (c_l mean(ũũᵀ) + Λ/n)⁻¹ (mean(r_l ũ) - Λ/n v_l).

**W**: γ times the step S with

    (mean(xxᵀ) + rI) S = mean over the batch (x (u - Wᵀx)ᵀ) - rW,   r = λ_w / (n λ_u).

mean(xxᵀ) is that of all rows where it is known and small enough. Else it is the batch's plus
(1 - n_b/n) diag(mean(x²) of all rows so far), which keeps the step small along features that a
batch of n_b rows happens to lack, and the paper's five steps of conjugate gradients are taken.
**μ**: from S_p = mean(p).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.engines.descend import State
from tacit.engines.exposure import Exposure, PerLabel
from tacit.engines.moments import Moments
from tacit.engines.solvers import cg, leverage, shared_curvature
from tacit.methods.geneml.em import (
    LOGISTIC_BOUND,
    Context,
    Priors,
    extended,
    label_grams,
    label_pass,
    raised,
    solved,
)

__all__ = ["OnlineEM"]

_PARTS = 4  # of the step of W, which threads share
_STEPS = 5  # U steps of a batch, which begin at Wᵀx each time
_POLYA_GAMMA_STEPS = 6
_TRUST = 2.0  # times the mean curvature, as in `climb`
CG_STEPS = 5  # the paper's number


class OnlineEM:
    """Updates by mini-batches; the state is W, V, the exposure's parameters and the means."""

    def __init__(
        self,
        exposure: Exposure,
        priors: Priors,
        moments: Moments | None,
        *,
        polya_gamma: bool,
        a0: float,
        epsilon: float,
    ):
        self.exposure, self.priors, self.moments = exposure, priors, moments
        self.polya_gamma, self.a0, self.epsilon = polya_gamma, a0, epsilon
        self.inverse: Array | None = None  # (XᵀX + (λ_w/λ_u) I)⁻¹, from the first W step on

    def start(self, state: State, t: float) -> State:
        """W, V and exposures of EM with empty means, as after t updates."""
        V = state["V"]
        xp = array_namespace(V)
        n_labels, width = V.shape
        zeros = lambda *shape: xp.zeros(shape, dtype=V.dtype, device=V.device)
        if self.polya_gamma:
            means = {"grams": zeros(width * (width + 1) // 2, n_labels), "B": zeros(*V.shape)}
        else:
            means = {"gram": zeros(width, width), "curvature": zeros(n_labels)}
        W = state["W"]
        if self.moments is None:
            squares = xp.zeros(W.shape[0], dtype=W.dtype, device=W.device)
        else:
            squares = xp.astype(xp.linalg.diagonal(self.moments.xx) / self.moments.n, W.dtype)
        kept = {name: state[name] for name in ("W", "V", *self.exposure.learned)}
        counts = {"t": zeros(1) + t, "updates": zeros(1)}
        return kept | means | counts | {"asked": zeros(n_labels), "squares": squares}

    def epoch(self, state: State, batches: Iterable[Block], n: int) -> tuple[State, float]:
        """One update a batch, and the loss of all batches, each when it was met."""
        loss, seen = 0.0, 0
        for b in batches:
            state, value = self.update(state, b, n)
            loss, seen = loss - value, seen + b.Y.shape[0]
        return state, loss / max(seen, 1) * n

    def update(self, state: State, b: Block, n: float) -> tuple[State, float]:
        """The state after a batch of the n rows, and the batch's log-likelihood before it."""
        # A batch is small: threads that BLAS leaves spinning would cost more than they bring.
        [found] = b.backend.parallel_map(lambda b: self._updated(state, b, n), [b])
        return found

    def _updated(self, state: State, b: Block, n: float) -> tuple[State, float]:
        gamma = (self.a0 + float(state["t"][0])) ** -self.epsilon
        weight = max(gamma, 1 / (float(state["updates"][0]) + 1))  # in a mean that began empty
        asked = {name: state[name] for name in self.exposure.learned}
        context = Context(state["W"], state["V"], self.exposure, asked, self.priors.u,
                          self.polya_gamma)  # fmt: skip
        together = lambda *steps: b.backend.parallel_map(lambda f: f(), steps)
        # The coordinates of `raised` are kept by the context; here they cost no time of their own.
        XW, _ = together(lambda: b.project(context.W), lambda: context.coordinates)
        U = raised(b, XW, XW, context, _POLYA_GAMMA_STEPS if self.polya_gamma else _STEPS)
        # The steps of V and W know nothing of each other.
        step_V = lambda: self._step_V(state, b, U, context, gamma, weight, n)
        squares, step_W = self._step_W(state, b, U - XW, n)
        (labels, value), *step = together(step_V, *step_W)
        W = state["W"] + gamma * array_namespace(U).concat(step)
        counts = {name: state[name] + 1 for name in ("t", "updates")}
        return state | labels | {"W": W, "squares": squares} | counts, value

    def _step_V(
        self, state: State, b: Block, U: Array, context: Context, gamma: float, weight: float,
        n: float,
    ) -> tuple[State, float]:  # fmt: skip
        """V, the exposures and their means, and the log-likelihood."""
        V, size = context.V, b.Y.shape[0]
        xp = array_namespace(V)
        mean = lambda name, value: (1 - weight) * state[name] + (weight / size) * value
        A = extended(U, V)
        gram = A.T @ A
        sums, RtU, total = label_pass((b, U), context, V, leverage(gram, V.dtype))
        reg = self.priors.of_labels(context.rank, V.shape[1], V) / n
        new: State = {"asked": mean("asked", xp.astype(sums[1], V.dtype))}
        if self.polya_gamma:
            grams, B = label_grams((b, U), context, V, slice(0, V.shape[0]))
            new["grams"], new["B"] = mean("grams", grams), mean("B", B)
            new["V"] = solved(b.backend, new["grams"], new["B"], reg)
        else:
            new["gram"] = mean("gram", gram)
            c = xp.astype(sums[2] * (size / total), V.dtype)
            new["curvature"] = mean("curvature", c)
            solve = shared_curvature(new["gram"], reg)
            c = xp.clip(_TRUST * new["curvature"], max=LOGISTIC_BOUND)
            new["V"] = V + gamma * solve(RtU / size - reg * V, c)
        if isinstance(self.exposure, PerLabel):
            new |= self.exposure.updated(n * new["asked"], n, V)
        return new, float(xp.sum(sums[0]))

    def _step_W(
        self, state: State, b: Block, D: Array, n: float
    ) -> tuple[Array, list[Callable[[], Array]]]:
        """mean(x²), and what gives the step of W, some features each; D is U - XW."""
        W, size = state["W"], b.Y.shape[0]
        ridge = self.priors.w / self.priors.u
        # Whoever comes first works it out, beside the step of V; two at once find the same.
        slope = cache(lambda: b.project_t(D) * (n / size) - ridge * W)
        if self.moments is not None:
            if self.inverse is None:
                self.inverse = self.moments.inverse(ridge, W.dtype)
            inverse, some = self.inverse, -(-W.shape[0] // _PARTS)
            parts = (slice(start, start + some) for start in range(0, W.shape[0], some))
            times = lambda part: inverse[part] @ slope()
            return state["squares"], [partial(times, part) for part in parts]
        squares, updates = _squares(b, W), float(state["updates"][0])
        means = (updates * state["squares"] + squares / size) / (updates + 1)
        extra = (max(n - size, 0.0) * means + ridge)[:, None]
        diagonal = squares[:, None] * (n / size) + extra
        matvec = lambda S: b.project_t(b.project(S)) * (n / size) + extra * S
        precondition = lambda R: R / diagonal
        solve = lambda: (
            cg(matvec, slope(), rtol=0.0, max_iter=CG_STEPS, axis=0, precondition=precondition).x
        )
        return means, [solve]


def _squares(b: Block, like: Array) -> Array:
    """Σ_i x_ij² for each feature j."""
    xp = array_namespace(like)
    ones = xp.ones((b.Y.shape[0], 1), dtype=like.dtype, device=like.device)
    if not isinstance(b.X, Sparse):
        return (b.X * b.X).T @ ones[:, 0]
    columns = b.X.transposed
    return b.backend.spmm(replace(columns, data=columns.data**2), ones)[:, 0]
