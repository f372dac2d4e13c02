"""What was understood of a table, to be looked at before anything is learnt from it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.datasets.tables.said import lower
from tacit.datasets.tables.tags import ANGLES, LIST, WHOLE, in_words
from tacit.labels import Labels

__all__ = ["Doubt", "LabelFacts", "Reading", "ReadingWarning", "twins"]

_SHOWN = 5  # names in a line
_FREQUENT = 20  # labels that are kept


class ReadingWarning(UserWarning):
    """A table was probably meant to be read otherwise; the message says how to say so."""


@dataclass(frozen=True)
class Doubt:
    """What looks like a misreading, and the options of `read_table` that would settle it.

    Attributes
    ----------
    what : str
        The sign, as a sentence.
    options : dict of str to str
        By parameter, what to give: ``{"separator": "whole"}``. `fit` and the other commands have an
        option of the same name.
    """

    what: str
    options: dict[str, str]

    def __str__(self) -> str:
        return f"{self.what}; give {', '.join(f'{k}={v!r}' for k, v in self.options.items())}"


@dataclass(frozen=True)
class LabelFacts:
    """What a person wants to know of the labels that were read.

    Attributes
    ----------
    written : str
        How: "apart by |", "as lists", "a column each".
    n : int
        How many there are.
    once : int
        How many of them are said of one row only.
    frequent : list of (str, int)
        The twenty commonest, with the number of their rows.
    a_row : (float, int)
        Their mean and greatest number in a row.
    silent : int
        How many rows have none.
    twins : list of list of str
        Those that are the same but for capital letters and blanks.
    """

    written: str
    n: int
    once: int
    frequent: list[tuple[str, int]]
    a_row: tuple[float, int]
    silent: int
    twins: list[list[str]]

    @classmethod
    def of(cls, Y: Labels, writing: str) -> LabelFacts:
        assert Y.classes is not None
        rows = np.diff(Y.positives.indptr)
        counts = np.bincount(Y.positives.indices, minlength=Y.n_labels)
        first = np.argsort(-counts, kind="stable")[:_FREQUENT]
        words = {WHOLE: "one in a cell", LIST: "as lists", ANGLES: "in < and >"}
        return cls(
            words.get(writing, writing if len(writing) > 2 else f"apart by {in_words(writing)}"),
            Y.n_labels,
            int((counts == 1).sum()),
            [(str(Y.classes[j]), int(counts[j])) for j in first],
            (float(rows.mean()) if len(rows) else 0.0, int(rows.max(initial=0))),
            int((rows == 0).sum()),
            twins(Y.classes.tolist()),
        )


@dataclass(frozen=True)
class Reading:
    """What was understood of a table; `print` it.

    Attributes
    ----------
    name : str
        The file, or "the frame".
    found : str
        Its format, delimiter and encoding.
    lines, rows : int
        How many lines it has, and how many rows they make.
    columns : dict of str to list of str
        Which columns were read as what: "text", "features", "labels", "id".
    separator : str or None
        How tags are cut, to be given to `read_table` for more tables like this one.
    labels : LabelFacts or None
        Of the labels, where they were read.
    notes : tuple of str
        What should be known, and needs no answer.
    doubts : tuple of Doubt
        What was probably meant otherwise.
    """

    name: str
    found: str
    lines: int
    rows: int
    columns: dict[str, list[str]]
    separator: str | None = None
    labels: LabelFacts | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = field(default=())

    def facts(self) -> list[tuple[str, str]]:
        """(what, words) in the order in which a person wants to see them."""
        told = [("table", f"{self.name}: {self.found}")]
        rows = f"{self.rows:,}"
        if self.lines > self.rows:
            rows += f", on {self.lines:,} lines: those with the same id are one row"
        told.append(("rows", rows))
        told += [
            (name, _listed(columns))
            for name, columns in self.columns.items()
            if columns and name != "labels"
        ]
        if self.labels is not None:
            told += self._told_labels(self.labels)
        told += [("note", note) for note in self.notes]
        return told + [("doubt", doubt.what) for doubt in self.doubts]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for a machine."""
        labels = self.labels
        return {
            "table": self.name,
            "found": self.found,
            "lines": self.lines,
            "rows": self.rows,
            "columns": self.columns,
            "labels": None if labels is None else labels.__dict__,
            "notes": list(self.notes),
            "doubts": [{"what": doubt.what, "options": doubt.options} for doubt in self.doubts],
        }

    def _told_labels(self, labels: LabelFacts) -> list[tuple[str, str]]:
        mean, most = labels.a_row
        frequent = ", ".join(f"{name} ({n:,})" for name, n in labels.frequent[:_SHOWN])
        tags = f"in {_listed(self.columns['labels'])}, {labels.written}"
        once = f", of which {labels.once:,} are said once" if labels.once > 1 else ""
        more = f"; none in {labels.silent:,} of {self.rows:,} rows" if labels.silent else ""
        told = [
            ("tags", tags),
            ("labels", f"{labels.n:,}{once}"),
            ("frequent", frequent),
            ("tags a row", f"{mean:.1f} on average, {most} at most{more}"),
        ]
        if labels.twins:
            alike = " and ".join(labels.twins[0][:2])
            told.append(("twins", f"{len(labels.twins):,} by capitals or blanks, as {alike}"))
        return told

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts()) + 2
        return "\n".join(f"{name:<{width}}{words}" for name, words in self.facts())


def twins(names: list[str]) -> list[list[str]]:
    """Labels that are the same but for capital letters and blanks, together."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[lower(name)].append(name)
    return [group for group in alike.values() if len(group) > 1]


def _listed(columns: list[str]) -> str:
    if len(columns) <= _SHOWN:
        return ", ".join(columns)
    return f"{', '.join(columns[: _SHOWN - 1])} and {len(columns) - _SHOWN + 1:,} more"
