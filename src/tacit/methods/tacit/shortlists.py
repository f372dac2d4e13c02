"""Shortlists: the few labels of a row that are in question, and what was said of them.

The first model ranks all labels of a row; the best m of them are its shortlist. A first model that
is rough leaves much of what was said off the shortlists (two fifths on yso_finna_en, where each
feature stands by itself): `OffListEntries` are all that were said beyond them, and some others
drawn at random, each of which counts for all that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, to_device

from tacit.labels import TopK

__all__ = ["OffListEntries", "Shortlists", "by_label", "listed"]

_SHORTLIST, _LONG_LIST = 30, 100  # labels at least and at most: a hundredth of all


def listed(n_labels: int) -> int:
    """How many labels of a row are in question."""
    return min(n_labels, max(_SHORTLIST, min(n_labels // 100, _LONG_LIST)))


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

    def that_say_something(self) -> Shortlists:
        some, b = self.says_something, self.beyond
        top = TopK(*(a[some] for a in self.top))
        b = OffListEntries(*(a[some[b.row]] for a in b))
        b = b._replace(row=(np.cumsum(some) - 1)[b.row])
        return Shortlists(self.X[some], top, self.said[some], some[some], b)


def by_label(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels on a shortlist, and where each begins among the places of all in their order."""
    places = np.flatnonzero(indices >= 0)  # -1: no label
    flat = indices.ravel()[places]
    counts = np.bincount(flat)
    labels = np.flatnonzero(counts)
    # In as few bits as hold it: NumPy counts numbers of 16, and compares longer ones.
    order = np.argsort(flat.astype(np.min_scalar_type(len(counts))), kind="stable")
    return labels, np.append(0, np.cumsum(counts[labels])), places[order]
