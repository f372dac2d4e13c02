"""What must be known of rows before a fit, wherever they live; found in one pass."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.blocks.rows import Rows

__all__ = ["Facts", "are_dense", "facts"]


@dataclass(frozen=True)
class Facts:
    """Sizes, kind of labels, float type, and a checksum by which a checkpoint knows its data.

    `n_entries` are the numbers of X that are stored and the labels that were said, together;
    `n_filled` those of X that are not 0; `n_blocks` the blocks that were added up; `n_yes` the
    labels that were said yes. `scaling` standardises the columns of X, or is None.
    """

    n_samples: int
    n_features: int
    n_labels: int
    kind: str
    dtype: str
    checksum: int
    classes: np.ndarray | None
    n_entries: int = 0
    n_blocks: int = 1
    n_yes: int = 0
    n_filled: int = 0
    scaling: Any = None

    def __add__(self, other: Facts) -> Facts:
        for name in ("n_features", "n_labels", "kind", "dtype"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"the blocks disagree on {name}: {getattr(self, name)} and "
                    f"{getattr(other, name)}; give them all the same"
                )
        sums = ("n_samples", "checksum", "n_entries", "n_blocks", "n_yes", "n_filled")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in sums})

    @property
    def dense(self) -> bool:
        return are_dense(self.n_filled, self.n_samples * self.n_features)


def are_dense(n_filled: int, n_cells: int) -> bool:
    """Whether features are measurements rather than words: most are not 0, however kept."""
    return 2 * n_filled > n_cells


def facts(rows: Rows) -> Facts:
    """The facts of one block; those of several blocks add."""
    X, labels = rows.X, rows.labels
    dtype = "float32" if X.dtype == np.float32 else "float64"
    n, d = X.shape
    patterns = (labels.positives, labels.observed, labels.noes)
    yes, *more = (0 if pattern is None else pattern.nnz for pattern in patterns)
    entries = yes + sum(more) + (X.nnz if sp.issparse(X) else X.size)
    filled = int(np.count_nonzero(X.data if sp.issparse(X) else X))
    checksum, kind, classes = _checksum(rows), labels.kind, labels.classes
    return Facts(
        n, d, labels.n_labels, kind, dtype, checksum, classes, entries, n_yes=yes, n_filled=filled
    )


def _checksum(rows: Rows) -> int:
    patterns = [rows.labels.positives, rows.labels.observed, rows.labels.noes]
    X: list[Any] = [rows.X.data, rows.X.indices, rows.X.indptr] if sp.issparse(rows.X) else [rows.X]
    arrays = X + [a for p in patterns if p is not None for a in (p.indices, p.indptr)]
    return sum(zlib.crc32(np.ascontiguousarray(a).data) for a in arrays)
