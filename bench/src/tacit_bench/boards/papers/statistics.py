"""The tables that count rows, features and labels: whether our data are those of a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tacit_bench.boards.papers.protocol import Method, Metric, Protocol
from tacit_bench.boards.papers.splits import Split, Splitter

__all__ = ["statistics"]


def statistics(
    paper: str, table: str, data: Mapping[str, str], split: Splitter, names: tuple[str, ...]
) -> Protocol:
    """A paper's counts of its data sets, beside those of the rows that we run on."""
    return Protocol(
        paper,
        table,
        data=data,
        split=split,
        methods={None: Method(lambda cell, split: None)},
        metrics={name: METRICS[name] for name in names},
        trials=1,
        quick={},
    )


def _count(of: Callable[[Split], float], tolerance: float = 0.0) -> Metric:
    return Metric(lambda split, _: of(split), tolerance, better="equal")


def _stored(X: Any) -> int:
    return X.nnz if hasattr(X, "nnz") else int(np.count_nonzero(X))


def _said(split: Split) -> int:
    return split.Y.positives.nnz + split.Y_test.positives.nnz


METRICS = {
    "n": _count(lambda t: len(t.Y) + len(t.Y_test)),
    "n_train": _count(lambda t: len(t.Y)),
    "n_test": _count(lambda t: len(t.Y_test)),
    "d": _count(lambda t: t.X.shape[1]),
    "L": _count(lambda t: t.Y.n_labels),
    # Averages are printed with two or three digits.
    "avg nnz features (train)": _count(lambda t: _stored(t.X) / len(t.Y), 0.01),
    "avg nnz features (test)": _count(lambda t: _stored(t.X_test) / len(t.Y_test), 0.01),
    "avg positive labels (train)": _count(lambda t: t.Y.positives.nnz / len(t.Y), 0.01),
    "avg positive labels (test)": _count(lambda t: t.Y_test.positives.nnz / len(t.Y_test), 0.01),
    "avg positive labels": _count(lambda t: _said(t) / (len(t.Y) + len(t.Y_test)), 0.01),
}
