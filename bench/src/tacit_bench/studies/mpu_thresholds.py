"""How much of MPU's lead in figure 5 of its paper is where a method says yes, not what it learned.

Rows, methods and hiding are those of figure 5 in `tacit bench papers`: 6,000 articles in ten folds,
of which one is tested on, with ever fewer of the training positives said. Beside a method's own
threshold stand three others on the same scores, as micro-F1 in %:

- *untuned*: the method's own `predict`, as in the paper;
- *tuned*: the threshold of largest micro-F1 on a fifth of the training rows, held out from a fit on
  the others. Positives were removed there too and nobody knows which, so this is the best threshold
  for what is said, not for what is true;
- *tuned, share known*: there again, but each label said stands for 1/(1 - rate) true ones;
- *best*: the threshold of largest micro-F1 on the test rows themselves, which nobody could choose.

P@1 and P@3 need no threshold. "fit s" are seconds of all cores on the fit to all training rows.
WELL is WELL-like, with constants of ours, which keep almost all of its scores below ½: of the
paper's WELL, its untuned figure says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

from tacit.metrics import best_threshold, micro_f1, precision_at_k
from tacit_bench.board import Cell, Row
from tacit_bench.boards.papers.mpu import METHODS
from tacit_bench.boards.papers.protocol import Answer
from tacit_bench.boards.papers.splits import Split, hidden_positives
from tacit_bench.study import Study
from tacit_bench.work import percent

__all__ = ["STUDY"]

DATA, FOLDS = ("rcv1sub1", "rcv1sub2"), 10
RATES = tuple(tenths / 10 for tenths in range(10))
SLOW = {"M3L-RBF": 1}  # of which so many folds do
FIGURES = ("untuned", "tuned", "tuned, share known", "best", "P@1", "P@3", "fit s")
STYLES = {
    "MPU": ("o-", "#1b6ca8"),
    "MPU-base": ("o--", "#1b6ca8"),
    "Elkan08": ("^-", "#3f8f5f"),
    "WELL": ("D-", "#c98a1b"),
    "M3L-linear": ("s-", "#b5482f"),
    "M3L-RBF": ("s--", "#b5482f"),
    "BR": ("v-", "#777777"),
}


def cells() -> list[Cell]:
    """Folds come last: a run that was stopped has every method at every rate, of fewer folds."""
    return [
        {"data": data, "method": method, "rate": rate, "fold": fold}
        for fold, data, rate, method in product(range(FOLDS), DATA, RATES, METHODS)
        if fold < SLOW.get(method, FOLDS)
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Tune on a fit to some of the rows, and judge a fit to all of them."""
    whole = next(islice(hidden_positives(cell), cell["fold"], None))
    X, left = whole.X, whole.Y
    seen, held = train_test_split(np.arange(len(left)), test_size=0.2, random_state=cell["fold"])
    part = Split(X[seen], left[seen], X[held], left[held], whole.seed)
    tried, _ = _answer(cell, part, device)  # the first, in which whatever is compiled is compiled
    answer, seconds = _answer(cell, whole, device)
    truth, scores = whole.Y_test, answer.scores
    thresholds = {
        "tuned": best_threshold(left[held], tried.scores),
        "tuned, share known": best_threshold(left[held], tried.scores, c=1 - cell["rate"]),
        "best": best_threshold(truth, scores),
    }
    found = {"untuned": percent(micro_f1(truth, answer.labels))}
    found |= {name: percent(micro_f1(truth, scores > t)) for name, t in thresholds.items()}
    found |= {f"P@{k}": percent(precision_at_k(truth, scores, k)) for k in (1, 3)}
    return found | {"fit s": round(seconds, 2)}


def _answer(cell: Cell, split: Split, device: str) -> tuple[Answer, float]:
    """What the cell's method says of the test rows of a split, and how long its fit took."""
    method = METHODS[cell["method"]]
    model = method.make(cell, split)
    places = [name for name in model.get_params() if name.rpartition("__")[2] == "device"]
    model.set_params(**dict.fromkeys(places, device))
    start = time.process_time()
    model.fit(split.X, method.read(split.Y))
    return Answer(model, split.X_test), time.process_time() - start


def means(rows: Sequence[Row], data: str, figure: str) -> dict[str, dict[float, np.ndarray]]:
    """Mean, standard error and number of the folds, by method and rate."""
    found: dict[str, dict[float, np.ndarray]] = {}
    for method, rate in product(METHODS, RATES):
        asked = {"data": data, "method": method, "rate": rate}
        values = [
            row["found"][figure]
            for row in rows
            if "found" in row and row["cell"] == asked | {"fold": row["cell"]["fold"]}
        ]
        if n := len(values):
            error = np.std(values, ddof=1) / n**0.5 if n > 1 else 0.0
            found.setdefault(method, {})[rate] = np.array([np.mean(values), error, n])
    return found


def _data(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["cell"]["data"] for row in rows))


def show(rows: Sequence[Row], console: Console) -> None:
    """Print a table for each figure and data set: methods down, shares removed across."""
    for figure, data in product(FIGURES, _data(rows)):
        found = means(rows, data, figure)
        rates = sorted(set().union(*found.values()))
        table = Table("", *(f"{rate:.0%}" for rate in rates), "folds", box=None)
        for method, by_rate in found.items():
            told = (f"{by_rate[rate][0]:.1f}" if rate in by_rate else "–" for rate in rates)
            fewest, most = (f(int(n) for _, _, n in by_rate.values()) for f in (min, max))
            table.add_row(method, *told, f"{most}" if fewest == most else f"{fewest} to {most}")
        console.print(f"\n{figure}, {data}, by the share of positives removed", table, sep="\n")


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw micro-F1 against the share removed, with each method's own threshold and tuned."""
    from matplotlib.figure import Figure

    names, panels = _data(rows), {"untuned": "each method's own threshold"}
    panels["tuned"] = "threshold tuned on what is said"
    drawing = Figure(figsize=(9, 3.6 * len(names) + 0.7), dpi=200, layout="constrained")
    grid = drawing.subplots(len(names), 2, sharex=True, sharey="row", squeeze=False)
    for axes, (name, figure) in zip(grid.ravel(), product(names, panels)):
        for method, by_rate in means(rows, name, figure).items():
            style, colour = STYLES[method]
            removed = [100 * rate for rate in by_rate]
            mean, error, _ = np.array(list(by_rate.values())).T
            axes.plot(removed, mean, style, ms=4, lw=1.4, color=colour, label=method)
            axes.fill_between(removed, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
        axes.set_title(f"{name}: {panels[figure]}", fontsize=11)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("positives removed (%)")
    for axes in grid[:, 0]:
        axes.set_ylabel("micro-F1 (%)")
    # Of the panel that has most of them: rows may be of some methods only.
    most = max((axes.get_legend_handles_labels() for axes in grid.ravel()), key=lambda h: len(h[0]))
    drawing.legend(*most, loc="outside lower center", ncols=len(most[0]), frameon=False)
    drawing.savefig(path)


STUDY = Study(
    "mpu_thresholds",
    "How much of MPU's lead in figure 5 of its paper is the threshold at which a method says yes?",
    cells,
    measure,
    tiny=[
        {"data": "random", "method": method, "rate": 0.5, "fold": 0}
        for method in ("MPU", "WELL", "BR")
    ],
    show=show,
    plot=plot,
)
