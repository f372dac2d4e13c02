"""A pass of GenEML and of SEM against the matrix products that it cannot do without.

Codes (rows × rank) and labels (labels × rank) meet in three products of a batch of rows: the scores
U Vᵀ, and R V and RᵀU of their slopes R. A pass of GenEML's batch EM has `STEPS` + 1 evaluations for
codes and as many for labels, two products each; one of SEM has three products, or U Vᵀ three times
where W, V and b are updated in turn. The limit is the rate at which the three products run alone on
the same shapes. Of a data set the first 50,000 rows are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit import GenEML
from tacit.backends import get_backend
from tacit.methods.geneml.em import STEPS
from tacit.methods.sem import SEM
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import TimedRun, passes_timed, rates
from tacit_bench.work import loaded

__all__ = ["STUDY"]

ROWS = 50_000
PASSES = 3
REPEATS = 20  # of the products in one timed run
ENTRIES = 2**22  # of the scores that GenEML has at a time


class Pass(NamedTuple):
    model: Any
    products: int


METHODS = {
    "GenEML": Pass(GenEML(), 2 * 2 * (STEPS + 1)),
    "SEM, one-pass": Pass(SEM(updates="one-pass"), 3),
    "SEM, gauss-seidel": Pass(SEM(updates="gauss-seidel"), 5),
}


def cells() -> list[Cell]:
    each = {
        "eurlex57k": METHODS,
        "yso_finna_en": ("SEM, one-pass", "SEM, gauss-seidel"),
    }
    return [
        {"data": data, "method": method, "rank": 100}
        for data, methods in each.items()
        for method in methods
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Seconds of the quickest pass, its rate, and the share of the limit."""
    data: Any = loaded(cell["data"])
    model, products = METHODS[cell["method"]]
    model.set_params(rank=cell["rank"], max_iter=PASSES, random_state=0, device=device)
    X, Y = data.X[:ROWS], data.Y[:ROWS]
    if isinstance(model, GenEML):
        Y, batch = Y.as_positive_only(), ENTRIES // Y.n_labels
    else:
        batch = model.batch_size
    shape = min(batch, len(Y)), Y.n_labels, cell["rank"]
    before = _limit(*shape, device)
    seconds = min(passes_timed(model, X, Y))
    limit = max(before, _limit(*shape, device))
    gflop = products * 2.0 * len(Y) * Y.n_labels * cell["rank"] / 1e9
    return {
        "epoch s": round(seconds, 2),
        "GFLOP": round(gflop, 1),
        "GFLOP/s": round(gflop / seconds, 1),
        "GEMM GFLOP/s": round(limit, 1),
        "share": round(gflop / seconds / limit, 3),
    }


def _limit(rows: int, n_labels: int, rank: int, device: str) -> float:
    """The rate of the three products."""
    backend, rng = get_backend(device), np.random.default_rng(0)
    shapes = (rows, rank), (n_labels, rank), (rows, n_labels)
    U, V, R = (backend.asarray(rng.random(shape, np.float32)) for shape in shapes)

    def products() -> None:
        for _ in range(REPEATS):
            last = (U @ V.T, R @ V, R.T @ U)
        float(last[-1][0, 0])  # waits for a GPU

    amount = REPEATS * 3 * 2.0 * rows * n_labels * rank
    return rates({"limit": TimedRun(products, amount, "GFLOP/s")})["limit"]


STUDY = Study(
    "epoch_rate",
    "What share of the rate of its matrix products does a pass of GenEML and of SEM reach?",
    cells,
    measure,
    tiny=[{"data": "random", "method": method, "rank": 5} for method in METHODS],
)
