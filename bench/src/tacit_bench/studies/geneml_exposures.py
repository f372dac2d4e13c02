"""GenEML's figures 3 and 4: what exposure μ each label has after EM from μ = ½.

With free codes and with tied ones, at λ = 1, beside the share of the training rows with the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.stats import spearmanr

from tacit import GenEML
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study, tabulate
from tacit_bench.work import loaded

__all__ = ["STUDY"]

EMBEDDINGS = {"free": ("#1b6ca8", "o"), "tied": ("#b5482f", "^")}


def cells() -> list[Cell]:
    # 50 passes, for EM moves μ slowly.
    return [{"data": data, "rank": 100, "passes": 50} for data in ("bibtex", "delicious")]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """The frequency and the learned exposures of every label."""
    data: Any = loaded(cell["data"])
    counts = np.asarray(data.Y.positives.sum(axis=0), dtype=float).ravel()
    found = {"frequency": (counts / len(data.Y)).round(6).tolist()}
    for embedding in EMBEDDINGS:
        model = GenEML(
            cell["rank"],
            embedding=embedding,
            max_iter=cell["passes"],
            tol=0.0,
            random_state=0,
            device=device,
        )
        model.fit(data.X, data.Y.as_positive_only())
        found[embedding] = model.exposures_.astype(float).round(6).tolist()
    return found


def show(rows: Sequence[Row], console: Console) -> None:
    """The smallest and largest μ, and Spearman's correlation of μ and frequency."""
    short = [row | {"found": _summary(row["found"])} if "found" in row else row for row in rows]
    tabulate(short, console)


def _summary(found: dict[str, list[float]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"labels": len(found["frequency"])}
    for embedding in EMBEDDINGS:
        mu = found[embedding]
        summary[f"μ, {embedding} codes"] = f"{min(mu):.3f} to {max(mu):.3f}"
        summary[f"rank correlation, {embedding}"] = float(spearmanr(found["frequency"], mu)[0])
    return summary


def plot(rows: Sequence[Row], path: Path) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    drawing = Figure(figsize=(9, 4), dpi=200, layout="constrained")
    panels = drawing.subplots(1, len(rows), sharey=True, squeeze=False)[0]
    for figure, (axes, row) in enumerate(zip(panels, rows), start=3):
        frequency = np.array(row["found"]["frequency"])
        seen = frequency > 0
        for embedding, (colour, mark) in EMBEDDINGS.items():
            mu = np.array(row["found"][embedding])[seen]
            label = f"{embedding} codes"
            axes.loglog(frequency[seen], mu, mark, color=colour, ms=3, alpha=0.5, label=label)
        axes.set_title(f"{row['cell']['data']} (figure {figure})", fontsize=11)
        axes.set_xlabel("share of the training rows with the label")
        for axis in (axes.xaxis, axes.yaxis):  # 0.2, not 2 × 10⁻¹; also within a short range
            low, high = axis.get_view_interval()
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}" if high < 10 * low else "")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("learned exposure μ")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    drawing.savefig(path)


STUDY = Study(
    "geneml_exposures",
    "Do GenEML's exposures say more than how frequent a label is?",
    cells,
    measure,
    tiny=[{"data": "random", "rank": 5, "passes": 3}],
    show=show,
    plot=plot,
)
