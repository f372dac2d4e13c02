"""The text format of the extreme classification repository (XMLRepo).

The first line is "n_samples n_features n_labels"; then each row is "l1,l2 f:v f:v …", both numbered
from 0. A row without labels begins with a blank; a row may have no features.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp

from tacit.basics.files import replacing
from tacit.datasets.dataset import Dataset
from tacit.datasets.textfiles import opened, stem
from tacit.labels import Labels, as_labels

__all__ = ["read_xmlrepo", "write_xmlrepo"]


def read_xmlrepo(path: str | os.PathLike) -> Dataset:
    """Read an XMLRepo text file, gzipped if its name ends in .gz.

    The labels come as complete; use `Y.as_positive_only()` where silence means nothing. Numbers
    are read as `numpy.float32(float(text))`. Memory beyond the result is a few megabytes.
    """
    from tacit.datasets.rowparser import MAX_INDEX, RowParser

    path = Path(path)
    with opened(path) as stream:
        header = stream.readline(1000)
        words = header.split()
        if len(words) != 3 or not all(word.isdigit() for word in words):
            raise ValueError(
                f'{path.name}, line 1: expected "n_samples n_features n_labels", three whole '
                f"numbers; got {header[:40].decode('utf-8', 'replace').strip()!r}"
            )
        n, d, n_labels = map(int, words)
        if max(d, n_labels) >= MAX_INDEX:
            raise ValueError(
                f"{path.name}, line 1: expected fewer than {MAX_INDEX:,} features and labels; "
                f"got {d:,} and {n_labels:,}"
            )
        X, Y = RowParser(path.name, 2, n, d, n_labels).parse(stream)
    return Dataset(stem(path), X, Labels.complete(Y))


def write_xmlrepo(path: str | os.PathLike, X: Any, Y: Any) -> None:
    """Write X and the positives of Y as XMLRepo text; float32 values come back bit for bit."""
    X, positives = checked_pair(X, Y)
    header = f"{X.shape[0]} {X.shape[1]} {positives.shape[1]}\n".encode()
    with replacing(path) as beside, opened(path, beside) as stream:
        stream.write(header)
        stream.writelines(row_lines(X, positives))


def row_lines(X: sp.csr_array, positives: sp.csr_array, first: int = 0) -> Iterator[bytes]:
    """The rows as "l1,l2 f:v f:v" lines, features numbered from `first`."""
    # Nine digits tell any two float32 apart, also when read through a double.
    pair = "{}:{:.9g}".format
    for i in range(X.shape[0]):
        given = positives.indices[positives.indptr[i] : positives.indptr[i + 1]]
        row = slice(X.indptr[i], X.indptr[i + 1])
        pairs = map(pair, (X.indices[row] + first).tolist(), X.data[row].tolist())
        yield f"{','.join(map(str, given.tolist()))} {' '.join(pairs)}\n".encode()


def checked_pair(X: Any, Y: Any) -> tuple[sp.csr_array, sp.csr_array]:
    """X as canonical float32 CSR and the positives of Y, fit to be written as sparse text."""
    labels = as_labels(Y)
    if labels.kind == "masked":
        raise ValueError(
            "Y is masked, and this format cannot say which labels were observed; "
            "use write_npz or write_arff, or give Y.as_positive_only()"
        )
    if labels.noes is not None:
        raise ValueError(
            "Y holds noes, and this format cannot say no among silence; use write_npz, or leave "
            "them out: Labels.positive_only(Y.to_sparse())"
        )
    X = sp.csr_array(X, dtype=np.float32, copy=True)
    X.sum_duplicates()
    if X.shape[0] != len(labels):
        raise ValueError(f"X has {X.shape[0]:,} rows but Y has {len(labels):,}")
    if not np.isfinite(X.data).all():
        raise ValueError("X holds NaN or infinity in float32, which this format cannot write")
    return X, labels.positives
