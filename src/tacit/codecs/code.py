"""Codes, and the ridge regression from features to them.

Most codecs are linear: with Ỹ and X̃ less their means, the codes C, their predictions and the scores
are

    C = Ỹ P + X̃ R,    Ĉ = X̃ B  with  B = (X̃ᵀX̃ + λI)⁻¹ X̃ᵀC,    ȳ + Ĉ Hᵀ,                        (1)

where X̃ᵀC = X̃ᵀỸ P + X̃ᵀX̃ R, so that nothing here but the Gram triple has seen the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.codecs.codec_data import CodecData

__all__ = ["Code", "LabelCode", "LinearCode", "weights_by_rows"]


class Code(Protocol):
    """What a codec has learnt."""

    @property
    def H(self) -> Array:
        """What decodes, of shape (n_labels, rank)."""

    def encode(self, b: Block) -> Array:
        """The codes of some rows, of shape (n_rows, rank)."""

    def weights(self, training: CodecData, reg: float) -> Array:
        """W of the ridge regression from features to codes, of shape (n_features, rank)."""


@dataclass(frozen=True)
class LinearCode:
    """The code (1) of P, R (None: 0) and H."""

    P: Array
    R: Any
    H: Array
    training: CodecData

    def encode(self, b: Block) -> Array:
        xp, k = array_namespace(self.P), self.P.shape[1]
        R = xp.zeros((b.X.shape[1], k), dtype=xp.float64, device=self.P.device)
        if self.R is not None:
            R[: len(self.R)] = self.R
        if self.training.centred:  # by the weight of the constant feature
            sums = self.training.sums
            R[-1] = -(sums.y_sum @ self.P + sums.x_sum @ R) / sums.n
        X: Any = b.X
        cast = lambda A: xp.astype(A, (X.data if isinstance(X, Sparse) else X).dtype)
        return b.backend.spmm(b.Y, cast(self.P)) + b.project(cast(R))

    def weights(self, training: CodecData, reg: float) -> Array:
        S, xp = training.moments, array_namespace(self.P)
        cross = S.xy @ self.P
        B = S.regress(cross if self.R is None else cross + S.xx @ self.R, reg)
        if not training.centred:
            return B
        x = training.sums.x_sum[:-1] / training.sums.n
        return xp.concat([B, -(x @ B)[None, :]])


@dataclass(frozen=True)
class LabelCode:
    """C = Y H, of labels as they are."""

    H: Array

    def encode(self, b: Block) -> Array:
        return b.backend.spmm(b.Y, self.H)

    def weights(self, training: CodecData, reg: float) -> Array:
        return weights_by_rows(self, training, reg)


def weights_by_rows(code: Code, training: CodecData, reg: float) -> Array:
    """The ridge regression for codes of any kind, by a pass over the rows.

    The constant feature is one like the others here.
    """
    return training.equations.regress(training.blocks.sum(_cross, code), reg)


def _cross(b: Block, code: Code) -> Array:
    return b.project_t(code.encode(b))
