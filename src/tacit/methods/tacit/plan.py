"""Plan: what a fit of `Tacit` will try, why not the rest, and what it is expected to cost.

Costs follow from counts alone, with the rates of `Limits`; nothing is measured beforehand. They are
right to a factor of two or so, which is enough to leave out what would take minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from tacit.backends import Sparse
from tacit.backends.block import Block
from tacit.estimators import Problem
from tacit.labels import DENSE_LIMIT
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.methods.tacit.limits import Limits
from tacit.methods.tacit.shortlists import learned

__all__ = ["LINKS", "LOOK", "Plan", "Sizes", "Tried", "seconds_of", "sizes_of"]

LOOK, LINKS = "second look", "labels of the row"
ROUGH = "features by themselves"  # a lead that is little without the second look

NETWORKS = (FirstNetwork(300, 20, 0.02), FirstNetwork(300, 20, 0.02))
"""Those of masked labels."""
_GRAM, _SPARSE = 1e11, 5e9  # operations a second of dense products, and of sparse ones
_BATCH, _VECTORS = 6e-3, 4e-7  # seconds that a batch takes however small; and a code of a row
_PRODUCTS = 1000  # of a matrix with the codes, in the two fits of low rank
_CHOOSING = 0.5  # of the lead's seconds: its scaling, λ and p; the rest are its fits
_LEAST = 1.0  # seconds; what is planned to take less tells nothing of the machine


@dataclass(frozen=True)
class Sizes:
    """What the cost of a part depends on."""

    kind: str
    n: int
    d: int
    n_labels: int
    numbers: int  # of X that are stored
    sparse: bool
    cells: int = 0  # that are known of masked labels


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
    def of(
        cls, sizes: Sizes, limits: Limits, budget: float, spent: float = 0.0, pace: float = 1.0
    ) -> Self:
        """The plan for rows of these sizes; a budget of -1 is the one that goes by the lead.

        `spent` seconds are gone, for which the lead was chosen on a machine that takes `pace` times
        as long as `Limits` has it.
        """
        lead = _lead(sizes, limits)
        others = _others(sizes, limits, lead)
        rough, masked = lead.name == ROUGH, sizes.kind == "masked"
        left = budget - spent - pace * lead.seconds * (1 - _CHOOSING if spent else 1)
        if budget < 0:
            # Little without the second look, or of masked labels without the low rank, is a lead.
            own = lead.seconds + (others[0].seconds if rough or masked else 0)
            left = max(limits.auto_seconds, limits.auto_times * own * pace)
        parts = [lead]
        for part in others:
            why_not, seconds = part.why_not, pace * part.seconds
            if not why_not and seconds > left:
                why_not = f"it would take about {seconds:.1f} s, more than the budget leaves"
            elif not why_not:
                left -= seconds
            parts.append(Tried(part.name, why_not, seconds, part.bytes))
        return cls(sizes, tuple(parts))

    def at(self, elapsed: float, limits: Limits, budget: float) -> Plan:
        """The plan once the lead is chosen, which took so long: what that tells of the machine."""
        pace = elapsed / max(_CHOOSING * self.parts[0].seconds, _LEAST)
        return Plan.of(self.sizes, limits, budget, elapsed, float(np.clip(pace, 1 / 3, 10)))

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
    numbers, laid_out, cells = problem.blocks.sum(_stored)
    return Sizes(
        problem.kind,
        problem.n_samples,
        problem.n_features,
        problem.n_labels,
        numbers,
        laid_out == 0,
        cells,
    )


def _lead(s: Sizes, limits: Limits) -> Tried:
    """The first model, which draws up the shortlists."""
    n, d, n_labels = s.n, s.d, s.n_labels
    if d * n_labels > DENSE_LIMIT:
        return Tried(ROUGH, "", 10 * s.numbers / _SPARSE, 24.0 * s.numbers)
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
    slow = "each prediction would look through too many rows" if s.n > limits.nearest_rows else ""
    network = 1.8 * _network(s, limits)
    if s.kind == "masked":
        rank, entries = min(100, s.n_labels), s.cells + s.numbers + s.n
        product = entries * (rank + 20) / _SPARSE + _VECTORS * s.n
        low = Tried("low rank", far, _PRODUCTS * product, 32.0 * rank * (s.d + s.n + s.n_labels))
        near = Tried("nearest rows", far or slow or _without_numba(), nearest, 8.0 * s.numbers)
        return [low, near, _networks(s, far, limits)]
    numbers = learned(s.n_labels, lead.name == ROUGH) * s.numbers
    dense = 2 * s.numbers > s.n * s.d
    many = numbers > (limits.look_dense if dense else limits.look_numbers)
    why_not = "it would read too many numbers" if many else ""
    look = Tried(LOOK, why_not or _without_numba(), 2e-7 * numbers, 12.0 * numbers / 10)
    return [
        look,
        Tried("nearest rows", far or slow or _without_numba(), nearest, 8.0 * s.numbers),
        Tried("network", far, network, 1200.0 * (s.d + s.n_labels)),
        _links(s, limits),
    ]


def _networks(s: Sizes, far: str, limits: Limits) -> Tried:
    """Those of masked labels, in which each row has a code of its own."""
    batches = sum(net.passes * -(-s.n // net.batch_size) for net in NETWORKS)
    entries, width = s.numbers + s.n, s.d + s.n + s.n_labels
    seconds = sum(net.seconds(s.n, s.n_labels, entries, limits.flops) for net in NETWORKS)
    return Tried("network", far, 1.8 * (seconds + _BATCH * batches), 4800.0 * len(NETWORKS) * width)


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


def _stored(b: Block) -> tuple[int, int, int]:
    cells = 0 if b.omega is None else b.omega.nnz
    if isinstance(b.X, Sparse):
        return b.X.nnz, 0, cells
    return int(np.prod(b.X.shape)), 1, cells


def seconds_of(budget: Any) -> float | None:
    """A budget in seconds: infinity for None, minus one for "auto"; None where it is none."""
    if budget is None:
        return float("inf")
    if isinstance(budget, Real) and not isinstance(budget, bool):
        return float(budget) if float(budget) > 0 else None
    if budget == "auto":
        return -1.0
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", str(budget))
    return float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]] or None if found else None
