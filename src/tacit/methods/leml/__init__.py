"""LEML: low-rank empirical risk minimisation for multi-label learning with missing labels.

The scores are Z = X W Hᵀ, with W of shape (n_features, rank) and H of shape (n_labels, rank).
LEML minimises, over the observed entries Ω,

    J(W, H) = Σ_{(i, j) ∈ Ω} ℓ(y_ij, x_iᵀ W h_j) + ½ λ (‖W‖² + ‖H‖²).                           (1)

The penalty is the trace norm: ½(‖W‖² + ‖H‖²), minimised over all W Hᵀ = Z, is ‖Z‖_*. J is not
convex in (W, H) but convex in each, so minimising over each in turn never increases it. How a half
is minimised depends on the labels and on ℓ, one file each:

    ============== ============== ================================================================
    labels         loss           W step and H step
    ============== ============== ================================================================
    complete       squared        `squared`: (2), exact or by conjugate gradients, without n × L
    complete       other          `curvature`: squared-loss steps under a bound, n × L once a half
    masked         squared        `masked`: conjugate gradients on Ω; batched ridge for H
    masked         other          `masked`: TRON on Ω, for H all labels at once
    positive-only  squared        `one_class`: silence weighs little, rows have codes of their own
    positive-only  other          `curvature`, with that weight
    ============== ============== ================================================================

Reference: H.-F. Yu, P. Jain, P. Kar and I. S. Dhillon. Large-scale multi-label learning with
missing labels. ICML 2014.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner
from tacit.basics.params import a_float, an_int, check_params, one_of, or_auto
from tacit.engines.descend import State
from tacit.engines.losses import LOSSES, Loss
from tacit.engines.moments import Equations, Moments, Products
from tacit.estimators import Completion, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import DENSE_LIMIT, check_dense
from tacit.methods.leml.curvature import SharedCurvature
from tacit.methods.leml.masked import MaskedNewton, MaskedSquared
from tacit.methods.leml.one_class import OneClass
from tacit.methods.leml.path import Path, choose, fit_path
from tacit.methods.leml.squared import ClosedForm, CompleteSquared
from tacit.models import LowRank, fold_in

__all__ = ["LEML", "Path"]

_EXACT_FEATURES = 2048  # up to here the O(d³) of the exact route is a second or two
_FACTOR_FEATURES = 8192  # up to here one Cholesky factor is cheaper than conjugate gradients


class Alternation(Protocol):
    """One way to minimise (1): where to start, one pass, and the first sum of (1)."""

    def start(self, rank: int, reg: float) -> State: ...
    def step(self, state: State, reg: float) -> tuple[State, float]: ...
    def risk(self, W: Array, H: Array) -> float: ...


class LEML(MultiLabelEstimator):
    """Low-rank multi-label model, trained on the observed labels only.

    Parameters
    ----------
    rank : int or "auto", default=200
        Number of columns of W and H; more than min(n_features, n_labels) adds nothing and is cut
        to that. "auto" chooses by cross-validation (`fit_path`).
    loss : {"squared", "logistic", "squared_hinge"}, default="squared"
        The loss ℓ of (1).
    reg : float or "auto", default=1.0
        The weight λ of (1); "auto" chooses by cross-validation. 0 is for the closed form only.
    unsaid_weight : float or "auto", default="auto"
        With positive-only labels: the weight, up to 1, of an entry that was not said. Also how
        much silence weighs when `complete` fits a row's code to what was said. "auto" is
        0.3 √(share of all entries that were said), a rule that did well from 159 to 21,374 labels.
    solver : {"auto", "exact", "cg", "closed_form"}, default="auto"
        For complete labels. "exact" and "cg" solve (2) from the moments or by conjugate gradients;
        "auto" takes the moments up to 2,048 features. "closed_form" (squared loss) penalises
        ½λ‖W Hᵀ‖² instead and has nothing to iterate: Claim 1 of the paper for λ = 0, ridge at
        full rank.
    max_iter : int, default=5
        Most passes. A pass updates W, then H.
    tol : float, default=1e-4
        Stop once a pass lowers J by no more than `tol` times its value.
    cg_tol, cg_max_iter : float, int, default=1e-3, 20
        Where conjugate gradients stop: relative residual, products.
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
    fit_intercept : bool, default=True
        Add a constant feature (penalised like the others).
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the subspace that the start begins with.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : LowRank
        The factors W and H.
    rank_, reg_, unsaid_weight_ : int, float, float
        Those used: the parameters, or what "auto" chose.
    history_ : list of float
        J after each pass. It never increases. Empty for the closed form.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(4), np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> LEML(rank=2, reg=0.01, random_state=0).fit(X, Y).predict(X).toarray()[:, 0]
    array([1, 1, 0, 0], dtype=int8)
    """

    _kinds = ("complete", "masked", "positive-only")
    _learned = ("rank_", "reg_", "unsaid_weight_")
    _checks = {
        "rank": or_auto(an_int(at_least=1)),
        "loss": one_of(*LOSSES),
        "reg": or_auto(a_float(at_least=0)),
        "unsaid_weight": or_auto(a_float(above=0, at_most=1)),
        "solver": one_of("auto", "exact", "cg", "closed_form"),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        "cg_tol": a_float(at_least=0),
        "cg_max_iter": an_int(at_least=1),
        **shared_checks(),
    }

    def __init__(
        self,
        rank: int | Literal["auto"] = 200,
        *,
        loss: Literal["squared", "logistic", "squared_hinge"] = "squared",
        reg: float | Literal["auto"] = 1.0,
        unsaid_weight: float | Literal["auto"] = "auto",
        solver: Literal["auto", "exact", "cg", "closed_form"] = "auto",
        max_iter: int = 5,
        tol: float = 1e-4,
        cg_tol: float = 1e-3,
        cg_max_iter: int = 20,
        normalize: Literal["l2"] | None = "l2",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state=None,
        verbose: bool = False,
    ):
        self.rank = rank
        self.loss = loss
        self.reg = reg
        self.unsaid_weight = unsaid_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.cg_tol = cg_tol
        self.cg_max_iter = cg_max_iter
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss(self) -> Loss:
        return LOSSES[self.loss]

    def fit(self, X: Any, Y: Any = None, *, checkpoint: str | os.PathLike | None = None) -> Self:
        self.rank_: Any = self.rank
        self.reg_: Any = self.reg
        if "auto" in (self.rank, self.reg):
            check_params(self)
            self.rank_, self.reg_ = choose(self, X, Y)
        return super().fit(X, Y, checkpoint=checkpoint)

    fit.__doc__ = MultiLabelEstimator.fit.__doc__

    def fit_path(
        self,
        X: Any,
        Y: Any = None,
        *,
        ranks: Sequence[int] | None = None,
        regs: Sequence[float] | None = None,
        cv: int | None = 5,
    ) -> Path:
        """Fit at every rank and λ of a grid, each from its neighbour; see `Path`.

        Parameters
        ----------
        X, Y
            As for `fit`.
        ranks, regs : sequences, default=None
            The grid. None is the estimator's own value or, where that is "auto", a default grid.
        cv : int, default=5
            Number of folds of rows for the held-out risk; None only fits the path.
        """
        return fit_path(self, X, Y, ranks, regs, cv)

    def _fit(self, problem: Problem) -> LowRank:
        rank = min(self.rank_, problem.n_features, problem.n_labels)
        reg = float(self.reg_)  # a NumPy float32 would round the objective to float32
        self._check_reg(reg)
        self.unsaid_weight_ = self._unsaid_weight(problem)
        to_numpy = problem.backend.to_numpy
        alternation = self._alternation(problem, self._equations(problem))
        if self.solver == "closed_form":
            state = alternation.start(rank, reg)
            return LowRank(to_numpy(state["W"]), to_numpy(state["H"]))
        state = problem.descend(
            lambda: alternation.start(rank, reg), lambda state: alternation.step(state, reg)
        )
        return LowRank(to_numpy(state["W"]), to_numpy(state["H"]))

    def _check_reg(self, reg: float) -> None:
        if reg == 0 and self.solver != "closed_form":
            raise ValueError('reg must be above 0 (or "auto") unless solver="closed_form"; got 0')

    def _alternation(self, problem: Problem, equations: Equations) -> Alternation:
        if self.solver == "closed_form":
            assert isinstance(equations, Moments)  # as `_equations` saw to
            return ClosedForm(equations)
        silence = self._unsaid_weight(problem) if problem.kind == "positive-only" else 1.0
        if problem.kind == "masked":
            method = MaskedSquared if self.loss == "squared" else MaskedNewton
            return method(problem, self._loss, self.cg_tol, self.cg_max_iter)
        if self.loss != "squared":
            return SharedCurvature(problem, equations, self._loss, silence)
        if problem.kind == "positive-only":
            return OneClass(problem, equations, silence, self.cg_tol, self.cg_max_iter)
        return CompleteSquared(problem, equations)

    def _unsaid_weight(self, problem: Problem) -> float:
        if self.unsaid_weight != "auto":
            return float(self.unsaid_weight)
        said, rows = problem.blocks.sum(_counts)
        return min(1.0, 0.3 * (max(said, 1) / (rows * problem.n_labels)) ** 0.5)

    def _equations(self, problem: Problem) -> Equations:
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

    def complete(self, X: Any, Y: Any, k: int = 10, *, fold_in: bool = True) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by probability. Candidates
        are the entries that were not observed (masked labels) or not said yes (any other labels).
        With `fold_in` the code of a row is fitted to what was said of it, centred on its features'
        (`tacit.models.fold_in`); without, the features alone decide.
        """
        if not fold_in:
            return super().complete(X, Y, k)
        X, labels = self._to_complete(X, Y)
        return self._completion(X, labels, k, self._folded_in)

    def _folded_in(self, block: Block) -> Array:
        """Codes fitted to what was said, with the mean eigenvalue of HᵀH in the place of λ.

        (1) does not say how far codes stray from Wᵀx, and its λ lets them stray too far: with this
        one a typical label moves the code half way, whatever the scale of H.
        """
        W, H = (block.backend.asarray(factor) for factor in (self.model_.W, self.model_.H))
        spread = inner(H, H) / H.shape[1]
        if spread == 0:
            return self._codes(block)
        return fold_in(block, W, H, self._loss, self.unsaid_weight_, spread)


def _counts(b: Block) -> tuple[int, int]:
    return b.Y.nnz, b.Y.shape[0]
