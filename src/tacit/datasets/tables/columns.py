"""What each column of a table seems to hold, for someone who has not decided yet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np

from tacit.datasets.tables.header import is_number
from tacit.datasets.tables.opentable import LOOK, OpenTable
from tacit.datasets.tables.said import says_yes_or_no
from tacit.datasets.tables.tags import WHOLE, found

__all__ = ["Column", "columns_of"]

Kind = Literal["text", "tags", "numbers", "yes/no", "names", "one of few", "empty"]

_EXAMPLES, _LETTERS = 3, 40
_TEXT_WORDS = 3  # words in the cell of the middle, or more: text
_FEW = 0.5  # most different cells for each row of a column that sorts rows


@dataclass(frozen=True)
class Column:
    """A column: its name, the kind of what it seems to hold, and some of it."""

    name: str
    kind: Kind
    examples: list[str]


def columns_of(rows: OpenTable) -> list[Column]:
    """All columns, by the first thousand rows."""
    first = [row for _, row in islice(rows.rows, LOOK)]
    return [_column(name, [row.get(name) for row in first]) for name in rows.columns if name]


def _column(name: str, cells: list[Any]) -> Column:
    said = [cell for cell in cells if cell is not None and str(cell).strip()]
    different = dict.fromkeys(" ".join(str(cell).split()) for cell in said)
    examples = [text[:_LETTERS] for text in islice(different, _EXAMPLES)]
    return Column(name, _kind(said, len(different)), examples)


def _kind(said: list[Any], different: int) -> Kind:
    texts = [cell for cell in said if isinstance(cell, str)]
    if not said:
        return "empty"
    if says_yes_or_no(said):
        return "yes/no"
    if not texts:
        plain = all(isinstance(cell, int | float) for cell in said)
        return "numbers" if plain else "tags"
    if all(map(is_number, texts)):
        return "numbers"
    words = float(np.median([len(text.split()) for text in texts]))
    writing = found(texts)
    if writing != WHOLE and (words < _TEXT_WORDS or writing != ","):
        return "tags"
    if words >= _TEXT_WORDS:
        return "text"
    return "one of few" if different <= _FEW * len(said) else "names"
