"""Tacit: the estimator to reach for when labels are missing.

It fits ridge regression on features that it scales itself (level 0), lets labels speak for each
other (level 1), lets features tell by coming together (products) and fills in what was probably
true (level 2): `levels.py` has the formulas. Then it
looks again at the few labels that are in question in a row (level 3,
`tacit.methods.tacit.second_look`). Every choice, and whether a level stays, is made by
cross-validation on entries that were *said*; what nobody said is never held for false when
something is judged. `report_` says what was chosen, what it brought and what it cost.

Scores become probabilities that a label is true by an isotonic map of out-of-fold scores and, where
silence means nothing, the share of true labels that were said (`tacit.methods.tacit.calibration`).
`complete` also looks at what else was said of the row.

Where moments are too large (many features), ridge comes from conjugate gradients and one held-out
fold chooses; where even the weights are (many features and many labels), each feature stands by
itself (`tacit.methods.tacit.by_feature`) or, of dense features and masked labels, it is LEML's of
low rank.

References: none of its own. Level 0 is Tikhonov's; level 1 is stacking (Wolpert 1992; Breiman and
Friedman 1997, "Curds and whey"); level 2 is one step of EM under Elkan and Noto's (2008) model; the
links of `complete` are EASE (Steck 2019).
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import chain
from numbers import Real
from operator import add
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block, label_counts
from tacit.basics.params import an_int, one_of
from tacit.blocks import Blocks
from tacit.engines.descend import Loop
from tacit.engines.moments import Products
from tacit.estimators import Facts, Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.features.scaling import Scaling, choices
from tacit.labels import DENSE_LIMIT, TopK
from tacit.methods.leml.minimise import Minimiser
from tacit.methods.tacit.by_feature import RARITIES, Tally
from tacit.methods.tacit.calibration import Monotone, calibrated
from tacit.methods.tacit.levels import (
    EXPOSURES,
    LADDER,
    POWERS,
    SILENT,
    START,
    UNSAID,
    Fold,
    Folds,
    HeldOutModel,
    Solution,
    down_weight_silent_rows,
    ease_links,
    gain,
    gain_of_completion,
    gains_of,
    is_silent_row,
    mean_gain,
    scored,
)
from tacit.methods.tacit.model import TacitModel, listed
from tacit.methods.tacit.report import Report, Step
from tacit.methods.tacit.second_look import OffListEntries, SecondLook, Shortlists, rows_of
from tacit.metrics.top import contains
from tacit.models import LowRank

__all__ = ["Tacit"]

_EXACT_FEATURES = 6_000  # up to here: moments, and every level
_PRIOR_FEATURES = 2_048  # up to here: the powers of (2), which take eigenvectors
_EXACT_LABELS = 6_000  # up to here: level 1 and links, which take labels × labels
_LONG_SOLVE = 2e10  # features² times labels
_DIRECTIONS = 100  # of which products are taken, at most
_PRODUCTS = 5 * 10**8  # entries
_MULTIPLIED = 5e10, 5e12  # those times labels: on the host, and on a GPU, for minutes either way
_IMPUTED_WORK = 4e10  # numbers of X times labels, up to which level 2 is tried
_CALIBRATED = 2 * 10**7  # entries
_WORTH = 1.01  # a gain of level 0's weights below this is not worth what later levels lose by it
_LINKS = (10.0, 100.0, 1000.0)
_DRAWN = 10  # labels of a row beyond its shortlist, where the first model is rough
_LOOKED = (0.1, 0.3, 1.0, 3.0, 10.0)  # its C
_SHARES = (1.0, 0.5)
_LOOK_WORK = 1e9  # numbers of X, once for each label of a row's shortlist
_CG: dict[str, Any] = dict(rtol=1e-2, max_iter=25)
_LEML_PASSES, _LEML_TOL = 5, 1e-4
_LOW_RANK, _LOW_RANK_REG = 400, 1.0  # LEML's
_KNOWN_RANKS, _KNOWN_REG = (10, 30, 100), 3.0  # and of the known entries alone
_KNOWN_ENTRIES = 10**7  # up to which it is tried: a minute for each of some ten fits


Part = tuple[Blocks, HeldOutModel]
"""Rows, and a model that has not seen them."""
HeldOutParts = list[Part]


class Tacit(MultiLabelEstimator):
    """Choose, fit, stack, impute and calibrate, by what was said; for all three kinds of labels.

    Parameters
    ----------
    levels : {0, 1, 2, 3}, default=3
        The highest level that may be used: ridge, labels for each other, imputation, and a second
        look at the best labels of a row. Products of features belong to all of them.
    scaling : {"auto", "none", "unit", "idf", "standard", "fourier"}, default="auto"
        How features are scaled; "auto" chooses: unit length with or without idf where X is sparse,
        standardised or random Fourier features where it is dense. See `tacit.features.scaling`.
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
        Draws the random Fourier features, and where LEML starts.
    verbose : bool, default=False
        Say what was chosen as it is chosen.

    Attributes
    ----------
    model_ : TacitModel
        The scaling, the weights, and what was kept beside them.
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

    label_kinds = ("positive-only", "complete", "masked")
    model_kinds = (TacitModel,)
    deals_rows = "folds"
    _checks = {
        "levels": one_of(0, 1, 2, 3),
        "scaling": one_of("auto", "none", "unit", "idf", "standard", "fourier"),
        "budget": (lambda v: _seconds(v) is not None, 'None, seconds, or such as "60s" or "5min"'),
        "cv": an_int(at_least=2),
        **shared_checks("normalize", "fit_intercept"),
    }

    normalize, fit_intercept = None, True  # the scaling is chosen, and keeps the constant feature

    def __init__(
        self,
        *,
        levels: Literal[0, 1, 2, 3] = 3,
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
    def report_(self) -> Report:
        return self.model_.report

    @property
    def exposure_(self) -> float:
        return self.model_.exposure

    def _fit(self, problem: Problem) -> Fit:
        if problem.n_samples < 2 * self.cv:
            raise ValueError(
                f"Tacit: cv={self.cv} folds need at least {2 * self.cv} rows; got n_samples = "
                f"{problem.n_samples}; give more rows, or a smaller cv"
            )
        self._report, self._clock = Report(), Clock(_seconds(self.budget) or 0.0)
        if not self._full_rank(problem.n_features, problem.n_labels):
            sparse = problem.blocks.sum(_laid_out) == 0
            sparse &= self._kinds_of_scaling(problem)[0] in ("none", "unit", "idf")
            if sparse and problem.kind != "masked":
                return self._fit_by_feature(problem)
            return self._fit_low_rank(problem)
        if problem.n_features <= _EXACT_FEATURES:
            return self._fit_levels(problem)
        return self._fit_by_gradients(problem)

    def _full_rank(self, n_features: int, n_labels: int) -> bool:
        """Whether weights of all features and labels are worth their room.

        A GPU may have room for more, a billion on yso_finna_en. But each feature by itself ranks
        as well there, with four million, once the second look learns beyond the shortlists.
        """
        return n_features * n_labels <= DENSE_LIMIT

    def _working_set(self, known: Facts) -> int:
        if self._full_rank(known.n_features, known.n_labels):
            products = _n_products(known) if known.n_features <= _EXACT_FEATURES else 0
            return super()._working_set(replace(known, n_features=known.n_features + products))
        rank = min(_LOW_RANK, known.n_labels)
        return rank * (10 * known.n_features + 6 * known.n_labels + 3 * known.n_samples)

    # From moments: every level

    def _fit_levels(self, problem: Problem) -> Fit:
        folds, scaling, reg, found = self._level_0(problem)
        best, low_rank = self._report.steps[-1].gain, None
        trained: list[float] = []
        if self._should_try("less weight to what is unsaid", self._may_weigh(problem)):
            weighed = ((f"a = {a:g}", folds.weighed(found, reg, a)) for a in UNSAID)
            best, found = self._keep_if_better(
                "less weight to what is unsaid", folds, weighed, best, found, _WORTH
            )
        if problem.kind == "masked" and self._should_try("low rank", _too_many_known(problem)):
            low = self._low_ranks(problem, folds, scaling, trained)
            ridge = found
            best, found = self._keep_if_better("low rank", folds, low, best, found)
            low_rank = None if found is ridge else found
        already = "those of low rank do already" if found.unsaid == 0 else ""
        if self.levels > 0 and self._should_try(
            "labels for each other", already or _too_many(problem)
        ):
            mixed = ((f"β = {beta:g}", each) for beta, each in folds.in_labels(found))
            best, found = self._keep_if_better("labels for each other", folds, mixed, best, found)
        if self._should_try("products", already or self._may_multiply(problem, scaling)):
            wider = scaling.with_products(problem.blocks, _n_directions(problem), problem.rng)
            more = folds.beside(self._in_turn(problem, wider))
            tried = self._with_products(problem, more, reg, found.unsaid)
            best, multiplied = self._keep_if_better("products", more, tried, best, found)
            if multiplied is not found:
                folds, scaling, found = more, wider, multiplied
        if self.levels > 1 and self._should_try("imputation", self._may_impute(problem)):
            filled = self._imputations(problem, folds, found, reg)
            best, found = self._keep_if_better("imputation", folds, filled, best, found)
        held = self._held(folds, found.without)
        nested_folds = (
            [held[k], *self._held(folds, found.nested_folds(k), k)] for k in range(self.cv)
        )
        beside = self._calibrate_and_rerank(problem, scaling, held, nested_folds)
        history = trained if found is low_rank else []  # not those of a trial
        return self._fitted(problem, scaling, folds.back(found.W), None, beside, history)

    def _low_ranks(
        self, problem: Problem, folds: Folds, scaling: Scaling, trained: list[float]
    ) -> Iterator[tuple[str, Solution]]:
        """LEML of the known entries alone, of the rank that ranks the first fold best.

        `trained` becomes the objectives of the fit to all rows.
        """

        def fitted(rank: int, *without: int) -> Array:
            rows = problem.fold(without, self.cv, inside=False) if without else problem.blocks
            model, history = self._leml(problem, rows, scaling, rank, _KNOWN_REG)
            if not without:
                trained[:] = history
            place = problem.backend.asarray
            return folds.into(place(model.W) @ place(model.H).T)

        def at(step: int) -> tuple[float, Array]:
            W = fitted(ranks[step], 0)
            return folds.gain((W,)), W

        ranks = sorted({min(r, problem.n_features, problem.n_labels) for r in _KNOWN_RANKS})
        (_, W), step = _climb(at, len(ranks) // 2, len(ranks), self._clock.over)
        of = partial(fitted, ranks[step])
        without = (W, *(of(k) for k in range(1, self.cv)))
        yield f"LEML of rank {ranks[step]}", Solution(of(), without, of, unsaid=0.0)

    def _level_0(self, problem: Problem) -> tuple[Folds, Scaling, float, Solution]:
        """The scaling, the power of the prior and λ of the largest gain."""
        best: tuple = (-1.0,)
        # Where solving takes long, one fold chooses, and the others follow.
        judged = 1 if _long(problem) else self.cv
        for kind in self._kinds_of_scaling(problem):
            scaling = Scaling.of(kind, problem.blocks, problem.rng)
            rows = Folds(self._in_turn(problem, scaling))
            step = START
            # Fourier features come with a prior of their own, and standardised ones want none.
            sparse = kind in ("none", "unit", "idf") and problem.n_features - 1 <= _PRIOR_FEATURES
            powers = POWERS if sparse else POWERS[:1]
            for power in powers:
                folds = rows.with_prior(power)
                at = partial(folds.level_0, judged=judged)
                found, step = _climb(at, step, len(LADDER), self._clock.over)
                if found[0] > best[0]:
                    best = (*found, kind, power, step, folds, scaling)
                if self._clock.over():
                    break
            if self._clock.over():
                break
        found_gain, without, kind, power, step, folds, scaling = best
        if judged < self.cv:
            found_gain, without = folds.level_0(step)
        else:
            for weight in SILENT[1:] if folds.some_silent else ():
                if self._clock.over():
                    break
                other = folds.with_silent(weight)
                got, found = other.level_0(step)
                if got > _WORTH * found_gain:
                    found_gain, without, folds = got, found, other
        reg = LADDER[step]
        choice = f"{kind} features, λ = {reg:.3g}, prior power {power:g}"
        if folds.some_silent:
            choice += f", silent rows at {folds.silent:g}"
        self._tell(Step("ridge", choice, found_gain, 0.0, True, self._clock.lap()))
        return folds, scaling, reg, folds.ridge(reg, without)

    def _in_turn(self, problem: Problem, scaling: Scaling) -> list[Fold]:
        parts = (problem.fold(f, self.cv).map(scaling) for f in range(self.cv))
        return [Fold.of(part, _like(problem)) for part in parts]

    def _held(
        self, folds: Folds, weights: tuple[Array, ...], but: int | None = None
    ) -> HeldOutParts:
        rows = [fold.blocks for k, fold in enumerate(folds.folds) if k != but]
        return [
            (blocks, HeldOutModel(folds.back(W))) for blocks, W in zip(rows, weights, strict=True)
        ]

    def _kinds_of_scaling(self, problem: Problem) -> tuple[str, ...]:
        return choices(problem.blocks) if self.scaling == "auto" else (self.scaling,)

    def _may_multiply(self, problem: Problem, scaling: Scaling) -> str:
        if scaling.kind not in ("unit", "idf"):
            return "rows are not of unit length"
        entries = problem.n_samples * _n_products(problem)
        most = _MULTIPLIED[problem.backend.room() is not None]
        many = entries > _PRODUCTS or entries * problem.n_labels > most
        return "there would be too many" if many else ""

    def _with_products(
        self, problem: Problem, folds: Folds, reg: float, unsaid: float
    ) -> Iterator[tuple[str, Solution]]:
        """Ridge with products beside the features, and level 1 upon it."""
        found = folds.ridge(reg, folds.level_0(LADDER.index(reg))[1])
        if unsaid < 1:
            found = folds.weighed(found, reg, unsaid)
        choice = f"of {_n_directions(problem)} directions"
        yield choice, found
        if self.levels > 0 and not _too_many(problem):
            for beta, mixed in folds.in_labels(found):
                yield f"{choice}, β = {beta:g}", mixed

    def _may_weigh(self, problem: Problem) -> str:
        return self._may_impute(problem) or ("solving takes long" if _long(problem) else "")

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

    def _should_try(self, level: str, why_not: str) -> bool:
        """Whether to try a level; if there is a reason not to, or no time, the report says so."""
        why_not = why_not or ("the budget is spent" if self._clock.over() else "")
        if why_not:
            self._report.notes.append(f"{level}: not tried, since {why_not}")
        return not why_not

    def _keep_if_better(
        self,
        level: str,
        folds: Folds,
        tried: Iterator[tuple[str, Solution]],
        best: float,
        found: Solution,
        worth: float = 1.0,
    ) -> tuple[float, Solution]:
        """The best of what was tried, if it beats `worth` times what there is."""
        top: tuple = (-1.0, "", found)
        for choice, solution in tried:
            got = folds.gain(solution.without)
            top = max(top, (got, choice, solution), key=lambda t: t[0])
            if self._clock.over():
                break
        kept = top[0] > worth * best
        self._tell(Step(level, top[1], top[0], best, kept, self._clock.lap()))
        return (top[0], top[2]) if kept else (best, found)

    def _tell(self, step: Step) -> None:
        self._report.steps.append(step)
        if self.verbose:
            print(f"Tacit: {step}", file=sys.stderr)

    # From products: many features

    def _fit_by_gradients(self, problem: Problem) -> Fit:
        """Ridge by conjugate gradients, λ and the scaling chosen on one fold."""
        best: tuple = (-1.0,)
        step = START
        for kind in self._kinds_of_scaling(problem):
            scaling = Scaling.of(kind, problem.blocks, problem.rng)
            rest = _products(problem.fold(0, self.cv, inside=False), scaling)
            judged, last = problem.fold(0, self.cv).map(scaling), [None]

            def at(j: int, rest=rest, judged=judged, last=last) -> tuple[float, Array]:
                last[0] = rest.regress(rest.xy, LADDER[j], last[0])
                return mean_gain([judged.sum(gain, HeldOutModel(last[0]))]), last[0]

            found, step = _climb(at, step, len(LADDER), self._clock.over)
            if found[0] > best[0]:
                best = (*found, kind, LADDER[step], scaling)
            if self._clock.over():
                break
        top, W, kind, reg, scaling = best
        choice = f"{kind} features, λ = {reg:.3g}, by conjugate gradients"
        self._tell(Step("ridge", choice, top, 0.0, True, self._clock.lap()))

        def of(k: int, *without: int, W: Array | None = None) -> tuple[Blocks, HeldOutModel]:
            if W is None:
                rest = _products(problem.fold((k, *without), self.cv, inside=False), scaling)
                W = rest.regress(rest.xy, reg)  # from nothing: a start would tell of the fold
            return problem.fold(k, self.cv).map(scaling), HeldOutModel(W)

        held = [of(0, W=W), *(of(k) for k in range(1, self.cv))]
        nested_folds = (
            chain([held[k]], (of(j, k) for j in range(self.cv) if j != k)) for k in range(self.cv)
        )
        beside = self._calibrate_and_rerank(problem, scaling, held, nested_folds)
        whole = _products(problem.blocks, scaling)
        return self._fitted(problem, scaling, whole.regress(whole.xy, reg, W), None, beside, [])

    # Each feature by itself: many features and many labels

    def _fit_by_feature(self, problem: Problem) -> Fit:
        """Sparse weights, λ and p of (1) in `tacit.methods.tacit.by_feature` chosen on one fold."""
        kind = self._kinds_of_scaling(problem)[0]
        scaling = Scaling.of(kind, problem.blocks, problem.rng)
        parts = [problem.fold(k, self.cv).map(scaling) for k in range(self.cv)]
        tallies = [part.sum(Tally.of) for part in parts]

        def seen(reg: float, power: float, *without: int) -> HeldOutModel:
            rest = reduce(add, (t for k, t in enumerate(tallies) if k not in without))
            return HeldOutModel(problem.backend.sparse(rest.weights(reg, power, problem.dtype)))

        best: tuple = (-1.0,)
        step = START
        for power in RARITIES:
            at = lambda j, p=power: (mean_gain([parts[0].sum(gain, seen(LADDER[j], p, 0))]),)
            found, step = _climb(at, step, len(LADDER), self._clock.over)
            best = max(best, (*found, LADDER[step], power), key=lambda t: t[0])
            if self._clock.over():
                break
        top, *chosen = best
        choice = f"{kind} features, λ = {chosen[0]:.3g}, rarity power {chosen[1]:g}"
        self._tell(Step("each feature by itself", choice, top, 0.0, True, self._clock.lap()))
        held = [(part, seen(*chosen, k)) for k, part in enumerate(parts)]
        others = lambda k: ((parts[j], seen(*chosen, j, k)) for j in range(self.cv) if j != k)
        nested_folds = (chain([held[k]], others(k)) for k in range(self.cv))
        beside = self._calibrate_and_rerank(problem, scaling, held, nested_folds)
        W = reduce(add, tallies).weights(*chosen, problem.dtype)
        return self._fitted(problem, scaling, W, None, beside, [])

    # Of low rank: as many, where X is dense or labels are masked

    def _fit_low_rank(self, problem: Problem) -> Fit:
        kind = self._kinds_of_scaling(problem)[0]
        scaling = Scaling.of(kind, problem.blocks, problem.rng)
        judged, *halves = self._judged_and_halves(problem)
        learned = (problem.fold(0, self.cv, inside=False), *reversed(halves))
        leml = lambda rows: self._leml(problem, rows, scaling, _LOW_RANK, _LOW_RANK_REG)
        models = (leml(rows)[0] for rows in learned)
        place = problem.backend.asarray
        seen = (HeldOutModel(place(m.W), place(m.H)) for m in models)
        held = [(part.map(scaling), each) for part, each in zip((judged, *halves), seen)]
        top = mean_gain([held[0][0].sum(gain, held[0][1])])
        choice = f"{kind} features, LEML of rank {_LOW_RANK}"
        self._tell(Step("low rank", choice, top, 0.0, True, self._clock.lap()))
        beside = self._calibrate_and_rerank(problem, scaling, held, iter([held]))
        model, history = leml(problem.blocks)
        return self._fitted(problem, scaling, model.W, model.H, beside, history)

    def _judged_and_halves(self, problem: Problem) -> tuple[Blocks, Blocks, Blocks]:
        """The first fold, and the others in two halves: their models have seen no row of it."""
        cv, some = self.cv, lambda *ends: problem.fold(tuple(range(*ends)), 2 * self.cv)
        return problem.fold(0, cv), some(1, cv), some(cv + 1, 2 * cv)

    def _leml(
        self, problem: Problem, rows: Blocks, scaling: Scaling, rank: int, reg: float
    ) -> tuple[LowRank, list[float]]:
        """LEML of these rows once scaled, in passes of its own and without a checkpoint."""
        loop = Loop("LEML", _LEML_PASSES, _LEML_TOL, bool(self.verbose))
        width = scaling.n_features(problem.n_features)
        own = replace(problem, blocks=rows.map(scaling), n_features=width, loop=loop)
        fit = Minimiser().solve(own, rank, reg)
        assert isinstance(fit.model, LowRank)
        return fit.model, fit.history

    def _fitted(
        self, problem: Problem, scaling: Scaling, W: Any, H: Any, beside: Beside, history: list
    ) -> Fit:
        factors = problem.to_host(W), None if H is None else problem.to_host(H)
        model = TacitModel(
            scaling,
            factors[0],
            _knots(beside.calibration, problem.dtype),
            _knots(beside.completion, problem.dtype),
            beside.exposure,
            self._report,
            factors[1],
            beside.look,
            None if beside.links is None else problem.to_host(beside.links),
        )
        return Fit(model, history)

    # A second look, and probabilities

    def _calibrate_and_rerank(
        self,
        problem: Problem,
        scaling: Scaling,
        held: HeldOutParts,
        nested_folds: Iterator[Iterable[Part]],
    ) -> Beside:
        """What stands beside the weights, from models that have not seen the rows.

        In each of `nested_folds` the first part of the rows is to judge a second look at, and the
        models of the others have not seen that part either.
        """
        judged, seen = held[0]
        look, held_look = self._look_again(problem, scaling, held, nested_folds)
        probed = held if look is None else [(judged, replace(seen, look=held_look))]
        sure = problem.kind != "positive-only"
        told, exposure = calibrated(*_sampled(probed), known=sure)
        links = self._link(problem, held, held_look)
        linked = told
        if links is not None:
            probed = [(blocks, replace(seen, links=links)) for blocks, seen in held]
            linked, _ = calibrated(*_sampled(probed), known=sure)
        if not sure:
            self._report.notes.append(f"about {exposure:.0%} of the true labels were said")
        return Beside(told, linked, exposure, look, links)

    def _look_again(
        self,
        problem: Problem,
        scaling: Scaling,
        held: HeldOutParts,
        nested_folds: Iterator[Iterable[Part]],
    ) -> tuple[SecondLook | None, SecondLook | None]:
        """Kept if it ranks the first part of the rows better, having learned from the others.

        C, and whether only the presence of features counts, are chosen on one such part; others are
        asked for until the answer is clear. Of two looks the second has not seen the first part.
        """
        most = listed(problem.n_labels)
        width = problem.n_features - 1 if scaling.phase is None else len(scaling.phase)
        numbers = problem.blocks.sum(_stored) * width
        work = most * numbers / max(problem.n_features - 1, 1)
        why_not = "too many entries" if work > _LOOK_WORK else _without_numba()
        why_not = why_not or ("" if problem.blocks.sum(_n_said) else "no label is said")
        if self.levels < 3 or not self._should_try("second look", why_not):
            return None, None
        shortlists = lambda parts: [blocks.sum(_shortlists, seen, most) for blocks, seen in parts]
        before, won = np.empty(0), np.empty((len(_SHARES), 0))
        looks: list[SecondLook] = []
        first = _LOOKED.index(1.0)
        forms = [False, True] if scaling.kind in ("none", "unit", "idf") else [False]
        for parts in nested_folds:
            judged, *others = shortlists(parts)
            ways = [
                lru_cache(1)(partial(_judged, judged, others, problem.n_labels, presence))
                for presence in forms
            ]
            if not looks:
                at = max(ways, key=lambda way: way(first)[0])
                forms = [forms[ways.index(at)]]
                found, step = _climb(at, first, len(_LOOKED), self._clock.over)
            else:
                found = ways[0](step)
            _, look, after = found
            looks.append(look)
            plain = gains_of(judged.said)
            before, won = np.append(before, plain), np.hstack([won, after - plain])
            best = int(np.argmax(won.sum(axis=1)))
            if _clear(won[best]) or self._clock.over():
                break
        C, share, gained = _LOOKED[step], _SHARES[best], won[best]
        kept = bool(gained.sum() > 0)
        choice = f"C = {C:g}" + (", presence of features" if forms[0] else "")
        choice += "" if share == 1 else f", {share:.0%} of it"
        was, now = (100 * float(np.mean(gains)) for gains in (before, before + gained))
        whole = _learned(shortlists(held), problem.n_labels, forms[0], C) if kept else None
        self._tell(Step("second look", choice, now, was, kept, self._clock.lap()))
        if whole is None:
            return None, None
        whole = _in(problem.dtype, replace(whole, share=share))
        return whole, replace(looks[0], share=share)

    def _link(self, problem: Problem, held: HeldOutParts, look: SecondLook | None) -> Array | None:
        """The links of the largest gain, each part of the rows judged by those of the others.

        They take the place of the second look in completions, and are kept if they find more than
        it does: where there is one, the part that it has not seen decides.
        """
        low = held[0][1].H is not None
        if not self._should_try("links", "the rank is low" if low else _too_many(problem)):
            return None
        parts = [blocks.sum(_label_gram) for blocks, _ in held]
        whole, judged = sum(parts), held if look is None else held[:1]
        most = listed(problem.n_labels)
        judge = lambda links, look=None: mean_gain(
            [
                blocks.sum(gain_of_completion, replace(seen, links=A, look=look), most)
                for (blocks, seen), A in zip(judged, links)
            ]
        )
        before = judge([None] * len(held), look)
        tried = {reg: judge([ease_links(whole - part, reg) for part in parts]) for reg in _LINKS}
        best = max(tried, key=tried.__getitem__)
        kept = tried[best] > before
        self._tell(Step("links", f"λ = {best:g}", tried[best], before, kept, self._clock.lap()))
        return ease_links(whole, best) if kept else None


@dataclass(frozen=True)
class Beside:
    """What stands beside the weights of a model."""

    calibration: Monotone
    completion: Monotone
    exposure: float
    look: SecondLook | None
    links: Array | None


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


def _climb(
    at: Callable[[int], tuple], first: int, steps: int, over: Callable[[], bool]
) -> tuple[tuple, int]:
    """The best of `at` on a ladder, upwards from its `first` step or, if that is no gain, down."""
    best, step = at(first), first
    for way in (1, -1):
        while 0 <= step + way < steps and not over():
            found = at(step + way)
            if found[0] <= best[0]:
                break
            best, step = found, step + way
        if step != first:
            break
    return best, step


def _learned(rows: list[Shortlists], n_labels: int, presence: bool, C: float) -> SecondLook:
    return SecondLook.fit(Shortlists.of(rows), n_labels, C, presence)


def _judged(
    rows: Shortlists, others: list[Shortlists], n_labels: int, presence: bool, step: int
) -> tuple[float, SecondLook, np.ndarray]:
    """A look learned from the others: its gain by the best share of it; it; each share's gains."""
    look = _learned(others, n_labels, presence, _LOOKED[step])
    after = np.stack([gains_of(said) for said in rows.reordered(look, _SHARES)])
    return float(after.sum(axis=1).max()), look, after


def _clear(won: np.ndarray) -> bool:
    """Whether what rows won is no chance: twice the standard error away from nothing."""
    return bool(abs(won.mean()) >= 2 * won.std() / len(won) ** 0.5)


def _too_many(problem: Problem) -> str:
    most = f"there are more than {_EXACT_LABELS:,} labels"
    return most if problem.n_labels > _EXACT_LABELS else ""


def _n_directions(sizes: Problem | Facts) -> int:
    """So many that there are no more products than features."""
    most = int(((8 * (sizes.n_features - 1) + 1) ** 0.5 - 1) / 2)
    return max(1, min(_DIRECTIONS, most))


def _n_products(sizes: Problem | Facts) -> int:
    r = _n_directions(sizes)
    return r * (r + 1) // 2


def _too_many_known(problem: Problem) -> str:
    counts, _ = problem.blocks.sum(_known_entries)
    known = float(array_namespace(counts).sum(counts))
    return "too many entries are known" if known > _KNOWN_ENTRIES else ""


def _long(problem: Problem) -> bool:
    return problem.n_features**2 * problem.n_labels > _LONG_SOLVE


def _without_numba() -> str:
    """Why the second look's regressions cannot be had, if so."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return "it needs Numba, which is not installed"
    return ""


def _products(blocks: Blocks, scaling: Scaling) -> Products:
    return Products(blocks.map(scaling).map(down_weight_silent_rows), **_CG)


def _sampled(held: HeldOutParts) -> tuple[np.ndarray, np.ndarray]:
    """Scores of entries that the models have not seen, and whether they were said."""
    parts = [blocks.sum(_entries, seen, _CALIBRATED // len(held)) for blocks, seen in held]
    scores, said = (np.concatenate([part[i].flat for part in parts]) for i in (0, 1))
    return scores, said


class _Flat:
    """Flat arrays that add by standing one behind the other."""

    def __init__(self, flat: np.ndarray):
        self.flat = flat

    def __add__(self, other: _Flat) -> _Flat:
        return _Flat(np.concatenate([self.flat, other.flat]))


def _entries(b: Block, seen: HeldOutModel, most: int) -> tuple[_Flat, _Flat]:
    parts, left = [], most
    for part, S in scored(b, seen):
        rows = slice(max(1, left // S.shape[1]))
        said = part.Y.scipy()[rows].toarray()
        S = b.backend.to_numpy(S[rows]).astype(np.float32)
        if seen.look is not None:
            top = b.backend.top_k(b.backend.asarray(S), None, listed(S.shape[1]), None)
            S = seen.look.rescored(rows_of(part.X)[rows], S, top)
        known = np.isfinite(S)
        parts.append((S[known], said[known]))
        left -= S.size
        if left <= 0:
            break
    scores, said = (np.concatenate(arrays) for arrays in zip(*parts))
    return _Flat(scores), _Flat(said)


def _shortlists(b: Block, seen: HeldOutModel, most: int) -> Shortlists:
    """The best labels of each row, of those that are known where not all are."""
    parts: list[Shortlists] = []
    says_something = ~b.backend.to_numpy(is_silent_row(b))
    rough = isinstance(seen.W, Sparse)  # each feature by itself
    for part, S in scored(b, seen):
        top = b.backend.top_k(S, None, most, None)
        indices = np.where(np.isfinite(top.scores), top.indices, -1)
        own, says_something = np.split(says_something, [len(indices)])
        Y = part.Y.scipy()
        beyond = (
            OffListEntries.drawn(S, Y, indices, _DRAWN, len(parts))
            if rough
            else OffListEntries.none()
        )
        top, said = TopK(indices, top.scores), contains(Y, indices)
        parts.append(Shortlists(rows_of(part.X), top, said, own, beyond))
    return Shortlists.of(parts)


def _label_gram(b: Block) -> Array:
    return b.backend.cross(b.Y, b.Y)


def _laid_out(b: Block) -> int:
    return int(not isinstance(b.X, Sparse))


def _stored(b: Block) -> int:
    return b.X.nnz if hasattr(b.X, "nnz") else int(np.prod(b.X.shape))


def _n_said(b: Block) -> int:
    return b.Y.nnz


def _known_entries(b: Block) -> tuple[Array, int]:
    """How many entries of each label are known, of how many."""
    return label_counts(replace(b, Y=b.omega)), b.Y.shape[0]


def _knots(told: Monotone, dtype: np.dtype) -> np.ndarray:
    return np.stack([told.scores, told.rates]).astype(dtype)


def _in(dtype: np.dtype, look: SecondLook) -> SecondLook:
    """The look in the float type that a file keeps."""
    cast = lambda a: a.astype(dtype)
    Z = look.weights
    weights = sp.csr_array((cast(Z.data), Z.indices.astype(np.int32), Z.indptr), shape=Z.shape)
    return replace(look, weights=weights, trust=cast(look.trust), pooled=cast(look.pooled))


def _like(problem: Problem) -> Any:
    """The float type of the data, as the backend names it."""
    return problem.backend.asarray(np.zeros(1, problem.dtype)).dtype
