"""FaIE: codes of the labels that features can predict and labels be recovered from.

    max  tr[ Cᵀ (ỸỸᵀ + αΔ) C ]  over CᵀC = I,    Δ = X̃ (X̃ᵀX̃ + λI)⁻¹ X̃ᵀ                           (1)

then ridge from features to codes, and scores ȳ + Ĉ CᵀỸ. `tacit.codecs.faie` has the algebra: not
the n × n matrix, but one of size n_labels + n_features, unless rows are fewer than features.
With ridge the whole method is

    scores = ȳ + X̃ Z [T]_k^{xy} / √α,                                                            (2)

with [T]_k the best approximation of rank k of T = [Ỹ, √αQ]ᵀ[Ỹ, √αQ] and xy its block of features
and labels: T keeps the labels, the features and their correlation, and FaIE is what k codes keep of
that. At full rank it is ridge regression, at α = 0 PLST and, with λ = 0, at α → ∞ CPLST. (With a λ
that matters, a large α sees but the features that the penalty spares: their principal components.)

References: Z. Lin, G. Ding, M. Hu and J. Wang. Multi-label classification via feature-aware
implicit label space encoding. ICML 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from tacit.basics.params import a_float, check_params, one_of, or_auto
from tacit.codecs import FaIECodec
from tacit.estimators import Fit, MultiLabelEstimator, Problem
from tacit.estimators.paths import Path, grid_values
from tacit.label_space.model import OwnRegressor
from tacit.label_space.path import check_path, fit_path
from tacit.label_space.reduction import reduced, reduction_checks
from tacit.models import LowRank

__all__ = ["FaIE"]

ALPHAS, FOLDS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4), 5


class FaIE(MultiLabelEstimator):
    """Feature-aware implicit label space encoding, for complete labels.

    Where four in five of some twenty labels a row are hidden, its defaults rank three points of P@3
    behind tuned ridge: it takes what is hidden for noes.

    Parameters
    ----------
    rank : int, default=200
        The number of codes; no more are made than there can be.
    alpha : float or "auto", default=10.0
        The weight α of what features predict against what labels can be recovered from. "auto"
        takes that of the paper's six with which five folds of rows are ranked best.
    variant : {"faie", "linear", "p-linear", "op", "r"}, default="faie"
        Codes of any form; linear in the labels (LinearFaIE); linear, by what features predict
        only (P-LinearFaIE); linear in the features (OP-FaIE, which is CPLST); or by the labels only
        (R-FaIE, which is PLST). Put `KernelFeatures` in front for kernel-FaIE.
    reg : float, default=3.0
        The ridge weight λ, of Δ and of the predictor.
    predictor : scikit-learn regressor or None, default=None
        What predicts the codes from the features; None is ridge. A model with a regressor of
        yours cannot be saved.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Centre features and labels. The paper's theory does, its algorithm does not, and without
        it codes in the span of the features lose nearly everything.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of a score above
        threshold (the paper rounds, which is 0.5).
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).

    Attributes
    ----------
    model_ : LowRank or OwnRegressor
        W from features to codes and H from codes to labels, both with a last column for the means
        of the labels.
    alpha_ : float
        The α that was used.
    predictor_ : regressor or None
        The fitted regressor; W is then empty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> Y = (X @ rng.standard_normal((4, 6)) > 0).astype(int)
    >>> model = FaIE(rank=3, alpha=10.0, reg=0.1).fit(X, Y)
    >>> model.top_k(X, 2).indices.shape
    (50, 2)
    """

    behind_ridge = (
        "Where four in five of some twenty labels a row are hidden, its defaults rank three points "
        "of P@3 behind tuned ridge: it takes what is hidden for noes."
    )
    model_kinds = (LowRank, OwnRegressor)
    chosen = ("alpha_",)
    _checks = {
        "alpha": or_auto(a_float(at_least=0)),
        "variant": one_of("faie", "linear", "p-linear", "op", "r"),
        **reduction_checks(),
    }

    random_state, verbose = None, False  # nothing is drawn, in one pass and one solve

    def __init__(
        self,
        rank: int = 200,
        *,
        alpha: float | Literal["auto"] = 10.0,
        variant: Literal["faie", "linear", "p-linear", "op", "r"] = "faie",
        reg: float = 3.0,
        predictor: Any = None,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
    ):
        self.rank = rank
        self.alpha = alpha
        self.variant = variant
        self.reg = reg
        self.predictor = predictor
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device

    def _fit(self, problem: Problem) -> Fit:
        codec = self._codec
        if self.alpha == "auto":
            codec = replace(codec, alpha=self._best_alpha(problem))
        fit = reduced(problem, codec, self.rank, self.reg, self.predictor, self.fit_intercept)
        return replace(fit, chosen={"alpha_": codec.alpha})

    @property
    def _codec(self) -> FaIECodec:
        return FaIECodec(1.0 if self.alpha == "auto" else float(self.alpha), self.variant)

    def _best_alpha(self, problem: Problem) -> float:
        grid = {"alpha": ALPHAS, "reg": [self.reg], "rank": [self.rank]}
        path = self._path(problem, grid, lambda params, fit: self, FOLDS, "precision")
        return path.best.params["alpha"]

    @property
    def predictor_(self) -> Any:
        check_is_fitted(self, "model_")
        return getattr(self.model_, "regressor", None)

    def fit_path(
        self,
        X: Any,
        Y: Any = None,
        *,
        alphas: Sequence[float] | None = None,
        ranks: Sequence[int] | None = None,
        regs: Sequence[float] | None = None,
        cv: int | None = None,
        measure: Literal["macro_f1", "accuracy", "squared", "precision"] = "macro_f1",
    ) -> Path:
        """Fit every α, rank and λ of a grid, from one pass over the rows.

        Parameters
        ----------
        X, Y
            As for `fit`.
        alphas, ranks, regs : sequences or None
            The grid; None is the estimator's own value. The paper's α are 0.1, 1, …, 10,000.
        cv : int or None, default=None
            With folds of rows, each point has the `measure` on each of them, and the path a `best`.
        measure : {"macro_f1", "accuracy", "squared", "precision"}, default="macro_f1"
            The mean F1 of the labels, the mean Jaccard index of the rows (both of what `predict`
            says at `threshold`), minus the squared error of a row, or the precision of its three
            best labels.
        """
        check_params(self)
        given = {"alpha": alphas, "reg": regs, "rank": ranks}
        grid = {name: grid_values(self, name, values, ALPHAS) for name, values in given.items()}
        blocks, known = self._rows(X, Y)

        def adopted(params: dict[str, Any], fit: Fit) -> Any:
            fit = replace(fit, chosen={"alpha_": params["alpha"]})
            return copy(self).set_params(**params).adopt(fit, known)

        return self._path(self._problem(blocks, known), grid, adopted, cv, measure)

    def _path(
        self,
        problem: Problem,
        grid: Mapping[str, Sequence[Any]],
        adopted: Callable[[dict[str, Any], Fit], Any],
        cv: int | None,
        measure: str,
    ) -> Path:
        check_path(self, self._codec, measure)
        how: dict[str, Any] = dict(centred=self.fit_intercept, threshold=self.threshold)
        return fit_path(problem, self._codec, grid, adopted, cv=cv, measure=measure, **how)
