"""Tacit: the estimator to reach for when labels are missing.

It fits ridge regression on features that it scales itself (level 0), lets labels speak for each
other (level 1) and fills in what was probably true (level 2): `levels.py` has the formulas. Where
most of what is true was said, the logistic loss may take the place of all that. Every
choice, and whether a level stays, is made by cross-validation on entries that were *said*; what
nobody said is never held for false when something is judged. `report_` says what was chosen, what
it brought and what it cost.

Scores become probabilities that a label is true by an isotonic map of out-of-fold scores and, where
silence means nothing, the share of true labels that were said (`tacit.calibration`). `complete`
also looks at what else was said of the row.

Where moments are too large (many features), ridge comes from conjugate gradients and one held-out
fold chooses; where even the weights are (many features and many labels), it is LEML's of low rank.

References: none of its own. Level 0 is Tikhonov's; level 1 is stacking (Wolpert 1992; Breiman and
Friedman 1997, "Curds and whey"); level 2 is one step of EM under Elkan and Noto's (2008) model; the
links of `complete` are EASE (Steck 2019) of a residual.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, label_counts
from tacit.base import Completion, MultiLabelEstimator, Problem, checked_k, shared_checks
from tacit.blocks import Blocks
from tacit.calibration import Monotone, calibrated
from tacit.fitting import descend
from tacit.labels import DENSE_LIMIT, TopK
from tacit.losses import Logistic, Probability
from tacit.methods.leml import LEML
from tacit.methods.tacit.levels import (
    EXPOSURES,
    LADDER,
    POWERS,
    START,
    Fold,
    Folds,
    Links,
    Solution,
    gain,
    linked,
    mean_gain,
    scored,
)
from tacit.methods.tacit.report import Report, Step
from tacit.models import LowRank
from tacit.models.columns import label_groups, newton_pass
from tacit.moments import Products
from tacit.numerics import sigmoid
from tacit.params import an_int, one_of
from tacit.scaling import Scaling, choices

__all__ = ["Tacit"]

_EXACT_FEATURES = 6_000  # up to here: moments, and every level
_PRIOR_FEATURES = 2_048  # up to here: the powers of (2), which take eigenvectors
_EXACT_LABELS = 6_000  # up to here: level 1 and links, which take labels × labels
_LONG_SOLVE = 2e10  # features² times labels
_IMPUTED_WORK = 4e10  # numbers of X times labels, up to which level 2 is tried
_CALIBRATED = 2 * 10**7  # entries
_LINKS = (10.0, 100.0, 1000.0)
_LOGISTIC = (0.1, 0.3)
_LOGISTIC_WORK = 5e10  # numbers of X times labels
_MOSTLY_SAID = 0.6
_CG: dict[str, Any] = dict(rtol=1e-2, max_iter=25)
_LOW_RANK: dict[str, Any] = dict(rank=400, max_iter=5, tol=1e-4)  # LEML's


Held = list[tuple[Blocks, Array]]
"""Rows, and weights that have not seen them."""


class Tacit(MultiLabelEstimator):
    """Choose, fit, stack, impute and calibrate, by what was said; for all three kinds of labels.

    Parameters
    ----------
    levels : {0, 1, 2}, default=2
        The highest level that may be used.
    scaling : {"auto", "none", "unit", "idf", "standard", "fourier"}, default="auto"
        How features are scaled; "auto" chooses: unit length with or without idf where X is sparse,
        standardised or random Fourier features where it is dense. See `tacit.scaling`.
    budget : float, str or None, default=None
        About how long choosing may take, in seconds or as "60s", "5min", "1h". What does not fit is
        left out, and `report_` says so; the last fit is not counted.
    cv : int, default=5
        Number of folds.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the random Fourier features.
    verbose : bool, default=False
        Say what was chosen as it is chosen.

    Attributes
    ----------
    model_ : LowRank
        The weights of the scaled features.
    report_ : Report
        What was tried and kept; `print(model.report_)`.
    exposure_ : float
        The share of true labels that were said, as estimated; 1 where a no was said.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(8)[[0, 1, 2, 3] * 10], np.eye(2)[[0, 0, 1, 1] * 10]
    >>> model = Tacit(random_state=0).fit(X, Y)
    >>> model.predict(X[:4]).toarray()[:, 0]
    array([1, 1, 0, 0], dtype=int8)
    """

    _kinds = ("positive-only", "complete", "masked")
    _learned = ("exposure_", "logistic_")
    _arrays = {
        "calibration_": (2, "*"),
        "completion_": (2, "*"),
        "links_": ("L", "L"),
        "weight_": ("*",),
        "shift_": ("*",),
        "draws_": ("*", "*"),
        "phase_": ("*",),
    }
    _checks = {
        "levels": one_of(0, 1, 2),
        "scaling": one_of("auto", "none", "unit", "idf", "standard", "fourier"),
        "budget": (lambda v: _seconds(v) is not None, 'None, seconds, or such as "60s" or "5min"'),
        "cv": an_int(at_least=2),
        **{
            name: check
            for name, check in shared_checks().items()
            if name not in ("normalize", "fit_intercept")
        },
    }

    normalize, fit_intercept = None, True  # the scaling is chosen, and keeps the constant feature

    def __init__(
        self,
        *,
        levels: Literal[0, 1, 2] = 2,
        scaling: str = "auto",
        budget: float | str | None = None,
        cv: int = 5,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state=None,
        verbose: bool = False,
    ):
        self.levels = levels
        self.scaling = scaling
        self.budget = budget
        self.cv = cv
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _in_folds(self) -> bool:
        return True

    @property
    def _loss(self) -> Probability:
        return Monotone(*self.calibration_)

    def _fit(self, problem: Problem) -> LowRank:
        if problem.n_samples < 2 * self.cv:
            raise ValueError(
                f"Tacit: cv={self.cv} folds need at least {2 * self.cv} rows; got n_samples = "
                f"{problem.n_samples}; give more rows, or a smaller cv"
            )
        self.report_, self._clock = Report(), Clock(_seconds(self.budget) or 0.0)
        self.logistic_ = 0
        size = problem.n_features * problem.n_labels
        if problem.n_features <= _EXACT_FEATURES and size <= DENSE_LIMIT:
            return self._fit_levels(problem)
        if size <= DENSE_LIMIT:
            return self._fit_by_gradients(problem)
        return self._fit_low_rank(problem)

    # From moments: every level

    def _fit_levels(self, problem: Problem) -> LowRank:
        folds, scaling, reg, found = self._level_0(problem)
        best = self.report_.steps[-1].gain
        if self.levels > 0 and self._worth("labels for each other", _too_many(problem)):
            mixed = ((f"β = {beta:g}", each) for beta, each in folds.in_labels(found, reg))
            best, found = self._kept("labels for each other", folds, mixed, best, found)
        if self.levels > 1 and self._worth("imputation", self._may_impute(problem)):
            filled = self._imputations(problem, folds, found, reg)
            best, found = self._kept("imputation", folds, filled, best, found)
        self._set_scaling(scaling)
        pairs = zip(folds.folds, found.without)
        held = [(fold.blocks, folds.back(W)) for fold, W in pairs]
        W = folds.back(found.W)
        if self.levels > 0 and self._worth("logistic loss", self._may_be_logistic(problem, held)):
            held, W = self._logistic(problem, scaling, held, W)
        self._calibrate(problem, held)
        return LowRank(problem.backend.to_numpy(W), None)

    def _level_0(self, problem: Problem) -> tuple[Folds, Scaling, float, Solution]:
        """The scaling, the power of the prior and λ of the largest gain."""
        best: tuple = (-1.0,)
        # Where solving takes long, one fold chooses, and the others follow.
        judged = 1 if problem.n_features**2 * problem.n_labels > _LONG_SOLVE else self.cv
        for kind in self._kinds_of_scaling(problem):
            scaling = Scaling.of(kind, problem.blocks, problem.rng)
            parts = [problem.fold(f, self.cv).map(scaling) for f in range(self.cv)]
            rows = Folds([Fold.of(part, _like(problem)) for part in parts])
            step = START
            # Fourier features come with a prior of their own, and standardised ones want none.
            sparse = kind in ("none", "unit", "idf") and problem.n_features - 1 <= _PRIOR_FEATURES
            powers = POWERS if sparse else POWERS[:1]
            for power in powers:
                folds = rows.with_prior(power)
                at = partial(folds.level_0, judged=judged)
                found, step = _climb(at, step, self._clock.over)
                if found[0] > best[0]:
                    best = (*found, kind, power, step, folds, scaling)
                if self._clock.over():
                    break
            if self._clock.over():
                break
        found_gain, without, kind, power, step, folds, scaling = best
        if judged < self.cv:
            found_gain, without = folds.level_0(step)
        reg = LADDER[step]
        choice = f"{kind} features, λ = {reg:.3g}, prior power {power:g}"
        self._tell(Step("ridge", choice, found_gain, 0.0, True, self._clock.lap()))
        return folds, scaling, reg, Solution(folds.ridge_of_all(reg), without)

    def _kinds_of_scaling(self, problem: Problem) -> tuple[str, ...]:
        return choices(problem.blocks) if self.scaling == "auto" else (self.scaling,)

    def _may_impute(self, problem: Problem) -> str:
        if problem.kind == "complete":
            return "nothing is missing"
        entries = problem.blocks.sum(_stored)
        return "" if entries * problem.n_labels <= _IMPUTED_WORK else "too many entries"

    def _imputations(
        self, problem: Problem, folds: Folds, found: Solution, reg: float
    ) -> Iterator[tuple[str, Solution]]:
        if problem.kind == "masked":
            known, rows = problem.blocks.sum(_known_entries)
            like = found.W[:1, :1]
            xp = array_namespace(like)
            share = xp.clip(xp.astype(known, like.dtype) / rows, 1 / rows, 1.0)
            yield "unknown entries filled in", folds.imputed(found, reg, share)
            return
        for exposure in EXPOSURES:
            yield f"c = {exposure:g}", folds.imputed(found, reg, exposure)

    def _may_be_logistic(self, problem: Problem, held: Held) -> str:
        """Why not to try a loss that takes silence for no."""
        if problem.kind == "positive-only":
            _, said = calibrated(*_sampled(held, None), known=False)
            if said < _MOSTLY_SAID:
                return f"only about {said:.0%} of the true labels were said"
        entries = problem.blocks.sum(_stored)
        return "" if entries * problem.n_labels <= _LOGISTIC_WORK else "too many entries"

    def _logistic(
        self, problem: Problem, scaling: Scaling, held: Held, W: Array
    ) -> tuple[Held, Array]:
        """The weights of the logistic loss, if they rank one fold better than those that are."""
        fold, parts = problem.fold(0, self.cv, inside=False), self._held(problem, scaling)
        before = mean_gain([part.sum(gain, held[0][1]) for part in parts])
        tried = {}
        for reg in _LOGISTIC:
            Z = self._newton(problem, fold.map(scaling), reg, W)
            tried[reg] = mean_gain([part.sum(gain, Z) for part in parts]), Z
            if self._clock.over():
                break
        reg = max(tried, key=lambda reg: tried[reg][0])
        top, Z = tried[reg]
        kept = top > before
        self._tell(Step("logistic loss", f"λ = {reg:g}", top, before, kept, self._clock.lap()))
        if not kept:
            return held, W
        self.logistic_ = 1
        return [(part, Z) for part in parts], self._newton(
            problem, problem.blocks.map(scaling), reg, Z
        )

    def _newton(self, problem: Problem, blocks: Blocks, reg: float, like: Array) -> Array:
        groups = label_groups(problem.n_samples, problem.n_labels)
        start = problem.backend.asarray(np.zeros(like.shape, problem.dtype))
        return newton_pass(blocks, lambda labels: Logistic(), reg, start, groups, tol=1e-3)[0]

    def _worth(self, level: str, why_not: str) -> bool:
        """Whether to try a level; if there is a reason not to, or no time, the report says so."""
        why_not = why_not or ("the budget is spent" if self._clock.over() else "")
        if why_not:
            self.report_.notes.append(f"{level}: not tried, since {why_not}")
        return not why_not

    def _kept(
        self,
        level: str,
        folds: Folds,
        tried: Iterator[tuple[str, Solution]],
        best: float,
        found: Solution,
    ) -> tuple[float, Solution]:
        """The best of what was tried, if it beats what there is."""
        top: tuple = (-1.0, "", found)
        for choice, solution in tried:
            got = folds.gain(solution.without)
            top = max(top, (got, choice, solution), key=lambda t: t[0])
            if self._clock.over():
                break
        kept = top[0] > best
        self._tell(Step(level, top[1], top[0], best, kept, self._clock.lap()))
        return (top[0], top[2]) if kept else (best, found)

    def _tell(self, step: Step) -> None:
        self.report_.steps.append(step)
        if self.verbose:
            print(f"Tacit: {step}", file=sys.stderr)

    # From products: many features

    def _fit_by_gradients(self, problem: Problem) -> LowRank:
        """Ridge by conjugate gradients, chosen on one fold."""
        best: tuple = (-1.0,)
        for kind in self._kinds_of_scaling(problem):
            scaling = Scaling.of(kind, problem.blocks, problem.rng)
            rest = Products(problem.fold(0, self.cv, inside=False).map(scaling), **_CG)
            held, last = self._held(problem, scaling), [None]

            def at(j: int, rest=rest, held=held, last=last) -> tuple[float, Array]:
                last[0] = rest.regress(rest.xy, LADDER[j], last[0])
                return mean_gain([part.sum(gain, last[0]) for part in held]), last[0]

            found, step = _climb(at, START, self._clock.over)
            if found[0] > best[0]:
                best = (*found, kind, LADDER[step], scaling)
            if self._clock.over():
                break
        top, W, kind, reg, scaling = best
        choice = f"{kind} features, λ = {reg:.3g}, by conjugate gradients"
        self._tell(Step("ridge", choice, top, 0.0, True, self._clock.lap()))
        self._set_scaling(scaling)
        self._calibrate(problem, self._halves(problem, scaling, reg))
        whole = Products(problem.blocks.map(scaling), **_CG)
        return LowRank(problem.backend.to_numpy(whole.regress(whole.xy, reg, W)), None)

    def _halves(self, problem: Problem, scaling: Scaling, reg: float) -> Held:
        """Each half of the rows, and the weights of the other: what links and maps learn from."""
        halves = [problem.fold(half, 2).map(scaling) for half in (0, 1)]
        found = (Products(half, **_CG) for half in reversed(halves))
        return [(half, other.regress(other.xy, reg)) for half, other in zip(halves, found)]

    # Of low rank: many features and many labels

    def _fit_low_rank(self, problem: Problem) -> LowRank:
        kind = self._kinds_of_scaling(problem)[0]
        scaling = Scaling.of(kind, problem.blocks, problem.rng)
        self._set_scaling(scaling)
        method = LEML(**_LOW_RANK, device=self.device, verbose=self.verbose)
        method.rank_, method.reg_ = method.rank, method.reg
        model = self._leml(method, problem, problem.fold(0, self.cv, inside=False).map(scaling))
        W, H = (problem.backend.asarray(factor) for factor in (model.W, model.H))
        held = self._held(problem, scaling)
        top = mean_gain([part.sum(gain, W, H) for part in held])
        choice = f"{kind} features, LEML of rank {method.rank_}"
        self._tell(Step("low rank", choice, top, 0.0, True, self._clock.lap()))
        self._calibrate(problem, [(part, W) for part in held], H)
        return self._leml(method, problem, problem.blocks.map(scaling))

    def _leml(self, method: LEML, problem: Problem, blocks: Blocks) -> LowRank:
        """LEML of these rows, in passes of its own: no checkpoint, which would mix two fits."""
        self.history_ = method.history_ = []
        steps = lambda start, step, until: descend(
            method, problem.backend, start, step, None, until
        )
        return method._fit(replace(problem, blocks=blocks, resumable=False, _descend=steps))

    def _held(self, problem: Problem, scaling: Scaling) -> list[Blocks]:
        """The first fold in two halves, so that links can be judged on rows they have not seen."""
        return [problem.fold(f, 2 * self.cv).map(scaling) for f in (0, self.cv)]

    # Probabilities

    def _calibrate(self, problem: Problem, held: Held, H: Array | None = None) -> None:
        """The maps from scores to probabilities, and the links that complete rows."""
        sure = problem.kind != "positive-only"
        told, self.exposure_ = calibrated(*_sampled(held, H), known=sure)
        self.calibration_ = _knots(told, problem.dtype)
        links = self._link(problem, held, H)
        if links is not None:
            told, _ = calibrated(*_sampled(held, H, links), known=sure)
        self.completion_ = _knots(told, problem.dtype)
        self.links_ = None if links is None else _numbers(problem, links.A)
        if not sure:
            self.report_.notes.append(f"about {self.exposure_:.0%} of the true labels were said")

    def _link(self, problem: Problem, held: Held, H: Array | None) -> Links | None:
        """The links of the largest gain, each part of the rows judged by those of the others."""
        if not self._worth("links", _too_many(problem) if H is None else "the rank is low"):
            return None
        logistic = bool(self.logistic_)
        parts = [blocks.sum(_label_statistics, W, logistic) for blocks, W in held]
        links_of = lambda YtS, YtY, reg: Links(linked(YtS, YtY, reg), logistic)
        YtS, YtY = (sum(part[i] for part in parts) for i in (0, 1))
        judge = lambda links: mean_gain(
            [blocks.sum(gain, W, None, A) for (blocks, W), A in zip(held, links)]
        )
        before = judge([None] * len(held))
        tried = {reg: judge([links_of(YtS - a, YtY - b, reg) for a, b in parts]) for reg in _LINKS}
        best = max(tried, key=tried.__getitem__)
        kept = tried[best] > before
        self._tell(Step("links", f"λ = {best:g}", tried[best], before, kept, self._clock.lap()))
        return links_of(YtS, YtY, best) if kept else None

    # Prediction

    def _set_scaling(self, scaling: Scaling) -> None:
        self.scaling_ = scaling.kind
        self.weight_, self.shift_ = scaling.weight, scaling.shift
        self.draws_, self.phase_ = scaling.draws, scaling.phase

    def _scaled(self, block: Block) -> Block:
        return Scaling(self.scaling_, self.weight_, self.shift_, self.draws_, self.phase_)(block)

    def _latent(self, block: Block) -> Array:
        return self.model_.codes(self._scaled(block))

    def predict_proba(self, X: Any, *, what: str = "true") -> np.ndarray:
        """Probabilities of shape (n_samples, n_labels).

        Parameters
        ----------
        what : {"true", "said"}, default="true"
            p, that the label is true; or c p, that it is true and was said.
        """
        if what not in ("true", "said"):
            raise ValueError(f'what must be "true" or "said"; got {what!r}')
        probability = super().predict_proba(X)
        return probability if what == "true" else self.exposure_ * probability

    def complete(self, X: Any, Y: Any, k: int = 10, *, fold_in: bool = True) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by probability: that of being
        true though it was not said. Candidates are the entries that were not observed (masked
        labels) or not said yes (any other labels). With `fold_in` what else was said of the row
        counts too; without, the features alone decide.
        """
        X, labels = self._to_complete(X, Y)
        found = self._top_k(X, checked_k(k), labels, self._linked if fold_in else None)
        return self._unsaid(found, self.completion_ if fold_in else self.calibration_)

    def _linked(self, block: Block) -> Array:
        codes = self._codes(block)
        if self.links_ is None:
            return codes
        return Links(block.kernels.kept(self.links_), bool(self.logistic_)).added(block, codes)

    def _unsaid(self, found: TopK, knots: np.ndarray) -> Completion:
        """P(true | unsaid) = (1 - c) p / (1 - c p) for p = P(true)."""
        row, place = np.nonzero(found.indices >= 0)
        p, c = Monotone(*knots).probability(found.scores[row, place]), self.exposure_
        unsaid = np.clip((1 - c) * p / (1 - c * p), 0, 1) if c < 1 else p
        order = np.argsort(-found.scores[row, place], kind="stable")
        return Completion(row[order], found.indices[row, place][order], unsaid[order])

    # Saving

    def _saved(self) -> tuple[dict, dict[str, np.ndarray]]:
        header, arrays = super()._saved()
        return header | {"scaling": self.scaling_, "report": self.report_.as_dict()}, arrays

    def _restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Self:
        self.scaling_, self.report_ = str(header["scaling"]), Report.from_dict(header["report"])
        return super()._restore(header, arrays)

    def _n_weights(self, n_features: int) -> int:
        return 1 + (n_features if self.phase_ is None else len(self.phase_))


class Clock:
    """The time since the start, since the last lap, and whether a budget is spent."""

    def __init__(self, budget: float):
        self.begun = self.last = time.perf_counter()
        self.budget = budget

    def over(self) -> bool:
        return time.perf_counter() - self.begun > self.budget

    def lap(self) -> float:
        last, self.last = self.last, time.perf_counter()
        return self.last - last


def _seconds(budget: Any) -> float | None:
    """A budget in seconds, infinity for None, and None where it is none."""
    if budget is None:
        return float("inf")
    if isinstance(budget, Real) and not isinstance(budget, bool):
        return float(budget) if float(budget) > 0 else None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", str(budget))
    return float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]] or None if found else None


def _climb(at: Callable[[int], tuple], step: int, over: Callable[[], bool]) -> tuple[tuple, int]:
    """The best of `at` on the ladder of λ, uphill from `step`."""
    best = at(step)
    for way in (1, -1):
        while 0 <= step + way < len(LADDER) and not over():
            found = at(step + way)
            if found[0] <= best[0]:
                break
            best, step = found, step + way
    return best, step


def _too_many(problem: Problem) -> str:
    most = f"there are more than {_EXACT_LABELS:,} labels"
    return most if problem.n_labels > _EXACT_LABELS else ""


def _sampled(
    held: Held, H: Array | None, links: Links | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of entries that the weights have not seen, and whether they were said."""
    parts = [blocks.sum(_entries, W, H, links, _CALIBRATED // len(held)) for blocks, W in held]
    scores, said = (np.concatenate([part[i].flat for part in parts]) for i in (0, 1))
    return scores, said


class _Flat:
    """Flat arrays that add by standing one behind the other."""

    def __init__(self, flat: np.ndarray):
        self.flat = flat

    def __add__(self, other: _Flat) -> _Flat:
        return _Flat(np.concatenate([self.flat, other.flat]))


def _entries(
    b: Block, W: Array, H: Array | None, links: Links | None, most: int
) -> tuple[_Flat, _Flat]:
    parts, left = [], most
    for part, S in scored(b, W, H, links):
        rows = slice(max(1, left // S.shape[1]))
        S, said = b.kernels.to_numpy(S[rows]).astype(np.float32), part.Y.scipy()[rows].toarray()
        known = np.isfinite(S)
        parts.append((S[known], said[known]))
        left -= S.size
        if left <= 0:
            break
    scores, said = (np.concatenate(arrays) for arrays in zip(*parts))
    return _Flat(scores), _Flat(said)


def _label_statistics(b: Block, W: Array, logistic: bool) -> tuple[Array, Array]:
    """YᵀS and YᵀY, with probabilities for S where it is of logits."""
    S = b.project(W)
    YtS = b.kernels.spmm_t(b.Y, sigmoid(S) if logistic else S)
    return YtS, array_namespace(YtS).astype(b.kernels.cross(b.Y, b.Y), YtS.dtype)


def _stored(b: Block) -> int:
    return b.X.nnz if hasattr(b.X, "nnz") else int(np.prod(b.X.shape))


def _known_entries(b: Block) -> tuple[Array, int]:
    """How many entries of each label are known, of how many."""
    return label_counts(replace(b, Y=b.omega)), b.Y.shape[0]


def _knots(told: Monotone, dtype: np.dtype) -> np.ndarray:
    return np.stack([told.scores, told.rates]).astype(dtype)


def _numbers(problem: Problem, array: Array) -> np.ndarray:
    return np.ascontiguousarray(problem.backend.to_numpy(array), dtype=problem.dtype)


def _like(problem: Problem) -> Any:
    """The float type of the data, as the backend names it."""
    return problem.backend.asarray(np.zeros(1, problem.dtype)).dtype
