"""Whether what `Tacit` says is as likely as it says: the five best labels of each test row.

P(true) stands beside P(said), what one would tell who takes silence for a no: they differ by the
share of true labels that was said. Labels are hidden as on the board `tacit bench missing`, and
test labels are complete. The calibration error is in %.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tacit import Tacit
from tacit.labels import TopK
from tacit.metrics import calibration_error, reliability
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study, tabulate
from tacit_bench.work import percent, prepared

__all__ = ["STUDY"]

ERROR, POINTS = "calibration error", "told, true, entries"
COLOURS = {"P(said)": "#b0622f", "P(true)": "#2f6fb0"}


def cells() -> list[Cell]:
    asked = product(("bibtex", "delicious", "mediamill"), COLOURS)
    return [{"data": data, "rate": 0.8, "what": what} for data, what in asked]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """The calibration error, and the points of a reliability diagram that have entries."""
    work = prepared(cell | {"mechanism": "positives", "seed": 0})
    model = Tacit(device=device, random_state=0).fit(work.X, work.said)
    top = model.top_k(work.X_test, 5, probability=True)
    if cell["what"] == "P(said)":
        top = TopK(top.indices, top.scores * model.exposure_)
    points = [
        [round(float(told), 4), round(float(true), 4), int(entries)]
        for told, true, entries in zip(*reliability(work.Y_test, top))
        if entries
    ]
    error = percent(calibration_error(work.Y_test, top))
    return {ERROR: error, POINTS: points}


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the calibration errors; the points are for `plot`."""
    measured = [row for row in rows if "found" in row]
    tabulate([row | {"found": {ERROR: row["found"][ERROR]}} for row in measured], console)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the share that is true against what was told, a panel a data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["cell"]["data"] for row in rows))
    drawing = Figure(figsize=(3.4 * len(names), 3.6), dpi=120, layout="constrained")
    panels = dict(zip(names, drawing.subplots(1, len(names), sharey=True, squeeze=False)[0]))
    for row in rows:
        cell, axes = row["cell"], panels[row["cell"]["data"]]
        told, true, entries = np.array(row["found"][POINTS]).T
        size, colour = 4 + 40 * np.sqrt(entries / entries.sum()), COLOURS[cell["what"]]
        axes.plot(told, true, color=colour, lw=1.2, label=cell["what"])
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
    "Is what Tacit gives a probability true as often as it says?",
    cells,
    measure,
    tiny=[{"data": "random", "rate": 0.5, "what": "P(true)"}],
    show=show,
    plot=plot,
)
