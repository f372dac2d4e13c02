"""MPU: positive-unlabelled logistic regression in stacked levels (Kong et al. 2014).

**One level.** Somebody who knows that a label applies says so with probability c, at random:

    P(y_l = 1 | x) = σ(w_lᵀx),    P(s_l = 1 | x) = c_l σ(w_lᵀx),                               (1)
    J(W) = Σ_i Σ_l -log P(s_il | x_i) + ½ λ ‖W‖².                                             (2)

Said: softplus(-f) - log c. Unsaid: softplus(f) - softplus(f + log(1 - c)), which is bounded and not
convex, so every training begins with c = 1, plain logistic regression. (The loss as the paper
prints it is right for s = ±1; with s = 0 for silence it would be constant there.) (2) is GenEML's
likelihood with μ = c, an identity embedding and no codes.

**Levels.** One label's features say something of another label, through what is predicted of it.
Level ℓ sees x^(ℓ) = (x^(ℓ-1), ŷ^(ℓ-1)), the probabilities of the level below (figure 3). Those of
the training rows come from models that have not seen the row: m folds, each predicted by a model
of the others (figure 4). `_trainings` is that box. The paper sets "the number of stacking levels",
L of figure 3, to 2: ℓ = 0, 1 and 2, three levels in all. A row's few best predictions serve better
than all of them, and keep the design sparse.

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

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, label_counts
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_float, an_int, check_params, one_of
from tacit.blocks import Blocks, MemoryBlocks
from tacit.blocks.facts import Facts
from tacit.engines.descend import Checkpoint, State, settled
from tacit.engines.labelwise import label_groups, newton_pass
from tacit.engines.losses import LOSSES, Logistic, Loss, PositiveUnlabelled
from tacit.estimators import Completion, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import Labels, check_dense
from tacit.methods.mpu.descent import Descent, feature_counts
from tacit.methods.mpu.folded_batches import FoldedBatches, predictions
from tacit.metrics import best_threshold
from tacit.missing import HeldOut, Rates, profile_rates
from tacit.models import LowRank

__all__ = ["MPU"]

_PLAIN = 1 / 3  # of the passes of a training, with c = 1
_GRID = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of c, to be learned
_PROFILE_PASSES = 3  # of Newton's method for each
_MOST_WEIGHTS = 2**31  # of a level on the CPU: 8 GiB in float32, twice while it is trained
_HELD_SCORES = 2**28  # at most, that c is estimated from
_TUNED_SCORES = 2**24  # at most, that a threshold is chosen from


class MPU(MultiLabelEstimator):
    """Positive-unlabelled logistic regression, in stacked levels.

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
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
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
    model_ : LowRank
        The base level, as W without an H.
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

    _kinds = ("positive-only", "complete", "masked")
    _arrays = {"stack_": ("*", "L"), "c_": ("L",), "c_interval_": (2, "L"), "c_overall_": (3,)}
    _learned = ("threshold_",)
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
    _online: tuple | None = None

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
        normalize: Literal["l2"] | None = "l2",
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

    _loss = LOSSES["logistic"]  # of a label being true

    @property
    def _in_batches(self) -> bool:
        return self.solver == "sgd"

    @property
    def _in_folds(self) -> bool:
        return self.levels > 1 or self.threshold == "tuned" or self.c in ("global", "labels")

    # Fitting

    def fit(self, X: Any, Y: Any = None, *, checkpoint: Any = None) -> Self:
        """Learn from features X and labels Y; see `LEML.fit` for what they may be."""
        self._online = None
        return super().fit(X, Y, checkpoint=checkpoint)

    def _trainings(self, problem: Problem) -> Generator[Training, Array, None]:
        """Figure 3: yields what is to be trained, and is sent the weights found."""
        rows = self._folded_batches(problem)
        backend, last = problem.backend, self.levels - 1
        self._levels: list[Array] = []
        yield from self._find_c(problem, rows)
        c = backend.asarray(self.c_.astype(problem.dtype)[None, :])
        for level in range(self.levels):
            train = Trainer(self, problem, rows, c)
            if level < last:  # figure 4: rows of a fold are predicted from all others
                predicted: dict[int, Any] = {}
                for fold in range(self.cv):
                    W = yield train(without=fold)
                    for t, b in rows.batches(only=fold):
                        predicted[t] = predictions(b.project(W), self.top, backend)
            self._levels.append((yield train()))
            if level < last:
                rows.set_beside(predicted)
        self.threshold_ = 0.5 if isinstance(self.threshold, str) else float(self.threshold)
        if self.threshold == "tuned":
            self.threshold_ = _tuned(rows, (yield train(without=0)), self.c_)
        yield Training.none()

    def _fit(self, problem: Problem) -> LowRank:
        d, n_labels = problem.n_features, problem.n_labels
        shape = (d + (self.levels - 1) * n_labels, n_labels)
        check_dense(shape, "MPU's weights", "fewer levels, or LEML", _most_weights(problem))
        trainings = self._trainings(problem)
        training, sent, last = next(trainings), 0, None
        number = lambda values: problem.backend.asarray(np.asarray(values, np.float64))

        def current(state: State) -> Training:
            """The training that the state is in; one resumed is caught up with."""
            nonlocal training, sent
            while sent < int(state["done"][0]):
                training = trainings.send(state[f"trained {sent}"])
                sent += 1
            return training

        def start() -> State:
            return {"done": number([0]), "values": number([])} | training.start()

        def step(state: State) -> tuple[State, float]:
            now = current(state)
            weights, value = now.step(
                {name: state[name] for name in now.names}, len(state["values"])
            )
            values = [*problem.backend.to_numpy(state["values"]).tolist(), value]
            state = state | weights | {"values": number(values)}
            if not now.finished(values):
                return state, value
            nonlocal last
            last, trained = weights, f"trained {sent}"
            state = state | {trained: state["W"], "done": state["done"] + 1}
            begun = current(state).start()
            if not problem.resumable:  # nobody will ask for these weights again
                state[trained] = state["done"]
            kept = {name: value for name, value in state.items() if name not in ("W", "W²")}
            return kept | {"values": number([])} | begun, value

        def until(state: State) -> bool:
            return current(state).over

        problem.descend(start, step, until)
        numbers = [problem.backend.to_numpy(W) for W in self._levels]
        self.stack_ = np.concatenate(numbers[1:]) if len(numbers) > 1 else None
        if self.solver == "sgd" and last is not None and not self._in_folds:
            counts = problem.blocks.sum(feature_counts, last["W"])
            self._online = last, counts, self._known
        return LowRank(numbers[0], None)

    def _problem(self, blocks: Blocks, known: Facts, resume: Checkpoint | None = None) -> Problem:
        self._known = known
        return super()._problem(blocks, known, resume)

    def _folded_batches(self, problem: Problem) -> FoldedBatches:
        n, most = problem.n_samples, problem.n_samples
        if self._in_folds:
            most = -(-n // self.cv)
        size = most if self.solver == "newton" else min(self._batch_size(n), most)
        return FoldedBatches(problem, max(1, size), int(problem.rng.randint(2**31)), self.cv)

    def _batch_size(self, n: int) -> int:
        return self.batch_size or min(max(n // 100, 512), 8192)

    def _find_c(self, problem: Problem, rows: FoldedBatches) -> Generator[Training, Array, None]:
        known = problem.kind != "positive-only" or not isinstance(self.c, str)
        if known:
            c = 1.0 if problem.kind != "positive-only" else float(self.c)
            given = np.ones(problem.n_labels)
            self._set_rates(Rates.of(c, c, c, (c, c, c), "it was given and not estimated", given))
        elif self.c == "learned":
            self._set_rates(self._profile(problem, rows))
        else:
            W = yield Trainer(self, problem, rows, None)(without=0)
            most = max(1, _HELD_SCORES // (problem.n_labels * rows.size))
            parts = [_held_out(b, W) for _, b in islice(rows.batches(only=0), most)]
            found: HeldOut = sum(parts[1:], parts[0])
            self._set_rates(found.c(self.estimator, by=self.c))  # type: ignore[arg-type]

    def _set_rates(self, rates: Rates) -> None:
        self.c_ = np.asarray(rates.c, np.float64)
        self.c_interval_ = np.stack([rates.low, rates.high]).astype(np.float64)
        self.c_overall_ = np.asarray(rates.overall, np.float64)
        self._how = rates.how

    def _profile(self, problem: Problem, rows: FoldedBatches) -> Rates:
        """J minimised with each c of a grid, from c = 1 downwards, for every label."""
        blocks = MemoryBlocks(tuple(b for _, b in rows.batches()))
        groups = label_groups(problem.n_samples, problem.n_labels)
        shape = (problem.n_features, problem.n_labels)
        Z = problem.backend.asarray(np.zeros(shape, problem.dtype))
        values = []
        for c in reversed(_GRID):
            loss = lambda _, c=c: PositiveUnlabelled(c) if c < 1 else Logistic()
            last = [np.inf]
            for _ in range(_PROFILE_PASSES):
                Z, J = newton_pass(blocks, loss, float(self.reg), Z, groups, self.tol)
                last.append(float(array_namespace(J).sum(J)))
                if settled(last, self.tol):
                    break
            values.append(problem.backend.to_numpy(J))
        return profile_rates(np.asarray(_GRID), np.stack(values[::-1]), _said(rows)[0])

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """One pass over a batch of rows, in mini-batches, for the base level alone.

        For `levels=1` and a number for c: neither folds nor held-out rows can be had of a stream.
        The first batch also starts the model. It also goes on from `fit`, in the same process.
        """
        check_params(self)
        if self.levels > 1 or isinstance(self.c, str) or self.threshold == "tuned":
            raise ValueError(
                "partial_fit trains the base level alone, with a known c: set levels=1, a number "
                f"for c and one for threshold; got levels={self.levels!r}, c={self.c!r} and "
                f"threshold={self.threshold!r}"
            )
        begun = self._online
        if begun is None and hasattr(self, "model_"):
            raise ValueError(
                "partial_fit cannot go on with a model that was loaded, or fitted by Newton's "
                "method; begin with a new estimator"
            )
        blocks, known = self._rows(X, Y) if begun is None else self._rows_again(X, Y, begun[-1])
        problem = self._problem(blocks, known)
        if begun is None:
            self.history_ = []
        first = known if begun is None else begun[-1]
        rows = FoldedBatches(problem, self._batch_size(0), len(self.history_), 1)
        for _ in self._find_c(problem, rows):  # it is known
            pass
        c = problem.backend.asarray(self.c_.astype(problem.dtype)[None, :])
        xp = array_namespace(c)
        state = Trainer(self, problem, rows, c)().start() if begun is None else begun[0]
        state = {name: xp.asarray(value, copy=True) for name, value in state.items()}
        counts = sum(feature_counts(b, state["W"]) for _, b in rows.batches())
        counts = counts if begun is None else counts + begun[1]
        descent = Descent(float(self.rate), float(self.reg), counts)
        state, loss = descent.epoch(state, (b for _, b in rows.batches()), c)
        self.history_.append(loss)
        self._online = state, counts, first
        self.threshold_, self.stack_ = float(self.threshold), None
        return self._fitted(LowRank(problem.backend.to_numpy(state["W"]), None), first)

    # Prediction

    @property
    def _cut(self) -> float:
        return self.threshold_ if isinstance(self.threshold, str) else self.threshold

    def _codes(self, block: Block) -> Array:
        """The scores of the last level: those of each level are features of the next."""
        F = self._latent(block)
        for W in self._above():
            block = replace(block, more=(*block.more, predictions(F, self.top, block.backend)))
            F = block.project(block.backend.kept(W))
        return F

    def _above(self) -> list[np.ndarray]:
        """The weights of the levels above the base."""
        if self.stack_ is None:
            return []
        d, n_labels = self.model_.W.shape
        found: list[np.ndarray] = []
        start = 0
        while start < len(self.stack_):
            stop = start + d + (len(found) + 1) * n_labels
            found.append(self.stack_[start:stop])
            start = stop
        return found

    def predict_proba(self, X: Any, *, what: str = "true") -> np.ndarray:
        """Probabilities of shape (n_samples, n_labels).

        Parameters
        ----------
        what : {"true", "said"}, default="true"
            σ(f), that the label is true; or cσ(f), that it is true and was said.
        """
        if what not in ("true", "said"):
            raise ValueError(f'what must be "true" or "said"; got {what!r}')
        probability = sigmoid(self.decision_function(X))
        return probability if what == "true" else probability * self.c_.astype(probability.dtype)

    def complete(self, X: Any, Y: Any, k: int = 10) -> Completion:
        """The entries of Y not said yet that are most likely true.

        Of each row the k best are taken, and all of them are sorted by probability: that of being
        true though nothing was said, (1 - c)σ(f) / (1 - cσ(f)); entries of masked labels that were
        not observed have σ(f), and so have all where c is 1.
        """
        X, labels = self._to_complete(X, Y)

        def silent(b: Block) -> Array:
            F = self._codes(b)
            if b.omega is not None or (self.c_ >= 1).all():
                return F
            shift = np.log1p(-np.minimum(self.c_, 1 - 1e-7))  # σ(f + log(1 - c)) is that
            return F + b.backend.asarray(shift.astype(self.model_.W.dtype))

        return self._completion(X, labels, k, silent)

    def _said_rates(self, X: Any, Y: Any) -> Rates:
        _, labels = self._to_complete(X, Y)
        said = np.bincount(labels.positives.indices, minlength=labels.n_labels)
        low, high = self.c_interval_
        return Rates.of(self.c_, low, high, self.c_overall_, self._how, said)

    def _restore(self, header: dict, arrays: dict[str, np.ndarray]) -> Self:
        super()._restore(header, arrays)
        if any(getattr(self, name) is None for name in ("c_", "c_interval_", "c_overall_")):
            raise ValueError("its c_ is missing")
        above, (d, n_labels) = self._above(), self.model_.W.shape
        if [len(W) for W in above] != [d + i * n_labels for i in range(1, self.levels)]:
            raise ValueError(f"its stack_ does not fit {self.levels} levels")
        self._how = "read with the model"
        return self


@dataclass(frozen=True)
class Training:
    """One training: how it starts, what a pass does, and when it is finished."""

    start: Callable[[], State]
    step: Callable[[State, int], tuple[State, float]]  # of weights, and how many passes were before
    finished: Callable[[list[float]], bool]
    names: tuple[str, ...] = ("W",)
    over: bool = False

    @classmethod
    def none(cls) -> Training:
        """What follows the last."""
        return cls(dict, lambda state, before: (state, 0.0), lambda values: True, (), over=True)


@dataclass(frozen=True)
class Trainer:
    """Makes the trainings of one level; c None is plain logistic regression."""

    model: MPU
    problem: Problem
    rows: FoldedBatches
    c: Array | None

    def __call__(self, *, without: int | None = None) -> Training:
        make = self._newton if self.model.solver == "newton" else self._sgd
        return make(without)

    def _sgd(self, without: int | None) -> Training:
        model, rows = self.model, self.rows
        W = self._first_W(without)
        xp = array_namespace(W)
        descent = Descent(float(model.rate), float(model.reg), self._feature_counts)
        one = xp.ones((1, W.shape[1]), dtype=W.dtype, device=W.device)
        plain = model.max_iter if self.c is None else round(_PLAIN * model.max_iter)

        def step(state: State, before: int) -> tuple[State, float]:
            batches = (b for _, b in rows.batches(without=without))
            if before == plain:
                state = state | {"W": self._shift_intercept_by_log_c(state["W"])}
            return descent.epoch(state, batches, one if before < plain else self.c)

        start = lambda: {"W": W, "W²": xp.zeros_like(W)}
        return Training(start, step, lambda values: len(values) >= model.max_iter, ("W", "W²"))

    def _newton(self, without: int | None) -> Training:
        model, n = self.model, self.problem.n_samples
        blocks = MemoryBlocks(tuple(b for _, b in self.rows.batches(without=without)))
        groups = label_groups(n, self.problem.n_labels)

        def step(state: State, before: int) -> tuple[State, float]:
            loss = lambda labels: self._loss(labels if before else None)
            W = self._shift_intercept_by_log_c(state["W"]) if before == 1 else state["W"]
            Z, J = newton_pass(blocks, loss, float(model.reg), W, groups, model.tol)
            return {"W": Z}, float(array_namespace(J).sum(J))

        def finished(values: list[float]) -> bool:
            return len(values) >= model.max_iter or settled(values[1:], model.tol)

        return Training(lambda: {"W": self._first_W(without)}, step, finished)

    @cached_property
    def _feature_counts(self) -> Array:
        """How many of all rows have each feature: λ is that of a fit on all of them."""
        like = self.problem.backend.asarray(np.zeros(1, self.problem.dtype))
        return sum(feature_counts(b, like) for _, b in self.rows.batches())

    def _shift_intercept_by_log_c(self, W: Array) -> Array:
        """Where c comes in: W whose cσ(f) is what σ(f) was, where it is small."""
        if self.c is None or not self.model.fit_intercept:
            return W
        xp = array_namespace(W)
        constant = self.problem.n_features - 1
        is_it = (xp.arange(W.shape[0], device=W.device) == constant)[:, None]
        return xp.where(is_it, W - xp.log(self.c), W)

    def _loss(self, labels: slice | None) -> Loss:
        """That of some labels; of the first pass, with c = 1, for None."""
        if labels is None or self.c is None or bool((self.c >= 1).all()):
            return Logistic()
        return PositiveUnlabelled(self.c[:, labels])

    def _first_W(self, without: int | None) -> Array:
        """Zero, but for the log-odds of what is said where there is a constant feature."""
        b = next(b for _, b in self.rows.batches())
        width = sum(part.shape[1] for part, _ in b.features())
        W = np.zeros((width, self.problem.n_labels), self.problem.dtype)
        if self.model.fit_intercept:
            said, n = _said(self.rows, without)
            W[self.problem.n_features - 1] = np.log(said + 0.5) - np.log(n - said + 0.5)
        return self.problem.backend.asarray(W)


def _most_weights(problem: Problem) -> int:
    """How many weights a level may have: on a GPU, twice as many fill half of what is free."""
    room = problem.backend.room()
    return _MOST_WEIGHTS if room is None else room // (4 * problem.dtype.itemsize)


def _said(rows: FoldedBatches, without: int | None = None) -> tuple[np.ndarray, int]:
    """How often each label was said, and of how many rows."""
    counts, n = 0.0, 0
    for _, b in rows.batches(without=without):
        counts, n = counts + b.backend.to_numpy(label_counts(b)), n + b.Y.shape[0]
    return np.asarray(counts), n


def _held_out(b: Block, W: Array) -> HeldOut:
    return HeldOut.of(b.Y.scipy(), b.backend.to_numpy(sigmoid(b.project(W))))


def _tuned(rows: FoldedBatches, W: Array, c: np.ndarray) -> float:
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
