"""LEML where data are large: accuracy, time and peak memory.

    python benchmarks/leml.py yso_finna_en --reg 1 --ceiling
    python benchmarks/leml.py yso_finna_en --positive-only --reg 0.3 --max-iter 3
    python benchmarks/leml.py synthetic --device cuda

`synthetic` is sparse random data of the size of yso_finna_en. The last line is JSON, for
`benchmarks/results/`. Accuracy on smaller data is `tacit bench missing`'s.
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
from tacit.labels import Labels
from tacit.metrics import precision_at_k


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
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--reg", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--positive-only", action="store_true", help="silence weighs less")
    parser.add_argument("--ceiling", action="store_true", help="what a basis of that rank allows")
    options = parser.parse_args()

    if options.data == "synthetic":
        X, Y, X_test, Y_test = synthetic()
    else:
        from tacit.datasets import load

        data = load(options.data)
        X, Y, X_test, Y_test = data.X, data.Y, data.X_test, data.Y_test
    results = {"ceiling": ceiling(Y, Y_test, options.rank)} if options.ceiling else {}
    model = LEML(options.rank, reg=options.reg, max_iter=options.max_iter, device=options.device)
    model.set_params(random_state=0, verbose=True)
    start = time.perf_counter()
    model.fit(X, Y.as_positive_only() if options.positive_only else Y)
    seconds = round(time.perf_counter() - start, 1)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    found = {"fit seconds": seconds, "passes": model.n_iter_, "peak GiB so far": peak}
    found |= evaluate(model, X_test, Y_test)
    Console(stderr=True).print(found)
    results[f"LEML rank {options.rank} λ {options.reg:g}"] = found
    print(json.dumps({"data": options.data, "device": options.device, "results": results}))


if __name__ == "__main__":
    main()
