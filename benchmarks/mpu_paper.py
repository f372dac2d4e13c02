"""MPU's figure 5: micro-F1 on RCV1's topics with ever fewer of the positives said.

    python benchmarks/mpu_paper.py figure5 [--folds 3] [--rates 0 0.5 0.9] [--methods MPU BR]
    python benchmarks/mpu_paper.py figure5-plot    # docs/images/mpu_figure5.png and the tables

**Protocol.** 6,000 articles (both parts of a data set together) in ten folds, one of which is
tested on. The two parts number their labels differently (in rcv1sub1, label j of one is as frequent
and has the words of label j - 1 of the other), so labels of the second are matched with those of
the first by the mean of their rows (`matched`). Each positive of the training rows is removed with
the same probability; test labels are complete. M3L and BR read silence as no (BR is logistic
regression, one a label, by the same passes: MPU's base level with c = 1). WELL labels only rows
that it learns from: it is given the test rows without labels, and the values it completes them with
are its scores. (Ours is WELL-like, with constants of ours, which keep almost all of these below ½:
of the paper's WELL, its untuned figure says nothing.) As in the paper nothing is chosen by method:
all have their defaults, and the RBF kernel (1,024 landmarks) γ = ½, one over the
median squared distance of rows of unit length.

**Figures** in %, for micro-F1 of four thresholds on the same scores, since where a method says yes
may matter more than what it has learned:

- *untuned*: the method's own `predict`, as in the paper;
- *tuned*: the threshold of largest micro-F1 on a fifth of the training rows, held out from a fit on
  the others. Positives were removed there too and nobody knows which, so this is the best threshold
  for what is said, not for what is true;
- *tuned, share known*: there again, but each label said stands for 1/(1 - rate) true ones;
- *best*: the threshold of largest micro-F1 on the test rows themselves, which nobody could choose.

P@1 and P@3 need no threshold. "fit s" are the seconds that one core works on the fit on all
training rows.

Each data set, method, rate and fold is a line of `results/mpu_paper-figure5.jsonl`, written as soon
as it is known; those that are there are not run again. Folds come last: a run that was stopped has
every method at every rate, of fewer folds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.progress import track
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from tacit import MPU, KernelFeatures
from tacit.baselines import M3L, WELL, Elkan08
from tacit.datasets import load
from tacit.labels import Labels
from tacit.metrics import best_threshold, micro_f1, precision_at_k
from tacit.missing import Positives, hide

RESULTS = Path(__file__).with_name("results") / "mpu_paper-figure5.jsonl"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "mpu_figure5.png"

DATA = ("rcv1sub1", "rcv1sub2")
RATES = tuple(tenths / 10 for tenths in range(10))
FOLDS = 10
FIGURES = ("untuned", "tuned", "tuned, share known", "best", "P@1", "P@3", "fit s")
ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

console = Console(stderr=True)


class Method(NamedTuple):
    make: Callable[[int], Any]  # of a seed
    read: Callable[[Labels], Labels]
    style: str
    colour: str


said, no = Labels.as_positive_only, Labels.as_complete  # what silence is taken for


def mpu(**settings: Any) -> Callable[[int], MPU]:
    """With the passes that were measured; the defaults have become thirty, at rate 1."""
    return lambda seed: MPU(rate=0.3, max_iter=10, random_state=seed, **settings)


METHODS = {
    "MPU": Method(mpu(), said, "o-", "#1b6ca8"),
    "MPU-two": Method(mpu(levels=2), said, "o:", "#1b6ca8"),
    "MPU-base": Method(mpu(levels=1), said, "o--", "#1b6ca8"),
    "Elkan08": Method(lambda seed: Elkan08(reg=1.0, random_state=seed), said, "^-", "#3f8f5f"),
    # Its λ is that of a regression for new rows, of no use here, and the shorter the larger λ is.
    "WELL": Method(lambda seed: WELL(reg=1e6), said, "D-", "#c98a1b"),
    "M3L-linear": Method(lambda seed: M3L(random_state=seed), no, "s-", "#b5482f"),
    "M3L-RBF": Method(
        lambda seed: make_pipeline(
            KernelFeatures("rbf", gamma=0.5, random_state=seed),
            M3L(normalize=None, random_state=seed),
        ),
        no, "s--", "#b5482f",
    ),
    "BR": Method(mpu(levels=1, c=1.0), said, "v-", "#777777"),
}  # fmt: skip


class Cell(NamedTuple):
    data: str
    method: str
    rate: float
    fold: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    command = parts.add_parser("figure5")
    command.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    command.add_argument("--rates", nargs="+", type=float, default=RATES)
    command.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    command.add_argument("--folds", type=int, default=FOLDS, help="only the first of the ten")
    command.add_argument("--device", default="cpu", help="of the methods that have a choice")
    command.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parts.add_parser("figure5-plot")
    options = parser.parse_args()
    if options.part == "figure5":
        run(options)
    elif results():
        plot(results())
    else:
        parser.error(f"{RESULTS.name} has no results to plot; run figure5 first")
    print(markdown(results()))


def run(options: argparse.Namespace) -> None:
    """Measure the cells that are not there yet, methods fastest and folds slowest."""
    wanted = product(range(options.folds), options.data, options.rates, options.methods)
    cells = [Cell(data, method, rate, fold) for fold, data, rate, method in wanted]
    known = {Cell(*(row[name] for name in Cell._fields)) for row in results()}
    missing = [cell for cell in cells if cell not in known]
    console.print(f"{len(cells) - len(missing)} cells are there, {len(missing)} are to be measured")
    os.environ |= dict.fromkeys(ONE_THREAD, "1")  # read by the processes, as they import
    with get_context("spawn").Pool(options.jobs) as pool, RESULTS.open("a") as file:
        found = pool.imap_unordered(partial(measure, device=options.device), missing)
        for row in track(found, "figure 5", len(missing), console=console):
            file.write(json.dumps(row) + "\n")
            file.flush()
            console.print(row, soft_wrap=True)


def results() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def measure(cell: Cell, device: str) -> dict[str, Any]:
    X, Y = articles(cell.data)
    folds = KFold(FOLDS, shuffle=True, random_state=0).split(X)
    train, test = list(folds)[cell.fold]
    left = hide(Y[train], Positives(cell.rate), random_state=cell.fold).labels
    # The smaller fit is first: whatever is compiled, is compiled in it.
    fitted, held = train_test_split(np.arange(len(left)), test_size=0.2, random_state=cell.fold)
    part = fit(cell, X[train[fitted]], left[fitted], X[train[held]], device)
    whole = fit(cell, X[train], left, X[test], device)
    thresholds = {
        "tuned": best_threshold(left[held], part.scores),
        "tuned, share known": best_threshold(left[held], part.scores, c=1 - cell.rate),
        "best": best_threshold(Y[test], whole.scores),
    }
    found = {"untuned": micro_f1(Y[test], whole.predicted)}
    found |= {name: micro_f1(Y[test], whole.scores > t) for name, t in thresholds.items()}
    found |= {f"P@{k}": float(precision_at_k(Y[test], whole.scores, k)) for k in (1, 3)}
    percent = {name: round(100 * value, 2) for name, value in found.items()}
    return cell._asdict() | percent | {"fit s": round(whole.seconds, 2)}


@cache
def articles(name: str) -> tuple[sp.csr_array, Labels]:
    data: Any = load(name)
    X = sp.csr_array(sp.vstack([data.X, data.X_test]), dtype=np.float32)
    first, second = data.Y.positives, data.Y_test.positives
    second = sp.csr_array(second.tocsc()[:, matched(data.X, first, data.X_test, second)])
    return X, Labels.complete(sp.vstack([first, second], format="csr"))


def matched(X: Any, Y: Any, X_2: Any, Y_2: Any) -> np.ndarray:
    """For each label of Y the one of Y_2 whose rows have the most similar words, one to one."""
    idf = -np.log((1 + np.diff(sp.csc_array(sp.vstack([X, X_2])).indptr)) / (len(Y.indptr) * 2))
    words = lambda X, Y: normalize(Y.T.astype(float) @ normalize(X).multiply(idf)).toarray()
    return linear_sum_assignment(-words(X, Y) @ words(X_2, Y_2).T)[1]


class Fit(NamedTuple):
    scores: np.ndarray
    predicted: Any
    seconds: float


def fit(cell: Cell, X: Any, left: Labels, X_new: Any, device: str) -> Fit:
    """What a method that saw the rows X and what is left of their labels says of new rows."""
    make, read, *_ = METHODS[cell.method]
    model = make(cell.fold)
    if "device" in model.get_params():
        model.set_params(device=device)
    if cell.method == "WELL":
        silent = sp.csr_array((X_new.shape[0], left.n_labels), dtype=bool)
        X = sp.vstack([X, X_new], format="csr")
        left = Labels.positive_only(sp.vstack([left.positives, silent], format="csr"))
    start = time.process_time()
    model.fit(X, read(left))
    seconds = time.process_time() - start
    if cell.method == "WELL":
        scores = model.completed_[-X_new.shape[0] :]
        return Fit(scores, scores > model.threshold, seconds)
    return Fit(model.decision_function(X_new), model.predict(X_new), seconds)


# Tables


class Mean(NamedTuple):
    mean: float
    error: float  # the standard error
    folds: int


Means = dict[str, dict[float, Mean]]  # by method and rate


def means(rows: list[dict[str, Any]], data: str, figure: str) -> Means:
    found: Means = {}
    for method in METHODS:
        mine = [row for row in rows if (row["data"], row["method"]) == (data, method)]
        for rate in sorted({row["rate"] for row in mine}):
            values = [row[figure] for row in mine if row["rate"] == rate]
            n = len(values)
            error = float(np.std(values, ddof=1)) / n**0.5 if n > 1 else 0.0
            found.setdefault(method, {})[rate] = Mean(float(np.mean(values)), error, n)
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table for each figure and data set: methods down, rates across."""
    lines: list[str] = []
    for figure, data in product(FIGURES, DATA):
        found = means(rows, data, figure)
        if not found:
            continue
        rates = sorted(set().union(*found.values()))
        cells = [cell for by_rate in found.values() for cell in by_rate.values()]
        fewest, most = (f([cell.folds for cell in cells]) for f in (min, max))
        folds = most if fewest == most else f"{fewest} to {most}"
        lines += [f"**{figure}**, {data}, by the share of positives removed; folds: {folds}", ""]
        lines += ["| | " + " | ".join(f"{rate:.0%}" for rate in rates) + " |"]
        lines += ["| --- |" + " --- |" * len(rates)]
        for method, by_rate in found.items():
            values = (f"{by_rate[rate].mean:.1f}" if rate in by_rate else "–" for rate in rates)
            lines += [f"| {method} | " + " | ".join(values) + " |"]
        lines += [""]
    return "\n".join(lines)


# Plot


def plot(rows: list[dict[str, Any]]) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    names = [name for name in DATA if any(row["data"] == name for row in rows)]
    panels = {
        "untuned": "each method's own threshold",
        "tuned": "threshold tuned on what is said",
    }
    drawing = Figure(figsize=(9, 3.6 * len(names) + 0.7), dpi=200, layout="constrained")
    grid = drawing.subplots(len(names), 2, sharex=True, sharey="row", squeeze=False)
    for axes, (name, figure) in zip(grid.ravel(), product(names, panels)):
        for method, by_rate in means(rows, name, figure).items():
            *_, style, colour = METHODS[method]
            percent = [100 * rate for rate in by_rate]
            mean, error, _ = np.array(list(by_rate.values())).T
            axes.plot(percent, mean, style, ms=4, lw=1.4, color=colour, label=method)
            axes.fill_between(percent, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
        axes.set_title(f"{name}: {panels[figure]}", fontsize=11)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("positives removed (%)")
    for axes in grid[:, 0]:
        axes.set_ylabel("micro-F1 (%)")
    # Of the panel that has most of them: a run may be of some methods only.
    most = max((axes.get_legend_handles_labels() for axes in grid.ravel()), key=lambda h: len(h[0]))
    drawing.legend(*most, loc="outside lower center", ncols=len(most[0]), frameon=False)
    FIGURE.parent.mkdir(exist_ok=True)
    drawing.savefig(FIGURE)


if __name__ == "__main__":
    main()
