"""Positives hidden at random, models fitted on what is left, scored on complete test labels.

    python benchmarks/hidden.py bibtex delicious eurlex57k [--rates 0 0.5 0.8] [--device cuda]
    python benchmarks/hidden.py --plot    # docs/images/hidden.png from the results there are

Each model has four settings, of which the one with the largest P@3 on a fifth of the training rows,
held out, is taken: P@3 against what is still said there, for nobody has more. (With `--settings 1`
all have their first one.) "BR, logistic" is solved exactly where that takes minutes; "BR, SGD" is
the same model by the passes of MPU, whose base level with c = 1 it is. P@k, PSP@k
(propensities of the complete training labels) and recall@20 of the hidden positives, among the best
completions of some training rows, are in %. The last line is JSON; `results/hidden-….json` keep it,
one entry a data set, so that they can be run separately.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

from tacit import LEML, MPU, GenEML
from tacit.base import Completion
from tacit.baselines import BinaryRelevance, Ridge
from tacit.datasets import load
from tacit.labels import Labels
from tacit.metrics import precision_at_k, propensities, psp_at_k
from tacit.missing import Positives, hide

FIGURE = Path(__file__).parents[1] / "docs" / "images" / "hidden.png"

RANKS = {"bibtex": 100, "delicious": 200, "eurlex57k": 200}
PRIORS = ((1.0, 1.0), (10.0, 1.0), (1.0, 3.0), (10.0, 10.0))  # λ_u, and λ_v = λ_w
BR_ENTRIES = 10**8  # of n_samples × n_labels: beyond, binary relevance takes more than minutes
COMPLETED_ROWS = 4_000
TOP = (1, 3, 5)

console = Console(stderr=True)


class Method(NamedTuple):
    name: str
    model: Any
    grid: list[dict[str, float]]
    read: Any = Labels.as_complete


def methods(rank: int, device: str, passes: int) -> list[Method]:
    geneml = lambda exposure, **how: GenEML(
        rank, exposure=exposure, max_iter=5, tol=0, device=device, random_state=0, **how
    )
    leml = lambda passes: LEML(rank, max_iter=passes, device=device, random_state=0)
    said = Labels.as_positive_only
    br = BinaryRelevance(loss="logistic", device=device)
    priors = [{"reg_u": u, "reg_v": v, "reg_w": v} for u, v in PRIORS]
    tied = [{"reg_v": v, "reg_w": v} for v in (0.3, 1.0, 3.0, 10.0)]
    regs = lambda *regs: [{"reg": reg} for reg in regs]
    mpu = lambda levels, **how: MPU(levels, max_iter=passes, device=device, random_state=0, **how)
    weak = regs(0.1, 0.03, 0.3, 1.0)
    return [
        Method("GenEML", geneml("labels"), priors, said),
        Method("GenEML, no exposure", geneml(None), priors, said),
        Method("GenEML, tied codes", geneml("labels", embedding="tied"), tied, said),
        Method("LEML, positive-only", leml(3), regs(0.1, 0.3, 1.0, 3.0), said),
        Method("LEML, silence is no", leml(10), regs(1.0, 3.0, 10.0, 30.0)),
        Method("MPU", mpu(3), weak, said),
        Method("MPU, two levels", mpu(2), weak, said),
        Method("MPU, base level", mpu(1), weak, said),
        Method("BR, SGD", mpu(1, c=1.0), weak, said),
        Method("BR, logistic", br, regs(0.1, 0.3, 1.0, 3.0)),
        Method("Ridge", Ridge(device=device), regs(0.3, 1.0, 5.0, 25.0)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=list(RANKS))
    parser.add_argument("--rates", nargs="*", type=float, default=[0.0, 0.5, 0.8])
    parser.add_argument("--seeds", type=int, default=1, help="of what is hidden")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--settings", type=int, default=4, help="of each model")
    parser.add_argument("--passes", type=int, default=10, help="of MPU and BR, SGD")
    parser.add_argument("--models", nargs="*", help="only these; others keep their results")
    parser.add_argument("--plot", action="store_true")
    options = parser.parse_args()
    if options.plot:
        plot({name: json.loads(results(name).read_text()) for name in RANKS})
        return
    found = {}
    for name in options.data:
        rows = [
            row
            for rate in options.rates
            for seed in range(options.seeds)
            for row in compare(name, rate, seed, options)
        ]
        if options.models and results(name).exists():
            old = json.loads(results(name).read_text())["rows"]
            kept = lambda row: (
                row["model"] not in options.models or row["hidden"] not in options.rates
            )
            rows = [row for row in old if kept(row)] + rows
        found[name] = {"device": options.device, "rank": RANKS.get(name, 100), "rows": rows}
        results(name).write_text(json.dumps(found[name], ensure_ascii=False) + "\n")
        show(name, rows)
    print(json.dumps(found, ensure_ascii=False))


def results(name: str) -> Path:
    return Path(__file__).with_name("results") / f"hidden-{name}.json"


def compare(name: str, rate: float, seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    data: Any = load(name)
    left, hidden = hide(data.Y, Positives(rate), random_state=seed)
    fitted, held = train_test_split(np.arange(len(left)), test_size=0.2, random_state=seed)
    rows = []
    choice = methods(RANKS.get(name, 100), options.device, options.passes)
    for name_, model, grid, read in choice:
        if options.models and name_ not in options.models:
            continue
        if isinstance(model, BinaryRelevance) and np.prod(left.shape, dtype=float) > BR_ENTRIES:
            console.print(f"{name_} is left out of {name}: it would take too long")
            continue
        labels = read(left)
        tried = []
        grid = grid[: options.settings]
        for settings in grid if len(grid) > 1 else []:
            model.set_params(**settings).fit(data.X[fitted], labels[fitted])
            tried.append(float(precision_at_k(left[held], model.top_k(data.X[held], 3), 3)))
        best = grid[int(np.argmax(tried))] if tried else grid[0]
        start = time.perf_counter()
        model.set_params(**best).fit(data.X, labels)
        row = {"model": name_, "hidden": rate, "seed": seed, "settings": best}
        row["fit s"] = round(time.perf_counter() - start, 1)
        rows.append(row | figures(model, data) | {"R@20": recall(model, data.X, left, hidden)})
        console.print({"data": name} | rows[-1])
    return rows


def figures(model: Any, data: Any) -> dict[str, float]:
    top = model.top_k(data.X_test, max(TOP))
    precision = precision_at_k(data.Y_test, top, TOP)
    scored = psp_at_k(data.Y_test, top, propensities(data.Y), TOP)
    values = {f"P@{k}": value for k, value in zip(TOP, np.atleast_1d(precision))}
    values |= {f"PSP@{k}": value for k, value in zip(TOP, np.atleast_1d(scored))}
    return {name: round(100 * float(value), 2) for name, value in values.items()}


def recall(model: Any, X: Any, left: Labels, hidden: sp.csr_array) -> float | None:
    """Mean share of a row's hidden positives that are among its 20 best completions."""
    if not hidden.nnz:
        return None
    rows = np.random.default_rng(0).permutation(len(left))[:COMPLETED_ROWS]
    found: Completion = model.complete(X[rows], left[rows], 20)
    truth = hidden[rows]
    hit = np.asarray(truth[found.row, found.label]).ravel()
    gone = np.diff(truth.indptr)
    hits = np.bincount(found.row[hit], minlength=len(rows))
    return round(100 * float((hits[gone > 0] / gone[gone > 0]).mean()), 2)


def show(name: str, rows: list[dict[str, Any]]) -> None:
    table = Table(*rows[0], title=name)
    for row in rows:
        settings = ", ".join(f"{key} {value:g}" for key, value in row["settings"].items())
        cells = row | {"settings": settings}
        table.add_row(*("–" if value is None else str(value) for value in cells.values()))
    console.print(table)


def plot(results: dict[str, dict]) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    blue, green, grey, red, purple = "#1b6ca8", "#3f8f5f", "#777777", "#b5482f", "#7a4fa3"
    styles = {
        "GenEML": ("o-", blue),
        "GenEML, no exposure": ("o--", blue),
        "GenEML, tied codes": ("o:", blue),
        "LEML, positive-only": ("s-", green),
        "LEML, silence is no": ("s--", green),
        "BR, logistic": ("^-", red),
        "BR, SGD": ("^--", red),
        "MPU": ("D-", purple),
        "MPU, two levels": ("D:", purple),
        "MPU, base level": ("D--", purple),
        "Ridge": ("v-", grey),
    }
    names = [name for name in RANKS if name in results]
    drawing = Figure(figsize=(3.6 * len(names) + 0.8, 4.2), dpi=200, layout="constrained")
    panels = drawing.subplots(1, len(names), squeeze=False)[0]
    for name, axes in zip(names, panels):
        rows = results[name]["rows"]
        rates = sorted({row["hidden"] for row in rows})
        for model, (style, colour) in styles.items():
            of_model = [row for row in rows if row["model"] == model]
            if not of_model:
                continue
            seen = sorted({row["hidden"] for row in of_model})
            at = [[row["P@3"] for row in of_model if row["hidden"] == rate] for rate in seen]
            percent = [100 * rate for rate in seen]
            axes.plot(percent, [np.mean(p) for p in at], style, color=colour, label=model)
        axes.set_title(name, fontsize=11)
        axes.set(xlabel="positives hidden (%)", xticks=[100 * rate for rate in rates])
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("P@3 on complete test labels (%)")
    # Not every model is in every panel.
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    shown = [lines[model] for model in styles if model in lines]
    drawing.legend(handles=shown, loc="outside lower center", ncols=4, frameon=False)
    FIGURE.parent.mkdir(exist_ok=True)
    drawing.savefig(FIGURE)


if __name__ == "__main__":
    main()
