"""Labels hidden on purpose: method × data set × mechanism × rate, on complete test labels.

Each method chooses among its settings on held-out training rows (`work.py`) and is then fitted on
all of them. R@20 hidden is the mean share of a row's hidden labels that are among its 20 best
completions; calibration is the error of the probabilities of the five best labels of test rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tacit.cli.inputs import is_table
from tacit.estimators import Completion
from tacit.labels import TopK
from tacit.metrics import calibration_error, precision_at_k, recall_at_k
from tacit_bench.board import Cell, Row, Skip, tell_skipped
from tacit_bench.contenders import CONTENDERS, Contender, check_contenders, contender
from tacit_bench.own import NoProbabilities
from tacit_bench.study import Study
from tacit_bench.work import Work, percent, prepared

__all__ = ["DATA", "RATES", "best_single", "cells", "measure", "show"]

DATA = ("bibtex", "delicious", "mediamill", "rcv1sub1", "rcv1sub2", "eurlex57k", "yso_finna_en")
RATES = (0.0, 0.2, 0.5, 0.8)
OBSERVED = 0.2
COMPLETED_ROWS = 4_000
CALIBRATED_ENTRIES = 2 * 10**7
WAYS = {"positives": "of the positives hidden", "entries": "of the entries observed"}
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@3", "R@20 hidden", "calibration", "fit s", "peak GiB")


def cells(
    data: Sequence[str] = DATA,
    rates: Sequence[float] = RATES,
    methods: Sequence[str] = tuple(CONTENDERS),
    seeds: int = 1,
    columns: dict[str, Any] | None = None,
) -> list[Cell]:
    """Positives hidden at each rate, and a fifth of all entries observed; methods fastest.

    `data` are names of data sets or paths, `methods` names of `CONTENDERS` or what
    `package.module:Class` names, and `columns` says what the tables among the data hold (`own.py`).
    """
    check_contenders(methods)
    told = {name: value for name, value in (columns or {}).items() if value}
    of = {name: {"columns": told} if is_table(name) else {} for name in data}
    ways = [*(("positives", rate) for rate in rates), ("entries", OBSERVED)]
    return [
        {"data": name, "mechanism": how, "rate": rate, "method": method, "seed": seed} | of[name]
        for seed, name, (how, rate), method in product(range(seeds), data, ways, methods)
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    method, work = contender(cell["method"]), prepared(cell)
    method.check(work.said)
    try:
        return _measured(method, work, device)
    except ValueError as refusal:  # such as: masked labels, which this method has no use for
        raise Skip(str(refusal)) from None


def _measured(method: Contender, work: Work, device: str) -> dict[str, Any]:
    labels = method.read(work.said)
    start = time.perf_counter()
    chosen = method.choose(lambda settings: _held_out(method.model(settings, device), work, labels))
    tuned = time.perf_counter()
    model = method.model(chosen["settings"], device).fit(work.X, labels)
    fitted = time.perf_counter()
    top = model.top_k(work.X_test, 5)
    predicted = time.perf_counter()
    return {
        **work.figures(top),
        "R@20 hidden": _recall(model, work) if work.hidden.nnz else None,
        "calibration": _calibration(model, work),
        **chosen,
        "tuning s": round(tuned - start, 2),
        "fit s": round(fitted - tuned, 2),
        "predict s": round(predicted - fitted, 2),
        "device": device,
    }


def _held_out(model: Any, work: Work, labels: Any) -> float:
    model.fit(work.X[work.fitted], labels[work.fitted])
    top = model.top_k(work.X[work.held], min(3, labels.n_labels))
    return percent(precision_at_k(work.said[work.held], top, 3))


def _recall(model: Any, work: Work) -> float:
    """Mean share of a row's hidden positives that are among its 20 best completions, in %."""
    rows = np.random.default_rng(0).permutation(len(work.said))[:COMPLETED_ROWS]
    found: Completion = model.complete(work.X[rows], work.said[rows], 20)
    return percent(recall_at_k(work.hidden[rows], found.by_row(len(rows), 20), 20))


def _calibration(model: Any, work: Work) -> float | None:
    """The calibration error of the five most probable labels of some test rows, in %."""
    rows = slice(CALIBRATED_ENTRIES // work.said.n_labels)
    try:
        probability = model.predict_proba(work.X_test[rows])
    except NoProbabilities:
        return None
    best = np.argsort(-probability, axis=1)[:, :5]
    top = TopK(best, np.take_along_axis(probability, best, axis=1))
    return percent(calibration_error(work.Y_test[rows], top))


def best_single(rows: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """The setting of each method that does best over all its cells: what its defaults should be.

    A setting's figure in a cell is its P@3 on the held-out rows over that of the best setting
    there, so that every cell counts alike; the largest mean wins, the first of equals.
    """
    tried: dict[str, list[np.ndarray]] = {}
    for row in rows:
        figures = row.get("found", {}).get("tried")
        if figures:
            tried.setdefault(row["cell"]["method"], []).append(np.array(figures) / max(figures))
    return {
        method: CONTENDERS[method].settings[int(np.argmax(np.mean(shares, axis=0)))]
        for method, shares in tried.items()
    }


def show(rows: Iterable[Row], console: Console) -> None:
    """A table for each data set, mechanism and rate, best P@3 first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        cell = row["cell"]
        title = f"{cell['data']}: {cell['rate']:.0%} {WAYS[cell['mechanism']]}"
        groups.setdefault(title, []).append(row)
    for title, group in groups.items():
        table = Table("method", *SHOWN, title=title, box=None)
        found = [row for row in group if "found" in row]
        for row in sorted(found, key=lambda row: -row["found"]["P@3"]):
            values = (row["found"].get(name) for name in SHOWN)
            written = ("–" if value is None else f"{value:.1f}" for value in values)
            table.add_row(row["cell"]["method"].rpartition(":")[2], *written)  # the class alone
        console.print(table)
        tell_skipped(group, console)


STUDY = Study(
    "missing",
    "Who finds the labels that were hidden?",
    cells,
    measure,
    tiny=cells(["debian"], [0.5], ["Popularity"])[:1],
    show=show,
)
