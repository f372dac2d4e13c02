"""PLST: principal label space transformation.

    V = the k leading eigenvectors of ỸᵀỸ,    C = Ỹ V,    H = V

the codes from which least is lost of the labels, whatever the features are. R-FaIE, which is FaIE
at α = 0, has the left singular vectors of Ỹ as codes and so predicts the same.

References: F. Tai and H.-T. Lin. Multilabel classification with principal label space
transformation. Neural Computation 24(9), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.codecs.code import LinearCode
from tacit.codecs.codec_data import CodecData

__all__ = ["PLST"]


@dataclass(frozen=True)
class PLST:
    nested = True  # fewer codes are the first of more

    def learn(self, training: CodecData, rank: int, reg: float) -> LinearCode:
        yy = training.moments.yy
        _, V = training.leading(yy, rank)
        return LinearCode(V, None, V, training)
