"""A table that is open, whatever it was written in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["LOOK", "OpenTable"]

LOOK = 1000
"""Rows looked at to find out how a table is written."""


@dataclass(frozen=True)
class OpenTable:
    """A table that is open.

    Attributes
    ----------
    name : str
        What to call it in a sentence.
    columns : list of str
        The names of its columns.
    rows : iterator of (str, dict)
        Words that say where a row is, and its cells by column. A missing key is an empty cell.
    found : str
        What was found out about how it is written.
    notes : tuple of str
        What the user should hear of that.
    decimal_comma : bool
        Whether 1,5 is one and a half: the comma is not what stands between cells.
    """

    name: str
    columns: list[str]
    rows: Iterator[tuple[str, dict[str, Any]]]
    found: str
    notes: tuple[str, ...] = ()
    decimal_comma: bool = False
