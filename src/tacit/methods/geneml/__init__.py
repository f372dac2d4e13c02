"""GenEML: who was never asked, and what would they have said (Jain, Modhe & Rai 2017).

    u_n ~ N(Wᵀx_n, I/λ_u),   v_l ~ N(0, I/λ_v),   ψ_nl = u_nᵀv_l + b_l
    asked_nl ~ Bernoulli(μ_nl);   if asked, a yes is said with probability σ(ψ_nl); else silence

Silence is a no or a question never asked, and which of the two is part of what is learned. Labels
that are complete were all asked (μ = 1); in masked labels it is known who was asked; with
positive-only labels each silence has a posterior, P(asked | silence) = μσ(-ψ) / (1 - μσ(ψ)); who
said no was asked.

`em.py` holds batch EM, `online.py` online EM, `gibbs.py` the sampler, `model.py` what they leave
behind; `tacit.engines.exposure` holds μ.

References
----------
V. Jain, N. Modhe, P. Rai. "Scalable Generative Models for Multi-label Learning with Missing
Labels". ICML 2017.
"""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_float, an_int, one_of
from tacit.engines.descend import State
from tacit.engines.exposure import AllAsked, CovariateExposure, Exposure, PerLabel
from tacit.engines.moments import Equations, Moments, Products
from tacit.estimators import Fit, MultiLabelEstimator, Online, Problem, shared_checks
from tacit.labels import check_dense
from tacit.methods.geneml.em import EM, Priors, label_map
from tacit.methods.geneml.gibbs import gibbs
from tacit.methods.geneml.model import ExposedLowRank, Sampled
from tacit.methods.geneml.online import OnlineEM

__all__ = ["GenEML"]

_FACTOR_FEATURES = 8192  # up to here XᵀX is formed and factorised; beyond, conjugate gradients
_SPECTRUM_FEATURES = 2048  # up to here it is diagonalised, where that is needed
_CG_TOL, _CG_STEPS = 1e-3, 20
_THIN = 2  # sweeps of the sampler between draws that are kept


class GenEML(Online, MultiLabelEstimator):
    """Low-rank logistic model in which silence may mean that nobody asked.

    Where four in five labels are hidden, exposure explains part of what the features would: on
    dense features it ranks up to three points of P@3 behind tuned ridge, and less than one with
    `embedding="tied"`.

    Parameters
    ----------
    rank : int, default=200
        Number of coordinates of a code; at most min(n_features, n_labels) are used.
    embedding : {"free", "tied"}, default="free"
        "free" gives each training row a code of its own, near Wᵀx; "tied" makes it Wᵀx, which is
        logistic LEML with exposure.
    exposure : {"labels", "covariates", None}, default="labels"
        With positive-only labels: one μ for each label; or μ_nl = σ(m_l + x_nᵀB f_l), driven by
        the features of rows and labels (`label_features` of `fit`); or everybody was asked.
    inference : {"em", "online", "gibbs"}, default="em"
        Batch EM; online EM over mini-batches; or draws from the posterior, for small data.
    curvature : {"shared", "polya-gamma"}, default="shared"
        How EM steps; see `tacit.methods.geneml.em`. They share their fixed points.
    reg_u, reg_v, reg_w : float, default=1.0
        The precisions λ_u, λ_v, λ_w.
    alpha1, alpha2 : float, default=5.0, 1.0
        The Beta prior of μ. For rare labels only μσ(ψ) is known from data, so the prior decides.
    max_iter : int, default=10
        Most passes over the data (EM, online), or sweeps before the first draw (Gibbs).
    tol : float, default=1e-3
        Stop once a pass lowers the objective by no more than `tol` times its value.
    batch_size, a0, epsilon : int, float, float, default=1024, 5.0, 0.6
        Online EM: rows in a batch, and γ_t = (a0 + t)^(-epsilon).
    n_draws : int, default=100
        Gibbs: draws that are kept.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature, and an intercept b_l to each label.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the subspace that the start begins with, the batches, and the sampler's numbers.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : ExposedLowRank or Sampled
        W and V as W and H; with intercepts, a constant code carries them.
    exposures_ : ndarray of shape (n_labels,)
        μ_l; 1 where everybody was asked; with covariates, its mean over the training rows.
    exposure_interval_ : ndarray of shape (2, n_labels) or None
        Gibbs: the 5 % and 95 % quantiles of μ_l.
    history_ : list of float
        Minus the log-posterior after each pass; batch EM never raises it. Empty for Gibbs.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = X.copy()
    >>> Y[::4] = 0  # a quarter was never asked
    >>> model = GenEML(rank=3, reg_u=0.1, reg_v=0.1, reg_w=0.1, random_state=0).fit(X, Y)
    >>> model.top_k(X[[0, 20, 40]], k=1).indices.tolist()
    [[0], [1], [2]]
    """

    behind_ridge = (
        "Where four in five labels are hidden, exposure explains part of what the features would: "
        "on dense features it ranks up to three points of P@3 behind tuned ridge, and less than "
        'one with `embedding="tied"`.'
    )
    label_kinds = ("positive-only", "complete", "masked")
    model_kinds = (ExposedLowRank, Sampled)
    _checks = {
        "rank": an_int(at_least=1),
        "embedding": one_of("free", "tied"),
        "exposure": one_of("labels", "covariates", None),
        "inference": one_of("em", "online", "gibbs"),
        "curvature": one_of("shared", "polya-gamma"),
        "reg_u": a_float(above=0),
        "reg_v": a_float(above=0),
        "reg_w": a_float(above=0),
        "alpha1": a_float(at_least=1),
        "alpha2": a_float(at_least=1),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        "batch_size": an_int(at_least=1),
        "a0": a_float(at_least=1),
        "epsilon": a_float(above=0.5, at_most=1),
        "n_draws": an_int(at_least=1),
        **shared_checks(),
    }

    def __init__(
        self,
        rank: int = 200,
        *,
        embedding: str = "free",
        exposure: str | None = "labels",
        inference: str = "em",
        curvature: str = "shared",
        reg_u: float = 1.0,
        reg_v: float = 1.0,
        reg_w: float = 1.0,
        alpha1: float = 5.0,
        alpha2: float = 1.0,
        max_iter: int = 10,
        tol: float = 1e-3,
        batch_size: int = 1024,
        a0: float = 5.0,
        epsilon: float = 0.6,
        n_draws: int = 100,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.rank = rank
        self.embedding = embedding
        self.exposure = exposure
        self.inference = inference
        self.curvature = curvature
        self.reg_u = reg_u
        self.reg_v = reg_v
        self.reg_w = reg_w
        self.alpha1 = alpha1
        self.alpha2 = alpha2
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.a0 = a0
        self.epsilon = epsilon
        self.n_draws = n_draws
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        Y: Any = None,
        *,
        label_features: Any = None,
        checkpoint: str | os.PathLike | None = None,
    ) -> Self:
        """Learn from features X and labels Y.

        Parameters
        ----------
        X, Y, checkpoint
            As for every method. A plain 0/1 matrix is read as positive-only.
        label_features : array of shape (n_labels, n_label_features), default=None
            Features f_l of the labels: v_l is then drawn near M f_l (`with_labels` gives labels
            never seen before), and exposure="covariates" uses them too.
        """
        side = {} if label_features is None else {"label_features": _label_features(label_features)}
        return self._learn(X, Y, checkpoint, side)

    def _fit(self, problem: Problem) -> Fit:
        if self.inference != "em":
            self._check_free(f'inference="{self.inference}"', problem)
        if self.inference == "gibbs":
            return Fit(self._sampled(problem))
        exposure, equations = self._exposure(problem), self._equations(problem)
        em, rank = self._em(problem, equations, exposure), self._rank(problem)
        seen = {"seen": np.array([problem.n_samples])}
        if self.inference == "em":
            state, history = problem.descend(lambda: em.start(rank), em.step)
            kept = {name: state[name] for name in ("W", "V", *exposure.learned)}
            online = None if problem.side else kept | seen
            return Fit(self._model(problem, state, exposure), history, online=online)
        exact = equations if isinstance(equations, Moments) else None
        online_em, seed = self._updates(exposure, exact), int(problem.rng.randint(2**31))

        def epoch(state: State) -> tuple[State, float]:
            batches = problem.batches(self.batch_size, seed + int(state["t"][0]))
            return online_em.epoch(state, batches, problem.n_samples)

        state, history = problem.descend(lambda: online_em.start(em.start(rank), 0), epoch)
        return Fit(self._model(problem, state, exposure), history, online=state | seen)

    def _check_online(self) -> None:
        self._check_free("partial_fit")

    def _update(self, problem: Problem, state: State | None, n_before: int) -> Fit:
        online = self._updates(self._exposure(problem), None)
        if state is None:
            em, seen = self._em(problem, self._equations(problem), online.exposure), 0
            state = online.start(em.start(self._rank(problem)), 0)
        else:
            seen = int(state["seen"][0])
            state = {name: array for name, array in state.items() if name != "seen"}
        if "t" not in state:  # batch EM's, which has seen each row more often than once
            state = online.start(state, seen / self.batch_size)
        seen, history = seen + problem.n_samples, []
        for block in problem.batches(max(problem.n_samples, 1), 0):
            state, loss = online.update(state, block, seen)
            history.append(-loss / problem.n_samples)
        model = self._model(problem, state, online.exposure)
        return Fit(model, history, online=state | {"seen": np.array([seen])})

    def _check_free(self, asked: str, problem: Problem | None = None) -> None:
        """Refuse what only batch EM can do; `asked` is what was asked for in its place."""
        if problem is not None and problem.side:
            raise ValueError(
                f'{asked} cannot use label_features; leave them out, or use fit with inference="em"'
            )
        if self.embedding == "tied" or self.exposure == "covariates":
            raise ValueError(
                f'{asked} is for embedding="free" and exposure="labels" or None; got '
                f"embedding={self.embedding!r} and exposure={self.exposure!r}; use "
                'inference="em"'
            )

    def _rank(self, problem: Problem) -> int:
        return min(self.rank, problem.n_features, problem.n_labels)

    def _priors(self) -> Priors:
        return Priors(float(self.reg_u), float(self.reg_v), float(self.reg_w))

    def _em(self, problem: Problem, equations: Equations, exposure: Exposure) -> EM:
        F = problem.side.get("label_features")
        return EM(
            problem,
            equations,
            exposure,
            self._priors(),
            tied=self.embedding == "tied",
            polya_gamma=self.curvature == "polya-gamma",
            intercept=self.fit_intercept,
            label_features=None if F is None else problem.backend.asarray(_with_one(F, problem)),
        )

    def _updates(self, exposure: Exposure, moments: Moments | None) -> OnlineEM:
        return OnlineEM(
            exposure, self._priors(), moments, polya_gamma=self.curvature == "polya-gamma",
            a0=float(self.a0), epsilon=float(self.epsilon),
        )  # fmt: skip

    def _equations(self, problem: Problem) -> Equations:
        solves = self.embedding == "tied" or self.exposure == "covariates"  # not only factors
        if problem.n_features <= (_SPECTRUM_FEATURES if solves else _FACTOR_FEATURES):
            return Moments.of(problem.blocks, cross=False, label_gram=False)
        return Products(problem.blocks, _CG_TOL, _CG_STEPS)

    def _exposure(self, problem: Problem) -> Exposure:
        F = problem.side.get("label_features")
        if F is not None and len(F) != problem.n_labels:
            raise ValueError(
                f"label_features has {len(F)} rows; give one for each of {problem.n_labels} labels"
            )
        if problem.kind != "positive-only" or self.exposure is None:
            return AllAsked(problem.n_labels)
        if self.exposure == "labels":
            return PerLabel(problem.n_labels, float(self.alpha1), float(self.alpha2))
        F = np.empty((problem.n_labels, 0)) if F is None else F
        return CovariateExposure(
            problem.backend.asarray(_with_one(F, problem)), problem.n_features, 1.0
        )

    def _model(self, problem: Problem, state: State, exposure: Exposure) -> ExposedLowRank:
        arrays = {name: problem.backend.to_numpy(array) for name, array in state.items()}
        W, V = arrays["W"], arrays["V"]
        exposures = arrays.get("mu", np.ones(problem.n_labels, W.dtype))
        if isinstance(exposure, CovariateExposure):
            asked = {name: state[name] for name in exposure.learned}
            total = problem.blocks.sum(_total_exposure, exposure, asked, state["V"])
            exposures = problem.backend.to_numpy(total) / problem.n_samples
        F = problem.side.get("label_features")
        F = None if F is None else _with_one(F, problem)
        return ExposedLowRank(
            np.ascontiguousarray(_with_constant(W, V), dtype=problem.dtype),
            np.ascontiguousarray(V, dtype=problem.dtype),
            exposures,
            arrays.get("beta"),
            arrays.get("bias"),
            label_features=F,
            label_map=None if F is None else label_map(V, F),
            reg_u=float(self.reg_u),
            intercept=self.fit_intercept,
        )

    def _sampled(self, problem: Problem) -> Sampled:
        check_dense((problem.n_samples, problem.n_labels), 'inference="gibbs"', 'inference="em"')
        X, Y, asked = problem.blocks.sum(_laid_out)
        X, Y, asked = (np.concatenate(parts) for parts in (X, Y, asked))
        if problem.kind == "complete" or self.exposure is None:
            asked = np.where(asked < 0, np.int8(1), asked)
        sweeps = self.max_iter + self.n_draws * _THIN
        with problem.loop.progress(sweeps) as show:
            draws = gibbs(
                X, Y, asked, rank=self._rank(problem), reg_u=self.reg_u, reg_v=self.reg_v,
                reg_w=self.reg_w, alpha1=self.alpha1, alpha2=self.alpha2,
                intercept=self.fit_intercept, burn=self.max_iter, draws=self.n_draws, thin=_THIN,
                rng=problem.rng, watch=lambda done: show(None),
            )  # fmt: skip
        sampled = problem.kind == "positive-only" and self.exposure is not None
        mu = draws.mu if sampled else np.ones((1, problem.n_labels))
        # The mean score over the draws is a model whose rank is that of all draws together.
        W = np.hstack([_with_constant(W, V) for W, V in zip(draws.W, draws.V)]) / len(draws.W)
        return Sampled(
            np.ascontiguousarray(W, dtype=problem.dtype),
            np.ascontiguousarray(np.hstack(list(draws.V)), dtype=problem.dtype),
            self.n_draws,
            mu.mean(axis=0),
            np.quantile(mu, [0.05, 0.95], axis=0),
        )

    # What is learned beside W and V

    @property
    def exposures_(self) -> np.ndarray:
        return self.model_.exposures

    @property
    def exposure_interval_(self) -> np.ndarray | None:
        return getattr(self.model_, "exposure_interval", None)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of credible intervals of P(true); for inference="gibbs"."""
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, Sampled):
            raise ValueError(
                f'predict_interval needs inference="gibbs"; this model has {self.inference!r}'
            )
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}")
        tails, X = [0.5 * (1 - level), 0.5 * (1 + level)], self._dense(X, "predict_interval")
        ends = [
            np.quantile([sigmoid(scores) for scores in self.model_.draws(block)], tails, axis=0)
            for block in self._blocks(X, len(self.classes_))
        ]
        low, high = np.concatenate(ends, axis=1)
        return low, high

    def with_labels(self, label_features: Any, classes: Any = None) -> GenEML:
        """Return a model for other labels, known by their features alone: v = M f (zero-shot).

        Parameters
        ----------
        label_features : array of shape (n_new_labels, n_label_features)
            In the columns that `fit` was given.
        classes : sequence of str, default=None
            The names of the new labels; None numbers them.
        """
        check_is_fitted(self, "model_")
        model = self.model_
        if not isinstance(model, ExposedLowRank) or model.label_map is None:
            raise ValueError("with_labels needs a model fitted with label_features")
        F = _label_features(label_features)
        if F.shape[1] + 1 != len(model.label_map):
            raise ValueError(
                f"label_features has {F.shape[1]} columns; fit was given {len(model.label_map) - 1}"
            )
        if classes is not None and len(classes) != len(F):
            raise ValueError(f"classes has {len(classes)} names for {len(F)} labels")
        F = np.hstack([F, np.ones((len(F), 1))]).astype(model.dtype)
        new = copy(self)
        # Nobody was asked about labels that did not exist: silence on them says nothing.
        new.model_ = replace(
            model,
            H=F @ model.label_map,
            exposures=np.zeros(len(F), F.dtype),
            beta=None,
            bias=None,
            label_features=F,
        )
        new.classes_ = np.arange(len(F)) if classes is None else np.asarray(classes)
        return new


def _label_features(F: Any) -> np.ndarray:
    F = np.asarray(F.toarray() if sp.issparse(F) else F, dtype=np.float64)
    if F.ndim != 2 or not np.isfinite(F).all():
        raise ValueError(
            f"label_features must be a matrix of finite numbers, one row a label; got shape "
            f"{F.shape}"
        )
    return F


def _with_one(F: np.ndarray, problem: Problem) -> np.ndarray:
    """f_l = (features, 1)."""
    return np.hstack([F, np.ones((len(F), 1))]).astype(problem.dtype)


def _with_constant(W: np.ndarray, V: np.ndarray) -> np.ndarray:
    """W with a column that gives the code 1, from the constant feature, where V has intercepts."""
    if V.shape[1] == W.shape[1]:
        return W
    constant = np.zeros((len(W), 1), W.dtype)
    constant[-1] = 1
    return np.hstack([W, constant])


def _total_exposure(b: Block, exposure: Exposure, asked: dict, like: Array) -> Array:
    rates, size = exposure.rates(b, asked, like), max(1, b.backend.chunk // len(like))
    starts = range(0, max(1, b.Y.shape[0]), size)
    return sum(rates(slice(start, start + size)).sum(0) for start in starts)


def _laid_out(b: Block) -> tuple[list, list, list]:
    """X, Y and who was asked (1), was not (0), or may have been (-1), dense, in lists of one."""
    rows = slice(0, b.Y.shape[0])
    eye = b.backend.asarray(np.eye(b.X.shape[1]))
    X = b.backend.to_numpy(b.project(eye)).astype(np.float64)
    said, _ = b.said
    Y, known = (b.backend.to_numpy(b.backend.dense(S, rows, eye.dtype)) > 0 for S in (b.Y, said))
    asked = np.where(known, 1, -1 if b.omega is None else 0).astype(np.int8)
    return [X], [Y], [asked]
