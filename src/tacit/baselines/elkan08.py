"""Elkan08: one classifier a label from its positives and everything else (Elkan and Noto).

Somebody says a true label with a probability c that depends on nothing but the label ("selected
completely at random"), so for each label l

    P(s_l = 1 | x) = c_l P(y_l = 1 | x),    hence    P(y_l = 1 | x) = min(1, g_l(x) / c_l)      (1)

with g_l(x) = σ(xᵀ z_l) an estimate of P(s_l = 1 | x): logistic regression of what was said against
all the rest, with ½ λ ‖z_l‖². c_l is the mean of g_l over held-out rows H that say l (the paper's
e₁). Many labels are said in none of these rows, so it is drawn towards the mean over all labels:

    ē_l = mean of g_l over {i ∈ H : s_il = 1},  c̄ = that mean over all l,
    c_l = (n_l ē_l + κ c̄) / (n_l + κ),  κ = 10,  cut to [10⁻³, 1]                               (2)

with n_l the number of those rows. Then z is fitted again, on all rows, so that nothing said is lost
(`variant="ratio"`). Or (`"weighted"`), an unsaid label of a row counts as a yes of weight w and as
a no of weight 1 - w,

    w = P(y = 1 | x, s = 0) = ((1 - c) / c) g / (1 - g), cut to [0, 1],                         (3)

and P(y = 1 | x) = σ(xᵀ z) of that fit: logistic loss with the soft target w in place of 0. What
somebody said no to has w = 0; in all else a no is read as silence.

**Which rows are held out** is decided by their features: with r random and ρ the root of the mean
square of xᵀr,

    x ∈ H  if  the fractional part of 256 xᵀr / ρ is below `holdout`,                           (4)

so that neither the order of rows nor how they are cut into blocks matters, and copies of a row stay
together.

**Cost**: two logistic regressions, O(nnz(X) L + n L) a product; see `tacit.engines.labelwise`.

e₁ tends to c E[P(y | x) | y = 1], which is below c wherever the classes overlap.

Reference: C. Elkan and K. Noto. Learning classifiers from only positive and unlabeled data.
KDD 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, pieces
from tacit.basics.numerics import sigmoid, softplus
from tacit.basics.params import a_float, an_int, one_of
from tacit.blocks import Blocks
from tacit.engines.descend import State, settled
from tacit.engines.labelwise import label_groups, newton_pass
from tacit.engines.losses import LOSSES
from tacit.estimators import Fit, MultiLabelEstimator, Problem, shared_checks
from tacit.labels import check_dense
from tacit.missing import HeldOut
from tacit.models.explanation import Contributions
from tacit.models.low_rank import of_weights
from tacit.models.model import Model, check_shape

__all__ = ["Elkan08"]

_KAPPA = 10.0  # of (2)
_FIRST_PASSES = 50  # most, of the fit for c: not max_iter, with which a checkpoint may not begin
_MOST = 1 - 1e-6  # of c and of g in (3): 1 would leave nothing unsaid
_TURNS = 256  # of (4): many, so that rows are spread evenly; few enough for float32


@dataclass(frozen=True, eq=False)
class LogRatio(Model):
    """Scores log P(y = 1 | x), so that labels of one row are ranked by how likely they are true.

    Attributes
    ----------
    W : ndarray of shape (n_features, n_labels)
        Z.
    said_rates : ndarray of shape (n_labels,)
        c.
    divided : bool
        Whether Z tells of what is said, so that (1) divides by c; else of what is true.
    """

    W: np.ndarray
    c: np.ndarray
    divided: bool

    H = None

    @property
    def n_labels(self) -> int:
        return self.W.shape[1]

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    @property
    def said_rates(self) -> np.ndarray:
        return self.c

    def codes(self, block: Block) -> Array:
        return block.project(block.backend.kept(self.W))

    def factors(self, block: Block) -> tuple[Array, None]:
        logarithm = -softplus(-self.codes(block))
        if not self.divided:
            return logarithm, None
        c = block.backend.asarray(self.c)
        return logarithm - array_namespace(c).log(c), None

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """What features add to the log-odds z of W; the rest leads from z to the score."""
        z = of_weights(block, labels, self.W, None)
        total = np.asarray(z.amounts["feature"].sum(axis=1))
        scale = np.log(self.c[labels]) if self.divided else 0.0
        return Contributions(z.amounts, -softplus(-total) - scale - total)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, None]:
        """The logarithm of w of (3), before it is cut at 1."""
        scores, _ = self.factors(block)
        xp, c = array_namespace(scores), block.backend.asarray(np.minimum(self.c, _MOST))
        said = xp.clip(c * xp.exp(scores), max=_MOST)  # g, which rounding can take to 1
        return scores + xp.log1p(-c) - xp.log1p(-said), None

    def probability(self, scores: Array) -> Array:
        """The probability whose logarithm is the score, or 1 where the score is above 0."""
        xp = array_namespace(scores)
        return xp.exp(xp.clip(scores, max=0.0))

    def numbers(self) -> dict[str, Any]:
        return {"divided": self.divided}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W": self.W, "c": self.c}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        if not isinstance(numbers["divided"], bool):
            raise ValueError(f"its divided is {numbers['divided']!r}")
        W = check_shape("W", arrays.get("W"), n_weights, n_labels)
        c = check_shape("c", arrays.get("c"), n_labels)
        if not ((c > 0) & (c <= 1)).all():
            raise ValueError("its c is not a share above 0")
        return cls(W, c, numbers["divided"])


class Elkan08(MultiLabelEstimator):
    """Positive and unlabelled learning, label by label, for positive-only labels.

    `variant="weighted"` takes a said no for one; `"ratio"` reads it as silence.
    It divides probabilities by how often each label is said, which it has to guess even where all
    are: on dense features it ranks six to nine points of P@3 behind tuned ridge.

    Parameters
    ----------
    variant : {"ratio", "weighted"}, default="ratio"
        Divide by c as in (1), or fit again with the weights (3).
    reg : float, default=0.3
        The weight λ.
    holdout : float, default=0.1
        The share of the rows that c is estimated on.
    max_iter : int, default=50
        Most passes over the labels, of the last fit.
    tol : float, default=1e-4
        When a label is finished (its objective is within `tol` of the least), and a fit: once a
        pass lowers the objective by no more than `tol` times its value.
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
    fit_intercept : bool, default=True
        Add a constant feature (penalised like the others).
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the r that decides which rows are held out.
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : LogRatio
        Z, as W without an H. Scores are log P(y = 1 | x) before (1) is cut at 1.
    c_ : ndarray of shape (n_labels,)
        How likely each label is said where it is true, (2).
    history_ : list of float
        The objective of the last fit after each pass. It never increases.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    Three in ten of the true labels were said:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (2000, 10))
    >>> truth = X[:, :4] > 0
    >>> Y = truth & (rng.random(truth.shape) < 0.3)
    >>> model = Elkan08(reg=0.1, random_state=0).fit(X, Y)
    >>> bool(abs(model.c_ - 0.3).max() < 0.05), bool((model.predict(X) == truth).all())
    (True, True)
    """

    behind_ridge = (
        "It divides probabilities by how often each label is said, which it has to guess even "
        "where all are: on dense features it ranks six to nine points of P@3 behind tuned ridge."
    )
    label_kinds = ("positive-only",)
    model_kinds = (LogRatio,)
    _checks = {
        "variant": one_of("ratio", "weighted"),
        "reg": a_float(above=0),
        "holdout": (
            lambda v: a_float(above=0)[0](v) and v < 1,
            "a number above 0 and below 1",
        ),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        **shared_checks(),
    }

    def __init__(
        self,
        *,
        variant: Literal["ratio", "weighted"] = "ratio",
        reg: float = 0.3,
        holdout: float = 0.1,
        max_iter: int = 50,
        tol: float = 1e-4,
        normalize: Literal["auto", "l2"] | None = "auto",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state=None,
        verbose: bool = False,
    ):
        self.variant = variant
        self.reg = reg
        self.holdout = holdout
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def c_(self) -> np.ndarray:
        return self.model_.said_rates

    def _fit(self, problem: Problem) -> Fit:
        if problem.n_samples < 2:  # by (4) it may be held out or not: rounding would decide
            raise ValueError(
                "Elkan08: some rows are held out, so that at least 2 are needed; got "
                "n_samples = 1; give more rows"
            )
        shape = (problem.n_features, problem.n_labels)
        check_dense(shape, "Elkan08's coefficients", "GenEML")
        groups = label_groups(problem.n_samples, problem.n_labels)
        loss = lambda labels: LOSSES["logistic"]
        one_pass = lambda blocks, Z: newton_pass(blocks, loss, float(self.reg), Z, groups, self.tol)

        def start() -> State:
            held = _held_out(problem, self.holdout, self.fit_intercept)
            Z = problem.backend.asarray(np.zeros(shape, problem.dtype))
            Z = self._converged(one_pass, held.map(_without), Z)
            found: HeldOut = held.sum(_said_where_held, Z)
            c = found.c("e1", by="labels", kappa=_KAPPA).c.astype(problem.dtype)
            state = {"Z": Z, "c": problem.backend.asarray(c)}
            return state | ({"first": Z} if self.variant == "weighted" else {})

        def step(state: State) -> tuple[State, float]:
            blocks: Any = problem.blocks
            if self.variant == "weighted":
                blocks = _Softened(blocks, state["first"], state["c"])
            Z, values = one_pass(blocks, state["Z"])
            return state | {"Z": Z}, float(array_namespace(values).sum(values))

        state, history = problem.descend(start, step)
        c = problem.backend.to_numpy(state["c"])
        return Fit(LogRatio(problem.to_host(state["Z"]), c, self.variant == "ratio"), history)

    def _converged(self, one_pass: Callable, blocks: Blocks, Z: Array) -> Array:
        history: list[float] = []
        while len(history) < _FIRST_PASSES and not settled(history, self.tol):
            Z, values = one_pass(blocks, Z)
            history.append(float(array_namespace(values).sum(values)))
        return Z


def _held_out(problem: Problem, share: float, intercept: bool) -> Blocks:
    """The blocks, each with which of its rows are in H."""
    r = problem.normal(problem.n_features, 1)
    if intercept:
        r[-1] = 0.0  # the constant tells no row from another
    squares = float(problem.blocks.sum(_squares, r))
    turns = _TURNS / max(np.sqrt(squares / problem.n_samples), np.finfo(problem.dtype).tiny)
    return problem.blocks.map(_with_held, r * turns, share)


def _squares(b: Block, r: Array) -> float:
    t = b.project(r)
    return float(array_namespace(t).sum(t * t))


def _with_held(b: Block, r: Array, share: float) -> tuple[Block, Array]:
    t = b.project(r)
    return b, t - array_namespace(t).floor(t) < share


def _without(part: tuple[Block, Array]) -> Block:
    """The block with zeros for features in the rows of H: they cost log 2, and teach nothing."""
    b, held = part
    return b.weighted(~held[:, 0])


def _said_where_held(part: tuple[Block, Array], Z: Array) -> HeldOut:
    """What (2) needs of the rows in H."""
    b, held = part
    numbers = b.backend.to_numpy
    Y, kept, sums = b.Y.scipy(), numbers(held)[:, 0], []
    for rows in pieces(b, Z.shape[1]):
        g = numbers(sigmoid(b.some(rows).project(Z)))
        sums.append(HeldOut.of(Y[rows][kept[rows]], g[kept[rows]]))
    return reduce(add, sums)


@dataclass(frozen=True)
class _Softened:
    """Blocks whose maps have the soft targets (3); a pass asks no more of blocks than to map."""

    blocks: Blocks
    Z: Array  # g = σ(X Z)
    c: Array

    def map(self, make: Callable, labels: slice) -> Blocks:
        return self.blocks.map(_soft, make, labels, self.Z[:, labels], self.c[labels])


def _soft(b: Block, make: Callable, labels: slice, Z: Array, c: Array) -> Any:
    columns = make(b, labels)
    y, xp = columns.block.y, array_namespace(Z)
    odds = xp.exp(xp.clip(columns.forward(Z), max=30.0))  # g / (1 - g); beyond this w is 1 anyway
    w = xp.clip((1 - c) / c * odds, max=1.0)
    if columns.block.noes is not None:
        w = w * (1 - b.backend.dense(columns.block.noes, slice(0, y.shape[0]), y.dtype))
    columns.block = replace(columns.block, y=y + (1 - y) * w)
    return columns
