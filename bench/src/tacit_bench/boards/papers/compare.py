"""Ours beside published: what was reached, what was missed and why, and what cannot be run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from tacit_bench.board import Cell, Row
from tacit_bench.boards.papers.misses import why_missed
from tacit_bench.boards.papers.protocol import Protocol, Setting

__all__ = ["Comparison", "Published", "Verdict", "compared", "published", "reason"]

Published = dict[str, Any]
"""A row of a published table: paper, table, data, method, setting, and values by metric."""

Verdict = Literal["reached", "within", "missed", "shown", "ours only"]


@dataclass(frozen=True)
class Comparison:
    """One figure of ours and the published one, if there is one.

    `difference` is ours less published, `tolerance` what may be noise, in the metric's unit.
    """

    paper: str
    table: str
    data: str
    method: str | None
    setting: Setting
    metric: str
    ours: float
    published: float | None
    difference: float | None
    tolerance: float | None
    verdict: Verdict
    why: str | None
    quick: bool

    @property
    def missed(self) -> bool:
        return self.verdict == "missed"


@cache
def published() -> tuple[Published, ...]:
    """Every row of the papers' tables; settings are those that rows of a table differ in."""
    text = files("tacit_bench").joinpath("published.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


def reason(row: Published, metric: str, protocols: Sequence[Protocol]) -> str | None:
    """Why a published figure has no cell of ours; None where it has one."""
    if all(row["data"].lower() != name.lower() for p in protocols for name in p.data):
        return "no data"
    table = [p for p in protocols if (p.paper, p.table) == (row["paper"], row["table"])]
    if table and all(row["method"] not in p.methods for p in table):
        return "no method"
    return None if any(_of(p, row, metric) for p in table) else "not run"


def _of(protocol: Protocol, row: Published, metric: str) -> bool:
    """Whether a published figure is one that a protocol measures."""
    rows = row["data"] in protocol.data and row["method"] in protocol.methods
    return rows and row["setting"] in protocol.settings and metric in protocol.metrics


def compared(
    rows: Iterable[Row], protocols: Sequence[Protocol], known: Iterable[Published]
) -> list[Comparison]:
    """Every figure of the measured rows, beside the published one if there is one."""
    theirs = {_key(row["paper"], row["table"], *_names(row)): row["values"] for row in known}
    found = []
    for row in rows:
        cell = row["cell"]
        protocol = next((p for p in protocols if cell in p), None)
        if protocol is None or "found" not in row:  # of an earlier version, or skipped
            continue
        name = next(name for name, ours in protocol.data.items() if ours == cell["data"])
        for setting, values in protocol.values(cell, row["found"]):
            printed = theirs.get(_key(cell["paper"], cell["table"], name, cell["method"], setting))
            for metric, value in values.items():
                published = (printed or {}).get(metric)
                found.append(_comparison(protocol, cell, setting, metric, value, published))
    return found


def _names(row: Published) -> tuple[str, str | None, Setting]:
    return row["data"], row["method"], row["setting"]


def _key(*names: Any) -> str:
    return json.dumps(names, sort_keys=True)


def _comparison(
    protocol: Protocol,
    cell: Cell,
    setting: Setting,
    metric: str,
    ours: float,
    published: float | None,
) -> Comparison:
    how = protocol.metrics[metric]
    verdict: Verdict = "ours only"
    difference = tolerance = None
    if published is not None:
        difference, tolerance = round(ours - published, 4), how.margin(published)
        gain = round(how.gain(ours, published), 4)
        if tolerance is None:
            verdict = "shown"
        else:
            verdict = "reached" if gain >= 0 else "within" if gain >= -tolerance else "missed"
    names = cell["paper"], cell["table"], cell["data"], cell["method"]
    return Comparison(
        *names,
        setting=setting,
        metric=metric,
        ours=ours,
        published=published,
        difference=difference,
        tolerance=tolerance,
        verdict=verdict,
        why=why_missed(*names, metric) if verdict == "missed" else None,
        quick=bool(cell.get("quick")),
    )
