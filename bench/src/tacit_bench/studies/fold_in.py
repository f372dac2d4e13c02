"""Completion by the features of a row alone, and with what was said of it folded into its code.

The labels to be found are those that were really added later, as on `tacit bench missing`; of other
data, half of the positives are hidden at random.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from tacit import LEML, GenEML
from tacit.labels import Labels
from tacit.metrics import recall_at_k
from tacit.missing import Positives, hide
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]

MODELS = {
    "GenEML": GenEML(max_iter=5, random_state=0),
    "LEML": LEML(random_state=0),  # five passes too
}


def cells() -> list[Cell]:
    return [
        {"data": data, "method": method, "rank": 100}
        for data in ("debtags", "go_human")
        for method in MODELS
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Recall@20 of the added labels, in %."""
    X, said, added = _said_and_added(cell["data"])
    model = MODELS[cell["method"]].set_params(rank=cell["rank"], device=device).fit(X, said)
    found = {}
    for how, folded in (("features", False), ("fold-in", True)):
        best = model.complete(X, said, 20, fold_in=folded).by_row(len(said), 20)
        found[f"{how}, R@20 (%)"] = percent(recall_at_k(added, best, 20))
    return found


def _said_and_added(name: str) -> tuple[Any, Labels, sp.csr_array]:
    """Features, the labels that were said at first, and those that came later."""
    data: Any = loaded(name)
    X, Y = data.X, data.Y
    if "Y_2022" in data.extra:
        old, new = Y, data.extra["Y_2022"]
    elif "in_bullseye" in data.extra:
        kept = data.extra["in_bullseye"] == "1"
        X, old, new = X[kept], data.extra["Y_bullseye"][kept], Y[kept]
    else:
        old, new = hide(Y, Positives(0.5), random_state=0).labels, Y
    return X, old.as_positive_only(), sp.csr_array(new.positives > old.positives)


STUDY = Study(
    "fold_in",
    "Does what was already said of a row help to find what else is true of it?",
    cells,
    measure,
    tiny=[{"data": "random", "method": method, "rank": 5} for method in MODELS],
)
