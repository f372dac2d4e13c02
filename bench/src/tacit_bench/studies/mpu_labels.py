"""What each level of MPU brings where labels are many, half or most of them hidden.

Labels are hidden as on the board `tacit bench missing`, which has MPU as a whole. Here its levels
stand apart, beside logistic regression by the same passes ("BR, SGD") and two methods of rank 100.
Each has one setting, and nothing is tuned. R@20 is the recall of what was hidden among the first
twenty completions of a row, over some of the training rows; the rest is of test rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit import LEML, MPU, GenEML
from tacit.metrics import recall_at_k
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import percent, prepared

__all__ = ["STUDY"]

COMPLETED = 4_000  # rows whose hidden labels are looked for
PASSES = {"yso_finna_en": 5}  # of MPU and BR, SGD; of other data ten
MODELS: dict[str, Any] = {
    "MPU": MPU(3, rate=0.3),
    "MPU, two levels": MPU(2, rate=0.3),
    "MPU, base level": MPU(1, rate=0.3),
    "BR, SGD": MPU(1, c=1.0, rate=0.3),
    "GenEML": GenEML(100, max_iter=5, tol=0),
    "LEML": LEML(100, reg=0.1, max_iter=3),
}
ASKED = (
    ("yso_finna_en", (0.5, 0.8), tuple(MODELS)[1:]),
    ("eurlex57k", (0.5,), ("MPU", "MPU, base level", "BR, SGD")),
)


def cells() -> list[Cell]:
    return [
        {"data": data, "rate": rate, "model": model}
        for data, rates, models in ASKED
        for rate in rates
        for model in models
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Fit to what is still said, complete it, and rank the labels of the test rows."""
    work = prepared(cell | {"mechanism": "positives", "seed": 0})
    model = clone(MODELS[cell["model"]]).set_params(device=device, random_state=0)
    if isinstance(model, MPU):
        model.set_params(max_iter=PASSES.get(cell["data"], 10))
    start = time.perf_counter()
    model.fit(work.X, work.said.as_positive_only())
    seconds = time.perf_counter() - start
    some = np.random.default_rng(0).permutation(len(work.said))[:COMPLETED]
    completed = model.complete(work.X[some], work.said[some], 20).by_row(len(some), 20)
    recall = percent(recall_at_k(work.hidden[some], completed, 20))
    figures = work.figures(model.top_k(work.X_test, 5))
    return {"fit s": round(seconds, 1)} | figures | {"R@20": recall}


STUDY = Study(
    "mpu_labels",
    "What does each level of MPU bring where labels are many and most are hidden?",
    cells,
    measure,
    tiny=[
        {"data": "random", "rate": 0.5, "model": "MPU, two levels"},
        {"data": "random", "rate": 0.5, "model": "LEML"},
    ],
)
