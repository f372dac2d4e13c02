"""CPLST: conditional principal label space transformation.

    V = the k leading eigenvectors of Ỹᵀ Δ Ỹ,  Δ = X̃ (X̃ᵀX̃ + λI)⁻¹ X̃ᵀ,    C = Ỹ V,    H = V   (1)

the codes from which least is lost of what features can predict. As λ → 0 its predictions are those
of OP-FaIE and of LEML's closed form. After `KernelFeatures` it is kernel-CPLST, Δ = K (K + λI)⁻¹.

References: Y.-N. Chen and H.-T. Lin. Feature-aware label space dimension reduction for multi-label
classification. NIPS 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.codecs.code import LinearCode
from tacit.codecs.codec_data import CodecData
from tacit.engines.moments import Moments

__all__ = ["CPLST", "whitened"]

_ROUNDING = 1e-12  # eigenvalues of X̃ᵀX̃ below this share of the largest are none


@dataclass(frozen=True)
class CPLST:
    nested = True  # fewer codes are the first of more

    def learn(self, training: CodecData, rank: int, reg: float) -> LinearCode:
        _, _, A = whitened(training.moments, reg)
        _, V = training.leading(A.T @ A, rank)
        return LinearCode(V, None, V, training)


def whitened(S: Moments, reg: float) -> tuple[Array, Array, Array]:
    """Δ in a basis of its own: Z, diag(δ) and A with X̃ Z = Q, QᵀQ = diag(δ), QQᵀ = Δ, A = QᵀỸ.

    With X̃ᵀX̃ = E diag(g) Eᵀ, one decomposition for every λ: Z = E (g + λ)^(-1/2), δ = g / (g + λ).
    """
    g, E = S.spectrum
    xp = array_namespace(g)
    total = g + reg
    inverse = xp.where(
        total > _ROUNDING * xp.max(g), 1 / xp.sqrt(xp.where(total > 0, total, 1.0)), 0.0
    )
    Z = E * inverse
    return Z, g * inverse**2, Z.T @ S.xy
