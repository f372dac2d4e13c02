"""Fit: what `_fit` gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tacit.engines.descend import State
from tacit.models import Model

__all__ = ["Fit"]


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how it came about.

    Attributes
    ----------
    model : Model
        What predicts; the estimator's `model_`.
    history : list of float
        The objective after each pass; empty where nothing is repeated.
    chosen : dict of str to number
        What the fit decided: each becomes an attribute of the estimator, and is kept in its file.
    online : dict of arrays or None
        What `partial_fit` goes on from, where it can.
    """

    model: Model
    history: list[float] = field(default_factory=list)
    chosen: dict[str, Any] = field(default_factory=dict)
    online: State | None = None
