"""First models that know the rows of their fit again, by what else is known of these.

Where labels are masked, the cells that are known of a row tell much of those that are not, more
than its features do. Beside its features each row has one of its own,

    u_i = Wᵀx_i + c a_i,    Σ log-loss of what is known, a function of u_i      (1)

so that a_i, learned from the cells of row i alone, says how it strays from rows of such features.
Of a row that was not in the fit a is 0. Rows that say nothing are left out, and equal rows are one.

**Cost**: that of the model, with one number a row more in X and n more rows of W. It wants all rows
in one place, and says no more than the model alone where few cells of a row are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tacit.blocks import MemoryBlocks
from tacit.methods.tacit.deal import SomeRows, together
from tacit.methods.tacit.first.network import telling
from tacit.models.known_rows import KnownRows, beside, distinct, marks_of

__all__ = ["with_known_rows"]

_OWN = 1.5  # c of (1), for rows about as long as 1


def with_known_rows(rows: SomeRows, fit: Callable[[SomeRows], Any]) -> KnownRows:
    """The model (1) of these scaled rows, by what fits a low-rank one or a network to features."""
    block = together(rows.blocks.map(telling), rows.backend)
    marks, which = distinct(marks_of(block))
    told, d = MemoryBlocks((beside(block, which, len(marks), _OWN),)), rows.n_features
    own = replace(rows, blocks=told, n_samples=len(which), n_features=d + len(marks))
    inner = fit(own)
    W = inner.W.copy()
    W[d:] *= _OWN
    return KnownRows(replace(inner, W=W), marks)
