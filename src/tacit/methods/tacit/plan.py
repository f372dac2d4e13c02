"""Plan: what a fit of `Tacit` will try, why not the rest, and what it is expected to cost.

Costs follow from counts alone, with the rates of `Limits`; nothing is measured beforehand. They are
right to a factor of two or so, which is enough to leave out what would take minutes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Self

import numpy as np

from tacit.backends import Sparse
from tacit.backends.block import Block
from tacit.estimators import Problem
from tacit.labels import DENSE_LIMIT
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.methods.tacit.limits import Limits
from tacit.methods.tacit.report import Report

__all__ = ["LINKS", "LOOK", "Plan", "Sizes", "Tried", "Watch", "sizes_of"]

LOOK, LINKS = "second look", "labels of the row"

NETWORKS = (FirstNetwork(1000, 20, 0.03), FirstNetwork(1000, 20, 0.01))
"""Those of masked labels, which have no other lead."""
_GRAM, _SPARSE = 1e11, 5e9  # operations a second of dense products, and of sparse ones


@dataclass(frozen=True)
class Sizes:
    """What the cost of a part depends on."""

    kind: str
    n: int
    d: int
    n_labels: int
    numbers: int  # of X that are stored
    sparse: bool


@dataclass(frozen=True)
class Tried:
    """A part: whether it will be tried, else why not, and its seconds and bytes."""

    name: str
    why_not: str
    seconds: float
    bytes: float

    def __str__(self) -> str:
        if self.why_not:
            return f"{self.name}: not tried, since {self.why_not}"
        return f"{self.name}: about {self.seconds:.1f} s and {self.bytes / 2**30:.2f} GiB"


@dataclass(frozen=True)
class Plan:
    """What a fit will try; `print` it."""

    sizes: Sizes
    parts: tuple[Tried, ...]

    @classmethod
    def of(cls, sizes: Sizes, limits: Limits, budget: float) -> Self:
        """The plan for rows of these sizes; a budget of -1 is that of `Limits.auto_seconds`."""
        lead = _lead(sizes, limits)
        left = limits.auto_seconds if budget < 0 else budget - lead.seconds
        parts = [lead]
        for part in _others(sizes, limits, lead):
            why_not = part.why_not
            if not why_not and part.seconds > left:
                why_not = f"it would take about {part.seconds:.1f} s, more than the budget leaves"
            elif not why_not:
                left -= part.seconds
            parts.append(Tried(part.name, why_not, part.seconds, part.bytes))
        return cls(sizes, tuple(parts))

    @property
    def names(self) -> tuple[str, ...]:
        """The parts that will be tried."""
        return tuple(part.name for part in self.parts if not part.why_not)

    @property
    def left_out(self) -> list[str]:
        """The parts that will not, each with the reason."""
        return [str(part) for part in self.parts if part.why_not]

    @property
    def seconds(self) -> float:
        """What all that is tried is expected to take."""
        return sum(part.seconds for part in self.parts if not part.why_not)

    def folds(self, cv: int, limits: Limits) -> int:
        """How many folds are held out in turn: of few rows all, since all of them must teach."""
        return max(1, min(cv, -(-cv * limits.taught_rows // self.sizes.n)))

    def n_choosing(self, limits: Limits) -> int:
        """How many rows choose the ridge."""
        return max(200, min(limits.choosing_rows, limits.choosing_scores // self.sizes.n_labels))

    def __str__(self) -> str:
        total = f"in all about {self.seconds:.0f} s"
        return "\n".join([*map(str, self.parts), total])


def sizes_of(problem: Problem) -> Sizes:
    """The counts of a problem."""
    numbers, laid_out = problem.blocks.sum(_stored)
    return Sizes(
        problem.kind,
        problem.n_samples,
        problem.n_features,
        problem.n_labels,
        numbers,
        laid_out == 0,
    )


def _lead(s: Sizes, limits: Limits) -> Tried:
    """The first model that draws up the shortlists, or of masked labels the network."""
    n, d, n_labels = s.n, s.d, s.n_labels
    if s.kind == "masked":
        seconds = sum(net.seconds(n, n_labels, s.numbers, limits.flops) for net in NETWORKS)
        return Tried("network", "", 1.8 * seconds, 2 * 8.0 * 1000 * (d + n_labels))
    if d * n_labels > DENSE_LIMIT:
        return Tried("features by themselves", "", 10 * s.numbers / _SPARSE, 24.0 * s.numbers)
    width = d if s.sparse else max(d, 2000)
    scores = 4 * s.numbers * n_labels / _SPARSE
    if width <= limits.exact_features or (n <= limits.exact_rows and n * d <= limits.directions):
        side = min(width, max(n, 1))
        solve = (4 * side**3 * 3 + 4 * width**2 * n_labels) / _GRAM
        return Tried("ridge", "", solve + scores, 24.0 * side**2 + 12.0 * width * n_labels)
    return Tried("ridge by products", "", 40 * 8 * scores, 16.0 * d * n_labels)


def _others(s: Sizes, limits: Limits, lead: Tried) -> list[Tried]:
    """What may stand beside the lead, in the order of what it brings a second."""
    gathered = s.numbers > limits.gathered
    far = "the rows are too many to bring together" if gathered else ""
    nearest = s.numbers / max(s.d, 1) * s.numbers / _SPARSE / 4
    network = 1.8 * _network(s, limits)
    if s.kind == "masked":
        rank = Tried("low rank", far, 3e-9 * 100 * s.n * s.n_labels, 800.0 * (s.d + s.n_labels))
        near = Tried("nearest rows", far or _without_numba(), nearest, 8.0 * s.numbers)
        return [rank, near]
    m = max(30, min(s.n_labels // 100, 100))
    numbers = m * s.numbers
    why_not = "it would read too many numbers" if numbers > limits.look_numbers else ""
    look = Tried(LOOK, why_not or _without_numba(), 2e-7 * numbers, 12.0 * numbers / 10)
    return [
        look,
        Tried("nearest rows", far or _without_numba(), nearest, 8.0 * s.numbers),
        Tried("network", far, network, 1200.0 * (s.d + s.n_labels)),
        _links(s, limits),
    ]


def _links(s: Sizes, limits: Limits) -> Tried:
    """What else was said of a row, for its completions."""
    many = s.n_labels > limits.link_labels
    why_not = f"there are more than {limits.link_labels:,} labels" if many else ""
    return Tried(LINKS, why_not, 2 * 2.0 * s.n_labels**3 / _GRAM, 24.0 * s.n_labels**2)


def _network(s: Sizes, limits: Limits) -> float:
    return FirstNetwork().seconds(s.n, s.n_labels, s.numbers, limits.flops)


def _without_numba() -> str:
    """Why the second look's regressions cannot be had, if so."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return "it needs Numba, which is not installed"
    return ""


def _stored(b: Block) -> tuple[int, int]:
    if isinstance(b.X, Sparse):
        return b.X.nnz, 0
    return int(np.prod(b.X.shape)), 1


@dataclass
class Watch:
    """The time since the last lap."""

    verbose: bool = False

    def __post_init__(self) -> None:
        self.last = time.perf_counter()

    def lap(self, what: str, report: Report) -> None:
        """Tell what was done, and how long it took."""
        last, self.last = self.last, time.perf_counter()
        report.seconds[what] = round(self.last - last, 2)
        if self.verbose:
            print(f"Tacit: {what} ({self.last - last:.1f} s)", file=sys.stderr)
