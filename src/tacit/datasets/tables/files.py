"""Which reader a table needs: by what it is, its name's end, or what the user says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.datasets.tables import structured
from tacit.datasets.tables.delimited import delimited
from tacit.datasets.tables.opentable import OpenTable

__all__ = ["FORMATS", "SUFFIXES", "kind_of", "open_table"]

FORMATS = {
    "csv": "CSV",
    "tsv": "TSV",
    "jsonl": "JSON lines",
    "json": "JSON",
    "parquet": "Parquet",
    "xlsx": "Excel",
}
_ALSO = {"tab": "tsv", "ndjson": "jsonl", "pq": "parquet", "xlsm": "xlsx"}
SUFFIXES = {**{kind: kind for kind in FORMATS}, **_ALSO}
"""The format that each end of a name stands for."""

_BYTES = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}  # with which a file of this format begins
_OTHERS = {  # and those that are no table of ours
    b"\xd0\xcf\x11\xe0": "an Excel file of the old format; save it as .xlsx or .csv",
    b"<html": "a web page; save the table in it as .csv",
    b"<!DOC": "a web page; save the table in it as .csv",
    b"%PDF": "a PDF; save the table in it as .csv",
    b"SQLite": "a database; write the table in it as .csv",
    b"BZh": "compressed by bzip2; unpack it first",
    b"\xfd7zXZ": "compressed by xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it first",
}


def open_table(
    source: Any,
    wanted: Sequence[str],
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    every_column: bool = False,
) -> OpenTable:
    """Open a file or a data frame.

    The names wanted tell the line of names from others. Other columns may be left out, where that
    saves time, unless every column is asked for.
    """
    if not isinstance(source, str | os.PathLike):
        return _open_frame(source)
    path = Path(source)
    kind = _checked(path, kind_of(path, format))
    if kind in ("csv", "tsv"):
        rows = delimited(path, wanted, delimiter, encoding)
    elif kind in ("json", "jsonl"):
        read = structured.json_array if kind == "json" else structured.json_lines
        rows = read(path, encoding)
    elif kind == "parquet":
        rows = structured.parquet(path, () if every_column else wanted)
    else:
        rows = structured.excel(path, wanted)
    return rows


def kind_of(path: Path, format: str | None = None) -> str:
    """The format that a name ends in, unless one is given."""
    if format is not None:
        if format.lower() not in FORMATS:
            raise ValueError(f"the format is one of {', '.join(FORMATS)}; got {format!r}")
        return format.lower()
    suffixes = [suffix.lower()[1:] for suffix in path.suffixes]
    if suffixes[-1:] == ["gz"]:
        suffixes.pop()
        if suffixes and SUFFIXES.get(suffixes[-1]) in ("parquet", "xlsx"):
            raise ValueError(f"{path.name} is compressed in itself already; unpack the .gz")
    kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if kind is None:
        ends = ", ".join(f".{name}" for name in FORMATS)
        raise ValueError(
            f"cannot tell the format of {path.name}; its name must end in {ends}, "
            "or the format be given; text may also end in .gz"
        )
    return kind


def _open_frame(frame: Any) -> OpenTable:
    if hasattr(frame, "iloc"):
        return structured.pandas(frame)
    if hasattr(frame, "__arrow_c_stream__"):
        return structured.arrow(frame)
    more = "; collect() it first" if hasattr(frame, "collect") else ""
    raise ValueError(
        "a table is a path, a data frame of pandas or polars, or what gives an Arrow stream; got "
        f"{type(frame).__name__}{more}"
    )


def _checked(path: Path, kind: str) -> str:
    """The format of a file, unless its first bytes say that it is another."""
    with open(path, "rb") as file:
        first = file.read(16)
    for begins, what in _OTHERS.items():
        if first.lstrip().lower().startswith(begins.lower()):
            raise ValueError(f"{path.name} is {what}")
    really = next((k for begins, k in _BYTES.items() if first.startswith(begins)), None)
    if kind in ("parquet", "xlsx") or really is None:
        return kind
    raise ValueError(
        f"{path.name} is {FORMATS[really]} by its first bytes, whatever its name ends in; "
        f"give the format {really}, or rename it"
    )
