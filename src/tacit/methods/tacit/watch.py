"""The clock of a fit: what is told as it goes on, and what a budget still has room for."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tacit.methods.tacit.report import Report

__all__ = ["Watch"]


@dataclass
class Watch:
    """The time since the start and since the last lap, and what each part took, the lead first."""

    verbose: bool = False
    took: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.first = self.last = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.first

    def lap(self, what: str, report: Report) -> None:
        """Tell what was done, and how long it took."""
        last, self.last = self.last, time.perf_counter()
        report.seconds[what] = round(self.last - last, 2)
        if self.verbose:
            print(f"Tacit: {what} ({self.last - last:.1f} s)", file=sys.stderr)

    def within(self, left: float) -> dict[str, float]:
        """How long each part takes again; infinity for the dearest ones, until all fit."""
        again, lead = dict(self.took), next(iter(self.took), "")
        for name in sorted(again, key=again.__getitem__, reverse=True):
            if name != lead and sum(filter(np.isfinite, again.values())) > left:
                again[name] = np.inf
        return again

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Keep how long a part takes to fit."""
        start = time.perf_counter()
        yield
        self.took[name] = time.perf_counter() - start
