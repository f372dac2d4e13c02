"""Labels: every entry is *said yes*, *said no* or *unsaid*.

A 0/1 matrix decides silently that whatever was not said is false. Here the decision is explicit:

    ================ =================== ============================ ===========================
    kind             stored              an entry not stored means    constructor
    ================ =================== ============================ ===========================
    complete         positives           no                           `Labels.complete`
    masked           positives, observed no if observed, else unsaid  `Labels.masked`
    positive-only    positives, noes     unsaid                       `Labels.positive_only`
    ================ =================== ============================ ===========================

The patterns are matrices of their own, because a stored zero that stands for "said no" vanishes
under `eliminate_zeros`, comparisons and sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["DENSE_LIMIT", "Kind", "Labels", "TopK", "as_labels", "check_dense"]

Kind = Literal["complete", "masked", "positive-only"]

DENSE_LIMIT = 2**28
"""Most entries (n_samples × n_labels) any call lays out densely: 2 GiB in float64."""


class TopK(NamedTuple):
    """The k best labels of each row, best first: `indices` and `scores`, both (n_samples, k).

    Where a row has fewer than k labels to offer, the index is -1 and the score -inf.
    """

    indices: np.ndarray
    scores: np.ndarray


class Labels:
    """An immutable matrix of labels, each said yes, said no or unsaid.

    Use a constructor: `complete`, `masked`, `positive_only`, `from_array` or `from_sets`.

    Attributes
    ----------
    kind : {"complete", "masked", "positive-only"}
        What an entry that is not stored means.
    positives : scipy.sparse.csr_array of bool, shape (n_samples, n_labels)
        The entries said yes.
    observed : scipy.sparse.csr_array of bool, or None
        The entries said at all; only for masked labels, where it contains the positives.
    classes : ndarray of str, or None
        The names of the labels.
    noes : scipy.sparse.csr_array of bool, or None
        The entries said no; only for positive-only labels, and None where there are none.

    Examples
    --------
    >>> Y = Labels.from_sets([["gtk", "cli"], ["python"]])
    >>> Y
    Labels(positive-only, 2 × 3, 3 said yes)
    >>> Y.classes.tolist()
    ['cli', 'gtk', 'python']
    >>> Y[1:].to_array()
    array([[nan, nan,  1.]])
    """

    __slots__ = ("classes", "kind", "noes", "observed", "positives")

    kind: Kind
    positives: sp.csr_array
    observed: sp.csr_array | None
    classes: np.ndarray | None
    noes: sp.csr_array | None

    def __init__(
        self,
        kind: Kind,
        positives: sp.csr_array,
        observed: sp.csr_array | None = None,
        classes: np.ndarray | None = None,
        noes: sp.csr_array | None = None,
    ):
        """Trust the parts; the constructors below check theirs."""
        parts = (kind, positives, observed, classes, noes)
        for name, value in zip(("kind", "positives", "observed", "classes", "noes"), parts):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Labels cannot be changed; make a new one instead of setting {name}")

    def __reduce__(self) -> tuple:
        return Labels, (self.kind, self.positives, self.observed, self.classes, self.noes)

    @classmethod
    def complete(cls, Y: Any, *, classes: Sequence[str] | None = None) -> Labels:
        """Labels in which everything not said is a no. Y is 0/1, dense or sparse."""
        positives = _pattern(Y, "Y")
        return cls("complete", positives, None, _checked_classes(classes, Y, positives))

    @classmethod
    def masked(cls, Y: Any, observed: Any, *, classes: Sequence[str] | None = None) -> Labels:
        """Labels known only where `observed` is nonzero.

        Zeros of Y that are observed are a said no; what is not observed is unsaid.
        """
        positives, observed = _pattern(Y, "Y"), _pattern(observed, "observed")
        if positives.shape != observed.shape:
            raise ValueError(
                f"observed has shape {observed.shape} but Y has shape {positives.shape}; "
                "give both one entry for each row and label"
            )
        outside = positives.nnz - positives.multiply(observed).nnz
        if outside:
            raise ValueError(
                f"observed misses {outside} entries that Y says yes to; an entry said yes is "
                "observed, so add them to observed or remove them from Y"
            )
        if not observed.nnz:
            raise ValueError("observed has no entry, so nothing can be learnt; give at least one")
        return cls("masked", positives, observed, _checked_classes(classes, Y, positives))

    @classmethod
    def positive_only(
        cls, Y: Any, *, no: Any = None, classes: Sequence[str] | None = None
    ) -> Labels:
        """Labels in which silence means nothing: the ones of Y are a yes, those of `no` a no.

        A no is an entry that somebody looked at and denied, as people do who review proposals. It
        is never proposed again, and the methods that can tell it from silence learn from it.

        Examples
        --------
        >>> Y = Labels.positive_only([[1, 0, 0], [0, 1, 0]], no=[[0, 1, 0], [0, 0, 0]])
        >>> Y
        Labels(positive-only, 2 × 3, 2 said yes, 1 said no)
        >>> Y.to_array()
        array([[ 1.,  0., nan],
               [nan,  1., nan]])
        """
        positives = _pattern(Y, "Y")
        if not positives.nnz:
            raise ValueError("Y says yes to no entry, so nothing can be learnt; give at least one")
        names, noes = _checked_classes(classes, Y, positives), _checked_noes(no, Y, positives)
        return cls("positive-only", positives, None, names, noes)

    @classmethod
    def from_array(cls, A: Any, *, classes: Sequence[str] | None = None) -> Labels:
        """Labels of a dense array or data frame of 0, 1 and NaN/None, where NaN is unsaid.

        Without any NaN the labels are complete. The columns of a frame name the labels.
        """
        if sp.issparse(A):
            return cls.complete(A, classes=classes)
        classes = _names_of(A) if classes is None else classes
        A = _numbers(A, "the array")
        unsaid = np.isnan(A)
        if not unsaid.any():
            return cls.complete(A, classes=classes)
        if unsaid.all():
            raise ValueError("every entry of the array is NaN (unsaid); give at least one 0 or 1")
        return cls.masked(np.where(unsaid, 0.0, A), ~unsaid, classes=classes)

    @classmethod
    def from_sets(
        cls,
        sets: Iterable[Iterable[str]],
        classes: Sequence[str] | None = None,
        *,
        kind: Literal["complete", "positive-only"] = "positive-only",
    ) -> Labels:
        """Labels of one collection of names a row.

        Parameters
        ----------
        sets : iterable of iterables of str
            What was said of each row. Naming a label twice is saying it once.
        classes : sequence of str, default=None
            All names, in order; None takes those that occur, sorted.
        kind : {"complete", "positive-only"}, default="positive-only"
            What it means that a name is not in a row's collection.
        """
        rows = []
        for i, names in enumerate(sets):
            if isinstance(names, str):
                raise ValueError(f"row {i} is the string {names!r}; give a collection of names")
            rows.append(list(names))
            if any(not isinstance(name, str) for name in rows[i]):
                raise ValueError(f"row {i} names a label that is not a string: {rows[i]!r}")
        known = sorted({name for names in rows for name in names}) if classes is None else classes
        index = {name: j for j, name in enumerate(known)}
        unknown = sorted({name for names in rows for name in names if name not in index})
        if unknown:
            raise ValueError(
                f"{len(unknown)} names are not in classes, {unknown[0]!r} first; "
                "add them to classes or leave classes out"
            )
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.fromiter((index[name] for names in rows for name in names), np.int64)
        Y = sp.csr_array(
            (np.ones(len(indices), np.int8), indices, indptr), shape=(len(rows), len(known))
        )
        Y.sum_duplicates()
        make = {"complete": cls.complete, "positive-only": cls.positive_only}
        if kind not in make:
            raise ValueError(f'kind must be "complete" or "positive-only"; got {kind!r}')
        Y.data[:] = 1
        return make[kind](Y, classes=known)

    @property
    def shape(self) -> tuple[int, int]:
        return self.positives.shape

    @property
    def n_samples(self) -> int:
        return self.shape[0]

    @property
    def n_labels(self) -> int:
        return self.shape[1]

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, rows: Any) -> Labels:
        """Some of the rows, by slice, integer array or boolean mask."""
        if isinstance(rows, tuple):
            rows, *rest = rows
            if len(rest) != 1 or rest[0] is not ...:  # scikit-learn asks for Y[rows, ...]
                raise IndexError("Labels slice by rows alone: use Y[rows]")
        if isinstance(rows, int | np.integer):
            rows = [rows]
        of = lambda pattern: None if pattern is None else pattern[rows]
        parts = (of(self.positives), of(self.observed), self.classes, of(self.noes))
        return Labels(self.kind, *parts)

    def as_complete(self) -> Labels:
        """The same positives, with everything else declared a no."""
        return Labels("complete", self.positives, None, self.classes)

    def as_positive_only(self) -> Labels:
        """The same positives, with everything else declared unsaid.

        Labels that are positive-only already keep their noes.
        """
        return Labels("positive-only", self.positives, None, self.classes, self.noes)

    def said(self) -> sp.csr_array | None:
        """The pattern of entries that were said, yes or no; None where that is all of them."""
        if self.kind != "positive-only":
            return self.observed
        return self.positives if self.noes is None else sp.csr_array(self.positives + self.noes)

    def to_sparse(self) -> sp.csr_array:
        """The positives as ones in a CSR array of int8."""
        return self.positives.astype(np.int8)

    def to_array(self) -> np.ndarray:
        """A dense array of 1, 0 and NaN where unsaid."""
        check_dense(self.shape, "Labels.to_array", "to_sparse(), positives and said()")
        if self.kind == "complete":
            return self.positives.toarray().astype(np.float64)
        A = np.full(self.shape, np.nan)
        for pattern, value in ((self.observed, 0.0), (self.noes, 0.0), (self.positives, 1.0)):
            if pattern is not None:
                A[pattern.nonzero()] = value
        return A

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.to_array().astype(dtype or np.float64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return (
            self.kind == other.kind
            and self.shape == other.shape
            and _same_pattern(self.positives, other.positives)
            and _same_pattern(self.observed, other.observed)
            and _same_pattern(_some(self.noes), _some(other.noes))
            and np.array_equal(np.asarray(self.classes), np.asarray(other.classes))
        )

    __hash__ = None  # type: ignore[assignment]

    def summary(self) -> str:
        """What a person wants to see first: size, how much was said, and the commonest labels."""
        return "\n".join(f"{name:<22}{value}" for name, value in self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        n, n_labels = self.shape
        entries = max(n * n_labels, 1)
        per_row = np.diff(self.positives.indptr)
        per_label = np.bincount(self.positives.indices, minlength=n_labels)
        said = self.said()
        n_said = entries if said is None else said.nnz
        commonest = np.argsort(-per_label, kind="stable")[:5]
        names = np.arange(n_labels) if self.classes is None else self.classes
        return [
            ("kind", f"{self.kind} ({_MEANING[self.kind]})"),
            ("rows × labels", f"{n:,} × {n_labels:,}"),
            ("said yes", f"{self.positives.nnz:,} ({self.positives.nnz / entries:.3%})"),
            ("said no", f"{n_said - self.positives.nnz:,}"),
            ("unsaid", f"{entries - n_said:,} ({(entries - n_said) / entries:.1%})"),
            (
                "yes per row",
                f"mean {per_row.mean() if n else 0:.2f}, "
                f"median {np.median(per_row) if n else 0:g}, "
                f"max {per_row.max(initial=0)}; {(per_row == 0).sum():,} rows have none",
            ),
            (
                "yes per label",
                f"mean {per_label.mean() if n_labels else 0:.1f}, "
                f"median {np.median(per_label) if n_labels else 0:g}, "
                f"max {per_label.max(initial=0):,}; {(per_label == 0).sum():,} labels have none",
            ),
            ("commonest", ", ".join(f"{names[j]} ({per_label[j]:,})" for j in commonest)),
        ]

    def __repr__(self) -> str:
        n, n_labels = self.shape
        known = "" if self.observed is None else f" of {self.observed.nnz:,} observed"
        denied = "" if self.noes is None else f", {self.noes.nnz:,} said no"
        said = f"{self.positives.nnz:,}{known} said yes{denied}"
        return f"Labels({self.kind}, {n:,} × {n_labels:,}, {said})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        return f"<table><caption>Labels</caption>{rows}</table>"


_MEANING = {
    "complete": "what was not said is no",
    "masked": "what was not observed is unknown",
    "positive-only": "silence means nothing",
}


def as_labels(Y: Any, kind: Kind = "complete") -> Labels:
    """Y itself if it is Labels; else Y read under `kind`, or as masked where it has NaN."""
    if isinstance(Y, Labels):
        return Y
    labels = Labels.from_array(_two_dimensional(Y))
    if labels.kind == "complete" and kind == "positive-only":
        return labels.as_positive_only()
    return labels


def check_dense(shape: tuple[int, int], what: str, instead: str, limit: int | None = None) -> None:
    """Refuse to lay out more than `limit` entries (`DENSE_LIMIT`), and name what to use instead."""
    limit = DENSE_LIMIT if limit is None else limit
    if shape[0] * shape[1] > limit:
        raise ValueError(
            f"{what} would lay out {shape[0]:,} × {shape[1]:,} entries, more than the "
            f"{limit:,} allowed; use {instead}, or take fewer rows at a time"
        )


def _two_dimensional(Y: Any) -> Any:
    if sp.issparse(Y) or hasattr(Y, "columns"):
        return Y
    Y = np.asarray(Y)
    return Y.reshape(-1, 1) if Y.ndim == 1 else Y


def _pattern(Y: Any, name: str) -> sp.csr_array:
    """The canonical pattern of ones of a 0/1 matrix; anything else is one clear sentence."""
    if isinstance(Y, Labels):
        return Y.positives
    if not sp.issparse(Y):
        Y = _numbers(Y, name)
        if Y.ndim != 2:
            raise ValueError(f"{name} must have rows and columns; got {Y.ndim} dimension(s)")
    Y = sp.csr_array(Y)
    data = Y.data
    if not ((data == 0) | (data == 1)).all():
        wrong = data[(data != 0) & (data != 1)][0]
        advice = (
            "use Labels.from_array of a dense array for NaN, or Labels.masked"
            if np.isnan(wrong)
            else "give only those"
        )
        raise ValueError(f"{name} must hold 0 and 1; got {wrong!s}; {advice}")
    pattern = sp.csr_array((data != 0, Y.indices, Y.indptr), shape=Y.shape, copy=True)
    pattern.eliminate_zeros()  # in our own copy: the caller's matrix stays as it was
    pattern.sum_duplicates()
    return pattern


def _numbers(A: Any, name: str) -> np.ndarray:
    """A dense array or data frame as numbers, with None and pandas' NA as NaN."""
    try:
        if hasattr(A, "iloc"):  # pandas, whose NA means nothing to NumPy
            return A.to_numpy(dtype=np.float64, na_value=np.nan)
        A = A.to_numpy() if hasattr(A, "to_numpy") else np.asarray(A)
        if A.dtype.kind in "US":
            raise TypeError
        return A if A.dtype.kind in "biuf" else A.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} holds values that are not numbers; give 0, 1 and NaN, or use "
            "Labels.from_sets for names"
        ) from None


def _names_of(Y: Any) -> Any:
    """The names that Labels or the columns of a data frame bring along."""
    if isinstance(Y, Labels):
        return Y.classes
    return [str(c) for c in Y.columns] if hasattr(Y, "columns") else None


def _checked_classes(
    classes: Sequence[str] | None, Y: Any, positives: sp.csr_array
) -> np.ndarray | None:
    """The names given, or else those that come with Y."""
    classes = _names_of(Y) if classes is None else classes
    if classes is None:
        return None
    n_labels = positives.shape[1]
    names = np.asarray(classes, dtype=str)
    if names.ndim != 1 or len(names) != n_labels:
        raise ValueError(
            f"classes names {names.size} labels but Y has {n_labels} columns; give each its name"
        )
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) < len(names):
        raise ValueError(
            f"classes names {str(unique[counts > 1][0])!r} more than once; give each label "
            "a name of its own"
        )
    return names


def _checked_noes(no: Any, Y: Any, positives: sp.csr_array) -> sp.csr_array | None:
    """The pattern of the noes, which deny no yes; those that come with Y if none are given."""
    if no is None:
        return Y.noes if isinstance(Y, Labels) else None
    noes = _pattern(no, "no")
    if noes.shape != positives.shape:
        raise ValueError(
            f"no has shape {noes.shape} but Y has shape {positives.shape}; "
            "give both one entry for each row and label"
        )
    both = noes.multiply(positives).nnz
    if both:
        raise ValueError(
            f"no denies {both} entries that Y says yes to; take them from one of the two"
        )
    return _some(noes)


def _some(pattern: sp.csr_array | None) -> sp.csr_array | None:
    """The pattern, or None where it has no entry."""
    return pattern if pattern is not None and pattern.nnz else None


def _same_pattern(a: sp.csr_array | None, b: sp.csr_array | None) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)
