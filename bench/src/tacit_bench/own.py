"""What people bring to the boards: data of their own, and estimators of their own.

Data are a folder or file of matrices, a table, or a data set by name: whatever `tacit fit` reads.
Rows to test on come with them, or a fifth of the rows are set aside. What a table does not say is
a no in the test rows, as on the boards' own data; hide labels, and the figures say who finds them.

An estimator is named `package.module:Class`: one of tacit's kind, a scikit-learn classifier of many
labels, or a `Contender` with settings to choose from.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import train_test_split

from tacit.cli.inputs import TableColumns, read_rows, vectorised
from tacit.cli.options import TagOptions
from tacit.datasets import Dataset
from tacit.estimators import MultiLabelEstimator
from tacit.labels import Labels, TopK, as_labels
from tacit.models import Completion

__all__ = ["ForeignEstimator", "NoProbabilities", "imported", "own_data", "with_test_rows"]

TEST_SHARE = 0.2


def own_data(path: str, columns: dict[str, Any] | None = None) -> Dataset:
    """What is at a path; `columns` say what a table holds, as `TagOptions` does."""
    named = TableColumns().given(TagOptions(**(columns or {})))
    rows = read_rows(path, named, part="train")
    if isinstance(rows.X, list):  # words are counted on the rows that are learnt from
        train, test = _cut(len(rows))
        vectoriser, X = vectorised([rows.X[i] for i in train], rows.name)
        X_test, Y = vectoriser.transform([rows.X[i] for i in test]), rows.said().as_complete()
        return Dataset(rows.name, X, Y[train], X_test=X_test, Y_test=Y[test])
    there = read_rows(path, named, part="test")
    if there.Y_train is None:  # no test rows of their own
        return Dataset(rows.name, rows.X, rows.said())
    return Dataset(rows.name, rows.X, rows.said(), X_test=there.X, Y_test=there.said())


def with_test_rows(data: Dataset) -> Dataset:
    """The data set as it is where it has test rows; else a fifth of its rows are set aside.

    There, what nobody said counts as a no: else nothing could be scored.
    """
    if data.X_test is not None:
        return data
    train, test = _cut(data.X.shape[0])
    X, Y = data.X, data.Y.as_complete() if data.Y.kind == "positive-only" else data.Y
    return Dataset(data.name, X[train], Y[train], X_test=X[test], Y_test=Y[test])


def _cut(n: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=0))


def imported(name: str) -> Any:
    """What `package.module:Class` names; modules of the current folder are found too."""
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--method {name} cannot be imported: {error}") from None
    if isinstance(found, type) and not issubclass(found, MultiLabelEstimator):
        return lambda: ForeignEstimator(found())
    return found


class NoProbabilities(ValueError):  # noqa: N818
    """Asked for probabilities of an estimator that has none."""


@dataclass
class ForeignEstimator(BaseEstimator):
    """A classifier of scikit-learn's kind in the place of one of ours; silence is a no to it.

    Its scores are those of `decision_function`, or the probabilities of `predict_proba`.
    """

    estimator: Any

    def fit(self, X: Any, Y: Labels) -> ForeignEstimator:
        self.fitted_ = clone(self.estimator).fit(X, Y.positives.toarray().astype(np.int8))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        if hasattr(self.fitted_, "decision_function"):
            return np.asarray(self.fitted_.decision_function(X))
        return self.predict_proba(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        if not hasattr(self.fitted_, "predict_proba"):
            raise NoProbabilities(f"{type(self.estimator).__name__} gives no probabilities")
        found = self.fitted_.predict_proba(X)
        if not isinstance(found, list):
            return np.asarray(found)
        # One array a label, with a column for each class that was seen: no, yes, or one of them.
        yes = [p[:, list(c).index(1)] if 1 in c else 0 * p[:, 0] for p, c in self._classes(found)]
        return np.stack(yes, axis=1)

    def _classes(self, found: list[np.ndarray]) -> Sequence[tuple[np.ndarray, Any]]:
        return list(zip(found, self.fitted_.classes_))

    def top_k(self, X: Any, k: int) -> TopK:
        return _best(self.decision_function(X), k)

    def complete(self, X: Any, Y: Any, k: int) -> Completion:
        said = as_labels(Y).positives.toarray()
        best = _best(np.where(said, -np.inf, self.decision_function(X)), k)
        row, place = np.nonzero(best.indices >= 0)
        scores = best.scores[row, place]
        order = np.argsort(-scores, kind="stable")
        return Completion(row[order], best.indices[row, place][order], scores[order])


def _best(scores: np.ndarray, k: int) -> TopK:
    """The k best labels of each row; what is no candidate (-inf) is -1."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, best, axis=1)
    return TopK(np.where(np.isfinite(values), best, -1), values)
