"""The experiment behind `tacit demo`: hide some of what is known, and see who finds it again.

The tags of Debian packages are split by source package into training and test rows. In the training
rows a share of the tags is hidden, and each model is asked which unsaid tags are true (how many of
the hidden ones come back?) and which tags the test packages have. A model that sees every tag then
names tags that volunteers seem to have forgotten.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GroupShuffleSplit

from tacit.cli.why import Carriers
from tacit.datasets.dataset import Dataset
from tacit.estimators import MultiLabelEstimator
from tacit.labels import Labels
from tacit.metrics import precision_at_k, recall_at_k
from tacit.missing import Positives, hide

__all__ = ["Result", "Suggestion", "Trial", "result", "suggestions", "trial"]

TEST_SHARE = 0.2
HIDDEN_SHARE = 0.3
GUESSES = 20  # a package
FIRST = 1000  # completions whose precision is reported
PLACES = (1, 3, 5)  # of precision on the test rows
SUGGESTIONS = 10
CHECKABLE = 0.8  # least share of carriers for a feature to be a reason


@dataclass(frozen=True)
class Trial:
    """Training rows of which some tags are hidden, and test rows from other sources."""

    X: sp.csr_array
    shown: Labels
    hidden: sp.csr_array
    X_test: sp.csr_array
    Y_test: Labels


@dataclass(frozen=True)
class Result:
    """How one model did: hidden tags among its first guesses, and true tags of test packages.

    `recall[k - 1]` is R@k of the hidden tags, for k up to `GUESSES`; `precision` is P@k of the test
    rows, for k in `PLACES`; `precision_first` that of the `FIRST` surest completions of all.
    """

    model: str
    recall: list[float]
    precision_first: float
    precision: list[float]
    seconds: float


@dataclass(frozen=True)
class Suggestion:
    """A tag that seems to be missing, with what is said and what speaks for it."""

    package: str
    tag: str
    probability: float
    because: str
    said: list[str]


def trial(data: Dataset, seed: int) -> Trial:
    split = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=seed)
    train, test = next(split.split(data.X, groups=data.extra["source"]))
    weigh = TfidfTransformer(sublinear_tf=True).fit(data.X[train])
    shown, hidden = hide(data.Y[train], Positives(share=HIDDEN_SHARE), random_state=seed)
    return Trial(
        X=sp.csr_array(weigh.transform(data.X[train])),
        shown=shown,
        hidden=hidden,
        X_test=sp.csr_array(weigh.transform(data.X[test])),
        Y_test=data.Y[test],
    )


def result(name: str, model: MultiLabelEstimator, trial: Trial) -> Result:
    start = time.perf_counter()
    model.fit(trial.X, trial.shown.as_complete())
    seconds = time.perf_counter() - start
    found = model.complete(trial.X, trial.shown, k=GUESSES)
    guesses = found.by_row(len(trial.shown), GUESSES)
    first = trial.hidden[found.row[:FIRST], found.label[:FIRST]]
    best = model.top_k(trial.X_test, k=max(PLACES))
    return Result(
        model=name,
        recall=np.asarray(recall_at_k(trial.hidden, guesses, range(1, GUESSES + 1))).tolist(),
        precision_first=float(np.mean(first)),
        precision=np.asarray(precision_at_k(trial.Y_test, best, PLACES)).tolist(),
        seconds=seconds,
    )


def suggestions(data: Dataset, model: MultiLabelEstimator) -> list[Suggestion]:
    """The most probable unsaid tags that have a reason: one a source, and at most two of a tag."""
    X = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(data.X))
    found = model.fit(X, data.Y.as_complete()).complete(X, data.Y, k=5)
    counted, features = Carriers(data.X, data.Y.positives), np.asarray(data.feature_names)
    names, classes = np.asarray(data.row_names), np.asarray(data.Y.classes)
    source = data.extra["source"]
    # Nearly every package has its one role already, and a second is a mistake more often than not.
    role = np.char.startswith(classes, "role::")
    sources: set[int] = set()
    tags: Counter[int] = Counter()
    chosen: list[Suggestion] = []
    for row, label, probability in zip(*found):
        if len(chosen) == SUGGESTIONS:
            break
        if role[label] or source[row] in sources or tags[label] == 2:
            continue
        because = _reason(counted, features, row, label)
        if because is None:
            continue
        sources.add(source[row])
        tags[label] += 1
        said = classes[data.Y.positives[[row]].indices].tolist()
        chosen.append(
            Suggestion(str(names[row]), str(classes[label]), float(probability), because, said)
        )
    return chosen


def _reason(counted: Carriers, names: np.ndarray, row: int, label: int) -> str | None:
    """The feature of a package of which most packages carry the tag, for a person to check."""
    features = counted.X[[row]].indices
    carriers, packages = counted.of(label)[features], counted.rows[features]
    share = carriers / (packages + 10)  # ten more without it: a rare feature proves little
    if share.max(initial=0.0) < CHECKABLE:
        return None
    best = np.argmax(share)
    return f"{names[features[best]]} ({carriers[best]:,} of {packages[best]:,})"
