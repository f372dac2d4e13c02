"""ARFF with an XML list of the labels: the format of Mulan, dense and sparse.

    @relation name                            <labels xmlns="http://mulan.sourceforge.net/labels">
    @attribute 'a feature' numeric              <label name="a label"></label>
    @attribute 'a label' {0,1}                </labels>
    @data
    0.5,1         (a dense row)
    {0 0.5,1 1}   (the same row, sparse: what is left out is 0, or the first value of a nominal)

A nominal feature whose values are numbers beginning with 0 is that number; any other becomes one
0/1 column a value but the first, named "feature=value". A question mark is NaN in a feature
and *unsaid* in a label, which makes the labels masked.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy import sparse as sp

from tacit.basics.files import replacing
from tacit.datasets.dataset import Dataset
from tacit.datasets.textfiles import opened, stem
from tacit.labels import Labels, as_labels, check_dense

__all__ = ["read_arff", "write_arff"]

_NAMESPACE = "http://mulan.sourceforge.net/labels"

_QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE)
_CELL = re.compile(rf"\s*((?:\d+\s+)?(?:{_QUOTED})|[^,'\"]*?)\s*(?:,|$)")  # 1 or 'a' or 3 'a'


def read_arff(
    path: str | os.PathLike, labels: str | os.PathLike | Sequence[str] | None = None
) -> Dataset:
    """Read an ARFF file, gzipped if its name ends in .gz.

    Parameters
    ----------
    path : path-like
        The ARFF file. X comes dense if its rows are.
    labels : path-like or sequence of str, default=None
        The XML file that lists the labels, or their names; None takes the file of the same name
        with the suffix .xml.
    """
    path = Path(path)
    if labels is None:
        labels = path.with_name(stem(path) + ".xml")
    wanted = _read_xml(Path(labels)) if isinstance(labels, str | os.PathLike) else list(labels)
    with opened(path) as stream:
        return _Reader(path, wanted).read(_decoded(stream, path.name))


def write_arff(
    path: str | os.PathLike,
    X: Any,
    Y: Any,
    *,
    feature_names: Sequence[str] | np.ndarray | None = None,
) -> None:
    """Write X and Y as ARFF, sparse if X is, and the labels' names as XML beside it."""
    path, labels = Path(path), as_labels(Y)
    if labels.kind == "positive-only":
        raise ValueError(
            "Y is positive-only, and ARFF says yes, no or ? of every label; "
            "give Y.as_complete() to write no where nothing was said"
        )
    sparse = sp.issparse(X)
    X = sp.csr_array(X, dtype=np.float32) if sparse else np.asarray(X, dtype=np.float32)
    if X.shape[0] != len(labels):
        raise ValueError(f"X has {X.shape[0]:,} rows but Y has {len(labels):,}")
    features = [f"x{j}" for j in range(X.shape[1])] if feature_names is None else feature_names
    classes = labels.classes
    if classes is None:
        classes = np.array([f"y{j}" for j in range(labels.n_labels)], dtype=str)
    if len(features) != X.shape[1] or len({*features, *classes}) < len(features) + len(classes):
        raise ValueError(
            f"feature_names must be {X.shape[1]:,} different names, none of them a label's"
        )
    with (
        replacing(path) as beside,
        replacing(path.with_name(stem(path) + ".xml")) as beside_xml,
        opened(path, beside) as out,
    ):
        out.write(f"@relation {_quoted(stem(path))}\n\n".encode())
        out.writelines(f"@attribute {_quoted(name)} numeric\n".encode() for name in features)
        out.writelines(f"@attribute {_quoted(name)} {{0,1}}\n".encode() for name in classes)
        out.write(b"\n@data\n")
        for i in range(X.shape[0]):
            out.write((_sparse_row if sparse else _dense_row)(X, labels, i).encode())
        lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in classes)
        beside_xml.write_text(
            '<?xml version="1.0" encoding="utf-8"?>\n'
            f'<labels xmlns="{_NAMESPACE}">\n{lines}</labels>\n',
            encoding="utf-8",
        )


def _said(labels: Labels, i: int) -> list[str]:
    """The cells of row i: 1, 0 or ?."""
    cells = np.full(labels.n_labels, "0" if labels.observed is None else "?")
    for pattern, cell in [(labels.observed, "0"), (labels.positives, "1")]:
        if pattern is not None:
            cells[pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]] = cell
    return cells.tolist()


def _dense_row(X: np.ndarray, labels: Labels, i: int) -> str:
    return ",".join([*map(_number, X[i].tolist()), *_said(labels, i)]) + "\n"


def _sparse_row(X: sp.csr_array, labels: Labels, i: int) -> str:
    row, d = slice(X.indptr[i], X.indptr[i + 1]), X.shape[1]
    cells = [f"{j} {_number(v)}" for j, v in sorted(zip(X.indices[row], X.data[row].tolist()))]
    cells += [f"{d + j} {said}" for j, said in enumerate(_said(labels, i)) if said != "0"]
    return "{" + ",".join(cells) + "}\n"


def _number(value: float) -> str:
    return "?" if value != value else f"{value:.9g}"


def _quoted(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise ValueError(f"a name in ARFF must not hold a line's end; got {name!r}")
    if re.fullmatch(r"[\w.-]+", name):
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_xml(path: Path) -> list[str]:
    text = path.read_bytes()
    # A document type can declare entities that grow without bound; no list of labels needs one.
    # (The zero byte is there in UTF-16, which would hide it.)
    if b"<!DOCTYPE" in text or b"\0" in text:
        raise ValueError(f"{path.name} must be UTF-8 and declare no document type")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as e:
        raise ValueError(f"{path.name} is not XML: {e}") from None
    names = [label.get("name") for label in root.iter() if label.tag.split("}")[-1] == "label"]
    if not names or None in names:
        raise ValueError(f'{path.name} must list labels as <label name="…">; found {len(names)}')
    return [str(name) for name in names]


def _decoded(stream: Any, name: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            line = raw.decode("latin-1").strip()  # ARFF names no encoding; old files are latin-1
        if line and not line.startswith("%"):
            yield number, line


@dataclass
class _Attribute:
    name: str
    values: list[str]  # of a nominal, else none
    label: int | None = None  # its column of Y
    column: int = 0  # its first column of X
    numeric: bool = True  # or a nominal whose values are numbers beginning with 0

    def __post_init__(self) -> None:
        numbers = [_float(value) for value in self.values]
        self.numeric = not numbers or (numbers[0] == 0 and not np.isnan(numbers).any())

    def columns(self) -> list[str]:
        """The names of its columns of X."""
        if self.numeric:
            return [self.name]
        return [f"{self.name}={value}" for value in self.values[1:]]


_LARGEST = 2.0**128 - 2.0**103  # half a unit above the largest float32: from here on, infinity


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


class _Reader:
    """One pass over the lines of a file."""

    def __init__(self, path: Path, wanted: list[str]):
        self.path, self.wanted = path, wanted
        self.attributes: list[_Attribute] = []
        self.x = array("q"), array("q"), array("f")  # row, column, value
        self.yes = array("q"), array("q")
        self.unsaid = array("q"), array("q")

    def fail(self, line: int, message: str) -> ValueError:
        return ValueError(f"{self.path.name}, line {line}: {message}")

    def read(self, lines: Iterator[tuple[int, str]]) -> Dataset:
        n = 0
        dense = False
        self._read_header(lines)
        for n, (number, line) in enumerate(lines, 1):
            if line.startswith("{"):
                self._sparse_row(n - 1, number, line)
            else:
                dense = True
                self._dense_row(n - 1, number, line)
        features = [name for a in self.attributes if a.label is None for name in a.columns()]
        row, column, value = self.x
        X = sp.csr_array((np.array(value), (row, column)), shape=(n, len(features)))
        X.eliminate_zeros()
        given = [a for a in self.attributes if a.label is not None]
        shape, classes = (n, len(given)), [a.name for a in given]
        yes = sp.csr_array((np.ones(len(self.yes[0]), np.bool_), self.yes), shape=shape)
        if self.unsaid[0]:
            check_dense(shape, f"{self.path.name} with its ? labels", "write_npz")
            observed = np.ones(shape, np.bool_)
            observed[np.array(self.unsaid[0]), np.array(self.unsaid[1])] = False
            labels = Labels.masked(yes, observed, classes=classes)
        else:
            labels = Labels.complete(yes, classes=classes)
        return Dataset(
            stem(self.path),
            X.toarray() if dense else X,
            labels,
            feature_names=np.array(features, dtype=str),
        )

    def _read_header(self, lines: Iterator[tuple[int, str]]) -> None:
        wanted, number, column, labels = set(self.wanted), 0, 0, 0
        for number, line in lines:
            keyword = line.split(None, 1)[0].lower()
            if keyword == "@data":
                missing = wanted - {a.name for a in self.attributes}
                if missing:
                    raise ValueError(
                        f"{self.path.name} has no attribute {min(missing)!r}, which the list of "
                        f"labels names ({len(missing)} of {len(wanted)} are missing)"
                    )
                return
            if keyword == "@relation":
                continue
            match = _ATTRIBUTE.fullmatch(line)
            if match is None:
                raise self.fail(
                    number, f"expected @attribute NAME TYPE or @data; got {line[:40]!r}"
                )
            attribute = _Attribute(_unquoted(match[1]), self._values(number, match[2]))
            if attribute.name in wanted:
                # A sparse row leaves out the first value, so that must be the no.
                if attribute.values not in ([], ["0", "1"], ["0"]):
                    raise self.fail(
                        number,
                        f"expected {{0,1}} of the label {attribute.name!r}; got {match[2][:40]!r}",
                    )
                attribute.label, labels = labels, labels + 1
            else:
                attribute.column, column = column, column + len(attribute.columns())
            self.attributes.append(attribute)
        raise self.fail(number, "expected @data; got the end of the file")

    def _values(self, number: int, kind: str) -> list[str]:
        if kind.lower() in ("numeric", "real", "integer"):
            return []
        if kind.startswith("{") and kind.endswith("}"):
            return [_unquoted(v) for v in self._cells(number, kind[1:-1])]
        raise self.fail(number, f"expected numeric, real, integer or {{a,b,…}}; got {kind[:40]!r}")

    def _cells(self, number: int, text: str) -> list[str]:
        if "'" not in text and '"' not in text:
            return [cell.strip() for cell in text.split(",")]
        cells, at = [], 0
        while at <= len(text):
            match = _CELL.match(text, at)
            if match is None:
                raise self.fail(
                    number, f"expected a comma or a closing quote; got {text[at:][:40]!r}"
                )
            cells.append(match[1])
            at = match.end() + (match.end() == len(text) and not match[0].endswith(","))
        return cells

    def _dense_row(self, row: int, number: int, line: str) -> None:
        cells = self._cells(number, line)
        if len(cells) != len(self.attributes):
            raise self.fail(number, f"expected {len(self.attributes):,} values; got {len(cells):,}")
        for attribute, cell in zip(self.attributes, cells):
            if cell != "0" or not attribute.numeric:
                self._put(row, number, attribute, cell)

    def _sparse_row(self, row: int, number: int, line: str) -> None:
        if not line.endswith("}"):
            raise self.fail(number, f"expected a row that ends with }}; got {line[-20:]!r}")
        seen = set()
        for cell in self._cells(number, line[1:-1]) if line[1:-1].strip() else []:
            index, _, value = cell.partition(" ")
            if not (index.isdecimal() and int(index) < len(self.attributes) and value):
                raise self.fail(
                    number,
                    f"expected an attribute below {len(self.attributes):,} and its value, as 3 1; "
                    f"got {cell[:40]!r}",
                )
            if index in seen:
                raise self.fail(number, f"expected each attribute once; got {index} twice")
            seen.add(index)
            self._put(row, number, self.attributes[int(index)], value.strip())

    def _put(self, row: int, number: int, attribute: _Attribute, cell: str) -> None:
        cell = _unquoted(cell)
        if attribute.label is not None:
            if cell not in ("0", "1", "?"):
                raise self.fail(
                    number, f"expected 0, 1 or ? for the label {attribute.name!r}; got {cell!r}"
                )
            if cell != "0":
                rows, columns = self.yes if cell == "1" else self.unsaid
                rows.append(row)
                columns.append(attribute.label)
            return
        column, value = attribute.column, 1.0
        if cell == "?":
            value = np.nan
        elif attribute.numeric:
            value = _float(cell)
            if not abs(value) < _LARGEST:
                raise self.fail(
                    number,
                    f"expected a number that float32 can hold for {attribute.name!r}; "
                    f"got {cell[:40]!r}",
                )
        else:
            values = attribute.values
            if cell not in values:
                raise self.fail(
                    number,
                    f"expected one of {values[:5]} for {attribute.name!r}; got {cell[:40]!r}",
                )
            if cell == values[0]:
                return
            column += values.index(cell) - 1
        self.x[0].append(row)
        self.x[1].append(column)
        self.x[2].append(value)
