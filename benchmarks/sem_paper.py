"""SEM's tables 2 and 3, and what β costs and brings (figure 1), ours beside the published ones.

    python benchmarks/sem_paper.py table2 --device cuda    # delicious, mediamill, corel5k
    python benchmarks/sem_paper.py table3                  # time against rows, mediamill
    python benchmarks/sem_paper.py figure1 --device cuda   # β against precision and time, eurlex57k
    python benchmarks/sem_paper.py marginals               # some of 21,374 labels, yso_finna_en
    python benchmarks/sem_paper.py epoch                   # a full pass against GEMM, eurlex57k
    python benchmarks/sem_paper.py plots                   # the images, from what these wrote

Each run writes `results/sem_paper-<part>-<data>.json` for each data set of `--data` (marginals:
`…-<updates>.json`), and prints it as a line of its own, the last one last. `--quick` is a look at
small settings that writes nothing.

**Table 2.** Settings are those of the largest P@1 + P@3 + micro-F1 on a fifth of the training rows,
held out (seed 0); the model is then fitted on all training rows. Passes are chosen too: a fit is
looked at after 5, 10, 20 and 40, and while the most passes are the best, the best settings are
given twice as many, up to 80. SEM-K chooses γ and λ, on that SEM. W, V and b from one pass; rows
are not scaled, dense features are standardised, for all methods.
F1 is the paper's: row i is given its ℓ_i best labels, ℓ_i the number it has, so micro-F1 is hits /
positives. Macro-F1 is the mean over all labels, where one without test positives has F1 0, and,
"present", over those that have some; the paper does not say which. P@k counts a row without labels
as 0; "labelled" leaves such rows out (1 in 24 of mediamill, none elsewhere but 4 of delicious).
The paper's mediamill has 210 features and 4.74 labels a row, Mulan's 120 and 4.38, so it may have
another split too: `--data mediamill-random` is a random split of all rows into the same sizes
(seed 0), settings chosen anew.

**Table 3.** The paper's sizes: the first n of the training rows in random order. SEM of rank 50 and
30 passes; SEM-K with 2,000 features on it; ridge. One fit each.

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
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tacit.backends import get_backend
from tacit.baselines import NNML, Ridge
from tacit.datasets import load
from tacit.labels import Labels, TopK
from tacit.methods.sem import SEM
from tacit.metrics import macro_f1, micro_f1, precision_at_k

RESULTS = Path(__file__).with_name("results")
IMAGES = Path(__file__).parents[1] / "docs" / "images"

# Published: macro-F1, micro-F1, P@1, P@3 in %, and seconds by the number of training rows.
TABLE_2 = {
    "delicious": {
        "SEM": (19.41, 39.80, 67.27, 61.62),
        "SEM-K": (16.75, 38.86, 66.58, 61.12),
        "NNML": (17.21, 39.63, 66.87, 61.69),
        "SLEEC": (12.57, 38.59, 66.74, 61.12),
    },
    "mediamill": {
        "SEM": (15.93, 62.96, 87.46, 69.96),
        "SEM-K": (25.70, 67.17, 89.53, 72.78),
        "NNML": (8.19, 58.90, 82.60, 66.75),
        "SLEEC": (28.51, 65.46, 88.99, 71.58),
    },
    "corel5k": {
        "SEM": (6.23, 31.88, 43.20, 32.93),
        "SEM-K": (5.89, 26.49, 36.00, 27.73),
        "NNML": (5.47, 29.67, 40.20, 30.47),
        "SLEEC": (5.34, 31.88, 43.60, 32.87),
    },
}
SIZES = (439, 1_756, 3_073, 4_391, 8_781, 13_172, 17_563, 21_954, 26_344, 30_735)
TABLE_3 = {
    "SEM": (0.60, 2.41, 4.36, 6.65, 12.29, 18.39, 24.22, 30.10, 35.95, 41.37),
    "SEM-K": (1.50, 4.29, 6.99, 10.10, 21.73, 26.49, 42.21, 50.64, 59.42, 61.30),
}

# Settings to choose from.
PASSES, MOST_PASSES = (5, 10, 20, 40), 80
SEM_GRID = {
    "rank": (50, 100),
    "rate": (0.03, 0.1),
    "batch_size": (50, 200),  # 200 only, from 10,000 rows on
    "instance_weight": ("uniform", "label_count"),
}
HEAD_GRID = {"gamma × median": (0.03, 0.1, 0.3, 1.0), "reg": (0.003, 0.01, 0.1)}
NNML_GRID = {"rate": (0.01, 0.03)}
RIDGE_GRID = {"reg": (0.1, 1.0, 10.0, 100.0, 1_000.0), "normalize": ("l2", None)}

EPOCH_ROWS = 50_000
BETAS = (0.1, 0.3, 1, 3, 10)
DATA = {
    "table2": ("delicious", "mediamill", "corel5k"),
    "table3": ("mediamill",),
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
        if part == "table2":
            command.add_argument("--head-device", help="of SEM-K's heads; else --device")
        if part == "marginals":
            command.add_argument("--beta", type=float, default=10.0)
            command.add_argument("--passes", type=int, default=5)
            command.add_argument("--updates", choices=UPDATES, default=UPDATES[0])
    parts.add_parser("plots")
    options = parser.parse_args()
    if options.part == "plots":
        plots()
        return
    run: dict[str, Callable[..., dict]] = {
        "table2": table2,
        "table3": table3,
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


# Table 2


class Split(NamedTuple):
    X: Any
    X_test: Any
    Y: Labels
    Y_test: Labels


def split_of(name: str) -> Split:
    data: Any = load(name.removesuffix("-random"))
    if not name.endswith("-random"):
        return standardised(Split(data.X, data.X_test, data.Y, data.Y_test))
    stack = sp.vstack if sp.issparse(data.X) else np.vstack
    X = stack([data.X, data.X_test])
    Y = Labels.complete(sp.vstack([data.Y.positives, data.Y_test.positives], format="csr"))
    return standardised(Split(*train_test_split(X, Y, test_size=len(data.Y_test), random_state=0)))


def standardised(split: Split) -> Split:
    """Dense features with mean 0 and variance 1 over the training rows; sparse ones as they are."""
    if sp.issparse(split.X):
        return split
    scaler = StandardScaler().fit(split.X)
    return split._replace(X=scaler.transform(split.X), X_test=scaler.transform(split.X_test))


def table2(name: str, options: argparse.Namespace) -> dict:
    split = split_of(name)
    held_out = Split(*train_test_split(split.X, split.Y, test_size=0.2, random_state=0))
    if options.quick:
        held_out = Split(*(part[:500] for part in held_out))
    plain = {"normalize": None, "random_state": 0, "device": options.device}
    sem, nnml = SEM(updates="one-pass", **plain), NNML(**plain)
    choices = [c for c in grid(SEM_GRID, options) if c["batch_size"] == 200 or len(split.Y) < 10**4]
    sems = tried_longer(sem, choices, held_out, options)
    nnmls = tried_longer(nnml, grid(NNML_GRID, options), held_out, options)
    ridges = tried(Ridge(device=options.device), grid(RIDGE_GRID, options), (None,), held_out)
    heads = tried_heads(sem, best_of(sems), held_out, options)
    rows = []
    for method, model, found in (
        ("SEM", sem, sems),
        ("SEM-K", sem, heads),
        ("NNML", nnml, nnmls),
        ("Ridge", Ridge(device=options.device), ridges),
    ):
        chosen, head = separate(best_of(found))
        model = clone(model).set_params(**chosen)
        start = time.perf_counter()
        fit_all(model, split.X, split.Y)
        if head:
            model = with_head(model, split, head, options)
        seconds = round(time.perf_counter() - start, 1)
        measured = figures(model, split.X_test, split.Y_test)
        rows.append({"method": method} | measured | {"fit seconds": seconds} | chosen | head)
        tell(name, rows[-1])
    show_table2(name, rows)
    tried_all = {"SEM": sems, "SEM-K": heads, "NNML": nnmls, "Ridge": ridges}
    return {"rows": rows, "tried": {method: len(found) for method, found in tried_all.items()}}


Tried = list[tuple[float, dict[str, Any]]]  # P@1 + P@3 + micro-F1, and settings


def grid(choices: dict[str, tuple], options: argparse.Namespace) -> list[dict[str, Any]]:
    settings = [dict(zip(choices, each)) for each in itertools.product(*choices.values())]
    return settings[:2] if options.quick else settings


def tried_longer(
    model: Any, settings: list[dict], held_out: Split, options: argparse.Namespace
) -> Tried:
    """Every setting after each of `PASSES`; while the most passes are best, twice as many."""
    passes, most = ((1, 2), 4) if options.quick else (PASSES, MOST_PASSES)
    found = tried(model, settings, passes, held_out)
    n = passes[-1]
    while n < most and best_of(found)["max_iter"] == n:
        n *= 2
        found += tried(model, [best_of(found)], (n,), held_out)
    return found


def tried(
    model: Any, settings: list[dict], passes: tuple[int | None, ...], held_out: Split
) -> Tried:
    """Every setting, looked at after each number of passes; (None,) has no passes to count."""
    found = []
    for setting in settings:
        each = clone(model).set_params(**setting)
        for n in stopped(each, passes, held_out):
            score = score_of(each, held_out)
            found.append((score, setting | ({} if n is None else {"max_iter": n})))
        tell(type(model).__name__, *found[-1])
    return found


def stopped(model: Any, passes: tuple[int | None, ...], split: Split) -> Iterator[int | None]:
    """Fit `model` for so many passes, then on to more."""
    state = None
    for n in passes:
        if n is not None:
            model.set_params(max_iter=n)
        state, _ = fit_all(model, split.X, split.Y, state)
        yield n


def fit_all(model: Any, X: Any, Y: Labels, state: Any = None) -> tuple[Any, list[float]]:
    """Fit `model` for all of its passes, whatever the objective does; their end and seconds.

    A `state` that fewer passes ended in is where it goes on: to the model of a fit in one go.
    """
    blocks, known = model._rows(X, Y)
    seconds = []

    def descend(start: Callable, step: Callable, until: None) -> Any:
        nonlocal state
        state = start() if state is None else state
        for _ in range(len(model.history_), model.max_iter):
            begin = time.perf_counter()
            state, loss = step(state)
            seconds.append(time.perf_counter() - begin)
            model.history_.append(loss)
        return state

    if state is None:
        model.history_ = []
    problem = replace(model._problem(blocks, known), _descend=descend)
    model._fitted(model._fit(problem), known)
    return state, seconds


def tried_heads(sem: SEM, setting: dict, held_out: Split, options: argparse.Namespace) -> Tried:
    """Every head on one SEM, which is fitted once."""
    found = []
    below = clone(sem).set_params(**setting)
    fit_all(below, held_out.X, held_out.Y)
    for head in grid(HEAD_GRID, options):
        model = with_head(below, held_out, head, options)
        found.append((score_of(model, held_out), setting | head))
        tell("SEM-K", *found[-1])
    return found


def with_head(below: SEM, split: Split, head: dict, options: argparse.Namespace) -> SEM:
    """SEM-K on the W of a fitted SEM, with γ a multiple of one over the median distance²."""
    device = options.head_device or options.device
    model = clone(below).set_params(head="kernel", reg=head["reg"], device=device)
    if options.quick:
        model.set_params(n_components=100)
    blocks, known = model._rows(split.X, split.Y)
    problem = model._problem(blocks, known)
    to_numpy = get_backend(below.device).to_numpy
    state = {name: problem.backend.asarray(to_numpy(a)) for name, a in below._online[0].items()}
    model.set_params(gamma=head["gamma × median"] * model._gamma(problem, state["W"]))
    model.history_, model.label_count_ = below.history_, below.label_count_
    return model._fitted(model._model(problem, state, np.random.RandomState(0)), known)


def separate(settings: dict) -> tuple[dict, dict]:
    """The settings of the model, and those of a head on it, if any."""
    if "gamma × median" not in settings:
        return settings, {}
    head = {name: settings[name] for name in HEAD_GRID}
    return {name: settings[name] for name in settings if name not in head}, head


def best_of(found: Tried) -> dict[str, Any]:
    """The settings of the largest score, the first of equals."""
    return max(found, key=lambda f: f[0])[1]


def score_of(model: Any, split: Split) -> float:
    found = figures(model, split.X_test, split.Y_test)
    return round(found["P@1"] + found["P@3"] + found["micro-F1"], 2)


def figures(model: Any, X: Any, Y: Labels) -> dict[str, float]:
    counts = np.diff(Y.positives.indptr)
    best = model.top_k(X, max(3, counts.max()))
    mine = np.arange(best.indices.shape[1]) < counts[:, None]
    given = TopK(np.where(mine, best.indices, -1), np.where(mine, best.scores, -np.inf))
    precision = np.asarray(precision_at_k(Y, best, (1, 3)))
    labelled = precision * len(Y) / np.count_nonzero(counts)
    found = {
        "macro-F1": macro_f1(Y, given),
        "macro-F1, present": macro_f1(Y, given, present_only=True),
        "micro-F1": micro_f1(Y, given),
        "P@1": precision[0],
        "P@3": precision[1],
        "P@1, labelled": labelled[0],
        "P@3, labelled": labelled[1],
    }
    return {metric: round(100 * float(value), 2) for metric, value in found.items()}


def show_table2(name: str, rows: list[dict]) -> None:
    metrics = [metric for metric in rows[0] if "F1" in metric or "P@" in metric]
    published = [
        {"method": f"published: {method}"}
        | dict(zip(("macro-F1", "micro-F1", "P@1", "P@3"), values))
        for method, values in TABLE_2.get(name.removesuffix("-random"), {}).items()
    ]
    show(f"Table 2: {name}", ["method", *metrics, "fit seconds"], rows + published)


# Table 3


def table3(name: str, options: argparse.Namespace) -> dict:
    data: Any = load(name)
    order = np.random.default_rng(0).permutation(len(data.Y))
    sizes = [n for n in SIZES if n <= len(data.Y)]
    as_published = {"updates": "gauss-seidel", "instance_weight": "uniform", "random_state": 0}
    sem = SEM(50, max_iter=30, device=options.device, **as_published)
    models = {
        "SEM": sem,
        "SEM-K": clone(sem).set_params(head="kernel"),
        "Ridge": Ridge(device=options.device),
    }
    if options.quick:
        sizes = sizes[:3]
        for method in ("SEM", "SEM-K"):
            models[method].set_params(max_iter=3, n_components=100)
    seconds: dict[str, list[float]] = {}
    for method, model in models.items():
        seconds[method] = []
        for n in (sizes[0], *sizes):
            X, Y = data.X[order[:n]], data.Y[order[:n]]
            start = time.perf_counter()
            fit_all(model, X, Y)
            took = time.perf_counter() - start
            seconds[method].append(round(took, 3))
            tell(method, f"{n:,} rows", f"{took:.3f} s")
        del seconds[method][0]  # it also compiled
    lines = {method: line_through(sizes, took) for method, took in seconds.items()}
    published = {f"published: {m}": line_through(SIZES, took) for m, took in TABLE_3.items()}
    show(
        f"Table 3: {name}, seconds = a + b n",
        ["method", "ms a row", "a", "R²"],
        [{"method": method} | line for method, line in (lines | published).items()],
    )
    return {"sizes": sizes, "seconds": seconds, "lines": lines}


def line_through(sizes: Any, seconds: Any) -> dict[str, float]:
    slope, intercept = np.polyfit(sizes, seconds, 1)
    rest = np.asarray(seconds) - intercept - slope * np.asarray(sizes)
    unexplained = rest.var() / np.var(seconds)
    return {
        "ms a row": round(1000 * float(slope), 4),
        "a": round(float(intercept), 3),
        "R²": round(1 - float(unexplained), 4),
    }


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
        _, each = fit_all(model, data.X, data.Y)
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
        seconds = min(fit_all(model, data.X[:n], data.Y[:n])[1])
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


# Plots


def plots() -> None:
    IMAGES.mkdir(exist_ok=True)
    result = lambda part: json.loads(
        (RESULTS / f"sem_paper-{part}-{DATA[part][0]}.json").read_text()
    )
    plot_time(result("table3"))
    plot_beta(result("figure1"))


BLUE, GREEN, RED = "#1b6ca8", "#3a7d44", "#b5482f"


def plot_time(found: dict) -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    drawing = Figure(figsize=(8, 4), dpi=200, layout="constrained")
    axes = drawing.subplots()
    colours = {"SEM": BLUE, "SEM-K": RED, "Ridge": GREEN}
    for method, seconds in found["seconds"].items():
        label = f"{method} (R² of a line {found['lines'][method]['R²']:.3f})"
        axes.plot(found["sizes"], seconds, "o-", ms=3.5, color=colours[method], label=label)
    for method, seconds in TABLE_3.items():
        axes.plot(
            SIZES, seconds, "s--", ms=3, lw=1, alpha=0.6, color=colours[method],
            label=f"{method}, published",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="seconds of fitting")
    axes.set_title(f"{found['data']}: time against rows (table 3)", fontsize=11)
    tidy(axes, axes.xaxis, axes.yaxis)
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=9)
    drawing.savefig(IMAGES / "sem_time.png")


def plot_beta(found: dict) -> None:
    from matplotlib.figure import Figure

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
        tidy(axes, axes.xaxis)
        axes.minorticks_off()
    panels[2].set_ylim(bottom=0)
    drawing.suptitle(
        f"{found['data']}: {found['labels']:,} labels, rank {found['rank']}, "
        f"{found['passes']} passes (figure 1)",
        fontsize=11,
    )
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawing.savefig(IMAGES / "sem_beta.png")


def tidy(axes: Any, *logarithmic: Any) -> None:
    for axis in logarithmic:  # 0.2, not 2 × 10⁻¹
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter("")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
