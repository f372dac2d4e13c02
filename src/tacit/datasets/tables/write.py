"""Writing rows as a table, in the format that the name's end says."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tacit.basics.files import replacing
from tacit.datasets.tables.files import FORMATS, kind_of
from tacit.datasets.tables.structured import BATCH, pyarrow
from tacit.datasets.textfiles import opened

__all__ = ["writable", "write_table"]


def write_table(path: str | os.PathLike, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, one dict each with the same keys, in the format that the name's end says.

    In CSV a list is written with ``|`` between its items, which `read_table` finds again.
    """
    path = Path(path)
    kind = writable(path)
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


def writable(path: Path) -> str:
    """The format of a table to be written; ValueError where it is only read."""
    kind = kind_of(path)
    if kind in ("json", "xlsx"):
        raise ValueError(f"{path.name}: {FORMATS[kind]} is only read; write .csv or .jsonl")
    return kind


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
    pa, pq = pyarrow("Parquet")
    rows = _same_keys(rows)
    batch = list(islice(rows, BATCH))
    schema = pa.Table.from_pylist(batch).schema
    with pq.ParquetWriter(path, schema) as writer:
        while batch:
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            batch = list(islice(rows, BATCH))
