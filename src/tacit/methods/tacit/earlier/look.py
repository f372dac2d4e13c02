"""The second look of 0.1.0, whose logits are mixed with the logarithm of the first score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.basics.params import a_bool, a_float
from tacit.labels import TopK
from tacit.methods.tacit.blend import LEAST, logs
from tacit.methods.tacit.second_look import SecondLook

__all__ = ["EarlierLook"]

_share, _ = a_float(above=0, at_most=1)
_is_bool, _ = a_bool()


@dataclass(frozen=True)
class EarlierLook(SecondLook):
    """A second look whose logits are mixed with log s, and that may see only what is there.

    With `share` being t, the new score of a label is

        t logit + (1 - t) log s,                                                                 (1)

    beyond the shortlist with the logit ā log s + b̄ of all labels together. With `presence` all
    that counts is which features a row has: sign(x) / n_x^¼ where it has n_x of them.
    """

    share: float = 1.0
    presence: bool = False

    @classmethod
    def of(cls, told: Any, look: SecondLook) -> EarlierLook:
        share, presence = told
        if not _share(share) or not _is_bool(presence):
            raise ValueError(f"its second look is {told!r}")
        known = dict(weights=look.weights, trust=look.trust, pooled=look.pooled)
        return cls(**known, share=float(share), presence=presence)

    def logits(self, X: sp.csr_array, top: TopK) -> np.ndarray:
        """(1) for the shortlists of the rows X."""
        if self.presence:
            n = np.diff(X.indptr)
            there = np.sign(X.data) * np.repeat(np.maximum(n, 1) ** -0.25, n)
            X = sp.csr_array((there, X.indices, X.indptr), shape=X.shape)
        found, known = super().logits(X, top), np.log(np.clip(top.scores, LEAST, None))
        return self.share * found + (1 - self.share) * known

    def ranked(self, X: sp.csr_array, top: TopK, m: int) -> TopK:
        """The labels of the rows X by their new scores (1); the first m are their shortlists."""
        short, beyond = TopK(top.indices[:, :m], top.scores[:, :m]), top.scores[:, m:]
        new = np.hstack([self.logits(X, short), self._beyond(beyond)])
        new[top.indices < 0] = -np.inf
        order = np.argsort(-new, axis=1, kind="stable")
        take = lambda a: np.take_along_axis(a, order, axis=1)
        return TopK(take(top.indices), take(new).astype(top.scores.dtype))

    def rescored(self, X: sp.csr_array, scores: np.ndarray, top: TopK) -> np.ndarray:
        """The new scores (1) of all labels, from the first ones and the shortlists."""
        known = np.isfinite(top.scores)
        new, (row, place) = self._beyond(scores).astype(scores.dtype), np.nonzero(known)
        logits = self.logits(X, TopK(np.where(known, top.indices, -1), top.scores))
        new[row, top.indices[row, place]] = logits[row, place]
        return new

    def _beyond(self, scores: np.ndarray) -> np.ndarray:
        a, b = self.share * self.pooled
        return (a + 1 - self.share) * logs(scores) + b
