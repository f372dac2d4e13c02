"""Tacit: the estimator to reach for when labels are missing.

    first models (ridge · network · nearest rows · how rare a label is)
      → a second look at the shortlist → one blend with weights shared by all labels

The first models are unlike each other, an ordinary `Model` each (`tacit.methods.tacit.first`).
Everything that is chosen or weighed is judged by rows that were not seen: a fold of the rows is
held out, all of the above is fitted without it, and the blend learns from it how far each part is
to be trusted, and how many true labels were said at all (`tacit.methods.tacit.blend`). Then all is
fitted again, on all rows. `report_` says what each part brought; `plan` says beforehand what will
be tried, and how long it takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tacit.basics.params import an_int, one_of
from tacit.estimators import Facts, Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.features.scaling import Scaling, choices
from tacit.methods.tacit.blended import Blended
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.earlier.model import TacitModel
from tacit.methods.tacit.first.by_feature import ByThemselves
from tacit.methods.tacit.first.products import ByProducts
from tacit.methods.tacit.first.ridge import FirstRidge
from tacit.methods.tacit.held_out import Held, ceiling_of, chosen, with_links
from tacit.methods.tacit.limits import LIMITS, Limits
from tacit.methods.tacit.parts import Parts
from tacit.methods.tacit.plan import Plan, seconds_of, sizes_of
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.watch import Watch

__all__ = ["Tacit"]

_SAFE = 0.9  # of the time that is left: fits of more rows take longer, not all in proportion
LEADS: dict[str, Any] = {lead.name: lead for lead in (FirstRidge, ByProducts, ByThemselves)}
SILENT = 0.2  # the weight of rows that say nothing, where silence means nothing


class Tacit(MultiLabelEstimator):
    """First models, a second look and a blend, for all three kinds of labels.

    It reads a said no as silence, though `complete` leaves it out.

    Parameters
    ----------
    scaling : {"auto", "none", "unit", "idf", "standard", "fourier"}, default="auto"
        How features are scaled (`tacit.features.scaling`); "auto" tries those that suit them.
    budget : None, "auto", float or str, default="auto"
        How long a fit may take: seconds, or such as "60s", "5min" or "1h". Parts that do not fit
        are left out. "auto" leaves out what is long beside the first model; None nothing.
    cv : int, default=5
        The folds that rows are dealt into, one of which at least is held out.
    limits : Limits or None, default=None
        Up to which size each part is tried; None are those of `tacit.methods.tacit.limits`.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws random features, and the start and batches of the network.
    verbose : bool, default=False
        Tell on stderr what is done.

    Attributes
    ----------
    model_ : Blended
        The first models and their blend.
    report_ : Report
        What was tried, what it brought and what it cost.
    exposure_ : float
        The share of true labels that were said, as far as the rows can tell.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> Y = np.hstack([X > 0, X < 0]) & (rng.random((300, 4)) < 0.5)
    >>> model = Tacit(random_state=0).fit(X, Y)
    >>> model.top_k([[1.0, -1.0]], 2).indices
    array([[0, 3]])
    """

    label_kinds = ("positive-only", "complete", "masked")
    model_kinds = (Blended, TacitModel)
    deals_rows = "folds"
    _checks = {
        "scaling": one_of("auto", "none", "unit", "idf", "standard", "fourier"),
        "budget": (
            lambda v: seconds_of(v) is not None,
            'None, "auto", seconds, or such as "60s" or "5min"',
        ),
        "cv": an_int(at_least=2),
        "limits": (lambda v: v is None or isinstance(v, Limits), "None or Limits"),
        **shared_checks("normalize", "fit_intercept"),
    }

    normalize, fit_intercept = None, True  # the scaling is chosen, and keeps the constant feature

    def __init__(
        self,
        *,
        scaling: str = "auto",
        budget: float | str | None = "auto",
        cv: int = 5,
        limits: Limits | None = None,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.scaling = scaling
        self.budget = budget
        self.cv = cv
        self.limits = limits
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
        return float(self.model_.exposure)

    def plan(self, X: Any, Y: Any) -> Plan:
        """What a fit would try, what not and why, and the seconds and bytes it would take."""
        blocks, known = self._rows(X, Y)
        return self._planned(self._problem(blocks, known))

    def _fit(self, problem: Problem) -> Fit:
        if problem.n_samples < 2 * self.cv:
            raise ValueError(
                f"Tacit: cv={self.cv} folds need at least {2 * self.cv} rows; got n_samples = "
                f"{problem.n_samples}; give more rows, or a smaller cv"
            )
        watch, report, limits = Watch(self.verbose), Report(), self.limits or LIMITS
        plan, dealt = self._planned(problem), Dealt.of(SomeRows.of(problem))
        parts = Parts(plan, limits, self._seed(problem), watch=watch)
        parts = self._chosen(dealt, parts, report)
        if self._promises:
            parts = replace(parts, plan=plan.at(watch.elapsed, limits, self._seconds))
        held = self._held(dealt, parts)
        watch.lap("the parts without the rows held out", report)
        ceiling = ceiling_of(held, problem.kind, report)
        seconds = watch.within(self._left(problem, watch))
        blend = chosen(held, problem.kind, ceiling, report, seconds)
        completions = None
        if parts.links:
            most = limits.links_rows
            completions = with_links(held, blend, problem.kind, ceiling, report, most)
        kept = blend.names if completions is None else completions.names
        watch.lap("judging the parts", report)
        whole = parts.only(kept).fit(dealt.all)
        watch.lap("the parts on all rows", report)
        report.notes += parts.plan.left_out
        return Fit(whole.with_blends(blend, completions, ceiling, report))

    def _held(self, dealt: Dealt, parts: Parts) -> list[Held]:
        """What parts say of rows that they have not seen.

        Masked labels are asked for of rows in the fit, too: so cells of these are held out beside
        other rows.
        """
        limits, cv, held = parts.limits, self.cv, list[Held]()
        if dealt.all.problem.kind == "masked":
            fitted = parts.fit(dealt.without_cells())
            held.append(Held.of_cells(fitted, *dealt.cells(limits.judged_rows)))
        for k in range(parts.plan.folds(cv, limits)):
            unseen = dealt.fold(k, cv, limits.judged_rows)
            fitted = parts.fit(dealt.rest(k, cv, limits.held_rows))
            held.append(Held.of(fitted, unseen))
        return held

    def _planned(self, problem: Problem) -> Plan:
        return Plan.of(sizes_of(problem), self.limits or LIMITS, self._seconds)

    def _left(self, problem: Problem, watch: Watch) -> float:
        """The seconds that the last fit has, as if it were one of the rows that were not held out.

        Only a budget in seconds is a promise: else the clock does not decide what is fitted.
        """
        limits = self.limits or LIMITS
        taught = min(problem.n_samples * (self.cv - 1) / self.cv, limits.held_rows)
        left = (self._seconds - watch.elapsed) * _SAFE * taught / problem.n_samples
        return left if self._promises else np.inf

    @property
    def _promises(self) -> bool:
        return 0 < self._seconds < np.inf

    @property
    def _seconds(self) -> float:
        """The budget; minus one for that which goes by the lead."""
        seconds = seconds_of(self.budget)
        assert seconds is not None  # as its check saw to
        return seconds

    def _chosen(self, dealt: Dealt, parts: Parts, report: Report) -> Parts:
        """The parts with the scaling, λ and p under which rows left out one by one rank best."""
        problem, limits = dealt.all.problem, parts.limits
        kinds = choices(problem.blocks) if self.scaling == "auto" else (self.scaling,)
        if problem.kind == "masked":
            kinds = tuple("standard" if kind == "fourier" else kind for kind in kinds[:1])
        weight = 1.0 if problem.kind == "complete" else SILENT
        judged = dealt.first(parts.plan.n_choosing(limits))
        kind_of_lead, best = LEADS[parts.plan.names[0]], (-1.0, Scaling(kinds[0]), None)
        for kind in kinds:
            scaling = Scaling.of(kind, problem.blocks, problem.rng)
            rows, some = dealt.all.scaled(scaling), judged.scaled(scaling).blocks
            gain, lead = kind_of_lead.choose(rows, some, weight, limits)
            if gain > best[0]:
                best = gain, scaling, lead
        _, scaling, lead = best
        assert lead is not None  # as gains are at least 0
        some = judged.scaled(scaling).blocks
        lead = lead.refined(dealt.all.scaled(scaling), some, limits)
        parts.watch.lap("choosing the first model", report)
        report.notes.append(f"{scaling.kind} features, {lead}")
        return replace(parts, scaling=scaling, lead=lead)

    def _seed(self, problem: Problem) -> int:
        return int(problem.rng.randint(2**31))

    def _working_set(self, known: Facts) -> int:
        return 4 * known.n_features * known.n_labels + 3 * known.n_features**2
