"""Ridge: one linear model a label, all from the same normal equations.

    W = argmin ½ ‖Y - X W‖² + ½ λ tr(Wᵀ P W) = (XᵀX + λP)⁻¹ XᵀY,  P = (XᵀX / k̄)^(-p),            (1)

where k̄ is the mean eigenvalue of XᵀX. The constant feature is a column of X like the others, here
and in what follows. With the power p = 0, P is the identity: binary relevance with squared loss.
Tuned, it is hard to beat (and says so wherever it wins); its price is a dense n_features × n_labels
matrix.

p > 0 is a prior of the data's own. It trusts directions in which the features of all rows vary, of
rows without labels too: a row hears the neighbours of its neighbours. With XᵀX = Q diag(g) Qᵀ and
q = (g / k̄)^p,

    W = Q diag(q / (g q + λ)) Qᵀ XᵀY,                                                            (2)

and directions in which no row varies have no weight.

XᵀX is laid out while it is no larger than what the library lays out at all; beyond, conjugate
gradients solve for all labels at once. For p = 2 they need no eigenvectors: with G = XᵀX / k̄,

    W = G Z,  (G XᵀX G + λI) Z = G XᵀY,                                                          (3)

three products with XᵀX a step, where p = 0 has one. Other powers have no such form.

**Cost**: O(Σ_i nnz(x_i)² + d³ + d² L), where d³ is one factorisation for p = 0 and the eigenvectors
for p > 0, several times dearer. By conjugate gradients, O(nnz(X) L) a product.

Reference for p > 0, a polynomial transfer of the spectrum: O. Chapelle, J. Weston, B. Schölkopf.
Cluster kernels for semi-supervised learning. NIPS 2002.
"""

from __future__ import annotations

from typing import Literal

from array_api_compat import array_namespace

from tacit import labels
from tacit.backends import Array
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
    power : float, default=0.0
        The p of (1): 0 is plain ridge; more trusts directions in which the features of all rows
        vary. With more than 16,384 features, 0 or 2.
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
        "power": a_float(at_least=0),
        **shared_checks("verbose"),
    }

    # Nothing is drawn, and one solve is over before a bar shows.
    random_state, verbose = None, False

    def __init__(
        self,
        *,
        reg: float = 3.0,
        power: float = 0.0,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
    ):
        self.reg = reg
        self.power = power
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device

    def _fit(self, problem: Problem) -> Fit:
        d = problem.n_features
        labels.check_dense((d, problem.n_labels), "Ridge's coefficients", "LEML")
        if d * d <= labels.DENSE_LIMIT:
            moments = Moments.of(problem.blocks, label_gram=False)
            plain = self.power == 0
            W = moments.ridge(self.reg) if plain else _exact(moments, self.reg, self.power)
        elif self.power == 0:
            products = Products(problem.blocks, _RTOL, _STEPS)
            W = products.regress(products.xy, self.reg)
        elif self.power == 2:
            W = _by_steps(problem, self.reg)
        else:
            raise ValueError(
                f"Ridge: power must be 0 or 2 where XᵀX has {d:,} × {d:,} entries, more than the "
                f"{labels.DENSE_LIMIT:,} that may be laid out for others; got {self.power!r}"
            )
        return Fit(LowRank(problem.to_host(W)))


def _exact(moments: Moments, reg: float, power: float) -> Array:
    """(2), where q is a fraction of two numbers of at most 1, so that no power overflows."""
    g, Q = moments.spectrum
    xp = array_namespace(g)
    t = g / _or_one(float(xp.mean(g)))
    q, under_q = xp.clip(t, max=1.0) ** power, xp.clip(t, min=1.0) ** -power
    return Q @ ((q / (g * q + reg * under_q))[:, None] * (Q.T @ moments.xy))


def _by_steps(problem: Problem, reg: float) -> Array:
    """(3), for as many labels at a time as scores of all rows may be laid out."""
    products = Products(problem.blocks, _RTOL, _STEPS)
    xy, width = products.xy, max(1, labels.DENSE_LIMIT // problem.n_samples)
    parts = [
        products.regress_with_prior(xy[:, start : start + width], reg)
        for start in range(0, problem.n_labels, width)
    ]
    return array_namespace(xy).concat(parts, axis=1)


def _or_one(mean: float) -> float:
    """What may be divided by: 1 where all features are 0."""
    return mean if mean > 0 else 1.0
