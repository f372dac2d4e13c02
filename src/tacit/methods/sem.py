"""SEM and SEM-K: labels as a softmax of a small code (Jing, Cheng, Yang, Gittens, Mahoney 2017).

    H = σ(XW) Vᵀ + 1bᵀ,    P = softmax of each row of H,    G_ij = y_ij / ℓ_i,
    J = Σ_i w_i (log Σ_j exp h_ij - Σ_j g_ij h_ij)                                             (1)

with ℓ_i the number of labels of row i: a row's labels share its probability, and all others compete
for it. J is Σ_i w_i KL(g_i ‖ p_i) up to a constant. w_i = 1 is the paper's; it calls this maximum
likelihood, but the likelihood of ℓ_i draws is w_i = ℓ_i (`instance_weight="label_count"`). Rows
without labels say nothing and are left out. With masked labels both sums are over the known entries
of a row only. Silence among complete labels is a competitor: SEM ranks, and knows no missing
labels.

**Fitting** (Algorithm 1): AdaGrad on mini-batches, W, V and b in turn (`tacit.engines.network`), or
all three from one pass. **Marginals** (section 3.2): `beta` restricts the softmax of a batch to its
positives and β times as many labels drawn by frequency.

**Scores** are log p_ij, comparable from row to row; a label of a row that has ℓ of them has
p = 1/ℓ, so P(y_ij = 1) = min(1, ℓ̄ p_ij) with ℓ̄ the mean of ℓ_i.

**SEM-K** (section 3.3, `head="kernel"`): W as above, then the random features

    ψ(x) = √(2/s) cos(Φᵀ Wᵀx + θ),    Φ ~ N(0, 2γ I),   θ ~ U(0, 2π)                           (2)

of the linear code, and a logistic model of all labels at once,

    min_Z Σ_ij log(1 + exp(-t_ij z_jᵀψ(x_i))) + ½ λ ‖Z‖²,    t = 2y - 1,                       (3)

by shared-curvature steps (`tacit.engines.solvers.climb`), z_j with an intercept. The paper has γ =
½ on whatever scale W happens to have, no √(2/s), and λ for our ½ λ.

Reference: L. Jing, M. Cheng, L. Yang, A. Gittens and M. W. Mahoney. Multi-label learning with
semantic embeddings. Submitted to ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, label_counts, pieces
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_bool, a_float, an_int, check_params, one_of
from tacit.blocks import Blocks
from tacit.blocks.facts import Facts
from tacit.blocks.rows import add, rows_of_fold
from tacit.engines.descend import Checkpoint, State, progress
from tacit.engines.losses import LOSSES, Probability
from tacit.engines.network import Network
from tacit.engines.solvers import Climbing, climb, leverage, leverages, shared_curvature
from tacit.estimators import MultiLabelEstimator, Problem, shared_checks
from tacit.models import LowRank

__all__ = ["SEM"]

_HEAD_STEPS, _HEAD_TURNS, _HEAD_TOL = 5, 20, 1e-4  # of (3): steps at a time, times, when to stop
_INTERCEPT_REG = 0.01  # wide enough for the rarest label
_SAMPLE = 1024  # rows for the median distance


@dataclass(frozen=True)
class Share:
    """Scores are the logarithms of shares of `count` labels."""

    count: float

    def probability(self, z: Array) -> Array:
        xp = array_namespace(z)
        return xp.clip(self.count * xp.exp(z), max=1.0)


class SEM(MultiLabelEstimator):
    """Softmax semantic embedding, and its kernel head.

    Parameters
    ----------
    rank : int, default=100
        Length of the code σ(Wᵀx).
    head : {"softmax", "kernel"}, default="softmax"
        SEM, or SEM-K: a logistic model on random features of the code.
    beta : float or None, default=None
        Labels drawn for a batch, as a multiple of its positives; None is all labels. From some
        thousand labels on it saves most of the time.
    log_q : bool, default=False
        Correct the scores of drawn labels for how likely they were drawn. The paper does not.
    updates : {"gauss-seidel", "one-pass"}, default="one-pass"
        W, V and b in turn, as in the paper, or all from one pass: much the same model, two to
        three times as fast.
    instance_weight : {"uniform", "label_count"}, default="label_count"
        The w_i of (1).
    rate : float, default=0.1
        AdaGrad's ρ.
    batch_size : int, default=200
        Rows of a batch.
    max_iter : int, default=30
        Most passes over the rows.
    tol : float, default=1e-3
        Stop once a pass lowers the objective by no more than `tol` times its value.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the rows, make the loss of those the objective, and keep
        the model of the pass where it was lowest.
    validation_fraction : float, default=0.1
        At most ½.
    gamma : float or None, default=None
        The γ of (2); None is one over the median of ‖Wᵀ(x - x')‖².
    n_components : int, default=2000
        The s of (2).
    reg : float, default=1.0
        The λ of (3).
    normalize : {"l2", None}, default="l2"
        Scale the rows of X to unit length.
    fit_intercept : bool, default=True
        Add a constant feature. b is there in any case.
    threshold, k : float, int or None, default=0.5, None
        What `predict` says yes to: the k best labels or, with k None, those of probability above
        threshold.
    device : str, default="cpu"
        "cpu" (NumPy and Numba), "cuda", "cuda:1", … or "torch" (PyTorch on the CPU).
    random_state : int, RandomState or None, default=None
        Draws the start, the batches, the labels of `beta` and the features of (2).
    verbose : bool, default=False
        Show a progress bar with the objective.

    Attributes
    ----------
    model_ : LowRank
        W, and as H either [V, b, 1] or Z with its intercepts.
    label_count_ : float
        ℓ̄, the mean number of labels of the rows that have any.
    history_ : list of float
        The loss of each pass, every batch when it was met, or the held-out loss after it.
    classes_ : ndarray
        The names of the labels, or their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> Y = np.repeat([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    >>> SEM(3, rate=0.5, batch_size=10, random_state=0).fit(X, Y).predict(X[::20]).toarray()
    array([[1, 0, 0, 1],
           [0, 1, 0, 0],
           [0, 0, 1, 1]], dtype=int8)
    """

    _kinds = ("complete", "masked")
    _in_batches = True
    _learned = ("label_count_",)
    _arrays = {"frequencies_": ("*", "*"), "phases_": ("*",)}
    _checks = {
        "rank": an_int(at_least=1),
        "head": one_of("softmax", "kernel"),
        "beta": (
            lambda v: v is None or a_float(above=0)[0](v),
            "None or a finite number above 0",
        ),
        "log_q": a_bool(),
        "updates": one_of("gauss-seidel", "one-pass"),
        "instance_weight": one_of("uniform", "label_count"),
        "rate": a_float(above=0),
        "batch_size": an_int(at_least=1),
        "max_iter": an_int(at_least=1),
        "tol": a_float(at_least=0),
        "early_stopping": a_bool(),
        "validation_fraction": (
            lambda v: a_float(above=0)[0](v) and v <= 0.5,
            "a number above 0 and at most 0.5",
        ),
        "gamma": (
            lambda v: v is None or a_float(above=0)[0](v),
            "None or a finite number above 0",
        ),
        "n_components": an_int(at_least=1),
        "reg": a_float(above=0),
        **shared_checks(),
    }

    frequencies_: Any  # of (2), the columns of Φ and θ, where there is a kernel head
    phases_: Any
    _online: Any = None  # what `partial_fit` goes on from

    def __init__(
        self,
        rank: int = 100,
        *,
        head: Literal["softmax", "kernel"] = "softmax",
        beta: float | None = None,
        log_q: bool = False,
        updates: Literal["gauss-seidel", "one-pass"] = "one-pass",
        instance_weight: Literal["uniform", "label_count"] = "label_count",
        rate: float = 0.1,
        batch_size: int = 200,
        max_iter: int = 30,
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        gamma: float | None = None,
        n_components: int = 2000,
        reg: float = 1.0,
        normalize: Literal["l2"] | None = "l2",
        fit_intercept: bool = True,
        threshold: float = 0.5,
        k: int | None = None,
        device: str = "cpu",
        random_state=None,
        verbose: bool = False,
    ):
        self.rank = rank
        self.head = head
        self.beta = beta
        self.log_q = log_q
        self.updates = updates
        self.instance_weight = instance_weight
        self.rate = rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.gamma = gamma
        self.n_components = n_components
        self.reg = reg
        self.normalize = normalize
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.k = k
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss(self) -> Probability:
        return Share(self.label_count_) if self.phases_ is None else LOSSES["logistic"]

    # Fitting

    def fit(self, X: Any, Y: Any = None, *, checkpoint: Any = None) -> Self:
        """Learn from features X and labels Y; see `LEML.fit` for what they may be."""
        self._online = None
        return super().fit(X, Y, checkpoint=checkpoint)

    def _fit(self, problem: Problem) -> LowRank:
        network = self._network()
        n_rows, counts, n_labelled = _totals(problem)
        self.label_count_ = float(counts.sum() / max(n_labelled, 1))
        seed = int(problem.rng.randint(2**31))
        frequency = counts / max(counts.sum(), 1.0)

        def start() -> State:
            state = network.start(problem, self.rank, problem.backend.asarray(counts), n_rows)
            xp = array_namespace(state["W"])
            epochs = xp.zeros(1, dtype=state["W"].dtype, device=state["W"].device)
            return self._best(state | {"epochs": epochs}, None, np.inf)

        def step(state: State) -> tuple[State, float]:
            turn = seed + int(state["epochs"][0])
            learned = {name: state[name] for name in _LEARNED}
            batches = problem.batches(self.batch_size, turn)
            learned, loss = network.epoch(learned, batches, frequency, turn)
            new = state | learned | {"epochs": state["epochs"] + 1}
            if self._held is not None:
                loss = float(self._held.sum(network.value, learned))
                new = self._best(new, state, loss)
            return new, loss

        state = problem.descend(start, step)
        if self._held is not None:
            state = {name: state[f"best {name}"] for name in _THETA}
        else:
            self._online = state, counts, n_labelled, self._known
        return self._model(problem, state, np.random.RandomState(seed))

    def _network(self) -> Network:
        return Network(
            "sigmoid", "softmax", float(self.rate), in_turn=self.updates == "gauss-seidel",
            by_count=self.instance_weight == "label_count",
            beta=None if self.beta is None else float(self.beta), log_q=self.log_q,
        )  # fmt: skip

    def _best(self, new: State, old: State | None, loss: float) -> State:
        """`new` with the parameters of the pass of least held-out loss beside its own."""
        if self._held is None:
            return new
        xp = array_namespace(new["W"])
        if old is None or loss < float(old["best"][0]):
            number = xp.asarray([loss], dtype=xp.float64, device=new["W"].device)
            return new | {"best": number} | {f"best {name}": new[name] for name in _THETA}
        return new | {name: old[name] for name in old if name.startswith("best")}

    def _problem(self, blocks: Blocks, known: Facts, resume: Checkpoint | None = None) -> Problem:
        self._held, self._known = None, known
        if self.early_stopping:
            cv = max(2, round(1 / self.validation_fraction))
            self._held = super()._problem(blocks.map(rows_of_fold, 0, cv, True), known).blocks
            blocks = blocks.map(rows_of_fold, 0, cv, False)
        return super()._problem(blocks, known, resume)

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """One pass over a batch of rows, in mini-batches of `batch_size`.

        The first batch also starts the model: make it some hundred rows at least. It also goes on
        from `fit`, in the same process.
        """
        check_params(self)
        if self.head == "kernel" or self.early_stopping:
            raise ValueError(
                'partial_fit is for head="softmax" and early_stopping=False; got '
                f"head={self.head!r} and early_stopping={self.early_stopping!r}; use fit"
            )
        begun = self._online
        if begun is None and hasattr(self, "model_"):
            raise ValueError(
                "partial_fit cannot go on with a model that was loaded or stopped early; begin "
                "with a new estimator"
            )
        blocks, known = self._rows(X, Y) if begun is None else self._rows_again(X, Y, begun[-1])
        problem = self._problem(blocks, known)
        network = self._network()
        n_rows, counts, n_labelled = _totals(problem)
        if begun is None:
            self.history_ = []
            state = network.start(problem, self.rank, problem.backend.asarray(counts), n_rows)
            first, seed = known, 0
        else:
            state, before, n_before, first = begun
            counts, n_labelled = counts + before, n_labelled + n_before
            seed = len(self.history_)
        self.label_count_ = float(counts.sum() / max(n_labelled, 1))
        learned = {name: state[name] for name in _LEARNED}
        batches = problem.batches(self.batch_size, seed)
        frequency = counts / max(counts.sum(), 1.0)
        learned, loss = network.epoch(learned, batches, frequency, seed)
        self.history_.append(loss)
        self._online = learned, counts, n_labelled, first
        return self._fitted(self._model(problem, learned, None), first)

    def _model(self, problem: Problem, state: State, rng: np.random.RandomState | None) -> LowRank:
        numbers = {name: problem.backend.to_numpy(state[name]) for name in _THETA}
        if rng is None or self.head == "softmax":
            self.frequencies_ = self.phases_ = None
            V, b = numbers["V"], numbers["b"][:, None]
            return LowRank(numbers["W"], np.hstack([V, b, np.ones_like(b)]))
        s, W = self.n_components, state["W"]
        gamma = self._gamma(problem, W)
        draw = rng.standard_normal((self.rank, s))
        self.frequencies_ = (np.sqrt(2 * gamma) * draw).astype(problem.dtype)
        self.phases_ = rng.uniform(0, 2 * np.pi, s).astype(problem.dtype)
        Z = self._solve_Z(problem, W)
        return LowRank(numbers["W"], problem.backend.to_numpy(Z))

    # SEM-K

    def _gamma(self, problem: Problem, W: Array) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        some = next(problem.batches(_SAMPLE, 0))
        A = np.asarray(some.backend.to_numpy(some.project(W)), np.float64)
        squares = np.sum(A * A, axis=1)
        distances = squares[:, None] + squares - 2 * (A @ A.T)
        median = float(np.median(distances[np.triu_indices(len(A), 1)])) if len(A) > 1 else 1.0
        return 1 / median if median > 0 else 1.0

    def _solve_Z(self, problem: Problem, W: Array) -> Array:
        """The minimiser of (3), with the intercepts as last column."""
        lift = self._lift(problem.backend)
        gram = problem.blocks.sum(_head_gram, W, lift, self.n_components + 1)
        xp, width = array_namespace(W), gram.shape[0]
        regs = xp.asarray([float(self.reg)] * (width - 1) + [_INTERCEPT_REG],
                          dtype=W.dtype, device=W.device)  # fmt: skip
        lever = leverage(gram, W.dtype)

        def evaluate(Z: Array) -> Climbing:
            sums, slope, total = problem.blocks.sum(_head_pass, W, lift, Z, lever)
            value = sums[0] - 0.5 * xp.sum(xp.astype(regs * Z * Z, sums.dtype), axis=1)
            return Climbing(value, slope - regs * Z, xp.astype(sums[2] / total, W.dtype), sums[1])

        solve = shared_curvature(gram, regs)
        Z = xp.zeros((problem.n_labels, width), dtype=W.dtype, device=W.device)
        last = np.inf
        with progress(self, 0, _HEAD_TURNS) as show:
            for _ in range(_HEAD_TURNS):
                Z, at = climb(evaluate, Z, solve, LOSSES["logistic"].bound, _HEAD_STEPS)
                value = -float(xp.sum(at.value))
                show(value)
                if last - value <= _HEAD_TOL * abs(value):
                    break
                last = value
        return Z

    def _lift(self, backend: Any) -> Callable[[Array], Array]:
        """Codes Wᵀx ↦ [ψ(x), 1]."""
        frequencies, phases = backend.asarray(self.frequencies_), backend.asarray(self.phases_)
        scale = (2 / phases.shape[0]) ** 0.5

        def lift(A: Array) -> Array:
            xp = array_namespace(A)
            one = xp.ones((A.shape[0], 1), dtype=A.dtype, device=A.device)
            return xp.concat([scale * xp.cos(A @ frequencies + phases), one], axis=1)

        return lift

    # Prediction

    def _code_width(self, W: np.ndarray) -> int:
        if self.phases_ is None:
            return W.shape[1] + 2
        if np.shape(self.frequencies_) != (W.shape[1], len(self.phases_)):
            raise ValueError(f"its frequencies_ have shape {np.shape(self.frequencies_)}")
        return len(self.phases_) + 1

    def _latent(self, block: Block) -> Array:
        A = super()._latent(block)
        return sigmoid(A) if self.phases_ is None else A

    def _codes(self, block: Block) -> Array:
        """[U, 1, -log Σ exp h], so that codes · [V, b, 1]ᵀ = log p; or [ψ(x), 1]."""
        U = self._latent(block)
        if self.phases_ is not None:
            return self._lift(block.backend)(U)
        xp, H = array_namespace(U), block.backend.asarray(self.model_.H)
        V, b = H[:, :-2], H[:, -2]
        total = lambda rows: block.backend.log_sum_exp(U[rows] @ V.T, b)
        totals = xp.concat(block.backend.parallel_map(total, pieces(block, V.shape[0])))
        one = xp.ones((U.shape[0], 1), dtype=U.dtype, device=U.device)
        return xp.concat([U, one, -totals[:, None]], axis=1)


_THETA = ("W", "V", "b")
_LEARNED = (*_THETA, *(f"{name}²" for name in _THETA))


def _totals(problem: Problem) -> tuple[int, np.ndarray, int]:
    """How many rows, how often each label was said, and of how many rows any was."""
    n_rows, counts, n_labelled = problem.blocks.sum(_counts)
    return n_rows, np.asarray(problem.backend.to_numpy(counts), np.float64), n_labelled


def _counts(b: Block) -> tuple[int, Array, int]:
    labelled = b.Y.indptr[1:] > b.Y.indptr[:-1]
    return b.Y.shape[0], label_counts(b), int(array_namespace(labelled).sum(labelled))


def _head_gram(b: Block, W: Array, lift: Callable, width: int) -> Array:
    A = b.project(W)
    return reduce(
        add, b.backend.parallel_map(lambda rows: _square(lift(A[rows])), pieces(b, width))
    )


def _square(A: Array) -> Array:
    return A.T @ A


def _head_pass(
    b: Block, W: Array, lift: Callable, Z: Array, lever: Array
) -> tuple[Array, Array, float]:
    """The sums of `Backend.exposed` over each label, RᵀΨ, and the sum of the weights of rows."""
    codes, xp = b.project(W), array_namespace(Z)
    S, y = (b.Y, None) if b.omega is None else (b.omega, b.y)
    ones = xp.ones((1, Z.shape[0]), dtype=Z.dtype, device=Z.device)

    def piece(rows: slice) -> tuple[Array, Array, float]:
        A = lift(codes[rows])
        weights = leverages(A, lever)
        at = b.backend.exposed(A @ Z.T, ones, S, y, rows, weights, None)
        return at.labels, at.residual.T @ A, float(xp.sum(weights))

    return reduce(add, b.backend.parallel_map(piece, pieces(b, max(Z.shape))))
