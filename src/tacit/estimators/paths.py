"""Paths: a method at every point of a grid of parameters, and the held-out rows that choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tacit.basics.params import an_int, check_params

__all__ = ["Path", "Point", "checked_cv", "grid_values"]


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes
    ----------
    params : dict
        Its parameters.
    scores : tuple of float
        The measure on each fold, larger is better; empty without folds. That of LEML is minus the
        mean held-out loss of an observed entry.
    """

    params: dict[str, Any]
    scores: tuple[float, ...]
    fit: Callable[[], Any] = field(repr=False)

    @cached_property
    def model(self) -> Any:
        """The estimator fitted to all rows, made when it is first asked for."""
        return self.fit()

    @property
    def score(self) -> float:
        """The mean over the folds."""
        return float(np.mean(self.scores)) if self.scores else float("nan")

    @property
    def rank(self) -> int:
        return self.params["rank"]

    @property
    def reg(self) -> float:
        return self.params["reg"]

    @property
    def risk(self) -> float:
        """Minus the score: the held-out loss."""
        return -self.score


@dataclass(frozen=True)
class Path:
    """The points of a grid, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import FaIE, LEML
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = (X @ rng.standard_normal((5, 8)) > 0.5).astype(int)
    >>> path = FaIE().fit_path(X, Y, ranks=[2, 5], alphas=[0.1, 10], regs=[0.1, 100], cv=3)
    >>> path.best.params
    {'alpha': 10.0, 'reg': 0.1, 'rank': 5}
    >>> path.best.model.predict(X).shape
    (60, 8)
    >>> path = LEML(random_state=0).fit_path(X, Y, ranks=[2, 5], regs=[0.1, 1, 1000], cv=3)
    >>> path.best.params
    {'rank': 5, 'reg': 0.1}
    """

    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point of the largest score; of two alike, the first."""
        if not self.points[0].scores:
            raise ValueError("best needs held-out rows; call fit_path with cv=5, say")
        return max(self.points, key=lambda point: point.score)


def checked_cv(cv: int | None, n_samples: int) -> int | None:
    """A number of folds that so many rows can be dealt into."""
    if cv is not None and not an_int(at_least=2)[0](cv):
        raise ValueError(f"cv must be None or an int of at least 2; got {cv!r}")
    if cv is not None and cv > n_samples:
        raise ValueError(f"cv={cv} folds need as many rows; got {n_samples}")
    return cv


def grid_values(estimator: Any, name: str, given: Sequence | None, default: Sequence = ()) -> list:
    """The values of a parameter: those given, or the estimator's own; for "auto" the default."""
    if given is not None and np.ndim(given) != 1:
        raise ValueError(f"{name}s must be a sequence of values; got {given!r}")
    values = list(given) if given is not None else [getattr(estimator, name)]
    values = list(default) if values == ["auto"] else values
    if not values:
        raise ValueError(f"{name}s must hold at least one value; got none")
    for value in values:
        check_params(copy(estimator).set_params(**{name: value}))
    return [int(value) if name == "rank" else float(value) for value in values]
