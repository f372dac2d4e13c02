"""What each part of `Tacit` brings: precision with all of them, and with each left out.

Labels are hidden as on the board `tacit bench missing`, and test labels are complete; data that
come without test rows are split. A part that is left out stands in the plan as not tried, so all
that follows is chosen without it. The parts that stayed in the blend are in the cell.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tacit import Tacit
from tacit.engines.problem import Problem
from tacit.methods.tacit.plan import Plan
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import percent, prepared

__all__ = ["STUDY"]

BESIDE = ("second look", "nearest rows", "network")  # the first model
NOTHING = "nothing"
LEFT_OUT = {NOTHING: (), **{name: (name,) for name in BESIDE}, "all but the first": BESIDE}


class Without(Tacit):
    """`Tacit` with some parts left out of its plan; it has no parameter for that."""

    left_out: tuple[str, ...] = ()

    def _planned(self, problem: Problem) -> Plan:
        plan, why_not = super()._planned(problem), "this study leaves it out"
        without = [
            replace(part, why_not=why_not) if part.name in self.left_out else part
            for part in plan.parts
        ]
        return replace(plan, parts=tuple(without))


def cells() -> list[Cell]:
    asked = product(("bibtex", "delicious", "mediamill", "eurlex57k"), (0.0, 0.8), LEFT_OUT)
    return [_cell(*each) for each in asked]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Fit without what the cell leaves out, and rank the labels of the test rows."""
    work = prepared(cell | {"mechanism": "positives"})
    model = Without(device=device, random_state=0)
    model.left_out = LEFT_OUT[cell["left out"]]
    start = time.perf_counter()
    model.fit(work.X[: cell["rows"]], work.said[: cell["rows"]])
    seconds = time.perf_counter() - start
    found = np.atleast_1d(precision_at_k(work.Y_test, model.top_k(work.X_test, 5), (1, 3, 5)))
    figures = {f"P@{k}": percent(p) for k, p in zip((1, 3, 5), found)}
    return figures | {"fit s": round(seconds, 1), "blend": ", ".join(model.model_.blend.names)}


def _cell(data: str, rate: float, left_out: str, rows: int | None = None, seed: int = 0) -> Cell:
    """`rows` are the training rows that are used; None is all."""
    return {"data": data, "rate": rate, "seed": seed, "left out": left_out, "rows": rows}


STUDY = Study(
    "tacit_parts",
    "What does each part of Tacit bring?",
    cells,
    measure,
    tiny=[_cell("debian", 0.5, left_out, rows=600) for left_out in (NOTHING, "network")],
)
