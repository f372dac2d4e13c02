"""Whether what `Tacit` says is as likely as it says, and which share of the true labels was said.

Positives of the training rows are hidden as on the board `tacit bench missing`, and test labels are
complete. The calibration error, in %, is that of the five best labels of each test row. P(true)
stands beside P(said), what one would tell who takes silence for a no. They differ by the share
said, which stands beside the one that was found. Real data lack labels before any is hidden, and
nobody knows how many: the share that is found with nothing hidden is told too, for only the ratio
to it can be tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tacit import Tacit
from tacit.labels import Labels, TopK
from tacit.metrics import calibration_error, reliability
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study, tabulate
from tacit_bench.work import percent, prepared

__all__ = ["STUDY"]

ERROR, POINTS = "calibration error", "told, true, entries"
SEEDS = {"bibtex": 3, "corel5k": 3, "delicious": 3, "rcv1sub1": 1, "debtags": 1}  # 15 min in all
COLOURS = {"P(said)": "#b0622f", "P(true)": "#2f6fb0"}


def cells() -> list[Cell]:
    return [
        {"data": data, "rate": rate, "seed": seed}
        for data, seeds in SEEDS.items()
        for rate in (0.0, 0.2, 0.5, 0.8)
        for seed in range(seeds if rate else 1)
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """How far the total and probabilities are off, and the points of reliability diagrams."""
    work = prepared(cell | {"mechanism": "positives"})
    said, share = work.said.as_positive_only(), 1 - cell["rate"]
    model = Tacit(device=device, random_state=0).fit(work.X, said)
    rates = model.rates(work.X, said)
    c, low, high = rates.overall
    true = model.top_k(work.X_test, 5, probability=True)
    heard = TopK(true.indices, true.scores * model.model_.said_rates[true.indices])
    return {
        "said": round(share, 3),
        "found": round(c, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "covered": bool(low <= share <= round(high, 2)),
        "identifiable": rates.total_known,
        "total off by %": round(100 * (share / c - 1), 1),
        ERROR: percent(calibration_error(work.Y_test, true)),
        POINTS: {"P(said)": _points(work.Y_test, heard), "P(true)": _points(work.Y_test, true)},
    }


def _points(Y: Labels, top: TopK) -> list[list[float]]:
    """Those that have entries."""
    return [
        [round(float(told), 4), round(float(true), 4), int(entries)]
        for told, true, entries in zip(*reliability(Y, top))
        if entries
    ]


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the figures; the points are for `plot`."""
    figures = lambda found: {name: value for name, value in found.items() if name != POINTS}
    measured = [row for row in rows if "found" in row]
    tabulate([row | {"found": figures(row["found"])} for row in measured], console)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the share that is true against what was told, a panel a data set: the most hidden."""
    from matplotlib.figure import Figure

    most = max(row["cell"]["rate"] for row in rows)
    rows = [r for r in rows if (r["cell"]["rate"], r["cell"]["seed"]) == (most, 0)]
    names = list(dict.fromkeys(row["cell"]["data"] for row in rows))
    drawing = Figure(figsize=(3.4 * len(names), 3.6), dpi=120, layout="constrained")
    panels = dict(zip(names, drawing.subplots(1, len(names), sharey=True, squeeze=False)[0]))
    for row in rows:
        cell, axes = row["cell"], panels[row["cell"]["data"]]
        for what, points in row["found"][POINTS].items():
            told, true, entries = np.array(points).T
            size, colour = 4 + 40 * np.sqrt(entries / entries.sum()), COLOURS[what]
            axes.plot(told, true, color=colour, lw=1.2, label=what)
            axes.scatter(told, true, s=size, color=colour)
        axes.set(title=f"{cell['data']}, {cell['rate']:.0%} hidden", xlabel="told")
    for axes in panels.values():
        axes.plot([0, 1], [0, 1], color="0.8", lw=1, zorder=0)
        axes.set(xlim=(0, 1), ylim=(0, 1))
    panels[names[0]].set_ylabel("true")
    panels[names[0]].legend(frameon=False, loc="upper left")
    drawing.savefig(path)


STUDY = Study(
    "tacit_reliability",
    "Is what Tacit calls likely so often true, and does it know which share was said?",
    cells,
    measure,
    tiny=[{"data": "random", "rate": 0.5, "seed": 0}],
    show=show,
    plot=plot,
)
