"""Top 5 by an index of the labels, beside the exact top 5 of all scores, in one run.

    python benchmarks/search.py
    python benchmarks/search.py --n-labels 4000 20000 --accuracy 16 64 256

Random label factors of rank 100 in float32. Their norms are log-normal with σ = 1.2, as those of
LEML on yso_finna_en are: a long tail of rare labels with small factors. A row's code is the sum of
the directions of three labels, drawn in proportion to their norms, and noise.

Many rows at once, exact scores are one matrix product; a row alone, as a service is asked, has to
read all of H. "rows to repay" is how many rows at once the time to build the index buys.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tacit.backends.numpy import NumpyBackend
from tacit.engines.index import LabelIndex

RANK, ROWS, ALONE, K = 100, 1_000, 100, 5
COLUMNS = [
    "n_labels", "accuracy", "recall@5", "build s", "exact ms a row", "index ms a row",
    "times faster", "rows to repay", "alone: exact ms", "alone: index ms", "alone: times faster",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [4_000, 20_000, 100_000, 400_000]
    parser.add_argument("--n-labels", type=int, nargs="+", default=sizes)
    parser.add_argument("--accuracy", type=int, nargs="+", default=[64])
    options = parser.parse_args()
    console, results = Console(stderr=True, width=160), []
    table = Table(*COLUMNS)
    for n_labels in options.n_labels:
        H, codes = factors(n_labels, np.random.default_rng(0))
        for accuracy in options.accuracy:
            results.append(compare(H, codes, accuracy))
            table.add_row(*map(str, results[-1]))
            console.log(*results[-1])  # the larger sizes take minutes
    console.print(table)
    print(json.dumps({"rank": RANK, "results": [dict(zip(COLUMNS, r)) for r in results]}))


def factors(n_labels: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    directions = rng.standard_normal((n_labels, RANK), np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    norms = np.exp(1.2 * rng.standard_normal(n_labels, np.float32))
    three = rng.choice(n_labels, (ROWS, 3), p=norms / norms.sum(dtype=np.float64))
    noise = rng.standard_normal((ROWS, RANK), np.float32) / np.float32(np.sqrt(RANK))
    return norms[:, None] * directions, directions[three].sum(axis=1) + noise


def compare(H: np.ndarray, codes: np.ndarray, accuracy: int) -> list[float | None]:
    start = time.perf_counter()
    index = LabelIndex.of(H, accuracy=accuracy)
    build = time.perf_counter() - start
    exact: Callable[[Any], Any] = lambda C: NumpyBackend().top_k(C, H, K)
    search: Callable[[Any], Any] = lambda C: index.search(C, K)
    pairs = zip(exact(codes).indices, search(codes).indices)
    recall = float(np.mean([np.isin(best, found).mean() for best, found in pairs]))
    at_once = [1e3 * seconds(f, [codes]) / ROWS for f in (exact, search)]
    single = [codes[i : i + 1] for i in range(ALONE)]
    alone = [1e3 * seconds(f, single) / ALONE for f in (exact, search)]
    gain = (at_once[0] - at_once[1]) / 1e3
    repay = round(build / gain) if gain > 0 else None
    return [
        len(H), accuracy, round(recall, 3), round(build, 1),
        *(round(t, 3) for t in at_once), round(at_once[0] / at_once[1], 1), repay,
        *(round(t, 3) for t in alone), round(alone[0] / alone[1], 1),
    ]  # fmt: skip


def seconds(f: Callable[[Any], Any], queries: list[np.ndarray], repeat: int = 3) -> float:
    """The best of a few runs over all the queries."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for query in queries:
            f(query)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
