"""Fold-in: the code of a row given its features *and* what was said of it.

    u = argmin ½ Σ_{j ∈ S} a_j (y_j - uᵀh_j)² + ½ w Σ_{j ∉ S} (uᵀh_j)² + ½ λ ‖u - Wᵀx‖²         (1)

where S are the labels said of the row, w is the weight of silence and a_j that of what was said: 1,
but √w for a no among silence (`no_weight`). The sum over the unsaid is w uᵀHᵀH u less its said
part, so with P = (w HᵀH + λI)⁻¹, one matrix for all rows, and R² = diag(a - w) / (1 - w), 1 where
somebody said yes, (1) is solved by

    u = P (λ Wᵀx + H_SᵀR t),   (I + (1 - w) R H_S P H_SᵀR) t = R y_S - (1 - w) λ R H_S P Wᵀx,   (2)

a system with one unknown for each thing said. All rows are solved together by conjugate gradients
over the said entries, with step sizes row by row, so that a row of s labels takes at most s steps.
Nothing of size rank × rank is formed for a row, and nothing of size n_samples × n_labels at all.

With another loss, the w of (1) is 0 and its squares are replaced a few times by the quadratic that
touches ℓ at the present scores and lies above it, of curvature c ≥ ℓ'': (1) with the targets
z - ℓ'(y, z)/c and λ/c.

**The weight of a no.** With the weight w for silence, scores show the odds of being said as if
silence were 1/w times rarer than it is. A no of weight 1 would be read as 1/w silences, and what
people have looked at, which is what a model was surest of, would fall behind all the rest; a no of
weight w would be no more than silence. √w is half way, and helps where the weight 1 hurts: logistic
LEML on delicious, whose surest proposals somebody has looked through (`tests/test_said_no.py`).
"""

from __future__ import annotations

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.engines.losses import Loss, Squared
from tacit.engines.solvers import cg

__all__ = ["fold_in", "no_weight", "trust"]

_RTOL, _MAX_ITER = 1e-6, 200
_STEPS = 5  # quadratics for a loss that is not squared


def fold_in(
    block: Block, W: Array, H: Array, loss: Loss, unsaid_weight: float, reg: float
) -> Array:
    """The codes U of the rows of a block; with masked labels the unobserved weigh nothing."""
    backend = block.backend
    said, y = block.said
    no, squared = no_weight(unsaid_weight), isinstance(loss, Squared)
    if block.omega is not None or not squared:
        unsaid_weight = 0.0
    root = trust(block, unsaid_weight, no) ** 0.5
    if squared:
        return _ridge_fit(block, said, y, W, H, unsaid_weight, reg, root)
    U = block.project(W)
    for _ in range(_STEPS):
        z = backend.sddmm(said, U, H)
        target = z - loss.grad(y, z) / loss.bound
        U = _ridge_fit(block, said, target, W, H, 0.0, reg / loss.bound, root)
    return U


def no_weight(unsaid_weight: float) -> float:
    """The weight of a said no among silence of such a weight."""
    return unsaid_weight**0.5


def trust(block: Block, unsaid_weight: float, no: float) -> Array:
    """R² of (2) on what was said, where a no has this weight; of masked labels 1 everywhere."""
    _, y = block.said
    if block.noes is None:
        return array_namespace(y).ones_like(y)
    share = (no - unsaid_weight) / (1 - unsaid_weight) if unsaid_weight < 1 else 1.0
    return share + (1 - share) * y


def _ridge_fit(
    block: Block, said: Sparse, y: Array, W: Array, H: Array, weight: float, reg: float, root: Array
) -> Array:
    """Solve (2)."""
    backend, xp = block.backend, array_namespace(H)
    eye = xp.eye(H.shape[1], dtype=xp.float64, device=H.device)
    P = xp.linalg.inv(weight * xp.astype(H.T @ H, xp.float64) + reg * eye)
    P = xp.astype(P, H.dtype)
    HP, A = H @ P, block.project(reg * (W @ P))
    ones = xp.ones((said.shape[1], 1), dtype=H.dtype, device=H.device)

    def dot(u: Array, v: Array) -> Array:
        """The sum over each row, at each of its entries."""
        sums = backend.spmm(said, ones, u * v)
        return backend.sddmm(said, sums, ones)

    def matvec(t: Array) -> Array:
        return t + (1 - weight) * root * backend.sddmm(said, backend.spmm(said, HP, root * t), H)

    b = root * (y - (1 - weight) * backend.sddmm(said, A, H))
    t = cg(matvec, b, rtol=_RTOL, max_iter=_MAX_ITER, dot=dot).x
    return A + backend.spmm(said, HP, root * t)
