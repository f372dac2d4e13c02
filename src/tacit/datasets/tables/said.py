"""What the cells of a row say of its tags: yes, no, or nothing; and the labels that makes."""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse as sp

from tacit.datasets.denied import yes_and_no
from tacit.datasets.tables.tags import cut
from tacit.labels import Labels

__all__ = ["Case", "Noes", "Reader", "Said", "in_cells", "in_columns", "lower", "says_yes_or_no"]

Case = Literal["keep", "lower"]
Noes = Literal["none", "zeros", "all"]
Reader = Callable[[dict[str, Any], str], tuple[Iterable[str], Iterable[str]]]

_YES = {"1", "1.0", "true", "t", "yes", "y", "x", "✓", "✔", "ja", "oui", "si", "sí"}
_NO = {"0", "0.0", "false", "f", "no", "n", "nein", "non"}
_NOTHING = {"", "-", "?", "na", "n/a", "nan", "none", "null"}


def in_cells(columns: list[str], writing: str) -> Reader:
    """What a row says whose cells, one or several, hold tags."""

    def read(row: dict[str, Any], where: str) -> tuple[list[str], list[str]]:
        tags: list[str] = []
        for column in columns:
            try:
                tags += cut(row.get(column), writing)
            except ValueError:
                raise ValueError(
                    f"{where}, column {column!r}: expected tags; got {str(row[column])[:40]!r}"
                ) from None
        try:
            return yes_and_no(tags)
        except ValueError as e:
            raise ValueError(f"{where}, column {', '.join(map(repr, columns))}: {e}") from None

    return read


def in_columns(columns: list[str], noes: Noes) -> Reader:
    """What a row says that has a column for each tag."""

    def read(row: dict[str, Any], where: str) -> tuple[list[str], list[str]]:
        answers: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for column in columns:
            try:
                answers[_answer(row.get(column))].append(column)
            except ValueError:
                raise ValueError(
                    f"{where}, column {column!r}: expected 1, 0, yes, no or nothing; got "
                    f"{str(row[column])[:40]!r}"
                ) from None
        return answers[True], [] if noes == "none" else answers[False]

    return read


def says_yes_or_no(cells: Iterable[Any]) -> bool:
    """Whether these cells hold yes, no and blanks alone, and something at all."""
    try:
        return {_answer(cell) for cell in cells} - {None} != set()
    except ValueError:
        return False


def lower(tag: str) -> str:
    """A tag in the spelling that twins share: small letters, single blanks, one form of accents."""
    return " ".join(unicodedata.normalize("NFC", tag).lower().split())


def _answer(cell: Any) -> bool | None:
    word = "" if cell is None else str(cell).strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    if word not in _NOTHING:
        raise ValueError("neither yes nor no")
    return None


@dataclass
class Said:
    """What was said of rows so far; tags are numbered as they come, and sorted at the end."""

    case: Case | None = None
    noes: Noes = "none"
    numbers: dict[str, int] = field(default_factory=dict)
    _yes: tuple[array, array] = field(default_factory=lambda: (array("q"), array("q")))
    _no: tuple[array, array] = field(default_factory=lambda: (array("q"), array("q")))

    def add(self, row: int, yes: Iterable[str], no: Iterable[str]) -> None:
        self._append(self._yes, row, yes)
        self._append(self._no, row, no)

    def labels(self, n_rows: int) -> Labels:
        """The labels: what was not said at all is unsaid, or a no if the user says so.

        A tag that a row says yes and no to, on two lines, it says yes to.
        """
        classes = sorted(self.numbers)
        Y = self._pattern(self._yes, n_rows, classes)
        if self.noes == "all":
            return Labels.complete(Y, classes=classes)
        N = self._pattern(self._no, n_rows, classes)
        if self.noes == "zeros":
            observed = sp.csr_array(Y + N)
            if observed.nnz == n_rows * len(classes):
                return Labels.complete(Y, classes=classes)
            return Labels.masked(Y, observed, classes=classes)
        return Labels.positive_only(Y, no=N.multiply(Y) < N, classes=classes)

    def number(self, tags: Iterable[str]) -> list[int]:
        """The numbers of these tags; one that is new gets the next."""
        spelt = map(lower, tags) if self.case == "lower" else tags
        return [self.numbers.setdefault(tag, len(self.numbers)) for tag in spelt]

    def _append(self, to: tuple[array, array], row: int, tags: Iterable[str]) -> None:
        numbers = self.number(tags)
        to[0].extend([row] * len(numbers))
        to[1].extend(numbers)

    def _pattern(
        self, entries: tuple[array, array], n_rows: int, classes: list[str]
    ) -> sp.csr_array:
        place = np.empty(len(classes), np.int64)
        place[[self.numbers[name] for name in classes]] = np.arange(len(classes))
        rows, tags = (np.array(part, np.int64) for part in entries)
        shape = (n_rows, len(classes))
        return sp.csr_array((np.ones(len(rows), np.bool_), (rows, place[tags])), shape=shape)
