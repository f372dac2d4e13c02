"""WELL-like: few labels, spread along a graph of similar rows (after Sun, Zhang and Zhou).

The graph joins each row with its `n_neighbors` nearest by cosine; S_ij ≥ 0 is the cosine of two
rows if one of them is among the nearest of the other, else 0, and all S are scaled to a mean degree
of 1. Each label has a value f_i ∈ [0, 1] for every row that the model is fitted on, 1 where the
label was said:

    min_f  J = ¼ Σ_ij S_ij (f_i - f_j)² + α Σ_i f_i + ½ β Σ_i (f_i - y_i)²,
    f_i = 1 where y_i = 1,  0 ≤ f ≤ 1.                                                          (1)

The first term wants similar rows to agree, so that f changes where rows are few; the others want
few rows to have the label, and what was not said to be false unless the graph speaks for it. (1) is
a convex quadratic programme with one matrix for all labels. All are solved at once by projected
Jacobi steps from f = y: with d_i = Σ_j S_ij, wherever the label was not said,

    f_i ← max(0, (Σ_j S_ij f_j - α) / (d_i + β)).                                               (2)

No step raises J, since D + S ≻ 0 with D = diag(d + β), f only grows, and stays below 1.

**New rows** have no place in the graph. They are scored by ridge regression on f,

    W = argmin ½ ‖F - XW‖² + ½ λ ‖W‖²,                                                          (3)

by conjugate gradients. This part is ours: the paper labels only the rows that it learns from.

**Cost**: O(n²) cosines once, then O(n `n_neighbors` L) a step. Memory: three arrays of n × L.

Only the abstract of the paper was at hand. From it are: f as in (1), with the low density, the few
positives, and the convex programme. The terms of (1) and their constants could not be verified, and
one thing is missing: in the paper each label has a similarity of its own, combined of a few that
all labels share, and so learns from the others. Here all labels have the same.

Reference: Y.-Y. Sun, Y. Zhang and Z.-H. Zhou. Multi-label learning with weak label. AAAI 2010.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from tacit.baselines.in_memory import rows_in_memory
from tacit.basics.params import a_float, an_int
from tacit.engines.descend import State
from tacit.engines.solvers import cg
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import check_dense
from tacit.models import LowRank

__all__ = ["WELL"]

_MOST_ROWS = 20_000


class WELL(MultiLabelEstimator):
    """WELL-like completion of the rows it is fitted on, for positive-only labels of small data.

    It reads a said no as silence, though `complete` leaves it out.
    It is for small data: its time grows with the square of the rows, and soon is more than twenty
    times that of ridge.

    Parameters
    ----------
    n_neighbors : int, default=10
        How many others each row is joined with.
    alpha : float, default=0.01
        The α of (1): what it costs to call a label true.
    beta : float, default=1.0
        The β of (1): what it costs to say other than what was said.
    reg : float, default=1.0
        The λ of (3).
    max_iter : int, default=500
        Most steps (2).
    tol : float, default=1e-4
        Stop once a step lowers J by no more than `tol` times its value.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature to (3), penalised like the others.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    completed_ : ndarray of shape (n_samples, n_labels)
        F: for each row of the fit, how far each label is true. Not saved with the model.
    model_ : LowRank
        W of (3), without an H.
    history_ : list of float
        J of all labels after each step. It never increases.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    Two kinds of rows, and for each kind a label said once:

    >>> import numpy as np
    >>> X = np.array([[1, 0, 1], [1, 0, 2], [1, 0, 3], [0, 1, 1], [0, 1, 0], [0, 2, 1]])
    >>> Y = np.array([[1, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 0]])
    >>> model = WELL(n_neighbors=2, alpha=0.01, beta=0.1).fit(X, Y)
    >>> model.completed_.argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """

    behind_ridge = (
        "It is for small data: its time grows with the square of the rows, and soon is more than "
        "twenty times that of ridge."
    )
    label_kinds = ("positive-only",)
    _checks = {
        "n_neighbors": an_int(at_least=1),
        "alpha": a_float(at_least=0),
        "beta": a_float(above=0),
        "reg": a_float(above=0),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        **shared_checks("device"),
    }

    device, random_state = "cpu", None  # small data, and nothing is drawn

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        alpha: float = 0.01,
        beta: float = 1.0,
        reg: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-4,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        verbose: bool = False,
    ):
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.beta = beta
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.verbose = verbose

    def _fit(self, problem: Problem) -> Fit:
        if problem.n_samples > _MOST_ROWS:
            raise ValueError(
                f"WELL compares every row with every other, and takes at most {_MOST_ROWS:,} of "
                f"them; got {problem.n_samples:,}; give fewer rows, or use Elkan08 or GenEML"
            )
        check_dense((problem.n_samples, problem.n_labels), "WELL's completed labels", "GenEML")
        check_dense((problem.n_features, problem.n_labels), "WELL's coefficients", "GenEML")
        X, said = rows_in_memory(problem)
        S = similarities(X[:, :-1] if self.fit_intercept else X, self.n_neighbors)
        degrees = np.asarray(S.sum(axis=1))[:, None] + self.beta

        def start() -> State:
            F = said.astype(np.float64)
            return {"F": F, "SF": S @ F}

        def step(state: State) -> tuple[State, float]:
            F = np.maximum(0, (state["SF"] - self.alpha) / degrees)
            F[said] = 1.0
            SF = S @ F
            smooth = 0.5 * np.sum(F * (degrees * F - SF))  # with ½ β f² in it, of all entries
            J = smooth + self.alpha * F.sum() - 0.5 * self.beta * said.sum()
            return {"F": F, "SF": SF}, float(J)

        state, history = problem.descend(start, step)
        F = state["F"]
        self.completed_ = F.astype(problem.dtype)
        normal = lambda V: X.T @ (X @ V) + self.reg * V
        W = cg(normal, X.T @ F, rtol=1e-8, max_iter=1000, axis=0).x
        return Fit(LowRank(problem.to_host(W)), history)


def similarities(X: sp.csr_array, n_neighbors: int) -> sp.csr_array:
    """S of (1)."""
    n = X.shape[0]
    k = min(n_neighbors, n - 1)
    if k == 0:
        return sp.csr_array((n, n))
    nearest = NearestNeighbors(n_neighbors=k, metric="cosine").fit(X)
    near = sp.csr_array(nearest.kneighbors_graph(mode="distance"))
    near.data = np.maximum(0, 1 - near.data)
    S = near.maximum(near.T)
    S.eliminate_zeros()  # nothing in common: which of many such rows was named is chance
    return S * (n / S.sum() if S.nnz else 1.0)
