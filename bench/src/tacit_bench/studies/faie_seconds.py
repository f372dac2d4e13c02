"""FaIE's table 6: seconds to find codes, and seconds of the regression from features to them.

Codes a tenth as long as there are labels, of 4,000 rows of delicious chosen as on the papers board.
Those of codes include the pass over the rows that makes the Gram triple. The published seconds are
Matlab's on an Intel Xeon E5620.
"""

from __future__ import annotations

import time
from typing import Any

from tacit import FaIE
from tacit.baselines import LabelSpaceReduction, Ridge
from tacit.codecs import CodecData
from tacit_bench.board import Cell
from tacit_bench.boards.papers.compare import published
from tacit_bench.boards.papers.splits import Split, some_in_folds
from tacit_bench.study import Study

__all__ = ["STUDY"]

PLAIN: dict[str, Any] = {"normalize": None, "reg": 1e-3}
METHODS: dict[str, Any] = {
    "BR (L-RR)": Ridge(**PLAIN),
    "CS": LabelSpaceReduction("cs", random_state=0, **PLAIN),
    "PLST": LabelSpaceReduction("plst", **PLAIN),
    "CPLST": LabelSpaceReduction("cplst", **PLAIN),
    "MLC-BMaD": LabelSpaceReduction("bmad", tau=0.5, **PLAIN),
    "ML-CSSP": LabelSpaceReduction("cssp", random_state=0, **PLAIN),
    "FaIE": FaIE(alpha=1000.0, **PLAIN),
}


def cells() -> list[Cell]:
    return [{"data": "delicious", "k / L": 0.1, "method": method} for method in METHODS]


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds of codes and of the predictor, and those that were published."""
    split, model = next(some_in_folds(cell)), METHODS[cell["method"]]
    rank = int(cell["k / L"] * split.Y.n_labels)
    if not isinstance(model, Ridge):
        model.set_params(rank=rank)
    for _ in range(2):  # the first compiles
        codes, predictor = _seconds(model, split)
    return {
        "codes": round(codes, 3),
        "predictor": round(predictor, 3),
        **_published(cell["data"], cell["method"]),
        "n": len(split.Y),
        "rank": rank,
    }


def _seconds(model: Any, split: Split) -> tuple[float, float]:
    if isinstance(model, Ridge):  # no codes
        start = time.perf_counter()
        model.fit(split.X, split.Y)
        return 0.0, time.perf_counter() - start
    problem = model._problem(*model._rows(split.X, split.Y))
    start = time.perf_counter()
    rows = CodecData.of(problem, model.fit_intercept)
    code = model._codec.learn(rows, model.rank, model.reg)
    middle = time.perf_counter()
    code.weights(rows, model.reg)
    return middle - start, time.perf_counter() - middle


def _published(data: str, method: str) -> dict[str, float]:
    wanted = {"paper": "FaIE", "table": "6", "data": data, "method": method}
    for row in published():
        if wanted.items() <= row.items():
            values = row["values"]
            return {
                "published codes": values["LSDR time (s)"],
                "published predictor": values["predictor training time (s)"],
            }
    return {}


STUDY = Study(
    "faie_seconds",
    "How many seconds do codes of the labels take, and how many their predictor (FaIE's table 6)?",
    cells,
    measure,
    tiny=[{"data": "random", "k / L": 0.5, "method": method} for method in METHODS],
)
