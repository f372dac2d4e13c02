"""`tacit fit`: from rows with labels to a model file."""

from __future__ import annotations

import difflib
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, TagOptions, reads_a_table
from tacit.cli.output import check_new, facts_table, note, print_json, stage

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

    from tacit.cli.inputs import InputRows
    from tacit.estimators import MultiLabelEstimator
    from tacit.labels import Labels
    from tacit.methods.tacit.report import Report

__all__ = ["check_folds", "estimator_of", "fit", "learn"]


@reads_a_table
def fit(
    data: Annotated[str, typer.Argument(help="A table, a file of matrices, or a data set's name.")],
    table: TagOptions,
    output: Annotated[
        Path | None, typer.Option(help="Model file to write.", show_default="DATA.tacit, here")
    ] = None,
    model: Annotated[Path | None, typer.Option(hidden=True)] = None,
    force: Force = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go on where the table looks misread.")
    ] = False,
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
    from tacit.cli.columns import TableColumns
    from tacit.cli.inputs import read_rows, refuse_model
    from tacit.cli.understood import refuse_doubts, tell

    refuse_model(data)
    target = _target(data, output, model)
    check_new(target, force)
    given = {"rank": rank, "reg": reg, "max_iter": max_iter, "device": device}
    given["budget"] = _time(budget)
    estimator = estimator_of(method, given, seed, verbose)
    if checkpoint is not None and "max_iter" not in estimator.get_params():
        raise ValueError(
            f"--checkpoint is not for --method {method}, which makes no passes; leave it out"
        )
    columns = TableColumns().given(table)
    with stage(f"reading {data}", verbose):
        rows = read_rows(data, columns, part="train")
    check_folds(estimator, rows)
    if verbose and rows.reading is not None:
        tell(rows.reading)
    if not yes:
        refuse_doubts(rows.reading)
    Y = rows.said()
    unsaid_is_no = Y.kind == "positive-only" and Y.kind not in estimator.label_kinds
    Y = Y.as_complete() if unsaid_is_no else Y
    vectoriser, seconds = learn(estimator, rows, Y, checkpoint, verbose)
    with stage(f"writing {target}", verbose):
        saved.save(
            _whole(vectoriser, estimator), target, extra=columns.as_read(rows.reading).as_extra()
        )

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
        "reading": None if rows.reading is None else rows.reading.as_dict(),
        "report": None if report is None else report.as_dict(),
    }
    if as_json:
        print_json(facts)
    elif verbose:
        _print_summary(facts, data, unsaid_is_no, report)
    else:
        print(target)


def _target(data: str, output: Path | None, model: Path | None) -> Path:
    if model is not None:
        note("--model of tacit fit is called --output now, as in every command")
    chosen = output or model
    return Path(Path(data).resolve().name.split(".")[0] + ".tacit") if chosen is None else chosen


def estimator_of(
    method: str, given: dict[str, Any], seed: int, verbose: bool
) -> MultiLabelEstimator:
    """The method of that name, with the options that were given and not None."""
    from tacit.basics.params import check_params
    from tacit.saved import METHODS

    classes = {name.lower(): method for name, method in METHODS.items()}
    if method.lower() not in classes:
        close = difflib.get_close_matches(method.lower(), classes, n=1)
        more = f"; did you mean {close[0]}?" if close else ""
        known = ", ".join(sorted(classes))
        raise ValueError(f"--method must be one of {known}; got {method!r}{more}")
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
    try:
        check_params(estimator)  # `fit` would, but only after a long file has been read
    except ValueError as error:
        raise ValueError(_of_options(str(error), given)) from None
    return estimator


def _of_options(sentence: str, given: dict[str, Any]) -> str:
    """The sentence about a parameter as one about the option that set it."""
    name, _, rest = sentence.partition(": ")[2].partition(" ")
    return f"--{name.replace('_', '-')} {rest}" if name in given else sentence


def _time(budget: str | None) -> float | str | None:
    """60 as seconds, "5min" as it is."""
    from tacit.methods.tacit.plan import seconds_of

    try:
        given: float | str | None = None if budget is None else float(budget)
    except ValueError:
        given = budget
    if given is not None and seconds_of(given) is None:
        raise ValueError(f"--budget must be a time such as 60s, 5min or 1h; got {budget!r}")
    return given


def check_folds(estimator: MultiLabelEstimator, rows: InputRows) -> None:
    """Refuse rows that are too few for the folds of Tacit."""
    from tacit import Tacit

    if isinstance(estimator, Tacit) and len(rows) < 2 * estimator.cv:
        raise ValueError(
            f"--method tacit chooses by cross-validation, on at least {2 * estimator.cv} rows; "
            f"{rows.name} has {len(rows)}: give more, or another --method such as ridge"
        )


def learn(
    estimator: MultiLabelEstimator,
    rows: InputRows,
    Y: Labels,
    checkpoint: Path | None,
    verbose: bool,
) -> tuple[TfidfVectorizer | None, float]:
    """Fit the estimator, and the vectoriser before it where the rows are text."""
    from tacit import Tacit
    from tacit.cli.inputs import vectorised
    from tacit.cli.understood import in_words

    start = time.perf_counter()
    vectoriser, X = None, rows.X
    if isinstance(X, list):
        with stage("counting words", verbose):
            vectoriser, X = vectorised(X, rows.name)
    if verbose and isinstance(estimator, Tacit):
        note(f"the fit will take {in_words(estimator.plan(X, Y))}")
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

    sizes = ("method", "rows", "features", "labels")
    told = [(n, f"{facts[n]:,}" if isinstance(facts[n], int) else facts[n]) for n in sizes]
    if unsaid_is_no:
        told.append(("", "unsaid tags are read as no"))
    lines = str(report).splitlines() if report else []
    told += [("" if i else "chosen", line) for i, line in enumerate(lines)]
    told.append(("seconds", f"{facts['seconds']:.1f}"))
    if facts["objective"] is not None:
        passes = "1 pass" if facts["iterations"] == 1 else f"{facts['iterations']} passes"
        told.append(("objective", f"{facts['objective']:.6g} after {passes}"))
    told.append(("model", facts["model"]))
    told.append(("next", shlex.join(["tacit", "complete", facts["model"], data])))
    told.append(("", f"{shlex.join(['tacit', 'predict', facts['model']])} NEW_ROWS"))
    Console().print(facts_table(told))
