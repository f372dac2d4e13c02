"""Ridge: one linear model a label, all from the same normal equations.

    W = argmin ½ ‖Y - X W‖² + ½ λ ‖W‖² = (XᵀX + λI)⁻¹ XᵀY

Binary relevance with squared loss. Tuned, it is hard to beat (and says so wherever it wins); its
price is a dense n_features × n_labels matrix. XᵀX is laid out while it is no larger than what the
library lays out at all; beyond, conjugate gradients solve for all labels at once.
"""

from __future__ import annotations

from typing import Literal

from tacit import labels
from tacit.basics.params import a_float
from tacit.engines.moments import Moments, Products
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.models import LowRank

__all__ = ["Ridge"]

_RTOL, _STEPS = 1e-5, 200  # of conjugate gradients


class Ridge(MultiLabelEstimator):
    """Ridge regression on the 0/1 labels, for complete labels.

    Parameters
    ----------
    reg : float, default=3.0
        The weight λ.
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
    fit_intercept : bool, default=True
        Add a constant feature (penalised like the others).
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(2), np.array([[1, 0], [0, 1]])
    >>> Ridge(reg=1.0, fit_intercept=False).fit(X, Y).decision_function(X)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    _checks = {
        "reg": a_float(above=0),
        **shared_checks("verbose"),
    }

    # Nothing is drawn, and one solve is over before a bar shows.
    random_state, verbose = None, False

    def __init__(
        self,
        *,
        reg: float = 3.0,
        normalize: Literal["l2"] | None = "l2",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
    ):
        self.reg = reg
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device

    def _fit(self, problem: Problem) -> Fit:
        d = problem.n_features
        labels.check_dense((d, problem.n_labels), "Ridge's coefficients", "LEML")
        if d * d <= labels.DENSE_LIMIT:
            W = Moments.of(problem.blocks, label_gram=False).ridge(self.reg)
        else:
            products = Products(problem.blocks, _RTOL, _STEPS)
            W = products.regress(products.xy, self.reg)
        return Fit(LowRank(problem.to_host(W)))
