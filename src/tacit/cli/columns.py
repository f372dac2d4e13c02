"""What the user said of a table, here or in the fit: its columns, and how it is written."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, cast

from tacit import datasets
from tacit.cli.options import TableOptions
from tacit.datasets import Reading
from tacit.datasets.tables.files import open_table
from tacit.datasets.tables.opentable import OpenTable
from tacit.datasets.tables.tags import POSSIBLE, spelt

__all__ = ["ANSWER", "TableColumns"]

ANSWER = ("row", "has", "label", "probability", "why")
"""The columns of what `tacit complete` and `tacit predict` write."""

_LISTS = ("text", "features", "labels")
_KEPT = (*_LISTS, "id", "separator", "case", "noes")  # in a model file


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table hold what, and how it is written, as far as the user said."""

    text: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    labels: tuple[str, ...] = ("tags",)
    id: str | None = None
    separator: str | None = None
    case: str | None = None
    noes: str = "none"
    delimiter: str | None = None
    encoding: str | None = None
    format: str | None = None
    show: tuple[str, ...] = ()  # carried along to the answer

    def given(self, options: TableOptions, show: Iterable[str] | None = None) -> Self:
        """These columns, save where the user names others."""
        said: dict[str, Any] = {name: value for name, value in asdict(options).items() if value}
        if "separator" in said:
            said["separator"] = spelt(said["separator"])
        named = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
        own = tuple(dict.fromkeys(show or ()))
        for name in own:
            if name in ANSWER:
                raise ValueError(f"--show {name}: the answer has a column {name} of its own")
        return replace(self, show=own, **cast(dict[str, Any], named))

    def as_read(self, reading: Reading | None) -> Self:
        """What to read more tables by: what was found out in this one is now settled."""
        if reading is None:
            return self
        labels = tuple(reading.columns["labels"]) or self.labels
        # Of blanks and slashes a few rows cannot tell whether they stand between tags.
        found = reading.separator if reading.separator in tuple(POSSIBLE) else None
        return replace(self, labels=labels, separator=self.separator or found)

    def as_extra(self) -> dict[str, Any]:
        """What a model file keeps; how one file was written says nothing of the next."""
        return {"columns": {name: value for name, value in asdict(self).items() if name in _KEPT}}

    @classmethod
    def from_extra(cls, extra: dict[str, Any]) -> TableColumns:
        """What a model file kept; a hostile one cannot smuggle in anything but names."""
        kept = extra.get("columns", {})
        said = {k: v for k, v in kept.items() if k in _KEPT} if isinstance(kept, dict) else None
        if said is not None and isinstance(said.get("labels"), str):
            said["labels"] = [said["labels"]]  # one column, as version 0.1.0 wrote it
        if said is None or not all(
            _are_names(said.get(name, [])) if name in _LISTS else _are_names([said[name] or ""])
            for name in {*said, *_LISTS}
        ):
            raise ValueError(f"the model file keeps columns that are not names: {kept!r}")
        names: dict[str, Any] = {k: tuple(v) if k in _LISTS else v for k, v in said.items()}
        return cls(**names)

    def rows_of(self, path: Path, labels: bool = True) -> OpenTable:
        """The table, open, with all its columns."""
        wanted = [*self.text, *self.features, *(self.labels if labels else ())]
        return open_table(
            path, wanted, self.delimiter, self.encoding, self.format, every_column=True
        )

    def read(self, path: Path, labels: bool = True) -> datasets.Table:
        """The table; its doubts are for the command to tell."""
        with warnings.catch_warnings(action="ignore", category=datasets.ReadingWarning):
            return datasets.read_table(
                path,
                labels=self.labels if labels else None,
                text=self.text,
                features=self.features,
                id=self.id,
                separator=self.separator,
                delimiter=self.delimiter,
                encoding=self.encoding,
                format=self.format,
                case=cast(Any, self.case),
                noes=cast(Any, self.noes),
                keep=self.show,
            )


def _are_names(names: Iterable[Any]) -> bool:
    return isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
