"""MPU at the size of all of RCV1, with thousands of labels, against scikit-learn, and its solvers.

    python benchmarks/mpu.py scale      # both levels at four sizes, time and peak memory
    python benchmarks/mpu.py epoch      # one pass, against OneVsRest(SGDClassifier) in the same run
    python benchmarks/mpu.py solvers    # J after as many seconds, by sgd and by newton
    python benchmarks/mpu.py labels --data yso_finna_en --passes 5 --device cuda

`scale` and `epoch` have synthetic data of RCV1's shape: up to 804,414 rows of 76 features drawn
from 47,236 by Zipf's law, and 101 labels, each true by a logistic model of 40 of the features,
half of them said. A pass of scikit-learn is `max_iter=1` of its logistic SGD for every label, one
label after the other; ours is one `Descent.epoch` on the same rows, both after a warm-up. `scale`
measures each size in a process of its own, so that the peak is its own; the exponent is the slope
of log time against log n. `solvers` are on bibtex, one level, c = 0.5.

`labels` hides half and then 80 % of the positives, as `tacit bench missing` does, and has what
that board has not: the levels apart, and logistic regression by the same passes ("BR, SGD"), each
with one setting, nothing tuned, beside GenEML and LEML of rank 100.

The last line is JSON, also written to `results/mpu-….json`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from scipy.special import expit

from tacit import LEML, MPU, GenEML, Labels

SIZES = (100_000, 200_000, 400_000, 804_414)
N_FEATURES, N_LABELS, PER_ROW = 47_236, 101, 76
SUBSET = 200_000  # rows of `epoch`
BATCH = 8192  # as a fit of all rows would have
COMPLETED = 4_000  # rows whose hidden labels are looked for
RATE = 0.3  # AdaGrad's, as these were measured; the default has become 1

console = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("scale", "epoch", "solvers", "labels"))
    parser.add_argument("--size", type=int, help="of scale, only this one, in this process")
    parser.add_argument("--data", default="yso_finna_en", help="of labels, like all that follow")
    parser.add_argument("--rates", nargs="+", type=float, default=[0.5, 0.8])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--passes", type=int, default=10, help="of MPU and BR, SGD")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(fitted(options.size)))
        return
    name, parts = options.part, {"scale": scale, "epoch": epoch, "solvers": solvers}
    if name == "labels":
        name, found = f"labels-{options.data}", labels(options)
    else:
        found = parts[name]()
    line = json.dumps(found)
    Path(__file__).with_name("results").joinpath(f"mpu-{name}.json").write_text(line + "\n")
    print(line)


def scale() -> dict[str, Any]:
    rows = []
    for size in SIZES:
        command = [sys.executable, __file__, "scale", "--size", str(size)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(run.stdout.splitlines()[-1]))
        console.print(rows[-1])
    logs = np.log([[row["n"], row["fit s"]] for row in rows])
    slope = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
    return {"rows": rows, "exponent": round(float(slope), 3)}


def fitted(n: int) -> dict[str, Any]:
    X, Y = articles(n)
    warm_up()
    held = peak_gib()
    model = MPU(levels=2, rate=RATE, max_iter=10, batch_size=BATCH, random_state=0, verbose=True)
    start = time.perf_counter()
    model.fit(X, Y)
    seconds = time.perf_counter() - start
    return {
        "n": n,
        "features a row": round(X.nnz / n, 1),
        "fit s": round(seconds, 1),
        "passes": len(model.history_),
        "ms a row": round(1e3 * seconds / n, 3),
        "peak GiB": round(peak_gib(), 2),
        "of which before the fit": round(held, 2),
        "P@1 on the training rows, of what is said": precision(model, X, Y),
    }


def epoch() -> dict[str, Any]:
    from sklearn.linear_model import SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier

    X, Y = articles(SUBSET)
    warm_up()
    model = MPU(1, c=0.5, rate=RATE, batch_size=BATCH, max_iter=4, random_state=0)
    start = time.perf_counter()
    model.fit(X, Y)
    whole = time.perf_counter() - start
    ours = pass_seconds(model, X, Y)
    said = Y.positives.toarray()
    sgd = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one pass does not converge
        OneVsRestClassifier(sgd).fit(X, said)
    theirs = time.perf_counter() - start
    return {
        "n": SUBSET,
        "batch": BATCH,
        "ours, s a pass": round(ours, 3),
        "ours, four passes and all around them": round(whole, 2),
        "OneVsRest(SGDClassifier), s a pass": round(theirs, 2),
        "ratio": round(theirs / ours, 1),
    }


def pass_seconds(model: MPU, X: Any, Y: Labels) -> float:
    """The quickest of some passes over placed batches."""
    from tacit.methods.mpu import Trainer

    problem = model._problem(*model._rows(X, Y))
    rows = model._folded_batches(problem)
    c = np.full((1, N_LABELS), 0.5, np.float32)
    training = Trainer(model, problem, rows, c)()
    state, times = training.start(), []
    for _ in range(4):
        start = time.perf_counter()
        state, _ = training.step(state, model.max_iter)
        times.append(time.perf_counter() - start)
    return min(times)


def solvers() -> dict[str, Any]:
    from tacit.datasets import load

    data: Any = load("bibtex")
    labels = data.Y.as_positive_only()
    found = []
    for solver, passes in [
        ("sgd", 1), ("sgd", 3), ("sgd", 10), ("sgd", 30), ("sgd", 100),
        ("newton", 1), ("newton", 2), ("newton", 4), ("newton", 20),
    ]:  # fmt: skip
        model = MPU(1, c=0.5, rate=RATE, solver=solver, max_iter=passes, tol=1e-7, random_state=0)
        start = time.perf_counter()
        model.fit(data.X, labels)
        seconds = time.perf_counter() - start
        F = model.decision_function(data.X)
        p = 0.5 * expit(F.astype(float))
        said = labels.positives.toarray() > 0
        J = -np.sum(np.where(said, np.log(p), np.log1p(-p)))
        J += 0.05 * float(np.sum(model.model_.W.astype(float) ** 2))
        ndcg = round(model.score(data.X_test, data.Y_test), 4)
        row = {"solver": solver, "passes": len(model.history_), "s": round(seconds, 2)}
        found.append(row | {"J": round(float(J), 1), "nDCG@5": ndcg})
        console.print(found[-1])
    return {"data": "bibtex", "rows": found}


MODELS: dict[str, Any] = {
    "MPU": MPU(3, rate=RATE),
    "MPU, two levels": MPU(2, rate=RATE),
    "MPU, base level": MPU(1, rate=RATE),
    "BR, SGD": MPU(1, c=1.0, rate=RATE),
    "GenEML": GenEML(100, max_iter=5, tol=0),
    "LEML": LEML(100, reg=0.1, max_iter=3),
}


def labels(options: argparse.Namespace) -> dict[str, Any]:
    from tacit.bench.work import percent, prepared
    from tacit.metrics import recall_at_k

    found = []
    for rate in options.rates:
        cell = {"data": options.data, "mechanism": "positives", "rate": rate, "seed": 0}
        work = prepared(cell)
        some = np.random.default_rng(0).permutation(len(work.said))[:COMPLETED]
        for name in options.models:
            model = MODELS[name].set_params(device=options.device, random_state=0)
            if isinstance(model, MPU):
                model.set_params(max_iter=options.passes)
            start = time.perf_counter()
            model.fit(work.X, work.said.as_positive_only())
            row = {"model": name, "hidden": rate, "fit s": round(time.perf_counter() - start, 1)}
            completed = model.complete(work.X[some], work.said[some], 20).by_row(len(some), 20)
            recall = percent(recall_at_k(work.hidden[some], completed, 20))
            found.append(row | work.figures(model.top_k(work.X_test, 5)) | {"R@20": recall})
            console.print(found[-1])
    about = {"data": options.data, "device": options.device, "passes": options.passes}
    return about | {"rows": found}


def articles(n: int) -> tuple[sp.csr_array, Labels]:
    """Rows of words by Zipf's law; labels by a logistic model of some words, half of them said."""
    rng = np.random.default_rng(0)
    frequency = 1 / (10 + np.arange(N_FEATURES))
    edges = np.cumsum(frequency / frequency.sum())
    W = np.zeros((N_FEATURES, N_LABELS), np.float32)
    for label in range(N_LABELS):
        W[rng.choice(5000, 40, replace=False), label] = rng.normal(2, 1, 40)
    parts, said = [], []
    for start in range(0, n, 50_000):
        rows = min(50_000, n - start)
        words = np.searchsorted(edges, rng.random((rows, PER_ROW + 4))).astype(np.int32)
        np.minimum(words, N_FEATURES - 1, out=words)
        pointer = np.arange(rows + 1) * words.shape[1]
        values = rng.random(words.size, np.float32) + np.float32(0.1)
        X = sp.csr_array((values, words.ravel(), pointer), shape=(rows, N_FEATURES))
        X.sum_duplicates()
        scores = X @ W
        true = rng.random(scores.shape, np.float32) < expit(scores - 3.5 - scores.std())
        said.append(sp.csr_array(true & (rng.random(true.shape, np.float32) < 0.5)))
        parts.append(X)
    X = sp.csr_array(sp.vstack(parts))
    X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)  # scikit-learn's
    return X, Labels.positive_only(sp.csr_array(sp.vstack(said)))


def warm_up() -> None:
    """Whatever is compiled, is compiled here."""
    X, Y = articles(2000)
    MPU(random_state=0, max_iter=3).fit(X, Y)


def precision(model: MPU, X: Any, Y: Labels) -> float:
    from tacit.metrics import precision_at_k

    return round(
        100 * float(precision_at_k(Y[:5000].as_complete(), model.top_k(X[:5000], 1), 1)), 1
    )


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
