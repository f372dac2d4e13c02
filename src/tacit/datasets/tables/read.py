"""Reading a table: which columns, which rows, and what they say."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np

from tacit.datasets.tables.asked import A_COLUMN_EACH, Asked, settled, written
from tacit.datasets.tables.doubts import Sample, doubts_of
from tacit.datasets.tables.files import open_table
from tacit.datasets.tables.opentable import LOOK, OpenTable
from tacit.datasets.tables.reading import LabelFacts, Reading, ReadingWarning
from tacit.datasets.tables.said import Case, Noes, Reader, Said, in_cells, in_columns
from tacit.datasets.tables.tags import spelt
from tacit.labels import Labels

__all__ = ["Table", "read_table"]

_MEANT = {
    "none": ", noes and blanks alike unsaid",
    "zeros": ", noes said and blanks unsaid",
    "all": ", all else a no",
}
_LONGEST = 1000  # letters of a tag: names are laid out side by side, each as wide as the longest


@dataclass(frozen=True)
class Table:
    """What was read of a table: each part is None where it was not asked for.

    Attributes
    ----------
    text : list of str, or None
        The text columns of each row, joined by a blank.
    X : ndarray of shape (n_samples, n_features), or None
        The numeric columns, float32; NaN where a cell is empty.
    Y : Labels of shape (n_samples, n_labels), or None
        The tags, positive-only unless `noes` says otherwise.
    ids : list of str, or None
        The id column.
    reading : Reading
        What was understood of the table, and what seems wrong with it; `print` it.
    kept : dict of lists of str
        The columns that were kept, by name.
    """

    text: list[str] | None
    X: np.ndarray | None
    Y: Labels | None
    ids: list[str] | None
    reading: Reading
    kept: dict[str, list[str]] = field(default_factory=dict)


def read_table(
    source: str | os.PathLike | Any,
    *,
    labels: str | Sequence[str] | None = "tags",
    text: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    id: str | None = None,
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    case: Case | None = None,
    noes: Noes = "none",
    keep: Sequence[str] = (),
) -> Table:
    r"""Read the columns asked for, a batch of rows at a time.

    Whatever is not given is found out, and told by the `reading` of the table. Where the table was
    probably meant otherwise, a `ReadingWarning` says so and names the parameter that settles it.

    Parameters
    ----------
    source : path-like, or data frame
        A .csv, .tsv, .jsonl, .json, .parquet or .xlsx file; text may be gzipped. Or a data frame of
        pandas or polars, or whatever else gives an Arrow stream (DuckDB, Hugging Face's datasets).
    labels : str, sequence of str, or None, default="tags"
        The column of tags. Several columns, or a pattern such as ``"is_*"`` or ``"*"``: if they
        hold yes or no (1, true, x; 0, false) each is a tag by its name, else the tags of a row are
        those of all its cells. None reads no labels.
    text : str or sequence of str, default=None
        The columns of text.
    features : str or sequence of str, default=None
        The columns of numbers.
    id : str, default=None
        The column that names the rows. Lines with the same id, text and numbers are one row, whose
        tags are those of all of them: so a table of one tag a line is read.
    separator : str, default=None
        What stands between the tags of a cell, or ``"list"`` for lists as JSON or Python writes
        them, ``"<>"`` for ``<a><b>``, ``"whole"`` where the cell is one tag. Blanks around a tag do
        not count.
    delimiter : str, default=None
        What stands between the cells of a text table.
    encoding : str, default=None
        Of a text table.
    format : {"csv", "tsv", "jsonl", "json", "parquet", "xlsx"}, default=None
        Of a file; None goes by the end of its name.
    case : {"keep", "lower"}, default=None
        ``"lower"`` writes tags in small letters, so that those which differ in that are one. None
        keeps them too, with a doubt where many do.
    noes : {"none", "zeros", "all"}, default="none"
        What is a no: nothing, so that labels are positive-only; what a column of its own says no to
        (0, no, false), while blanks are unsaid; or all that is not said, so that they are complete.
    keep : sequence of str, default=()
        Other columns to carry along, such as a title; of lines that are one row the first counts.
    """
    for name, value, allowed in (
        ("case", case, (None, "keep", "lower")),
        ("noes", noes, ("none", "zeros", "all")),
    ):
        if value not in allowed:
            several = " or ".join(repr(word) for word in allowed if word)
            raise ValueError(f"{name} must be {several}; got {value!r}")
    asked = Asked(
        [text] if isinstance(text, str) else list(text or []),
        [features] if isinstance(features, str) else list(features or []),
        [] if labels is None else [labels] if isinstance(labels, str) else list(labels),
        id,
        tuple(keep),
    )
    rows = open_table(source, asked.exact, delimiter, encoding, format)
    asked = settled(asked, rows)
    table = _read(rows, asked, None if separator is None else spelt(separator), case, noes)
    for doubt in table.reading.doubts:
        warnings.warn(f"{table.reading.name}: {doubt}", ReadingWarning, stacklevel=2)
    return table


@dataclass
class _Gathered:
    """What the lines of a table say, row by row."""

    said: Said
    text: list[str] = field(default_factory=list)
    numbers: array = field(default_factory=lambda: array("f"))
    ids: list[str] = field(default_factory=list)
    kept: dict[str, list[str]] = field(default_factory=dict)
    lines: int = 0
    n: int = 0  # rows, of which a line may be a part


def _read(
    table: OpenTable, asked: Asked, separator: str | None, case: Case | None, noes: Noes
) -> Table:
    first = list(islice(table.rows, LOOK))
    look = [row for _, row in first]
    labels, writing = written(asked, look, separator)
    each = writing == A_COLUMN_EACH
    read = in_columns(labels, noes) if each else in_cells(labels, writing)
    got = _gathered(table, chain(first, table.rows), asked, read, Said(case, noes))
    Y = None
    if asked.labels:
        _check_tags(table.name, labels, list(got.said.numbers))
        Y = got.said.labels(got.n)
    X = np.array(got.numbers, np.float32).reshape(got.n, len(asked.features))
    ids = None if asked.id is None else got.ids

    facts = None if Y is None else LabelFacts.of(Y, writing + _MEANT[noes] if each else writing)
    names = [] if Y is None or Y.classes is None else Y.classes.tolist()
    sample = Sample(table, look, asked.text, labels, writing, separator, case, got.n, names)
    keys = got.text if asked.text else [row.tobytes() for row in X if asked.features]
    notes, doubts = doubts_of(sample, Y, facts, keys, ids)
    columns = {"text": asked.text, "features": asked.features, "labels": labels}
    columns["id"] = [] if asked.id is None else [asked.id]
    reading = Reading(
        table.name,
        table.found,
        got.lines,
        got.n,
        columns,
        writing if asked.labels and not each else None,
        facts,
        (*table.notes, *_left_out(asked, labels), *notes),
        doubts,
    )
    text = got.text if asked.text else None
    return Table(text, X if asked.features else None, Y, ids, reading, got.kept)


def _gathered(
    table: OpenTable,
    rows: Iterable[tuple[str, dict[str, Any]]],
    asked: Asked,
    read: Reader,
    said: Said,
) -> _Gathered:
    got, place = _Gathered(said, kept={c: [] for c in asked.keep}), dict[tuple, int]()
    for at, row in rows:
        got.lines += 1
        words = " ".join(_shown(row.get(c)) for c in asked.text)
        numbers = [_number(row.get(c), at, c, table.decimal_comma) for c in asked.features]
        i = got.n
        if asked.id is not None:
            name = _shown(row.get(asked.id))
            i = place.setdefault((name, words, *numbers), got.n)
        if i == got.n:
            got.n += 1
            got.text.append(words)
            got.numbers.extend(numbers)
            if asked.id is not None:
                got.ids.append(name)
            for column, cells in got.kept.items():
                cells.append(_shown(row.get(column)))
        said.add(i, *read(row, at))
    return got


def _check_tags(name: str, columns: list[str], tags: list[str]) -> None:
    if not tags:
        raise ValueError(
            f"{name} has no tag in its column {_quoted(columns)}; name another column of tags"
        )
    longest = max(tags, key=len)
    if len(longest) > _LONGEST:
        raise ValueError(
            f"{name} has tags of up to {len(longest):,} letters in {_quoted(columns)}, such as "
            f"{longest[:40]!r}; that is text, so name another column of tags"
        )


def _left_out(asked: Asked, labels: list[str]) -> list[str]:
    """A note of what a pattern matches beside columns of yes and no; of ``*`` that is expected."""
    others = [column for column in asked.labels if column not in labels]
    if not others or "*" in asked.patterns:
        return []
    return [f"the pattern matches {_quoted(others)} too: not read, as it says other than yes or no"]


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _number(cell: Any, at: str, column: str, decimal_comma: bool) -> float:
    if cell is None or cell == "":
        return np.nan
    if decimal_comma and isinstance(cell, str) and re.fullmatch(r"\s*-?\d*,\d+\s*", cell):
        cell = cell.replace(",", ".")
    try:
        return float(np.float32(cell))
    except (TypeError, ValueError):
        raise ValueError(
            f"{at}, column {column!r}: expected a number; got {str(cell)[:40]!r}"
        ) from None


def _quoted(columns: list[str]) -> str:
    return ", ".join(map(repr, columns[:3])) + (" …" if len(columns) > 3 else "")
