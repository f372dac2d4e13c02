"""Rows of cells that have names and kinds already: JSON, Parquet, Excel, data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tacit.datasets.tables.delimited import settled, text_of
from tacit.datasets.tables.header import FIRST, find_header
from tacit.datasets.tables.opentable import LOOK, OpenTable

__all__ = ["BATCH", "arrow", "excel", "json_array", "json_lines", "pandas", "parquet", "pyarrow"]

BATCH = 10_000  # rows of Parquet in memory at a time


def json_lines(path: Path, encoding: str | None) -> OpenTable:
    """One object a line; the columns are the keys of the first rows."""
    encoding, found, notes = settled(path, encoding)
    rows = _json_lines(path, encoding)
    first = list(islice(rows, LOOK))
    columns = list(dict.fromkeys(key for _, row in first for key in row))
    return OpenTable(path.name, columns, chain(first, rows), f"an object a line, {found}", notes)


def json_array(path: Path, encoding: str | None) -> OpenTable:
    """An array of objects, alone or as the one array of an object; or an array for each column."""
    given = encoding
    encoding, found, notes = settled(path, encoding)
    with text_of(path, encoding) as file:
        try:
            whole = json.load(file)
        except RecursionError:
            raise ValueError(f"{path.name} is nested too deep") from None
        except ValueError as e:
            if isinstance(e, UnicodeError):
                raise
            if "Extra data" in str(e):  # a common name for what is JSON lines
                return json_lines(path, given)
            raise ValueError(f"{path.name} is not whole JSON: {e}") from None
    rows = _records(whole)
    if rows is None:
        raise ValueError(f"{path.name} is not an array of objects, one for each row")
    columns = list(dict.fromkeys(key for row in rows[:LOOK] for key in row))
    numbered = ((f"{path.name}, row {i}", row) for i, row in enumerate(rows, 1))
    return OpenTable(path.name, columns, numbered, f"an array of objects, {found}", notes)


def parquet(path: Path, wanted: Sequence[str]) -> OpenTable:
    """A Parquet file, of which only the columns wanted are read, if any are named."""
    pa, pq = pyarrow("Parquet")
    try:
        with pq.ParquetFile(path) as file:
            columns = file.schema_arrow.names
    except pa.ArrowException as e:
        raise ValueError(f"{path.name} is not a whole Parquet file: {e}") from None
    return OpenTable(path.name, columns, _parquet(path, [c for c in wanted if c in columns]), "")


def excel(path: Path, wanted: Sequence[str]) -> OpenTable:
    """The first sheet that has the columns wanted, else the one with most columns."""
    with _book(path) as book:
        heads = {sheet.title: _head(sheet, wanted) for sheet in book.worksheets}
    if not heads:
        raise ValueError(f"{path.name} has no sheet of cells")
    widest = max(heads, key=lambda t: len(heads[t][1]))
    title = next((t for t, (_, c) in heads.items() if wanted and set(wanted) <= set(c)), widest)
    notes = (f"it has {len(heads)} sheets; the one called {title!r} is read",)
    rows = _excel(path, title, *heads[title])
    return OpenTable(
        path.name, heads[title][1], rows, f"sheet {title!r}", notes if len(heads) > 1 else ()
    )


def pandas(frame: Any) -> OpenTable:
    """A data frame of pandas; what it holds for "missing" is an empty cell."""
    columns = [str(column) for column in frame.columns]
    cells = [frame.iloc[:, j].astype(object) for j in range(len(columns))]
    # A list is not missing, and pandas would ask its items.
    lists = [
        [None if absent else value for value, absent in zip(cell.tolist(), cell.isna().tolist())]
        for cell in cells
    ]
    rows = (dict(zip(columns, row)) for row in zip(*lists))
    return OpenTable("the frame", columns, _numbered("the frame", rows), "")


def arrow(frame: Any) -> OpenTable:
    """Whatever gives an Arrow stream: polars, DuckDB, Hugging Face's datasets."""
    pa, _ = pyarrow("a data frame")
    reader = pa.RecordBatchReader.from_stream(frame)
    rows = chain.from_iterable(batch.to_pylist() for batch in reader)
    return OpenTable("the frame", list(reader.schema.names), _numbered("the frame", rows), "")


def pyarrow(what: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f'{what} needs pyarrow: pip install "tacit[parquet]", or use .csv or .jsonl'
        ) from None
    return pyarrow, parquet


def _json_lines(path: Path, encoding: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with text_of(path, encoding) as file:
        for line, text in enumerate(file, 1):
            where = f"{path.name}, line {line}"
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as e:
                raise ValueError(f"{where}: expected a JSON object; {e}") from None
            if not isinstance(row, dict):
                more = "; an array of objects is a .json file" if text[:1] == "[" else ""
                raise ValueError(f"{where}: expected a JSON object; got {text[:40]!r}{more}")
            yield where, row


def _records(whole: Any) -> list[dict[str, Any]] | None:
    if isinstance(whole, dict):
        arrays = [v for v in whole.values() if isinstance(v, list)]
        if len(arrays) == 1 and any(isinstance(row, dict) for row in arrays[0]):
            whole = arrays[0]  # {"data": [...]}, as services answer
        elif whole and len(arrays) == len(whole) and len(set(map(len, arrays))) == 1:
            return [dict(zip(whole, row)) for row in zip(*arrays)]
        elif whole and all(isinstance(v, dict) for v in whole.values()):  # pandas' own
            index = dict.fromkeys(key for cells in whole.values() for key in cells)
            return [{name: cells.get(i) for name, cells in whole.items()} for i in index]
    if isinstance(whole, list) and all(isinstance(row, dict) for row in whole):
        return whole
    return None


def _parquet(path: Path, columns: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    pa, pq = pyarrow("Parquet")
    try:
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(batch_size=BATCH, columns=columns or None)
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            yield from _numbered(path.name, rows)
    except pa.ArrowException as e:
        raise ValueError(f"{path.name} is not a whole Parquet file: {e}") from None


def _head(sheet: Any, wanted: Sequence[str]) -> tuple[int, list[str]]:
    lines = islice(sheet.iter_rows(values_only=True), FIRST)
    return find_header([[_shown(cell) for cell in line] for line in lines], wanted)


def _excel(
    path: Path, title: str, before: int, columns: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    with _book(path) as book:
        lines = islice(enumerate(book[title].iter_rows(values_only=True), 1), before, None)
        for line, cells in lines:
            if any(cell is not None for cell in cells):  # sheets go on below their last row
                yield f"{path.name}, row {line}", dict(zip(columns, cells))


@contextmanager
def _book(path: Path) -> Iterator[Any]:
    try:
        import openpyxl
    except ImportError:
        raise ImportError(
            'Excel needs openpyxl: pip install "tacit[excel]", or save the sheet as .csv'
        ) from None
    with open(path, "rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as e:  # openpyxl has no error of its own for what is no workbook
            raise ValueError(f"{path.name} is not a whole Excel file: {e}") from None
        yield book


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _numbered(name: str, rows: Iterable[dict]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, row in enumerate(rows, 1):
        yield f"{name}, row {number}", row
