"""LEML on one data set: accuracy, time and peak memory, beside tuned ridge where it fits.

    python benchmarks/leml.py bibtex --rank 0.6 --reg 3
    python benchmarks/leml.py yso_finna_en --rank 100 --reg 1 --ceiling
    python benchmarks/leml.py synthetic --device cuda

A rank below 1 is a share of the labels. `synthetic` is sparse random data of the size of
yso_finna_en. The last line is JSON, for `benchmarks/results/`. Published figures are in the
docs page of the method.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from scipy.sparse.linalg import svds

from tacit import LEML
from tacit.backends.numpy import NumpyBackend
from tacit.baselines import Ridge
from tacit.labels import DENSE_LIMIT, Labels
from tacit.metrics import auc_per_instance, precision_at_k

RIDGE_FEATURES = 10_000  # beyond this, XᵀX for ridge is not worth a benchmark's time


def synthetic(n: int = 636_158, d: int = 46_227, n_labels: int = 21_374) -> tuple:
    rng = np.random.default_rng(0)

    def matrix(width: int, per_row: int) -> sp.csr_array:
        columns = (width * rng.random(n * per_row) ** 3).astype(np.int32)
        pointer = np.arange(0, n * per_row + 1, per_row)
        S = sp.csr_array((np.ones(n * per_row, np.float32), columns, pointer), shape=(n, width))
        S.sum_duplicates()
        S.data[:] = 1
        return S

    X, Y = matrix(d, 8), Labels.complete(matrix(n_labels, 2))
    cut = int(0.9 * n)
    return X[:cut], Y[:cut], X[cut:], Y[cut:]


def evaluate(model, X, Y) -> dict[str, float]:
    start = time.perf_counter()
    figures = dict(zip(("P@1", "P@3", "P@5"), precision_at_k(Y, model.top_k(X, 5), (1, 3, 5))))
    figures["predict seconds"] = time.perf_counter() - start
    if X.shape[0] * Y.n_labels <= DENSE_LIMIT:
        figures["AUC per instance"] = auc_per_instance(Y, model.decision_function(X))
    return {name: round(float(value), 4) for name, value in figures.items()}


def ceiling(Y: Labels, Y_test: Labels, rank: int) -> dict[str, float]:
    """P@k of the true test labels, seen through the best basis of that rank for the training ones.

    A model of that rank with perfect codes would score about this.
    """
    _, s, Vt = svds(Y.to_sparse().astype(np.float32), k=rank, rng=0)
    V = np.ascontiguousarray(Vt.T)
    top = NumpyBackend().top_k(Y_test.to_sparse() @ V, V, 5)
    figures = dict(zip(("P@1", "P@3", "P@5"), precision_at_k(Y_test, top, (1, 3, 5)).round(4)))
    return figures | {"share of ‖Y‖²": round(float((s**2).sum()) / Y.positives.nnz, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--rank", type=float, default=100)
    parser.add_argument("--reg", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ceiling", action="store_true", help="what a basis of that rank allows")
    options = parser.parse_args()

    if options.data == "synthetic":
        X, Y, X_test, Y_test = synthetic()
    else:
        from tacit.datasets import load

        data = load(options.data)
        X, Y, X_test, Y_test = data.X, data.Y, data.X_test, data.Y_test
    rank = int(options.rank if options.rank >= 1 else round(options.rank * Y.n_labels))
    models = {
        f"LEML rank {rank} λ {options.reg:g}": LEML(
            rank=rank,
            reg=options.reg,
            max_iter=options.max_iter,
            device=options.device,
            random_state=0,
            verbose=True,
        )
    }
    if X.shape[1] <= RIDGE_FEATURES:
        models |= {
            f"Ridge λ {reg}": Ridge(reg=reg, device=options.device) for reg in (0.3, 1, 3, 10)
        }
    results = {"ceiling": ceiling(Y, Y_test, rank)} if options.ceiling else {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X, Y)
        seconds = round(time.perf_counter() - start, 1)
        peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
        results[name] = {"fit seconds": seconds, "passes": model.n_iter_, "peak GiB so far": peak}
        results[name] |= evaluate(model, X_test, Y_test)
        Console(stderr=True).print(name, results[name])
    print(json.dumps({"data": options.data, "device": options.device, "results": results}))


if __name__ == "__main__":
    main()
