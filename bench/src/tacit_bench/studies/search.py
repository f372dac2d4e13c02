"""Top 5 by an index of the labels, beside the exact top 5 of all scores.

Random label factors of rank 100 in float32. Their norms are log-normal with σ = 1.2, as those of
LEML on yso_finna_en are: a long tail of rare labels with small factors. A row's code is the sum of
the directions of three labels, drawn in proportion to their norms, and noise.

Many rows at once, exact scores are one matrix product; a row alone, as a service is asked, has to
read all of H. "rows to repay" is how many rows at once the time to build the index buys.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.backends.numpy import NumpyBackend
from tacit.engines.index import LabelIndex
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import quickest

__all__ = ["STUDY"]

RANK, ROWS, ALONE, K = 100, 1_000, 100, 5


def cells() -> list[Cell]:
    return [
        *({"labels": n, "accuracy": 64} for n in (4_000, 20_000, 100_000, 400_000)),
        *({"labels": n, "accuracy": accuracy} for n in (4_000, 20_000) for accuracy in (16, 256)),
    ]


def measure(cell: Cell) -> dict[str, Any]:
    """How many of the best are found, and how long both ways take."""
    H, codes = _factors(cell["labels"], np.random.default_rng(0))
    start = time.perf_counter()
    index = LabelIndex.of(H, accuracy=cell["accuracy"])
    build = time.perf_counter() - start
    exact: Callable[[Any], Any] = lambda C: NumpyBackend().top_k(C, H, K)
    search: Callable[[Any], Any] = lambda C: index.search(C, K)
    pairs = zip(exact(codes).indices, search(codes).indices)
    recall = np.mean([np.isin(best, found).mean() for best, found in pairs])
    single = [codes[i : i + 1] for i in range(ALONE)]
    ours, theirs = (_milliseconds(f, [codes], ROWS) for f in (search, exact))
    alone, theirs_alone = (_milliseconds(f, single, ALONE) for f in (search, exact))
    gain = (theirs - ours) / 1e3  # seconds a row
    return {
        "recall@5": round(float(recall), 3),
        "build s": round(build, 1),
        "exact ms a row": round(theirs, 3),
        "index ms a row": round(ours, 3),
        "times faster": round(theirs / ours, 1),
        "rows to repay": round(build / gain) if gain > 0 else None,
        "alone: exact ms": round(theirs_alone, 3),
        "alone: index ms": round(alone, 3),
        "alone: times faster": round(theirs_alone / alone, 1),
    }


def _factors(n_labels: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    directions = rng.standard_normal((n_labels, RANK), np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    norms = np.exp(1.2 * rng.standard_normal(n_labels, np.float32))
    three = rng.choice(n_labels, (ROWS, 3), p=norms / norms.sum(dtype=np.float64))
    noise = rng.standard_normal((ROWS, RANK), np.float32) / np.float32(np.sqrt(RANK))
    return norms[:, None] * directions, directions[three].sum(axis=1) + noise


def _milliseconds(f: Callable[[Any], Any], queries: list[np.ndarray], n_rows: int) -> float:
    """Of one of `n_rows` rows, which come in these queries."""
    return 1e3 * quickest(lambda: [f(query) for query in queries]) / n_rows


STUDY = Study(
    "search",
    "When is the top 5 found by an index of the labels, and how much sooner than exactly?",
    cells,
    measure,
    tiny=[{"labels": 500, "accuracy": 64}],
)
