"""ML-CSSP: k of the labels themselves, as codes.

Label j is drawn with probability proportional to its leverage Σ_i V_ji², V the k leading right
singular vectors of Ỹ, until k different ones, S, are there; the others follow from them by least
squares,

    C = Ỹ_S,    Hᵀ = C⁺Ỹ = G_SS⁺ G_S  with  G = ỸᵀỸ.

Where Ỹ is of lower rank than k, that many are enough.

References: W. Bi and J. T. Kwok. Efficient multi-label classification with many labels. ICML 2013.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from tacit.codecs.code import LinearCode
from tacit.codecs.codec_data import CodecData
from tacit.engines.solvers import leading_eigenpairs

__all__ = ["CSSP"]

_ROUNDING = 1e-10  # eigenvalues of G below this share of the largest are none


@dataclass(frozen=True)
class CSSP:
    def learn(self, training: CodecData, rank: int, reg: float) -> LinearCode:
        G = training.moments.yy
        xp = array_namespace(G)
        w, V = leading_eigenpairs(G, min(rank, len(G)))
        V = V[:, w >= _ROUNDING * w[0]]
        leverage = training.backend.to_numpy(xp.sum(V**2, axis=1))
        # To draw without replacement is to draw until k different ones are there. Leverages add up
        # to k and are 1 at most, so that there always is another one to draw.
        p = leverage / leverage.sum()
        drawn = training.rng.choice(len(G), V.shape[1], replace=False, p=p)
        S = training.backend.asarray(np.sort(drawn))
        P = xp.eye(len(G), dtype=G.dtype, device=G.device)[:, S]
        H = xp.linalg.pinv(G[S][:, S], rtol=_ROUNDING) @ G[S]
        return LinearCode(P, None, H.T, training)
