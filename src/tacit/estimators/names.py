"""Labels as people have them: names, lists and sets of names, class numbers, or a matrix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np

from tacit.datasets.tables.tags import LIST, cut, found
from tacit.labels import Kind, Labels, as_labels

__all__ = ["labels_of", "places_of"]

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


def labels_of(Y: Any, kind: Kind, classes: Iterable[Any] | None = None) -> Labels:
    """Y as labels: names as they stand in each row, else what `as_labels` makes of a matrix.

    Parameters
    ----------
    Y : Labels, matrix, or a list, Series or array with what was said of each row
        That is a collection of names (or class numbers), a string that holds them (``"a|b"``), or
        the number of one class. Numbers 0 and 1 alone are a matrix.
    kind : {"complete", "positive-only", "masked"}
        How the method reads what was not said.
    classes : iterable, default=None
        The labels of a model that is there already, in its order; None takes those of Y.
    """
    cells = _cells(Y)
    rows = None if cells is None else _names(cells)
    if rows is None:
        return as_labels(Y, kind)
    names = set(chain.from_iterable(rows))
    known = _sorted(names) if classes is None else [str(name) for name in classes]
    return Labels.from_sets(rows, known, kind="complete" if kind == "complete" else "positive-only")


def places_of(labels: Any, classes: np.ndarray) -> np.ndarray:
    """The numbers of labels that are given by number or by name."""
    place = {str(name): j for j, name in enumerate(classes)}

    def found(label: Any) -> int:
        is_name = isinstance(label, str)
        j = place.get(label, -1) if is_name else label
        if not isinstance(j, Integral) or not 0 <= int(j) < len(classes):
            close = difflib.get_close_matches(label, place, n=1) if is_name else []
            more = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"the model knows no label {label!r}{more}")
        return int(j)

    return np.array([found(label) for label in np.atleast_1d(np.asarray(labels, object))], int)


def _cells(Y: Any) -> list[Any] | None:
    """What was said of each row, where Y has one cell a row."""
    if hasattr(Y, "columns"):  # a frame of one column, as in frame[["tags"]]
        column = Y.iloc[:, 0] if hasattr(Y, "iloc") else Y.to_series() if Y.width == 1 else None
        return None if column is None or Y.shape[1] != 1 else _cells(column)
    if isinstance(Y, list | tuple):
        return list(Y)
    if getattr(Y, "ndim", None) == 1 or hasattr(Y, "to_list"):
        return Y.to_list() if hasattr(Y, "to_list") else Y.tolist()
    return None


def _names(cells: list[Any]) -> list[list[str]] | None:
    """The names in each cell; None where these are the numbers of a matrix."""
    said = [cell for cell in cells if not _is_missing(cell)]
    if not said:
        return None
    if all(isinstance(cell, str) for cell in said):
        writing = found(said)
        return [cut(cell, writing) for cell in cells]
    if all(isinstance(cell, _COLLECTIONS) for cell in said):
        return None if _is_matrix(said) else [cut(cell, LIST) for cell in cells]
    if all(isinstance(cell, Integral) for cell in said) and not _zeros_and_ones(said):
        return [cut(cell, LIST) for cell in cells]
    return None


def _is_matrix(rows: list[Any]) -> bool:
    """Whether rows are equally long and hold numbers of which no class number is made."""
    if any(isinstance(row, set | frozenset) for row in rows) or len(set(map(len, rows))) > 1:
        return False
    entries = list(chain.from_iterable(rows))
    if any(isinstance(entry, str) for entry in entries):
        return False
    whole = all(isinstance(entry, Integral) for entry in entries)
    return not whole or _zeros_and_ones(entries)


def _zeros_and_ones(numbers: Iterable[Any]) -> bool:
    return all(number in (0, 1) for number in numbers)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell))


def _sorted(names: set[str]) -> list[str]:
    """By number where all are numbers."""
    return sorted(names, key=int) if all(map(str.isdecimal, names)) else sorted(names)
