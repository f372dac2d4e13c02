"""Tables of rows with tags: CSV, JSON lines and Parquet.

A row has text or numbers to learn from, and a cell of tags: a list (JSON lines, Parquet) or
a string that a separator cuts. Silence about a tag means nothing, so the labels are positive-only;
`-tag` says no (`tacit.datasets.denied`).
"""

from __future__ import annotations

import csv
import io
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy import sparse as sp

from tacit.basics.files import replacing
from tacit.datasets.denied import yes_and_no
from tacit.datasets.textfiles import opened
from tacit.labels import Labels

__all__ = ["Table", "read_table", "write_table"]

_SEPARATORS = "|;,"
_LOOK = 1000  # rows looked at for the separator
_BATCH = 10_000  # rows of Parquet in memory at a time
_FORMATS = "its name must end in .csv, .tsv or .jsonl (or these and .gz), or in .parquet"


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
        The tags, positive-only.
    ids : list of str, or None
        The id column.
    """

    text: list[str] | None
    X: np.ndarray | None
    Y: Labels | None
    ids: list[str] | None


def read_table(
    path: str | os.PathLike,
    *,
    labels: str | None = "tags",
    text: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,
    separator: str | None = None,
) -> Table:
    """Read the columns asked for, a batch of rows at a time.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv or .jsonl file in UTF-8, gzipped if .gz follows, or a .parquet file.
    labels : str or None, default="tags"
        The column of tags; None reads no labels.
    text : str or sequence of str, default=None
        The columns of text.
    features : sequence of str, default=None
        The columns of numbers.
    id : str, default=None
        The column that names the rows.
    separator : str, default=None
        What stands between the tags of a cell. None takes the first of ``|``, ``;`` and ``,`` that
        occurs in the tags of the first 1,000 rows; if none does, the whole cell is one tag. Blanks
        around a tag do not count. A minus before a tag says no to it.
    """
    path = Path(path)
    texts = [text] if isinstance(text, str) else list(text or [])
    numbers = list(features or [])
    wanted = [name for name in [*texts, *numbers, labels, id] if name is not None]
    rows = _rows(path, wanted)
    if labels is not None and separator is None:
        first = list(islice(rows, _LOOK))
        cells = [row[labels] for _, row in first if isinstance(row[labels], str)]
        separator = next((s for s in _SEPARATORS if any(s in cell for cell in cells)), None)
        rows = chain(first, rows)

    said: list[str] = []
    ids: list[str] = []
    X, tags = array("f"), _Tags(separator)
    for at, row in rows:
        if texts:
            said.append(" ".join("" if row[c] is None else str(row[c]) for c in texts))
        if id is not None:
            ids.append("" if row[id] is None else str(row[id]))
        X.extend(_number(row[c], at, c) for c in numbers)
        if labels is not None:
            tags.add(row[labels], f"{at}, column {labels!r}")
    if labels is not None and not tags.numbers:
        raise ValueError(
            f"{path.name} has no tag in its column {labels!r}; name another column, or give "
            "labels=None to read it without"
        )
    return Table(
        text=said if texts else None,
        X=np.array(X, np.float32).reshape(-1, len(numbers)) if numbers else None,
        Y=None if labels is None else tags.labels(),
        ids=ids if id is not None else None,
    )


def write_table(path: str | os.PathLike, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, one dict each with the same keys, in the format that the name's end says.

    In CSV a list is written with ``|`` between its items, which `read_table` finds again.
    """
    path = Path(path)
    kind = _kind(path)
    with replacing(path) as beside:
        if kind == "parquet":
            _write_parquet(beside, rows)
            return
        with (
            opened(path, beside) as raw,
            io.TextIOWrapper(raw, encoding="utf-8", newline="") as out,
        ):
            if kind == "jsonl":
                for row in _same_keys(rows):
                    out.write(json.dumps(row, ensure_ascii=False, default=_plain) + "\n")
            else:
                _write_csv(out, rows, "\t" if kind == "tsv" else ",")


class _Tags:
    """Tags as they come, numbered in order of appearance, sorted at the end."""

    def __init__(self, separator: str | None):
        self.separator = separator
        self.numbers: dict[str, int] = {}
        self.said = tuple((array("q"), array("q")) for _ in range(2))  # yes and no: tags, rows
        self.n_rows = 0

    def add(self, cell: Any, where: str) -> None:
        if cell is None:
            names = []
        elif isinstance(cell, str):
            names = cell.split(self.separator) if self.separator else [cell]
        elif isinstance(cell, list):
            names = cell
        else:
            names = [cell]
        # A number may be a tag, as in [12, 7]; a dict or a list inside the list may not.
        if not all(isinstance(name, str | int | float) for name in names):
            raise ValueError(f"{where}: expected tags; got {str(cell)[:40]!r}")
        try:
            stripped = yes_and_no(tag for name in names if (tag := str(name).strip()))
        except ValueError as e:
            raise ValueError(f"{where}: {e}") from None
        for (tags, rows), said in zip(self.said, stripped):
            tags.extend(self.numbers.setdefault(tag, len(self.numbers)) for tag in said)
            rows.extend([self.n_rows] * len(said))
        self.n_rows += 1

    def labels(self) -> Labels:
        classes = sorted(self.numbers)
        place = np.empty(len(classes), np.int64)
        place[[self.numbers[name] for name in classes]] = np.arange(len(classes))
        patterns = []
        for tags, rows in self.said:
            cells = (np.array(rows, np.int64), place[np.array(tags, np.int64)])
            shape = (self.n_rows, len(classes))
            patterns.append(sp.csr_array((np.ones(len(tags), np.bool_), cells), shape=shape))
        yes, no = patterns
        return Labels.positive_only(yes, no=no, classes=classes)


def _number(cell: Any, at: str, column: str) -> float:
    if cell is None or cell == "":
        return np.nan
    try:
        return float(np.float32(cell))
    except (TypeError, ValueError):
        raise ValueError(
            f"{at}, column {column!r}: expected a number; got {str(cell)[:40]!r}"
        ) from None


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] != [".parquet"]:
        suffixes.pop()
    kind = suffixes[-1][1:] if suffixes else ""
    if kind not in ("csv", "tsv", "jsonl", "parquet"):
        raise ValueError(f"cannot tell the format of {path.name}; {_FORMATS}")
    return kind


def _rows(path: Path, wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row, after words that say where it is."""
    kind = _kind(path)
    if kind == "parquet":
        yield from _parquet_rows(path, wanted)
        return
    with opened(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        read = _jsonl_rows if kind == "jsonl" else _csv_rows
        line = 0
        try:
            for line, row in read(file, path.name, wanted):
                yield f"{path.name}, line {line}", row
        except UnicodeDecodeError as e:
            wrong = e.object[e.start : e.end]
            raise ValueError(
                f"{path.name}, after line {line}: expected UTF-8; got the bytes {wrong!r}"
            ) from None


def _csv_rows(file: TextIO, name: str, wanted: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    delimiter = "\t" if ".tsv" in name.lower() else ","
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(2**31 - 1)  # a description may well be longer than 128 kB
    line = 1
    try:
        header = next(reader, [])
        _check_columns(name, wanted, header)
        line = reader.line_num + 1
        for cells in reader:
            if cells:  # an empty line is no row
                if len(cells) != len(header):
                    raise ValueError(
                        f"{name}, line {line}: expected {len(header)} cells; got {len(cells)}"
                    )
                yield line, dict(zip(header, cells))
            line = reader.line_num + 1
    except csv.Error as e:
        raise ValueError(f"{name}, the row that begins in line {line}: {e}") from None
    finally:
        csv.field_size_limit(limit)


def _jsonl_rows(file: TextIO, name: str, wanted: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as e:
            raise ValueError(f"{name}, line {line}: expected a JSON object; {e}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{name}, line {line}: expected a JSON object; got {text[:40]!r}")
        _check_columns(f"{name}, line {line}", wanted, row)
        yield line, row


def _parquet_rows(path: Path, wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    pa, pq = _pyarrow()
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path.name, wanted, file.schema_arrow.names)
            batches = file.iter_batches(batch_size=_BATCH, columns=wanted)
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, row in enumerate(rows, 1):
                yield f"{path.name}, row {number}", row
    except pa.ArrowException as e:
        raise ValueError(f"{path.name} is not a whole Parquet file: {e}") from None


def _check_columns(where: str, wanted: list[str], there: Iterable[str]) -> None:
    missing = [name for name in wanted if name not in there]
    if missing:
        raise ValueError(
            f"{where} has no column {missing[0]!r}; it has {', '.join(there) or 'none'}"
        )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            'Parquet needs pyarrow: pip install "tacit[parquet]", or use .csv or .jsonl'
        ) from None
    return pyarrow, parquet


def _same_keys(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows, their keys in the order of the first one's."""
    keys = None
    for i, row in enumerate(rows):
        keys = list(row) if keys is None else keys
        if row.keys() != set(keys):
            raise ValueError(f"row {i} has the keys {list(row)}; expected {keys}, as in row 0")
        yield {key: row[key] for key in keys}


def _plain(value: Any) -> Any:
    """What NumPy gives, as Python's own."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _write_csv(out: TextIO, rows: Iterable[dict[str, Any]], delimiter: str) -> None:
    plain = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    # The csv module does not quote a lone carriage return, and then cannot read it back.
    quoted = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for i, row in enumerate(_same_keys(rows)):
        for cells in ([*row], [*row.values()])[i > 0 :]:
            texts = [_cell(value) for value in cells]
            (quoted if any("\r" in text for text in texts) else plain).writerow(texts)


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        return "|".join(map(str, value))
    return "" if value is None else str(value)


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    pa, pq = _pyarrow()
    rows = _same_keys(rows)
    batch = list(islice(rows, _BATCH))
    schema = pa.Table.from_pylist(batch).schema
    with pq.ParquetWriter(path, schema) as writer:
        while batch:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            batch = list(islice(rows, _BATCH))
