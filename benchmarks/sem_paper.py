"""What SEM's β costs and brings (figure 1), a pass against GEMM, and table 2 on another split.

    python benchmarks/sem_paper.py random                  # table 2, mediamill split at random
    python benchmarks/sem_paper.py figure1 --device cuda   # β against precision and time, eurlex57k
    python benchmarks/sem_paper.py marginals               # some of 21,374 labels, yso_finna_en
    python benchmarks/sem_paper.py epoch                   # a full pass against GEMM, eurlex57k
    python benchmarks/sem_paper.py plot                    # the image, from what figure1 wrote

Each run writes `results/sem_paper-<part>-<data>.json` for each data set of `--data` (marginals:
`…-<updates>.json`), and prints it as a line of its own, the last one last. `--quick` is a look at
small settings that writes nothing. Tables 2 and 3 are `tacit bench papers --paper SEM`.

**Random.** The paper's mediamill has 210 features and 4.74 labels a row, Mulan's 120 and 4.38, so
it may have another split too. This is a random split of all of Mulan's rows into the same sizes
(seed 0), with the settings of the largest P@1 + P@3 + micro-F1 on a fifth of its training rows,
held out, of those that the board's were chosen from.

**Figure 1**, of rank 100 and 10 passes, and **marginals** time each pass by itself, without what
comes before the first, and report the median. "labels seen" is the mean size of 𝓛: where it would
be more than half of the labels, all are used.

**Epoch.** Of 50,000 rows at most: the products a pass cannot do without (one pass: U Vᵀ, R V and
RᵀU; in turn: U Vᵀ three times), at the rate that these reach alone on the same shapes, beside the
time it took.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from tacit.backends import get_backend
from tacit.bench.papers import sem as board
from tacit.bench.papers.protocol import Method
from tacit.bench.papers.splits import Trial, labelled, standardised
from tacit.datasets import load
from tacit.labels import Labels
from tacit.methods.sem import SEM
from tacit.metrics import precision_at_k

RESULTS = Path(__file__).with_name("results")
IMAGES = Path(__file__).parents[1] / "docs" / "images"

EPOCH_ROWS = 50_000
BETAS = (0.1, 0.3, 1, 3, 10)
DATA = {
    "random": ("mediamill",),
    "figure1": ("eurlex57k",),
    "marginals": ("yso_finna_en",),
    "epoch": ("eurlex57k",),
}
UPDATES = ("gauss-seidel", "one-pass")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    for part, names in DATA.items():
        command = parts.add_parser(part)
        command.add_argument("--data", nargs="+", default=names)
        command.add_argument("--device", default="cpu")
        command.add_argument("--quick", action="store_true", help="a look; writes nothing")
        if part == "marginals":
            command.add_argument("--beta", type=float, default=10.0)
            command.add_argument("--passes", type=int, default=5)
            command.add_argument("--updates", choices=UPDATES, default=UPDATES[0])
    parts.add_parser("plot")
    options = parser.parse_args()
    if options.part == "plot":
        plot()
        return
    run: dict[str, Callable[..., dict]] = {
        "random": random,
        "figure1": figure1,
        "marginals": marginals,
        "epoch": epoch,
    }
    for name in options.data:
        about = {"data": name, "device": options.device}
        line = json.dumps(about | run[options.part](name, options), ensure_ascii=False)
        if not options.quick:
            suffix = f"-{options.updates}" if options.part == "marginals" else ""
            (RESULTS / f"sem_paper-{options.part}-{name}{suffix}.json").write_text(line + "\n")
        print(line, flush=True)


# Table 2 on a random split


def random(name: str, options: argparse.Namespace) -> dict:
    sem = SEM(100, rate=0.1, max_iter=1 if options.quick else 40, normalize=None, tol=0.0)
    sem.set_params(random_state=0)
    # γ is 0.3 over the median squared distance of two codes.
    sem_k = clone(sem).set_params(head="kernel", gamma=7.883e-05, reg=0.003)
    methods = {"SEM": sem} if options.quick else {"SEM": sem, "SEM-K": sem_k}
    protocol = replace(
        board.TABLE_2,
        data={name: name},
        split=standardised(labelled(shuffled)),
        methods={method: fixed(model) for method, model in methods.items()},
    )
    rows = []
    for cell in protocol.cells():
        rows.append({"method": cell["method"]} | protocol.measure(cell, options.device))
        tell(rows[-1])
    return {"rows": rows}


def fixed(model: SEM) -> Method:
    return Method(lambda cell, trial: model)


def shuffled(cell: dict[str, Any]) -> Iterator[Trial]:
    data: Any = load(cell["data"])
    X = np.vstack([data.X, data.X_test])
    Y = Labels.complete(sp.vstack([data.Y.positives, data.Y_test.positives], format="csr"))
    X, X_test, Y, Y_test = train_test_split(X, Y, test_size=len(data.Y_test), random_state=0)
    yield Trial(X, Y, X_test, Y_test)


# Figure 1, and marginals

Draws = list[tuple[float | None, bool]]  # β and log_q


def figure1(name: str, options: argparse.Namespace) -> dict:
    draws: Draws = [(None, False), *itertools.product(BETAS, (False, True))]
    if options.quick:
        draws = draws[:3]
    return sampled(name, draws, UPDATES[0], 2 if options.quick else 10, (1, 3), options)


def marginals(name: str, options: argparse.Namespace) -> dict:
    draws: Draws = [(None, False), (options.beta, False), (options.beta, True)]
    passes = 2 if options.quick else options.passes
    return sampled(name, draws, options.updates, passes, (1, 3, 5), options)


def sampled(
    name: str,
    draws: Draws,
    updates: Any,
    passes: int,
    ks: tuple[int, ...],
    options: argparse.Namespace,
) -> dict:
    """Each β and log_q: precisions on the test rows and seconds a pass, at rank 100."""
    data: Any = load(name)
    rank = 20 if options.quick else 100
    model = SEM(rank, max_iter=passes, updates=updates, instance_weight="uniform", random_state=0)
    model.set_params(device=options.device)
    rows = []
    for beta, log_q in draws:
        model.set_params(beta=beta, log_q=log_q)
        clone(model).set_params(max_iter=1).fit(data.X[:1000], data.Y[:1000])  # compiles
        each = fit_all(model, data.X, data.Y)
        found = np.asarray(precision_at_k(data.Y_test, model.top_k(data.X_test, max(ks)), ks))
        row: dict[str, Any] = {"beta": beta, "log_q": log_q}
        row |= {f"P@{k}": round(100 * float(p), 2) for k, p in zip(ks, found)}
        row["seconds a pass"] = round(float(np.median(each)), 3)
        row["labels seen"] = labels_seen(data.Y, beta, model.batch_size)
        rows.append(row)
        tell(name, row)
    show(f"{name}, rank {rank}, {passes} passes, {updates}", list(rows[0]), rows)
    about = {"rank": rank, "passes": passes, "updates": updates}
    return about | {"labels": data.Y.n_labels, "rows": rows}


def fit_all(model: Any, X: Any, Y: Labels) -> list[float]:
    """Fit `model` for all of its passes, whatever the objective does; the seconds of each."""
    blocks, known = model._rows(X, Y)
    seconds = []

    def descend(start: Callable, step: Callable, until: None) -> Any:
        state = start()
        for _ in range(model.max_iter):
            begin = time.perf_counter()
            state, loss = step(state)
            seconds.append(time.perf_counter() - begin)
            model.history_.append(loss)
        return state

    model.history_ = []
    problem = replace(model._problem(blocks, known), _descend=descend)
    model._fitted(model._fit(problem), known)
    return seconds


def labels_seen(Y: Labels, beta: float | None, batch_size: int) -> int:
    """The mean of |𝓛| over 20 random batches, a label drawn with probability 1 - exp(-N q)."""
    if beta is None:
        return Y.n_labels
    counts = np.asarray(Y.positives.sum(axis=0), dtype=float).ravel()
    rng, sizes = np.random.default_rng(0), []
    for _ in range(20):
        mine = Y.positives[np.sort(rng.integers(0, len(Y), batch_size))].indices
        inside = -np.expm1(-beta * len(mine) * counts / counts.sum())
        inside[mine] = 1
        sizes.append(inside.sum() if 2 * inside.sum() <= Y.n_labels else Y.n_labels)
    return round(float(np.mean(sizes)))


# Epoch


def epoch(name: str, options: argparse.Namespace) -> dict:
    data: Any = load(name)
    rank = 20 if options.quick else 100
    model = SEM(rank, max_iter=3, random_state=0, device=options.device)
    n, n_labels = min(len(data.Y), EPOCH_ROWS), data.Y.n_labels
    rows = []
    for updates, products in (("one-pass", 3), ("gauss-seidel", 5)):
        model.set_params(updates=updates)
        before = gemm_rate(model, n_labels)
        seconds = min(fit_all(model, data.X[:n], data.Y[:n]))
        rate = max(before, gemm_rate(model, n_labels))
        flops = products * 2.0 * n * n_labels * rank
        rows.append(
            {
                "updates": updates,
                "epoch s": round(seconds, 2),
                "GFLOP": round(flops / 1e9, 1),
                "GFLOP/s": round(flops / seconds / 1e9, 1),
                "GEMM GFLOP/s": round(rate / 1e9, 1),
                "share": round(flops / seconds / rate, 3),
                "peak GiB": round(peak_gib(), 2),
            }
        )
    show(f"A pass over {name}, rank {rank}", list(rows[0]), rows)
    return {"rank": rank, "rows": rows}


def gemm_rate(model: SEM, n_labels: int) -> float:
    """Operations a second of the three products of a batch, on all cores."""
    backend, rng = get_backend(model.device), np.random.default_rng(0)
    shapes = ((model.batch_size, model.rank), (n_labels, model.rank), (model.batch_size, n_labels))
    U, V, R = (backend.asarray(rng.random(shape, np.float32)) for shape in shapes)

    def products() -> None:
        for _ in range(20):
            last = (U @ V.T, R @ V, R.T @ U)
        float(last[-1][0, 0])  # waits for a GPU

    return 20 * 3 * 2.0 * model.batch_size * n_labels * model.rank / best_time(products, 10)


def best_time(f: Callable[[], Any], repeats: int) -> float:
    """The least seconds of so many calls, after one that compiles and warms."""
    f()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak_gib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


# Tables


def tell(*what: Any) -> None:
    print(*what, file=sys.stderr, flush=True)


def show(title: str, columns: list[str], rows: list[dict]) -> None:
    cells = [columns, *([dash(row.get(column)) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    tell(f"\n{title}")
    for line in cells:
        tell("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def dash(value: Any) -> str:
    return "–" if value is None else str(value)


# Plot


BLUE, RED = "#1b6ca8", "#b5482f"


def plot() -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    found = json.loads((RESULTS / f"sem_paper-figure1-{DATA['figure1'][0]}.json").read_text())
    drawing = Figure(figsize=(9, 4), dpi=200, layout="constrained")
    panels = drawing.subplots(1, 3)
    [full] = [row for row in found["rows"] if row["beta"] is None]
    titles = {"P@1": "P@1 (%)", "P@3": "P@3 (%)", "labels seen": "labels that a batch sees"}
    for axes, (metric, title) in zip(panels, titles.items()):
        axes.axhline(full[metric], color="#555555", ls="--", lw=1, label="all labels")
        for log_q, colour, mark in ((False, BLUE, "o-"), (True, RED, "s-")):
            rows = [row for row in found["rows"] if row["beta"] and row["log_q"] == log_q]
            betas = [row["beta"] for row in rows]
            label = "log π taken off" if log_q else "as in the paper"
            axes.plot(betas, [row[metric] for row in rows], mark, ms=4, color=colour, label=label)
        axes.set(xscale="log", xlabel="β", title=title)
        axes.title.set_fontsize(11)
        axes.set_xticks(betas)
        axes.xaxis.set_major_formatter("{x:,g}")  # 0.3, not 3 × 10⁻¹
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[2].set_ylim(bottom=0)
    drawing.suptitle(
        f"{found['data']}: {found['labels']:,} labels, rank {found['rank']}, "
        f"{found['passes']} passes (figure 1)",
        fontsize=11,
    )
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    IMAGES.mkdir(exist_ok=True)
    drawing.savefig(IMAGES / "sem_beta.png")


if __name__ == "__main__":
    main()
