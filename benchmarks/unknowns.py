"""Labels really unknown: toxcast, with its unmeasured cells left out or taken for a no.

    python benchmarks/unknowns.py

8,597 chemicals × 617 assays, of which 29 % of the cells were measured. The measured cells are cut
at random into five folds; each model learns from four of them and is scored on the fifth, by the
AUC of each label (averaged over those with both classes) and of all cells pooled. Rank and λ are
those of the best AUC per label on a fifth of the first fold's training cells. The last line is
JSON, also written to `results/unknowns.json`.
"""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from tacit import LEML
from tacit.baselines import BinaryRelevance, Popularity
from tacit.datasets import load
from tacit.labels import Labels
from tacit.metrics import auc_per_label

FOLDS = 5
RANKS, REGS = (10, 30), (0.3, 3.0)
PASSES = 6


def folds(labels: Labels) -> list[tuple[Labels, Labels]]:
    """(the rest, the fold), for each of five random folds of the observed cells."""
    cells = sp.coo_array(labels.said())
    fold = np.random.default_rng(0).integers(FOLDS, size=cells.nnz)

    def only(kept: np.ndarray) -> Labels:
        where = (cells.row[kept], cells.col[kept])
        observed = sp.csr_array((np.ones(kept.sum(), bool), where), shape=labels.shape)
        return Labels.masked(sp.csr_array(labels.positives.multiply(observed)), observed)

    return [(only(fold != i), only(fold == i)) for i in range(FOLDS)]


def aucs(held: Labels, scores: np.ndarray) -> tuple[float, float]:
    cells = sp.coo_array(held.said()).nonzero()
    said = np.asarray(held.positives[cells]).ravel()
    return auc_per_label(held, scores), float(roc_auc_score(said, scores[cells]))


def main() -> None:
    data = load("toxcast")
    splits = folds(data.Y)
    first, held = folds(splits[0][0])[0]
    leml: dict[str, Any] = dict(max_iter=PASSES, random_state=0)
    grid = [dict(rank=rank, reg=reg) for rank, reg in itertools.product(RANKS, REGS)]
    regs = [dict(reg=reg) for reg in (3.0, 30.0)]
    methods: list[tuple[str, Any, list[dict]]] = [
        ("Popularity", Popularity(), [{}]),
        ("BinaryRelevance, squared", BinaryRelevance(), regs),
        ("LEML, squared", LEML(**leml), grid),
        ("LEML, logistic", LEML(loss="logistic", **leml), grid),
    ]
    readings = {"left out": lambda labels: labels, "taken for no": Labels.as_complete}
    results = []
    table = Table("method", "unmeasured", "settings", "AUC per label", "AUC pooled", "s a fit")
    for (name, model, settings), (unmeasured, read) in itertools.product(methods, readings.items()):
        tried = []
        for setting in settings:
            model.set_params(**setting).fit(data.X, read(first))
            tried.append(round(aucs(held, model.decision_function(data.X))[0], 4))
        chosen = settings[int(np.argmax(tried))]
        model.set_params(**chosen)
        start, found = time.perf_counter(), []
        for train, test in splits:
            model.fit(data.X, read(train))
            found.append(aucs(test, model.decision_function(data.X)))
        seconds = round((time.perf_counter() - start) / FOLDS, 1)
        mean, sd = np.mean(found, axis=0).round(4), np.std(found, axis=0, ddof=1).round(4)
        result = dict(method=name, unmeasured=unmeasured, settings=chosen, held_out=tried)
        result |= {"AUC per label": [mean[0], sd[0]], "AUC pooled": [mean[1], sd[1]]}
        results.append(result | {"seconds a fit": seconds})
        Console(stderr=True).print(results[-1])
        shown = (f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, sd))
        table.add_row(name, unmeasured, str(chosen), *shown, str(seconds))
    Console(stderr=True).print(table)
    line = json.dumps({"data": "toxcast", "folds": FOLDS, "results": results})
    (Path(__file__).parent / "results" / "unknowns.json").write_text(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
