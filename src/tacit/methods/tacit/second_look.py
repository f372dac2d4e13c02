"""A second look at the few labels that a first model ranks highest in a row.

A model of all labels at once takes an entry that is plainly wrong as seriously as one that is in
question. But only the m best labels of a row are in question, its *shortlist*, and they are few
enough for a logistic regression a label, on the rows in whose shortlist it stands:

    P(said | x, s) = σ(z_lᵀx + (ā + a_l) log s + b̄ + b_l),
                                             C Σ log-loss + ½(‖z_l‖² + a_l² + b_l²) least,       (1)

with s the score of a first model *that has not seen the row*, at least 10⁻³, and ā and b̄ from a
regression of all labels together on log s alone: a label of which little is known is held for one
like any other, and not for one that the first model knows nothing about. So there are n m
entries to learn from instead of n L, and the noes among them are the hard ones, as in the label
trees of Parabel (Prabhu et al. 2018) and PECOS (Yu et al. 2022). Rows that say nothing say nothing
about any label, and are left out. Of rows at unit length x has the roots, sign(x_j) √|x_j|: rare
features then weigh less, rows with many features more, and one C = 1 serves.

Where the first model is rough, (1) also learns from entries off the shortlists
(`tacit.methods.tacit.shortlists`), so that the sum is, on average, that over all n L entries.

(1) is solved on the host whatever the device (`tacit.engines.logistic`): each of the problems is
small and sparse, there are thousands, and they share no matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import to_device
from joblib import Parallel, delayed

from tacit.backends import Sparse
from tacit.backends.block import Block
from tacit.features.scaling import Scaling
from tacit.labels import TopK
from tacit.methods.tacit.blend import LEAST
from tacit.methods.tacit.shortlists import Shortlists, by_label

__all__ = ["SecondLook", "rows_of", "without_constant"]

_SMALL = 0.01  # weight that is let go
_LABELS = 32  # to a task
_POOLED = 10**6  # entries


@dataclass(frozen=True)
class SecondLook:
    """The models (1) of all labels.

    Attributes
    ----------
    weights : csr_array, (n_labels, n_features)
        The z_l.
    trust : (2, n_labels)
        The ā + a_l and b̄ + b_l.
    pooled : (2,)
        ā and b̄.
    """

    weights: sp.csr_array
    trust: np.ndarray
    pooled: np.ndarray

    @classmethod
    def fit(cls, rows: Shortlists, n_labels: int, C: float = 1.0) -> SecondLook:
        """(1) from the shortlists of some rows.

        Examples
        --------
        >>> from tacit.methods.tacit.shortlists import OffListEntries
        >>> kind = [0, 1] * 20  # of rows: label 0 is for one kind, label 1 for the other
        >>> top = TopK(np.tile([0, 1], (40, 1)), np.full((40, 2), 0.5))
        >>> said, says_something = np.eye(2, dtype=bool)[kind], np.full(40, True)
        >>> X, off_list = sp.csr_array(np.eye(2)[kind]), OffListEntries.none()
        >>> rows = Shortlists(X, top, said, says_something, off_list)
        >>> look = SecondLook.fit(rows, n_labels=2, C=10.0)
        >>> look.logits(rows.X, top)[:2].argmax(axis=1)
        array([0, 1])
        """
        from tacit.engines.logistic import (
            regressions,  # Numba, which whoever only predicts can do without
        )

        rows = rows.that_say_something()
        if not len(rows.said):  # nothing to learn from: the first scores stay as they are
            nothing = sp.csr_array((n_labels, rows.X.shape[1]))
            return cls(nothing, np.tile([[1.0], [0.0]], n_labels), np.array([1.0, 0.0]))
        X, (n, m) = rows.X.astype(np.float64), rows.top.indices.shape
        logs, yes = logs_of(rows.top.scores).ravel(), rows.said.ravel()
        there = rows.top.indices.ravel() >= 0
        pooled = _pooled(logs[there], yes[there])
        more = rows.beyond
        logs, yes = np.append(logs, logs_of(more.score)), np.append(yes, more.said)
        row = np.append(np.repeat(np.arange(n), m), more.row)
        weight = np.append(np.ones(n * m), more.weight)
        labels, start, entries = by_label(np.append(rows.top.indices, more.label))

        def learned(part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            own = entries[start[part.start] : start[part.stop]]
            first = start[part.start : part.stop + 1] - start[part.start]
            before = pooled[0] * logs[own] + pooled[1]
            known = (logs[own], before, weight[own], row[own], first, yes[own])
            return regressions(X.indptr, X.indices, X.data, *known, C, 1e-2, _SMALL, X.shape[1])

        parts = [slice(i, min(i + _LABELS, len(labels))) for i in range(0, len(labels), _LABELS)]
        found = Parallel(n_jobs=-1, prefer="threads")(delayed(learned)(part) for part in parts)
        trust = np.tile(pooled[:, None], n_labels)  # of a label that was on no shortlist
        lengths = np.zeros(n_labels, np.int64)
        for part, (*_, pointer, own) in zip(parts, found):
            trust[:, labels[part]] += own
            lengths[labels[part]] = np.diff(pointer)
        features, values = (
            np.concatenate([each[i] for each in found] or [np.empty(0)]) for i in (0, 1)
        )
        pointer = np.concatenate([[0], np.cumsum(lengths)])
        shape = (n_labels, X.shape[1])
        weights = sp.csr_array((values, features.astype(np.int32), pointer), shape=shape)
        return cls(weights, trust, pooled)

    def cast(self, dtype: np.dtype) -> SecondLook:
        """The same in the float type that a file keeps."""
        Z, cast = self.weights, lambda a: a.astype(dtype)
        weights = sp.csr_array((cast(Z.data), Z.indices.astype(np.int32), Z.indptr), shape=Z.shape)
        return replace(self, weights=weights, trust=cast(self.trust), pooled=cast(self.pooled))

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray | None]:
        """What a file keeps."""
        Z = self.weights
        return {
            "look_weights": Z.data.astype(dtype),
            "look_features": Z.indices.astype(np.int32),
            "look_pointer": Z.indptr.astype(np.int64),
            "look_trust": self.trust.astype(dtype),
            "look_pooled": self.pooled.astype(dtype),
        }

    def logits(self, X: sp.csr_array, top: TopK) -> np.ndarray:
        """The log-odds of (1) for the shortlists of the rows X."""
        from tacit.engines.sparse_best import entries  # Numba, which takes a moment to come

        logs, there = logs_of(top.scores), top.indices >= 0
        found = logs * self.trust[0][top.indices] + self.trust[1][top.indices]
        found[there] += entries(X, self._by_feature, np.nonzero(there)[0], top.indices[there])
        return found

    @cached_property
    def _by_feature(self) -> sp.csr_array:
        """The weights with a row for each feature."""
        return sp.csr_array(self.weights.T)


def _pooled(logs: np.ndarray, yes: np.ndarray) -> np.ndarray:
    """ā and b̄, from entries that stand in for all; ā above 0, or the order would not stay."""
    from tacit.engines.logistic import regressions

    some = slice(None, None, -(-len(logs) // _POOLED) or 1)
    n = len(logs[some])
    nothing = np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0)  # a row without features
    alike = np.zeros(n), np.ones(n), np.zeros(n, np.int64)
    known = logs[some], *alike, np.array([0, n]), yes[some]
    *_, trust = regressions(*nothing, *known, 1.0, 1e-2, _SMALL, 0)
    return np.maximum(trust[:, 0], [_SMALL, -np.inf])


def logs_of(scores: np.ndarray) -> np.ndarray:
    """log s, of scores of at least 10⁻³."""
    return np.log(np.clip(scores.astype(np.float64), LEAST, None))


def rows_of(block: Block, scaling: Scaling) -> sp.csr_array:
    """The x of (1), of rows that are not scaled yet."""
    plain = scaling.unweighted()
    rows = without_constant(plain(block).X)
    if plain.kind == "unit":
        rows.data = np.sign(rows.data) * np.sqrt(np.abs(rows.data))
    return rows


def without_constant(X: Any) -> sp.csr_array:
    """The features of rows on a backend as SciPy holds them, without the constant one."""
    rows = X.scipy() if isinstance(X, Sparse) else np.asarray(to_device(X, "cpu"))
    return sp.csr_array(rows[:, :-1])
