"""`tacit evaluate`: how well a model finds the labels of rows it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, ModelFile, TagOptions, reads_a_table
from tacit.cli.output import note, print_json, stage

if TYPE_CHECKING:
    from tacit.cli.inputs import Fitted, InputRows

__all__ = ["evaluate"]

_PLACES = (1, 3, 5)


@reads_a_table
def evaluate(
    model: ModelFile,
    data: Annotated[
        str, typer.Argument(help="Rows with labels; of a data set, the test rows are taken.")
    ],
    table: TagOptions,
    as_json: AsJson = False,
) -> None:
    """Measure how well a model finds the labels of rows it has not seen.

    Example: tacit evaluate packages.tacit held_out.csv
    """
    from tacit.cli.inputs import Fitted, read_rows

    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        rows = read_rows(data, fitted.columns.given(table), part="test", model=fitted)
    figures = _figures(fitted, rows)
    if rows.seen:
        note(f"{data} has no test rows: these figures are of all its rows, seen in a fit or not")
    if as_json:
        print_json({"model": str(model), "rows": len(rows), **figures})
    else:
        _print_table(figures, len(rows))


def _figures(model: Fitted, rows: InputRows) -> dict[str, float | None]:
    """Every figure that can be had; None where no row defines it."""
    import numpy as np

    from tacit import metrics
    from tacit.cli.inputs import in_labels_of
    from tacit.labels import DENSE_LIMIT

    X = model.features(rows)
    rows = in_labels_of(model, rows)
    Y, Y_train = rows.said(), rows.Y_train
    found: dict[str, Any] = {}
    with stage(f"predicting {len(rows):,} rows"):
        # Labels that were not observed leave a ranking before it is cut, so it must be whole.
        whole = Y.kind == "masked"
        affordable = Y.n_samples * Y.n_labels <= DENSE_LIMIT
        scores = model.estimator.decision_function(X) if whole or affordable else None
        best = scores if whole else model.estimator.top_k(X, max(_PLACES))
        found |= _at("P", metrics.precision_at_k(Y, best, _PLACES))
        found["nDCG@5"] = metrics.ndcg_at_k(Y, best, 5)
        found["recall@5"] = metrics.recall_at_k(Y, best, 5)
        if Y_train is not None and len(Y_train) >= 3:  # the formula of propensities needs 3
            chances = metrics.propensities(Y_train)
            found |= _at("PSP", metrics.psp_at_k(Y, best, chances, _PLACES))
        if scores is not None:
            found["coverage"] = metrics.coverage(Y, scores)
    return {name: None if np.isnan(value) else float(value) for name, value in found.items()}


def _at(name: str, values: Any) -> dict[str, float]:
    return {f"{name}@{k}": value for k, value in zip(_PLACES, values)}


def _print_table(figures: dict[str, float | None], n: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{n:,} rows")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, "undefined" if value is None else f"{value:.4f}")
    Console().print(table)
