"""The columns that were asked for: whether they are there, and how tags are written in them."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tacit.datasets.tables.header import no_column
from tacit.datasets.tables.opentable import LOOK, OpenTable
from tacit.datasets.tables.said import says_yes_or_no
from tacit.datasets.tables.tags import LIST, found

__all__ = ["A_COLUMN_EACH", "Asked", "settled", "written"]

A_COLUMN_EACH = "a column each"


@dataclass(frozen=True)
class Asked:
    """The columns that were asked for, by what they hold."""

    text: list[str]
    features: list[str]
    labels: list[str]
    id: str | None
    keep: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()  # that `labels` came from

    @property
    def all(self) -> list[str]:
        own = [] if self.id is None else [self.id]
        return [*self.text, *self.features, *self.labels, *own, *self.keep]

    @property
    def exact(self) -> list[str]:
        """Those that are no pattern."""
        return [name for name in self.all if not re.search(r"[*?\[]", name)]


def settled(asked: Asked, rows: OpenTable) -> Asked:
    """The same, with patterns as the columns that they match; ValueError for what is not there."""
    others = {*asked.text, *asked.features, asked.id, *asked.keep}
    labels: list[str] = []
    patterns = []
    for name in asked.labels:
        if name not in rows.columns and name not in asked.exact:
            matching = [c for c in rows.columns if c not in others and fnmatch.fnmatchcase(c, name)]
            labels += matching or [name]
            patterns.append(name)
        else:
            labels.append(name)
    labels = list(dict.fromkeys(labels))
    them = replace(asked, labels=labels, patterns=tuple(patterns))
    for name in them.all:
        if name not in rows.columns:
            hint = _a_column_each(rows) if name in labels else ""
            raise ValueError(no_column(rows.name, name, rows.columns) + hint)
        if rows.columns.count(name) > 1:
            raise ValueError(f"{rows.name} has more than one column {name!r}; rename all but one")
    return them


def _a_column_each(rows: OpenTable) -> str:
    """What to add where no column of tags is: perhaps every tag has one."""
    first = [row for _, row in islice(rows.rows, LOOK)]
    answers = [c for c in rows.columns if says_yes_or_no(row.get(c) for row in first)]
    if len(answers) < 2:
        return ""
    return f". {len(answers):,} columns hold only yes and no; if each is a tag, '*' names them all"


def written(
    asked: Asked, look: list[dict[str, Any]], separator: str | None
) -> tuple[list[str], str]:
    """The columns of tags, and how tags are written there.

    Of the columns that a pattern matches, those that say yes or no, if any does; columns that are
    named are a tag each, if most say yes or no.
    """
    if asked.patterns or len(asked.labels) > 1:
        answers = [c for c in asked.labels if says_yes_or_no(row.get(c) for row in look)]
        if answers and asked.patterns:
            return answers, A_COLUMN_EACH
        if len(answers) > len(asked.labels) / 2:
            return asked.labels, A_COLUMN_EACH
    if separator is not None:
        return asked.labels, separator
    cells = [row.get(c) for row in look for c in asked.labels]
    texts = [cell for cell in cells if isinstance(cell, str)]
    return asked.labels, found(texts) if texts else LIST
