"""GenEML: who was never asked, and what would they have said (Jain, Modhe & Rai 2017).

    u_n ~ N(Wᵀx_n, I/λ_u),   v_l ~ N(0, I/λ_v),   ψ_nl = u_nᵀv_l + b_l
    asked_nl ~ Bernoulli(μ_nl);   if asked, a yes is said with probability σ(ψ_nl); else silence

Silence is a no or a question never asked, and which of the two is part of what is learned. Labels
that are complete were all asked (μ = 1); in masked labels it is known who was asked; with
positive-only labels each silence has a posterior, P(asked | silence) = μσ(-ψ) / (1 - μσ(ψ)).

`em.py` holds batch EM, `online.py` online EM, `gibbs.py` the sampler; `tacit.engines.exposure`
holds μ.

References
----------
V. Jain, N. Modhe, P. Rai. "Scalable Generative Models for Multi-label Learning with Missing
Labels". ICML 2017.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_float, an_int, check_params, one_of
from tacit.blocks import Blocks
from tacit.blocks.facts import Facts
from tacit.engines.descend import progress
from tacit.engines.exposure import EDGE, AllAsked, CovariateExposure, Exposure, PerLabel
from tacit.engines.losses import LOSSES, Loss
from tacit.engines.moments import Equations, Moments, Products
from tacit.estimators import Completion, MultiLabelEstimator, Problem, checked_k, shared_checks
from tacit.labels import TopK, check_dense
from tacit.methods.geneml.em import EM, Context, Priors, folded_codes, label_map
from tacit.methods.geneml.gibbs import gibbs
from tacit.methods.geneml.online import Online
from tacit.missing import Rates
from tacit.models import LowRank

__all__ = ["GenEML"]

_FACTOR_FEATURES = 8192  # up to here XᵀX is formed and factorised; beyond, conjugate gradients
_SPECTRUM_FEATURES = 2048  # up to here it is diagonalised, where that is needed
_CG_TOL, _CG_STEPS = 1e-3, 20
_FOLD_STEPS = 10  # U steps when a row's code is fitted to what was said of it
_THIN = 2  # sweeps of the sampler between draws that are kept


class GenEML(MultiLabelEstimator):
    """Low-rank logistic model in which silence may mean that nobody asked.

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
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
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
    model_ : LowRank
        W and V; with intercepts, a constant code carries them.
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

    _kinds = ("positive-only", "complete", "masked")
    _learned = ("n_draws_",)
    _online: Any = None  # what `partial_fit` goes on with
    label_features_: Any = None
    _arrays = {
        "exposures_": ("L",),
        "exposure_interval_": (2, "L"),
        "beta_": ("d", "*"),
        "bias_": ("L",),
        "label_features_": ("L", "*"),
        "label_map_": ("*", "*"),
    }
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
        normalize: str | None = "l2",
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

    @property
    def _loss(self) -> Loss:
        return LOSSES["logistic"]

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
        self.label_features_ = None if label_features is None else _label_features(label_features)
        self._online = None
        return super().fit(X, Y, checkpoint=checkpoint)

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """One online update from a batch of rows.

        The first batch also starts the model: make it some hundred rows at least. It also goes on
        from `fit`, in the same process.
        """
        check_params(self)
        self._check_free("partial_fit")
        begun = self._online
        blocks, known = self._rows(X, Y) if begun is None else self._rows_again(X, Y, begun[-1])
        problem = self._problem(blocks, known)
        online = self._updates(self._exposure(problem), None)
        if begun is None:
            if hasattr(self, "model_"):
                raise ValueError(
                    "partial_fit cannot go on with a model that was loaded or sampled; begin with "
                    "a new estimator"
                )
            self.history_ = []
            em = self._em(problem, self._equations(problem), online.exposure)
            begun = online.start(em.start(self._rank(problem)), 0), 0, known
        state, seen, first = begun
        if "t" not in state:  # batch EM's, which has seen each row more often than once
            state = online.start(state, seen / self.batch_size)
        seen += known.n_samples
        for block in problem.batches(max(known.n_samples, 1), 0):
            state, loss = online.update(state, block, seen)
            self.history_.append(-loss / known.n_samples)
        self._online = state, seen, first
        return self._fitted(self._model(problem, state, online.exposure), first)

    def _check_free(self, asked: str) -> None:
        """Refuse what only batch EM can do; `asked` is what was asked for in its place."""
        if self.label_features_ is not None:
            raise ValueError(
                f'{asked} cannot use label_features; leave them out, or use fit with inference="em"'
            )
        if self.embedding == "tied" or self.exposure == "covariates":
            raise ValueError(
                f'{asked} is for embedding="free" and exposure="labels" or None; got '
                f"embedding={self.embedding!r} and exposure={self.exposure!r}; use "
                'inference="em"'
            )

    def _rows(self, X: Any, Y: Any) -> tuple[Blocks, Facts]:
        blocks, known = super()._rows(X, Y)
        if self.label_features_ is not None:  # a checkpoint must know them too
            known = replace(known, checksum=known.checksum ^ crc32(self.label_features_.tobytes()))
        self._known = known
        return blocks, known

    def _fit(self, problem: Problem) -> LowRank:
        if self.inference != "em":
            self._check_free(f'inference="{self.inference}"')
        if self.inference == "gibbs":
            return self._sampled(problem)
        exposure, equations = self._exposure(problem), self._equations(problem)
        em, rank = self._em(problem, equations, exposure), self._rank(problem)
        if self.inference == "em":
            state = problem.descend(lambda: em.start(rank), em.step)
            kept = {name: state[name] for name in ("W", "V", *exposure.learned)}
            self._online = kept, problem.n_samples, self._known
            return self._model(problem, state, exposure)
        exact = equations if isinstance(equations, Moments) else None
        online, seed = self._updates(exposure, exact), int(problem.rng.randint(2**31))

        def epoch(state: dict) -> tuple[dict, float]:
            batches = problem.batches(self.batch_size, seed + int(state["t"][0]))
            return online.epoch(state, batches, problem.n_samples)

        state = problem.descend(lambda: online.start(em.start(rank), 0), epoch)
        self._online = state, problem.n_samples, self._known
        return self._model(problem, state, exposure)

    def _rank(self, problem: Problem) -> int:
        return min(self.rank, problem.n_features, problem.n_labels)

    def _priors(self) -> Priors:
        return Priors(float(self.reg_u), float(self.reg_v), float(self.reg_w))

    def _em(self, problem: Problem, equations: Equations, exposure: Exposure) -> EM:
        F = self.label_features_
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

    def _updates(self, exposure: Exposure, moments: Moments | None) -> Online:
        return Online(
            exposure, self._priors(), moments, polya_gamma=self.curvature == "polya-gamma",
            a0=float(self.a0), epsilon=float(self.epsilon),
        )  # fmt: skip

    def _equations(self, problem: Problem) -> Equations:
        solves = self.embedding == "tied" or self.exposure == "covariates"  # not only factors
        if problem.n_features <= (_SPECTRUM_FEATURES if solves else _FACTOR_FEATURES):
            return Moments.of(problem.blocks, cross=False, label_gram=False)
        return Products(problem.blocks, _CG_TOL, _CG_STEPS)

    def _exposure(self, problem: Problem) -> Exposure:
        F = self.label_features_
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

    def _model(self, problem: Problem, state: dict, exposure: Exposure) -> LowRank:
        arrays = {name: problem.backend.to_numpy(array) for name, array in state.items()}
        W, V = arrays["W"], arrays["V"]
        self.n_draws_ = 0
        self.exposure_interval_: np.ndarray | None = None
        self.beta_, self.bias_ = arrays.get("beta"), arrays.get("bias")
        self.exposures_ = arrays.get("mu", np.ones(problem.n_labels, W.dtype))
        if isinstance(exposure, CovariateExposure):
            asked = {name: state[name] for name in exposure.learned}
            total = problem.blocks.sum(_total_exposure, exposure, asked, state["V"])
            self.exposures_ = problem.backend.to_numpy(total) / problem.n_samples
        self.label_map_ = None
        if self.label_features_ is not None:
            self.label_features_ = _with_one(self.label_features_, problem)
            self.label_map_ = label_map(V, self.label_features_)
        return LowRank(_with_constant(W, V), V)

    def _sampled(self, problem: Problem) -> LowRank:
        check_dense((problem.n_samples, problem.n_labels), 'inference="gibbs"', 'inference="em"')
        X, Y, asked = problem.blocks.sum(_laid_out)
        X, Y, asked = (np.concatenate(parts) for parts in (X, Y, asked))
        if problem.kind == "complete" or self.exposure is None:
            asked = np.where(asked < 0, np.int8(1), asked)
        sweeps = self.max_iter + self.n_draws * _THIN
        with progress(self, 0, sweeps) as show:
            draws = gibbs(
                X, Y, asked, rank=self._rank(problem), reg_u=self.reg_u, reg_v=self.reg_v,
                reg_w=self.reg_w, alpha1=self.alpha1, alpha2=self.alpha2,
                intercept=self.fit_intercept, burn=self.max_iter, draws=self.n_draws, thin=_THIN,
                rng=problem.rng, watch=lambda done: show(None),
            )  # fmt: skip
        sampled = problem.kind == "positive-only" and self.exposure is not None
        mu = draws.mu if sampled else np.ones((1, problem.n_labels))
        self.n_draws_ = self.n_draws
        self.exposures_ = mu.mean(axis=0)
        self.exposure_interval_ = np.quantile(mu, [0.05, 0.95], axis=0)
        self.beta_ = self.bias_ = self.label_map_ = None
        # The mean score over the draws is a model whose rank is that of all draws together.
        W = np.hstack([_with_constant(W, V) for W, V in zip(draws.W, draws.V)]) / len(draws.W)
        return LowRank(W, np.hstack(list(draws.V)))

    def predict(self, X: Any) -> sp.csr_array:
        check_is_fitted(self, "model_")
        if self.n_draws_ and self.k is None:  # the mean probability, not that of the mean score
            return sp.csr_array(self.predict_proba(X) > self.threshold, dtype=np.int8)
        return super().predict(X)

    predict.__doc__ = MultiLabelEstimator.predict.__doc__

    def predict_proba(self, X: Any, *, what: str = "true") -> np.ndarray:
        """Probabilities of shape (n_samples, n_labels).

        Parameters
        ----------
        what : {"true", "said"}, default="true"
            σ(ψ), that the label is true; or μσ(ψ), that it is true and was said.
        """
        if what not in ("true", "said"):
            raise ValueError(f'what must be "true" or "said"; got {what!r}')
        check_is_fitted(self, "model_")
        if self.n_draws_:
            probability = np.mean([sigmoid(scores) for scores in self._draws(X)], axis=0)
        else:
            probability = sigmoid(self.decision_function(X))
        return probability if what == "true" else probability * self._rates(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of credible intervals of P(true); for inference="gibbs"."""
        check_is_fitted(self, "model_")
        if not self.n_draws_:
            raise ValueError(
                f'predict_interval needs inference="gibbs"; this model has {self.inference!r}'
            )
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}")
        tails = [0.5 * (1 - level), 0.5 * (1 + level)]
        low, high = np.quantile([sigmoid(scores) for scores in self._draws(X)], tails, axis=0)
        return low, high

    def _draws(self, X: Any) -> list[np.ndarray]:
        """The scores of each draw."""
        codes, H = self.transform(X), self._label_factors()
        check_dense((len(codes), len(self.classes_)), "GenEML.predict_proba", "top_k")
        width = H.shape[1] // self.n_draws_
        parts = [slice(i * width, (i + 1) * width) for i in range(self.n_draws_)]
        return [self.n_draws_ * codes[:, part] @ H[:, part].T for part in parts]

    def _rates(self, X: Any) -> np.ndarray:
        """μ, of shape (1 or n_samples, n_labels)."""
        if self.beta_ is None:
            return self.exposures_[None, :]
        X = self._features(X)
        blocks = self._blocks(X, len(self.classes_))
        return np.concatenate([self._block_rates(b) for b in blocks])

    def _block_rates(self, b: Block) -> np.ndarray:
        codes = b.backend.to_numpy(b.project(b.backend.asarray(self.beta_)))
        mu = sigmoid(codes @ self._exposure_features().T + self.bias_)
        return np.clip(mu, EDGE, 1 - EDGE)

    def _said_rates(self, X: Any, Y: Any) -> Rates:
        """How often each label is said where it is true, for `tacit.missing.estimate`."""
        X, labels = self._to_complete(X, Y)
        if not np.any((self.exposures_ > 0) & (self.exposures_ < 1)):
            raise ValueError(
                "model has learned no exposure, so it knows nothing of what is missing; fit GenEML "
                'on positive-only labels with exposure="labels" or "covariates"'
            )
        n_said = np.bincount(labels.positives.indices, minlength=labels.n_labels)
        if self.exposure_interval_ is not None:
            c, (low, high) = self.exposures_, self.exposure_interval_
            how = "the mean of its draws, and their 5 % and 95 % quantiles"
        else:
            c, error = self._said_shares(X)
            low, high = c - 1.96 * error, c + 1.96 * error
            how = (
                "with scores held fixed up to an intercept, so that intervals are too narrow, and "
                "settled only after hundreds of passes (tol=0)"
            )
        how = f"GenEML's exposure, {how}; for rare labels its Beta prior decides."
        return Rates.of_labels(c, low, high, how, n_said)

    def _said_shares(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Σμσ / Σσ over the rows, the share of true labels that is said, and its standard error.

        A factor t on μ_l and a shift b of ψ_l move log P(said) by v = (1, 1 - σ), so that their
        information is Σ_n μσ / (1 - μσ) v vᵀ. What is left for t once b is free is next to nothing
        where σ ≪ 1 throughout: only the product μσ is known there.
        """
        n_labels = len(self.classes_)
        true, said, tt, tb, bb = np.full((5, n_labels), 1e-12)  # where all underflows
        for block in self._blocks(X, n_labels):
            sigma = sigmoid(self._scores(block).astype(np.float64))
            p = sigma * (self.exposures_ if self.beta_ is None else self._block_rates(block))
            odds, silent = p / (1 - p), 1 - sigma
            true += sigma.sum(axis=0)
            said += p.sum(axis=0)
            tt += odds.sum(axis=0)
            tb += (odds * silent).sum(axis=0)
            bb += (odds * silent**2).sum(axis=0)
        return said / true, said / true / np.sqrt(np.maximum(tt - tb**2 / bb, 1e-12))

    def _exposure_features(self) -> np.ndarray:
        if self.label_features_ is not None:
            return self.label_features_
        return np.ones((len(self.classes_), 1), self.model_.W.dtype)

    def _label_factors(self) -> np.ndarray:
        assert self.model_.H is not None  # GenEML is never of full rank
        return self.model_.H

    def complete(self, X: Any, Y: Any, k: int = 10, *, fold_in: bool = False) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by probability: that of being
        true though nothing was said, P(y = 1 | silence, x) = (1 - μ)σ(ψ) / (1 - μσ(ψ)); entries of
        masked labels that were not observed have σ(ψ), and so have all where everybody was asked.
        With `fold_in` the code of a row is fitted to what was said of it, silence included: that
        found less of what was really missing (debtags, go_human), so the features alone decide.
        """
        X, labels = self._to_complete(X, Y)
        k, parts = checked_k(k), []
        for b in self._blocks(X, len(self.classes_), labels):
            U = self._folded_in(b) if fold_in and not self.n_draws_ else self._codes(b)
            scores = U @ b.backend.asarray(self._label_factors()).T
            if b.omega is None and self._models_exposure():
                mu = self.exposures_[None, :] if self.beta_ is None else self._block_rates(b)
                # (1-μ)σ / (1-μσ) = σ(ψ + log(1-μ))
                scores = scores + b.backend.asarray(np.log1p(-mu).astype(self.model_.W.dtype))
            said = b.Y if b.omega is None else b.omega
            parts.append(b.backend.top_k(scores, None, k, said))
        return self._sorted(TopK(*(np.concatenate(arrays) for arrays in zip(*parts))))

    def _models_exposure(self) -> bool:
        return bool(np.any(self.exposures_ < 1))

    def _folded_in(self, b: Block) -> Array:
        """Codes with what was said of each row, and the constant behind the last."""
        asarray, rank = b.backend.asarray, self.model_.W.shape[1] - self.fit_intercept
        W, V = asarray(self.model_.W[:, :rank]), asarray(self._label_factors())
        exposure: Exposure = AllAsked(len(self.classes_))
        asked: dict[str, Array] = {}
        if self.beta_ is not None:
            exposure = CovariateExposure(asarray(self._exposure_features()), len(self.beta_), 1.0)
            asked = {"beta": asarray(self.beta_), "bias": asarray(self.bias_)}
        elif self._models_exposure():
            exposure = PerLabel(len(self.classes_), self.alpha1, self.alpha2)
            asked = {"mu": asarray(self.exposures_.astype(self.model_.W.dtype))}
        context = Context(W, V, exposure, asked, float(self.reg_u), polya_gamma=False)
        U = b.backend.to_numpy(folded_codes(b, context, _FOLD_STEPS))
        one = np.ones((len(U), V.shape[1] - rank), U.dtype)
        return asarray(np.hstack([U, one]))

    def _restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Self:
        super()._restore(header, arrays)
        if self.exposures_ is None:
            raise ValueError("its exposures_ are missing")
        width = self._label_factors().shape[1]
        if self.n_draws_ != int(self.n_draws_) or (self.n_draws_ and width % self.n_draws_):
            raise ValueError(f"its n_draws_ is {self.n_draws_} for factors of rank {width}")
        return self

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
        if self.label_map_ is None:
            raise ValueError("with_labels needs a model fitted with label_features")
        F = _label_features(label_features)
        if F.shape[1] + 1 != self.label_map_.shape[0]:
            raise ValueError(
                f"label_features has {F.shape[1]} columns; fit was given "
                f"{self.label_map_.shape[0] - 1}"
            )
        if classes is not None and len(classes) != len(F):
            raise ValueError(f"classes has {len(classes)} names for {len(F)} labels")
        F = np.hstack([F, np.ones((len(F), 1))]).astype(self.model_.W.dtype)
        new = GenEML(**self.get_params())
        new.__dict__ |= {name: value for name, value in vars(self).items() if name.endswith("_")}
        new.model_ = LowRank(self.model_.W, F @ self.label_map_)
        new.classes_ = np.arange(len(F)) if classes is None else np.asarray(classes)
        new.label_features_ = F
        # Nobody was asked about labels that did not exist: silence on them says nothing.
        new.exposures_, new.beta_, new.bias_ = np.zeros(len(F), F.dtype), None, None
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
    Y = b.backend.to_numpy(b.backend.dense(b.Y, rows, eye.dtype)) > 0
    if b.omega is None:
        asked = np.where(Y, 1, -1).astype(np.int8)
    else:
        asked = b.backend.to_numpy(b.backend.dense(b.omega, rows, eye.dtype)).astype(np.int8)
    return [X], [Y], [asked]
