"""Ridge regression by conjugate gradients, where rows and features are too many for a factor.

    W = (XᵀVX + λP)⁻¹ XᵀY,                                                                      (1)

as in `first.ridge`, for all labels at once by passes over the rows (`tacit.engines.moments`), with
P = I or the prior of power 2, which takes three products a step where P = I takes one. The model
that has not seen a row is that of the other folds of three. λ and p are those whose model of four
fifths of the rows ranks the rest best.

**Cost**: some 10 to 25 products of X with as many columns as there are labels, three times that
with the prior, for each of four models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.blocks import Blocks
from tacit.engines.moments import Products
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first.normal import weighed
from tacit.methods.tacit.first.ridge import LADDER, START, Unseen, climbed
from tacit.methods.tacit.judge import gain_of_scores
from tacit.methods.tacit.limits import Limits
from tacit.models import LowRank

__all__ = ["ByProducts"]

FOLDS = 3
_CG: dict[str, Any] = dict(rtol=1e-2, max_iter=25)
_POWERS = (0.0, 2.0)


@dataclass(frozen=True)
class ByProducts:
    """(1) with its λ and p chosen."""

    reg: float
    power: float
    weight: float

    name: ClassVar[str] = "ridge by products"
    rough: ClassVar[bool] = False

    def __str__(self) -> str:
        how = f"λ = {self.reg:.3g} and a prior of power {self.power:g}"
        return f"ridge by conjugate gradients with {how}"

    def fit(self, rows: SomeRows, limits: Limits) -> tuple[LowRank, list[Unseen]]:
        """The model of these scaled rows, and those of all but each fold of them."""
        dealt = Dealt.of(rows)
        W = self._solved(rows)
        held: list[Unseen] = [
            (k, Weights(self._solved(dealt.rest(k, FOLDS)))) for k in range(FOLDS)
        ]
        return LowRank(rows.to_host(W)), held

    def _solved(self, rows: SomeRows) -> Array:
        return self._of(Products(weighed(rows.blocks, self.weight), **_CG), rows)

    def _of(self, products: Products, rows: SomeRows, start: Array | None = None) -> Array:
        if not self.power:
            return products.regress(products.xy, self.reg, start)
        like = rows.backend.asarray(np.zeros(1, rows.dtype)).dtype
        W = products.regress_with_prior(products.xy, self.reg)
        return array_namespace(W).astype(W, like)

    @classmethod
    def choose(
        cls, rows: SomeRows, judged: Blocks, weight: float, limits: Limits
    ) -> tuple[float, ByProducts]:
        """One λ without the prior, by one fold of five, for all until the lead is `refined`."""
        lead = cls(LADDER[START], 0.0, weight)
        return lead._tried(rows, limits)(START), lead

    def refined(self, rows: SomeRows, judged: Blocks, limits: Limits) -> ByProducts:
        """With the λ and p that rank the rows of that fold best."""
        best, step = (-1.0, self), START
        for power in _POWERS:
            at = replace(self, power=power)._tried(rows, limits)
            found, step = climbed(at, step)
            if found > best[0]:
                best = found, replace(self, reg=LADDER[step], power=power)
        return best[1]

    def _tried(self, rows: SomeRows, limits: Limits) -> Callable[[int], float]:
        """The mean gain of a fold, at a step of the ladder of λ; each starts from the last."""
        dealt = Dealt.of(rows)
        rest, judged = dealt.rest(0, 5), dealt.fold(0, 5, limits.choosing_rows).blocks
        products = Products(weighed(rest.blocks, self.weight), **_CG)
        last: list[Any] = [None]

        def at(step: int) -> float:
            last[0] = replace(self, reg=LADDER[step])._of(products, rest, last[0])
            return mean_gain(judged, Weights(last[0]))

        return at


@dataclass(frozen=True)
class Weights:
    """The scores XW."""

    W: Any

    def scores(self, b: Block) -> Array:
        return b.project(self.W)


def mean_gain(rows: Any, scorer: Any) -> float:
    """The mean gain of these rows."""
    total, n = rows.sum(_gained, scorer)
    return float(total) / max(n, 1)


def _gained(b: Block, scorer: Any) -> tuple[float, int]:
    return float(np.sum(gain_of_scores(b, scorer.scores(b)))), b.Y.shape[0]
