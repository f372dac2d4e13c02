"""`tacit predict`: the labels of new rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, ModelFile, OutputFile, TableOptions, reads_a_table
from tacit.cli.output import cell, check_new, note, print_json, stage

if TYPE_CHECKING:
    from tacit.cli.inputs import InputRows

__all__ = ["predict"]

_SHOWN = 10  # rows printed


@reads_a_table
def predict(
    model: ModelFile,
    data: Annotated[str, typer.Argument(help="New rows: a table, matrices, or a data set.")],
    table: TableOptions,
    k: Annotated[int, typer.Option(min=1, help="Labels for each row.")] = 5,
    output: OutputFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict the most probable labels of new rows.

    Example: tacit predict packages.tacit new.csv --k 3 --output predicted.csv
    """
    from tacit.cli.inputs import Fitted, read_rows
    from tacit.datasets import write_table

    check_new(output, force)
    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        columns = fitted.columns.given(table)
        rows = read_rows(data, columns, part="test", labels=False, model=fitted)
    with stage(f"predicting {len(rows):,} rows"):
        best = fitted.estimator.top_k(fitted.features(rows), k, probability=True)
    names = fitted.names()

    def found() -> Iterator[tuple[Any, list[tuple[str, float]]]]:
        for row, labels, chances in zip(rows.ids, best.indices, best.scores):
            yield row, [(names[j], float(p)) for j, p in zip(labels, chances)]

    if output is not None:
        with stage(f"writing {output}"):
            write_table(
                output,
                (
                    {"row": row, "label": label, "probability": p}
                    for row, labels in found()
                    for label, p in labels
                ),
            )
    if as_json:
        report: dict[str, Any] = {"model": str(model), "rows": len(rows), "k": k}
        if output is not None:
            report["output"] = str(output)
        else:
            report["predictions"] = [
                {"row": row, "labels": [{"label": label, "probability": p} for label, p in labels]}
                for row, labels in found()
            ]
        print_json(report)
    elif output is not None:
        note(f"{len(rows):,} rows predicted; see {output}")
    else:
        _print_table(rows, found())


def _print_table(rows: InputRows, found: Iterator[tuple[Any, list[tuple[str, float]]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    texts = rows.X if isinstance(rows.X, list) else None
    console, table = Console(), Table()
    table.add_column("row")
    if texts is not None:
        table.add_column("text", no_wrap=True, max_width=min(30, 3 * console.width // 8))
    table.add_column("labels, with probability")
    for i, (row, labels) in zip(range(_SHOWN), found):
        shown = cell(", ".join(f"{label} {p:.2f}" for label, p in labels))
        table.add_row(cell(row), *([] if texts is None else [cell(texts[i][:200])]), shown)
    console.print(table)
    if len(rows) > _SHOWN:
        note(f"the first {_SHOWN} of {len(rows):,} rows; --output FILE keeps them all")
