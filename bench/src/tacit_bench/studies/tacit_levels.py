"""What each level of `Tacit` brings: precision with what comes after it switched off.

Labels are hidden as on the board `tacit bench missing`, and test labels are complete.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

import tacit.methods.tacit as module
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import percent, prepared

__all__ = ["STUDY"]

STAGES = {  # the highest level, and whether products are tried
    "ridge": (0, False),
    "and labels for each other": (1, False),
    "and products": (1, True),
    "and imputation": (2, True),
    "and a second look": (3, True),
}


def cells() -> list[Cell]:
    asked = [*product(("bibtex", "delicious", "mediamill"), (0.8,), STAGES)]
    asked += [*product(("bibtex", "delicious"), (0.0,), ("and imputation",))]
    return [{"data": data, "rate": rate, "stage": stage} for data, rate, stage in asked]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Fit up to the stage of the cell, and rank the labels of the test rows."""
    work = prepared(cell | {"mechanism": "positives", "seed": 0})
    levels, products = STAGES[cell["stage"]]
    model = module.Tacit(levels=levels, device=device, random_state=0)  # type: ignore[arg-type]
    start = time.perf_counter()
    # Products belong to all levels, and have no parameter of their own.
    with patch.object(module, "_PRODUCTS", module._PRODUCTS if products else 0):
        model.fit(work.X, work.said)
    seconds = time.perf_counter() - start
    found = np.atleast_1d(precision_at_k(work.Y_test, model.top_k(work.X_test, 5), (1, 3, 5)))
    figures = {f"P@{k}": percent(p) for k, p in zip((1, 3, 5), found)}
    return figures | {"fit s": round(seconds, 1)}


STUDY = Study(
    "tacit_levels",
    "What does each level of Tacit bring?",
    cells,
    measure,
    tiny=[{"data": "random", "rate": 0.5, "stage": "ridge"}],
)
