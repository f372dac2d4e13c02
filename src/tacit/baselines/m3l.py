"""M3L: max-margin multi-label learning with a prior on how labels go together (Hariharan et al.).

    min_Z  ½ λ tr(R⁻¹ ZᵀZ) + Σ_il max(0, 1 - 2 t_il x_iᵀ z_l),    t = 2y - 1 ∈ {-1, +1}         (1)

with R ≻ 0 the prior: labels l and m with a large R_lm have similar z. Here it is made of the
correlation of the labels' columns in the training data,

    R = (1 - ρ) I + ρ corr(Y),                                                                  (2)

that is (corr(Y) + εI) / (1 + ε) with ρ = 1 / (1 + ε); a label that is always or never said has the
correlation 0 with all others. With ρ = 0 the labels share nothing, and (1) is one support vector
machine a label. Silence is a no.

**Fitting**: coordinate ascent in the dual (the paper's α is ours times its C = 1/λ),

    max_{0 ≤ α ≤ 1}  D(α) = Σ_il α_il - ½ λ tr(R⁻¹ ZᵀZ),    Z = (2/λ) Xᵀ(α ∘ T) R,              (3)

row after row in random order, and for each row label after label: ∂D/∂α_il = 1 - 2 t_il x_iᵀ z_l
and ∂²D/∂α_il² = -4 R_ll ‖x_i‖² / λ, so the best α_il is known at once, and D never falls. Z itself
is kept up to date, so that a row needs no product with R, only the columns of R whose α moved.
Since λ tr(R⁻¹ ZᵀZ) = 2 Σ_il α_il t_il x_iᵀ z_l, the gap between (1) and (3) is a sum of terms of
which none is negative,

    Σ_il max(0, 1 - m_il) - α_il (1 - m_il),    m_il = 2 t_il x_iᵀ z_l.                         (4)

**Cost** of a pass: O(nnz(X) L), and L for each α that moves. Memory: α, n × L, and the rows of X.

An RBF kernel is `KernelFeatures("rbf")` in front of it, in a pipeline.

Reference: B. Hariharan, L. Zelnik-Manor, S. V. N. Vishwanathan and M. Varma. Large scale max-margin
multi-label classification with priors. ICML 2010. The abstract alone was at hand: (1) and (3) are
from memory, (2) and the order of the steps are ours.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from tacit.baselines.in_memory import rows_in_memory
from tacit.basics.params import a_float, an_int
from tacit.engines.descend import State
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import check_dense
from tacit.models import LowRank

__all__ = ["M3L"]


class M3L(MultiLabelEstimator):
    """Support vector machines coupled by the correlation of their labels, for complete labels.

    Silence is a no to it, and where half of the labels are hidden too little is left on the right
    side of its margins: it then ranks far behind ridge.

    Parameters
    ----------
    coupling : float, default=0.5
        The ρ of (2), from 0 (one machine a label) to below 1.
    reg : float, default=1.0
        The weight λ of (1), the paper's 1/C.
    max_iter : int, default=50
        Most passes over the rows.
    tol : float, default=1e-3
        Stop once a pass raises D by no more than `tol` times its value.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature (penalised like the others).
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold. At 0.5 these are the labels of positive score.
    random_state : int, RandomState or None, default=None
        Draws the order of the rows.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : LowRank
        Z, as W without an H. Probabilities are σ(2z), which is ½ where z changes sign and grows
        with z, but is calibrated nowhere.
    history_ : list of float
        -D after each pass. It never increases.
    gap_ : float
        The duality gap (4): (1) is at most this much above its least value.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 0], [0, 1], [1, 1]])
    >>> model = M3L(reg=0.01, coupling=0, fit_intercept=False, random_state=0).fit(X, Y)
    >>> model.decision_function(X).round(3)
    array([[ 0.5, -0.5],
           [-0.5,  0.5],
           [ 0.5,  0.5]])
    """

    _learned = ("gap_",)
    behind_ridge = (
        "Silence is a no to it, and where half of the labels are hidden too little is left on the "
        "right side of its margins: it then ranks far behind ridge."
    )
    _checks = {
        "coupling": (
            lambda v: a_float(at_least=0)[0](v) and v < 1,
            "a number of at least 0 and below 1",
        ),
        "reg": a_float(above=0),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        **shared_checks("device"),
    }

    device = "cpu"  # one number after the other: nothing for a GPU

    def __init__(
        self,
        *,
        coupling: float = 0.5,
        reg: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-3,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        random_state=None,
        verbose: bool = False,
    ):
        self.coupling = coupling
        self.reg = reg
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, problem: Problem) -> Fit:
        from tacit.baselines.m3l_ascent import ascend  # Numba takes its time to import

        n, d, n_labels = problem.n_samples, problem.n_features, problem.n_labels
        check_dense((d, n_labels), "M3L's coefficients", "LEML")
        check_dense((n, n_labels), "M3L's dual variables", "BinaryRelevance")
        check_dense((n_labels, n_labels), "M3L's correlation of labels", "BinaryRelevance")
        X, said = rows_in_memory(problem)
        R = correlated(said, float(self.coupling))
        seed = int(problem.rng.randint(2**31))

        def start() -> State:
            return {
                "alpha": np.zeros((n, n_labels)),
                "Z": np.zeros((d, n_labels)),
                "n": np.zeros(1),
            }

        def step(state: State) -> tuple[State, float]:
            alpha, Z = state["alpha"].copy(), state["Z"].copy()
            order = np.random.default_rng([seed, int(state["n"][0])]).permutation(n)
            ascend(
                X.indptr, X.indices, X.data, said, R, float(self.reg), order, alpha, Z,
                np.empty(n_labels), np.empty(n_labels),
            )  # fmt: skip
            new = {"alpha": alpha, "Z": Z, "n": state["n"] + 1}
            return new, -float(np.sum(alpha * (1 - 0.5 * _margins(X, said, Z))))

        state, history = problem.descend(start, step)
        slack = 1 - _margins(X, said, state["Z"])
        self.gap_ = float(np.sum(np.maximum(slack, 0) - state["alpha"] * slack))
        return Fit(LowRank(problem.to_host(state["Z"]), link="margin"), history)


def correlated(said: np.ndarray, coupling: float) -> np.ndarray:
    """R of (2)."""
    centred = said - said.mean(axis=0)
    norms = np.sqrt(np.sum(centred**2, axis=0))
    unit = centred / np.where(norms > 0, norms, 1)
    R = coupling * (unit.T @ unit)
    np.fill_diagonal(R, 1.0)
    return R


def _margins(X: sp.csr_array, said: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return 2 * np.where(said, 1.0, -1.0) * (X @ Z)
