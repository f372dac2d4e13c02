"""Which line of a table names its columns, and the sentence for a column that is not there."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

__all__ = ["FIRST", "find_header", "is_number", "no_column", "unnamed"]

FIRST = 20  # lines among which the names are looked for
_LONGEST = 60  # letters of a name
_TOLD = 12  # columns in a sentence
_USUAL = {"id", "name", "text", "title", "description", "tags", "labels", "label", "keywords"}


def find_header(first: Sequence[list[str]], wanted: Sequence[str]) -> tuple[int, list[str]]:
    """How many lines stand before the rows, and what the columns are called.

    The names are the first line that has all the names wanted. Where columns are wanted by number,
    counted from 1, they are called so. Otherwise the first line that is at least as wide as most
    names them, if it looks as if it did; else they are called by number.
    """
    lines = [[cell.strip() for cell in line] for line in first]
    for i, names in enumerate(lines):
        if wanted and all(name in names for name in wanted):
            return i + 1, names
    # Sheets and exports fill up short lines with empty cells.
    ends = [max((j + 1 for j, cell in enumerate(line) if cell), default=0) for line in lines]
    widths = Counter(end for end in ends if end)
    if not widths:
        return len(lines), []
    width = max(widths, key=lambda w: (widths[w], w))
    start = next(i for i, end in enumerate(ends) if end >= width)
    named = not unnamed(lines[start], lines[start + 1 :])
    if wanted and all(name.isdecimal() for name in wanted):
        # Who counts has no names, unless it is plain that there are some.
        named = named and not _USUAL.isdisjoint(name.lower() for name in lines[start])
    elif named:
        return start + 1, lines[start]
    return start + named, [str(i + 1) for i in range(len(lines[start]))]


def unnamed(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether a line looks like a row rather than the names of the columns.

    A cell that is a number, long, or there again further down is no name, nor is one that is there
    twice. A name may be missing, as of an index that pandas wrote.
    """
    names = [cell for cell in first if cell]
    below = [[row[j] for row in rest if len(row) > j] for j in range(len(first))]
    return (
        not names
        or len(set(names)) < len(names)
        or any(is_number(cell) or len(cell) > _LONGEST for cell in names)
        or any(cell in column for cell, column in zip(first, below) if cell)
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number, also with a decimal comma."""
    try:
        float(cell.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def no_column(where: str, name: str, columns: Iterable[str]) -> str:
    """The sentence for a column that a table has not: what it has, and what may be meant."""
    columns = [column for column in columns if column]
    if not columns:
        return f"{where} has no column {name!r}; it has none"
    told = ", ".join(columns[:_TOLD])
    if len(columns) > _TOLD:
        told += f" and {len(columns) - _TOLD:,} more"
    sentence = f"{where} has no column {name!r}; it has {told}"
    alike = {column.lower(): column for column in columns}
    close = difflib.get_close_matches(name.lower(), alike, n=1)
    if close:
        return f"{sentence}; did you mean {alike[close[0]]!r}?"
    if columns == [str(i) for i, _ in zip(count(1), columns)]:
        return f"{sentence}: no line names the columns, so they are called by number"
    return sentence
