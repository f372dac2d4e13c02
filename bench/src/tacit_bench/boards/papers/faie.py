"""FaIE (Lin, Ding, Hu and Wang 2014): tables 2 to 4.

delicious and mediamill are 5,000 random rows, CAL500 is whole; five folds. Each method's parameters
are chosen anew for each rank by macro-F1, in five folds of the training rows (CS and MLC-BMaD: on a
fifth of them, held out). The paper does not say its ridge weights: λ is 0.001 here and 0.0001 with
kernels, for all methods alike but BR, whose is chosen among 0.001, 1 and 1,000. All k / L are read
off one fit, so that a cell has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.base import clone

from tacit.baselines import LabelSpaceReduction
from tacit.methods.faie import FaIE
from tacit.metrics import example_accuracy, macro_f1
from tacit_bench.boards.papers.protocol import Method, Metric, Protocol
from tacit_bench.boards.papers.ranks import RATIOS, Ranks, along_path, each, held_out
from tacit_bench.boards.papers.splits import some_in_folds
from tacit_bench.boards.papers.statistics import statistics

__all__ = ["PROTOCOLS"]

ALPHAS = [0.1, 1.0, 10.0, 100.0, 1e3, 1e4]  # the paper's
PLAIN: dict[str, Any] = {"normalize": None, "reg": 1e-3}
KERNEL: dict[str, Any] = {"normalize": None, "reg": 1e-4}


def method(estimator: Any, choose: Callable, **settings: Any) -> Method:
    return Method(lambda cell, split: Ranks(clone(estimator), choose, **settings))


alphas = partial(along_path, alphas=ALPHAS)
sparsities = partial(held_out, name="sparsity", values=[2, 5, 10, 20])
taus = partial(held_out, name="tau", values=[0.1, 0.3, 0.5, 0.7, 0.9])
regs = partial(along_path, regs=[1e-3, 1.0, 1e3])
F1 = Metric(lambda t, a: macro_f1(t.Y_test, a.labels), 0.1, relative=True)
ACCURACY = Metric(lambda t, a: example_accuracy(t.Y_test, a.labels), 0.1, relative=True)

TABLE_2 = Protocol(
    "FaIE",
    "2",
    data={"delicious": "delicious"},
    split=some_in_folds,
    methods={
        "CS": method(LabelSpaceReduction("cs", random_state=0, **PLAIN), sparsities),
        "PLST": method(LabelSpaceReduction("plst", **PLAIN), along_path),
        "CPLST": method(LabelSpaceReduction("cplst", **PLAIN), along_path),
        "MLC-BMaD": method(LabelSpaceReduction("bmad", **PLAIN), taus),
        "ML-CSSP": method(LabelSpaceReduction("cssp", random_state=0, **PLAIN), each),
        "R-FaIE": method(FaIE(variant="r", **PLAIN), along_path),
        "P-LinearFaIE": method(FaIE(variant="p-linear", **PLAIN), along_path),
        "LinearFaIE": method(FaIE(variant="linear", **PLAIN), alphas),
        "OP-FaIE": method(FaIE(variant="op", **PLAIN), along_path),
        "FaIE": method(FaIE(**PLAIN), alphas),
        "kernel-CPLST": method(LabelSpaceReduction("cplst", **KERNEL), along_path, kernel=True),
        "kernel-FaIE": method(FaIE(**KERNEL), alphas, kernel=True),
    },
    metrics={"label-based macro-F1": F1, "example-based accuracy": ACCURACY},
    settings=tuple({"k_over_L": ratio} for ratio in RATIOS),
    path=True,
)
RIDGE = method(LabelSpaceReduction("plst", normalize=None), regs, ratios=(None,))  # at full rank
BR = replace(TABLE_2, methods={"BR (L-RR)": RIDGE}, settings=({},))
TABLES = {"2": TABLE_2.data, "3": {"CAL500": "cal500"}, "4": {"mediamill": "mediamill"}}
QUICK = {"3": {"trials": 1}}

PROTOCOLS = (
    statistics(
        "FaIE",
        "1",
        {k: v for data in TABLES.values() for k, v in data.items()},
        some_in_folds,
        ("n", "L", "d"),
    ),
    *(
        replace(part, table=table, data=data, quick=QUICK.get(table))
        for table, data in TABLES.items()
        for part in (BR, TABLE_2)
    ),
)
