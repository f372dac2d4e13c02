"""Ridge regression with the data's own prior, and the scores of rows that it has not seen.

    W = (XᵀVX + λP)⁻¹ XᵀY,      P = (XᵀVX / mean eigenvalue)^(-p)                              (1)

V is 1 where a row says something and w₀ where it says nothing. p = 0 is plain ridge; p > 0 trusts
directions in which the features of *all* rows vary, so that rows without labels teach as well. With
XᵀVX = Q diag(g) Qᵀ and q = (g / mean g)^p, (XᵀVX + λP)⁻¹ = F Fᵀ for F = Q diag(√(q / (g q + λ))).

The model that has not seen row i need not be fitted: with h_i = v_i ‖Fᵀx_i‖², its score is

    s_il = (x_iᵀ w_l - h_i y_il) / (1 - h_i),                                                   (2)

exactly. So one factorisation gives the model and the scores of all its rows left out, one by one;
λ, p and the scaling of the features are those whose (2) ranks best.

**Cost**: XᵀX in O(Σ nnz²) or XXᵀ; one factor, O(d³) or O(n³); W in O(d² L). It cannot take more
features *and* rows than `Limits` has room for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.solvers import cholesky
from tacit.methods.tacit.deal import SomeRows
from tacit.methods.tacit.first.normal import Normal, silent
from tacit.methods.tacit.judge import gain_of_scores
from tacit.methods.tacit.limits import Limits
from tacit.models import LowRank

__all__ = ["LADDER", "POWERS", "START", "FirstRidge", "LeaveOneOut", "Unseen", "climbed"]

LADDER = tuple(10 ** (step / 2) for step in range(-2, 7))  # λ, from 0.1 to 1,000
START = 3  # 3.2
POWERS = (0.0, 1.0, 2.0)
_SEEN = 0.999  # the largest h: beyond, a row alone decides its score, and (2) divides by nothing

Unseen = tuple[int | None, Any]
"""A fold of the rows, or all of them, and what scores them by models that have not seen them."""


@dataclass(frozen=True)
class LeaveOneOut:
    """(2): the scores of each row by the ridge of all the others."""

    W: Array
    F: Array
    weight: float

    def scores(self, b: Block) -> Array:
        xp = array_namespace(self.W)
        h = xp.sum(b.project(self.F) ** 2, axis=1)
        h = xp.where(silent(b), self.weight * h, h)
        h = xp.clip(h, max=_SEEN)[:, None]
        said = b.backend.dense(b.Y, slice(0, b.Y.shape[0]), self.W.dtype)
        return (b.project(self.W) - h * said) / (1 - h)


@dataclass(frozen=True)
class FirstRidge:
    """(1) with its λ and p chosen; `normal` is that of all rows, by which they were."""

    reg: float
    power: float
    weight: float
    normal: Normal | None = field(default=None, repr=False, compare=False)

    name: ClassVar[str] = "ridge"
    rough: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"ridge with λ = {self.reg:.3g} and a prior of power {self.power:g}"

    def fit(self, rows: SomeRows, limits: Limits) -> tuple[LowRank, list[Unseen]]:
        """The model of these scaled rows, and what scores each of them by the others."""
        normal = self.normal if rows.whole else None
        normal = normal or Normal.of(rows, self.weight, self.power > 0, limits)
        like = _dtype(rows)
        xp = array_namespace(normal.xy)
        F = xp.astype(normal.root(self.reg, self.power), like)
        W = F @ (F.T @ xp.astype(normal.xy, like))
        return LowRank(rows.to_host(W)), [(None, LeaveOneOut(W, F, self.weight))]

    @classmethod
    def choose(
        cls, rows: SomeRows, judged: Blocks, weight: float, limits: Limits
    ) -> tuple[float, FirstRidge]:
        """The λ and p whose (2) ranks the judged rows best, which are among the rows.

        Where each λ takes a factor of its own, one stands for all until the lead is `refined`.
        """
        by_rows = rows.n_samples < rows.n_features and rows.n_samples <= limits.exact_rows
        spectrum = by_rows or rows.n_features <= limits.spectrum_features
        normal = Normal.of(rows, weight, spectrum, limits)
        if not spectrum:
            at = _tried(normal, judged, 0.0, weight, _dtype(rows))
            return at(START), cls(LADDER[START], 0.0, weight, normal)
        best, step = (-1.0, cls(LADDER[START], 0.0, weight)), START
        for power in POWERS:
            found, step = climbed(_tried(normal, judged, power, weight, _dtype(rows)), step)
            if found > best[0]:
                best = found, cls(LADDER[step], power, weight, normal)
        return best

    def refined(self, rows: SomeRows, judged: Blocks, limits: Limits) -> FirstRidge:
        """With the λ that ranks the judged rows best, where only one was tried."""
        if self.normal is None or self.normal.eigen is not None:
            return self
        _, step = climbed(_tried(self.normal, judged, 0.0, self.weight, _dtype(rows)), START)
        return replace(self, reg=LADDER[step])


def _tried(
    normal: Normal, judged: Blocks, power: float, weight: float, like: Any
) -> Callable[[int], float]:
    """The mean gain of (2) on the judged rows, at a step of the ladder of λ."""
    light = normal.cast(like)  # enough to choose by
    if light.eigen is not None:  # everything is diagonal in the eigenvectors
        turned = judged.map(_turned, light.eigen[1])
        rotated = light.eigen[1].T @ light.xy
        of = lambda reg: turned.sum(_gain_turned, light.shrunk(reg, power), rotated, weight)
    else:
        laid_out = judged.map(_turned, array_namespace(light.xx).eye(len(light.xy), dtype=like))
        of = lambda reg: laid_out.sum(_gain_solved, cholesky(light.shifted(reg)), light.xy, weight)

    def at(step: int) -> float:
        total, n = of(LADDER[step])
        return total / max(n, 1)

    return at


def climbed(at: Any, first: int) -> tuple[float, int]:
    """The best step of the ladder, upwards from the first or, if that is no gain, down."""
    best, step = at(first), first
    for way in (1, -1):
        while 0 <= step + way < len(LADDER) and (found := at(step + way)) > best:
            best, step = found, step + way
        if step != first:
            break
    return best, step


def _dtype(rows: SomeRows) -> Any:
    """The float type of the rows where they are placed."""
    return rows.backend.asarray(np.zeros(1, rows.dtype)).dtype


def _turned(b: Block, Q: Array) -> Block:
    """The block with its features along these vectors."""
    return replace(b, X=b.project(Q), more=())


def _gain_turned(b: Block, shrunk: Array, R: Array, weight: float) -> tuple[float, int]:
    T = b.X * shrunk[None, :]
    xp = array_namespace(T)
    return _gain(b, T @ (shrunk[:, None] * R), xp.sum(T * T, axis=1), weight)


def _gain_solved(b: Block, solve: Any, xy: Array, weight: float) -> tuple[float, int]:
    Z = solve(b.X.T).T
    return _gain(b, Z @ xy, array_namespace(Z).sum(Z * b.X, axis=1), weight)


def _gain(b: Block, S: Array, h: Array, weight: float) -> tuple[float, int]:
    xp = array_namespace(S)
    h = xp.clip(xp.where(silent(b), weight * h, h), max=_SEEN)[:, None]
    said = b.backend.dense(b.Y, slice(0, b.Y.shape[0]), S.dtype)
    return float(gain_of_scores(b, (S - h * said) / (1 - h)).sum()), b.Y.shape[0]
