"""Complete labels and a loss that is not squared, with one curvature for all entries.

A Hessian product of (1) would touch all n_samples · n_labels entries. But ℓ'' ≤ c, with c = ¼ for
the logistic loss (Böhning 1992) and 1 for the squared hinge, so with R = ℓ'(Y, F) at F = X W Hᵀ

    J(W + S) ≤ J(W) + ⟨S, XᵀR H + λW⟩ + ½ (c ‖X S Hᵀ‖² + λ‖S‖²),                              (5)

whose minimiser is a squared-loss W step: c XᵀX S M + λS = -(XᵀR H + λW) with M = HᵀH, solved as
(2). Likewise H ← H - (RᵀA + λH)(c AᵀA + λI)⁻¹ with A = X W. Each half lowers J, touches the entries
once, in one matrix product a block of rows, and solves without them.

**Momentum.** The bound is loose for rare labels, where ℓ'' ≪ ¼, so plain steps are many. Each pass
therefore starts from a point beyond the last, (W, H) + β ((W, H) - last), with Nesterov's β, and
goes back to plain steps whenever that raised J: the history still never increases.

Positive-only labels weigh the entries that were not said by `unsaid_weight` w ≤ 1, and those that
were said no by √w; (5) still holds.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner
from tacit.engines.descend import State
from tacit.engines.losses import Loss
from tacit.engines.moments import Equations
from tacit.estimators import Problem
from tacit.methods.leml.squared import ridge_rows, ridge_start
from tacit.models.fold_in import no_weight

__all__ = ["SharedCurvature"]

_BLOCK_ENTRIES = 2**22  # scores laid out at a time: 16 MiB in float32, so that they stay in cache


class SharedCurvature:
    """The alternation by the bound (5)."""

    def __init__(self, problem: Problem, equations: Equations, loss: Loss, unsaid_weight: float):
        self.problem, self.equations, self.loss = problem, equations, loss
        self.unsaid_weight = unsaid_weight

    def start(self, rank: int, reg: float) -> State:
        W = ridge_start(self.problem, self.equations, rank, reg)
        B, gram = self.equations.statistics(W)
        H = ridge_rows(gram, B, reg)
        H = array_namespace(W).astype(H, W.dtype)
        return self._state(W, H, W, H, 0.0)

    def step(self, state: State, reg: float) -> tuple[State, float]:
        W, H, steps = state["W"], state["H"], float(state["steps"][0])
        before = float(state["risk"][0]) + self._penalty(W, H, reg)
        beta = (steps - 1) / (steps + 2) if steps > 1 else 0.0
        if beta:
            V, K = W + beta * (W - state["W_last"]), H + beta * (H - state["H_last"])
            moved = self._pass(V, K, None, reg)
            tried = self._state(*moved, W, H, steps + 1)
            objective = float(tried["risk"][0]) + self._penalty(*moved, reg)
            if objective <= before:
                return tried, objective
        moved = self._pass(W, H, state["slope"], reg)
        plain = self._state(*moved, W, H, 2.0)
        return plain, float(plain["risk"][0]) + self._penalty(*moved, reg)

    def risk(self, W: Array, H: Array) -> float:
        return self._value_and_slope(W, H)[0]

    def _pass(self, W: Array, H: Array, slope: Array | None, reg: float) -> tuple[Array, Array]:
        xp, c = array_namespace(W), self.loss.bound
        if slope is None:
            slope = self._value_and_slope(W, H)[1]
        m, R = xp.linalg.eigh(H.T @ H)
        B = (-slope - reg * W) @ R
        W = W + xp.astype(self.equations.solve(B, c * m, reg) @ R.T, W.dtype)
        gram, slope_H = self.problem.blocks.sum(_label_slope, W, H, self.loss, self.unsaid_weight)
        return W, H - ridge_rows(c * gram, slope_H + reg * H, reg)

    def _state(self, W: Array, H: Array, W_last: Array, H_last: Array, steps: float) -> State:
        """With the risk at W and H, and its slope there, which the next pass begins with."""
        risk, slope = self._value_and_slope(W, H)
        xp = array_namespace(W)
        number = lambda v: xp.asarray([v], dtype=xp.float64, device=W.device)
        return {
            "W": W, "H": H, "W_last": W_last, "H_last": H_last, "slope": slope,
            "risk": number(risk), "steps": number(steps),
        }  # fmt: skip

    def _penalty(self, W: Array, H: Array, reg: float) -> float:
        return 0.5 * reg * (inner(W, W) + inner(H, H))

    def _value_and_slope(self, W: Array, H: Array) -> tuple[float, Array]:
        return self.problem.blocks.sum(_value_and_slope, W, H, self.loss, self.unsaid_weight)


def _value_and_slope(
    b: Block, W: Array, H: Array, loss: Loss, unsaid_weight: float
) -> tuple[float, Array]:
    """Σ ℓ(y, f) and XᵀR H."""
    A, total, parts = b.project(W), 0.0, []
    xp = array_namespace(A)
    for rows, y, F in _scores(b, A, H):
        weight = _weight(b, rows, y, unsaid_weight)
        total += float(xp.sum(weight * loss.value(y, F), dtype=xp.float64))
        parts.append((weight * loss.grad(y, F)) @ H)
    return total, b.project_t(xp.concat(parts))


def _label_slope(
    b: Block, W: Array, H: Array, loss: Loss, unsaid_weight: float
) -> tuple[Array, Array]:
    """AᵀA and RᵀA."""
    A = b.project(W)
    slope: Any = 0
    for rows, y, F in _scores(b, A, H):
        slope = slope + (_weight(b, rows, y, unsaid_weight) * loss.grad(y, F)).T @ A[rows]
    return A.T @ A, slope


def _scores(b: Block, A: Array, H: Array):
    """Rows, their labels and their scores, some at a time."""
    size = max(1, _BLOCK_ENTRIES // max(1, H.shape[0]))
    for start in range(0, max(1, A.shape[0]), size):  # at least once: a block may be empty
        rows = slice(start, min(start + size, A.shape[0]))
        yield rows, b.backend.dense(b.Y, rows, A.dtype), A[rows] @ H.T


def _weight(b: Block, rows: slice, y: Array, unsaid_weight: float) -> Any:
    if unsaid_weight == 1:
        return 1.0
    weight = unsaid_weight + (1 - unsaid_weight) * y
    if b.noes is None:
        return weight
    no = b.backend.dense(b.noes, rows, y.dtype)
    return weight + (no_weight(unsaid_weight) - unsaid_weight) * no
