"""Why a row seems to have a label, in words that a person can check."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tacit.models import Explanation

if TYPE_CHECKING:
    from tacit.cli.inputs import Fitted

__all__ = ["Carriers", "reasons"]

_WORDS = 3  # told of one label
_LOOKED_AT = 20  # reasons, of which those that speak for the label are told


@dataclass(frozen=True)
class Carriers:
    """How many of the rows with a feature have a label.

    Attributes
    ----------
    X : csr_array of shape (n_rows, n_features)
        What is not 0 is there.
    Y : csr_array of shape (n_rows, n_labels)
        1 where a label was said.
    """

    X: sp.csr_array
    Y: sp.csr_array
    _found: dict[int, np.ndarray] = field(default_factory=dict, init=False)  # by label

    @cached_property
    def rows(self) -> np.ndarray:
        """How many rows have each feature."""
        return np.asarray((self.X != 0).sum(axis=0))

    def of(self, label: int) -> np.ndarray:
        """How many of them have the label."""
        if label not in self._found:
            having = self._by_label.indices[slice(*self._by_label.indptr[label : label + 2])]
            self._found[label] = np.asarray((self.X[having] != 0).sum(axis=0))
        return self._found[label]

    @cached_property
    def _by_label(self) -> sp.csc_array:
        return sp.csc_array(self.Y)


def reasons(
    fitted: Fitted, X: Any, rows: np.ndarray, labels: np.ndarray, Y: sp.csr_array | None
) -> list[list[str]]:
    """For each row and label what counts most for it; with counts where tags Y of the rows are."""
    names = fitted.feature_names()
    found = fitted.estimator.explain(X, rows, labels, _LOOKED_AT, names=names)
    carriers = Carriers(sp.csr_array(X), Y) if Y is not None and sp.issparse(X) else None
    place = {name: j for j, name in enumerate(names)}
    return [_told(each, int(label), place, carriers) for each, label in zip(found, labels)]


def _told(
    found: Explanation, label: int, place: dict[str, int], carriers: Carriers | None
) -> list[str]:
    """Of a blend the words of its lead, or its parts where that has none."""
    best = found.lead if found.lead is not None and found.lead.reasons else found
    told = []
    for kind, name, amount in best.reasons:
        if amount <= 0:
            continue
        if kind == "row":
            told.append(f"row {name} of the fit has it")
        elif kind == "feature" and carriers is not None:
            j = place[str(name)]
            had = f"{carriers.of(label)[j]:,} of {carriers.rows[j]:,}"
            told.append(f"{had} rows with {name} have it")
        else:
            told.append(str(name))
    return told[:_WORDS]
