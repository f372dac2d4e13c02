"""MPU's two solvers on data of few features: the objective they reach, and in how many seconds.

One level with c = 0.5 known, so that J is that of all trainings alike:

    J(W) = Σ -log P(said or not | x) + ½ λ ‖W‖²,    P(said | x) = c σ(f).

AdaGrad ("sgd") takes the passes it is given, at a rate of 0.3; Newton's method at most as many,
until J is settled.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import expit

from tacit import MPU
from tacit_bench.board import Cell
from tacit_bench.own import with_test_rows
from tacit_bench.study import Study
from tacit_bench.work import loaded

__all__ = ["STUDY"]

PASSES = {"sgd": (1, 3, 10, 30, 100), "newton": (1, 2, 4, 20)}
RATE, C, REG = 0.3, 0.5, 0.1


def cells() -> list[Cell]:
    return [
        {"data": "bibtex", "solver": solver, "max_iter": max_iter}
        for solver, most in PASSES.items()
        for max_iter in most
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Fit, and work out J of what came of it."""
    data: Any = with_test_rows(loaded(cell["data"]))
    labels = data.Y.as_positive_only()
    model = MPU(1, c=C, reg=REG, rate=RATE, tol=1e-7, device=device, random_state=0)
    model.set_params(solver=cell["solver"], max_iter=1)
    model.fit(data.X, labels)  # compiles
    model.set_params(max_iter=cell["max_iter"])
    start = time.perf_counter()
    model.fit(data.X, labels)
    seconds = time.perf_counter() - start
    p = C * expit(model.decision_function(data.X).astype(float))
    said = labels.positives.toarray() > 0
    J = -np.sum(np.where(said, np.log(p), np.log1p(-p)))
    J += REG / 2 * np.sum(model.model_.W.astype(float) ** 2)
    return {
        "passes": len(model.history_),
        "s": round(seconds, 2),
        "J": round(float(J), 1),
        "nDCG@5": round(model.score(data.X_test, data.Y_test), 4),
    }


STUDY = Study(
    "mpu_solvers",
    "Which of MPU's solvers lowers J sooner where features are few?",
    cells,
    measure,
    tiny=[
        {"data": "random", "solver": "sgd", "max_iter": 10},
        {"data": "random", "solver": "newton", "max_iter": 10},
    ],
)
