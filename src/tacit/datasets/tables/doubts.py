"""Signs that a table was meant otherwise than it was read.

Each sign is a function of its own: it gives a `Doubt`, which stops `tacit fit`, or a note, which
does not. What the user has settled by an option is never doubted again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.datasets.tables.opentable import OpenTable
from tacit.datasets.tables.reading import Doubt, LabelFacts
from tacit.datasets.tables.said import says_yes_or_no
from tacit.datasets.tables.tags import LIST, WHOLE, are_sentences
from tacit.labels import Labels

__all__ = ["Sample", "doubts_of"]

_ENOUGH = 20  # rows; of fewer nothing is a sign
_NEARLY_ALL = 0.9
_TWINS = 0.05  # of the labels
_ONCE = 0.6  # of the labels said once, and …
_MANY = 0.3  # … so many labels for each row
_ALIKE = 0.8  # most different rows for each line of a table with a tag a line
_PLACEHOLDERS = {"nan", "none", "null", "n/a", "na", "-", "?", "unknown"}
_PAIRS = (("[", "]"), ("{", "}"), ("(", ")"))
_MOJIBAKE = re.compile("[ÃÂ][\x80-\xbf©«¶¼¤]|â€")


@dataclass(frozen=True)
class Sample:
    """The first rows of a table, what was decided by them, and what came of it."""

    table: OpenTable
    rows: list[dict[str, Any]]
    text: list[str]
    labels: list[str]
    writing: str
    separator: str | None  # that was given
    case: str | None  # likewise
    n: int  # rows in all
    names: list[str]  # of the labels


def doubts_of(
    sample: Sample,
    Y: Labels | None,
    facts: LabelFacts | None,
    keys: Sequence[Any],
    ids: list[str] | None,
) -> tuple[tuple[str, ...], tuple[Doubt, ...]]:
    """Notes and doubts; `keys` tell which rows are alike."""
    notes = [_mojibake(sample)]
    if ids is not None and len(set(ids)) < len(ids):
        notes.append(
            f"{len(ids) - len(set(ids)):,} of {len(ids):,} rows have an id that was there, with "
            "other text or numbers; they are kept apart"
        )
    doubts: list[Doubt | None] = []
    if Y is not None and facts is not None:
        notes += [_placeholders(sample), _guessed(sample)]
        if sample.n >= _ENOUGH:
            # One misreading has many signs; the first of these tells most.
            one = (_answers, _brackets, _sentences, _names_of_rows, _uncut)
            doubts.append(next((d for sign in one if (d := sign(sample, facts))), None))
            doubts += [_twins(sample, facts), _a_tag_a_line(sample, Y, keys, ids)]
    return tuple(n for n in notes if n), tuple(d for d in doubts if d)


def _answers(sample: Sample, facts: LabelFacts) -> Doubt | None:
    """The labels are 0 and 1: the column is one of several that are a tag each."""
    if len(sample.labels) > 1 or not says_yes_or_no(sample.names):
        return None
    alike = [
        c
        for c in sample.table.columns
        if c not in sample.text and says_yes_or_no(row.get(c) for row in sample.rows)
    ]
    what = f"the column {sample.labels[0]!r} holds only yes and no, so it is a tag by itself"
    if len(alike) > 1:
        what += f", as {len(alike) - 1:,} more columns are"
    return Doubt(what, {"labels": "*" if len(alike) > 1 else "COLUMN"})


def _brackets(sample: Sample, facts: LabelFacts) -> Doubt | None:
    """Labels keep what stood around a list or its items: a bracket alone, or a pair of quotes."""
    wrong = [
        name
        for name in sample.names
        if any((name[0] == a) != (name[-1] == b) and (a in name) != (b in name) for a, b in _PAIRS)
        or (len(name) > 1 and name[0] == name[-1] and name[0] in "\"'")
    ]
    if len(wrong) < 0.1 * facts.n or sample.separator == WHOLE:
        return None
    return Doubt(f"labels keep brackets or quotes, such as {_short(wrong[0])}", {"separator": LIST})


def _sentences(sample: Sample, facts: LabelFacts) -> Doubt | None:
    if facts.once < _ONCE * facts.n or not are_sentences(sample.names):
        return None
    return Doubt(
        f"the column {sample.labels[0]!r} seems to hold sentences rather than tags, such as "
        f"{_short(facts.frequent[0][0])}",
        {"labels": "COLUMN"},
    )


def _names_of_rows(sample: Sample, facts: LabelFacts) -> Doubt | None:
    tagged = sample.n - facts.silent
    if facts.a_row[1] > 1 or facts.n < _NEARLY_ALL * tagged or " " in facts.frequent[0][0]:
        return None
    return Doubt(
        f"nearly every row has a label of its own, such as {_short(facts.frequent[0][0])}: the "
        f"column {sample.labels[0]!r} seems to name rows rather than to tag them",
        {"labels": "COLUMN"},
    )


def _uncut(sample: Sample, facts: LabelFacts) -> Doubt | None:
    """Most labels are said once, and hold something at which they might be cut."""
    if sample.separator is not None or facts.n < _MANY * sample.n or facts.once < _ONCE * facts.n:
        return None
    if sample.writing == WHOLE:
        for separator, name in ((" ", "space"), ("/", "/")):
            having = [label for label in sample.names if separator in label]
            if len(having) > facts.n / 2:
                what = f"{facts.once:,} of {facts.n:,} labels are said once, as {_short(having[0])}"
                return Doubt(f"{what}: they may be several tags", {"separator": name})
    return None


def _twins(sample: Sample, facts: LabelFacts) -> Doubt | None:
    if sample.case is not None or len(facts.twins) < max(3, _TWINS * facts.n):
        return None
    alike = " and ".join(facts.twins[0][:2])
    return Doubt(
        f"{len(facts.twins):,} labels are there in several spellings, as {alike}", {"case": "lower"}
    )


def _a_tag_a_line(
    sample: Sample, Y: Labels, keys: Sequence[Any], ids: list[str] | None
) -> Doubt | None:
    """Rows come again, each time with another tag."""
    if ids is not None or not len(keys) or np.diff(Y.positives.indptr).max() > 1:
        return None
    tags = Y.positives.indices
    pairs = {(keys[i], tag) for i, tag in zip(Y.positives.nonzero()[0], tags)}
    different = len(set(keys))
    if different > _ALIKE * len(keys) or len(pairs) < _NEARLY_ALL * len(tags):
        return None
    return Doubt(
        f"{different:,} rows come again and again, {len(keys):,} times in all, each time with "
        "another tag: it seems to be a table of one tag a line",
        {"id": _id_column(sample)},
    )


def _id_column(sample: Sample) -> str:
    """The column that tells most rows apart and has one text for each name; else the text."""
    named: dict[str, int] = {}
    for column in sample.table.columns:
        texts = defaultdict(set)
        for row in sample.rows:
            texts[str(row.get(column))].add(tuple(str(row.get(c)) for c in sample.text))
        alone = all(len(group) == 1 for group in texts.values())
        if column not in (*sample.text, *sample.labels) and alone:
            named[column] = len(texts)
    named = {column: n for column, n in named.items() if n <= _ALIKE * len(sample.rows)}
    text = sample.text[0] if sample.text else "COLUMN"
    return max(named, key=lambda column: named[column], default=text)


def _guessed(sample: Sample) -> str:
    if sample.separator is None and sample.writing in (" ", "/"):
        name = {" ": "blanks", "/": "slashes"}[sample.writing]
        return f"tags are cut at {name}, since the pieces come again and again as tags do"
    return ""


def _placeholders(sample: Sample) -> str:
    found = [name for name in sample.names if name.lower() in _PLACEHOLDERS]
    return f"{found[0]!r} is read as a label; leave such cells empty" if found else ""


def _mojibake(sample: Sample) -> str:
    for row in sample.rows:
        for column in (*sample.text, *sample.labels):
            found = _MOJIBAKE.search(str(row.get(column)))
            if found:
                return f"{found[0]!r} in {column!r}: text that was once read in a wrong encoding"
    return ""


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:39]}…")
