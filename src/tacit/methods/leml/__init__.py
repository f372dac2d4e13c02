"""LEML: low-rank empirical risk minimisation for multi-label learning with missing labels.

The scores are Z = X W Hᵀ, with W of shape (n_features, rank) and H of shape (n_labels, rank).
LEML minimises, over the observed entries Ω,

    J(W, H) = Σ_{(i, j) ∈ Ω} ½ (y_ij - x_iᵀ W h_j)² + ½ λ (‖W‖² + ‖H‖²).                       (1)

J is not convex in (W, H), but quadratic in each factor, so solving for each in turn never
increases it. With the codes A = X W:

**H step.** Every label is a ridge problem in `rank` variables, (A_jᵀA_j + λI) h_j = A_jᵀ y_j,
with the rows A_j observed for label j. All Gram matrices are built by one kernel and solved as a
batch; with complete labels they are one and the same, H = (YᵀA)(AᵀA + λI)⁻¹. At the minimum (1)
is ½ (Σ y² - ⟨H, B⟩ + λ‖W‖²), where the rows of B are the right-hand sides: the objective costs
nothing.

**W step, complete labels** (Algorithm 2). The gradient is XᵀX W M - XᵀY H + λW with M = HᵀH, in
which n × L never occurs. The paper runs conjugate gradients on it. Rotating by the eigenvectors
of M = R diag(m) Rᵀ first,

    XᵀX W̃ diag(m) + λW̃ = XᵀY H R,    W = W̃ Rᵀ,                                              (2)

splits it into `rank` ridge problems, solved exactly from the moments where n_features allows, and
by conjugate gradients with one step size a column where not (`tacit.moments`).

**W step, masked labels** (Algorithm 1). Conjugate gradients on the Hessian S ↦ Xᵀ(P_Ω(X S Hᵀ) H)
+ λS, in O((nnz(X) + |Ω|) rank) a product (`tacit.risk`, `tacit.models.FixedH`).

**Start.** The reduced-rank ridge solution with what was not said as 0: V, the leading
eigenvectors of YᵀX(XᵀX + λI)⁻¹XᵀY, and W = (XᵀX + λI)⁻¹XᵀY V, scaled so that the columns of W and
H have equal norms.

Reference: H.-F. Yu, P. Jain, P. Kar and I. S. Dhillon. Large-scale multi-label learning with
missing labels. ICML 2014.
"""

from __future__ import annotations

from typing import Literal

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.base import MultiLabelEstimator, Problem, shared_checks
from tacit.fitting import State
from tacit.labels import DENSE_LIMIT
from tacit.losses import LOSSES, Loss
from tacit.models import FixedH, LowRank
from tacit.moments import Equations, Moments, Products
from tacit.numerics import inner
from tacit.params import a_float, an_int, one_of
from tacit.risk import Risk
from tacit.solvers import cg, leading_subspace

__all__ = ["LEML"]

_EXACT_FEATURES = 2048  # up to here the O(d³) of the exact route is a second or two
_GRAM_NUMBERS = 2**26  # Gram matrices of the masked H step held at a time: 512 MiB in float64
_OVERSAMPLE = 10  # columns beyond `rank` in the start's subspace iteration


class LEML(MultiLabelEstimator):
    """Low-rank multi-label model, trained on the observed labels only.

    Parameters
    ----------
    rank : int, default=100
        Number of columns of W and H; more than min(n_features, n_labels) adds nothing and is cut
        to that.
    loss : {"squared"}, default="squared"
        The loss of (1).
    reg : float, default=1.0
        The weight λ of (1).
    solver : {"auto", "exact", "cg"}, default="auto"
        How (2) is solved: from the moments, or by conjugate gradients. "auto" takes the moments
        up to 2,048 features. Masked labels always use conjugate gradients.
    max_iter : int, default=20
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
    history_ : list of float
        J after each pass. It never increases.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(4), np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> LEML(rank=2, reg=0.01, random_state=0).fit(X, Y).predict(X).toarray()[:, 0]
    array([1, 1, 0, 0], dtype=int8)
    """

    _kinds = ("complete", "masked")
    _checks = {
        "rank": an_int(at_least=1),
        "loss": one_of("squared"),
        "reg": a_float(above=0),
        "solver": one_of("auto", "exact", "cg"),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        "cg_tol": a_float(at_least=0),
        "cg_max_iter": an_int(at_least=1),
        **shared_checks(),
    }

    def __init__(
        self,
        rank: int = 100,
        *,
        loss: Literal["squared"] = "squared",
        reg: float = 1.0,
        solver: Literal["auto", "exact", "cg"] = "auto",
        max_iter: int = 20,
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

    def _fit(self, problem: Problem) -> LowRank:
        equations = self._equations(problem)
        reg = float(self.reg)  # a NumPy float32 would round the objective to float32
        solve_W, solve_H = (
            (self._complete_W, self._complete_H)
            if problem.kind == "complete"
            else (self._masked_W, self._masked_H)
        )

        def start() -> State:
            W = self._reduced_rank_ridge(problem, equations)
            H, _ = solve_H(problem, equations, W)
            return {"W": W, "H": H}

        def step(state: State) -> tuple[State, float]:
            W = solve_W(problem, equations, state["W"], state["H"])
            H, explained = solve_H(problem, equations, W)
            objective = 0.5 * (equations.n_positives - explained + reg * inner(W, W))
            return {"W": W, "H": H}, objective

        state = problem.descend(start, step)
        return LowRank(*(problem.backend.to_numpy(state[name]) for name in "WH"))

    def _equations(self, problem: Problem) -> Equations:
        XtY = problem.n_features * problem.n_labels
        small = problem.n_features <= _EXACT_FEATURES and XtY <= DENSE_LIMIT
        if problem.kind == "complete" and self.solver != "cg" and (small or self.solver == "exact"):
            return Moments.of(problem.blocks, label_gram=False)
        return Products(problem.blocks, self.cg_tol, self.cg_max_iter)

    def _reduced_rank_ridge(self, problem: Problem, equations: Equations) -> Array:
        rank = min(self.rank, problem.n_features, problem.n_labels)
        # Random numbers are drawn for the features, so that permuting labels permutes the start.
        width = min(rank + _OVERSAMPLE, problem.n_labels)
        V, _ = equations.statistics(problem.normal(problem.n_features, width))
        xp = array_namespace(V)
        ridge = lambda V: equations.solve(equations.cross(V), xp.ones_like(V[0]), self.reg)
        V = leading_subspace(lambda V: equations.statistics(ridge(V))[0], V, n_iter=2)[:, :rank]
        W = ridge(V)
        norms = xp.sqrt(xp.sum(W * W, axis=0))  # those of H = V are 1
        return W / xp.sqrt(xp.where(norms > 0, norms, xp.ones_like(norms)))

    def _complete_W(self, problem: Problem, equations: Equations, W: Array, H: Array) -> Array:
        """Solve (2)."""
        m, R = array_namespace(H).linalg.eigh(H.T @ H)
        return equations.solve(equations.cross(H) @ R, m, self.reg, start=W @ R) @ R.T

    def _complete_H(self, problem: Problem, equations: Equations, W: Array) -> tuple[Array, float]:
        B, gram = equations.statistics(W)
        H = _ridge(gram, B, self.reg)
        return H, inner(H, B)

    def _masked_W(self, problem: Problem, equations: Equations, W: Array, H: Array) -> Array:
        """One Newton step by conjugate gradients: J is quadratic in W, so it is the solution."""
        risk = Risk(problem.blocks.map(FixedH, H), self._loss, self.reg)
        step = cg(risk.hessp(W), -risk.grad(W), rtol=self.cg_tol, max_iter=self.cg_max_iter)
        return W + step.x

    def _masked_H(self, problem: Problem, equations: Equations, W: Array) -> tuple[Array, float]:
        B = problem.blocks.sum(_said_by_codes, W)
        width = max(1, _GRAM_NUMBERS // W.shape[1] ** 2)
        xp = array_namespace(W)
        H = xp.concat(
            [
                _ridge_batch(problem, W, B, slice(j, min(j + width, len(B))), self.reg)
                for j in range(0, len(B), width)
            ]
        )
        return H, inner(H, B)


def _ridge(gram: Array, B: Array, reg: float) -> Array:
    """B (gram + λI)⁻¹ in float64, since k × k costs nothing and conditioning may."""
    xp = array_namespace(gram)
    wide = xp.astype(gram, xp.float64)
    eye = xp.eye(gram.shape[0], dtype=xp.float64, device=gram.device)
    H = xp.linalg.solve(wide + reg * eye, xp.astype(B, xp.float64).T).T
    return xp.astype(H, B.dtype)


def _ridge_batch(problem: Problem, W: Array, B: Array, labels: slice, reg: float) -> Array:
    """The h_j of some labels, each from its own Gram matrix."""
    xp = array_namespace(B)
    grams = xp.astype(problem.blocks.sum(_grams, W, labels), xp.float64)
    eye = xp.eye(W.shape[1], dtype=xp.float64, device=B.device)
    H = problem.backend.solve_spd(grams + reg * eye, xp.astype(B[labels], xp.float64))
    return xp.astype(H, B.dtype)


def _said_by_codes(b: Block, W: Array) -> Array:
    """YᵀA: only entries said yes count, and all of those are in Ω."""
    return b.kernels.spmm_t(b.Y, b.project(W))


def _grams(b: Block, W: Array, labels: slice) -> Array:
    return b.kernels.grams(b.omega, b.project(W), labels)
