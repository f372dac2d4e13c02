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
about any label, and are left out.

A first model that is rough leaves much of what was said off the shortlists (two fifths on
yso_finna_en, where each feature stands by itself). Then (1) may also learn from `OffListEntries`:
all that were said, and of the others some drawn at random, each of which counts for all that it
stands for. So the sum is, on average, that over all n L entries.

Beyond the shortlist the logit is that of all labels together, ā log s + b̄. With `share` being t,
the new score of a label is

    t logit + (1 - t) log s,                                                                     (2)

which is on one scale for all rows and labels, on shortlists and beyond; beyond, where a score may
be any number, the logarithm goes on as its tangent below 10⁻³, so that the order there stays.

Weights such as idf and unit length may serve the first model and not (1): rare features then weigh
much and are learned from few rows, and those of long rows weigh little. With `presence` all that
counts is which features a row has, sign(x) / n_x^¼ where it has n_x of them.

(1) is solved on the host whatever the device (`tacit.engines.logistic`): each of the problems is
small and sparse, there are thousands, and they share no matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, to_device
from joblib import Parallel, delayed

from tacit.backends import Sparse
from tacit.labels import TopK

__all__ = ["OffListEntries", "SecondLook", "Shortlists", "rows_of"]

_LEAST = 1e-3  # score
_SMALL = 0.01  # weight that is let go
_LABELS = 32  # to a task
_POOLED = 10**6  # entries


class OffListEntries(NamedTuple):
    """Entries off the shortlists: row, label, first score, whether it was said, what it counts."""

    row: np.ndarray
    label: np.ndarray
    score: np.ndarray
    said: np.ndarray
    weight: np.ndarray

    @classmethod
    def none(cls) -> OffListEntries:
        whole = np.empty(0, np.int64)
        return cls(whole, whole, np.empty(0), np.empty(0, bool), np.empty(0))

    @classmethod
    def drawn(
        cls, scores: Any, said: sp.csr_array, listed: np.ndarray, q: int, seed: int
    ) -> OffListEntries:
        """All that were said, and q draws a row from all labels that count for L / q each.

        Draws that were said, are listed or are not known (scores of -inf) stand for nothing.
        """
        n, n_labels = said.shape
        taken = np.zeros((n, n_labels), bool)
        row, place = np.nonzero(listed >= 0)
        taken[row, listed[row, place]] = True
        yes = np.repeat(np.arange(n), np.diff(said.indptr)), said.indices.astype(np.int64)
        yes = tuple(places[~taken[yes]] for places in yes)
        taken[yes] = True
        no = np.repeat(np.arange(n), q), np.random.default_rng(seed).integers(0, n_labels, n * q)
        no = tuple(places[~taken[no]] for places in no)
        row, label = (np.concatenate(both) for both in zip(yes, no))
        place = array_namespace(scores).asarray
        found = scores[place(row, device=scores.device), place(label, device=scores.device)]
        score, is_yes = np.asarray(to_device(found, "cpu")), np.arange(len(row)) < len(yes[0])
        weight, known = np.where(is_yes, 1.0, n_labels / q), np.isfinite(score)
        return cls(*(a[known] for a in (row, label, score, is_yes, weight)))


@dataclass(frozen=True)
class Shortlists:
    """Rows, their best labels by a model that has not seen them, and which of those were said.

    `says_something` are the rows that say anything, of these labels or of others.
    """

    X: sp.csr_array
    top: TopK
    said: np.ndarray
    says_something: np.ndarray
    beyond: OffListEntries

    @classmethod
    def of(cls, parts: Sequence[Shortlists]) -> Shortlists:
        """Those of some rows after the other."""
        all_of = lambda arrays: np.concatenate(list(arrays))
        first = np.cumsum([0, *(part.X.shape[0] for part in parts)])
        moved = [p.beyond._replace(row=p.beyond.row + at) for p, at in zip(parts, first)]
        return cls(
            sp.vstack([part.X for part in parts], format="csr"),
            TopK(all_of(p.top.indices for p in parts), all_of(p.top.scores for p in parts)),
            all_of(part.said for part in parts),
            all_of(part.says_something for part in parts),
            OffListEntries(*(all_of(arrays) for arrays in zip(*moved))),
        )

    def __add__(self, other: Shortlists) -> Shortlists:
        return Shortlists.of([self, other])

    def that_say_something(self) -> Shortlists:
        some, b = self.says_something, self.beyond
        top = TopK(*(a[some] for a in self.top))
        b = OffListEntries(*(a[some[b.row]] for a in b))
        b = b._replace(row=(np.cumsum(some) - 1)[b.row])
        return Shortlists(self.X[some], top, self.said[some], some[some], b)

    def reordered(self, look: SecondLook, shares: Sequence[float]) -> list[np.ndarray]:
        """What was said at each rank in the order that the look gives, for each share of it."""
        found, logs = replace(look, share=1.0).logits(self.X, self.top), _logs(self.top.scores)
        mixed = (share * found + (1 - share) * logs for share in shares)
        orders = (np.argsort(-logits, axis=1, kind="stable") for logits in mixed)
        return [np.take_along_axis(self.said, order, axis=1) for order in orders]


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
    share : float
        The t of (2).
    presence : bool
        Whether all that counts is which features a row has.
    """

    weights: sp.csr_array
    trust: np.ndarray
    pooled: np.ndarray
    share: float = 1.0
    presence: bool = False

    @classmethod
    def fit(cls, rows: Shortlists, n_labels: int, C: float, presence: bool = False) -> SecondLook:
        """(1) from the shortlists of some rows.

        Examples
        --------
        >>> kind = [0, 1] * 20  # of rows: label 0 is for one kind, label 1 for the other
        >>> top = TopK(np.tile([0, 1], (40, 1)), np.full((40, 2), 0.5))
        >>> said, says_something = np.eye(2, dtype=bool)[kind], np.full(40, True)
        >>> X, off_list = sp.csr_array(np.eye(2)[kind]), OffListEntries.none()
        >>> rows = Shortlists(X, top, said, says_something, off_list)
        >>> look = SecondLook.fit(rows, n_labels=2, C=10.0)
        >>> look.ranked(rows.X, top, 2).indices[:2]
        array([[0, 1],
               [1, 0]])
        """
        from tacit.engines.logistic import (
            regressions,  # Numba, which whoever only predicts can do without
        )

        rows = rows.that_say_something()
        X, (n, m) = _features(rows.X, presence).astype(np.float64), rows.top.indices.shape
        logs, yes = _logs(rows.top.scores).ravel(), rows.said.ravel()
        there = rows.top.indices.ravel() >= 0
        pooled = _pooled(logs[there], yes[there])
        more = rows.beyond
        logs, yes = np.append(logs, _logs(more.score)), np.append(yes, more.said)
        row = np.append(np.repeat(np.arange(n), m), more.row)
        weight = np.append(np.ones(n * m), more.weight)
        labels, start, entries = _by_label(np.append(rows.top.indices, more.label))

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
        return cls(weights, trust, pooled, presence=presence)

    def logits(self, X: sp.csr_array, top: TopK) -> np.ndarray:
        """(2) for the shortlists of the rows X."""
        X, logs, m = _features(X, self.presence), _logs(top.scores), top.indices.shape[1]
        found = logs * self.trust[0][top.indices] + self.trust[1][top.indices]
        flat, dense = found.ravel(), np.zeros(X.shape[1])
        pointer = self.weights.indptr
        labels, start, order = _by_label(top.indices)
        for label, entries in zip(labels, np.split(order, start[1:-1])):
            own = slice(pointer[label], pointer[label + 1])
            dense[self.weights.indices[own]] = self.weights.data[own]
            flat[entries] += X[entries // m] @ dense
            dense[self.weights.indices[own]] = 0
        return self.share * found + (1 - self.share) * logs

    def ranked(self, X: sp.csr_array, top: TopK, m: int) -> TopK:
        """The labels of the rows X by their new scores (2); the first m are their shortlists."""
        short, beyond = TopK(top.indices[:, :m], top.scores[:, :m]), top.scores[:, m:]
        new = np.hstack([self.logits(X, short), self._beyond(beyond)])
        new[top.indices < 0] = -np.inf
        order = np.argsort(-new, axis=1, kind="stable")
        take = lambda a: np.take_along_axis(a, order, axis=1)
        return TopK(take(top.indices), take(new).astype(top.scores.dtype))

    def rescored(self, X: sp.csr_array, scores: np.ndarray, top: TopK) -> np.ndarray:
        """The new scores (2) of all labels, from the first ones and the shortlists."""
        known = np.isfinite(top.scores)
        new, (row, place) = self._beyond(scores).astype(scores.dtype), np.nonzero(known)
        logits = self.logits(X, TopK(np.where(known, top.indices, -1), top.scores))
        new[row, top.indices[row, place]] = logits[row, place]
        return new

    def _beyond(self, scores: np.ndarray) -> np.ndarray:
        low = np.minimum(scores.astype(np.float64), _LEAST)
        logs = np.log(np.maximum(scores, _LEAST)) + (low - _LEAST) / _LEAST
        a, b = self.share * self.pooled
        return (a + 1 - self.share) * logs + b


def _by_label(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels on a shortlist, and where each begins among the places of all in their order."""
    places = np.flatnonzero(indices >= 0)  # -1: no label
    flat = indices.ravel()[places]
    counts = np.bincount(flat)
    labels = np.flatnonzero(counts)
    # In as few bits as hold it: NumPy counts numbers of 16, and compares longer ones.
    order = np.argsort(flat.astype(np.min_scalar_type(len(counts))), kind="stable")
    return labels, np.append(0, np.cumsum(counts[labels])), places[order]


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


def _features(X: sp.csr_array, presence: bool) -> sp.csr_array:
    if not presence:
        return X
    n = np.diff(X.indptr)
    there = np.sign(X.data) * np.repeat(np.maximum(n, 1) ** -0.25, n)
    return sp.csr_array((there, X.indices, X.indptr), shape=X.shape)


def _logs(scores: np.ndarray) -> np.ndarray:
    return np.log(np.clip(scores.astype(np.float64), _LEAST, None))


def rows_of(X: Any) -> sp.csr_array:
    """The features of rows on a backend as SciPy holds them, without the constant one."""
    if not isinstance(X, Sparse):
        return sp.csr_array(np.asarray(to_device(X, "cpu"))[:, :-1])
    return X.scipy()[:, :-1]
