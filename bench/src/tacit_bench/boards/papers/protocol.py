"""What a published table asks for, as a short declaration, and the run of one of its cells.

A `Protocol` says which rows are learned from and which are scored (`splits`), which methods with
which settings, and what is measured. A cell is a data set, a method and a setting; its folds or
seeds are all within it, and what is found are the means over them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from typing import Any, Literal, NamedTuple

import numpy as np

from tacit.labels import Labels
from tacit_bench.board import Cell
from tacit_bench.boards.papers.splits import Split

__all__ = ["Answer", "Method", "Metric", "Protocol", "Setting", "setting_of"]

Setting = dict[str, float]
NAMES = ("paper", "table", "data", "method", "quick")  # of a cell; the rest of it is the setting


@dataclass(frozen=True)
class Answer:
    """What a fitted model says of new rows, each kind of answer once."""

    model: Any
    X: Any

    @cached_property
    def scores(self) -> np.ndarray:
        return self.model.decision_function(self.X)

    @cached_property
    def labels(self) -> Any:
        return self.model.predict(self.X)


class Method(NamedTuple):
    """An estimator for a cell and its rows, and how the estimator reads the labels."""

    make: Callable[[Cell, Split], Any]
    read: Callable[[Labels], Labels] = lambda labels: labels


@dataclass(frozen=True)
class Metric:
    """A figure of an answer, and how far below a published one is still noise between splits.

    With no tolerance (seconds of other machines) it is shown, and never missed. Names that end in
    "(%)" are kept in percent with two digits, in "(s)" with two, others with four.
    """

    of: Callable[[Split, Answer], Any]  # a number; of P@k mypy cannot tell
    tolerance: float | None
    better: Literal["higher", "lower", "equal"] = "higher"
    relative: bool = False

    def gain(self, ours: float, published: float) -> float:
        """How much better ours is; 0 is the best where figures should be equal."""
        difference = ours - published
        return {"higher": difference, "lower": -difference, "equal": -abs(difference)}[self.better]

    def margin(self, published: float) -> float | None:
        if self.tolerance is None:
            return None
        return self.tolerance * abs(published) if self.relative else self.tolerance


@dataclass(frozen=True)
class Protocol:
    """A table of a paper, or a part of one.

    Attributes
    ----------
    paper, table : str
        As in `published.json`.
    data : mapping
        From the paper's name of a data set to ours.
    split : callable
        From a cell to its trials: one, or one a fold or seed.
    methods : mapping
        From the paper's name of a method to ours; None is a table without methods.
    metrics : mapping
        From the paper's name of a measure to ours.
    settings : tuple of dict
        What else the rows of the table differ in: k_over_L, n_train, …
    trials : int, optional
        How many of the trials that `split` gives are run; None is all.
    path : bool
        Whether one fit has all settings: then a cell has none, and `at(setting)` of what was
        fitted is the model of one of them.
    quick : mapping, optional
        What is left of data, methods, settings and trials for a quick look; None is nothing.
    """

    paper: str
    table: str
    data: Mapping[str, str]
    split: Callable[[Cell], Iterator[Split]]
    methods: Mapping[Any, Method]
    metrics: Mapping[str, Metric]
    settings: tuple[Setting, ...] = ({},)
    trials: int | None = None
    path: bool = False
    quick: Mapping[str, Any] | None = None

    def cells(self, quick: bool = False) -> list[Cell]:
        if quick and self.quick is None:
            return []
        part = self.quickly() if quick else self
        mark = {"quick": True} if quick else {}
        names = {"paper": self.paper, "table": self.table}
        return [
            names | {"data": data, "method": method} | setting | mark
            for data, method, setting in product(
                part.data.values(), part.methods, ({},) if self.path else part.settings
            )
        ]

    def __contains__(self, cell: Cell) -> bool:
        names = (self.paper, self.table) == (cell["paper"], cell["table"])
        rows = cell["data"] in self.data.values() and cell["method"] in self.methods
        return names and rows and setting_of(cell) in (({},) if self.path else self.settings)

    def quickly(self) -> Protocol:
        """The part of it for a quick look."""
        less = dict(self.quick or {})
        if "data" in less:
            less["data"] = {k: v for k, v in self.data.items() if v in less["data"]}
        if "methods" in less:
            less["methods"] = {k: v for k, v in self.methods.items() if k in less["methods"]}
        return replace(self, **less)

    def measure(self, cell: Cell, device: str = "cpu") -> dict[str, Any]:
        """Fit, score, and take the means over the trials."""
        part = self.quickly() if cell.get("quick") else self
        settings = part.settings if self.path else (setting_of(cell),)
        method = self.methods[cell["method"]]
        found, seconds, used = [], [], []
        for split in islice(self.split(cell), part.trials):
            model = method.make(cell, split)
            seconds.append(_fitted(model, split.X, method.read(split.Y), device))
            models = [model.at(setting) for setting in settings] if self.path else [model]
            answers = [Answer(each, split.X_test) for each in models]
            found.append([[m.of(split, a) for m in self.metrics.values()] for a in answers])
            used.append(" ".join(str(model).split()))
        values = [
            {name: _rounded(name, value) for name, value in zip(self.metrics, means)}
            for means in np.mean(found, axis=0)
        ]
        about: dict[str, Any] = {"trials": len(found)}
        if model is not None:
            about |= {"fit s": round(float(np.mean(seconds)), 2), "model": used[0]}
        if self.path:
            return {"at": [setting | each for setting, each in zip(settings, values)]} | about
        return values[0] | about

    def values(
        self, cell: Cell, found: dict[str, Any]
    ) -> Iterator[tuple[Setting, dict[str, float]]]:
        """Each setting of a measured cell, and what was measured there."""
        rows = found["at"] if self.path else [setting_of(cell) | found]
        for row in rows:
            setting = {name: row[name] for name in self.settings[0]}
            yield setting, {name: row[name] for name in self.metrics}


def setting_of(cell: Cell) -> Setting:
    return {name: value for name, value in cell.items() if name not in NAMES}


def _fitted(model: Any, X: Any, labels: Labels, device: str) -> float:
    """Fit a model where it is to run; the seconds that took. A table of counts has no model."""
    if model is None:
        return 0.0
    places = [name for name in model.get_params() if name.rpartition("__")[2] == "device"]
    model.set_params(**dict.fromkeys(places, device))
    start = time.perf_counter()
    model.fit(X, labels)
    return time.perf_counter() - start


def _rounded(name: str, value: float) -> float:
    if name.endswith("(%)"):
        return round(100 * float(value), 2)
    return round(float(value), 2 if name.endswith("(s)") else 4)
