"""`tacit complete`: the unsaid labels that are most likely true."""

from __future__ import annotations

from itertools import groupby, islice
from operator import itemgetter
from typing import Annotated, Any

import typer

from tacit.cli.options import (
    AsJson,
    Checked,
    EachLabel,
    Force,
    ModelFile,
    OutputFile,
    Precision,
    Show,
    TagOptions,
    Why,
    reads_a_table,
)
from tacit.cli.output import cell, check_new, facts_table, note, print_json, stage

__all__ = ["complete"]

_SHOWN = 20  # completions printed, unless --top says otherwise
_OF_A_LABEL = 5  # of them
_MISSING = "label that seems to be missing"


@reads_a_table
def complete(
    model: ModelFile,
    data: Annotated[str, typer.Argument(help="Rows with labels: a table, matrices, a data set.")],
    table: TagOptions,
    k: Annotated[int, typer.Option(min=1, help="Most labels for one row.")] = 10,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many, the most probable.",
            show_default=f"all, of which {_SHOWN} on the screen",
        ),
    ] = None,
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Keep those at least so probable.")
    ] = 0.001,  # what is less would be told as 0.000
    show: Show = None,
    why: Why = False,
    by_label: Annotated[
        bool, typer.Option("--by-label", help="For each label the rows that seem to lack it.")
    ] = False,
    precision: Precision = None,
    checked: Checked = None,
    each_label: EachLabel = False,
    output: OutputFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find the labels that nobody said and that are most likely true.

    Example: tacit complete packages.tacit packages.csv --id name --output missing.csv
    """
    from tacit.cli.inputs import Fitted, in_labels_of, read_rows
    from tacit.cli.precision import Wanted
    from tacit.datasets import write_table

    check_new(output, force)
    wanted = Wanted.of(precision, checked, each_label)
    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        rows = read_rows(data, fitted.columns.given(table, show), part="train", model=fitted)
        X = fitted.features(rows)
    said = in_labels_of(fitted, rows).said()
    with stage(f"completing {len(rows):,} rows"):
        found = fitted.estimator.complete(X, said, k)
    sure = None if wanted is None else wanted.of_unsaid(fitted, table, rows, X, said, k)
    found = found if sure is None else sure.kept(found)
    kept = int((found.probability >= min_probability).sum())  # sorted, the most probable first
    kept = kept if top is None else min(kept, top)
    names = fitted.names()
    missing = [
        {
            "row": rows.ids[row],
            **rows.shown(row),
            "has": [names[j] for j in said.positives[[row]].indices],
            "label": names[label],
            "probability": float(p),
        }
        for row, label, p in zip(found.row[:kept], found.label[:kept], found.probability[:kept])
    ]
    if why:
        from tacit.cli.why import reasons

        with stage("looking for reasons"):
            told = reasons(fitted, X, found.row[:kept], found.label[:kept], said.positives)
        missing = [each | {"why": own} for each, own in zip(missing, told)]
    if by_label:
        missing = _by_label(missing)
    if output is not None:
        with stage(f"writing {output}"):
            write_table(output, missing)
    if as_json:
        report: dict[str, Any] = {"model": str(model), "rows": len(rows), "found": kept}
        report |= {} if sure is None else {"precision": sure.told}
        where = {"completions": missing} if output is None else {"output": str(output)}
        print_json(report | where)
    elif output is not None:
        note(f"{kept:,} labels found for {len(rows):,} rows; see {output}")
    else:
        shown = _of_each_label(missing) if by_label and top is None else missing
        shown = shown[: _SHOWN if top is None else top]
        if show or why:
            _print_one_by_one(shown)
        else:
            _print_table(shown, by_label)
        if len(missing) > len(shown):
            first = "" if by_label else "the first "
            note(f"{first}{len(shown)} of {len(missing):,}; --output FILE keeps them all")


def _by_label(missing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Label by label, that of the surest row first."""
    place = {label: i for i, label in enumerate(dict.fromkeys(e["label"] for e in missing))}
    return sorted(missing, key=lambda each: place[each["label"]])


def _of_each_label(missing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The surest rows of each label."""
    grouped = groupby(missing, key=itemgetter("label"))
    return [each for _, own in grouped for each in islice(own, _OF_A_LABEL)]


def _print_table(missing: list[dict[str, Any]], by_label: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table, before = Table(), None
    names = ("label", "row that seems to lack it") if by_label else ("row", _MISSING)
    for name in names:
        table.add_column(name)
    table.add_column("probability", justify="right")
    for each in missing:
        row, label = cell(each["row"]), cell(each["label"])
        again = by_label and each["label"] == before
        cells = (cell("") if again else label, row) if by_label else (row, label)
        table.add_row(*cells, f"{each['probability']:.3f}")
        before = each["label"]
    Console().print(table)


def _print_one_by_one(missing: list[dict[str, Any]]) -> None:
    """Each with all that is told of it, for which a table would be too wide."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console()
    for each in missing:
        name = f"row {each['row']}" if isinstance(each["row"], int) else each["row"]
        heading = f"{name} seems to lack {each['label']}, probability {each['probability']:.3f}"
        told = {**each, "has": ", ".join(each["has"])}
        reasons = told.pop("why", [])
        facts = [(name, told[name]) for name in told if name not in ("row", "label", "probability")]
        facts += [("" if i else "why", reason) for i, reason in enumerate(reasons)]
        console.print(cell(heading))
        console.print(Padding(facts_table(facts), (0, 0, 1, 2)))
