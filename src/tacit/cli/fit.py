"""`tacit fit`: from rows with labels to a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson
from tacit.cli.output import cell, print_json, stage

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from tacit.cli.inputs import InputRows
    from tacit.estimators import MultiLabelEstimator
    from tacit.labels import Labels
    from tacit.methods.tacit.report import Report

__all__ = ["fit"]


def fit(
    data: Annotated[str, typer.Argument(help="A table, a file of matrices, or a data set's name.")],
    text: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of text; may be repeated.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of numbers; may be repeated.")
    ] = None,
    labels: Annotated[str, typer.Option(metavar="COLUMN", help="Column of tags.")] = "tags",
    separator: Annotated[
        str | None, typer.Option(help="What stands between tags; by default | or ; or a comma.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file to write.", show_default="DATA.tacit, here")
    ] = None,
    method: Annotated[
        str, typer.Option(help="tacit, which chooses for itself, or such as leml or ridge.")
    ] = "tacit",
    budget: Annotated[
        str | None,
        typer.Option(
            help="How long a fit of tacit may take, such as 60s or 5min.", show_default="what pays"
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Latent dimensions.", show_default="the method's")
    ] = None,
    reg: Annotated[
        float | None, typer.Option(help="Regularisation λ.", show_default="the method's")
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="Most passes.", show_default="the method's")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cpu")] = None,
    seed: Annotated[int, typer.Option(help="What the method draws at random comes from it.")] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File to keep the state between passes in, and to resume from."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose/--quiet", help="Show progress.")] = True,
    as_json: AsJson = False,
) -> None:
    """Learn labels from rows, and write a model file.

    Example: tacit fit packages.csv --text description --labels tags
    """
    from tacit import saved
    from tacit.cli.inputs import TableColumns, read_rows

    target = _target(data, model)
    given = {"rank": rank, "reg": reg, "max_iter": max_iter, "device": device}
    given["budget"] = _number_or_text(budget)
    estimator = _estimator(method, given, seed, verbose)
    if checkpoint is not None and "max_iter" not in estimator.get_params():
        raise ValueError(
            f"--checkpoint is not for --method {method}, which makes no passes; leave it out"
        )
    columns = TableColumns().given(text, features, labels, separator)
    with stage(f"reading {data}", verbose):
        rows = read_rows(data, columns, part="train")
    _check_folds(estimator, rows)
    Y = rows.said()
    unsaid_is_no = Y.kind == "positive-only" and Y.kind not in estimator.label_kinds
    Y = Y.as_complete() if unsaid_is_no else Y
    vectoriser, seconds = _learn(estimator, rows, Y, checkpoint, verbose)
    with stage(f"writing {target}", verbose):
        saved.save(_whole(vectoriser, estimator), target, extra=columns.as_extra())

    report = getattr(estimator, "report_", None)  # Tacit's: what it chose, and why
    facts = {
        "model": str(target),
        "method": type(estimator).__name__,
        "rows": len(rows),
        "features": int(estimator.n_features_in_),
        "labels": len(estimator.classes_),
        "labels_kind": Y.kind,
        "seconds": round(seconds, 3),
        "iterations": len(estimator.history_),
        "objective": float(estimator.history_[-1]) if estimator.history_ else None,
        "report": None if report is None else report.as_dict(),
    }
    if as_json:
        print_json(facts)
    elif verbose:
        _print_summary(facts, data, unsaid_is_no, report)


def _target(data: str, model: Path | None) -> Path:
    target = Path(Path(data).resolve().name.split(".")[0] + ".tacit") if model is None else model
    if target.is_dir():
        raise ValueError(f"--model {target} is a folder; give the name of a file in it")
    return target


def _estimator(method: str, given: dict[str, Any], seed: int, verbose: bool) -> MultiLabelEstimator:
    from tacit.basics.params import check_params
    from tacit.saved import METHODS

    classes = {name.lower(): method for name, method in METHODS.items()}
    if method.lower() not in classes:
        raise ValueError(f"--method must be one of {', '.join(sorted(classes))}; got {method!r}")
    estimator: MultiLabelEstimator = classes[method.lower()]()
    has = estimator.get_params()
    for name, value in given.items():
        if value is not None and name not in has:
            others = (other for other, made in classes.items() if name in made().get_params())
            raise ValueError(
                f"--{name.replace('_', '-')} is not for --method {method}, which has none; leave "
                f"it out, or give another --method: {', '.join(sorted(others))}"
            )
    wanted = {**given, "random_state": seed, "verbose": verbose}
    estimator.set_params(**{k: v for k, v in wanted.items() if k in has and v is not None})
    check_params(estimator)  # `fit` would, but only after a long file has been read
    return estimator


def _number_or_text(budget: str | None) -> float | str | None:
    """60 as seconds, "5min" as it is: whether it is a time at all is for the method to say."""
    try:
        return None if budget is None else float(budget)
    except ValueError:
        return budget


def _check_folds(estimator: MultiLabelEstimator, rows: InputRows) -> None:
    from tacit import Tacit

    if isinstance(estimator, Tacit) and len(rows) < 2 * estimator.cv:
        raise ValueError(
            f"--method tacit chooses by cross-validation, on at least {2 * estimator.cv} rows; "
            f"{rows.name} has {len(rows)}: give more, or another --method such as ridge"
        )


def _learn(
    estimator: MultiLabelEstimator,
    rows: InputRows,
    Y: Labels,
    checkpoint: Path | None,
    verbose: bool,
) -> tuple[TfidfVectorizer | None, float]:
    """Fit the estimator, and the vectoriser before it where the rows are text."""
    from tacit.cli.inputs import vectorised

    start = time.perf_counter()
    vectoriser, X = None, rows.X
    if isinstance(X, list):
        with stage("counting words", verbose):
            vectoriser, X = vectorised(X, rows.name)
    estimator.fit(X, Y, checkpoint=checkpoint)
    if "verbose" in estimator.get_params():
        estimator.set_params(verbose=False)  # a wish of this run, not of the model
    return vectoriser, time.perf_counter() - start


def _whole(vectoriser: TfidfVectorizer | None, estimator: MultiLabelEstimator) -> Any:
    from sklearn.pipeline import Pipeline

    if vectoriser is None:
        return estimator
    return Pipeline([("text", vectoriser), ("model", estimator)])


def _print_summary(
    facts: dict[str, Any], data: str, unsaid_is_no: bool, report: Report | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    for name in ("method", "rows", "features", "labels"):
        value = facts[name]
        grid.add_row(name, f"{value:,}" if isinstance(value, int) else value)
    if unsaid_is_no:
        grid.add_row("", "unsaid tags are read as no")
    for i, line in enumerate(str(report).splitlines() if report else ()):
        grid.add_row("" if i else "chosen", cell(line))
    grid.add_row("seconds", f"{facts['seconds']:.1f}")
    if facts["objective"] is not None:
        passes = "1 pass" if facts["iterations"] == 1 else f"{facts['iterations']} passes"
        grid.add_row("objective", f"{facts['objective']:.6g} after {passes}")
    grid.add_row("model", cell(facts["model"]))
    grid.add_row("next", cell(f"tacit complete {facts['model']} {data}"))
    grid.add_row("", cell(f"tacit predict {facts['model']} NEW_ROWS"))
    Console().print(grid)
