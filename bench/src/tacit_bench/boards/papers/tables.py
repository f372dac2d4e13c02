"""Rich tables of what was found: ours beside published, and how many figures came out how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tacit_bench.board import Row
from tacit_bench.boards.papers.compare import Comparison, Published, Verdict, compared, reason
from tacit_bench.boards.papers.protocol import Protocol

__all__ = ["show"]

COLOURS = {"reached": "green", "within": "yellow", "missed": "red", "shown": "dim"}
TOLD: dict[Verdict, str] = {
    "reached": "reached or passed",
    "within": "worse within tolerance",
    "missed": "missed",
    "shown": "only shown",
    "ours only": "without a published figure",
}


def show(
    rows: Sequence[Row], protocols: Sequence[Protocol], known: Sequence[Published], console: Console
) -> None:
    """One table a published table, then why figures were missed, and how many there are of each."""
    found = compared(rows, protocols, known)
    of_table = lambda c: (c.paper, c.table, c.quick)
    for _, group in groupby(sorted(found, key=of_table), of_table):
        console.print(_fitting(list(group), console))
    for why, names in _by_why(found).items():
        console.print(f"[red]missed[/] {', '.join(names)}: {why}")
    for why, n in Counter(row["skipped"] for row in rows if "skipped" in row).items():
        console.print(f"[yellow]skipped[/] {n} cells: {escape(why)}")
    console.print(_counts(found, protocols, known))


def _fitting(group: list[Comparison], console: Console) -> Table:
    """All metrics of a method and setting on one line, if the console is wide enough."""
    table = _table(group, wide=True)
    fits = console.measure(table, options=console.options.update(width=10**4)).maximum
    return table if fits <= console.width else _table(group, wide=False)


def _table(group: list[Comparison], wide: bool) -> Table:
    """A line a method and setting, with all metrics, or a line a metric."""
    first = group[0]
    title = first.table if first.table.startswith("figure") else f"table {first.table}"
    table = Table(title=f"{first.paper}, {title}" + ", quick" * first.quick, box=None)
    metrics = list(dict.fromkeys(c.metric for c in group))
    settings = list(dict.fromkeys(name for c in group for name in c.setting))
    for name in ("data", "method", *settings, *([] if wide else ["metric"])):
        table.add_column(name)
    for name in metrics if wide else ["ours"]:
        for column in (name, "paper", "diff"):
            table.add_column(column, justify="right")
    line = lambda c: (c.data, c.method, tuple(c.setting.items()), wide or c.metric)
    for _, cells in groupby(group, line):
        figures = list(cells)
        c = figures[0]
        names = [c.data, c.method or "", *(f"{c.setting.get(name, '')}" for name in settings)]
        names += [] if wide else [c.metric]
        table.add_row(*names, *(text for figure in figures for text in _texts(figure)))
    return table


def _texts(c: Comparison) -> tuple[str, str, str]:
    """Ours, the paper's and the difference; what must be equal is a count."""
    digits = 2 if c.metric.endswith(("(%)", "(s)")) else 0 if c.tolerance == 0 else 4
    if c.published is None or c.difference is None:
        return f"{c.ours:.{digits}f}", "–", ""
    difference = f"[{COLOURS[c.verdict]}]{c.difference:+.{digits}f}[/]"
    return f"{c.ours:.{digits}f}", f"{c.published:.{digits}f}", difference


def _by_why(found: Iterable[Comparison]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for c in found:
        if c.why is not None:
            name = f"{c.paper} {c.table} {c.data} {c.method or ''}".strip()
            names.setdefault(c.why, [])
            if name not in names[c.why]:
                names[c.why].append(name)
    return names


def _counts(
    found: Sequence[Comparison], protocols: Sequence[Protocol], known: Sequence[Published]
) -> str:
    """How many figures came out how, and how many published ones have none of ours, and why."""
    out = Counter(c.verdict for c in found)
    parts = [f"{out[verdict]} {told}" for verdict, told in TOLD.items() if out[verdict]]
    why = Counter(reason(row, metric, protocols) for row in known for metric in row["values"])
    total, runnable = sum(why.values()), why.pop(None, 0)
    not_ours = ", ".join(f"{n} {name}" for name, n in sorted(why.items()))
    return (
        f"{len(found)} figures: {', '.join(parts)}\n"
        f"{total} published: {runnable} have a cell here; {not_ours}"
    )
