"""GenEML's figure 2: precision against seconds of fitting, by batch EM and by online EM.

Each point is a fit of its own, of as many passes, with the same random numbers: its seconds are
those of the whole fit, the start included. `batch` is the rows of an online update, and None is
batch EM. Pólya–Gamma curvature is the paper's; on eurlex57k its Gram matrices take too long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tacit import GenEML
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]

COLOURS = {None: "#1b6ca8", 1024: "#b5482f", 4096: "#3a7d44"}


def cells() -> list[Cell]:
    grid: dict[str, dict[str, tuple[int | None, ...]]] = {
        "bibtex": {"shared": (None, 1024, 4096), "polya-gamma": (None, 1024, 4096)},
        "mediamill": {"shared": (None, 1024, 4096), "polya-gamma": (None, 1024, 4096)},
        "eurlex57k": {"shared": (None, 1024)},
    }
    return [
        {"data": data, "curvature": curvature, "batch": batch, "rank": 100, "passes": 8}
        for data, curvatures in grid.items()
        for curvature, batches in curvatures.items()
        for batch in batches
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """After one pass, two, …: seconds, and P@1 and P@3 of the test rows in %."""
    data: Any = loaded(cell["data"])
    Y = data.Y.as_positive_only()
    how: dict[str, Any] = {"inference": "em"}
    if cell["batch"] is not None:
        how = {"inference": "online", "batch_size": cell["batch"]}
    model = GenEML(
        cell["rank"], curvature=cell["curvature"], tol=0.0, random_state=0, device=device, **how
    )
    model.set_params(max_iter=1).fit(data.X, Y)  # compiles
    found: dict[str, list[float]] = {"seconds": [], "P@1": [], "P@3": []}
    for passes in range(1, cell["passes"] + 1):
        start = time.perf_counter()
        model.set_params(max_iter=passes).fit(data.X, Y)
        seconds = time.perf_counter() - start
        if model.n_iter_ < passes:  # a pass no longer lowered the objective, so it is over
            break
        precisions: Any = precision_at_k(data.Y_test, model.top_k(data.X_test, 3), (1, 3))
        for name, value in zip(found, (round(seconds, 3), *map(percent, precisions))):
            found[name].append(value)
    return found


def show(rows: Sequence[Row], console: Console) -> None:
    """The first and the last pass."""
    table = Table("data", "curvature", "by", "pass", "seconds", "P@1", "P@3", box=None)
    for row in rows:
        if "found" not in row:
            continue
        cell, found = row["cell"], row["found"]
        for i in sorted({0, len(found["seconds"]) - 1}):
            figures = (str(found[name][i]) for name in ("seconds", "P@1", "P@3"))
            table.add_row(cell["data"], cell["curvature"], _who(cell), str(i + 1), *figures)
    console.print(table)
    for row in rows:
        if "skipped" in row:
            console.print(f"{row['cell']['data']}: {row['skipped']}", markup=False, style="dim")


def _who(cell: Cell) -> str:
    return "batch EM" if cell["batch"] is None else f"online EM, {cell['batch']:,} rows"


def plot(rows: Sequence[Row], path: Path) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    names = list(dict.fromkeys(row["cell"]["data"] for row in rows))
    drawing = Figure(figsize=(9, 4), dpi=200, layout="constrained")
    for axes, name in zip(drawing.subplots(1, len(names), squeeze=False)[0], names):
        for cell, found in ((row["cell"], row["found"]) for row in rows):
            if cell["data"] != name:
                continue
            axes.set_title(f"{name}, rank {cell['rank']} (figure 2)", fontsize=11)
            shared = cell["curvature"] == "shared"
            axes.plot(
                found["seconds"],
                found["P@3"],
                "o-" if shared else "s--",
                markersize=3.5,
                color=COLOURS.get(cell["batch"]),
                label=f"{_who(cell)}, {'shared' if shared else 'Pólya–Gamma'}",
            )
        axes.set(xscale="log", xlabel="seconds of fitting", ylabel="P@3 on the test rows (%)")
        low, high = axes.xaxis.get_view_interval()
        axes.xaxis.set_major_formatter("{x:g}")  # 0.2, not 2 × 10⁻¹; also within a short range
        axes.xaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    first = drawing.axes[0]  # eurlex57k has fewer curves
    drawing.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawing.savefig(path)


STUDY = Study(
    "online_em",
    "Does GenEML's online EM reach the precision of batch EM sooner?",
    cells,
    measure,
    tiny=[
        {"data": "random", "curvature": "shared", "batch": batch, "rank": 5, "passes": 2}
        for batch in (None, 100)
    ],
    show=show,
    plot=plot,
)
