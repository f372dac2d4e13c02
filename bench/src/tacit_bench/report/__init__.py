"""`tacit bench report`: one page of all that the boards hold, and the headline of the docs.

The page is made from the files of lines alone; a board that is not there yet is a sentence that
names the command to fill it. `scores.py` gathers what ours and peers reached, `accuracy.py`,
`growth.py` and `papers.py` write the sections, `words.py` the cells of tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tacit.html.page import Html, facts, figure, page, subheading, table
from tacit_bench.board import Board, Row
from tacit_bench.report.accuracy import in_short, missing, time
from tacit_bench.report.growth import growth
from tacit_bench.report.headline import headline, write_headline
from tacit_bench.report.papers import papers
from tacit_bench.report.scores import works
from tacit_bench.report.words import COMMANDS, not_measured, number, skipped

__all__ = ["headline", "report", "write_headline"]


def report(results: Path) -> str:
    """The page about the boards in the folder `results`."""
    boards = {name: Board(Path(results) / f"{name}.jsonl").rows() for name in COMMANDS}
    scores = works(boards["missing"], boards["peers"])
    sides = [*boards["missing"], *boards["peers"]]
    return page(
        "The scoreboard of tacit",
        [
            ("", _introduction(boards)),
            ("In short", in_short(scores)),
            ("Accuracy against missing rate", [*missing(scores), *skipped(sides)]),
            ("Accuracy against time", time(scores)),
            ("What was really missing", [*_real(boards["real"]), *skipped(boards["real"])]),
            ("Scaling", [*growth(boards["scale"]), *skipped(boards["scale"])]),
            ("Papers", [*papers(boards["papers"]), *skipped(boards["papers"])]),
            ("How this was measured", _about(boards)),
        ],
        contents=True,
    )


def _introduction(boards: dict[str, list[Row]]) -> list[str]:
    found = {name: [row for row in rows if "found" in row] for name, rows in boards.items()}
    count = lambda board, key: len({row["cell"][key] for row in found[board]})
    measured = sum(map(len, found.values()))
    return [
        "What tacit's methods reach on data whose labels were hidden on purpose, beside packages "
        "that people use today; what that costs, and how it grows; and whether the tables of the "
        "papers are reached. Every figure is from a line of a results file.",
        facts(
            [
                (measured, "cells measured"),
                (sum(map(len, boards.values())) - measured, "skipped, and why is said"),
                (count("missing", "data"), "data sets"),
                (count("missing", "method"), "methods of ours"),
                (count("peers", "method"), "peers"),
            ]
        ),
    ]


def _real(rows: list[Row]) -> list[str]:
    """A table a data set, with a column for each figure that any row of it has."""
    found = [row for row in rows if "found" in row]
    if not found:
        return [not_measured("real")]
    parts: list[str] = ["Labels that really were missing, and that people were asked for later."]
    for data in dict.fromkeys(row["cell"]["data"] for row in found):
        parts += [subheading(data), _figures([r for r in found if r["cell"]["data"] == data])]
    return parts


def _figures(rows: list[Row]) -> Html:
    numbers = [
        {name: value for name, value in row["found"].items() if isinstance(value, int | float)}
        for row in rows
    ]
    names = list(dict.fromkeys(name for found in numbers for name in found))
    return table(
        ["method", *names],
        [
            [row["cell"]["method"], *(figure(number(found.get(name))) for name in names)]
            for row, found in zip(rows, numbers)
        ],
    )


def _about(boards: dict[str, list[Row]]) -> list[str]:
    """What each board was filled by and on, a column a board."""
    filled = {name: rows for name, rows in boards.items() if rows}
    if not filled:
        return [not_measured(*COMMANDS)]
    names = dict.fromkeys(name for rows in filled.values() for r in rows for name in r["about"])
    names.pop("load", None)
    found = {board: [r.get("found", {}) for r in rows] for board, rows in filled.items()}
    lines: dict[str, list[str]] = {
        "command": [COMMANDS[board] for board in filled],
        "cells": [f"{len(rows):,}" for rows in filled.values()],
        "seeds": [_all(r["cell"].get("seed") for r in rows) for rows in filled.values()],
        "settings tried": [
            _all(len(f.get("tried") or []) or None for f in x) for x in found.values()
        ],
        "load before a cell": [
            _range(r["about"].get("load") for r in rows) for rows in filled.values()
        ],
        "device": [_all(f.get("device") for f in x) for x in found.values()],
        **{
            name: [_all(r["about"].get(name) for r in rows) for rows in filled.values()]
            for name in names
        },
    }
    return [
        "A cell is measured once and written down at once, with versions, machine and date. Each "
        "model, ours or a peer, chooses among its settings by P@3 on held-out training rows, "
        "against what is still said there, and is then fitted on all of them.",
        table(["board", *filled], [[name, *line] for name, line in lines.items()]),
    ]


def _range(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):g} to {max(known):g}" if known else "–"


def _all(values: Iterable[Any]) -> str:
    """Every value there is, once."""
    return ", ".join(sorted({str(value) for value in values if value is not None})) or "–"
