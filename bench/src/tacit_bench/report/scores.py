"""What ours and peers reached on the same work: means over seeds, and the best of either side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from tacit_bench.board import Row
from tacit_bench.boards.missing import DATA

__all__ = ["Condition", "Conditions", "Contest", "Score", "contests", "works"]

RATES = (0.0, 0.5, 0.8)  # of hiding, on which the two sides are compared


class Condition(NamedTuple):
    """What methods are compared on: a data set of which some labels are hidden."""

    data: str
    mechanism: str
    rate: float

    def __str__(self) -> str:
        what = "positives hidden" if self.mechanism == "positives" else "entries observed"
        return f"{self.data}, {self.rate:.0%} of the {what}"


@dataclass(frozen=True)
class Score:
    """What a method, ours or a peer, found on a work: an entry a seed."""

    method: str
    is_peer: bool
    found: list[dict[str, Any]]

    def seeds(self, name: str) -> list[float]:
        return [found[name] for found in self.found if found.get(name) is not None]

    def mean(self, name: str) -> float | None:
        values = self.seeds(name)
        return fmean(values) if values else None

    def written(self, name: str) -> str:
        """The mean, and the deviation between seeds where there are several."""
        values = self.seeds(name)
        spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
        return f"{fmean(values):,.2f}{spread}" if values else "–"


Conditions = dict[Condition, list[Score]]


def works(missing: Iterable[Row], peers: Iterable[Row]) -> Conditions:
    """The scores on each work, best P@3 first; of a cell that was skipped there is none."""
    found: dict[Condition, dict[tuple[str, bool], list[dict]]] = {}
    for rows, is_peer in ((missing, False), (peers, True)):
        for row in rows:
            if "found" in row:
                cell = row["cell"]
                scores = found.setdefault(
                    Condition(cell["data"], cell["mechanism"], cell["rate"]), {}
                )
                scores.setdefault((cell["method"], is_peer), []).append(row["found"])
    order = list(dict.fromkeys([*DATA, *(work.data for work in found)]))
    return {
        work: sorted(
            (Score(*who, each) for who, each in found[work].items()),
            key=lambda score: -(score.mean("P@3") or 0),
        )
        for work in sorted(found, key=lambda work: (order.index(work.data), *work[1:]))
    }


class Contest(NamedTuple):
    """The best of ours and the best peer by a figure, on a data set with so much hidden."""

    data: str
    hidden: str
    ours: str
    ours_reach: float | None
    peer: str
    peer_reaches: float | None
    difference: float | None


def contests(works: Conditions, name: str) -> list[Contest]:
    """By the figure `name`, on positives hidden at the rates of the headline."""
    found = []
    for work, scores in works.items():
        if work.mechanism == "positives" and work.rate in RATES:
            (who, ours), (peer, theirs) = (_best(scores, name, side) for side in (False, True))
            difference = None if ours is None or theirs is None else ours - theirs
            hidden = f"{work.rate:.0%}"
            found.append(Contest(work.data, hidden, who, ours, peer, theirs, difference))
    return found


def _best(scores: list[Score], name: str, is_peer: bool) -> tuple[str, float | None]:
    side = [(s.method, m) for s in scores if s.is_peer == is_peer and (m := s.mean(name))]
    return max(side, key=lambda pair: pair[1], default=("–", None))
