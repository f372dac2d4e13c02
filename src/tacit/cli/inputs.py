"""What a command reads: rows in whatever form the user has them, and a model file.

Rows come from a table (CSV, JSON, Parquet, Excel), a file or folder of matrices (XMLRepo text,
svmlight, ARFF, npz), or a data set by name. A model file remembers the columns it was made from.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from tacit import datasets, saved
from tacit.cli.columns import TableColumns
from tacit.cli.output import note
from tacit.datasets import Dataset, Reading
from tacit.datasets.tables.files import SUFFIXES
from tacit.estimators import MultiLabelEstimator
from tacit.labels import Labels

__all__ = [
    "Fitted",
    "InputRows",
    "check_rows",
    "in_labels_of",
    "is_table",
    "read_rows",
    "refuse_model",
    "vectorised",
]

_FEW_ROWS = 1000  # fewer than this, and a word that occurs once may be all that tells a label
_TABLES = tuple(f".{ending}" for ending in SUFFIXES)
_MODEL = ".tacit"
_ALIKE = 0.75  # of the letters of a name: another file was meant
_READERS: dict[str, Callable[..., Dataset]] = {
    ".arff": datasets.read_arff,
    ".txt": datasets.read_xmlrepo,
    ".svm": datasets.read_svmlight,
    ".svmlight": datasets.read_svmlight,
    ".libsvm": datasets.read_svmlight,
}


@dataclass(frozen=True)
class InputRows:
    """Rows to learn from or to label: text or features, what was said of them, their names."""

    name: str
    X: list[str] | np.ndarray | sp.csr_array
    Y: Labels | None
    ids: Sequence[Any]
    reading: Reading | None = None  # of a table: what was understood of it
    Y_train: Labels | None = None  # of a data set whose test rows these are
    seen: bool = False  # a data set without test rows: a model may have been trained on these
    kept: dict[str, list[str]] = field(default_factory=dict)  # columns to carry along, by name

    def __len__(self) -> int:
        return len(self.ids)

    def said(self) -> Labels:
        """The labels, where they were asked for."""
        assert self.Y is not None
        return self.Y

    def shown(self, row: int) -> dict[str, str]:
        """The cells of a row that are to be carried along."""
        return {name: cells[row] for name, cells in self.kept.items()}


def read_rows(
    data: str,
    columns: TableColumns,
    *,
    part: Literal["train", "test"],
    labels: bool = True,
    model: Fitted | None = None,
) -> InputRows:
    """Read a table, a file or folder of matrices, or a data set by name.

    Parameters
    ----------
    data : str
        A path, or the name of a data set.
    columns : TableColumns
        Which columns of a table to read.
    part : {"train", "test"}
        Which rows of a data set that has both.
    labels : bool, default=True
        Whether the column of tags of a table is read.
    model : Fitted, default=None
        The model the rows are for: svmlight text does not say how wide its matrices are.
    """
    path = Path(data)
    suffix = _suffix(path)
    if is_table(data, columns.format):
        rows = _read_table(path, columns, labels, model)
    else:
        dataset = _read_dataset(path, suffix, model)
        if columns.text or columns.features or columns.id or columns.show:
            column = (*columns.text, *columns.features, *columns.show, columns.id)[0]
            raise ValueError(
                f"{data} is not a table, so it has no column {column!r}; "
                f"give a file that ends in {', '.join(_TABLES)}"
            )
        rows = _rows_of(dataset, part)
        _check_finite(rows.X, rows.name, ())
    if not len(rows):
        raise ValueError(f"{data} has no rows; give at least one")
    return rows


def is_table(data: str, format: str | None = None) -> bool:
    """Whether this is named as a table is, or said to be one."""
    return format is not None or _suffix(Path(data)) in _TABLES


@dataclass(frozen=True)
class Fitted:
    """A model file, opened: the steps of its pipeline, or the model alone, and the columns."""

    path: Path
    steps: tuple[Any, ...]
    columns: TableColumns

    @classmethod
    def open(cls, path: Path, data: str) -> Fitted:
        """The model at `path`, which is to be used on `data`."""
        if _suffix(Path(data)) == _MODEL and _suffix(path) != _MODEL:
            raise ValueError(f"the model comes first, then the rows; did you mean {data} {path}?")
        _check_there(path)
        loaded = saved.load(path)
        columns = TableColumns.from_extra(saved.read_extra(path))
        steps = [step for _, step in loaded.steps] if isinstance(loaded, Pipeline) else [loaded]
        return cls(path, tuple(steps), columns)

    @property
    def estimator(self) -> MultiLabelEstimator:
        return self.steps[-1]

    @property
    def reads_text(self) -> bool:
        return isinstance(self.steps[0], TfidfVectorizer)

    @property
    def n_features(self) -> int | None:
        """How many numbers a row has, before any step; None where it is text."""
        return None if self.reads_text else self.steps[0].n_features_in_

    def features(self, rows: InputRows) -> np.ndarray | sp.csr_array:
        """The features of the rows, as the estimator was trained on."""
        are_text = isinstance(rows.X, list)
        if are_text and not self.reads_text:
            raise ValueError(f"{self.path} was trained on features, not on text; use --features")
        if not are_text and self.reads_text:
            raise ValueError(f"{self.path} was trained on text; name its column with --text")
        X: Any = rows.X
        if self.n_features is not None and X.shape[1] != self.n_features:
            kept = f" ({', '.join(self.columns.features)})" if self.columns.features else ""
            raise ValueError(
                f"{self.path} was trained on rows of {self.n_features:,} numbers{kept}; those of "
                f"{rows.name} have {X.shape[1]:,}: give as many, in the same order"
            )
        for step in self.steps[:-1]:
            X = step.transform(X)
        return X

    def feature_names(self) -> list[str]:
        """What the features of the estimator are called: words, or columns, or numbers."""
        n, own = self.estimator.n_features_in_, self.columns.features
        if len(self.steps) == 1 and len(own) == n:
            return list(own)
        if len(self.steps) == 2 and self.reads_text:
            return self.steps[0].get_feature_names_out().tolist()
        return [f"feature {j}" for j in range(n)]

    def names(self) -> list[str]:
        return [str(name) for name in self.estimator.classes_]


def vectorised(texts: list[str], name: str) -> tuple[TfidfVectorizer, Any]:
    """Texts as counts of their words (TF-IDF), and what counts those of more texts alike."""
    min_df = 1 if len(texts) < _FEW_ROWS else 2
    vectoriser = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, min_df=min_df)
    try:
        return vectoriser, vectoriser.fit_transform(texts)
    except ValueError as error:  # an empty vocabulary
        raise ValueError(f"the text of {name} cannot be learnt from: {error}") from None


def in_labels_of(model: Fitted, rows: InputRows) -> InputRows:
    """The rows with their labels in the model's order; those that it does not know are left out."""
    names, Y = model.names(), rows.said()
    if Y.classes is None:
        if Y.n_labels != len(names):
            raise ValueError(
                f"{rows.name} has {Y.n_labels:,} labels without names, and {model.path} has "
                f"{len(names):,}; give rows with the labels that it was trained on"
            )
        return rows
    known = set(names)
    unknown = [str(name) for name in Y.classes if str(name) not in known]
    if len(unknown) == Y.n_labels:
        raise ValueError(
            f"none of the {len(unknown):,} labels of {rows.name}, {unknown[0]!r} first, is known "
            f"to {model.path}; is --labels the right column, and --separator right?"
        )
    if unknown:
        several = f"{len(unknown):,} labels" if len(unknown) > 1 else "1 label"
        note(f"{several} of {rows.name} unknown to the model and ignored, {unknown[0]!r} first")
    Y_train = None if rows.Y_train is None else _renumbered(rows.Y_train, names)
    return replace(rows, Y=_renumbered(Y, names), Y_train=Y_train)


def _renumbered(Y: Labels, names: list[str]) -> Labels:
    """Y over the labels `names` alone, in their order."""
    place = {name: j for j, name in enumerate(names)}
    assert Y.classes is not None
    pairs = [(i, place[str(name)]) for i, name in enumerate(Y.classes) if str(name) in place]
    old, new = np.array(pairs).T
    moves = sp.csr_array((np.ones(len(old), np.int8), (old, new)), shape=(Y.n_labels, len(names)))

    def moved(pattern: sp.csr_array | None) -> Any:
        if pattern is None:
            return None
        found = sp.csr_array(pattern.astype(np.int8) @ moves).astype(bool)
        found.sort_indices()
        return found

    yes, observed, noes = moved(Y.positives), moved(Y.observed), moved(Y.noes)
    return Labels(Y.kind, yes, observed, np.array(names), noes)


def _read_table(path: Path, columns: TableColumns, labels: bool, model: Fitted | None) -> InputRows:
    check_rows(path)
    if bool(columns.text) == bool(columns.features):
        more = ", not both" if columns.text else f"; tacit look {path} shows them"
        raise ValueError(
            f"which columns of {path.name} are to be read? Give --text COLUMN or "
            f"--features COLUMN{more}"
        )
    remembered = None if model is None else model.columns.id
    if (
        remembered is not None
        and columns.id == remembered not in columns.rows_of(path, labels).columns
    ):
        note(f"{path.name} has no column {remembered!r}, so its rows are numbered")
        columns = replace(columns, id=None)
    table = columns.read(path, labels)
    X = table.text if table.X is None else table.X
    assert X is not None
    if isinstance(X, np.ndarray):
        _check_finite(X, path.name, columns.features)
    if model is not None:  # `fit` and `look` tell all that was understood
        for sentence in (*table.reading.notes, *(doubt.what for doubt in table.reading.doubts)):
            note(f"{path.name}: {sentence}")
    ids = range(len(X)) if table.ids is None else table.ids
    return InputRows(path.name, X, table.Y, ids, table.reading, kept=table.kept)


def _check_finite(X: Any, name: str, columns: Sequence[str]) -> None:
    stored = sp.coo_array(X) if sp.issparse(X) else None
    wrong = ~np.isfinite(X if stored is None else stored.data)
    if not wrong.any():
        return
    rows, places = wrong.nonzero() if stored is None else (stored.row[wrong], stored.col[wrong])
    column = repr(columns[places[0]]) if columns else f"{places[0] + 1:,}"
    more = f" (and in {len(rows) - 1:,} cells more)" if len(rows) > 1 else ""
    raise ValueError(
        f"{name} has no number in row {rows[0] + 1:,}, column {column}{more}; fill it in or leave "
        "the row out"
    )


def _read_dataset(path: Path, suffix: str, model: Fitted | None) -> Dataset:
    if path.is_dir():
        return datasets.read_npz(path)
    refuse_model(str(path))
    if suffix in _READERS:
        _check_there(path)
        if suffix == ".txt":
            return _read_text(path)
        reader = _READERS[suffix]
        if reader is datasets.read_svmlight and model is not None:
            return reader(path, n_features=model.n_features, n_labels=len(model.names()))
        return reader(path)
    if path.is_file():
        raise ValueError(
            f"cannot tell the format of {path.name}; its name must end in "
            f"{', '.join((*_TABLES, *_READERS))}"
        )
    if suffix or len(path.parts) != 1:
        _check_there(path)
    return datasets.load(str(path))


def _read_text(path: Path) -> Dataset:
    try:
        return datasets.read_xmlrepo(path)
    except ValueError as error:
        raise ValueError(f"{error}; if it is a table, give --format csv") from None


def _rows_of(data: Dataset, part: str) -> InputRows:
    if part == "test" and data.X_test is not None:
        rows = data.X_test.shape[0]
        return InputRows(data.name, data.X_test, data.Y_test, range(rows), Y_train=data.Y)
    ids = range(data.X.shape[0]) if data.row_names is None else data.row_names.tolist()
    return InputRows(data.name, data.X, data.Y, ids, seen=part == "test")


def refuse_model(data: str) -> None:
    """Refuse a model where rows are to be given."""
    if _suffix(Path(data)) == _MODEL:
        raise ValueError(f"{data} is a model; give the rows, such as a table")


def check_rows(path: Path) -> None:
    """Refuse a file of rows that is not there, or is a model."""
    refuse_model(str(path))
    _check_there(path)


def _check_there(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder; give a file in it")
    there = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, there, n=1, cutoff=_ALIKE)
    more = f"; did you mean {path.parent / close[0]}?" if close else ""
    raise FileNotFoundError(f"there is no file {path}{more}")


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
