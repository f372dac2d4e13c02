"""The kinds of model that a reduction leaves behind where a `LowRank` does not say it all.

A linear codec with ridge is a `LowRank`, scores = X W Hᵀ. Some codecs decode in another way
(`Decoded`), and a regressor of the user's own may stand in the place of W (`OwnRegressor`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from tacit.backends import Array, Backend
from tacit.backends.block import Block
from tacit.basics.params import Check, a_float, an_int, one_of
from tacit.codecs import CS, BMaD
from tacit.codecs.codec_data import on_host, stacked
from tacit.models import LowRank, Model
from tacit.models.links import LINKS
from tacit.models.model import check_shape

__all__ = ["DECODER_CHECKS", "Decoded", "OwnRegressor", "features_of"]

_DECODERS: dict[str, type[CS | BMaD]] = {"cs": CS, "bmad": BMaD}
DECODER_CHECKS: dict[str, Check] = {
    "sparsity": an_int(at_least=1),
    "decoder": one_of("omp", "cosamp"),
    "tau": a_float(above=0, at_most=1),
}
"""The settings of these codecs: as parameters, and as a file has them."""


@dataclass(frozen=True, eq=False)
class Decoded(Model):
    """Scores that a codec decodes from the codes X W; they are no inner products.

    Attributes
    ----------
    W : ndarray of shape (n_features, rank)
        With an intercept the last row belongs to the constant feature.
    codebook : ndarray of shape (n_labels, rank)
        What the codec decodes by.
    codec : CS or BMaD
        How it does.
    """

    W: np.ndarray
    codebook: np.ndarray
    codec: CS | BMaD
    H = None  # by which an index could search

    @property
    def n_labels(self) -> int:
        return len(self.codebook)

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    def codes(self, block: Block) -> Array:
        return block.project(block.backend.kept(self.W))

    def factors(self, block: Block) -> tuple[Array, Array | None]:
        return self.decoded(self.codes(block), block.backend), None

    def decoded(self, codes: Array, backend: Backend) -> Array:
        """The scores of these codes."""
        return self.codec.decode(codes, backend.kept(self.codebook))

    def probability(self, scores: Array) -> Array:
        return LINKS["squared"].probability(scores)

    def numbers(self) -> dict[str, Any]:
        name = next(name for name, kind in _DECODERS.items() if type(self.codec) is kind)
        return {"codec": name, **asdict(self.codec)}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W": self.W, "H": self.codebook}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        W = check_shape("W", arrays.get("W"), n_weights, None)
        H = check_shape("H", arrays.get("H"), n_labels, W.shape[1])
        return cls(W, H, _codec_of(**numbers))


@dataclass(frozen=True, eq=False)
class OwnRegressor(Model):
    """Codes that a regressor of the user's own predicts; it is code, which no file holds.

    Attributes
    ----------
    regressor : fitted regressor of scikit-learn
        From features, without the constant one, to codes.
    constant : bool
        Whether rows have the constant feature, behind all others.
    decoding : LowRank or Decoded
        What makes scores of codes. Its W is empty: the regressor has what would be the weights.
    """

    regressor: Any
    constant: bool
    decoding: LowRank | Decoded

    @property
    def W(self) -> np.ndarray:
        return self.decoding.W

    @property
    def H(self) -> np.ndarray | None:  # type: ignore[override]
        return self.decoding.H

    @property
    def n_labels(self) -> int:
        return self.decoding.n_labels

    @property
    def n_codes(self) -> int:
        return self.decoding.n_codes

    @property
    def dtype(self) -> np.dtype:
        return self.decoding.dtype

    def codes(self, block: Block) -> Array:
        """What the regressor says, and where labels had their means taken off a last code of 1."""
        predicted = self.regressor.predict(stacked([features_of(block, self.constant)]))
        predicted = np.asarray(predicted, self.dtype).reshape(block.X.shape[0], -1)
        ones = np.ones((len(predicted), self.n_codes - predicted.shape[1]), self.dtype)
        return block.backend.asarray(np.hstack([predicted, ones]))

    def factors(self, block: Block) -> tuple[Array, Array | None]:
        codes, backend = self.codes(block), block.backend
        if isinstance(self.decoding, Decoded):
            return self.decoding.decoded(codes, backend), None
        return codes, backend.kept(self.decoding.H)

    def probability(self, scores: Array) -> Array:
        return self.decoding.probability(scores)

    def arrays(self) -> dict[str, np.ndarray | None]:
        raise ValueError(
            f"a model with a regressor of your own ({type(self.regressor).__name__}) cannot be "
            "saved: it is code; use predictor=None, which is ridge"
        )

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        raise ValueError("it says that it has a regressor, which is code, and no file holds any")


def features_of(block: Block, constant: bool) -> Any:
    """The features in SciPy's or NumPy's form, without the constant one."""
    X = on_host(block.X, block.backend)
    return X[:, :-1] if constant else X


def _codec_of(codec: Any = None, **settings: Any) -> CS | BMaD:
    """The codec of this name and these settings, or ValueError."""
    if codec not in sorted(_DECODERS):  # which may be no string
        raise ValueError(f"its codec {codec!r} is not one of {sorted(_DECODERS)}")
    kind = _DECODERS[codec]
    if set(settings) != {field.name for field in fields(kind)}:
        raise ValueError(f"its codec {codec!r} has the settings {sorted(settings)}")
    for name, value in settings.items():
        if not DECODER_CHECKS[name][0](value):
            raise ValueError(f"its {name} is {value!r}")
    return kind(**settings)
