"""MPU: positive-unlabelled logistic regression in stacked levels (Kong et al. 2014).

**One level.** Somebody who knows that a label applies says so with probability c, at random:

    P(y_l = 1 | x) = σ(w_lᵀx),    P(s_l = 1 | x) = c_l σ(w_lᵀx),                               (1)
    J(W) = Σ_i Σ_l -log P(s_il | x_i) + ½ λ ‖W‖².                                             (2)

Said: softplus(-f) - log c. Unsaid: softplus(f) - softplus(f + log(1 - c)), which is bounded and not
convex, so every training begins with c = 1, plain logistic regression. Said no, by somebody who
looked: softplus(f), as if c = 1. (The loss as the paper prints it is right for s = ±1; with s = 0
for silence it would be constant there.) (2) is GenEML's likelihood with μ = c, an identity
embedding and no codes.

**Levels.** One label's features say something of another label, through what is predicted of it.
Level ℓ sees x^(ℓ) = (x^(ℓ-1), ŷ^(ℓ-1)), the probabilities of the level below (figure 3). Those of
the training rows come from models that have not seen the row: m folds, each predicted by a model
of the others (figure 4). `plan` lists all these trainings, `stacking` goes through them. The paper
sets "the number of stacking levels", L of figure 3, to 2: ℓ = 0, 1 and 2, three levels in all. A
row's few best predictions serve better than all of them, and keep the design sparse.

**c** is the same at all levels. `tacit.missing.rates` has the estimates: Elkan and Noto's, from a
plain logistic regression and a held-out fold, whose e1 tends to c E[P(y | x) | y = 1] and is thus
far too low unless the classes are separable; and the likelihood's, from J minimised for each c of
a grid. With one c for all labels (1) ranks as plain logistic regression does; what a low c changes
is which probabilities exceed ½.

**Solvers.** `sgd` is the paper's: AdaGrad on mini-batches (`descent`). `newton` is trust-region
Newton on all rows (`tacit.engines.labelwise`), with the curvature of EM's bound, which is never
negative. A pass of `sgd` costs two products with X, a step of Newton's a dozen or more: with many
features `sgd` is sooner there and is the default; with few, as in bibtex, `newton` is, and better.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from array_api_compat import array_namespace

from tacit.basics.params import a_float, an_int, one_of
from tacit.engines.descend import State
from tacit.estimators import Fit, MultiLabelEstimator, Online, Problem, shared_checks
from tacit.labels import check_dense
from tacit.methods.mpu.descent import feature_counts
from tacit.methods.mpu.folded_batches import FoldedBatches
from tacit.methods.mpu.held_out import given_rates, held_out_rates, likeliest_rates
from tacit.methods.mpu.minimise import LevelSolver
from tacit.methods.mpu.model import Stacked
from tacit.methods.mpu.plan import Training, plan_of
from tacit.methods.mpu.stacking import Stacking, level_under
from tacit.missing import Rates

__all__ = ["MPU"]

_MOST_WEIGHTS = 2**31  # of a level on the CPU: 8 GiB in float32, twice while it is trained


class MPU(Online, MultiLabelEstimator):
    """Positive-unlabelled logistic regression, in stacked levels.

    On a few thousand rows with some twenty labels each, its defaults rank eight points of P@3
    behind tuned ridge.

    Parameters
    ----------
    levels : int, default=3
        How many levels, the base level included.
    c : float, "global", "labels" or "learned", default="global"
        The share of true labels that were said: known; estimated for all labels together; for each
        label, shrunk to that of all; or for each label by the likelihood (slow: it trains with each
        of twelve values, by Newton's method). Labels that are complete or masked have c = 1.
    estimator : {"e1", "e2", "e3"}, default="e1"
        Elkan and Noto's, for c="global" and "labels": mean of g over the said, their share in the
        sum of g, largest g; g ≈ P(said).
    solver : {"sgd", "newton"}, default="sgd"
        See above.
    reg : float, default=0.1
        λ of (2).
    rate : float, default=1.0
        AdaGrad's ρ.
    batch_size : int or None, default=None
        Rows of a mini-batch, but no more than a fold has. None: about 100 batches a pass, of 512 to
        8,192 rows; larger ones are cheaper, by their rare features.
    max_iter : int, default=30
        Passes of a training: all of them (sgd), or at most (newton).
    tol : float, default=1e-4
        Newton's method stops once a pass lowers J by no more than `tol` times its value.
    cv : int, default=5
        Folds m of figure 4.
    top : int or None, default=10
        How many of a row's predictions the next level sees, the best; None is all, laid out.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature (penalised like the others).
    threshold : float or "tuned", default=0.5
        What `predict` says yes to: labels of P(true) above it. "tuned" is the one with the largest
        micro-F1 on a held-out fold, estimated from what is said there and c
        (`tacit.metrics.best_threshold`), for one more training.
    k : int or None, default=None
        The k best labels instead.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Deals the rows into batches and folds.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : Stacked
        The weights of all levels; W is those of the base level.
    stack_ : ndarray or None
        The weights of the levels above, of shape (n_features + ℓ n_labels, n_labels), one below
        the other.
    c_ : ndarray of shape (n_labels,)
        c of each label.
    c_interval_ : ndarray of shape (2, n_labels)
        Its 95 % interval, NaN where there is none; `tacit.missing.estimate` says what it is worth.
    threshold_ : float
        The threshold in use.
    history_ : list of float
        J after each pass, one training after the other.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> Y = np.hstack([X > 0, X < 0]) & (rng.random((400, 4)) < 0.5)
    >>> model = MPU(c=0.5, reg=0.1, solver="newton", random_state=0).fit(X, Y)
    >>> model.predict([[1.0, -1.0]]).toarray()
    array([[1, 0, 0, 1]], dtype=int8)
    """

    behind_ridge = (
        "On a few thousand rows with some twenty labels each, its defaults rank eight points of "
        "P@3 behind tuned ridge."
    )
    label_kinds = ("positive-only", "complete", "masked")
    model_kinds = (Stacked,)
    chosen = ("threshold_",)
    _checks = {
        "levels": an_int(at_least=1),
        "c": (
            lambda v: (
                v in ("global", "labels", "learned")
                if isinstance(v, str)
                else a_float(above=0, at_most=1)[0](v)
            ),
            'a number above 0 and at most 1, "global", "labels" or "learned"',
        ),
        "estimator": one_of("e1", "e2", "e3"),
        "solver": one_of("sgd", "newton"),
        "reg": a_float(above=0),
        "rate": a_float(above=0),
        "batch_size": (
            lambda v: v is None or an_int(at_least=1)[0](v),
            "None or an int of at least 1",
        ),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        "cv": an_int(at_least=2),
        "top": (lambda v: v is None or an_int(at_least=1)[0](v), "None or an int of at least 1"),
        **shared_checks(),
        "threshold": (
            lambda v: v == "tuned" if isinstance(v, str) else a_float(at_least=0)[0](v),
            'a number of at least 0, or "tuned"',
        ),
    }

    def __init__(
        self,
        levels: int = 3,
        *,
        c: float | Literal["global", "labels", "learned"] = "global",
        estimator: Literal["e1", "e2", "e3"] = "e1",
        solver: Literal["sgd", "newton"] = "sgd",
        reg: float = 0.1,
        rate: float = 1.0,
        batch_size: int | None = None,
        max_iter: int = 30,
        tol: float = 1e-4,
        cv: int = 5,
        top: int | None = 10,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float | Literal["tuned"] = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.levels = levels
        self.c = c
        self.estimator = estimator
        self.solver = solver
        self.reg = reg
        self.rate = rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.top = top
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def deals_rows(self) -> Literal["", "batches", "folds"]:  # type: ignore[override]
        if self.levels > 1 or self.threshold == "tuned" or self.c in ("global", "labels"):
            return "folds"
        return "batches" if self.solver == "sgd" else ""

    @property
    def stack_(self) -> np.ndarray | None:
        return self.model_.stack

    @property
    def c_(self) -> np.ndarray:
        return self.model_.c

    @property
    def c_interval_(self) -> np.ndarray:
        return self.model_.c_interval

    # Fitting

    def _fit(self, problem: Problem) -> Fit:
        d, n_labels = problem.n_features, problem.n_labels
        shape = (d + (self.levels - 1) * n_labels, n_labels)
        check_dense(shape, "MPU's weights", "fewer levels, or LEML", _most_weights(problem))
        rows = self._folded_batches(problem)
        stacking = Stacking(
            problem,
            self._plan(problem),
            self._minimiser,
            self.top,
            rows,
            self._known_rates(problem, rows),
            lambda rows, W: held_out_rates(rows, W, self.estimator, self.c),  # type: ignore[arg-type]
        )
        state, history = problem.descend(stacking.start, stacking.step, stacking.over)
        stacking.learn(state)  # of a fit that was already at its end, nothing has been yet
        assert stacking.rates is not None  # the plan saw to it
        levels = [problem.to_host(state[f"level {level}"]) for level in range(self.levels)]
        model = Stacked.of(levels, self.top, stacking.rates)
        threshold = self.threshold if stacking.threshold is None else stacking.threshold
        online = _online(problem, state) if self.deals_rows == "batches" else None
        return Fit(model, history, {"threshold_": float(threshold)}, online)

    def _folded_batches(self, problem: Problem) -> FoldedBatches:
        most = n = problem.n_samples
        if self.deals_rows == "folds":
            most = -(-n // self.cv)
        size = most if self.solver == "newton" else min(self._batch_size(n), most)
        return FoldedBatches.of(problem, max(1, size), int(problem.rng.randint(2**31)), self.cv)

    def _batch_size(self, n: int) -> int:
        return self.batch_size or min(max(n // 100, 512), 8192)

    def _plan(self, problem: Problem) -> tuple[Training, ...]:
        return plan_of(
            self.levels,
            self.cv,
            estimates_c=problem.kind == "positive-only" and self.c in ("global", "labels"),
            tunes_threshold=self.threshold == "tuned",
        )

    @property
    def _minimiser(self) -> LevelSolver:
        # A NumPy float32 would round the objective to float32.
        reg, rate, tol = float(self.reg), float(self.rate), float(self.tol)
        return LevelSolver(self.solver, reg, rate, int(self.max_iter), tol)

    def _known_rates(self, problem: Problem, rows: FoldedBatches) -> Rates | None:
        """The rates c, where no training is needed for them."""
        if problem.kind != "positive-only":
            return given_rates(1.0, problem.n_labels)
        if not isinstance(self.c, str):
            return given_rates(float(self.c), problem.n_labels)
        if self.c == "learned":
            return likeliest_rates(problem, rows, float(self.reg), float(self.tol))
        return None

    # Streams

    def _check_online(self) -> None:
        """Neither folds nor held-out rows can be had of a stream, nor a minimum."""
        if self.deals_rows != "batches" or self.c == "learned":
            raise ValueError(
                "partial_fit trains the base level alone, in mini-batches, with a known c: set "
                'levels=1, solver="sgd", a number for c and one for threshold; got '
                f"levels={self.levels!r}, solver={self.solver!r}, c={self.c!r} and "
                f"threshold={self.threshold!r}"
            )

    def _update(self, problem: Problem, state: State | None, n_before: int) -> Fit:
        """One pass over the rows."""
        rows = FoldedBatches.of(problem, self._batch_size(0), n_before, 1)
        rates = self._known_rates(problem, rows)
        assert rates is not None  # `_check_online` saw to it
        level = level_under(problem, rows, rates)
        begun = self._minimiser.solve(level).start() if state is None else state
        xp = array_namespace(begun["W"])  # a copy of which is changed in place
        weights = {name: xp.asarray(begun[name], copy=True) for name in ("W", "W²")}
        counts = sum(feature_counts(b, weights["W"]) for _, b in rows.batches())
        counts = counts if state is None else counts + state["counts"]
        batches = (b for _, b in rows.batches())
        weights, loss = self._minimiser.descent(counts).epoch(weights, batches, level.c)
        # In the float type of the first batch.
        W = np.ascontiguousarray(problem.backend.to_numpy(weights["W"]))
        model = Stacked.of([W], self.top, rates)
        return Fit(
            model, [loss], {"threshold_": float(self.threshold)}, weights | {"counts": counts}
        )


def _online(problem: Problem, state: State) -> State | None:
    """What a stream goes on from after a fit of the base level alone."""
    if "W" in state or int(state["training"][0]) > 1:
        return None  # its file is of a fit that went on, to tune a threshold: W² is of that
    W = state["level 0"]
    return {"W": W, "W²": state["W²"], "counts": problem.blocks.sum(feature_counts, W)}


def _most_weights(problem: Problem) -> int:
    """How many weights a level may have: on a GPU, twice as many fill half of what is free."""
    room = problem.backend.room()
    return _MOST_WEIGHTS if room is None else room // (4 * problem.dtype.itemsize)
