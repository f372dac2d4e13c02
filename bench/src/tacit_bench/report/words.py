"""What the sections write alike: numbers, differences, and what is not there."""

from __future__ import annotations

from collections.abc import Callable

from tacit.html.page import Html, bullets, details, figure
from tacit_bench.board import Row

__all__ = ["COMMANDS", "not_measured", "number", "signed", "skipped", "toned"]

COMMANDS = {name: f"tacit bench {name}" for name in ("missing", "peers", "real", "scale", "papers")}
"""The boards, and what fills each."""


def not_measured(*boards: str) -> str:
    return f"Not measured: run {', '.join(COMMANDS[board] for board in boards)}."


def skipped(rows: list[Row]) -> list[Html]:
    """A folded list of what could not be measured, the same reasons together; none if none."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if "skipped" in row:
            who, *where = _names(row)
            places.setdefault((who, row["skipped"]), []).extend(where)
    if not places:
        return []
    n = sum("skipped" in row for row in rows)
    lines = (
        f"{' on '.join(filter(None, [who, ', '.join(dict.fromkeys(where))]))}: {why}"
        for (who, why), where in places.items()
    )
    return [details(f"Not measured: {n} cells, and why", [bullets(lines)])]


def _names(row: Row) -> list[str]:
    """Who and where a cell is about; the boards name their cells differently."""
    keys = ("paper", "table", "name", "method", "data", "axis")
    cell = row["cell"]
    who = " ".join(str(cell[key]) for key in keys[:4] if cell.get(key))
    return [who, *(str(cell[key]) for key in keys[4:] if cell.get(key))]


def number(value: float | None) -> str:
    """Two digits after the point; below one, three that count.

    >>> [number(value) for value in (1234, 1234.5, 0.01234, None)]
    ['1,234', '1,234.50', '0.0123', '–']
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"


def signed(value: float | None, written: Callable[[float], str] = "{:.2f}".format) -> str:
    """With its sign, which tells a gain from a loss in print too.

    >>> signed(1.234), signed(-0.5), signed(None)
    ('+1.23', '−0.50', '–')
    """
    return "–" if value is None else f"{'−' if value < 0 else '+'}{written(abs(value))}"


def toned(gain: float | None) -> Html:
    """A difference in points on its ground: ahead, at most one behind, or more."""
    if gain is None:
        return figure("–")
    return figure(signed(gain), "good" if gain >= 0 else "near" if gain >= -1 else "bad")
