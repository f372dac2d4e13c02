"""Labels that were really missing: what was added later, what was measured, what was drawn by lot.

- *Completions*, debtags (tags since added to packages) and go_human (terms since found of genes):
  models learn the old labels and rank what these leave unsaid. Settings are judged by recall@20 of
  a fifth of the old positives, hidden from the model.
- *Cells*, toxcast and tox21: a random fifth of the measured cells is held out. Settings are judged
  by the AUC per label on a fifth of the others.
- *Lots*, coat: models see the yeses among coats that people chose to rate, and are scored on what
  they said of coats drawn for them. Settings are judged by P@3 of the yeses of held-out people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from tacit.estimators import Completion
from tacit.labels import Labels
from tacit.metrics import auc_per_instance, auc_per_label, ndcg_at_k, precision_at_k, recall_at_k
from tacit.missing import Positives, hide
from tacit_bench.board import Cell, Row, Skip, tell_skipped
from tacit_bench.contenders import CONTENDERS, Contender, check_contenders, contender
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["DATA", "cells", "measure", "show"]

Figures = dict[str, Any]
Fit = Callable[[dict[str, Any], Any, Labels], Any]  # settings, features and labels to a model

HELD_SHARE = 0.2
JUDGED_ROWS = 4_000  # whose hidden labels choose the settings of a completion
COMPLETIONS = 100  # a row, that are ranked
FIRST = (1_000, 10_000)  # completions whose precision is reported


def cells(data: Sequence[str], methods: Sequence[str] = tuple(CONTENDERS)) -> list[Cell]:
    """Each data set with each method."""
    check_contenders(methods)
    return [{"data": name, "method": method} for name, method in product(data, methods)]


def measure(cell: Cell, device: str = "cpu") -> Figures:
    method, data = contender(cell["method"]), loaded(cell["data"])
    method.check(data.Y)
    seconds: list[float] = []

    def fit(settings: dict[str, Any], X: Any, labels: Labels) -> Any:
        start = time.perf_counter()
        model = method.model(settings, device).fit(X, method.read(labels))
        seconds.append(time.perf_counter() - start)
        return model

    try:
        found = DATA[cell["data"]](method, data, fit)
    except ValueError as refusal:  # such as: a Gram matrix that would be too large
        raise Skip(str(refusal)) from None
    return found | {"fit s": round(seconds[-1], 2), "device": device}


def _added_later(method: Contender, data: Any, fit: Fit) -> Figures:
    X, old, new = data.X, data.Y, data.extra.get("Y_2022")
    if new is None:
        kept = data.extra["in_bullseye"] == "1"
        X, old, new = data.X[kept], data.extra["Y_bullseye"][kept], data.Y[kept]
    old = old.as_positive_only()
    left, hidden = hide(old, Positives(HELD_SHARE), random_state=0)
    rows = np.random.default_rng(0).permutation(len(left))[:JUDGED_ROWS]

    def judge(settings: dict[str, Any]) -> float:
        found = fit(settings, X, left).complete(X[rows], left[rows], 20)
        return _completed(found, hidden[rows])["R@20"]

    chosen = method.choose(judge)
    found = fit(chosen["settings"], X, old).complete(X, old, COMPLETIONS)
    return _completed(found, sp.csr_array(new.positives > old.positives)) | chosen


def _completed(found: Completion, added: sp.csr_array) -> Figures:
    """Precision of the best completions of all, and recall of the best 20 of a row that gained."""
    hit = np.asarray(added[found.row, found.label]).ravel()
    figures: Figures = {f"P of first {n:,}": percent(hit[:n].mean()) for n in FIRST}
    return figures | {"R@20": percent(recall_at_k(added, found.by_row(added.shape[0], 20), 20))}


def _measured_cells(method: Contender, data: Any, fit: Fit) -> Figures:
    train, test = _cut(data.Y, seed=0)
    less, held = _cut(train, seed=1)
    judge = lambda settings: percent(
        auc_per_label(held, fit(settings, data.X, less).decision_function(data.X))
    )
    chosen = method.choose(judge)
    model = fit(chosen["settings"], data.X, train)
    truth, scores = _at(test, model.decision_function(data.X))
    figures = {
        "AUC per label": percent(auc_per_label(test, model.decision_function(data.X))),
        "AUC": percent(roc_auc_score(truth, scores)),
        "log-loss": _log_loss(test, model.predict_proba(data.X)),
    }
    return figures | chosen


def _cut(labels: Labels, seed: int) -> tuple[Labels, Labels]:
    """The observed cells without a random fifth of them, and that fifth."""
    seen = sp.coo_array(labels.said())
    held = np.random.default_rng(seed).random(seen.nnz) < HELD_SHARE

    def only(kept: np.ndarray) -> Labels:
        where = (seen.row[kept], seen.col[kept])
        observed = sp.csr_array((np.ones(kept.sum(), bool), where), shape=labels.shape)
        return Labels.masked(sp.csr_array(labels.positives.multiply(observed)), observed)

    return only(~held), only(held)


def _drawn_by_lot(method: Contender, data: Any, fit: Fit) -> Figures:
    said = data.Y.as_positive_only()
    fitted, held = train_test_split(np.arange(len(said)), test_size=HELD_SHARE, random_state=0)

    def judge(settings: dict[str, Any]) -> float:
        model = fit(settings, data.X[fitted], said[fitted])
        return percent(precision_at_k(said[held], model.top_k(data.X[held], 3), 3))

    chosen = method.choose(judge)
    model = fit(chosen["settings"], data.X, said)
    scores = model.decision_function(data.X)
    figures = {
        "AUC": percent(roc_auc_score(*_at(data.Y_test, scores))),
        "AUC by person": percent(auc_per_instance(data.Y_test, scores)),
        "nDCG@5": percent(ndcg_at_k(data.Y_test, scores, 5)),
        "log-loss": _log_loss(data.Y_test, model.predict_proba(data.X)),
    }
    return figures | chosen


def _at(labels: Labels, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Truth and scores of the observed cells."""
    where = sp.coo_array(labels.said()).nonzero()
    return np.asarray(labels.positives[where]).ravel(), scores[where]


def _log_loss(labels: Labels, probability: np.ndarray) -> float:
    return round(float(log_loss(*_at(labels, probability.astype(np.float64)))), 4)


DATA: dict[str, Callable[[Contender, Any, Fit], Figures]] = {
    "debtags": _added_later,
    "go_human": _added_later,
    "toxcast": _measured_cells,
    "tox21": _measured_cells,
    "coat": _drawn_by_lot,
}


def show(rows: Iterable[Row], console: Console) -> None:
    """A table a data set, in the order of its first figure."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["cell"]["data"], []).append(row)
    for name, group in groups.items():
        found = [row for row in group if "found" in row]
        columns = [
            figure
            for figure, value in (found[0]["found"].items() if found else ())
            if isinstance(value, int | float)
        ]
        table = Table("method", *columns, title=name, box=None)
        for row in sorted(found, key=lambda row: -row["found"][columns[0]]):
            name = row["cell"]["method"].rpartition(":")[2]
            table.add_row(name, *(f"{row['found'][c]:.4g}" for c in columns))
        console.print(table)
        tell_skipped(group, console)


STUDY = Study(
    "real",
    "Who finds the labels that were really missing?",
    lambda: cells(tuple(DATA)),
    measure,
    show=show,
)
