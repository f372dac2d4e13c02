"""`tacit evaluate`: how well a model finds the labels of rows it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, ModelFile, PageFile, TagOptions, reads_a_table
from tacit.cli.output import check_new, check_page, note, print_json, stage, write_page

if TYPE_CHECKING:
    from tacit.cli.inputs import Fitted, InputRows
    from tacit.labels import Labels, TopK
    from tacit.metrics.calibration import Reliability
    from tacit.metrics.thresholds import AtThresholds

__all__ = ["THRESHOLDS", "Evaluation", "evaluate"]

_PLACES = (1, 3, 5)
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
_MIDDLE = 0.5  # the threshold of the table of labels, as of `predict`
_ENTRIES = 2**24  # of rows × labels: beyond, the most probable of each row stand for all
_LISTED = 100  # so many of them


@dataclass(frozen=True)
class Evaluation:
    """All that is told of a model and rows."""

    name: str
    """What the rows are called."""
    truth: Labels
    names: list[str]
    """Of the labels."""
    figures: dict[str, float | None]
    """By name; None where no row defines it."""
    thresholds: AtThresholds
    """At `THRESHOLDS`, of all labels together."""
    labels: AtThresholds
    """At 0.5, of each label."""
    reliability: Reliability


@reads_a_table
def evaluate(
    model: ModelFile,
    data: Annotated[
        str, typer.Argument(help="Rows with labels; of a data set, the test rows are taken.")
    ],
    table: TagOptions,
    output: PageFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure how well a model finds the labels of rows it has not seen.

    Example: tacit evaluate packages.tacit held_out.csv --output evaluation.html
    """
    from tacit.cli import evaluated
    from tacit.cli.inputs import Fitted, read_rows

    check_page(output)
    check_new(output, force)
    with stage(f"reading {model} and {data}"):
        fitted = Fitted.open(model, data)
        rows = read_rows(data, fitted.columns.given(table), part="test", model=fitted)
    found = _evaluation(fitted, rows)
    if rows.seen:
        note(f"{data} has no test rows: these figures are of all its rows, seen in a fit or not")
    if output is not None:
        write_page(output, evaluated.as_page(found))
    if as_json:
        print_json({"model": str(model), "rows": len(rows), **evaluated.as_dict(found)})
    else:
        evaluated.tell(found, output)


def _evaluation(model: Fitted, rows: InputRows) -> Evaluation:
    from tacit import metrics
    from tacit.cli.inputs import in_labels_of

    X = model.features(rows)
    rows = in_labels_of(model, rows)
    Y = rows.said()
    with stage(f"predicting {len(rows):,} rows"):
        k = Y.n_labels if Y.n_samples * Y.n_labels <= _ENTRIES else min(_LISTED, Y.n_labels)
        chances = model.estimator.top_k(X, k, probability=True)
        figures = _figures(model, X, rows, chances)
    return Evaluation(
        rows.name,
        Y,
        model.names(),
        figures,
        metrics.at_thresholds(Y, chances, THRESHOLDS),
        metrics.at_thresholds(Y, chances, [_MIDDLE], by="labels"),
        metrics.reliability(Y, chances),
    )


def _figures(model: Fitted, X: Any, rows: InputRows, chances: TopK) -> dict[str, float | None]:
    """Every figure of the ranking that can be had."""
    import numpy as np

    from tacit import metrics
    from tacit.labels import DENSE_LIMIT

    Y, Y_train = rows.said(), rows.Y_train
    found: dict[str, Any] = {}
    # Labels that were not observed leave a ranking before it is cut, so it must be whole.
    whole = Y.kind == "masked"
    affordable = Y.n_samples * Y.n_labels <= DENSE_LIMIT
    scores = model.estimator.decision_function(X) if whole or affordable else None
    best = scores if whole else chances
    found |= _at("P", metrics.precision_at_k(Y, best, _PLACES))
    found["nDCG@5"] = metrics.ndcg_at_k(Y, best, 5)
    found["recall@5"] = metrics.recall_at_k(Y, best, 5)
    if Y_train is not None and len(Y_train) >= 3:  # the formula of propensities needs 3
        p = metrics.propensities(Y_train)
        found |= _at("PSP", metrics.psp_at_k(Y, best, p, _PLACES))
    if scores is not None:
        found["coverage"] = metrics.coverage(Y, scores)
    return {name: None if np.isnan(value) else float(value) for name, value in found.items()}


def _at(name: str, values: Any) -> dict[str, float]:
    return {f"{name}@{k}": value for k, value in zip(_PLACES, values)}
