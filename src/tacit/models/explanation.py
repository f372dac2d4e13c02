"""Why an entry has its score: what features, rows, labels or parts of a model add to it.

    s_il = Σ_j a_j + o                                                                          (1)

with a_j what the j-th of them adds to the score of label l of row i, and o what belongs to none. Of
a linear model a_j = x_j w_jl, with x as the method sees it: scaled, and standardised where it does
so, so that a_j tells what is unlike the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from tacit.backends import Sparse
from tacit.backends.block import Block

__all__ = ["Contributions", "Explanation", "Kind", "Reason", "explanations", "of_features"]

Kind = Literal["feature", "row", "label", "part"]


@dataclass(frozen=True, eq=False)
class Contributions:
    """(1) of some entries.

    Attributes
    ----------
    amounts : dict of csr_arrays of shape (n_entries, n_things)
        The a_j, by what they are of: features, rows of the fit, labels, or parts of the model.
    offset : ndarray of shape (n_entries,)
        o.
    parts : tuple of str
        The names of the parts, where there are any.
    lead : Contributions or None
        What makes the score of the first of these parts.
    """

    amounts: Mapping[Kind, sp.csr_array]
    offset: np.ndarray
    parts: tuple[str, ...] = ()
    lead: Contributions | None = None


class Reason(NamedTuple):
    """What adds to a score: a feature, a row of the fit, a label or a part, and how much."""

    kind: Kind
    name: str | int
    amount: float


@dataclass(frozen=True)
class Explanation:
    """Why an entry has its score, which is the sum of the reasons and the rest.

    Attributes
    ----------
    score : float
        What `decision_function` gives it.
    reasons : tuple of Reason
        What counts most, for it or against it, the weightiest first.
    rest : float
        All else: the intercept, and the reasons that are not listed.
    lead : Explanation or None
        Of a `Tacit`, whose reasons are its parts: why the first of them has the score it has.
    """

    score: float
    reasons: tuple[Reason, ...]
    rest: float
    lead: Explanation | None = None

    def __str__(self) -> str:
        told = (f"{reason.name} {reason.amount:+.3g}" for reason in self.reasons)
        return f"{self.score:.3g} = {', '.join((*told, f'the rest {self.rest:+.3g}'))}"


def explanations(
    found: Contributions, names: Mapping[Kind, Sequence[str | int]], k: int
) -> list[Explanation]:
    """The k reasons of each entry that count most; of parts all, which are few.

    What has no name, as the constant feature behind all others, is in the rest.
    """
    n = len(found.offset)
    leads = [None] * n if found.lead is None else explanations(found.lead, names, k)
    names, k = {**names, "part": found.parts}, len(found.parts) or k
    return [_explanation(found, i, names, k, lead) for i, lead in enumerate(leads)]


def _explanation(
    found: Contributions,
    i: int,
    names: Mapping[Kind, Sequence[str | int]],
    k: int,
    lead: Explanation | None,
) -> Explanation:
    reasons, score = list[Reason](), float(found.offset[i])
    for kind, amounts in found.amounts.items():
        own = slice(*amounts.indptr[i : i + 2])
        score += float(amounts.data[own].sum())
        there = ((j, a) for j, a in zip(amounts.indices[own], amounts.data[own]) if a != 0)
        known = names.get(kind)
        reasons += [
            Reason(kind, int(j) if known is None else known[j], float(amount))
            for j, amount in there
            if known is None or j < len(known)
        ]
    most = tuple(sorted(reasons, key=lambda reason: -abs(reason.amount))[:k])
    return Explanation(score, most, score - sum(reason.amount for reason in most), lead)


def of_features(block: Block, weights: Callable[[int, np.ndarray], np.ndarray]) -> sp.csr_array:
    """x_j w_j of each row of a block; `weights(i, at)` are those of row i at the features `at`."""
    parts = (block.X, *block.more)
    on_host = (p.scipy() if isinstance(p, Sparse) else block.backend.to_numpy(p) for p in parts)
    found = sp.hstack([sp.csr_array(part, dtype=np.float64) for part in on_host], format="csr")
    for i, (start, stop) in enumerate(pairwise(found.indptr)):
        found.data[start:stop] *= weights(i, found.indices[start:stop])
    return found
