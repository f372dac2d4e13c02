"""The papers' own tables, run by their protocols, ours beside what was published.

`protocol.py` says what a protocol is and measures a cell of one, `splits.py` how rows are chosen;
`leml.py`, `faie.py`, `mpu.py`, `geneml.py` and `sem.py` declare the tables of a paper each;
`ranks.py` has all k / L of a FaIE table from one fit, `statistics.py` the tables that count rows,
`timing.py` those of seconds.
`compare.py` sets what was found beside `published.json`, `misses.py` knows why some is missed, and
`tables.py` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from tacit_bench.board import Cell, Row
from tacit_bench.boards.papers import compare, faie, geneml, leml, mpu, sem, tables
from tacit_bench.boards.papers.compare import Comparison
from tacit_bench.boards.papers.protocol import Protocol
from tacit_bench.study import Study

__all__ = ["PROTOCOLS", "Comparison", "Protocol", "cells", "compared", "measure", "show"]

PROTOCOLS: tuple[Protocol, ...] = (
    *leml.PROTOCOLS,
    *faie.PROTOCOLS,
    *mpu.PROTOCOLS,
    *geneml.PROTOCOLS,
    *sem.PROTOCOLS,
)


def cells(paper: str | None = None, table: str | None = None, quick: bool = False) -> list[Cell]:
    """The cells of all papers, of one, or of one table of it.

    Parameters
    ----------
    paper : str, optional
        "LEML", "FaIE", "MPU", "GenEML" or "SEM".
    table : str, optional
        Such as "2" or "figure 5".
    quick : bool, default=False
        A few minutes of all papers: small data, few folds, seeds and settings. These cells have
        "quick" in them, and never mix with the others.

    Examples
    --------
    >>> cells("GenEML", "2", quick=True)[0]
    {'paper': 'GenEML', 'table': '2', 'data': 'planted', 'method': 'GenEML', 'quick': True}
    """
    papers = list(dict.fromkeys(p.paper for p in PROTOCOLS))
    if paper is not None and paper not in papers:
        raise ValueError(f"paper must be one of {', '.join(papers)}; got {paper!r}")
    of_paper = [p for p in PROTOCOLS if paper in (None, p.paper)]
    tables = list(dict.fromkeys(p.table for p in of_paper))
    if table is not None and table not in tables:
        of = f" of {paper}" if paper else ""
        raise ValueError(f"table{of} must be one of {', '.join(tables)}; got {table!r}")
    return [cell for p in of_paper if table in (None, p.table) for cell in p.cells(quick)]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """What is found in a cell: the paper's metrics in its units, seconds of a fit, the model."""
    for protocol in PROTOCOLS:
        if cell in protocol:
            return protocol.measure(cell, device)
    raise ValueError(f"cell must be one of those that cells() lists; got {cell}")


def compared(rows: Iterable[Row]) -> list[Comparison]:
    """Every figure of the measured rows beside the published one, if there is one."""
    return compare.compared(rows, PROTOCOLS, compare.published())


def show(rows: Sequence[Row], console: Console) -> None:
    """A table for each published one, why figures were missed, and what cannot be run."""
    tables.show(rows, PROTOCOLS, compare.published(), console)


STUDY = Study(
    "papers",
    "Are the published tables reached?",
    cells,
    measure,
    tiny=cells("GenEML", "2", quick=True)[:1],
    show=show,
    apart=False,
)
