"""Binary relevance: one linear model a label, each on the rows where its label was observed.

    J(Z) = Σ_{(i, j) ∈ Ω} ℓ(y_ij, x_iᵀ z_j) + ½ λ ‖Z‖²                                         (1)

with Z of shape (n_features, n_labels). No label knows of another: (1) is LEML's objective with the
Frobenius norm of Z in place of the trace norm, and is a sum of n_labels convex problems. They are
solved many at a time, since a product of X with a matrix serves all its columns:

- squared loss, complete labels: Z = (XᵀX + λI)⁻¹XᵀY, one factorisation for all labels;
- squared loss, masked labels: conjugate gradients on S ↦ Xᵀ P_Ω(X S) + λS, each label with its own
  step sizes;
- logistic and squared hinge: trust-region Newton (`tacit.solvers.tron`), each label with its own
  region and verdict.

(1) is λ-strongly convex, so J_j(z) - min J_j ≤ ‖∇J_j(z)‖² / 2λ, and a label is finished once

    ‖∇J_j(z_j)‖ ≤ √(2 λ tol J_j(z_j)):    then J_j is within tol J_j of its minimum.            (2)

X Z is n_samples × n_labels, so labels are taken in groups, few enough for the scores of a group
to stay small. For the last case there is also MM: the curvature is bounded by that of one matrix
for all labels, c XᵀX + λI, so one factorisation serves every step. On bibtex its steps had to be
accelerated (Nesterov, restarted by label) to arrive at all, and then took about twice as long as
Newton's to a relative gap of 1e-5 (as long, to 1e-3). Newton's need nothing of size n_features² and
do not care whether labels are masked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.base import MultiLabelEstimator, Problem, shared_checks
from tacit.fitting import State
from tacit.labels import check_dense
from tacit.losses import LOSSES, Loss
from tacit.models import LowRank
from tacit.moments import Moments
from tacit.numerics import inner
from tacit.params import a_float, an_int, one_of
from tacit.risk import Risk
from tacit.solvers import cg, tron
from tacit.solvers.cg import ratio

__all__ = ["BinaryRelevance"]

_GROUP_SCORES = 2**24  # scores of a group of labels: 128 MiB in float64, two or three times
_NEWTON_STEPS = 10  # a pass: enough for most labels to be finished in two, few enough to show
_CG_STEPS = 50  # products for one Newton step, or for one pass where J is quadratic


class BinaryRelevance(MultiLabelEstimator):
    """One linear model a label, trained on the observed labels only.

    Parameters
    ----------
    loss : {"squared", "logistic", "squared_hinge"}, default="squared"
        The loss ℓ of (1).
    reg : float, default=1.0
        The weight λ of (1).
    max_iter : int, default=50
        Most passes over the labels.
    tol : float, default=1e-4
        When a label is finished, by (2), and the fit: once a pass lowers J by no more than `tol`
        times its value. Squared loss with complete labels is solved exactly.
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
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

    _kinds = ("complete", "masked")
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
        reg: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-4,
        normalize: Literal["l2"] | None = "l2",
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

    @property
    def _loss(self) -> Loss:
        return LOSSES[self.loss]

    def _fit(self, problem: Problem) -> LowRank:
        shape = (problem.n_features, problem.n_labels)
        check_dense(shape, "BinaryRelevance's coefficients", "LEML")
        if problem.kind == "complete" and self.loss == "squared":
            return LowRank(problem.backend.to_numpy(self._ridge(problem)), None)
        groups = _groups(problem)

        def start() -> State:
            return {"Z": problem.backend.asarray(np.zeros(shape, problem.dtype))}

        def step(state: State) -> tuple[State, float]:
            Z = state["Z"]
            xp, parts, objective = array_namespace(Z), [], 0.0
            for labels in groups:
                maps = problem.blocks.map(Columns, labels)
                risk = Risk(maps, self._loss, float(self.reg), axis=0)
                part, values = self._newton(risk, Z[:, labels])
                parts.append(part)
                objective += float(xp.sum(values))
            return {"Z": xp.concat(parts, axis=1)}, objective

        return LowRank(problem.backend.to_numpy(problem.descend(start, step)["Z"]), None)

    def _ridge(self, problem: Problem) -> Array:
        check_dense((problem.n_features,) * 2, "BinaryRelevance's XᵀX", "LEML")
        moments = Moments.of(problem.blocks, label_gram=False)
        Z = moments.ridge(self.reg)
        self.history_.append(0.5 * (moments.n_positives - inner(Z, moments.xy)))
        return Z

    def _newton(self, risk: Risk, Z: Array) -> tuple[Array, Array]:
        """Z after a pass, and J there by label."""
        xp = array_namespace(Z)
        gtol = xp.sqrt(2 * risk.reg * self.tol * risk.values(Z))  # (2)
        if self.loss != "squared":
            found = tron(risk, Z, gtol=gtol, max_iter=_NEWTON_STEPS, cg_max_iter=_CG_STEPS)
            return found.w, found.values
        g = risk.grad(Z)
        rtol = ratio(gtol, xp.sqrt(xp.sum(g * g, axis=0, keepdims=True)))
        Z = Z + cg(risk.hessp(Z), -g, rtol=rtol, max_iter=_CG_STEPS, axis=0).x
        return Z, risk.values(Z)


class Columns:
    """Z ↦ P_Ω(X Z) for some of the labels, a column of Z each; its adjoint is G ↦ Xᵀ G.

    The numbers on Ω are a vector, or the whole array of n_rows × labels where Ω is everything.
    """

    def __init__(self, block: Block, labels: slice):
        self.block = _of_labels(block, labels)
        omega = self.block.omega
        self.shape, self.cells = self.block.Y.shape, None if omega is None else _cells(omega)

    def forward(self, Z: Array) -> Array:
        scores, xp = self.block.project(Z), array_namespace(Z)
        return scores if self.cells is None else xp.reshape(scores, (-1,))[self.cells]

    def adjoint(self, g: Array) -> Array:
        return self.block.project_t(self._laid_out(g))

    def totals(self, e: Array) -> Array:
        """A sum a label, of shape (1, labels): each column of Z is a problem of its own."""
        return array_namespace(e).sum(self._laid_out(e), axis=0, keepdims=True)

    def _laid_out(self, e: Array) -> Array:
        if self.cells is None:
            return e
        xp = array_namespace(e)
        out = xp.zeros(self.shape[0] * self.shape[1], dtype=e.dtype, device=e.device)
        out[self.cells] = e
        return xp.reshape(out, self.shape)


def _groups(problem: Problem) -> list[slice]:
    width = max(1, _GROUP_SCORES // max(problem.n_samples, 1))
    n_labels = problem.n_labels
    return [slice(j, min(j + width, n_labels)) for j in range(0, n_labels, width)]


def _of_labels(b: Block, labels: slice) -> Block:
    """The same rows with some of the labels, and y on all their entries."""
    Y, _ = _columns(b.Y, labels)
    if b.omega is None:
        dtype = b.X.data.dtype if isinstance(b.X, Sparse) else b.X.dtype
        return replace(b, Y=Y, y=b.kernels.dense(Y, slice(0, Y.shape[0]), dtype))
    omega, kept = _columns(b.omega, labels)
    return replace(b, Y=Y, omega=omega, y=b.y[kept])


def _columns(S: Sparse, columns: slice) -> tuple[Sparse, Array]:
    """Some columns of a pattern, and which of its entries they keep."""
    xp = array_namespace(S.indices)
    kept = (S.indices >= columns.start) & (S.indices < columns.stop)
    before = xp.cumulative_sum(xp.astype(kept, xp.int64), include_initial=True)
    indices = S.indices[kept] - columns.start
    shape = (S.shape[0], columns.stop - columns.start)
    return Sparse(shape, before[S.indptr], indices, None, S.kernels), kept


def _cells(S: Sparse) -> Array:
    """Where each entry of a pattern stands in the array of its shape, laid out row after row."""
    xp = array_namespace(S.indptr)
    rows = xp.arange(S.shape[0], device=S.indptr.device)
    return xp.repeat(rows, xp.diff(S.indptr)) * S.shape[1] + S.indices
