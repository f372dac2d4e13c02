"""Completions beside what was really said later: popularity, ridge, LEML without and with fold-in.

    python benchmarks/completions.py debtags go_human

Models learn the old labels (debtags: those of Debian 11; go_human: those of 2020) and rank what
these leave unsaid, the 100 best a row; the truth is what the later release says and the old one
did not. λ is that of the best recall@20 on a fifth of the old positives, hidden from the model; the
later release chooses nothing. The last line is JSON, also written to `results/completions.json`.
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

from tacit import LEML
from tacit.base import Completion
from tacit.baselines import Popularity, Ridge
from tacit.datasets import load
from tacit.labels import Labels
from tacit.missing import Positives, hide

REGS = (1.0, 10.0)
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
    if not isinstance(model, LEML):
        return {"–": model.complete(X, Y, 100)}
    return {
        "without": model.complete(X, Y, 100, fold_in=False),
        "with": model.complete(X, Y, 100),
    }


def compare(name: str, rank: int) -> list[dict[str, Any]]:
    given = task(name)
    left, hidden = hide(given.old, Positives(0.2), random_state=0)
    rows = np.random.default_rng(0).permutation(len(left))[:VALIDATION_ROWS]
    leml = LEML(rank, max_iter=PASSES, random_state=0)
    methods: list[tuple[str, Any, Any]] = [
        ("Popularity", Popularity(), Labels.as_complete),
        ("Ridge", Ridge(), Labels.as_complete),
        ("LEML, silence is no", leml, Labels.as_complete),
        ("LEML, positive-only", leml, Labels.as_positive_only),
    ]
    results = []
    for method, model, read in methods:
        if isinstance(model, Ridge) and given.X.shape[1] > RIDGE_FEATURES:
            continue
        reg = None
        if not isinstance(model, Popularity):
            recalls = []
            for reg in REGS:
                model.set_params(reg=reg).fit(given.X, read(left))
                alone = {} if isinstance(model, Ridge) else {"fold_in": False}
                found = model.complete(given.X[rows], left[rows], 20, **alone)
                recalls.append(figures(found, hidden[rows])["recall@20"])
            reg = REGS[int(np.argmax(recalls))]
            model.set_params(reg=reg)
        start = time.perf_counter()
        model.fit(given.X, read(given.old))
        about: dict[str, Any] = {"data": name, "method": method, "λ": reg}
        about["fit seconds"] = round(time.perf_counter() - start, 1)
        for fold_in, found in completed(model, given.X, given.old).items():
            results.append(about | {"fold-in": fold_in} | figures(found, given.added))
            Console(stderr=True).print(results[-1])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["debtags", "go_human"])
    parser.add_argument("--rank", type=int, default=100)
    options = parser.parse_args()
    results = [result for name in options.data for result in compare(name, options.rank)]
    table = Table(*results[0])
    for result in results:
        table.add_row(*("–" if value is None else str(value) for value in result.values()))
    Console(stderr=True).print(table)
    line = json.dumps({"rank": options.rank, "results": results}, ensure_ascii=False)
    (Path(__file__).parent / "results" / "completions.json").write_text(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
