"""Shortlists: the few labels of a row that are in question, and what was said of them.

The first model ranks all labels of a row; the best m of them are its shortlist. A first model that
is rough leaves much of what was said off the shortlists (two fifths on yso_finna_en, where each
feature stands by itself): `OffListEntries` are all that were said beyond them, and some others
drawn at random, each of which counts for all that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from tacit.labels import TopK
from tacit.metrics.top import contains

__all__ = ["OffListEntries", "Shortlists", "by_label", "learned", "listed"]

_SHORTLIST, _LONG_LIST = 30, 100  # labels at least and at most: a hundredth of all
_TAUGHT = 30  # labels of a row that teach: those behind them are plainly noes, and cost as much


def listed(n_labels: int) -> int:
    """How many labels of a row are in question."""
    return min(n_labels, max(_SHORTLIST, min(n_labels // 100, _LONG_LIST)))


def learned(n_labels: int, rough: bool) -> int:
    """How many of them the second look learns from: of a rough list all."""
    return listed(n_labels) if rough else min(listed(n_labels), _TAUGHT)


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
        cls,
        scores: Callable[[np.ndarray, np.ndarray], np.ndarray],
        said: sp.csr_array,
        listed: np.ndarray,
        q: int,
        seed: int,
    ) -> OffListEntries:
        """All that were said, and q draws a row from all labels that count for L / q each.

        `scores` are those of some rows and labels. Draws that were said, are listed or are not
        known (scores of -inf) stand for nothing.
        """
        n, n_labels = said.shape
        on = _pattern(listed, n_labels)
        yes = sp.coo_array(said.astype(np.int8) - said.astype(np.int8).multiply(on))
        yes.eliminate_zeros()
        drawn = np.random.default_rng(seed).integers(0, n_labels, (n, q))
        no = ~(contains(said, drawn) | contains(on, drawn))
        row = np.concatenate([yes.row, np.nonzero(no)[0]])
        label = np.concatenate([yes.col, drawn[no]])
        score, is_yes = scores(row, label), np.arange(len(row)) < yes.nnz
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

    def that_say_something(self) -> Shortlists:
        """Without the rows that say nothing."""
        return self.of_rows(self.says_something)

    def of_rows(self, some: np.ndarray) -> Shortlists:
        """Those of some rows."""
        b = OffListEntries(*(a[some[self.beyond.row]] for a in self.beyond))
        b = b._replace(row=(np.cumsum(some) - 1)[b.row])
        top = TopK(*(a[some] for a in self.top))
        return Shortlists(self.X[some], top, self.said[some], self.says_something[some], b)


def _pattern(listed: np.ndarray, n_labels: int) -> sp.csr_array:
    """1 where a label is listed."""
    there = listed >= 0
    pointer = np.append(0, np.cumsum(there.sum(axis=1)))
    shape = (len(listed), n_labels)
    found = sp.csr_array((np.ones(pointer[-1], np.int8), listed[there], pointer), shape=shape)
    found.sort_indices()
    return found


def by_label(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels on a shortlist, and where each begins among the places of all in their order."""
    places = np.flatnonzero(indices >= 0)  # -1: no label
    flat = indices.ravel()[places]
    counts = np.bincount(flat)
    labels = np.flatnonzero(counts)
    # In as few bits as hold it: NumPy counts numbers of 16, and compares longer ones.
    order = np.argsort(flat.astype(np.min_scalar_type(len(counts))), kind="stable")
    return labels, np.append(0, np.cumsum(counts[labels])), places[order]
