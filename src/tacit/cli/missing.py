"""`tacit missing`: how many true labels nobody wrote down, with its doubts."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, PageFile, TagOptions, reads_a_table
from tacit.cli.output import cell, check_new, check_page, print_json, stage, write_page

if TYPE_CHECKING:
    from tacit.cli.inputs import InputRows
    from tacit.missing import Missing

__all__ = ["missing"]

_DRAWN = 20  # labels in the chart
_ON_PAGE = 500  # and in its table
_HINT = "give one by tacit, mpu, geneml or elkan08, or leave --model out"


@reads_a_table
def missing(
    data: Annotated[str, typer.Argument(help="A table, a file of matrices, or a data set's name.")],
    table: TagOptions,
    model: Annotated[
        Path | None,
        typer.Option(help="A model file that tacit fit wrote of DATA.", show_default="a new fit"),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Labels that the terminal lists.")] = 10,
    output: PageFile = None,
    force: Force = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go on where the table looks misread.")
    ] = False,
    seed: Annotated[int, typer.Option(help="What the fit draws at random comes from it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say how many true labels were never said, in all and of each label.

    Example: tacit missing packages.csv --text description --output missing.html
    """
    from tacit.cli.columns import TableColumns
    from tacit.cli.inputs import Fitted, in_labels_of, read_rows
    from tacit.cli.understood import refuse_doubts

    check_page(output)
    check_new(output, force)
    fitted = None if model is None else Fitted.open(model, data)
    columns = TableColumns() if fitted is None else fitted.columns
    with stage(f"reading {data}"):
        rows = read_rows(data, columns.given(table), part="train", model=fitted)
    if fitted is None:
        if not yes:
            refuse_doubts(rows.reading)
        found = _after_a_fit(_as_silent(rows), seed)
    else:
        rows = _as_silent(in_labels_of(fitted, rows))
        _check_rates(fitted)
        with stage("estimating"):
            found = _estimate(fitted.estimator, fitted.features(rows), rows)
    if output is not None:
        write_page(output, _page(found, rows))
    if as_json:
        print_json({"rows": len(rows), **_facts(found)})
    else:
        _print(found, top, output)


def _as_silent(rows: InputRows) -> InputRows:
    """The rows with labels to which something may be missing, or a sentence why nothing is."""
    Y = rows.said()
    if Y.kind == "positive-only":
        return rows
    if Y.kind == "complete" and rows.reading is None:  # such formats cannot say what is unsaid
        return replace(rows, Y=Y.as_positive_only())
    raise ValueError(
        f"{rows.name} says of every label whether it is true, or that nobody looked, so nothing is "
        "missing without a trace; --noes none reads only its yes"
    )


def _check_rates(fitted: Any) -> None:
    if fitted.estimator.model_.said_rates is None:
        name = type(fitted.estimator).__name__
        raise ValueError(
            f"{fitted.path} is a {name} that does not know how often true labels are said; {_HINT}"
        )


def _after_a_fit(rows: InputRows, seed: int) -> Missing:
    """What a Tacit says that learns from the rows."""
    from tacit.cli.fit import check_folds, estimator_of, learn
    from tacit.cli.inputs import vectorised

    if isinstance(rows.X, list):
        with stage("counting words"):
            rows = replace(rows, X=vectorised(rows.X, rows.name)[1])
    estimator = estimator_of("tacit", {}, seed, True)
    check_folds(estimator, rows)
    learn(estimator, rows, rows.said(), None, True)
    return _estimate(estimator, rows.X, rows)


def _estimate(estimator: Any, X: Any, rows: InputRows) -> Missing:
    from tacit.missing import estimate

    with warnings.catch_warnings(action="ignore", category=UserWarning):  # told with the figures
        return estimate(estimator, X, rows.said())


def _facts(found: Missing) -> dict[str, Any]:
    rates = found.rates
    return {
        "said": found.total_said,
        "missing": _ends(*found.total_missing),
        "share": _ends(*found.share),
        "known": rates.total_known,
        "how": rates.how,
        "doubt": found.warning,
        "labels": [
            {
                "label": name,
                "said": int(found.said[j]),
                "missing": _ends(found.missing[j], found.low[j], found.high[j]),
                "share": _ends(1 - rates.c[j], 1 - rates.high[j], 1 - rates.low[j]),
                "known": bool(rates.identifiable[j]),
                "doubt": _doubt(found, j),
            }
            for j, name in enumerate(map(str, found.classes))
        ],
    }


def _ends(value: float, low: float, high: float) -> dict[str, float | None]:
    named = {"estimate": value, "low": low, "high": high}
    return {name: None if v != v else round(float(v), 4) for name, v in named.items()}


def _doubt(found: Missing, j: int) -> str | None:
    """Why nothing can be told of a label; None where something can."""
    rates = found.rates
    if rates.identifiable[j]:
        return None
    if not found.said[j]:
        return "never said"
    if rates.low[j] != rates.low[j]:
        return "no interval"
    return "too few rows are sure of it"


def _sentences(found: Missing) -> list[str]:
    """What is to be known of all labels, for somebody who reads no more than that."""
    count, least, most = found.total_missing
    share, *_ = found.share
    known = found.rates.total_known
    told = [
        f"{found.total_said:,} labels are said. About {count:,.0f} more seem to be true though "
        f"nobody said them: {share:.0%} of all that is true"
        + ("" if least != least else f"; anything from {least:,.0f} to {most:,.0f} would fit")
        + ("." if known or least != least else ", so this is no more than a guess.")
    ]
    told += [] if found.warning is None else [f"Not known: {found.warning}."]
    return [*told, f"How it was got: {found.rates.how.rstrip('.')}."]


def _listed(found: Missing, most: int) -> list[int]:
    """The labels with most missing, first those of which something is known."""
    known = found.rates.identifiable
    return sorted(range(len(found.said)), key=lambda j: (not known[j], -found.missing[j]))[:most]


def _cells(found: Missing, j: int) -> tuple[str, int, str, str, str, str]:
    name, said = str(found.classes[j]), int(found.said[j])
    if not said:
        return name, said, "–", "–", "–", "never said"
    rates, low, high = found.rates, found.low[j], found.high[j]
    between = "–" if low != low else f"{low:,.0f} – {high:,.0f}"
    about, share = f"{found.missing[j]:,.0f}", f"{1 - rates.c[j]:.0%}"
    return name, said, about, between, share, _doubt(found, j) or ""


_HEAD = ("label", "said", "missing", "between", "share", "doubt")


def _print(found: Missing, top: int, output: Path | None) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    shown, known = Table(), found.rates.identifiable
    shown.add_column(_HEAD[0], overflow="fold")
    for name in _HEAD[1:-1]:
        shown.add_column(name, justify="right", no_wrap=True)
    for j in _listed(found, top):
        name, said, about, between, share, _ = _cells(found, j)
        shown.add_row(cell(name + ("" if known[j] else " ?")), f"{said:,}", about, between, share)
    console = Console(highlight=False)
    console.print("\n\n".join(_sentences(found)), markup=False)
    console.print("", shown, sep="\n")
    if (~known).any():
        console.print(f"?  says nothing of {np.count_nonzero(~known):,} labels: {_why(found)}")
    if output is not None:
        console.print(f"The page: {output}", markup=False)


def _why(found: Missing) -> str:
    """The doubts of labels, and how many have each."""
    doubts = Counter(filter(None, (_doubt(found, j) for j in range(len(found.said)))))
    return ", ".join(f"{doubt} ({count:,})" for doubt, count in doubts.most_common())


def _page(found: Missing, rows: InputRows) -> str:
    from tacit.html.page import facts, figure, page, range_chart
    from tacit.html.page import table as html_table

    rates, drawn = found.rates, [j for j in _listed(found, _DRAWN) if found.said[j]]
    share, low, high = found.share
    ranges = {"all labels": (share, low, high)}
    ranges |= {
        str(found.classes[j]): (1 - rates.c[j], 1 - rates.high[j], 1 - rates.low[j]) for j in drawn
    }
    unsure = {str(found.classes[j]) for j in drawn if not rates.identifiable[j]}
    unsure |= set() if rates.total_known else {"all labels"}
    listed = _listed(found, _ON_PAGE)
    cells = [_cells(found, j) for j in listed]
    lines: list[list[str | int]] = [
        [a, b, *map(figure, (c, d, e)), f] for a, b, c, d, e, f in cells
    ]
    numbers: list[tuple[str | int, str]] = [
        (len(rows), "rows"),
        (found.total_said, "labels said"),
        (f"{found.total_missing[0]:,.0f}" + ("" if rates.total_known else " ?"), "missing"),
        (f"{share:.0%}" + ("" if rates.total_known else " ?"), "of what is true"),
    ]
    cut = len(found.said) - len(listed)
    return page(
        f"What nobody said in {rows.name}",
        [
            ("", [facts(numbers), *_sentences(found)]),
            (
                "Share missing",
                [
                    "A dot is the share of the true labels of a kind that was never said, the line "
                    "its interval: any share on it fits the rows. A grey one with a question mark "
                    "says nothing: its interval is too wide, or it has none.",
                    range_chart("Share missing of labels", ranges, "share missing", unsure=unsure),
                ],
            ),
            (
                "Label by label",
                [
                    html_table(_HEAD, lines),
                    *([f"And {cut:,} labels more; --json has them all."] if cut else []),
                ],
            ),
        ],
    )
