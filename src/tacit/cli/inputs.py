"""What a command reads: rows in whatever form the user has them, and a model file.

Rows come from a table (CSV, TSV, JSON lines, Parquet), a file or folder of matrices (XMLRepo text,
svmlight, ARFF, npz), or a data set by name. A model file remembers the columns it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from tacit import datasets, saved
from tacit.cli.output import note
from tacit.datasets import Dataset
from tacit.estimators import MultiLabelEstimator
from tacit.labels import Labels

__all__ = [
    "Fitted",
    "InputRows",
    "TableColumns",
    "in_labels_of",
    "is_table",
    "read_rows",
    "vectorised",
]

_FEW_ROWS = 1000  # fewer than this, and a word that occurs once may be all that tells a label
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_READERS: dict[str, Callable[..., Dataset]] = {
    ".arff": datasets.read_arff,
    ".txt": datasets.read_xmlrepo,
    ".svm": datasets.read_svmlight,
    ".svmlight": datasets.read_svmlight,
    ".libsvm": datasets.read_svmlight,
}


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table hold what."""

    text: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    labels: str = "tags"
    separator: str | None = None

    def given(
        self,
        text: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        labels: str | None = None,
        separator: str | None = None,
    ) -> Self:
        """These columns, save where the user names others."""
        changed: dict[str, Any] = {
            "text": tuple(text or ()),
            "features": tuple(features or ()),
            "labels": labels,
            "separator": separator,
        }
        return replace(self, **{name: value for name, value in changed.items() if value})

    def as_extra(self) -> dict[str, Any]:
        """What a model file keeps."""
        return {"columns": asdict(self)}

    @classmethod
    def from_extra(cls, extra: dict[str, Any]) -> TableColumns:
        """What a model file kept; a hostile one cannot smuggle in anything but names."""
        kept = extra.get("columns", {})
        try:
            lists = {name: tuple(kept.get(name, ())) for name in ("text", "features")}
            columns = cls(
                **lists, labels=kept.get("labels", "tags"), separator=kept.get("separator")
            )
        except (AttributeError, TypeError):
            columns = None
        if columns is None or not all(
            isinstance(name, str)
            for name in (*columns.text, *columns.features, columns.labels, columns.separator or "")
        ):
            raise ValueError(f"the model file keeps columns that are not names: {kept!r}")
        return columns


@dataclass(frozen=True)
class InputRows:
    """Rows to learn from or to label: text or features, what was said of them, their names."""

    name: str
    X: list[str] | np.ndarray | sp.csr_array
    Y: Labels | None
    ids: Sequence[Any]
    Y_train: Labels | None = None  # of a data set whose test rows these are
    seen: bool = False  # a data set without test rows: a model may have been trained on these

    def __len__(self) -> int:
        return len(self.ids)

    def said(self) -> Labels:
        """The labels, where they were asked for."""
        assert self.Y is not None
        return self.Y


def read_rows(
    data: str,
    columns: TableColumns,
    *,
    part: Literal["train", "test"],
    labels: bool = True,
    id: str | None = None,
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
    id : str, default=None
        The column of a table that names the rows.
    model : Fitted, default=None
        The model the rows are for: svmlight text does not say how wide its matrices are.
    """
    path = Path(data)
    suffix = _suffix(path)
    if is_table(data):
        rows = _read_table(path, columns, labels, id)
    else:
        dataset = _read_dataset(path, suffix, model)
        if columns.text or columns.features or id:
            column = (*columns.text, *columns.features, id)[0]
            raise ValueError(
                f"{data} is not a table, so it has no column {column!r}; "
                f"give a file that ends in {', '.join(_TABLES)}"
            )
        rows = _rows_of(dataset, part)
    if not len(rows):
        raise ValueError(f"{data} has no rows; give at least one")
    return rows


def is_table(data: str) -> bool:
    """Whether this is named as a table is."""
    return _suffix(Path(data)) in _TABLES


@dataclass(frozen=True)
class Fitted:
    """A model file, opened: the steps of its pipeline, or the model alone, and the columns."""

    path: Path
    steps: tuple[Any, ...]
    columns: TableColumns

    @classmethod
    def open(cls, path: Path) -> Fitted:
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
        for step in self.steps[:-1]:
            X = step.transform(X)
        return X

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


def _read_table(path: Path, columns: TableColumns, labels: bool, id: str | None) -> InputRows:
    _check_there(path)
    if bool(columns.text) == bool(columns.features):
        raise ValueError(
            f"which columns of {path.name} are to be read? Give --text COLUMN or "
            f"--features COLUMN{', not both' if columns.text else ''}"
        )
    table = datasets.read_table(
        path,
        labels=columns.labels if labels else None,
        text=columns.text,
        features=columns.features,
        id=id,
        separator=columns.separator,
    )
    X = table.text if table.X is None else table.X
    assert X is not None
    if isinstance(X, np.ndarray):
        wrong = np.argwhere(~np.isfinite(X))
        if len(wrong):
            row, column = wrong[0]
            more = f" (and {len(wrong) - 1:,} cells more)" if len(wrong) > 1 else ""
            raise ValueError(
                f"{path.name} has no finite number in row {row}, counted from 0, column "
                f"{columns.features[column]!r}{more}; fill it in or leave the row out"
            )
    return InputRows(path.name, X, table.Y, range(len(X)) if table.ids is None else table.ids)


def _read_dataset(path: Path, suffix: str, model: Fitted | None) -> Dataset:
    if path.is_dir():
        return datasets.read_npz(path)
    if suffix in _READERS:
        _check_there(path)
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


def _rows_of(data: Dataset, part: str) -> InputRows:
    if part == "test" and data.X_test is not None:
        rows = data.X_test.shape[0]
        return InputRows(data.name, data.X_test, data.Y_test, range(rows), Y_train=data.Y)
    ids = range(data.X.shape[0]) if data.row_names is None else data.row_names.tolist()
    return InputRows(data.name, data.X, data.Y, ids, seen=part == "test")


def _check_there(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
