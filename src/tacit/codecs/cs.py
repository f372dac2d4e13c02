"""CS: codes are random projections, decoded by sparse recovery.

    C = Y Φᵀ,  Φ of shape k × n_labels with entries N(0, 1/k);    H = Φᵀ

A row has few labels, so its y is the sparse solution of Φ y = ẑ. Two recoveries of s labels, for
many rows at once, both with r what y leaves of ẑ, and at first all of it:

    OMP       s times: take the j of largest |φ_jᵀr| / ‖φ_j‖, and fit y on all that were taken
    CoSaMP    ten times: fit y on its last support and the 2s largest of |Φᵀr|, keep the s largest

A fit is least squares, Φ_S⁺ẑ. Scores are 0 outside the support. k has to be a few times
s log(n_labels / s). CoSaMP always fits on 3s labels, so that all rows are alike: where both sets
overlap, the next largest fill them up.

References: D. Hsu, S. M. Kakade, J. Langford and T. Zhang. Multi-label prediction via compressed
sensing. NIPS 2009. D. Needell and J. A. Tropp. CoSaMP: iterative signal recovery from incomplete
and inaccurate samples. Applied and Computational Harmonic Analysis 26(3), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.codecs.code import LabelCode
from tacit.codecs.codec_data import CodecData

__all__ = ["CS"]

_ROUNDS = 10  # of CoSaMP
_ENTRIES = 2**23  # numbers laid out at a time, as scores or as columns of Φ


@dataclass(frozen=True)
class CS:
    sparsity: int = 5
    decoder: str = "omp"

    def learn(self, training: CodecData, rank: int, reg: float) -> LabelCode:
        H = training.rng.standard_normal((training.n_labels, rank)) / rank**0.5
        return LabelCode(training.backend.asarray(H.astype(training.dtype)))

    def decode(self, codes: Array, H: Array) -> Array:
        """Scores of shape (n_rows, n_labels), at most `sparsity` of them a row other than 0."""
        recover = _omp if self.decoder == "omp" else _cosamp
        s = min(self.sparsity, *H.shape)
        size = max(1, _ENTRIES // (H.shape[0] + 3 * s * H.shape[1]))
        parts = (codes[start : start + size] for start in range(0, len(codes), size))
        xp = array_namespace(codes)
        return xp.concat([_laid_out(*recover(part, H, s), len(H)) for part in parts])


def _omp(codes: Array, H: Array, s: int) -> tuple[Array, Array]:
    xp = array_namespace(codes)
    norms = xp.sqrt(xp.sum(H**2, axis=1))
    rows, left = xp.arange(len(codes), device=codes.device)[:, None], codes
    taken, y = rows[:, :0], codes[:, :0]
    for _ in range(s):
        fit = xp.abs(left @ H.T) / norms
        fit[rows, taken] = -1.0
        taken = xp.concat([taken, xp.argmax(fit, axis=1)[:, None]], axis=1)
        columns = H[taken]
        y = _least_squares(codes, columns)
        left = codes - _combined(y, columns)
    return taken, y


def _cosamp(codes: Array, H: Array, s: int) -> tuple[Array, Array]:
    xp = array_namespace(codes)
    rows, left = xp.arange(len(codes), device=codes.device)[:, None], codes
    taken, y = rows[:, :0], codes[:, :0]
    for _ in range(_ROUNDS):
        fit = xp.abs(left @ H.T)
        fit[rows, taken] = xp.inf
        candidates = _largest(fit, min(3 * s, *H.shape))  # of more than k, none fits best
        columns = H[candidates]
        y = _least_squares(codes, columns)
        kept = _largest(xp.abs(y), s)
        taken, y = candidates[rows, kept], y[rows, kept]
        left = codes - _combined(y, columns[rows, kept])
    return taken, y


def _largest(values: Array, k: int) -> Array:
    """Where the k largest of each row are; k is too small for sorting to pay. Spoils `values`."""
    xp = array_namespace(values)
    rows, found = xp.arange(len(values), device=values.device), []
    for _ in range(k):
        found.append(xp.argmax(values, axis=1))
        values[rows, found[-1]] = -1.0
    return xp.stack(found, axis=1)


def _least_squares(codes: Array, columns: Array) -> Array:
    """The y of (n_rows, taken) whose combination of (n_rows, taken, k) is nearest to each code."""
    xp = array_namespace(codes)
    G = columns @ xp.permute_dims(columns, (0, 2, 1))
    at = xp.arange(G.shape[1], device=codes.device)
    G[:, at, at] *= 1 + 10 * xp.finfo(G.dtype).eps  # columns may be parallel, to rounding
    return xp.linalg.solve(G, columns @ codes[:, :, None])[:, :, 0]


def _combined(y: Array, columns: Array) -> Array:
    return (y[:, None, :] @ columns)[:, 0]


def _laid_out(taken: Array, y: Array, n_labels: int) -> Array:
    xp = array_namespace(y)
    scores = xp.zeros((len(y), n_labels), dtype=y.dtype, device=y.device)
    scores[xp.arange(len(y), device=y.device)[:, None], taken] = y
    return scores
