"""Weighted Grams and their solves: the packed verbs beside NumPy, in one run.

    python benchmarks/packed.py [--rank 100] [--dtype float32] [--repeats 5]

The two shapes are the M-steps of GenEML on bibtex: 1,024 rows with 159 labels each, and 159 labels
with 1,024 rows. Rounds alternate between the contestants and the best of each is kept, because
machines are noisy: read the ratios, not the seconds. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.backends.numpy import NumpyBackend

SHAPES = [(159, 1024), (1024, 159)]
SQUARE = 2000  # of the product that gives the machine's GEMM rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    results = [measure(r, m, options.rank, options.dtype, options.repeats) for r, m in SHAPES]
    print(json.dumps({"rank": options.rank, "dtype": options.dtype, "results": results}))


def measure(r: int, m: int, k: int, dtype: str, repeats: int) -> dict[str, Any]:
    rng, backend = np.random.default_rng(0), NumpyBackend()
    A, weights = rng.standard_normal((r, k)).astype(dtype), rng.random((r, m)).astype(dtype)
    B, reg = rng.standard_normal((m, k)).astype(dtype), np.ones(k, dtype)
    square = rng.random((SQUARE, SQUARE)).astype(dtype)
    full, packed = batched_grams(A, weights, reg), backend.packed_grams(A, weights)
    seconds = best_of(
        {
            "loop": lambda: loop(A, weights, B, reg),
            "batched Grams": lambda: batched_grams(A, weights, reg),
            "batched solve": lambda: np.linalg.solve(full, B[..., None])[..., 0],
            "batched Cholesky": lambda: np.linalg.cholesky(full),  # without the two substitutions
            "packed_grams": lambda: backend.packed_grams(A, weights),
            "solve_packed": lambda: backend.solve_packed(packed, B, reg),
            "square GEMM": lambda: square @ square,
        },
        repeats,
    )
    ours = backend.solve_packed(packed, B, reg)
    np.testing.assert_allclose(ours, loop(A, weights, B, reg), rtol=0, atol=1e-3)

    both = seconds["packed_grams"] + seconds["solve_packed"]
    rate = len(packed) * r * m * 2 / seconds["packed_grams"]
    share = rate / (2 * SQUARE**3 / seconds["square GEMM"])
    batched = seconds["batched Grams"] + seconds["batched solve"]
    print(f"k = {k}, r = {r:,}, m = {m:,}, {dtype}")
    for name, s in seconds.items():
        print(f"  {name:<17}{1e3 * s:9.1f} ms")
    print(
        f"  both verbs       {1e3 * both:9.1f} ms;  the loop takes {seconds['loop'] / both:.1f}",
        end="",
    )
    print(f" times that, NumPy batched {batched / both:.1f} times")
    print(f"  packed_grams runs at {share:.0%} of the rate of a square GEMM")
    return {
        "r": r,
        "m": m,
        "seconds": {name: round(s, 6) for name, s in seconds.items()},
        "loop / verbs": round(seconds["loop"] / both, 2),
        "batched / verbs": round(batched / both, 2),
        "batched solve / solve_packed": round(
            seconds["batched solve"] / seconds["solve_packed"], 2
        ),
        "GEMM share": round(share, 3),
    }


def loop(A: np.ndarray, weights: np.ndarray, B: np.ndarray, reg: np.ndarray) -> np.ndarray:
    """One problem after the other, as one would write it first."""
    ridge = np.diag(reg)
    return np.array([np.linalg.solve((A.T * w) @ A + ridge, b) for w, b in zip(weights.T, B)])


def batched_grams(A: np.ndarray, weights: np.ndarray, reg: np.ndarray) -> np.ndarray:
    return np.matmul(A.T * weights.T[:, None, :], A) + np.diag(reg)


def best_of(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    for run in contestants.values():
        run()  # compile, and touch the memory
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
