"""`tacit predict`: the labels of new rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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
    TableOptions,
    Why,
    reads_a_table,
)
from tacit.cli.output import cell, check_new, lines, note, print_json, stage

__all__ = ["predict"]

_SHOWN = 10  # rows printed


@reads_a_table
def predict(
    model: ModelFile,
    data: Annotated[str, typer.Argument(help="New rows: a table, matrices, or a data set.")],
    table: TableOptions,
    k: Annotated[int, typer.Option(min=1, help="Labels for each row.")] = 5,
    show: Show = None,
    why: Why = False,
    precision: Precision = None,
    checked: Checked = None,
    each_label: EachLabel = False,
    output: OutputFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict the most probable labels of new rows.

    Example: tacit predict packages.tacit new.csv --k 3 --output predicted.csv
    """
    import numpy as np

    from tacit.cli.inputs import Fitted, read_rows
    from tacit.cli.precision import Wanted
    from tacit.datasets import write_table

    check_new(output, force)
    wanted = Wanted.of(precision, checked, each_label)
    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        columns = fitted.columns.given(table, show)
        rows = read_rows(data, columns, part="test", labels=False, model=fitted)
    with stage(f"predicting {len(rows):,} rows"):
        X = fitted.features(rows)
        best = fitted.estimator.top_k(X, k, probability=True)
    sure = None if wanted is None else wanted.of_new_rows(fitted, table, k)
    names, whys = fitted.names(), None
    if why:
        from tacit.cli.why import reasons

        with stage("looking for reasons"):
            each = np.repeat(np.arange(len(rows)), best.indices.shape[1])
            whys = reasons(fitted, X, each, best.indices.ravel(), None)

    def found() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Each row, and its labels."""
        for i, (labels, chances) in enumerate(zip(best.indices, best.scores)):
            told = [
                {"label": names[j], "probability": float(p)}
                | ({} if whys is None else {"why": whys[i * len(labels) + m]})
                for m, (j, p) in enumerate(zip(labels, chances))
                if sure is None or p >= sure.least[j]
            ]
            yield {"row": rows.ids[i], **rows.shown(i)}, told

    if output is not None:
        with stage(f"writing {output}"):
            write_table(output, (row | label for row, labels in found() for label in labels))
    if as_json:
        report: dict[str, Any] = {"model": str(model), "rows": len(rows), "k": k}
        report |= {} if sure is None else {"precision": sure.told}
        if output is not None:
            report["output"] = str(output)
        else:
            report["predictions"] = [{**row, "labels": labels} for row, labels in found()]
        print_json(report)
    elif output is not None:
        note(f"{len(rows):,} rows predicted; see {output}")
    else:
        texts = rows.X if isinstance(rows.X, list) and not show else None
        _print_table(texts, list(islice(found(), _SHOWN)))
        if len(rows) > _SHOWN:
            note(f"the first {_SHOWN} of {len(rows):,} rows; --output FILE keeps them all")


def _print_table(
    texts: list[str] | None, found: list[tuple[dict[str, Any], list[dict[str, Any]]]]
) -> None:
    from rich.console import Console
    from rich.table import Table

    console, table = Console(), Table()
    for name in found[0][0]:
        table.add_column(cell(name))
    if texts is not None:
        table.add_column("text", no_wrap=True, max_width=min(30, 3 * console.width // 8))
    table.add_column("labels, with probability")
    for i, (row, labels) in enumerate(found):
        text = [] if texts is None else [cell(texts[i][:200])]
        table.add_row(*map(cell, row.values()), *text, _written(labels))
    console.print(table)


def _written(labels: list[dict[str, Any]]) -> Any:
    """Side by side, or below each other where reasons are told."""
    told = [f"{each['label']} {each['probability']:.2f}" for each in labels]
    if all("why" not in each for each in labels):
        return cell(", ".join(told))
    return lines(f"{one}: {', '.join(each['why'])}" for one, each in zip(told, labels))
