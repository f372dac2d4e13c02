"""Binary relevance: one linear model a label, each on the rows where its label was observed.

    J(Z) = Σ_{(i, j) ∈ Ω} ℓ(y_ij, x_iᵀ z_j) + ½ λ ‖Z‖²                                         (1)

with Z of shape (n_features, n_labels). No label knows of another: (1) is LEML's objective with the
Frobenius norm of Z in place of the trace norm, and is a sum of n_labels convex problems. They are
solved many at a time, since a product of X with a matrix serves all its columns:

- squared loss, complete labels: Z = (XᵀX + λI)⁻¹XᵀY, one factorisation for all labels;
- squared loss, masked labels: conjugate gradients on S ↦ Xᵀ P_Ω(X S) + λS, each label with its own
  step sizes;
- squared hinge, sparse rows in memory: dual coordinate descent, as LIBLINEAR has it
  (`tacit.engines.hinge`), and Newton as below for what is left where λ is small;
- logistic, and squared hinge elsewhere: trust-region Newton (`tacit.engines.solvers.tron`), each
  label with its own region and verdict.

The second and the last are `tacit.engines.labelwise`. For the last there is also MM: the curvature
is bounded by that of one matrix for all labels, c XᵀX + λI, so one factorisation serves every step.
On bibtex its steps had to be accelerated (Nesterov, restarted by label) to arrive at all, and then
took about twice as long as Newton's to a relative gap of 1e-5 (as long, to 1e-3). Newton's need
nothing of size n_features² and do not care whether labels are masked.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from tacit.basics.numerics import inner
from tacit.basics.params import a_float, an_int, one_of
from tacit.engines.descend import State
from tacit.engines.hinge import hinge_weights, suits_dual_descent
from tacit.engines.labelwise import label_groups, newton_pass
from tacit.engines.losses import LOSSES
from tacit.engines.moments import Moments
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import check_dense
from tacit.models import LowRank

__all__ = ["BinaryRelevance"]


class BinaryRelevance(MultiLabelEstimator):
    """One linear model a label, trained on the observed labels only.

    Parameters
    ----------
    loss : {"squared", "logistic", "squared_hinge"}, default="squared"
        The loss ℓ of (1).
    reg : float, default=3.0
        The weight λ of (1).
    max_iter : int, default=50
        Most passes over the labels.
    tol : float, default=1e-4
        When a label is finished (its J is within `tol` of the least), and the fit: once a pass
        lowers J by no more than `tol` times its value. Squared loss with complete labels is solved
        exactly, and squared hinge on sparse rows in memory is one pass.
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
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : LowRank
        Z, as W without an H.
    history_ : list of float
        J after each pass. It never increases.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 0], [0, 1], [np.nan, 1]])
    >>> model = BinaryRelevance(reg=1.0, fit_intercept=False).fit(X, Y)
    >>> model.decision_function(X)
    array([[0.5, 0. ],
           [0. , 0.5],
           [0. , 0.5]])
    """

    label_kinds = ("complete", "masked")
    _checks = {
        "loss": one_of("squared", "logistic", "squared_hinge"),
        "reg": a_float(above=0),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        **shared_checks(),
    }

    random_state = None  # nothing is drawn

    def __init__(
        self,
        *,
        loss: Literal["squared", "logistic", "squared_hinge"] = "squared",
        reg: float = 3.0,
        max_iter: int = 50,
        tol: float = 1e-4,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        verbose: bool = False,
    ):
        self.loss = loss
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.verbose = verbose

    def _fit(self, problem: Problem) -> Fit:
        shape = (problem.n_features, problem.n_labels)
        check_dense(shape, "BinaryRelevance's coefficients", "LEML")
        if problem.kind == "complete" and self.loss == "squared":
            return self._ridge(problem)
        Z = np.zeros(shape, problem.dtype)
        if self.loss == "squared_hinge" and suits_dual_descent(problem.blocks):
            Z, J, finished = hinge_weights(problem.blocks, float(self.reg), self.tol)
            if finished:
                return Fit(LowRank(Z, link=self.loss), [J])
        loss = LOSSES[self.loss]
        groups = label_groups(problem.n_samples, problem.n_labels)

        def start() -> State:
            return {"Z": problem.backend.asarray(Z)}

        def step(state: State) -> tuple[State, float]:
            W, values = newton_pass(
                problem.blocks, lambda labels: loss, float(self.reg), state["Z"], groups,
                self.tol,
            )  # fmt: skip
            return {"Z": W}, float(array_namespace(values).sum(values))

        state, history = problem.descend(start, step)
        return Fit(LowRank(problem.to_host(state["Z"]), link=self.loss), history)

    def _ridge(self, problem: Problem) -> Fit:
        check_dense((problem.n_features,) * 2, "BinaryRelevance's XᵀX", "LEML")
        moments = Moments.of(problem.blocks, label_gram=False)
        Z = moments.ridge(self.reg)
        J = float(0.5 * (moments.n_positives - inner(Z, moments.xy)))
        return Fit(LowRank(problem.to_host(Z)), [J])
