"""The embedded data set: Debian packages and the tags that volunteers gave them (debtags).

Labels that people can read, most of them given by hand, and really incomplete: a package without
`uitoolkit::gtk` may well use GTK. `scripts/build_debian.py` makes the archive and says how.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import IO

import numpy as np
from scipy import sparse as sp

from tacit.datasets.dataset import Dataset
from tacit.labels import Labels

__all__ = ["load_debian"]


def load_debian() -> Dataset:
    """The packages of a Debian release that carry tags.

    The features are raw counts, float32 in a CSR array: words of the one-line synopsis ("gtk"),
    parts of the package's name ("name:gtk"), the packages it depends on ("dep:libc6") and its
    section ("section:python"). Weigh them, with scikit-learn's `TfidfTransformer` say, before a
    linear model. The labels are positive-only.

    Packages built from one source resemble each other (a library, its -dev, its -doc), so a fair
    split keeps them together: `extra["source"]` numbers each row's source package.

    Examples
    --------
    >>> debian = load_debian()
    >>> debian.Y
    Labels(positive-only, 30,283 × 366, 109,132 said yes)
    >>> row = debian.row_names.tolist().index("gimp")
    >>> debian.Y.classes[debian.Y.positives[[row]].indices].tolist()[-3:]
    ['works-with::image:raster', 'works-with::text', 'x11::application']
    """
    with (files("tacit.datasets") / "debian.npz").open("rb") as file:
        return _read(file)


def _read(file: IO[bytes]) -> Dataset:
    with np.load(file, allow_pickle=False) as archive:
        parts = dict(archive)
    feature_names, row_names, classes = (
        np.array(parts[name].tobytes().decode().split("\n"))
        for name in ("feature_names", "row_names", "classes")
    )
    X = _csr(parts["x_counts"], parts["x_columns"], parts["x_lengths"], len(feature_names))
    ones = np.ones(len(parts["y_columns"]), np.uint8)
    Y = _csr(ones, parts["y_columns"], parts["y_lengths"], len(classes))
    return Dataset(
        name="debian",
        X=X.astype(np.float32),
        Y=Labels.positive_only(Y, classes=classes.tolist()),
        feature_names=feature_names,
        row_names=row_names,
        extra={"source": parts["source"].astype(np.int64)},
        meta={
            **json.loads(parts["meta"].tobytes()),
            "licence": "facts from the Debian archive's package index; tags by the debtags project",
            "features": "raw counts: synopsis words, name:, dep: and section:",
        },
    )


def _csr(data: np.ndarray, deltas: np.ndarray, lengths: np.ndarray, n_columns: int) -> sp.csr_array:
    """Rows of `lengths` entries whose columns are stored as differences, the first from zero."""
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    running = np.concatenate([[0], np.cumsum(deltas, dtype=np.int64)])
    columns = running[1:] - np.repeat(running[indptr[:-1]], lengths)
    return sp.csr_array((data, columns, indptr), shape=(len(lengths), n_columns))
