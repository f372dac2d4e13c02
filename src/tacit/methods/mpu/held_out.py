"""What MPU finds out beside its weights: the rates c, and the threshold."""

from __future__ import annotations

from itertools import islice
from typing import Literal

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.engines.descend import settled
from tacit.engines.labelwise import label_groups, newton_pass
from tacit.engines.losses import Logistic, PositiveUnlabelled
from tacit.estimators import Problem
from tacit.labels import Labels
from tacit.methods.mpu.folded_batches import FoldedBatches
from tacit.metrics import best_threshold
from tacit.missing import HeldOut, Rates, profile_rates

__all__ = ["given_rates", "held_out_rates", "likeliest_rates", "tuned_threshold"]

_GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of c, to be learned
_PROFILE_PASSES = 3  # of Newton's method for each
_HELD_SCORES = 2**28  # at most, that c is estimated from
_TUNED_SCORES = 2**24  # at most, that a threshold is chosen from


def given_rates(c: float, n_labels: int) -> Rates:
    """One known rate for all labels."""
    return Rates.of(c, c, c, (c, c, c), "it was given and not estimated", np.ones(n_labels))


def held_out_rates(
    rows: FoldedBatches,
    W: Array,
    estimator: Literal["e1", "e2", "e3"],
    by: Literal["global", "labels"],
) -> Rates:
    """Elkan and Noto's, from the fold that W has not seen, or some of it."""
    most = max(1, _HELD_SCORES // (W.shape[1] * rows.size))
    parts = [_held_out(b, W) for _, b in islice(rows.batches(only=0), most)]
    return sum(parts[1:], parts[0]).c(estimator, by=by)


def _held_out(b: Block, W: Array) -> HeldOut:
    return HeldOut.of(b.Y.scipy(), b.backend.to_numpy(sigmoid(b.project(W))))


def likeliest_rates(problem: Problem, rows: FoldedBatches, reg: float, tol: float) -> Rates:
    """J minimised with each c of a grid, from c = 1 downwards, for every label."""
    blocks = rows.for_newton()
    groups, noes = label_groups(problem.n_samples, problem.n_labels), rows.with_noes
    Z = problem.backend.asarray(np.zeros((problem.n_features, problem.n_labels), problem.dtype))
    values = []
    for c in reversed(_GRID):
        loss = lambda _, c=c: PositiveUnlabelled(c, noes=noes) if c < 1 or noes else Logistic()
        last = [np.inf]
        for _ in range(_PROFILE_PASSES):
            Z, J = newton_pass(blocks, loss, reg, Z, groups, tol)
            last.append(float(array_namespace(J).sum(J)))
            if settled(last, tol):
                break
        values.append(problem.backend.to_numpy(J))
    return profile_rates(np.asarray(_GRID), np.stack(values[::-1]), rows.said()[0])


def tuned_threshold(rows: FoldedBatches, W: Array, c: np.ndarray) -> float:
    """The threshold of largest micro-F1 on the fold that W has not seen, or some of it."""
    blocks, scores, room = [], [], _TUNED_SCORES
    for _, b in rows.batches(only=0):
        blocks.append(b)
        scores.append(b.backend.to_numpy(sigmoid(b.project(W))))
        room -= scores[-1].size
        if room <= 0:
            break
    stacked = lambda patterns: sp.csr_array(sp.vstack([S.scipy() for S in patterns]))
    said = stacked([b.Y for b in blocks])
    if blocks[0].omega is None:
        truth = Labels("positive-only", said)
    else:
        truth = Labels("masked", said, stacked([b.omega for b in blocks]))
    return best_threshold(truth, np.concatenate(scores), c=c)
