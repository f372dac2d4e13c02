"""The section on the papers: ours beside what was published, and why some of it is missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tacit.html.page import Html, Tone, details, facts, figure, subheading, table
from tacit_bench.board import Row
from tacit_bench.boards.papers import Comparison, compared
from tacit_bench.boards.papers.compare import Verdict
from tacit_bench.report.words import not_measured, signed

__all__ = ["papers"]

VERDICTS: dict[Verdict, tuple[str, Tone | None]] = {
    "reached": ("✓ reached or passed", "good"),
    "within": ("≈ worse, within tolerance", "near"),
    "missed": ("✗ missed", "bad"),
    "shown": ("only shown", None),
    "ours only": ("without a published figure", None),
}
"""What a comparison comes to, and its tone; the sign is for who cannot tell the tones."""


def papers(rows: list[Row]) -> list[str]:
    """Counts, a folded table for each published one, and the misses."""
    # A quick look has fewer folds than the papers have: it says nothing about their figures.
    found = [c for c in compared(rows) if not c.quick]
    if not found:
        return [not_measured("papers")]
    tables: dict[str, list[Comparison]] = {}
    for comparison in found:
        tables.setdefault(_table_name(comparison), []).append(comparison)
    missed = [c for c in found if c.missed]
    counts = {name: Counter(c.verdict for c in group) for name, group in tables.items()}
    total = Counter(c.verdict for c in found)
    return [
        "The papers' own tables, by their protocols. A tolerance is the noise between splits; "
        "seconds of other machines are only shown.",
        facts([(total[verdict], words) for verdict, (words, _) in VERDICTS.items()]),
        *(details(_summary(name, counts[name]), [_beside(g)]) for name, g in tables.items()),
        *([subheading("What is missed, and why"), _misses(missed)] if missed else []),
    ]


def _table_name(c: Comparison) -> str:
    return f"{c.paper}, {c.table if c.table.startswith('figure') else f'table {c.table}'}"


def _summary(name: str, count: Counter[Verdict]) -> str:
    parts = (
        f"{count[verdict]} {words[0] if tone else words}"
        for verdict, (words, tone) in VERDICTS.items()
        if count[verdict]
    )
    return f"{name}: {', '.join(parts)}"


def _beside(group: list[Comparison]) -> Html:
    """A row a data set, method and setting; for each metric published, ours and the difference."""
    metrics = list(dict.fromkeys(c.metric for c in group))
    settings = list(dict.fromkeys(name for c in group for name in c.setting))
    rows: dict[tuple, dict[str, Comparison]] = {}
    for c in group:
        setting = (figure(_setting(c.setting.get(name))) for name in settings)
        rows.setdefault((c.data, c.method or "–", *setting), {})[c.metric] = c
    header = ["data", "method", *settings]
    for metric in metrics:
        header += [f"{metric}, published", "ours", "difference"]
    return table(
        header,
        [
            [*who, *(cell for metric in metrics for cell in _figures(found.get(metric)))]
            for who, found in rows.items()
        ],
    )


def _setting(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _figures(c: Comparison | None) -> list[Html]:
    if c is None:
        return [figure("–")] * 3
    words, tone = VERDICTS[c.verdict]
    written = _written(c)
    difference = signed(c.difference, written)
    return [
        figure("–" if c.published is None else written(c.published)),
        figure(written(c.ours)),
        figure(f"{difference} {words[0]}" if tone else difference, tone),
    ]


def _written(c: Comparison) -> Callable[[float], str]:
    """As many digits for ours as for theirs: none for counts, two for percentages, four below 1."""
    values = [value for value in (c.published, c.ours) if value is not None]
    if all(value == int(value) for value in values):
        return "{:,.0f}".format
    return "{:,.2f}".format if max(map(abs, values)) >= 1 else "{:.4f}".format


def _misses(missed: list[Comparison]) -> Html:
    rows = []
    for c in missed:
        setting = (f"{name} = {value:g}" for name, value in c.setting.items())
        what = ", ".join(filter(None, (c.data, c.method, *setting)))
        rows.append([f"{_table_name(c)}: {what}", c.metric, *_figures(c), c.why or "not explained"])
    return table(["where", "metric", "published", "ours", "difference", "why"], rows)
