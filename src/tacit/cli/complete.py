"""`tacit complete`: the unsaid labels that are most likely true."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, ModelFile, OutputFile, TagOptions, reads_a_table
from tacit.cli.output import cell, check_new, note, print_json, stage

__all__ = ["complete"]

_SHOWN = 20  # completions printed, unless --top says otherwise


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
    output: OutputFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find the labels that nobody said and that are most likely true.

    Example: tacit complete packages.tacit packages.csv --id name --output missing.csv
    """
    from tacit.cli.inputs import Fitted, in_labels_of, read_rows
    from tacit.datasets import write_table

    check_new(output, force)
    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        rows = read_rows(data, fitted.columns.given(table), part="train", model=fitted)
        X = fitted.features(rows)
    said = in_labels_of(fitted, rows).said()
    with stage(f"completing {len(rows):,} rows"):
        found = fitted.estimator.complete(X, said, k)
    kept = int((found.probability >= min_probability).sum())  # sorted, the most probable first
    kept = kept if top is None else min(kept, top)
    names = fitted.names()
    missing = [
        {"row": rows.ids[row], "label": names[label], "probability": float(p)}
        for row, label, p in zip(found.row[:kept], found.label[:kept], found.probability[:kept])
    ]
    if output is not None:
        with stage(f"writing {output}"):
            write_table(output, missing)
    if as_json:
        report: dict[str, Any] = {"model": str(model), "rows": len(rows), "found": kept}
        where = {"completions": missing} if output is None else {"output": str(output)}
        print_json(report | where)
    elif output is not None:
        note(f"{kept:,} labels found for {len(rows):,} rows; see {output}")
    else:
        _print_table(missing, _SHOWN if top is None else top)


def _print_table(missing: list[dict[str, Any]], shown: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in ("row", "label that seems to be missing"):
        table.add_column(name)
    table.add_column("probability", justify="right")
    for found in missing[:shown]:
        table.add_row(cell(found["row"]), cell(found["label"]), f"{found['probability']:.3f}")
    Console().print(table)
    if len(missing) > shown:
        note(f"the first {shown} of {len(missing):,}; --output FILE keeps them all")
