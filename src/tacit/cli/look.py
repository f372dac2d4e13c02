"""`tacit look`: what would be learnt from, before anything is."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, TagOptions, reads_a_table
from tacit.cli.output import cell, facts_table, print_json, stage

if TYPE_CHECKING:
    from tacit.cli.columns import TableColumns
    from tacit.cli.inputs import InputRows
    from tacit.datasets.tables.columns import Column
    from tacit.methods.tacit.plan import Plan

__all__ = ["look"]

_COLUMNS = 12  # shown
_FEWEST = 10  # rows that Tacit can be planned for


@reads_a_table
def look(
    data: Annotated[str, typer.Argument(help="A table, a file of matrices, or a data set's name.")],
    table: TagOptions,
    as_json: AsJson = False,
) -> None:
    """Show what would be read of a table, what seems wrong, and what a fit would take.

    Example: tacit look packages.csv
    """
    from tacit.cli.columns import TableColumns
    from tacit.cli.inputs import check_rows, is_table, read_rows

    columns = TableColumns().given(table)
    if not is_table(data, columns.format):
        with stage(f"reading {data}"):
            rows = read_rows(data, columns, part="train")
        _tell_matrices(rows, as_json)
        return
    path = Path(data)
    check_rows(path)
    with stage(f"reading {data}"):
        kinds = _kinds(path, columns)
        columns = _guessed(columns, kinds, named=bool(table.labels))
        read = columns.read(path, labels=bool(columns.labels))
    plan, command = _plan(read, path.name), _next(data, columns, read.reading)
    if as_json:
        seconds = None if plan is None else {"seconds": plan.seconds, "parts": list(plan.names)}
        found = [{"name": c.name, "kind": c.kind, "examples": c.examples} for c in kinds]
        print_json(
            {**read.reading.as_dict(), "all_columns": found, "plan": seconds, "next": command}
        )
        return
    _tell(read.reading, kinds, plan, command)


def _kinds(path: Path, columns: TableColumns) -> list[Column]:
    from tacit.datasets.tables.columns import columns_of

    return columns_of(columns.rows_of(path))


def _guessed(columns: TableColumns, kinds: list[Column], named: bool) -> TableColumns:
    """The columns that the user named, and for the rest those that look as if they were meant."""
    by_kind = {
        kind: [c.name for c in kinds if c.kind == kind] for kind in ("tags", "text", "yes/no")
    }
    if not named and columns.labels[0] not in [c.name for c in kinds]:
        several = ("*",) if len(by_kind["yes/no"]) > 1 else ()
        columns = replace(columns, labels=tuple(by_kind["tags"][:1]) or several)
    if not columns.text and not columns.features:
        text = [name for name in by_kind["text"] if name not in columns.labels]
        columns = replace(columns, text=tuple(text[:1]))
    return columns


def _plan(read: Any, name: str) -> Plan | None:
    """What a fit of Tacit would take, where there is something to learn from."""
    from tacit import Tacit
    from tacit.cli.inputs import vectorised

    X = read.X if read.text is None else read.text
    if X is None or read.Y is None or len(X) < _FEWEST:
        return None
    with stage("planning"):
        return Tacit().plan(vectorised(X, name)[1] if read.X is None else X, read.Y)


def _next(data: str, columns: TableColumns, reading: Any) -> str:
    """The command that would learn from it, with what settles doubts."""
    said = {
        "text": columns.text or (() if columns.features else ("COLUMN",)),
        "features": columns.features,
        "labels": columns.labels or ("COLUMN",),
        "id": [columns.id] if columns.id else [],
    }
    for doubt in reading.doubts:
        said |= {name: (value,) for name, value in doubt.options.items()}
    words = ["tacit", "fit", data]
    words += [word for name, values in said.items() for v in values for word in (f"--{name}", v)]
    return shlex.join(words)


def _tell(reading: Any, kinds: list[Column], plan: Plan | None, command: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from tacit.cli.understood import in_words, option

    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    for name in ("column", "kind"):
        table.add_column(name, no_wrap=True, max_width=24)
    table.add_column("such as", no_wrap=True, ratio=1)
    for column in kinds[:_COLUMNS]:
        table.add_row(cell(column.name), column.kind, cell(", ".join(column.examples)))
    if len(kinds) > _COLUMNS:
        table.add_row(f"and {len(kinds) - _COLUMNS:,} more")
    facts = [fact for fact in reading.facts() if fact[0] != "doubt"]
    for doubt in reading.doubts:
        facts += [("doubt", doubt.what), ("", f"{option(doubt)} settles it")]
    if plan is not None:
        facts.append(("a fit", in_words(plan)))
    facts.append(("next", command))
    Console().print(table, "", facts_table(facts), sep="\n")


def _tell_matrices(rows: InputRows, as_json: bool) -> None:
    from rich.console import Console

    from tacit import Tacit
    from tacit.cli.understood import in_words

    n, d = len(rows), rows.X.shape[1]  # type: ignore[union-attr]
    plan = Tacit().plan(rows.X, rows.said()) if n >= _FEWEST else None
    if as_json:
        seconds = None if plan is None else {"seconds": plan.seconds, "parts": list(plan.names)}
        n_labels = rows.said().n_labels
        print_json({"rows": n, "features": d, "labels": n_labels, "plan": seconds})
        return
    labels = [" ".join(line.split()) for line in rows.said().summary().splitlines()]
    facts: list[tuple[str, object]] = [("data", rows.name), ("rows", f"{n:,}")]
    facts.append(("features", f"{d:,}"))
    facts += [("labels" if i == 0 else "", line) for i, line in enumerate(labels)]
    if plan is not None:
        facts.append(("a fit", in_words(plan)))
    Console().print(facts_table(facts))
