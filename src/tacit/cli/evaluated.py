"""How `tacit evaluate` tells what it found: in the terminal, as JSON, and on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tacit.cli.evaluate import THRESHOLDS, Evaluation
from tacit.cli.output import cell
from tacit.html.page import Html, facts, line_chart, page
from tacit.html.page import table as html_table

__all__ = ["as_dict", "as_page", "tell"]

_EACH = 5  # labels in the terminal, best and worst
_ON_PAGE = 500
_BAR = 20  # letters

_SAYS = {
    "P": "of a row's {k} likeliest labels, the share said",
    "PSP": "the same, but rare labels, often forgotten, count more",
    "nDCG": "1 where said labels stand first among the first {k}",
    "recall": "of a row's said labels, the share among the first {k}",
    "coverage": "labels of a row to read until all said ones are met",
}
_COLUMNS = {
    "precision": "of what is that probable, the share that was said",
    "recall": "of what was said, the share that is that probable",
    "F1": "both in one: high only where both are",
}
_LOWER = (
    "What nobody said may be true all the same, and counts as wrong here: every precision is a "
    "lower bound, the least that was right."
)
_RELIABLE = (
    "A model that can be trusted is right as often as it says: of what it gives 70 %, 70 % "
    "comes true."
)
_SILENT = (
    "Where much that is true was never said, fewer were said than are true: a model that "
    "allows for this stands above what was said, and may yet be right."
)


def as_dict(found: Evaluation) -> dict[str, Any]:
    """All of it, for machines; None where there is nothing to divide by."""
    number = lambda value: None if np.isnan(value) else float(value)
    at = found.thresholds
    lines = zip(THRESHOLDS, at.chosen, at.precision, at.low, at.high, at.recall, at.f1)
    names = ("threshold", "chosen", "precision", "low", "high", "recall", "f1")
    bins = zip(*found.reliability)
    return found.figures | {
        "thresholds": [
            {n: int(v) if n == "chosen" else number(v) for n, v in zip(names, line)}
            for line in lines
        ],
        "labels": [
            {"label": name, "said": said, "chosen": chosen}
            | {n: number(v) for n, v in zip(("precision", "recall", "f1"), values)}
            for name, said, chosen, *values in _labels(found)
        ],
        "reliability": [
            {"promised": number(p), "said": number(true), "entries": int(n)} for p, true, n in bins
        ],
        "lower_bound": _is_silent(found),
    }


def tell(found: Evaluation, output: Path | None) -> None:
    """In the terminal."""
    console = Console(highlight=False)
    console.print(_figures(found), _thresholds(found), sep="\n")
    for name, what in _COLUMNS.items():
        console.print(f"{name}: {what}.")
    console.print("", _label_table(found), "", _reliability(found), sep="\n")
    for sentence in _sentences(found):
        console.print(sentence)
    if output is not None:
        console.print(f"The page: {output}", markup=False)


def _is_silent(found: Evaluation) -> bool:
    return found.truth.kind == "positive-only"


def _sentences(found: Evaluation) -> list[str]:
    return [_RELIABLE, *([_SILENT, _LOWER] if _is_silent(found) else [])]


def _says(figure: str) -> str:
    name, _, k = figure.partition("@")
    return _SAYS[name].format(k=k).replace("1 likeliest labels", "likeliest label")


def _written(value: float | None) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.3f}"


def _labels(found: Evaluation) -> list[tuple[Any, ...]]:
    """Name, said, chosen, precision, recall and F1 of labels that were said, the best first."""
    said = np.bincount(found.truth.positives.indices, minlength=len(found.names))
    at = found.labels
    order = np.lexsort((-said, -at.f1[0]))
    figures = zip(at.chosen[0], at.precision[0], at.recall[0], at.f1[0])
    each = [
        (name, int(n), int(chosen), *map(float, rest))
        for name, n, (chosen, *rest) in zip(found.names, said, figures)
    ]
    return [each[j] for j in order if said[j]]


def _figures(found: Evaluation) -> Table:
    table = Table(title=f"{len(found.truth):,} rows")
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("what it is")
    for name, value in found.figures.items():
        written = "undefined" if value is None else f"{value:.4f}"
        table.add_row(name, written, _says(name))
    return table


def _thresholds(found: Evaluation) -> Table:
    table, at = Table(title="Labels of at least a probability"), found.thresholds
    for name in ("at least", "labels", "precision", "recall", "F1"):
        table.add_column(name, justify="right", no_wrap=True)
    for t, n, *values in zip(THRESHOLDS, at.chosen, at.precision, at.recall, at.f1):
        table.add_row(f"{t:g}", f"{n:,}", *map(_written, values))
    return table


def _label_table(found: Evaluation) -> Table:
    labels = _labels(found)
    few = len(labels) <= 2 * _EACH
    which = "" if few else f": the {_EACH} best and the {_EACH} worst of {len(labels):,}"
    table = Table(title=f"Each label, at least 0.5{which}")
    table.add_column("label", overflow="fold")
    for name in ("said", "precision", "recall", "F1"):
        table.add_column(name, justify="right", no_wrap=True)
    worst = sorted(labels[_EACH:], key=lambda label: (label[-1], -label[1]))[:_EACH]
    shown = labels if few else [*labels[:_EACH], *worst[::-1]]
    for i, (name, said, _, *values) in enumerate(shown):
        last = not few and i == _EACH - 1
        table.add_row(cell(name), f"{said:,}", *map(_written, values), end_section=last)
    return table


def _reliability(found: Evaluation) -> Table:
    """A bar for what came true, and a mark in it where the promise was."""
    table = Table(title="Promised, and come true")
    for name in ("promised", "was said", "labels"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for promised, true, n in zip(*found.reliability):
        if n:
            bar = list("█" * round(true * _BAR) + " " * (_BAR - round(true * _BAR)))
            bar[min(int(promised * _BAR), _BAR - 1)] = "|"
            table.add_row(f"{promised:.2f}", f"{true:.2f}", f"{n:,}", "".join(bar))
    return table


def _chart(promised: list[float], came: list[float]) -> Html:
    lines = {"was said": came, "as promised": promised}
    title = "Share that was said, by the probability promised"
    return line_chart(title, promised, lines, "probability promised")


def as_page(found: Evaluation) -> str:
    """On a page."""
    at, labels = found.thresholds, _labels(found)
    some = [(p, true, n) for p, true, n in zip(*found.reliability) if n]
    promised = [float(p) for p, _, _ in some]
    came = [float(true) for _, true, _ in some]
    none = lambda value: None if np.isnan(value) else float(value)
    head = ["label", "said", "precision", "recall", "F1"]
    cut = len(labels) - _ON_PAGE
    numbers: list[tuple[str | int, str]] = [
        (len(found.truth), "rows"),
        (int(found.truth.positives.nnz), "labels said"),
        (len(labels), "kinds of labels"),
    ]
    return page(
        f"How well labels are found in {found.name}",
        [
            ("", [facts(numbers), *([_LOWER] if _is_silent(found) else [])]),
            (
                "The first labels of each row",
                [
                    html_table(
                        ["metric", "value", "what it is"],
                        [[name, value, _says(name)] for name, value in found.figures.items()],
                    )
                ],
            ),
            (
                "All labels of at least a probability",
                [
                    "; ".join(f"{name}: {what}" for name, what in _COLUMNS.items()) + ".",
                    html_table(
                        ["at least", "labels", "precision", "recall", "F1"],
                        [
                            [f"{t:g}", int(n), *map(none, values)]
                            for t, n, *values in zip(
                                THRESHOLDS, at.chosen, at.precision, at.recall, at.f1
                            )
                        ],
                    ),
                ],
            ),
            (
                "Promised, and come true",
                [
                    _RELIABLE,
                    *([_SILENT] if _is_silent(found) else []),
                    *([_chart(promised, came)] if some else []),
                    html_table(
                        ["promised", "was said", "labels"],
                        [[float(p), float(true), int(n)] for p, true, n in some],
                    ),
                ],
            ),
            (
                "Each label",
                [
                    "At least 0.5, the best first.",
                    html_table(
                        head,
                        [
                            [a, b, none(c), none(d), none(e)]
                            for a, b, _, c, d, e in labels[:_ON_PAGE]
                        ],
                    ),
                    *([f"And {cut:,} labels more; --json has them all."] if cut > 0 else []),
                ],
            ),
        ],
    )
