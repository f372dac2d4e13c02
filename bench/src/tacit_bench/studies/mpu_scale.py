"""How MPU's time and memory grow with the rows, up to the size of all of RCV1.

Data are synthetic and of RCV1's shape: up to 804,414 rows of 76 features drawn from 47,236 by
Zipf's law, and 101 labels, each true by a logistic model of 40 of the features, half of them said.
Two levels are trained, at the rate of 0.3 and with the ten passes a training that were the defaults
when this was first measured. The exponent is the slope of log seconds against log n.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from scipy.special import expit

from tacit import MPU, Labels
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study, tabulate
from tacit_bench.work import percent

__all__ = ["BATCH", "RATE", "STUDY", "articles"]

SIZES = (100_000, 200_000, 400_000, 804_414)
N_FEATURES, N_LABELS, PER_ROW = 47_236, 101, 76
RATE, BATCH, PASSES = 0.3, 8192, 10
SCORED = 5000  # of the training rows


def cells() -> list[Cell]:
    return [{"n": n} for n in SIZES]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Time a fit, and see that it has learned something."""
    model = MPU(levels=2, rate=RATE, batch_size=BATCH, device=device, random_state=0)
    model.set_params(max_iter=1).fit(*articles(100))  # compiles
    model.set_params(max_iter=PASSES)
    X, Y = articles(cell["n"])
    start = time.perf_counter()
    model.fit(X, Y)
    seconds = time.perf_counter() - start
    said, top = Y[:SCORED].as_complete(), model.top_k(X[:SCORED], 1)
    return {
        "features a row": round(X.nnz / cell["n"], 1),
        "fit s": round(seconds, 1),
        "passes": len(model.history_),
        "ms a row": round(1e3 * seconds / cell["n"], 3),
        "P@1 on the training rows, of what is said": percent(precision_at_k(said, top, 1)),
    }


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


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the sizes, and the exponent."""
    tabulate(rows, console)
    measured = [row for row in rows if "found" in row]
    if len(measured) > 1:
        n = np.log([row["cell"]["n"] for row in measured])
        slope, _ = np.polyfit(n, np.log([row["found"]["fit s"] for row in measured]), 1)
        console.print(f"Seconds grow as n to the power of {slope:.2f}.")


STUDY = Study(
    "mpu_scale",
    "How do MPU's time and memory grow with the rows, up to the size of all of RCV1?",
    cells,
    measure,
    tiny=[{"n": 100}, {"n": 200}],
    show=show,
)
