"""LEML where labels are many and rare: accuracy, time and memory, silence read as no or weighed.

Beside the fits stands what their rank allows: P@k of the true test labels, seen through the best
basis of that rank for the training ones. A model of that rank with perfect codes for silence as no
would score about this. "synthetic" is sparse random data of the size of yso_finna_en, on which only
time and memory say anything. Precisions are shares.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from tacit import LEML
from tacit.backends.numpy import NumpyBackend
from tacit.datasets import Dataset
from tacit.labels import Labels, TopK
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import loaded

__all__ = ["STUDY"]

ALLOWED = "what the rank allows"
READ = {"silence weighs less": Labels.as_positive_only, "silence is no": Labels.as_complete}


def cells() -> list[Cell]:
    real, made = "yso_finna_en", "synthetic"
    return [
        {"data": real, "what": "silence weighs less", "rank": 100, "reg": 0.3, "max_iter": 3},
        {"data": real, "what": "silence is no", "rank": 100, "reg": 1.0, "max_iter": 20},
        {"data": real, "what": ALLOWED, "rank": 100},
        {"data": made, "what": "silence is no", "rank": 100, "reg": 1.0, "max_iter": 20},
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Fit and rank the labels of the test rows, or look at the labels alone."""
    data: Any = synthetic() if cell["data"] == "synthetic" else loaded(cell["data"])
    if cell["what"] == ALLOWED:
        return allowed(data.Y, data.Y_test, cell["rank"])
    settings = {name: cell[name] for name in ("rank", "reg", "max_iter")}
    model = LEML(**settings, device=device, random_state=0)
    start = time.perf_counter()
    model.fit(data.X, READ[cell["what"]](data.Y))
    fitted = time.perf_counter()
    top = model.top_k(data.X_test, 5)
    times = {
        "fit s": round(fitted - start, 1),
        "predict s": round(time.perf_counter() - fitted, 4),
        "passes": model.n_iter_,
    }
    return times | precisions(data.Y_test, top)


def precisions(Y: Labels, top: TopK) -> dict[str, float]:
    found = np.atleast_1d(precision_at_k(Y, top, (1, 3, 5)))
    return {f"P@{k}": round(float(p), 4) for k, p in zip((1, 3, 5), found)}


def allowed(Y: Labels, Y_test: Labels, rank: int) -> dict[str, float]:
    """P@k of the true test labels, seen through the best basis for the training ones."""
    _, s, Vt = svds(Y.to_sparse().astype(np.float32), k=rank, rng=0)
    V = np.ascontiguousarray(Vt.T)
    top = NumpyBackend().top_k(Y_test.to_sparse() @ V, V, 5)
    share = float((s**2).sum()) / Y.positives.nnz
    return precisions(Y_test, top) | {"share of ‖Y‖²": round(share, 4)}


def synthetic(n: int = 636_158, d: int = 46_227, n_labels: int = 21_374) -> Dataset:
    """Rows of some eight words and two labels, skewed as both are; a tenth to test on."""
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
    return Dataset("synthetic", X[:cut], Y[:cut], X_test=X[cut:], Y_test=Y[cut:])


STUDY = Study(
    "leml_many_labels",
    "How accurate, fast and large is LEML with 21,374 rare labels, and must silence weigh less?",
    cells,
    measure,
    tiny=[
        {"data": "random", "what": what, "rank": 5, "reg": 1.0, "max_iter": 3}
        for what in (*READ, ALLOWED)
    ],
)
