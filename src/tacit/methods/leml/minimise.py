"""How LEML's objective is minimised: which of the files beside this one, and the loop around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.engines.descend import State
from tacit.engines.losses import LOSSES
from tacit.engines.moments import Equations, Moments, Products
from tacit.estimators import Fit, Problem
from tacit.labels import DENSE_LIMIT, check_dense
from tacit.methods.leml.curvature import SharedCurvature
from tacit.methods.leml.masked import MaskedNewton, MaskedSquared
from tacit.methods.leml.one_class import OneClass
from tacit.methods.leml.squared import ClosedForm, CompleteSquared
from tacit.models import LowRank

__all__ = ["Alternation", "Minimiser"]

_EXACT_FEATURES = 2048  # up to here the O(d³) of the exact route is a second or two
_FACTOR_FEATURES = 8192  # up to here one Cholesky factor is cheaper than conjugate gradients


class Alternation(Protocol):
    """One way to minimise (1): where to start, one pass, and the first sum of (1)."""

    def start(self, rank: int, reg: float) -> State: ...
    def step(self, state: State, reg: float) -> tuple[State, float]: ...
    def risk(self, W: Array, H: Array) -> float: ...


@dataclass(frozen=True)
class Minimiser:
    """The parameters of `LEML` that say what is minimised and how, but for rank and λ."""

    loss: str = "squared"
    solver: str = "auto"
    unsaid_weight: float | Literal["auto"] = "auto"
    cg_tol: float = 1e-3
    cg_max_iter: int = 20

    def solve(self, problem: Problem, rank: int, reg: float) -> Fit:
        """(1) minimised: a W step and an H step in turn, until it settles."""
        self.check_reg(reg)
        rank = min(rank, problem.n_features, problem.n_labels)
        alternation = self.alternation(problem, self.equations(problem))
        start = lambda: alternation.start(rank, reg)
        if self.solver == "closed_form":
            return self.fitted(problem, start(), [])
        step = lambda state: alternation.step(state, reg)
        return self.fitted(problem, *problem.descend(start, step))

    def fitted(self, problem: Problem, state: State, history: list[float]) -> Fit:
        """The model of these factors."""
        W, H = problem.to_host(state["W"]), problem.to_host(state["H"])
        silence = self.silence(problem)
        used = silence if problem.kind == "positive-only" else None
        return Fit(LowRank(W, H, self.loss, silence), history, {"unsaid_weight_": used})

    def check_reg(self, reg: float) -> None:
        if reg == 0 and self.solver != "closed_form":
            raise ValueError('reg must be above 0 (or "auto") unless solver="closed_form"; got 0')

    def silence(self, problem: Problem) -> float:
        """The weight of what was not said."""
        if self.unsaid_weight != "auto":
            return float(self.unsaid_weight)
        said, rows = problem.blocks.sum(_counts)
        return min(1.0, 0.3 * (max(said, 1) / (rows * problem.n_labels)) ** 0.5)

    def alternation(self, problem: Problem, equations: Equations) -> Alternation:
        if self.solver == "closed_form":
            assert isinstance(equations, Moments)  # as `equations` saw to
            return ClosedForm(equations)
        silence = self.silence(problem) if problem.kind == "positive-only" else 1.0
        loss = LOSSES[self.loss]
        if problem.kind == "masked":
            method = MaskedSquared if self.loss == "squared" else MaskedNewton
            return method(problem, loss, self.cg_tol, self.cg_max_iter)
        if self.loss != "squared":
            return SharedCurvature(problem, equations, loss, silence)
        if problem.kind == "positive-only":
            return OneClass(problem, equations, silence, self.cg_tol, self.cg_max_iter)
        return CompleteSquared(problem, equations)

    def equations(self, problem: Problem) -> Equations:
        """The normal equations of the rows: from their moments where those are small."""
        if self.solver == "closed_form":
            if problem.kind != "complete" or self.loss != "squared":
                raise ValueError(
                    f'solver="closed_form" is for complete labels and squared loss; got '
                    f'{problem.kind} labels and loss={self.loss!r}; use solver="auto"'
                )
            for size in (problem.n_features, problem.n_labels):
                check_dense((size, max(size, problem.n_features)), "the moments", 'solver="auto"')
            return Moments.of(problem.blocks, label_gram=False)
        one_class = problem.kind == "positive-only" and self.loss == "squared"
        limit = _FACTOR_FEATURES if one_class else _EXACT_FEATURES
        XtY = 0 if one_class else problem.n_features * problem.n_labels
        small = problem.n_features <= limit and XtY <= DENSE_LIMIT
        if problem.kind != "masked" and self.solver != "cg" and (small or self.solver == "exact"):
            return Moments.of(problem.blocks, cross=not one_class, label_gram=False)
        return Products(problem.blocks, self.cg_tol, self.cg_max_iter)


def _counts(b: Block) -> tuple[int, int]:
    return b.Y.nnz, b.Y.shape[0]
