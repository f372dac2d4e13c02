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
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block, label_counts, pieces
from tacit.basics.params import a_bool, a_float, an_int, one_of
from tacit.blocks import Blocks
from tacit.blocks.rows import add
from tacit.engines.descend import State
from tacit.engines.losses import LOSSES
from tacit.engines.network import Network
from tacit.engines.solvers import Climbing, climb, leverage, leverages, shared_curvature
from tacit.estimators import Fit, MultiLabelEstimator, Online, Problem, shared_checks
from tacit.methods.sem.model import KernelHead, Softmax, lift

__all__ = ["SEM"]

_HEAD_STEPS, _HEAD_TURNS, _HEAD_TOL = 5, 20, 1e-4  # of (3): steps at a time, times, when to stop
_INTERCEPT_REG = 0.01  # wide enough for the rarest label
_SAMPLE = 1024  # rows for the median distance


class SEM(Online, MultiLabelEstimator):
    """Softmax semantic embedding, and its kernel head.

    With its defaults it ranks up to three points of P@3 behind tuned ridge on sparse features: the
    best rate and number of passes differ from set to set.

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
    normalize : {"auto", "l2", None}, default="auto"
        "l2" scales the rows of X to unit length. "auto" does so too and, where most of X is not 0,
        standardises its columns before.
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
    model_ : Softmax or KernelHead
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

    behind_ridge = (
        "With its defaults it ranks up to three points of P@3 behind tuned ridge on sparse "
        "features: the best rate and number of passes differ from set to set."
    )
    label_kinds = ("complete", "masked")
    model_kinds = (Softmax, KernelHead)
    deals_rows = "batches"
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
        normalize: Literal["auto", "l2"] | None = "auto",
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
    def label_count_(self) -> float:
        return self.model_.label_count

    # Fitting

    def _fit(self, problem: Problem) -> Fit:
        network = self._network()
        problem, held = self._held_out(problem)
        n_rows, counts, n_labelled = _totals(problem)
        seed = int(problem.rng.randint(2**31))
        frequency = counts / max(counts.sum(), 1.0)

        def start() -> State:
            state = network.start(problem, self.rank, problem.backend.asarray(counts), n_rows)
            xp = array_namespace(state["W"])
            epochs = xp.zeros(1, dtype=state["W"].dtype, device=state["W"].device)
            state = state | {"epochs": epochs}
            return state if held is None else _best(state, None, np.inf)

        def step(state: State) -> tuple[State, float]:
            turn = seed + int(state["epochs"][0])
            learned = {name: state[name] for name in _LEARNED}
            batches = problem.batches(self.batch_size, turn)
            learned, loss = network.epoch(learned, batches, frequency, turn)
            new = state | learned | {"epochs": state["epochs"] + 1}
            if held is not None:
                loss = float(held.sum(network.value, learned))
                new = _best(new, state, loss)
            return new, loss

        state, history = problem.descend(start, step)
        online = None
        if held is not None:
            state = {name: state[f"best {name}"] for name in _THETA}
        elif self.head == "softmax":
            online = {name: state[name] for name in _LEARNED} | _counted(counts, n_labelled)
        label_count = float(counts.sum() / max(n_labelled, 1))
        rng = np.random.RandomState(seed)
        model = self._model if self.head == "softmax" else self._kernel_model
        return Fit(model(problem, state, label_count, rng), history, online=online)

    def _held_out(self, problem: Problem) -> tuple[Problem, Blocks | None]:
        """The problem of the rows to learn from, and the rows that say when to stop, if any."""
        if not self.early_stopping:
            return problem, None
        cv = max(2, round(1 / self.validation_fraction))
        held = problem.fold(0, cv)
        return replace(problem, blocks=problem.fold(0, cv, inside=False)), held

    def _network(self) -> Network:
        return Network(
            "sigmoid", "softmax", float(self.rate), in_turn=self.updates == "gauss-seidel",
            by_count=self.instance_weight == "label_count",
            beta=None if self.beta is None else float(self.beta), log_q=self.log_q,
        )  # fmt: skip

    def _check_online(self) -> None:
        if self.head == "kernel" or self.early_stopping:
            raise ValueError(
                'partial_fit is for head="softmax" and early_stopping=False; got '
                f"head={self.head!r} and early_stopping={self.early_stopping!r}; use fit"
            )

    def _update(self, problem: Problem, state: State | None, n_before: int) -> Fit:
        """One pass over a batch of rows, in mini-batches of `batch_size`."""
        network = self._network()
        n_rows, counts, n_labelled = _totals(problem)
        if state is None:
            learned = network.start(problem, self.rank, problem.backend.asarray(counts), n_rows)
        else:
            counts, n_labelled = counts + state["counts"], n_labelled + int(state["labelled"][0])
            learned = {name: state[name] for name in _LEARNED}
        batches = problem.batches(self.batch_size, n_before)
        frequency = counts / max(counts.sum(), 1.0)
        learned, loss = network.epoch(
            {name: learned[name] for name in _LEARNED}, batches, frequency, n_before
        )
        label_count = float(counts.sum() / max(n_labelled, 1))
        model = self._model(problem, learned, label_count, None)
        return Fit(model, [loss], online=learned | _counted(counts, n_labelled))

    def _model(self, problem: Problem, state: State, label_count: float, _: Any) -> Softmax:
        W, V, b = (problem.to_host(state[name]) for name in _THETA)
        b = b[:, None]
        return Softmax(W, np.hstack([V, b, np.ones_like(b)]), label_count)

    # SEM-K

    def _kernel_model(
        self, problem: Problem, state: State, label_count: float, rng: np.random.RandomState
    ) -> KernelHead:
        s, W = self.n_components, state["W"]
        gamma = self._gamma(problem, W)
        draw = rng.standard_normal((self.rank, s))
        frequencies = (np.sqrt(2 * gamma) * draw).astype(problem.dtype)
        phases = rng.uniform(0, 2 * np.pi, s).astype(problem.dtype)
        raised = lift(problem.backend, frequencies, phases)
        Z = self._solve_Z(problem, W, raised)
        return KernelHead(problem.to_host(W), problem.to_host(Z), frequencies, phases, label_count)

    def _gamma(self, problem: Problem, W: Array) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        some = next(problem.batches(_SAMPLE, 0))
        A = np.asarray(some.backend.to_numpy(some.project(W)), np.float64)
        squares = np.sum(A * A, axis=1)
        distances = squares[:, None] + squares - 2 * (A @ A.T)
        median = float(np.median(distances[np.triu_indices(len(A), 1)])) if len(A) > 1 else 1.0
        return 1 / median if median > 0 else 1.0

    def _solve_Z(self, problem: Problem, W: Array, lift: Callable) -> Array:
        """The minimiser of (3), with the intercepts as last column."""
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
        with problem.loop.progress(_HEAD_TURNS) as show:
            for _ in range(_HEAD_TURNS):
                Z, at = climb(evaluate, Z, solve, LOSSES["logistic"].bound, _HEAD_STEPS)
                value = -float(xp.sum(at.value))
                show(value)
                if last - value <= _HEAD_TOL * abs(value):
                    break
                last = value
        return Z


_THETA = ("W", "V", "b")
_LEARNED = (*_THETA, *(f"{name}²" for name in _THETA))


def _best(new: State, old: State | None, loss: float) -> State:
    """`new` with the parameters of the pass of least held-out loss beside its own."""
    xp = array_namespace(new["W"])
    if old is None or loss < float(old["best"][0]):
        number = xp.asarray([loss], dtype=xp.float64, device=new["W"].device)
        return new | {"best": number} | {f"best {name}": new[name] for name in _THETA}
    return new | {name: old[name] for name in old if name.startswith("best")}


def _counted(counts: np.ndarray, n_labelled: int) -> State:
    """How often labels were said, and of how many rows any was: what a stream has seen so far."""
    return {"counts": counts, "labelled": np.array([n_labelled])}


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
