"""REmbed: the subspace of CPLST by random projections, for labels and features beyond their Grams.

    Q ← orth( Yᵀ X (XᵀX + λI)⁻¹ XᵀY Q ),  twice, from a random Q of k + 20 columns               (1)

Then V, the k leading eigenvectors inside Q of the matrix in (1), gives C = Y V and H = V. Nothing
larger than (n_features + n_labels) × (k + 20) is laid out beside XᵀX, and where that is too large,
the inverse is conjugate gradients on all columns at once. Labels are not centred: the constant
feature predicts their means.

Of the paper this is the embedding; its random Fourier features and logistic regression on the codes
are another predictor's business.

References: P. Mineiro and N. Karampatziakis. Fast label embeddings via randomized linear algebra.
ECML PKDD 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.codecs.code import LabelCode
from tacit.codecs.codec_data import CodecData
from tacit.engines.solvers import leading_subspace

__all__ = ["REmbed"]

_MORE = 20  # columns than codes
_ROUNDS = 2  # of (1)


@dataclass(frozen=True)
class REmbed:
    def learn(self, training: CodecData, rank: int, reg: float) -> LabelCode:
        def apply(Q: Array) -> Array:
            W = training.equations.regress(training.blocks.sum(_to_features, Q), reg)
            return training.blocks.sum(_to_labels, W)

        Q = training.rng.standard_normal((training.n_labels, rank + _MORE))
        start = training.backend.asarray(Q.astype(training.dtype))
        V = leading_subspace(apply, start, n_iter=_ROUNDS)
        return LabelCode(V[:, :rank])


def _to_features(b: Block, Q: Array) -> Array:
    return b.project_t(b.backend.spmm(b.Y, Q))


def _to_labels(b: Block, W: Array) -> Array:
    return b.backend.spmm_t(b.Y, b.project(W))
