"""Study: a question, the cells that answer it, how one cell is measured, and how all are shown.

The boards (`boards/`) and the smaller studies (`studies/`) are all of this one kind. A cell is
plain JSON values; what is found in it is too (`board.py`). A study is a module that ends with

    STUDY = Study("name", "The question in one sentence?", cells, measure, tiny=[...])

and it is found by being there: `tacit bench study` lists the modules of `studies/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from rich.console import Console
from rich.table import Table

from tacit_bench.board import Board, Cell, Row

__all__ = ["BOARDS", "Study", "boards", "studies", "study", "tabulate"]


def tabulate(rows: Iterable[Row], console: Console) -> None:
    """One line a cell: what was asked, as far as cells differ, and the figures that were found."""
    rows = list(rows)
    asked = [name for name in _names(rows, "cell") if len(_values(rows, name)) > 1]
    figures = _names([row for row in rows if "found" in row], "found")
    table = Table(*(asked or ["what"]), *figures, box=None)
    for row in rows:
        what = [_written(row["cell"].get(name)) for name in asked] or ["all of it"]
        found = row.get("found") or {figures[0] if figures else "": f"skipped: {row['skipped']}"}
        table.add_row(*what, *(_written(found.get(name)) for name in figures))
        if not figures:
            console.print(f"{' · '.join(what)}: {row['skipped']}", markup=False)
    console.print(table)


@dataclass(frozen=True)
class Study:
    """A question and how it is answered.

    Attributes
    ----------
    name : str
        The name of its file of results, and what the command line calls it.
    question : str
        What it asks, in one sentence.
    cells : callable
        What is measured; called without arguments it gives all of it.
    measure : callable
        From a cell to what is found, as plain JSON values; it raises `Skip` where it cannot. It
        takes `device` where it can run on more than the CPU.
    tiny : list of dict
        Cells that take seconds and need no data but what comes with the library: the tests
        measure and show them. Empty where tests bring what stands in for data or packages.
    show : callable
        Prints rows for people.
    plot : callable, optional
        Draws the measured rows into an image file.
    apart : bool, default=True
        Whether each cell is measured in a fresh process, which gives its peak memory.
    """

    name: str
    question: str
    cells: Callable[..., Sequence[Cell]]
    measure: Callable[..., dict[str, Any]]
    tiny: Sequence[Cell] = ()
    show: Callable[[Sequence[Row], Console], None] = tabulate
    plot: Callable[[Sequence[Row], Path], None] | None = None
    apart: bool = True

    def board(self, results: Path) -> Board:
        """Its file of results."""
        return Board(results / f"{self.name}.jsonl")

    def fill(
        self,
        results: Path,
        cells: Sequence[Cell],
        device: str = "cpu",
        limit: float | None = None,
        jobs: int = 1,
    ) -> list[Row]:
        """Measure those of `cells` that are not known yet; the rows of all of them."""
        takes = inspect.signature(self.measure).parameters
        if device != "cpu" and "device" not in takes:
            raise ValueError(f"{self.name} runs on the CPU alone; leave --device out")
        told = {"device": device, "limit": limit}
        measure = partial(self.measure, **{name: told[name] for name in told if name in takes})
        jobs = jobs if self.apart else 0
        return self.board(results).fill(cells, measure, jobs=jobs, limit=limit)


BOARDS = ("papers", "missing", "real", "peers", "scale")


def boards() -> dict[str, Study]:
    """The boards, which have commands of their own."""
    return {name: import_module(f"tacit_bench.boards.{name}").STUDY for name in BOARDS}


def studies() -> dict[str, Study]:
    """All modules of `studies/`, by name."""
    from tacit_bench import studies as folder

    found = (import_module(f"{folder.__name__}.{m.name}") for m in iter_modules(folder.__path__))
    return {module.STUDY.name: module.STUDY for module in found}


def study(name: str) -> Study:
    """The study of this name."""
    there = studies()
    if name not in there:
        raise ValueError(f"there is no study {name!r}; there are {', '.join(there)}")
    return there[name]


def _names(rows: Iterable[Row], part: str) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row[part]))


def _values(rows: Iterable[Row], name: str) -> set[str]:
    return {repr(row["cell"].get(name)) for row in rows}


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
