"""Every method on a GPU and on the CPU: the difference of scores, and of the last objective.

Scores are compared on the first 200 rows: the largest difference, in units of the standard
deviation of the CPU's. On the small data LEML solves to a tight tolerance, or conjugate gradients
would stop at a different step; at a fiftieth of Wikipedia's shape the settings are the defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit_bench.board import Cell
from tacit_bench.gpu import METHODS, drawn, method, on_pytorch
from tacit_bench.study import Study

__all__ = ["STUDY"]

SCORED = 200
TIGHT = {"cg_tol": 1e-6, "cg_max_iter": 300}


def cells() -> list[Cell]:
    settings = {name: TIGHT if name == "LEML" else {} for name in METHODS}
    return [
        *(_cell("small", name, 3, settings[name]) for name in METHODS),
        _cell("Wikipedia / 50", "LEML", 5, {"rank": 500}),
    ]


def _cell(shape: str, name: str, passes: int, settings: dict[str, float]) -> Cell:
    return {"shape": shape, "method": name, "passes": passes, "settings": settings}


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """How far the device is from NumPy."""
    X, Y = drawn(cell["shape"])
    ours, theirs = (
        method(cell["method"], where, cell["passes"], **cell["settings"]).fit(X, Y)
        for where in ("cpu", on_pytorch(device))
    )
    scores, others = (model.decision_function(X[:SCORED]) for model in (ours, theirs))
    found = {"difference of scores": float(np.abs(scores - others).max() / scores.std())}
    if ours.history_:
        cpu, other = ours.history_[-1], theirs.history_[-1]
        found |= {"objective": cpu, "difference of objectives": abs(cpu - other) / abs(cpu)}
    return found | {"device": theirs.device}


STUDY = Study(
    "gpu_parity",
    "How far are the scores of each method on a GPU from those on the CPU?",
    cells,
    measure,
    tiny=[
        _cell("tiny", "SEM", 2, {"rank": 20}),
        _cell("tiny", "FaIE", 1, {"rank": 20}),
    ],
)
