"""FaIE: feature-aware implicit label space encoding, from the Gram triple or that of the rows.

Codes C with CᵀC = I from which the labels can be recovered and which features can predict,

    max  tr[ Cᵀ (ỸỸᵀ + αΔ) C ],    Δ = X̃ (X̃ᵀX̃ + λI)⁻¹ X̃ᵀ,    H = ỸᵀC.                         (1)

The paper forms this n × n matrix. With Q, QQᵀ = Δ, as in `whitened`, it is F Fᵀ for the tall
F = [Ỹ, √α Q], so its leading eigenvectors are C = F V w^(-1/2) with V and w those of

    T = FᵀF = [ ỸᵀỸ     √α Aᵀ ],    A = QᵀỸ,  diag(δ) = QᵀQ,                                    (2)
              [ √α A    α diag(δ) ]

n_labels + n_features in size. H = ỸᵀC is √w times the label part of V. All ranks are prefixes of
one decomposition, and all α and λ share the one of X̃ᵀX̃.

With λ = 0, as printed, and as many features as rows, Δ is the identity, and the codes do not see
the features; so it is with every kernel-FaIE whose kernel is positive definite. λ > 0 mends both.

    "linear"      C = ỸP. With Ỹ = U S Vᵀ, codes are U times the eigenvectors of
                  S² + α NNᵀ,  N = UᵀQ = S⁻¹VᵀAᵀ, of size rank(Y).                             (3)
    "p-linear"    C = ỸP again, by what features predict only: those of NNᵀ.                    (4)
    "op"          C = X̃R, which is CPLST; "r" is α = 0, which is PLST.

Where rows are fewer than features, the paper's matrix is the small one. With
K = X̃X̃ᵀ, and X̃ᵀ(K + λI)⁻¹ = (X̃ᵀX̃ + λI)⁻¹X̃ᵀ,

    αΔ = αK (K + λI)⁻¹ = α (I - λ (K + λI)⁻¹),    B = X̃ᵀ (K + λI)⁻¹ C,                         (5)

B being the ridge regression to the codes. Of their eigenvalues w, C = (Ỹ H + α X̃ B) w⁻¹.

References: Z. Lin, G. Ding, M. Hu and J. Wang. Multi-label classification via feature-aware
implicit label space encoding. ICML 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace
from scipy.sparse.linalg import LinearOperator

from tacit.backends import Array, Backend, Sparse
from tacit.backends.block import Block
from tacit.codecs.code import LinearCode
from tacit.codecs.codec_data import CodecData
from tacit.codecs.cplst import CPLST, whitened
from tacit.codecs.plst import PLST
from tacit.engines.solvers import inverse

__all__ = ["FaIECodec", "RowCode"]

_LAID_OUT = 4096  # rows of T; a larger one is only multiplied by
_ROUNDING = 1e-10  # eigenvalues below this share of the largest are none


@dataclass(frozen=True)
class FaIECodec:
    alpha: float = 1.0
    variant: str = "faie"
    nested: ClassVar[bool] = True  # fewer codes are the first of more

    def learn(self, training: CodecData, rank: int, reg: float) -> LinearCode | RowCode:
        if self.variant == "op":
            return CPLST().learn(training, rank, reg)
        if self.variant == "r":
            return PLST().learn(training, rank, reg)
        if self.variant != "faie":
            return self._linear(training, rank, reg)
        return (self._by_rows if training.by_rows else self._free)(training, rank, reg)

    def _free(self, training: CodecData, rank: int, reg: float) -> LinearCode:
        S = training.moments
        Z, delta, A = whitened(S, reg)
        T = gram(S.yy, A, delta, self.alpha)
        w, V = training.leading(T, rank)
        root, inverse_root = _roots(w)
        V_y, V_x = V[: training.n_labels], V[training.n_labels :]
        P, R = V_y * inverse_root, self.alpha**0.5 * (Z @ (V_x * inverse_root))
        return LinearCode(P, R, V_y * root, training)

    def _by_rows(self, training: CodecData, rank: int, reg: float) -> RowCode:
        b, centred = training.rows, training.centred
        smoother = inverse(_plus(row_gram(b.X, b.backend, centred), reg))
        M = row_gram(b.Y, b.backend, centred)
        M -= self.alpha * reg * smoother
        w, V = training.leading(_plus(M, self.alpha), rank)
        xp, (root, inverse_root) = array_namespace(V), _roots(w)
        C = V * (root * inverse_root)
        if centred:  # as they are but for rounding
            C = C - xp.mean(C, axis=0)
        H, B = b.backend.spmm_t(b.Y, C), b.project_t(smoother @ C)
        P, R = H * inverse_root**2, self.alpha * B * inverse_root**2
        if centred:  # the means are taken off by the weight of the constant feature
            x = b.project_t(xp.ones_like(C[:, :1]))[:-1, 0] / len(C)
            B[-1], R[-1] = -(x @ B[:-1]), -(x @ R[:-1] + training.label_means @ P)
        return RowCode(P, R, H, B)

    def _linear(self, training: CodecData, rank: int, reg: float) -> LinearCode:
        S = training.moments
        _, _, A = whitened(S, reg)
        xp = array_namespace(A)
        s2, V = S.label_spectrum
        kept = s2 > _ROUNDING * s2[-1]
        s, V = xp.sqrt(s2[kept]), V[:, kept]
        N = (V / s).T @ A.T
        E = N @ N.T
        if self.variant == "linear":
            E = self.alpha * E
            at = xp.arange(len(s))
            E[at, at] += s**2
        _, G = training.leading(E, rank)
        return LinearCode((V / s) @ G, None, (V * s) @ G, training)


@dataclass(frozen=True)
class RowCode:
    """C = Y P + X R, the constant feature included, with the regression B that came with it."""

    P: Array
    R: Array
    H: Array
    B: Array

    def encode(self, b: Block) -> Array:
        return b.backend.spmm(b.Y, self.P) + b.project(self.R)

    def weights(self, training: CodecData, reg: float) -> Array:
        return self.B


def row_gram(S: Any, backend: Backend, centred: bool) -> Array:
    """S Sᵀ, with S less the means of its columns if `centred`, though nobody takes them off S."""
    T = S.transposed if isinstance(S, Sparse) else S.T
    G = backend.cross(T, T)
    if centred:
        xp = array_namespace(G)
        m = xp.mean(G, axis=0)
        G -= m[:, None]
        G -= m - xp.mean(m)
    return G


def _plus(G: Array, value: float) -> Array:
    """G + value · I, in place."""
    at = array_namespace(G).arange(len(G))
    G[at, at] += value
    return G


def gram(yy: Array, A: Array, delta: Array, alpha: float) -> Any:
    """T of (2), or where it is large the product with it."""
    xp, root = array_namespace(A), alpha**0.5
    n_labels, size = len(yy), len(yy) + len(delta)
    if size <= _LAID_OUT or not is_numpy_namespace(xp):
        top = xp.concat([yy, root * A.T], axis=1)
        return xp.concat([top, xp.concat([root * A, alpha * xp.diag(delta)], axis=1)])

    def matvec(v: np.ndarray) -> np.ndarray:
        a, b = v[:n_labels], v[n_labels:]
        return np.concatenate([yy @ a + root * (b @ A), root * (A @ a) + alpha * delta * b])

    return LinearOperator((size, size), matvec=lambda v: matvec(v.ravel()), dtype=A.dtype)


def _roots(w: Array) -> tuple[Array, Array]:
    """√w and 1/√w, both 0 where w is."""
    xp = array_namespace(w)
    good = w > _ROUNDING * w[0]
    root = xp.sqrt(xp.where(good, w, 1.0))
    return xp.where(good, root, 0.0), xp.where(good, 1 / root, 0.0)
