"""Completions beside what was really said later, by LEML and GenEML without and with fold-in.

    python benchmarks/completions.py debtags go_human [--methods GenEML Popularity …]

Models learn the old labels (debtags: those of Debian 11; go_human: those of 2020) and rank what
these leave unsaid, the 100 best a row; the truth is what the later release says and the old one
did not. λ is that of the best recall@20 on a fifth of the old positives, hidden from the model; the
later release chooses nothing (GenEML's λ are 1; free or tied codes are chosen). The last line is
JSON; `results/completions.json` keeps it, so that methods and data sets can be run separately.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from tacit import LEML, GenEML
from tacit.base import Completion
from tacit.baselines import Popularity, Ridge
from tacit.datasets import load
from tacit.labels import Labels
from tacit.missing import Positives, hide

RESULTS = Path(__file__).with_name("results") / "completions.json"
METHODS = ("Popularity", "Ridge", "LEML, silence is no", "LEML, positive-only", "GenEML")
REGS = [{"reg": 1.0}, {"reg": 10.0}]
GENEML = [{"embedding": embedding} for embedding in ("free", "tied")]
PASSES = 5
RIDGE_FEATURES = 10_000  # beyond this, XᵀX for ridge is not worth a benchmark's time
VALIDATION_ROWS = 4_000  # whose hidden labels choose λ


class Task(NamedTuple):
    X: Any
    old: Labels
    added: sp.csr_array


def task(name: str) -> Task:
    data = load(name)
    if name == "debtags":
        kept = data.extra["in_bullseye"] == "1"
        X, old, new = data.X[kept], data.extra["Y_bullseye"][kept], data.Y[kept]
    else:
        X, old, new = data.X, data.Y, data.extra["Y_2022"]
    return Task(X, old, sp.csr_array(new.positives > old.positives))


def figures(found: Completion, added: sp.csr_array) -> dict[str, float]:
    """Hits among the best completions overall, and recall of the best 20 of a row that gained."""
    hit = np.asarray(added[found.row, found.label]).ravel()
    by_row = np.argsort(found.row, kind="stable")
    rows = found.row[by_row]
    best = by_row[np.arange(len(rows)) - np.searchsorted(rows, rows) < 20]
    gained = np.diff(added.indptr)
    hits = np.bincount(found.row[best][hit[best]], minlength=len(gained))
    return {
        "hits in 1,000": int(hit[:1_000].sum()),
        "hits in 10,000": int(hit[:10_000].sum()),
        "recall@20": round(float((hits[gained > 0] / gained[gained > 0]).mean()), 4),
    }


def completed(model: Any, X: Any, Y: Labels) -> dict[str, Completion]:
    """What a model completes, by how it uses what was said of a row."""
    if not isinstance(model, LEML | GenEML):
        return {"–": model.complete(X, Y, 100)}
    return {
        "without": model.complete(X, Y, 100, fold_in=False),
        "with": model.complete(X, Y, 100, fold_in=True),
    }


def compare(name: str, rank: int, chosen: list[str]) -> list[dict[str, Any]]:
    given = task(name)
    left, hidden = hide(given.old, Positives(0.2), random_state=0)
    rows = np.random.default_rng(0).permutation(len(left))[:VALIDATION_ROWS]
    leml = LEML(rank, max_iter=PASSES, random_state=0)
    geneml = GenEML(rank, max_iter=PASSES, random_state=0)
    no, unsaid = Labels.as_complete, Labels.as_positive_only  # what silence is
    methods: list[tuple[Any, list[dict[str, float]], Any]] = [
        (Popularity(), [{}], no),
        (Ridge(), REGS, no),
        (leml, REGS, no),
        (leml, REGS, unsaid),
        (geneml, GENEML, unsaid),
    ]
    results = []
    for method, (model, grid, read) in zip(METHODS, methods):
        if method not in chosen:
            continue
        if isinstance(model, Ridge) and given.X.shape[1] > RIDGE_FEATURES:
            continue
        best = grid[0]
        if len(grid) > 1:
            recalls = []
            for settings in grid:
                model.set_params(**settings).fit(given.X, read(left))
                alone = {} if isinstance(model, Ridge) else {"fold_in": False}
                found = model.complete(given.X[rows], left[rows], 20, **alone)
                recalls.append(figures(found, hidden[rows])["recall@20"])
            best = grid[int(np.argmax(recalls))]
        start = time.perf_counter()
        model.set_params(**best).fit(given.X, read(given.old))
        reg = best.get("reg", best.get("embedding"))
        about: dict[str, Any] = {"data": name, "method": method, "λ": reg}
        about["fit seconds"] = round(time.perf_counter() - start, 1)
        for fold_in, found in completed(model, given.X, given.old).items():
            results.append(about | {"fold-in": fold_in} | figures(found, given.added))
            Console(stderr=True).print(results[-1])
    return results


def merged(results: list[dict[str, Any]], rank: int) -> list[dict[str, Any]]:
    """Those results, and the ones on file for other methods and data sets at this rank."""
    kept: dict[str, Any] = {"rank": rank, "results": []}
    if RESULTS.exists():
        kept = json.loads(RESULTS.read_text())
    which = lambda result: (result["data"], result["method"])
    new = {which(result) for result in results}
    old = kept["results"] if kept["rank"] == rank else []
    every = [result for result in old if which(result) not in new] + results
    return sorted(every, key=lambda result: (result["data"], METHODS.index(result["method"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["debtags", "go_human"])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    results = [
        result for name in options.data for result in compare(name, options.rank, options.methods)
    ]
    results = merged(results, options.rank)
    table = Table(*results[0])
    for result in results:
        table.add_row(*("–" if value is None else str(value) for value in result.values()))
    Console(stderr=True).print(table)
    line = json.dumps({"rank": options.rank, "results": results}, ensure_ascii=False)
    RESULTS.write_text(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
