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

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from tacit.basics.params import a_float, an_int, check_params, one_of, or_auto
from tacit.engines.losses import LOSSES
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.estimators.paths import Path, grid_values
from tacit.methods.leml.minimise import Minimiser
from tacit.methods.leml.path import RANKS, REGS, choose, fit_path

__all__ = ["LEML", "Path"]


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
        With positive-only labels: the weight, up to 1, of an entry that was not said; that of a
        said no is its root. Also how much silence weighs when `complete` fits a row's code to what
        was said. "auto" is 0.3 √(share of all entries that were said yes), a rule that did well
        from 159 to 21,374 labels.
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
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
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
    rank_, reg_ : int, float
        Those used: the parameters, or what "auto" chose.
    unsaid_weight_ : float or None
        The weight that was used for what was not said; None where labels are complete or masked,
        so that nothing has it.
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

    label_kinds = ("complete", "masked", "positive-only")
    chosen = ("rank_", "reg_", "unsaid_weight_")
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
        normalize: Literal["auto", "l2"] | None = "auto",
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
        check_params(self)
        blocks, known = self._rows(X, Y)
        problem = self._problem(blocks, known)
        adopted = lambda params, fit: copy(self).set_params(**params).adopt(fit, known)
        return fit_path(self._minimiser, problem, *self._grid(ranks, regs), cv, adopted)

    def _fit(self, problem: Problem) -> Fit:
        rank, reg, how = self.rank, self.reg, self._minimiser
        if "auto" in (rank, reg):
            rank, reg = choose(how, problem, *self._grid(None, None))
        # A NumPy float32 would round the objective to float32.
        fit = how.solve(problem, int(rank), float(reg))
        return replace(fit, chosen={"rank_": rank, "reg_": reg, **fit.chosen})

    @property
    def _minimiser(self) -> Minimiser:
        return Minimiser(self.loss, self.solver, self.unsaid_weight, self.cg_tol, self.cg_max_iter)

    def _grid(
        self, ranks: Sequence[int] | None, regs: Sequence[float] | None
    ) -> tuple[list[int], list[float]]:
        return grid_values(self, "rank", ranks, RANKS), grid_values(self, "reg", regs, REGS)
