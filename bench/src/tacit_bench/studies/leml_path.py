"""What `LEML(reg="auto")` pays for choosing: ten λs on five folds, in units of one cold fit.

Both run in one process on the same data: fits at one λ each, from the start to convergence, and
the choice that `reg="auto"` makes before its own fit.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tacit import LEML
from tacit.methods.leml.path import choose
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.own import with_test_rows
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]

COLD = (0.3, 3.0, 10.0)


def cells() -> list[Cell]:
    data = ("debian", "exact"), ("debian", "cg"), ("delicious", "auto")
    return [{"data": name, "rank": 100, "solver": solver} for name, solver in data]


def measure(cell: Cell) -> dict[str, Any]:
    """Time the cold fits and the choice."""
    data: Any = with_test_rows(loaded(cell["data"]))
    X, Y = data.X, data.Y.as_complete()
    settings = {"rank": cell["rank"], "solver": cell["solver"], "max_iter": 20, "random_state": 0}
    LEML(**settings | {"max_iter": 1}).fit(X[:500], Y[:500])  # compiles
    colds = [_seconds(lambda reg=reg: LEML(reg=reg, **settings).fit(X, Y)) for reg in COLD]
    model = LEML(reg="auto", **settings)
    chosen: list[tuple[int, float]] = []

    def choosing() -> None:
        problem = model._problem(*model._rows(X, Y))
        chosen.append(choose(model._minimiser, problem, *model._grid(None, None)))

    seconds = _seconds(choosing)
    [(_, reg)] = chosen
    top = LEML(reg=reg, **settings).fit(X, Y).top_k(data.X_test, 5)
    found = np.atleast_1d(precision_at_k(data.Y_test, top, (1, 3, 5)))
    return {
        "a cold fit s": round(float(np.mean(colds)), 2),
        "ten λs, five folds s": round(seconds, 2),
        "in cold fits": round(seconds / float(np.mean(colds)), 2),
        "chosen λ": reg,
    } | {f"P@{k}": percent(p) for k, p in zip((1, 3, 5), found)}


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


STUDY = Study(
    "leml_path",
    "What does it cost to try ten λs of LEML on five folds, in fits at a single one?",
    cells,
    measure,
    tiny=[{"data": "random", "rank": 5, "solver": "exact"}],
)
