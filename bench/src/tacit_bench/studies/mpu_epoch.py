"""A pass of MPU's base level beside one of scikit-learn's logistic SGD for each label.

A pass of scikit-learn is `max_iter=1` of `OneVsRestClassifier(SGDClassifier)`, one label after the
other; ours is one pass of AdaGrad over placed batches, for all labels at once. Both run in the same
process on the same rows, those of the study `mpu_scale`.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from tacit import MPU, Labels
from tacit.methods.mpu.held_out import given_rates
from tacit.methods.mpu.stacking import level_under
from tacit_bench.board import Cell
from tacit_bench.studies.mpu_scale import BATCH, RATE, articles
from tacit_bench.study import Study
from tacit_bench.timing import quickest

__all__ = ["STUDY"]

C = 0.5


def cells() -> list[Cell]:
    return [{"n": 200_000}]


def measure(cell: Cell) -> dict[str, Any]:
    """Time a pass of each."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier

    model = MPU(1, c=C, rate=RATE, batch_size=BATCH, max_iter=4, random_state=0)
    model.fit(*articles(100))  # compiles
    X, Y = articles(cell["n"])
    start = time.perf_counter()
    model.fit(X, Y)
    whole = time.perf_counter() - start
    ours = pass_seconds(model, X, Y)
    said = Y.positives.toarray()
    sgd = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one pass does not converge
        OneVsRestClassifier(sgd).fit(X, said)
    theirs = time.perf_counter() - start
    return {
        "batch": BATCH,
        "ours, s a pass": round(ours, 3),
        "ours, four passes and all around them": round(whole, 2),
        "OneVsRest(SGDClassifier), s a pass": round(theirs, 2),
        "ratio": round(theirs / ours, 1),
    }


def pass_seconds(model: MPU, X: Any, Y: Labels) -> float:
    """The quickest of some passes over placed batches, with c as in the later ones of a fit."""
    problem = model._problem(*model._rows(X, Y))
    level = level_under(problem, model._folded_batches(problem), given_rates(C, Y.n_labels))
    training = model._minimiser.solve(level)
    weights = training.start()
    return quickest(lambda: training.step(weights, model.max_iter), least=2.0)


STUDY = Study(
    "mpu_epoch",
    "How long does a pass of MPU take beside one of OneVsRest(SGDClassifier)?",
    cells,
    measure,
    tiny=[{"n": 200}],
)
