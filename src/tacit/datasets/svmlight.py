"""Multi-label svmlight (LIBSVM) text: "l1,l2 f:v f:v … # comment", without a header."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from scipy import sparse as sp

from tacit.basics.files import replacing
from tacit.datasets.dataset import Dataset
from tacit.datasets.textfiles import opened, stem
from tacit.datasets.xmlrepo import checked_pair, row_lines
from tacit.labels import Labels

__all__ = ["read_svmlight", "write_svmlight"]


def read_svmlight(
    path: str | os.PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> Dataset:
    """Read a multi-label svmlight file, gzipped if its name ends in .gz.

    Empty lines and comments are skipped. A line of nothing but a blank is a row with neither
    labels nor features, which is how `write_svmlight` writes one.

    Parameters
    ----------
    path : path-like
        The file.
    n_features, n_labels : int, default=None
        The widths of X and Y; None takes the largest index there. Give both to read a test file.
    zero_based : bool or "auto", default="auto"
        Whether features are numbered from 0 or from 1; "auto" says 0 if a feature 0 occurs.
        Labels are always numbered from 0.
    """
    from tacit.datasets.rowparser import MAX_INDEX, RowParser

    path = Path(path)
    # Where features may be numbered from 1, index n_features is still inside.
    d = MAX_INDEX if n_features is None else n_features + (zero_based is not True)
    parser = RowParser(
        path.name, n_features=d, n_labels=MAX_INDEX if n_labels is None else n_labels
    )
    with opened(path) as stream:
        X, Y = parser.parse(stream)
    has_zero = (X.indices == 0).any()
    if has_zero and zero_based is False:
        raise ValueError(f"{path.name} has a feature 0, so zero_based must not be False")
    if zero_based is False or (zero_based == "auto" and not has_zero):
        indices, width = X.indices - 1, max(X.shape[1] - 1, 0)
        X = sp.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], width))
    elif n_features is not None:
        if X.indices.max(initial=-1) >= n_features:
            raise ValueError(
                f"{path.name} has feature {X.indices.max()}, numbered from 0, but n_features is "
                f"{n_features}"
            )
        X.resize((X.shape[0], n_features))
    return Dataset(stem(path), X, Labels.complete(Y))


def write_svmlight(path: str | os.PathLike, X: Any, Y: Any, *, zero_based: bool = True) -> None:
    """Write X and the positives of Y; float32 values come back bit for bit."""
    X, positives = checked_pair(X, Y)
    with replacing(path) as beside, opened(path, beside) as stream:
        stream.writelines(row_lines(X, positives, first=0 if zero_based else 1))
