"""Reading a table: which columns, which rows, and what they say."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from tacit.datasets.tables.asked import A_COLUMN_EACH, LOOK, Asked, settled, written
from tacit.datasets.tables.doubts import Sample, doubts_of
from tacit.datasets.tables.files import open_table
from tacit.datasets.tables.opentable import OpenTable
from tacit.datasets.tables.reading import LabelFacts, Reading, ReadingWarning
from tacit.datasets.tables.said import Case, Noes, Said, in_cells, in_columns
from tacit.datasets.tables.tags import spelt
from tacit.labels import Labels

__all__ = ["Table", "read_table"]

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
    """

    text: list[str] | None
    X: np.ndarray | None
    Y: Labels | None
    ids: list[str] | None
    reading: Reading


def read_table(
    source: str | os.PathLike | Any,
    *,
    labels: str | Sequence[str] | None = "tags",
    text: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    case: Case | None = None,
    noes: Noes = "none",
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
    features : sequence of str, default=None
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
        list(features or []),
        [] if labels is None else [labels] if isinstance(labels, str) else list(labels),
        id,
    )
    rows = open_table(source, asked.exact, delimiter, encoding, format)
    asked = settled(asked, rows)
    table = _read(rows, asked, None if separator is None else spelt(separator), case, noes)
    for doubt in table.reading.doubts:
        warnings.warn(f"{table.reading.name}: {doubt}", ReadingWarning, stacklevel=2)
    return table


def _read(
    rows: OpenTable, asked: Asked, separator: str | None, case: Case | None, noes: Noes
) -> Table:
    first = list(islice(rows.rows, LOOK))
    look = [row for _, row in first]
    labels, writing = written(asked, look, separator)
    a_column_each = writing == A_COLUMN_EACH
    read = in_columns(labels, noes) if a_column_each else in_cells(labels, writing)

    said, place = Said(case, noes), dict[tuple, int]()
    texts: list[str] = []
    ids: list[str] = []
    X, lines = array("f"), 0
    for lines, (at, row) in enumerate(chain(first, rows.rows), 1):
        words = " ".join(_shown(row.get(c)) for c in asked.text)
        numbers = [_number(row.get(c), at, c, rows.decimal_comma) for c in asked.features]
        i = lines - 1
        if asked.id is not None:
            name = _shown(row.get(asked.id))
            i = place.setdefault((name, words, *numbers), len(place))
        if asked.id is None or i == len(ids):
            texts.append(words)
            X.extend(numbers)
            ids += [] if asked.id is None else [name]
        said.add(i, *read(row, at))
    n = lines if asked.id is None else len(place)
    if asked.labels and not said.numbers:
        raise ValueError(
            f"{rows.name} has no tag in its column {_quoted(labels)}; name another column of tags"
        )
    longest = max(said.numbers, key=len, default="")
    if len(longest) > _LONGEST:
        raise ValueError(
            f"{rows.name} has tags of up to {len(longest):,} letters in {_quoted(labels)}, such as "
            f"{longest[:40]!r}; that is text, so name another column of tags"
        )
    Y = said.labels(n) if asked.labels else None
    facts = None if Y is None else LabelFacts.of(Y, writing)
    names = [] if Y is None or Y.classes is None else Y.classes.tolist()
    sample = Sample(rows, look, asked.text, labels, writing, separator, case, n, names)
    numbers_of = np.array(X, np.float32).reshape(n, len(asked.features))
    keys = texts if asked.text else [row.tobytes() for row in numbers_of if asked.features]
    others = [c for c in asked.labels if c not in labels]
    left = (
        f"the pattern matches {_quoted(others)} too: not read, as it says other than yes or no",
    )
    notes, doubts = doubts_of(sample, Y, facts, keys, None if asked.id is None else ids)
    reading = Reading(
        rows.name,
        rows.found,
        lines,
        n,
        {
            "text": asked.text,
            "features": asked.features,
            "labels": labels,
            "id": [] if asked.id is None else [asked.id],
        },
        writing if writing != A_COLUMN_EACH and asked.labels else None,
        facts,
        (*rows.notes, *(left if others and "*" not in asked.patterns else ()), *notes),
        doubts,
    )
    return Table(
        text=texts if asked.text else None,
        X=numbers_of if asked.features else None,
        Y=Y,
        ids=ids if asked.id is not None else None,
        reading=reading,
    )


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
