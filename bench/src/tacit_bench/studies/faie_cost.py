"""A fit of FaIE from the Gram triple, against the paper's way by an n × n matrix.

Where `explicit`, the same scores are also found by the n × n matrix and its leading eigenvectors
(ARPACK). Elsewhere only its size is told: the peak memory of the fit is to be seen beside it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from tacit import FaIE
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]


def cells() -> list[Cell]:
    return [
        {"data": "delicious", "rank": 98, "alpha": 1000.0, "reg": 1e-3, "explicit": True},
        {"data": "eurlex57k", "rank": 100, "alpha": 10.0, "reg": 1.0, "explicit": False},
    ]


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds of a fit, P@k in %, and what the n × n matrix takes."""
    data: Any = loaded(cell["data"])
    X, Y = data.X, data.Y
    model = FaIE(cell["rank"], alpha=cell["alpha"], reg=cell["reg"])
    if cell["explicit"]:
        X, Y = sp.csr_array(X).toarray().astype(float), Y.positives.toarray().astype(float)
        model.set_params(normalize=None)
    model.fit(X[:200], Y[:200])  # compiles
    start = time.perf_counter()
    model.fit(X, Y)
    seconds = time.perf_counter() - start
    found: dict[str, Any] = {"n": X.shape[0], "fit s": round(seconds, 2)}
    if cell["explicit"]:
        formed, explicit, scores = _explicit(X, Y, **{k: cell[k] for k in ("rank", "alpha", "reg")})
        return found | {
            "n × n s": round(explicit, 2),
            "of which forming it": round(formed, 2),
            "ratio": round(explicit / seconds, 1),
            "largest difference of a score": float(abs(model.decision_function(X) - scores).max()),
        }
    precisions: Any = precision_at_k(data.Y_test, model.top_k(data.X_test, 5), (1, 3, 5))
    found |= dict(zip(("P@1", "P@3", "P@5"), map(percent, precisions)))
    return found | {"n × n GiB": round(8 * X.shape[0] ** 2 / 2**30, 1)}


def _explicit(
    X: np.ndarray, Y: np.ndarray, rank: int, alpha: float, reg: float
) -> tuple[float, float, np.ndarray]:
    """Seconds until the matrix is there, seconds in all, and the scores."""
    start = time.perf_counter()
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    G = Xc.T @ Xc + reg * np.eye(X.shape[1])
    K = Yc @ Yc.T
    K += alpha * (Xc @ np.linalg.solve(G, Xc.T))
    formed = time.perf_counter() - start
    _, C = eigsh(K, rank, which="LA")
    scores = Xc @ np.linalg.solve(G, Xc.T @ C) @ (C.T @ Yc) + Y.mean(axis=0)
    return formed, time.perf_counter() - start, scores


STUDY = Study(
    "faie_cost",
    "What does FaIE save by never forming its n × n matrix?",
    cells,
    measure,
    tiny=[
        {"data": "random", "rank": 4, "alpha": 10.0, "reg": 1.0, "explicit": explicit}
        for explicit in (True, False)
    ],
)
