"""Paths: a reduction at every point of a grid, from one pass over the rows.

All that PLST, CPLST and FaIE with ridge know of the rows is their Gram triple. The moments of each
fold are summed once, and a training set is the total minus its fold. A rank is a prefix of the
codes of the largest, all α and λ share one decomposition of X̃ᵀX̃, and the held-out rows are scored
for all ranks at once. The models of the whole are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.codecs import CodecData
from tacit.codecs.codec_data import gram_triple
from tacit.engines.moments import Moments
from tacit.estimators import Fit, Problem
from tacit.estimators.paths import Path, Point, checked_cv
from tacit.label_space.reduction import by_ridge
from tacit.models import LowRank

__all__ = ["MEASURES", "check_path", "fit_path"]

_CELLS = 2**21  # scores laid out at a time
_BEST = 3  # labels of a row that "precision" looks at


def check_path(estimator: Any, codec: Any, measure: str) -> None:
    """Refuse an estimator that has no path of this kind, and a measure that there is not."""
    if estimator.predictor is not None or not getattr(codec, "nested", False):
        raise ValueError(
            f"fit_path needs ridge and codes that are prefixes of each other; {estimator!r} has "
            'not both: use predictor=None and codec="plst" or "cplst", or FaIE'
        )
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {sorted(MEASURES)}; got {measure!r}")


def fit_path(
    problem: Problem,
    codec: Any,
    grid: Mapping[str, Sequence[Any]],
    adopted: Callable[[dict[str, Any], Fit], Any],
    *,
    centred: bool,
    cv: int | None,
    measure: str,
    threshold: float,
) -> Path:
    """Fit every point of the grid, rank by rank within each of its other parameters.

    These are λ and whatever the codec has by their names. `adopted` makes estimators of the fits.
    """
    n_folds = checked_cv(cv, problem.n_samples) or 0
    others = {name: values for name, values in grid.items() if name != "rank"}
    points = [dict(zip(others, values)) for values in product(*others.values())]
    ranks = sorted(grid["rank"])
    folds = [problem.afresh(problem.fold(fold, n_folds)) for fold in range(n_folds)]
    shape = problem.n_features, problem.n_labels
    sums = [gram_triple(fold.blocks, *shape) for fold in folds]
    total = reduce(add, sums) if sums else gram_triple(problem.blocks, *shape)

    def widest(at: int, rows: CodecData) -> LowRank:
        """The model of most codes at a point: all others there have the first of them."""
        settings = dict(points[at])
        reg = settings.pop("reg")
        model = by_ridge(problem, replace(codec, **settings), rows, ranks[-1], reg)
        assert isinstance(model, LowRank)  # as all codes are that are prefixes of each other
        return model

    scores: dict[tuple[int, int], tuple[float, ...]] = {}
    for fold, left_out in zip(folds, sums):
        rows = CodecData.of(problem, centred, total - left_out, rough=True)
        for at in range(len(points)):
            model = widest(at, rows)
            W, H = (problem.backend.asarray(factor) for factor in (model.W, model.H))
            tallies = fold.blocks.sum(_tallies, W, H, ranks, centred, threshold, measure)
            for rank, value in zip(ranks, MEASURES[measure](left_out, *tallies)):
                scores[at, rank] = (*scores.get((at, rank), ()), float(value))

    whole = CodecData.of(problem, centred, total)
    fitted = cache(lambda at: widest(at, whole))

    def fit(at: int, rank: int) -> Any:
        model = _prefix(fitted(at), rank, centred)
        return adopted(points[at] | {"rank": rank}, Fit(model))

    return Path(
        tuple(
            Point(points[at] | {"rank": rank}, scores.get((at, rank), ()), partial(fit, at, rank))
            for at in range(len(points))
            for rank in ranks
        )
    )


def _prefix(model: LowRank, rank: int, constant: bool) -> LowRank:
    """The model of the first codes, and of the last, which has the means, if there is one."""
    assert model.H is not None  # which is so with codes
    width = model.W.shape[1] - constant
    kept = [*range(min(rank, width)), *range(width, width + constant)]
    W, H = (np.ascontiguousarray(factor[:, kept]) for factor in (model.W, model.H))
    return LowRank(W, H)


def _tallies(
    b: Block,
    W: Array,
    H: Array,
    ranks: list[int],
    constant: bool,
    threshold: float,
    measure: str,
) -> tuple[Array, ...]:
    """For each rank: hits and answers of each label, and a sum over the rows.

    The sum is of the Jaccard index, of (score - y)², or of the precision of the three best.
    """
    codes, size = b.project(W), max(1, _CELLS // len(H))
    found: Any = None
    for start in range(0, max(1, len(codes)), size):
        rows = slice(start, min(start + size, len(codes)))
        y = b.backend.dense(b.Y, rows, codes.dtype)
        part = _tally(codes[rows], H, y, ranks, constant, threshold, measure)
        found = part if found is None else tuple(map(add, found, part))
    return found


def _tally(
    A: Array,
    H: Array,
    y: Array,
    ranks: list[int],
    constant: bool,
    threshold: float,
    measure: str,
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
        if measure == "squared":
            total = xp.sum((scores - y) ** 2)
        elif measure == "precision":
            # Labels that tie for the third place share it.
            best = scores >= xp.sort(scores, axis=1)[:, -min(_BEST, len(H))][:, None]
            total = xp.sum(count(said & best, 1) / count(best, 1))
        else:
            both, any_ = count(hits, 1), count(either, 1)
            total = xp.sum(xp.where(any_ > 0, both / xp.where(any_ > 0, any_, 1.0), 1.0))
        rows.append((count(hits, 0), count(yes, 0), total))
    return tuple(xp.stack(column) for column in zip(*rows))


def _macro_f1(held: Moments, hits: Array, answers: Array, total: Array) -> Array:
    both = answers + held.y_sum
    xp = array_namespace(both)
    return xp.mean(xp.where(both > 0, 2 * hits / xp.where(both > 0, both, 1.0), 0.0), axis=1)


MEASURES: dict[str, Callable[..., Array]] = {
    "macro_f1": _macro_f1,
    "accuracy": lambda held, hits, answers, total: total / held.n,
    "squared": lambda held, hits, answers, total: -total / held.n,
    "precision": lambda held, hits, answers, total: total / held.n,
}
"""From the moments and the tallies of held-out rows to one number a rank; larger is better."""
