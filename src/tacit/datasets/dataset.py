"""The value that every reader of a data set gives: features, labels, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse as sp

from tacit.labels import Labels

__all__ = ["Dataset"]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """A multi-label data set.

    Attributes
    ----------
    name : str
        What the set is called.
    X : csr_array or ndarray of shape (n_samples, n_features)
        The training rows, or all rows where the set has no split; float32.
    Y : Labels of shape (n_samples, n_labels)
        What was said of the rows of X.
    X_test, Y_test : as X and Y, or None
        The test rows, where the set has a split.
    feature_names : ndarray of str, or None
        One name a column of X.
    row_names : ndarray of str, or None
        One name a row of X.
    extra : dict of str to array
        Whatever else the set holds, by the stem of its file: "X_dev", "Y_bullseye", "X_untagged".
    meta : dict
        Where the set comes from, its licence, how the features were made.

    Examples
    --------
    >>> Dataset("tiny", np.eye(2, dtype=np.float32), Labels.from_sets([["a"], ["a", "b"]]))
    Dataset tiny: 2 rows × 2 dense features
      Y: Labels(positive-only, 2 × 2, 3 said yes)
    """

    name: str
    X: sp.csr_array | np.ndarray
    Y: Labels
    X_test: sp.csr_array | np.ndarray | None = None
    Y_test: Labels | None = None
    feature_names: np.ndarray | None = None
    row_names: np.ndarray | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for X, Y, suffix in [(self.X, self.Y, ""), (self.X_test, self.Y_test, "_test")]:
            if X is not None and Y is not None and X.shape[0] != len(Y):
                raise ValueError(
                    f"the data set {self.name!r} has {X.shape[0]:,} rows in X{suffix} but "
                    f"{len(Y):,} in Y{suffix}; give one row of labels for each row of features"
                )
        for names, what, size in [
            (self.feature_names, "feature_names", self.X.shape[1]),
            (self.row_names, "row_names", self.X.shape[0]),
        ]:
            if names is not None and len(names) != size:
                raise ValueError(
                    f"the data set {self.name!r} has {len(names):,} {what}; X needs {size:,}"
                )

    def __repr__(self) -> str:
        rows = f"{self.X.shape[0]:,}"
        if self.X_test is not None:
            rows += f" + {self.X_test.shape[0]:,} test"
        layout = "sparse" if sp.issparse(self.X) else "dense"
        more = f"; also {', '.join(sorted(self.extra))}" if self.extra else ""
        return (
            f"Dataset {self.name}: {rows} rows × {self.X.shape[1]:,} {layout} features{more}\n"
            f"  Y: {self.Y!r}"
        )
