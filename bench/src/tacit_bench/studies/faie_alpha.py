"""FaIE's figure 2: what its α trades, on delicious with codes of a tenth as many numbers as labels.

Recoverability is tr CᵀỸỸᵀC, what of the labels the codes C keep; predictability is tr CᵀΔC, how
much of the codes lies in what features predict, and at most their number. As in FaIE's tables on
the papers board the rows are 5,000 random ones, of which the first fold of five is for testing,
features are not scaled, and λ is 0.001.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit import FaIE
from tacit.codecs import CodecData
from tacit.metrics import example_accuracy, macro_f1
from tacit_bench.board import Cell, Row
from tacit_bench.boards.papers.splits import some_in_folds
from tacit_bench.study import Study

__all__ = ["STUDY"]


def cells() -> list[Cell]:
    alphas = 10.0 ** np.arange(-2, 5.5, 0.5)
    return [{"data": "delicious", "k / L": 0.1, "alpha": alpha} for alpha in alphas.tolist()]


def measure(cell: Cell) -> dict[str, Any]:
    """What the codes keep and what features predict of them, and the figures of the test rows."""
    split = next(some_in_folds(cell))
    rank = int(cell["k / L"] * split.Y.n_labels)
    model = FaIE(rank, alpha=cell["alpha"], reg=1e-3, normalize=None)
    problem = model._problem(*model._rows(split.X, split.Y))
    rows = CodecData.of(problem, centred=True)
    code, S = model._codec.learn(rows, rank, model.reg), rows.moments
    XC = S.xy @ code.P + S.xx @ code.R
    said = model.fit(split.X, split.Y).predict(split.X_test)
    return {
        "recoverability": float(np.sum(code.H**2)),  # ‖ỸᵀC‖²
        "predictability": float(np.sum(XC * S.regress(XC, model.reg))),
        "macro-F1": 100 * float(macro_f1(split.Y_test, said)),
        "accuracy": 100 * float(example_accuracy(split.Y_test, said)),
        "rank": rank,
        "recoverable": float(np.trace(S.yy)),  # by codes as long as there are labels
    }


def plot(rows: Sequence[Row], path: Path) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    all_of = lambda name: [(row["cell"] | row["found"])[name] for row in rows]
    alphas, rank = all_of("alpha"), rows[0]["found"]["rank"]
    drawing = Figure(figsize=(9.6, 3.6), dpi=200, layout="constrained")
    pairs = ("macro-F1", "accuracy"), ("predictability", "recoverability")
    for axes, names in zip(drawing.subplots(1, 2), pairs):
        other, lines = axes.twinx(), []
        for ax, name, colour, mark in zip((axes, other), names, ("#1b6ca8", "#b5482f"), "os"):
            lines += ax.plot(alphas, all_of(name), f"{mark}-", color=colour, label=name)
            ax.set_ylabel(name + (" (%)" if names is pairs[0] else ""), color=colour)
            ax.spines["top"].set_visible(False)
        if names is pairs[1]:
            bound = [rank] * len(alphas)
            lines += axes.plot(alphas, bound, "--", color="#777777", label="upper bound k")
            axes.set_ylim(bottom=0)
            other.set_ylim(bottom=0)
        axes.set(xscale="log", xlabel="α")
        axes.grid(alpha=0.25)
        axes.legend(handles=lines, loc="best", frameon=False, fontsize=8)
    drawing.savefig(path)


STUDY = Study(
    "faie_alpha",
    "Between codes that keep the labels and codes that features predict, which α of FaIE is best?",
    cells,
    measure,
    tiny=[{"data": "random", "k / L": 0.5, "alpha": alpha} for alpha in (0.1, 10.0)],
    plot=plot,
)
