"""Paths: a reduction at every point of a grid, from one pass over the rows.

All that PLST, CPLST and FaIE with ridge know of the rows is their Gram triple. The moments of each
fold are summed once, and a training set is the total minus its fold. A rank is a prefix of the
codes of the largest, all α and λ share one decomposition of X̃ᵀX̃, and the held-out rows are scored
for all ranks at once. The models of the whole are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property, partial, reduce
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.params import an_int, check_params
from tacit.blocks.facts import facts
from tacit.blocks.rows import rows_of_fold
from tacit.codecs.codec_data import gram_triple
from tacit.engines.moments import Moments
from tacit.estimators import Problem
from tacit.models import LowRank

if TYPE_CHECKING:
    from tacit.label_space import LabelSpaceReduction

__all__ = ["MEASURES", "Path", "Point", "fit_path"]

_CELLS = 2**21  # scores laid out at a time


@dataclass(frozen=True)
class Point:
    """One point of the grid: its parameters, and the measure on each fold (none without folds)."""

    params: dict[str, float]
    scores: tuple[float, ...]
    _fit: Callable[[], Any] = field(repr=False)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator, from the moments when it is first asked for."""
        return self._fit()

    @property
    def score(self) -> float:
        """The mean over the folds; larger is better."""
        return float(np.mean(self.scores)) if self.scores else float("nan")


@dataclass(frozen=True)
class Path:
    """The points of a grid, rank by rank within each of its other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import FaIE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> Y = (X @ rng.standard_normal((5, 8)) > 0.5).astype(int)
    >>> path = FaIE().fit_path(X, Y, ranks=[2, 5], alphas=[0.1, 10], regs=[0.1, 100], cv=3)
    >>> path.best.params
    {'alpha': 10.0, 'reg': 0.1, 'rank': 5}
    >>> path.best.model.predict(X).shape
    (60, 8)
    """

    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point of largest measure; of two alike, the first."""
        if not self.points[0].scores:
            raise ValueError("best needs held-out rows; call fit_path with cv=5, say")
        return max(self.points, key=lambda point: point.score)


def fit_path(
    estimator: LabelSpaceReduction,
    X: Any,
    Y: Any,
    grid: Mapping[str, Sequence[float] | None],
    cv: int | None,
    measure: str,
) -> Path:
    """Fit every point of the grid; see the `fit_path` of the estimators."""
    check_params(estimator)
    if estimator.predictor is not None or not getattr(estimator._codec, "nested", False):
        raise ValueError(
            f"fit_path needs ridge and codes that are prefixes of each other; {estimator!r} has "
            'not both: use predictor=None and codec="plst" or "cplst", or FaIE'
        )
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {sorted(MEASURES)}; got {measure!r}")
    if cv is not None and not an_int(at_least=2)[0](cv):
        raise ValueError(f"cv must be None or an int of at least 2; got {cv!r}")
    values = {name: _values(estimator, name, given) for name, given in grid.items()}
    ranks = sorted(values.pop("rank"))
    points = [dict(zip(values, point)) for point in product(*values.values())]
    blocks, known = estimator._rows(X, Y)
    if cv is not None and cv > known.n_samples:
        raise ValueError(f"cv={cv} folds need as many rows; got {known.n_samples}")
    problem = estimator._problem(blocks, known)
    held = [blocks.map(rows_of_fold, fold, cv, True) for fold in range(cv or 0)]
    folds = [estimator._problem(rows, rows.sum(facts)) for rows in held]
    shape = problem.n_features, problem.n_labels
    sums = [gram_triple(fold.blocks, *shape) for fold in folds]
    total = reduce(add, sums) if sums else gram_triple(problem.blocks, *shape)

    scores: dict[tuple, tuple[float, ...]] = {}
    for fold, left_out in zip(folds, sums):
        training = estimator._training(problem, total - left_out, rough=True)
        for at, point in enumerate(points):
            model = _at(estimator, point, ranks[-1])._reduced(training)
            how = ranks, estimator.fit_intercept, estimator.threshold
            tallies = fold.blocks.sum(_tallies, *_placed(problem, model), *how)
            for rank, value in zip(ranks, MEASURES[measure](left_out, *tallies)):
                scores[at, rank] = (*scores.get((at, rank), ()), float(value))

    training = estimator._training(problem, total)

    @cache
    def whole(at: int) -> LowRank:
        return _at(estimator, points[at], ranks[-1])._reduced(training)

    def fit(at: int, rank: int) -> Any:
        fitted = _at(estimator, points[at], rank)
        fitted.history_, fitted.predictor_ = [], None
        return fitted._fitted(_prefix(whole(at), rank, estimator.fit_intercept), known)

    return Path(
        tuple(
            Point(points[at] | {"rank": rank}, scores.get((at, rank), ()), partial(fit, at, rank))
            for at in range(len(points))
            for rank in ranks
        )
    )


def _values(estimator: Any, name: str, given: Sequence[float] | None) -> list:
    if given is not None and np.ndim(given) != 1:
        raise ValueError(f"{name}s must be a sequence of values; got {given!r}")
    values = [getattr(estimator, name)] if given is None else list(given)
    if not values:
        raise ValueError(f"{name}s must hold at least one value; got none")
    for value in values:
        check_params(copy(estimator).set_params(**{name: value}))
    return [int(value) if name == "rank" else float(value) for value in values]


def _at(estimator: LabelSpaceReduction, point: dict, rank: int) -> LabelSpaceReduction:
    return copy(estimator).set_params(**point, rank=rank)


def _prefix(model: LowRank, rank: int, constant: bool) -> LowRank:
    """The model of the first codes, and of the last, which has the means, if there is one."""
    width = model.W.shape[1] - constant
    kept = [*range(min(rank, width)), *range(width, width + constant)]
    W, H = (np.asarray(factor)[:, kept] for factor in (model.W, model.H))
    return LowRank(W, H)


def _placed(problem: Problem, model: LowRank) -> tuple[Array, Array]:
    asarray = lambda a: problem.backend.asarray(np.ascontiguousarray(a, dtype=problem.dtype))
    return asarray(model.W), asarray(model.H)


def _tallies(
    b: Block, W: Array, H: Array, ranks: list[int], constant: bool, threshold: float
) -> tuple[Array, ...]:
    """For each rank: hits and answers of each label, Σ of the rows' accuracy, Σ (score - y)²."""
    codes, size = b.project(W), max(1, _CELLS // len(H))
    found: Any = None
    for start in range(0, max(1, len(codes)), size):
        rows = slice(start, min(start + size, len(codes)))
        y = b.backend.dense(b.Y, rows, codes.dtype)
        part = _tally(codes[rows], H, y, ranks, constant, threshold)
        found = part if found is None else tuple(map(add, found, part))
    return found


def _tally(
    A: Array, H: Array, y: Array, ranks: list[int], constant: bool, threshold: float
) -> tuple[Array, ...]:
    xp, width = array_namespace(A), H.shape[1] - constant
    scores = A[:, width:] @ H[:, width:].T
    said, rows, done = y > 0, [], 0
    for rank in ranks:
        stop = min(rank, width)
        scores = scores + A[:, done:stop] @ H[:, done:stop].T
        # As `predict` does: a score is no probability, and counts as at most 1.
        yes, done = xp.clip(scores, max=1.0) > threshold, stop
        hits, either = said & yes, said | yes
        count = lambda cells, axis: xp.astype(xp.count_nonzero(cells, axis=axis), xp.float64)
        both, any_ = count(hits, 1), count(either, 1)
        accuracy = xp.where(any_ > 0, both / xp.where(any_ > 0, any_, 1.0), 1.0)
        rows.append((count(hits, 0), count(yes, 0), xp.sum(accuracy), xp.sum((scores - y) ** 2)))
    return tuple(xp.stack(column) for column in zip(*rows))


def _macro_f1(held: Moments, hits: Array, answers: Array, accuracy: Array, squares: Array) -> Array:
    total = answers + held.y_sum
    xp = array_namespace(total)
    return xp.mean(xp.where(total > 0, 2 * hits / xp.where(total > 0, total, 1.0), 0.0), axis=1)


MEASURES: dict[str, Callable[..., Array]] = {
    "macro_f1": _macro_f1,
    "accuracy": lambda held, hits, answers, accuracy, squares: accuracy / held.n,
    "squared": lambda held, hits, answers, accuracy, squares: -squares / held.n,
}
"""From the moments and the tallies of held-out rows to one number a rank; larger is better."""
