"""Label space reduction: learn a few codes in place of many labels, then decode.

    1. a codec makes codes C, n_samples × rank, of the labels (`tacit.codecs`, a file each)
    2. a regression learns to predict them from the features: ridge, or any of scikit-learn
    3. a new row's codes are predicted, and decoded to scores; what passes 0.5 is a label

With ridge and a linear decoder all of it is one low-rank model, scores = ȳ + (x - x̄)ᵀ B Hᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import clone, is_regressor

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.params import Check, a_float, an_int, one_of
from tacit.codecs import CPLST, CS, CSSP, PLST, BMaD, CodecData, LinearCode, REmbed
from tacit.codecs.codec_data import on_host, stacked
from tacit.codecs.faie import RowCode
from tacit.engines.index import LabelIndex
from tacit.engines.losses import LOSSES, Loss
from tacit.engines.moments import Moments
from tacit.estimators import MultiLabelEstimator, Problem, shared_checks
from tacit.label_space.path import Path, fit_path
from tacit.labels import Labels, TopK
from tacit.models import LowRank

__all__ = ["LabelSpaceReduction", "reduction_checks"]


_CODECS: dict[str, Any] = {
    "plst": PLST,
    "cplst": CPLST,
    "cs": CS,
    "cssp": CSSP,
    "bmad": BMaD,
    "rembed": REmbed,
}


def reduction_checks() -> dict[str, Check]:
    """The checks of the parameters that every reduction has."""
    shared = shared_checks()
    return {
        "rank": an_int(at_least=1),
        "reg": a_float(above=0),
        "predictor": (
            lambda v: v is None or (hasattr(v, "predict") and is_regressor(v)),
            "None or a scikit-learn regressor",
        ),
        **{name: shared[name] for name in shared if name != "verbose"},
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
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
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
    model_ : LowRank
        W from features to codes and H from codes to labels, both with a last column for the means
        of the labels where those were taken off.
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

    _checks = {
        "codec": one_of(*_CODECS),
        "sparsity": an_int(at_least=1),
        "decoder": one_of("omp", "cosamp"),
        "tau": a_float(above=0, at_most=1),
        **reduction_checks(),
    }

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
        normalize: Literal["l2"] | None = "l2",
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

    @property
    def _codec(self) -> Any:
        if self.codec == "cs":
            return CS(self.sparsity, self.decoder)
        return BMaD(self.tau) if self.codec == "bmad" else _CODECS[self.codec]()

    @property
    def _linear(self) -> bool:
        """Whether scores are codes · Hᵀ; otherwise the codec decodes."""
        return not hasattr(self._codec, "decode")

    @property
    def _loss(self) -> Loss:
        return LOSSES["squared"]

    def _fit(self, problem: Problem) -> LowRank:
        training = self._training(problem)
        self.predictor_ = None
        if self.predictor is None:
            return self._reduced(training)
        code = self._codec.learn(training, self.rank, self.reg)
        X, C = zip(*problem.blocks.sum(_listed, code, self.fit_intercept))
        codes = np.concatenate(C)  # one code as scikit-learn wants one target
        codes = codes[:, 0] if codes.shape[1] == 1 else codes
        self.predictor_ = clone(self.predictor).fit(stacked(X), codes)
        return _model(training, code, code.H[:0])  # the regressor has what would be its weights

    def _training(
        self, problem: Problem, sums: Moments | None = None, rough: bool = False
    ) -> CodecData:
        return CodecData(
            problem.blocks,
            problem.n_features,
            problem.n_labels,
            centred=self.fit_intercept,
            backend=problem.backend,
            dtype=problem.dtype,
            rng=problem.rng,
            sums=sums,
            rough=rough,
        )

    def _reduced(self, training: CodecData) -> LowRank:
        """The algorithm: codes, the ridge regression to them, and both as one model."""
        code = self._codec.learn(training, self.rank, self.reg)
        return _model(training, code, code.weights(training, self.reg))

    def fit_path(
        self,
        X: Any,
        Y: Any = None,
        *,
        ranks: Sequence[int] | None = None,
        regs: Sequence[float] | None = None,
        cv: int | None = None,
        measure: Literal["macro_f1", "accuracy", "squared"] = "macro_f1",
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
        measure : {"macro_f1", "accuracy", "squared"}, default="macro_f1"
            The mean F1 of the labels, the mean Jaccard index of the rows (both of what `predict`
            says at `threshold`), or minus the squared error of a row.
        """
        return fit_path(self, X, Y, {"reg": regs, "rank": ranks}, cv, measure)

    def _latent(self, block: Block) -> Array:
        if self.predictor_ is None:
            return self.model_.codes(block)
        codes = self.predictor_.predict(stacked([_features(block, self.fit_intercept)]))
        codes = np.asarray(codes, self.model_.W.dtype).reshape(block.X.shape[0], -1)
        ones = np.ones((len(codes), self.model_.W.shape[1] - codes.shape[1]), codes.dtype)
        return block.backend.asarray(np.hstack([codes, ones]))

    def _scores(self, block: Block) -> np.ndarray:
        if self._linear:
            return super()._scores(block)
        return block.backend.to_numpy(self._decoded(block))

    def _decoded(self, block: Block) -> Array:
        return self._codec.decode(self._codes(block), self.model_.decoder(block.backend))

    def _top_k(
        self, X: Any, k: int, labels: Labels | None, codes: Callable[[Block], Array] | None = None
    ) -> TopK:
        if self._linear:
            return super()._top_k(X, k, labels, codes)
        parts = [
            b.backend.top_k(self._decoded(b), None, k, None if labels is None else _said(b))
            for b in self._blocks(X, len(self.classes_), labels)
        ]
        return TopK(*(np.concatenate(arrays) for arrays in zip(*parts)))

    def build_index(self, *, accuracy: int = 64) -> LabelIndex:
        if not self._linear:
            raise ValueError(
                f'the scores of codec="{self.codec}" are no inner products, which an index needs; '
                "use top_k without index, which is exact"
            )
        return super().build_index(accuracy=accuracy)

    def _saved(self) -> tuple[dict, dict[str, np.ndarray]]:
        header, arrays = super()._saved()
        if self.predictor_ is not None:
            raise ValueError(
                f"a model with a regressor of your own ({type(self.predictor_).__name__}) cannot "
                "be saved: it is code; use predictor=None, which is ridge"
            )
        return header, arrays

    def _restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Self:
        self.predictor_ = None
        return super()._restore(header, arrays)


def _model(training: CodecData, code: Any, W: Array) -> LowRank:
    """The model of these codes; the means of the labels are one more code, always 1."""
    xp, H = array_namespace(W), code.H
    if training.centred and isinstance(code, LinearCode | RowCode):
        one = xp.zeros((len(W), 1), dtype=W.dtype, device=W.device)
        one[-1:] = 1.0
        W = xp.concat([W, one], axis=1)
        H = xp.concat([H, training.label_means[:, None]], axis=1)
    return LowRank(training.backend.to_numpy(W), training.backend.to_numpy(H))


def _listed(b: Block, code: Any, constant: bool) -> list[tuple[Any, np.ndarray]]:
    """A list of one: lists add to longer ones."""
    return [(_features(b, constant), b.backend.to_numpy(code.encode(b)))]


def _features(b: Block, constant: bool) -> Any:
    """The features in SciPy's or NumPy's form, without the constant one."""
    X = on_host(b.X, b.backend)
    return X[:, :-1] if constant else X


def _said(b: Block) -> Any:
    return b.Y if b.omega is None else b.omega
