"""SEM's β (figure 1 of the paper): precision and time where a batch sees only some of the labels.

The softmax of a batch is over its own labels and β times as many that are drawn by frequency; None
is all labels. `log_q` takes the logarithm of how likely a label was drawn, π, off its score, which
the paper does not. Each pass is timed by itself, without what comes before the first; the median
counts. "labels seen" is the mean size of 𝓛; where it would be more than half of the labels, all
are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit.labels import Labels
from tacit.methods.sem import SEM
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study
from tacit_bench.timing import passes_timed
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]

BATCHES = 20  # of which "labels seen" is the mean


def cells() -> list[Cell]:
    grid = [(beta, log_q) for beta in (0.1, 0.3, 1.0, 3.0, 10.0) for log_q in (False, True)]
    few = [(None, False), (3.0, False), (3.0, True)]
    return [
        *_cells("eurlex57k", 10, "gauss-seidel", [(None, False), *grid]),
        *_cells("yso_finna_en", 2, "gauss-seidel", few),
        *_cells("yso_finna_en", 5, "one-pass", few),
    ]


def _cells(
    data: str,
    passes: int,
    updates: str,
    draws: Sequence[tuple[float | None, bool]],
    rank: int = 100,
) -> list[Cell]:
    about = {"data": data, "rank": rank, "passes": passes, "updates": updates}
    return [about | {"beta": beta, "log_q": log_q} for beta, log_q in draws]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """P@1, P@3 and P@5 of the test rows in %, seconds a pass, and the labels that a batch sees."""
    data: Any = loaded(cell["data"])
    model = SEM(
        cell["rank"],
        beta=cell["beta"],
        log_q=cell["log_q"],
        updates=cell["updates"],
        max_iter=cell["passes"],
        instance_weight="uniform",
        random_state=0,
        device=device,
    )
    clone(model).set_params(max_iter=1).fit(data.X[:1000], data.Y[:1000])  # compiles
    seconds = passes_timed(model, data.X, data.Y)
    precisions: Any = precision_at_k(data.Y_test, model.top_k(data.X_test, 5), (1, 3, 5))
    return {
        **dict(zip(("P@1", "P@3", "P@5"), map(percent, precisions))),
        "seconds a pass": round(float(np.median(seconds)), 3),
        "labels seen": _labels_seen(data.Y, cell["beta"], model.batch_size),
        "labels": data.Y.n_labels,
    }


def _labels_seen(Y: Labels, beta: float | None, batch_size: int) -> int:
    """The mean of |𝓛| over random batches, a label drawn with probability 1 - exp(-βN q)."""
    if beta is None:
        return Y.n_labels
    counts = np.asarray(Y.positives.sum(axis=0), dtype=float).ravel()
    rng, sizes = np.random.default_rng(0), []
    for _ in range(BATCHES):
        mine = Y.positives[np.sort(rng.integers(0, len(Y), batch_size))].indices
        inside = -np.expm1(-beta * len(mine) * counts / counts.sum())
        inside[mine] = 1
        sizes.append(inside.sum() if 2 * inside.sum() <= Y.n_labels else Y.n_labels)
    return round(float(np.mean(sizes)))


def plot(rows: Sequence[Row], path: Path) -> None:
    """The first data set: precisions and labels seen against β."""
    from matplotlib.figure import Figure  # the extra `plot`

    about = rows[0]["cell"]
    mine = [row["cell"] | row["found"] for row in rows if row["cell"]["data"] == about["data"]]
    drawing = Figure(figsize=(9, 4), dpi=200, layout="constrained")
    panels = drawing.subplots(1, 3)
    titles = {"P@1": "P@1 (%)", "P@3": "P@3 (%)", "labels seen": "labels that a batch sees"}
    for axes, (figure, title) in zip(panels, titles.items()):
        for row in mine:
            if row["beta"] is None:
                axes.axhline(row[figure], color="#555555", ls="--", lw=1, label="all labels")
        for log_q, colour, mark in ((False, "#1b6ca8", "o-"), (True, "#b5482f", "s-")):
            drawn = [row for row in mine if row["beta"] is not None and row["log_q"] == log_q]
            betas = [row["beta"] for row in drawn]
            label = "log π taken off" if log_q else "as in the paper"
            axes.plot(betas, [row[figure] for row in drawn], mark, ms=4, color=colour, label=label)
        axes.set(xscale="log", xlabel="β", title=title)
        axes.title.set_fontsize(11)
        axes.set_xticks(betas)
        axes.xaxis.set_major_formatter("{x:,g}")  # 0.3, not 3 × 10⁻¹
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[2].set_ylim(bottom=0)
    drawing.suptitle(
        f"{about['data']}: {mine[0]['labels']:,} labels, rank {about['rank']}, "
        f"{about['passes']} passes (figure 1)",
        fontsize=11,
    )
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawing.savefig(path)


STUDY = Study(
    "sem_beta",
    "What does it cost SEM in precision, and save in time, to see only some labels a batch?",
    cells,
    measure,
    tiny=_cells("random", 1, "one-pass", [(None, False), (1.0, False), (1.0, True)], rank=5),
    plot=plot,
)
