"""Cells in lines of text: CSV and its kin, with the delimiter and the names of columns found."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from tacit.datasets.tables.header import FIRST, find_header
from tacit.datasets.tables.opentable import OpenTable
from tacit.datasets.textfiles import encoding_of, opened

__all__ = ["delimited", "settled", "text_of"]

_DELIMITERS = ",;\t|"
_SPELT = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_IN_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}
_LINES = 100  # looked at for the delimiter


def delimited(
    path: Path, wanted: Sequence[str], delimiter: str | None, encoding: str | None
) -> OpenTable:
    """The rows of a table of text."""
    encoding, found, notes = settled(path, encoding)
    with text_of(path, encoding) as file:
        # Whole lines: a cell in quotes may go over several.
        head = list(islice(file, 50 * _LINES))
    declared = re.fullmatch(r"\"?sep=(.)\"?\s*", head[0]) if head else None
    skipped = 1 if declared else 0  # Excel's own way of saying it
    if declared and delimiter is None:
        delimiter = declared[1]
    delimiter = _checked(delimiter) or _delimiter(head[skipped:], wanted)
    first = _parsed(head[skipped:], delimiter, FIRST)
    before, columns = find_header(first, wanted)
    found = f"{_IN_WORDS.get(delimiter, delimiter)} between cells, {found}"
    if before > 1:
        found += f", names in row {before}"
    rows = _rows(path, encoding, delimiter, skipped, before, columns)
    return OpenTable(path.name, columns, rows, found, notes, delimiter != ",")


def settled(path: Path, encoding: str | None) -> tuple[str, str, tuple[str, ...]]:
    """The encoding of a file, what it is called, and what the user should hear of it."""
    notes: tuple[str, ...] = ()
    if encoding is None:
        encoding = encoding_of(path)
        if encoding == "cp1252":
            notes = ("it is not UTF-8, so it is read as cp1252, as Western spreadsheets write it",)
    return encoding, _ENCODINGS.get(encoding, encoding), notes


@contextmanager
def text_of(path: Path, encoding: str) -> Iterator[TextIO]:
    """The characters of a file; ValueError where they are not in this encoding."""
    try:
        with opened(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as file:
            yield file
    except LookupError:
        raise ValueError(f"there is no encoding {encoding!r}; utf-8, cp1252 are some") from None
    except UnicodeError as e:
        wrong = e.object[e.start : e.end] if isinstance(e, UnicodeDecodeError) else str(e)
        raise ValueError(
            f"{path.name} is not in {encoding}: it has the bytes {wrong!r}; name its own"
        ) from None


def _checked(delimiter: str | None) -> str | None:
    delimiter = None if delimiter is None else _SPELT.get(delimiter, delimiter)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"the delimiter is one character, such as ; or tab; got {delimiter!r}")
    return delimiter


def _parsed(head: list[str], delimiter: str, most: int) -> list[list[str]]:
    """The first rows that are not empty, however wrong their quotes."""
    with _long_cells():
        return list(islice(filter(None, csv.reader(head, delimiter=delimiter)), most))


def _delimiter(head: list[str], wanted: Sequence[str]) -> str:
    """The one that gives the names wanted, and rows as wide; else rows of several cells."""

    def fit(delimiter: str) -> tuple[bool, float, int]:
        rows = _parsed(head, delimiter, _LINES)
        widths = Counter(map(len, rows))
        names = [row for row in rows[:FIRST] if {c.strip() for c in row}.issuperset(wanted)]
        if wanted and names:
            return True, widths[len(names[0])] / len(rows), len(names[0])
        width = max(widths, key=lambda w: (widths[w], w), default=1)
        return False, (widths[width] / len(rows) if width > 1 else 0.0), width

    return max(_DELIMITERS, key=fit)


def _rows(
    path: Path, encoding: str, delimiter: str, skipped: int, before: int, columns: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    with text_of(path, encoding) as file, _long_cells():
        for _ in range(skipped):
            next(file)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        line = skipped + 1
        try:
            for cells in reader:
                if before and cells:
                    before -= 1
                elif any(cells):  # a line of empty cells is no row
                    where = f"{path.name}, line {line}"
                    if len(cells) != len(columns):
                        cells = _trimmed(cells, len(columns), where)
                    yield where, dict(zip(columns, cells))
                line = skipped + reader.line_num + 1
        except csv.Error as e:
            raise ValueError(f"{path.name}, the row that begins in line {line}: {e}") from None


def _trimmed(cells: list[str], width: int, where: str) -> list[str]:
    """A row without the empty cells that a spreadsheet puts behind it."""
    if len(cells) < width or any(cells[width:]):
        raise ValueError(f"{where}: expected {width} cells; got {len(cells)}")
    return cells[:width]


@contextmanager
def _long_cells() -> Iterator[None]:
    """A description may well be longer than the 128 kB that the csv module allows."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
