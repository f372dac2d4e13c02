"""Label space reduction: learn a few codes in place of many labels, then decode.

    1. a codec makes codes C, n_samples × rank, of the labels (`tacit.codecs`, a file each)
    2. a regression learns to predict them from the features: ridge, or any of scikit-learn
    3. a new row's codes are predicted, and decoded to scores; what passes 0.5 is a label

With ridge and a linear decoder all of it is one low-rank model, scores = ȳ + (x - x̄)ᵀ B Hᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from tacit.basics.params import check_params, one_of
from tacit.codecs import CPLST, CS, CSSP, PLST, BMaD, REmbed
from tacit.estimators import Fit, MultiLabelEstimator, Problem
from tacit.estimators.paths import Path, grid_values
from tacit.label_space.model import DECODER_CHECKS, Decoded, OwnRegressor
from tacit.label_space.path import check_path, fit_path
from tacit.label_space.reduction import reduced, reduction_checks
from tacit.models import LowRank

__all__ = ["LabelSpaceReduction"]

_CODECS: dict[str, Any] = {
    "plst": PLST,
    "cplst": CPLST,
    "cs": CS,
    "cssp": CSSP,
    "bmad": BMaD,
    "rembed": REmbed,
}


class LabelSpaceReduction(MultiLabelEstimator):
    """Codes of the labels, predicted by a regression and decoded, for complete labels.

    Parameters
    ----------
    codec : {"plst", "cplst", "cs", "cssp", "bmad", "rembed"}, default="cplst"
        "plst" keeps most of the labels, "cplst" most of what features can predict of them; "cs" is
        a random projection, decoded by sparse recovery; "cssp" keeps some of the labels, "bmad"
        groups of them. "rembed" is "cplst" by random projections: for so many labels or features
        that their Gram matrices cannot be laid out. FaIE is an estimator of its own.
    rank : int, default=200
        The number of codes; no more are made than there can be.
    reg : float, default=3.0
        The ridge weight λ, in the predictor and where codes are chosen by what it can predict.
    sparsity : int, default=5
        Labels a row is decoded to ("cs").
    decoder : {"omp", "cosamp"}, default="omp"
        Orthogonal matching pursuit, or CoSaMP ("cs").
    tau : float, default=0.5
        A label brings another into a group if they go together in this share of its rows ("bmad").
    predictor : scikit-learn regressor or None, default=None
        What predicts the codes from the features; None is ridge. A model with a regressor of
        yours cannot be saved.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Centre features and labels ("cs", "bmad" and "rembed": add a constant feature).
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of a score above
        threshold.
    random_state : int, RandomState or None, default=None
        Draws the projection ("cs", "rembed") or the labels ("cssp").
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).

    Attributes
    ----------
    model_ : LowRank, Decoded or OwnRegressor
        W from features to codes and H from codes to labels, both with a last column for the means
        of the labels where those were taken off. "cs" and "bmad" have a `codebook` in place of H.
    predictor_ : regressor or None
        The fitted regressor; W is then empty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> Y = (X @ rng.standard_normal((4, 6)) > 0).astype(int)
    >>> model = LabelSpaceReduction("plst", rank=3, reg=0.1).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((50, 6), (50, 4))
    """

    model_kinds = (LowRank, Decoded, OwnRegressor)
    _checks = {"codec": one_of(*_CODECS), **DECODER_CHECKS, **reduction_checks()}

    verbose = False  # one pass and one solve

    def __init__(
        self,
        codec: Literal["plst", "cplst", "cs", "cssp", "bmad", "rembed"] = "cplst",
        rank: int = 200,
        *,
        reg: float = 3.0,
        sparsity: int = 5,
        decoder: Literal["omp", "cosamp"] = "omp",
        tau: float = 0.5,
        predictor: Any = None,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        random_state=None,
        device: str = "cpu",
    ):
        self.codec = codec
        self.rank = rank
        self.reg = reg
        self.sparsity = sparsity
        self.decoder = decoder
        self.tau = tau
        self.predictor = predictor
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.random_state = random_state
        self.device = device

    def _fit(self, problem: Problem) -> Fit:
        return reduced(
            problem, self._codec, self.rank, self.reg, self.predictor, self.fit_intercept
        )

    @property
    def _codec(self) -> Any:
        if self.codec == "cs":
            return CS(int(self.sparsity), self.decoder)
        return BMaD(float(self.tau)) if self.codec == "bmad" else _CODECS[self.codec]()

    @property
    def predictor_(self) -> Any:
        check_is_fitted(self, "model_")
        return getattr(self.model_, "regressor", None)

    def fit_path(
        self,
        X: Any,
        Y: Any = None,
        *,
        ranks: Sequence[int] | None = None,
        regs: Sequence[float] | None = None,
        cv: int | None = None,
        measure: Literal["macro_f1", "accuracy", "squared", "precision"] = "macro_f1",
    ) -> Path:
        """Fit every rank and λ of a grid, from one pass over the rows ("plst" and "cplst").

        Parameters
        ----------
        X, Y
            As for `fit`.
        ranks, regs : sequences or None
            The grid; None is the estimator's own value.
        cv : int or None, default=None
            With folds of rows, each point has the `measure` on each of them, and the path a `best`.
        measure : {"macro_f1", "accuracy", "squared", "precision"}, default="macro_f1"
            The mean F1 of the labels, the mean Jaccard index of the rows (both of what `predict`
            says at `threshold`), minus the squared error of a row, or the precision of its three
            best labels.
        """
        check_params(self)
        check_path(self, self._codec, measure)
        given = {"reg": regs, "rank": ranks}
        grid = {name: grid_values(self, name, values) for name, values in given.items()}
        blocks, known = self._rows(X, Y)
        return fit_path(
            self._problem(blocks, known),
            self._codec,
            grid,
            lambda params, fit: copy(self).set_params(**params).adopt(fit, known),
            centred=self.fit_intercept,
            cv=cv,
            measure=measure,
            threshold=self.threshold,
        )
