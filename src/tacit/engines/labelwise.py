"""One linear model a label: the map Z ↦ X Z, and passes of Newton's method over all labels.

    J(Z) = Σ_j J_j(z_j),    J_j(z) = Σ_{i: (i, j) ∈ Ω} ℓ_j(y_ij, x_iᵀ z) + ½ λ ‖z‖²             (1)

with Z of shape (n_features, n_labels). No label knows of another, but a product of X with a matrix
serves all its columns, so the problems are solved many at a time. Where ℓ is convex, (1) is
λ-strongly convex, so J_j(z) - min J_j ≤ ‖∇J_j(z)‖² / 2λ, and a label is finished once

    ‖∇J_j(z_j)‖ ≤ √(2 λ tol J_j(z_j)):    then J_j is within tol J_j of its minimum.            (2)

X Z is n_samples × n_labels, so labels are taken in groups, few enough for the scores of a group
to stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.losses import Loss, Squared
from tacit.engines.risk import Risk
from tacit.engines.solvers import cg, tron
from tacit.engines.solvers.cg import ratio

__all__ = ["LabelwiseMap", "label_groups", "newton_pass"]

_GROUP_SCORES = 2**24  # scores of a group of labels: 128 MiB in float64, two or three times
_NEWTON_STEPS = 10  # a pass: enough for most labels to be finished in two, few enough to show
_CG_STEPS = 50  # products for one Newton step, or for one pass where J is quadratic


def label_groups(n_samples: int, n_labels: int) -> list[slice]:
    """The labels in groups, each with few enough scores."""
    width = max(1, _GROUP_SCORES // max(n_samples, 1))
    return [slice(j, min(j + width, n_labels)) for j in range(0, n_labels, width)]


def newton_pass(
    blocks: Blocks,
    loss: Callable[[slice], Loss],
    reg: float,
    Z: Array,
    groups: list[slice],
    tol: float,
) -> tuple[Array, Array]:
    """Z after a pass over all labels, and J there by label; `loss` is that of a group."""
    xp = array_namespace(Z)
    parts, values = [], []
    for labels in groups:
        risk = Risk(blocks.map(LabelwiseMap, labels), loss(labels), reg, axis=0)
        part, value = _newton(risk, Z[:, labels], tol)
        parts.append(part)
        values.append(value[0])
    return xp.concat(parts, axis=1), xp.concat(values)


def _newton(risk: Risk, Z: Array, tol: float) -> tuple[Array, Array]:
    xp = array_namespace(Z)
    gtol = xp.sqrt(2 * risk.reg * tol * risk.values(Z))  # (2)
    if not isinstance(risk.loss, Squared):
        found = tron(risk, Z, gtol=gtol, max_iter=_NEWTON_STEPS, cg_max_iter=_CG_STEPS)
        return found.w, found.values
    g = risk.grad(Z)
    rtol = ratio(gtol, xp.sqrt(xp.sum(g * g, axis=0, keepdims=True)))
    Z = Z + cg(risk.hessp(Z), -g, rtol=rtol, max_iter=_CG_STEPS, axis=0).x
    return Z, risk.values(Z)


class LabelwiseMap:
    """Z ↦ P_Ω(X Z) for some of the labels, a column of Z each; its adjoint is G ↦ Xᵀ G.

    The numbers on Ω are a vector, or the whole array of n_rows × labels where Ω is everything.
    """

    def __init__(self, block: Block, labels: slice):
        self.block = _of_labels(block, labels)
        omega = self.block.omega
        self.shape, self.cells = self.block.Y.shape, None if omega is None else _cells(omega)

    def forward(self, Z: Array) -> Array:
        scores, xp = self.block.project(Z), array_namespace(Z)
        return scores if self.cells is None else xp.reshape(scores, (-1,))[self.cells]

    def adjoint(self, g: Array) -> Array:
        return self.block.project_t(self._laid_out(g))

    def totals(self, e: Array) -> Array:
        """A sum a label, of shape (1, labels): each column of Z is a problem of its own."""
        return array_namespace(e).sum(self._laid_out(e), axis=0, keepdims=True)

    def _laid_out(self, e: Array) -> Array:
        if self.cells is None:
            return e
        xp = array_namespace(e)
        out = xp.zeros(self.shape[0] * self.shape[1], dtype=e.dtype, device=e.device)
        out[self.cells] = e
        return xp.reshape(out, self.shape)


def _of_labels(b: Block, labels: slice) -> Block:
    """The same rows with some of the labels, and y on all their entries."""
    Y, _ = _columns(b.Y, labels)
    if b.omega is None:
        dtype = b.X.data.dtype if isinstance(b.X, Sparse) else b.X.dtype
        noes = None if b.noes is None else _columns(b.noes, labels)[0]
        return replace(b, Y=Y, y=b.backend.dense(Y, slice(0, Y.shape[0]), dtype), noes=noes)
    omega, kept = _columns(b.omega, labels)
    return replace(b, Y=Y, omega=omega, y=b.y[kept])


def _columns(S: Sparse, columns: slice) -> tuple[Sparse, Array]:
    """Some columns of a pattern, and which of its entries they keep."""
    xp = array_namespace(S.indices)
    kept = (S.indices >= columns.start) & (S.indices < columns.stop)
    before = xp.cumulative_sum(xp.astype(kept, xp.int64), include_initial=True)
    indices = S.indices[kept] - columns.start
    shape = (S.shape[0], columns.stop - columns.start)
    return Sparse(shape, before[S.indptr], indices, None, S.backend), kept


def _cells(S: Sparse) -> Array:
    """Where each entry of a pattern stands in the array of its shape, laid out row after row."""
    xp = array_namespace(S.indptr)
    rows = xp.arange(S.shape[0], device=S.indptr.device)
    return xp.repeat(rows, xp.diff(S.indptr)) * S.shape[1] + S.indices
