"""LEML (Yu, Jain, Kar and Dhillon 2014): tables 2 and 4, and what figures 2b and 2c plot.

The rows are Mulan's split; the paper's has the same sizes but is another one, so a point either way
is noise. The paper does not publish its λ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit.baselines import BinaryRelevance
from tacit.methods.leml import LEML
from tacit.metrics import auc_per_instance, hamming_loss, precision_at_k
from tacit_bench.board import Cell
from tacit_bench.boards.papers.protocol import Method, Metric, Protocol
from tacit_bench.boards.papers.splits import Split, as_given, entries_observed
from tacit_bench.boards.papers.statistics import statistics

__all__ = ["PROTOCOLS"]

# The largest P@3 + AUC on a fifth of the training rows, held out, of λ = 1, 2, 5, …, 100, at
# k = 0.2 L (with missing labels 0.4 L, scored on what is observed of the held-out rows).
REG = {
    ("bibtex", "squared"): 5,
    ("bibtex", "logistic"): 5,
    ("bibtex", "squared_hinge"): 10,
    ("delicious", "squared"): 20,
    ("delicious", "logistic"): 20,
    ("delicious", "squared_hinge"): 50,
}
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of observed entries, or of k / L
REG_LEML = dict(zip(SHARES, (2, 2, 2, 5, 5, 5)))
REG_BR = dict(zip(SHARES, (2, 2, 2, 1, 2, 2)))


def leml(loss: Any) -> Method:
    def make(cell: Cell, split: Split) -> LEML:
        rank = round(cell["k_over_L"] * split.Y.n_labels)
        observed = cell.get("observed_fraction")
        reg = REG[cell["data"], loss] if observed is None else REG_LEML[observed]
        return LEML(rank, loss=loss, reg=reg, max_iter=20, normalize="l2", random_state=0)

    return Method(make)


BR = Method(
    lambda cell, _: BinaryRelevance(
        loss="squared", reg=REG_BR[cell["observed_fraction"]], normalize="l2"
    )
)

P3 = {"top-3 accuracy (%)": Metric(lambda t, a: precision_at_k(t.Y_test, a.scores, 3), 1.0)}
AUC = {"average AUC": Metric(lambda t, a: auc_per_instance(t.Y_test, a.scores), 0.005)}
HAMMING = {
    "Hamming loss": Metric(lambda t, a: hamming_loss(t.Y_test, a.labels), 0.0005, better="lower")
}

TABLE_2 = Protocol(
    "LEML",
    "2",
    data={"bibtex": "bibtex", "delicious": "delicious"},
    split=as_given,
    methods={
        "LEML-SQ": leml("squared"),
        "LEML-LR": leml("logistic"),
        "LEML-SH": leml("squared_hinge"),
    },
    metrics=P3 | AUC,
    settings=tuple({"k_over_L": ratio} for ratio in (0.2, 0.4, 0.6)),
    quick={"data": ["bibtex"], "settings": ({"k_over_L": 0.4},)},
)
TABLE_4 = replace(
    TABLE_2,
    table="4",
    data={"bibtex": "bibtex"},
    split=entries_observed,
    methods={"LEML-SQ": leml("squared")},
    metrics=P3 | HAMMING | AUC,
    settings=({"k_over_L": 0.4, "observed_fraction": 0.2},),
    quick={},
)
TABLE_4_BR = replace(TABLE_4, methods={"BR": BR}, settings=({"observed_fraction": 0.2},))
FIGURE_2B = replace(
    TABLE_4,
    table="figure 2b",
    settings=tuple({"k_over_L": 0.4, "observed_fraction": share} for share in SHARES),
    quick=None,
)
FIGURE_2B_BR = replace(
    FIGURE_2B,
    methods={"BR": BR},
    settings=tuple({"observed_fraction": share} for share in SHARES),
)
FIGURE_2C = replace(
    FIGURE_2B,
    table="figure 2c",
    settings=tuple({"k_over_L": share, "observed_fraction": 0.2} for share in SHARES),
)

COUNTS = (
    *("d", "L", "n_train", "avg nnz features (train)", "avg positive labels (train)"),
    *("n_test", "avg nnz features (test)", "avg positive labels (test)"),
)

PROTOCOLS = (
    statistics("LEML", "1", TABLE_2.data, as_given, COUNTS),
    TABLE_2,
    TABLE_4,
    TABLE_4_BR,
    FIGURE_2B,
    FIGURE_2B_BR,
    FIGURE_2C,
)
