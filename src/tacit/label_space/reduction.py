"""A reduction: a code of the labels, the regression from features to it, and both as one model."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import clone, is_regressor

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.params import Check, a_float, an_int
from tacit.codecs import CS, BMaD, Code, CodecData, LinearCode
from tacit.codecs.codec_data import stacked
from tacit.codecs.faie import RowCode
from tacit.estimators import Fit, Problem, shared_checks
from tacit.label_space.model import Decoded, OwnRegressor, features_of
from tacit.models import LowRank

__all__ = ["by_ridge", "reduced", "reduction_checks"]


def reduction_checks() -> dict[str, Check]:
    """The checks of the parameters that every reduction has."""
    return {
        "rank": an_int(at_least=1),
        "reg": a_float(above=0),
        "predictor": (
            lambda v: v is None or (hasattr(v, "predict") and is_regressor(v)),
            "None or a scikit-learn regressor",
        ),
        **shared_checks("verbose"),  # one pass and one solve
    }


def reduced(
    problem: Problem, codec: Any, rank: int, reg: float, predictor: Any, centred: bool
) -> Fit:
    """Codes of the labels, and what predicts them from the features: ridge, or a `predictor`.

    `centred` says whether features and labels go less their means, and so whether rows have the
    constant feature.
    """
    rows = CodecData.of(problem, centred)
    if predictor is None:
        return Fit(by_ridge(problem, codec, rows, rank, reg))
    code = codec.learn(rows, rank, reg)
    X, C = zip(*problem.blocks.sum(_listed, code, centred))
    codes = np.concatenate(C)  # one code as scikit-learn wants one target
    codes = codes[:, 0] if codes.shape[1] == 1 else codes
    regressor = clone(predictor).fit(stacked(X), codes)
    return Fit(OwnRegressor(regressor, centred, _model(problem, codec, rows, code, code.H[:0])))


def by_ridge(
    problem: Problem, codec: Any, rows: CodecData, rank: int, reg: float
) -> LowRank | Decoded:
    """The codes of these rows, and the ridge regression to them."""
    code = codec.learn(rows, rank, reg)
    return _model(problem, codec, rows, code, code.weights(rows, reg))


def _model(
    problem: Problem, codec: Any, rows: CodecData, code: Code, W: Array
) -> LowRank | Decoded:
    """The model of this code; the means of the labels are one more code, always 1."""
    xp, H = array_namespace(W), code.H
    if rows.centred and isinstance(code, LinearCode | RowCode):
        one = xp.zeros((len(W), 1), dtype=W.dtype, device=W.device)
        one[-1:] = 1.0
        W = xp.concat([W, one], axis=1)
        H = xp.concat([H, rows.label_means[:, None]], axis=1)
    W, H = problem.to_host(W), problem.to_host(H)
    return Decoded(W, H, codec) if isinstance(codec, CS | BMaD) else LowRank(W, H)


def _listed(b: Block, code: Code, constant: bool) -> list[tuple[Any, np.ndarray]]:
    """A list of one: lists add to longer ones."""
    return [(features_of(b, constant), b.backend.to_numpy(code.encode(b)))]
