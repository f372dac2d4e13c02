"""SEM (Jing, Cheng, Yang, Gittens and Mahoney 2017): tables 2 and 3.

Table 2 is on Mulan's split; dense features are standardised, rows are not scaled. F1 is the
paper's: a row is given as many labels as it has, its best. Macro-F1 is the mean over all labels,
where one without test positives has F1 0. Test rows without labels (1 in 24 of mediamill) are left
out, as the paper must have. Table 3 is the time of a fit on the first n rows in random order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.baselines import NNML, LabelSpaceReduction
from tacit.labels import TopK
from tacit.methods.sem import SEM
from tacit.metrics import macro_f1, micro_f1, precision_at_k
from tacit_bench.board import Cell
from tacit_bench.boards.papers.protocol import Answer, Method, Metric, Protocol
from tacit_bench.boards.papers.splits import Split, as_given, first_rows, labelled, standardised
from tacit_bench.boards.papers.statistics import statistics
from tacit_bench.boards.papers.timing import SECONDS, timed

__all__ = ["PROTOCOLS"]

# The largest P@1 + P@3 + micro-F1 on a fifth of the training rows, held out (seed 0), of rank,
# rate, batch size, weights of rows and 5 to 80 passes; of SEM-K's γ and λ on that SEM. REmbed's
# rank (50, 100), λ and row length are those of the largest P@1 + P@3 + P@5 there.
CHOSEN: dict[str, dict[str, Any]] = {
    "delicious": dict(rank=100, rate=0.03, max_iter=40),
    "mediamill": dict(rank=100, rate=0.1, max_iter=80),
    "corel5k": dict(rank=50, rate=0.1, max_iter=5, batch_size=50, instance_weight="label_count"),
}
HEAD: dict[str, dict[str, Any]] = {
    "delicious": dict(gamma=0.0003987, reg=0.1),  # 0.3 over the median squared distance
    "mediamill": dict(reg=0.01),
    "corel5k": dict(reg=0.1),
}
CHOSEN_NNML: dict[str, dict[str, Any]] = {
    "delicious": dict(rate=0.03, max_iter=10),
    "mediamill": dict(rate=0.03, max_iter=80),
    "corel5k": dict(rate=0.01, max_iter=10),
}
CHOSEN_REMBED: dict[str, dict[str, Any]] = {
    "delicious": dict(rank=100, reg=1.0, normalize="l2"),
    "mediamill": dict(rank=100, reg=0.1, normalize=None),
    "corel5k": dict(rank=100, reg=10.0, normalize="l2"),
}
PLAIN: dict[str, Any] = dict(normalize=None, random_state=0, tol=0.0)


AS_PUBLISHED: dict[str, Any] = dict(
    updates="gauss-seidel", instance_weight="uniform", normalize="l2", random_state=0
)


def sem(cell: Cell, split: Split) -> SEM:
    chosen = {"instance_weight": "uniform"} | CHOSEN[cell["data"]]
    return SEM(updates="one-pass", **PLAIN | chosen)


def sem_k(cell: Cell, split: Split) -> SEM:
    return sem(cell, split).set_params(head="kernel", **HEAD[cell["data"]])


def given(split: Split, answer: Answer) -> TopK:
    """The best labels of each row, as many as it has."""
    counts = np.diff(split.Y_test.positives.indptr)
    best = answer.model.top_k(answer.X, counts.max())
    mine = np.arange(best.indices.shape[1]) < counts[:, None]
    return TopK(np.where(mine, best.indices, -1), np.where(mine, best.scores, -np.inf))


TABLE_2 = Protocol(
    "SEM",
    "2",
    data={"Delicious": "delicious", "Mediamill": "mediamill", "Corel5K": "corel5k"},
    split=standardised(labelled(as_given)),
    methods={
        "SEM": Method(sem),
        "SEM-K": Method(sem_k),
        "NNML": Method(lambda cell, _: NNML(**PLAIN | CHOSEN_NNML[cell["data"]])),
        "REmbed": Method(
            lambda cell, _: LabelSpaceReduction(
                "rembed", random_state=0, **CHOSEN_REMBED[cell["data"]]
            )
        ),
    },
    metrics={
        "macro-F1": Metric(lambda t, a: macro_f1(t.Y_test, given(t, a)), 0.01),
        "micro-F1": Metric(lambda t, a: micro_f1(t.Y_test, given(t, a)), 0.01),
        "P@1": Metric(lambda t, a: precision_at_k(t.Y_test, a.scores, 1), 0.01),
        "P@3": Metric(lambda t, a: precision_at_k(t.Y_test, a.scores, 3), 0.01),
    },
    quick={"data": ["corel5k"], "methods": ["SEM", "NNML", "REmbed"]},  # SEM-K takes a minute
)
TABLE_3 = Protocol(
    "SEM",
    "3",
    data={"Mediamill": "mediamill"},
    split=standardised(first_rows),
    methods={
        "SEM": timed(SEM(50, **AS_PUBLISHED)),
        "SEM-K": timed(SEM(50, head="kernel", **AS_PUBLISHED)),
        "NNML": timed(NNML(rate=0.03, normalize="l2", random_state=0)),
        "REmbed": timed(LabelSpaceReduction("rembed", 50, normalize="l2", random_state=0)),
    },
    metrics={"running time (s)": SECONDS},
    settings=tuple(
        {"n_train": n} for n in (439, 1756, 3073, 4391, 8781, 13172, 17563, 21954, 26344, 30735)
    ),
    quick={"methods": ["SEM", "REmbed"], "settings": ({"n_train": 439}, {"n_train": 4391})},
)
COUNTS = ("n_train", "n_test", "d", "L", "avg positive labels")

PROTOCOLS = (statistics("SEM", "1", TABLE_2.data, as_given, COUNTS), TABLE_2, TABLE_3)
