"""NNML: one hidden layer and a sigmoid for each label (Nam, Kim, Loza Mencía, Gurevych, Fürnkranz).

    U = max(0, XW),    Z = U Vᵀ + 1bᵀ,    J = Σ_{(i, j) ∈ Ω} log(1 + exp(-t_ij z_ij))          (1)

with t = 2y - 1, and Ω the known entries, all of them where labels are complete. Silence among
complete labels is a no. Units are silent at random while it learns (`dropout`),

    u_ih ← m_ih u_ih / (1 - p),    P(m_ih = 0) = p,                                            (2)

which is all that keeps it from learning the rows by heart. There is no ranking in (1): the paper's
point is that cross-entropy, label by label, ranks better than a loss over pairs of labels.

**Fitting**: AdaGrad on mini-batches, W, V and b from one pass (`tacit.engines.network`), with b at
each label's log-odds to begin with. **Cost** of a pass: O(nnz(X) rank + n L rank), masked or not.

The paper learns a threshold for each row from its scores; here `predict` has `threshold` and `k`.

Reference: J. Nam, J. Kim, E. Loza Mencía, I. Gurevych and J. Fürnkranz. Large-scale multi-label
text classification: revisiting neural networks. ECML PKDD 2014.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tacit.basics.params import a_float, an_int
from tacit.engines.network import Network
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.models.hidden_layer import HiddenLayer

__all__ = ["NNML"]


class NNML(MultiLabelEstimator):
    """A network of one hidden layer with cross-entropy, for complete and masked labels.

    Parameters
    ----------
    rank : int, default=1000
        Hidden units: the length of the code max(0, Wᵀx).
    dropout : float, default=0.5
        The p of (2), from 0 (none) to below 1.
    rate : float, default=0.01
        AdaGrad's ρ: about how far the first step moves every number.
    batch_size : int, default=200
        Rows of a batch.
    max_iter : int, default=30
        Most passes over the rows.
    tol : float, default=1e-3
        Stop once a pass lowers the objective by no more than `tol` times its value.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature. b is there in any case.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the start, the batches and the silent units.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : HiddenLayer
        W, and [V, b] as H.
    history_ : list of float
        The objective (1) after each pass, with no unit silent.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    One label is the exclusive or of two features, which no linear model knows:

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> Y = np.array([[0, 1], [1, 1], [1, 1], [0, 0]])
    >>> model = NNML(50, dropout=0, rate=0.1, max_iter=200, normalize=None, random_state=0)
    >>> model.fit(X, Y).predict(X).toarray()
    array([[0, 1],
           [1, 1],
           [1, 1],
           [0, 0]], dtype=int8)
    """

    label_kinds = ("complete", "masked")
    model_kinds = (HiddenLayer,)
    deals_rows = "batches"
    _checks = {
        "rank": an_int(at_least=1),
        "dropout": (
            lambda v: a_float(at_least=0)[0](v) and v < 1,
            "a number of at least 0 and below 1",
        ),
        "rate": a_float(above=0),
        "batch_size": an_int(at_least=1),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        **shared_checks(),
    }

    def __init__(
        self,
        rank: int = 1000,
        *,
        dropout: float = 0.5,
        rate: float = 0.01,
        batch_size: int = 200,
        max_iter: int = 30,
        tol: float = 1e-3,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state=None,
        verbose: bool = False,
    ):
        self.rank = rank
        self.dropout = dropout
        self.rate = rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, problem: Problem) -> Fit:
        network = Network("relu", "logistic", float(self.rate), dropout=float(self.dropout))
        state, history = network.fitted(problem, self.rank, self.batch_size)
        W, V, b = (problem.to_host(state[name]) for name in ("W", "V", "b"))
        return Fit(HiddenLayer(W, np.hstack([V, b[:, None]])), history)
