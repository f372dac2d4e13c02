"""Ridge regression by conjugate gradients, where rows and features are too many for a factor.

    W = (XᵀX + λI)⁻¹ XᵀY,                                                                       (1)

for all labels at once, by passes over the rows (`tacit.engines.moments.Products`). The model that
has not seen a row is that of the other folds of three. λ is the one whose model of four fifths of
the rows ranks the rest best.

**Cost**: some 25 products of X with as many columns as there are labels, for each of four models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.engines.moments import Products
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first.ridge import LADDER, START, Unseen, climbed
from tacit.methods.tacit.judge import gain_of_scores
from tacit.methods.tacit.limits import Limits
from tacit.models import LowRank

__all__ = ["ByProducts"]

FOLDS = 3
_CG: dict[str, Any] = dict(rtol=1e-2, max_iter=25)


@dataclass(frozen=True)
class ByProducts:
    """(1) with its λ chosen."""

    reg: float

    name: ClassVar[str] = "ridge by products"
    rough: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"ridge by conjugate gradients with λ = {self.reg:.3g}"

    def fit(self, rows: SomeRows, limits: Limits) -> tuple[LowRank, list[Unseen]]:
        """The model of these scaled rows, and those of all but each fold of them."""
        dealt = Dealt.of(rows)
        W = self._solved(rows)
        held: list[Unseen] = [
            (k, Weights(self._solved(dealt.rest(k, FOLDS)))) for k in range(FOLDS)
        ]
        return LowRank(rows.to_host(W)), held

    def _solved(self, rows: SomeRows) -> Array:
        products = Products(rows.blocks, **_CG)
        return products.regress(products.xy, self.reg)

    @classmethod
    def choose(cls, rows: SomeRows, limits: Limits) -> tuple[float, ByProducts]:
        """λ by one fold of five."""
        dealt = Dealt.of(rows)
        rest = Products(dealt.rest(0, 5).blocks, **_CG)
        judged, last = dealt.fold(0, 5, limits.choosing_rows).blocks, [None]

        def at(step: int) -> float:
            last[0] = rest.regress(rest.xy, LADDER[step], last[0])
            return mean_gain(judged, Weights(last[0]))

        found, step = climbed(at, START)
        return found, cls(LADDER[step])


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
