"""One hidden layer between features and labels, trained by AdaGrad on mini-batches.

    H = a(XW) Vᵀ + 1bᵀ                                                                         (1)

for losses that couple the labels of a row, and so fit neither `tacit.engines.risk` nor
`tacit.engines.moments`: SEM has a = σ and a softmax over the labels, NNML a = ReLU and a sigmoid
for each. With R the derivative of the loss in H and U = a(XW),

    ∇W = Xᵀ(a' ∘ RV),    ∇V = RᵀU,    ∇b = Rᵀ1,                                                (2)
    S ← S + g²,    θ ← θ - ρ g / (√S + ε),   entry by entry.                                   (3)

A batch either takes the three steps in turn, each at what the last one left (Gauss–Seidel, three
times R), or all of them from one R.

**Sparse features.** Rows of W whose feature no row of the batch has are neither read nor written:
∇W is formed for the others only, and so is S.

**Some of the labels.** With `beta`, a batch sees its own positives and about β times as many labels
drawn by their frequency, one set 𝓛 for all its rows, so that everything stays a matrix product.
They are drawn with replacement and counted once, and how many are drawn is Poisson with mean
N = β · (positives of the batch): label j is then in 𝓛 with probability π_j = 1 - exp(-N q_j), one
coin a label whatever β is. `log_q` takes log π_j from the score of a label that is no positive of
the batch, which makes Σ_𝓛 exp(h) an unbiased estimate of the sum over all labels ever said. When
𝓛 would be more than half of the labels, all are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block, label_counts, pieces
from tacit.basics.numerics import sigmoid
from tacit.engines.descend import State
from tacit.engines.problem import Problem

__all__ = ["Network"]

_WORTH_HALVING = 2**16  # scores of a batch that are worth two threads
_START = 0.1  # standard deviation of the first W


class _Labels(NamedTuple):
    """Which labels a batch sees (None: all), its positives and known entries among them."""

    chosen: Array | None
    Y: Sparse
    omega: Sparse | None
    y: Array | None
    offset: Array | None  # -log π


@dataclass(frozen=True)
class Network:
    """The layer (1), its loss, and how it learns."""

    activation: Literal["sigmoid", "relu"]
    loss: Literal["softmax", "logistic"]
    rate: float
    in_turn: bool = False
    by_count: bool = False
    beta: float | None = None
    log_q: bool = False
    dropout: float = 0.0

    def start(self, problem: Problem, rank: int, counts: Array, n: float) -> State:
        """A small random W, V = 0, and each label's log-odds (softmax: log-frequency) as b.

        W alone tells the codes apart; with V = 0 only the data tell the labels apart.
        """
        W = _START * problem.normal(problem.n_features, rank)
        xp = array_namespace(W)
        V = xp.zeros((problem.n_labels, rank), dtype=W.dtype, device=W.device)
        rate = (counts + 0.5) / (n + 1)
        b = xp.log(rate) if self.loss == "softmax" else xp.log(rate) - xp.log1p(-rate)
        theta = {"W": W, "V": V, "b": xp.astype(b, W.dtype)}
        squares = {f"{name}²": xp.zeros_like(value) for name, value in theta.items()}
        return theta | squares

    def fitted(self, problem: Problem, rank: int, batch_size: int) -> tuple[State, list[float]]:
        """Passes over all rows and labels in mini-batches, as many as the loop of the problem asks.

        The history has the loss without dropout after each pass.
        """
        yes, known = problem.blocks.sum(_counts)
        seed = int(problem.rng.randint(2**31))
        every_label = np.empty(0)  # none is drawn, so none needs a frequency

        def start() -> State:
            state = self.start(problem, rank, yes, known)
            return state | {"epochs": array_namespace(yes).zeros_like(state["b"][:1])}

        def step(state: State) -> tuple[State, float]:
            turn = seed + int(state["epochs"][0])
            new, _ = self.epoch(state, problem.batches(batch_size, turn), every_label, turn)
            # The loss that `epoch` gives has silent units: noise, which would end a fit by chance.
            J = float(problem.blocks.sum(self.value, new))
            return new | {"epochs": state["epochs"] + 1}, J

        return problem.descend(start, step)

    def epoch(
        self, state: State, batches: Iterable[Block], frequency: np.ndarray, seed: int
    ) -> tuple[State, float]:
        """One update a batch, and the loss of all batches, each when it was met."""
        xp, rng = array_namespace(state["W"]), np.random.default_rng(seed)
        state = {name: xp.asarray(value, copy=True) for name, value in state.items()}
        loss = 0.0
        for b in batches:
            loss += self.update(state, b, frequency, rng)  # on the device until here
        return state, float(loss)

    def update(
        self, state: State, b: Block, frequency: np.ndarray, rng: np.random.Generator
    ) -> Array:
        """Change `state` by a batch, and return the loss of the batch before that."""
        # A batch is small: threads that BLAS leaves spinning would cost more than they bring.
        [loss] = b.backend.parallel_map(lambda b: self._updated(state, b, frequency, rng), [b])
        return loss

    def _updated(
        self, state: State, b: Block, frequency: np.ndarray, rng: np.random.Generator
    ) -> Array:
        labels, keep = self._labels(b, frequency, rng), self._keep(b, state, rng)
        U, slope = self._hidden(b, state, keep)
        seen = _seen(state, labels)
        R, loss, RV = self._residual(b, U, seen, labels, back=True)
        self._step_W(state, slope * RV, b)
        if self.in_turn:
            U, _ = self._hidden(b, state, keep)
            R, *_ = self._residual(b, U, seen, labels)
        self._step_V(state, R, U, labels, b)
        if self.in_turn:
            R, *_ = self._residual(b, U, _seen(state, labels), labels)
        xp = array_namespace(U)
        slope_b = sum(xp.sum(part, axis=0) for part in R)
        self._step(state, "b", labels.chosen, slope_b, b)
        return loss

    def value(self, b: Block, state: State) -> float:
        """The loss of some rows over all labels, without dropout."""
        U, _ = self._hidden(b, state, None)
        every = _Labels(None, b.Y, b.omega, b.y, None)
        loss = lambda rows: self._of_rows(b, U, state, every, rows)[1]
        return float(sum(b.backend.parallel_map(loss, pieces(b, b.Y.shape[1]))))

    # The pieces of a step

    def _hidden(self, b: Block, state: State, keep: Array | None) -> tuple[Array, Array]:
        """U and its derivative in XW."""
        Z = b.project(state["W"])
        xp = array_namespace(Z)
        if self.activation == "sigmoid":
            U = sigmoid(Z)
            return U, U * (1 - U)
        slope = xp.astype(Z > 0, Z.dtype)
        slope = slope if keep is None else slope * keep
        return Z * slope, slope

    def _keep(self, b: Block, state: State, rng: np.random.Generator) -> Array | None:
        if not self.dropout:
            return None
        W = state["W"]
        kept = rng.random((b.Y.shape[0], W.shape[1])) >= self.dropout
        return array_namespace(W).astype(b.backend.asarray(kept), W.dtype) / (1 - self.dropout)

    def _labels(self, b: Block, frequency: np.ndarray, rng: np.random.Generator) -> _Labels:
        everything = _Labels(None, b.Y, b.omega, b.y, None)
        if self.beta is None:
            return everything
        mine = b.backend.to_numpy(b.Y.indices)
        share = -np.expm1(-self.beta * len(mine) * frequency)
        inside = rng.random(len(share)) < share
        inside[mine] = True
        if 2 * np.count_nonzero(inside) > len(inside):
            return everything
        place = np.cumsum(inside) - 1  # among the chosen
        chosen = np.flatnonzero(inside)
        offset = None
        if self.log_q:
            share[mine] = 1
            offset = b.backend.asarray(-np.log(share[chosen]))
        asarray, n_chosen = b.backend.asarray, len(chosen)
        Y = _renumbered(b.Y, asarray(place.astype(np.int32)), n_chosen)
        if b.omega is None:
            return _Labels(asarray(chosen), Y, None, None, offset)
        omega, known = _those(b.omega, asarray(inside))
        omega = _renumbered(omega, asarray(place.astype(np.int32)), n_chosen)
        return _Labels(asarray(chosen), Y, omega, b.y[known], offset)

    def _residual(
        self, b: Block, U: Array, seen: State, labels: _Labels, *, back: bool = False
    ) -> tuple[list[Array], Array, Array]:
        """R in two pieces of rows or one, the loss, and (`back`) R V."""
        n, n_labels = labels.Y.shape
        shared = b.backend.pieces > 1 and n * n_labels >= _WORTH_HALVING
        half = -(-n // 2) if shared else n
        rows = [slice(0, half), slice(half, n)] if half < n else [slice(0, n)]

        def piece(rows: slice) -> tuple[Array, Array, Array]:
            R, loss = self._of_rows(b, U, seen, labels, rows)
            return R, loss, R @ seen["V"] if back else U[:0]

        R, losses, RV = zip(*b.backend.parallel_map(piece, rows))
        return list(R), sum(losses), array_namespace(U).concat(list(RV))

    def _of_rows(
        self, b: Block, U: Array, seen: State, labels: _Labels, rows: slice
    ) -> tuple[Array, Array]:
        """R of some rows, and their loss."""
        V, offset = seen["V"], seen["b"]
        xp = array_namespace(V)
        if labels.offset is not None:
            offset = offset + xp.astype(labels.offset, V.dtype)
        F = U[rows] @ V.T
        if self.loss == "softmax":
            R, losses = b.backend.softmax(F, offset, labels.Y, labels.omega, rows, self.by_count)
        else:
            S, y = (labels.Y, None) if labels.omega is None else (labels.omega, labels.y)
            ones = xp.ones((1, V.shape[0]), dtype=V.dtype, device=V.device)
            at = b.backend.exposed(F + offset, ones, S, y, rows, None, None)
            R, losses = -at.residual, -at.rows[0]
        return R, xp.sum(losses, dtype=xp.float64)

    def _step_W(self, state: State, D: Array, b: Block) -> None:
        """From ∇W = XᵀD, for features that some row has."""
        for part, rows in b.features():
            W, S = state["W"][rows], state["W²"][rows]
            if not isinstance(part, Sparse):
                b.backend.adagrad(W, S, b.backend.spmm_t(part, D), self.rate)
                continue
            features, columns = part.transposed.occupied
            none = array_namespace(W).zeros(columns.shape[0], dtype=W.dtype, device=W.device)
            b.backend.adagrad_spmm(W, S, columns, D, self.rate, features, none)

    def _step_V(self, state: State, R: list[Array], U: Array, labels: _Labels, b: Block) -> None:
        """Label by label, so that each thread has labels of its own."""
        V, S, n_labels = state["V"], state["V²"], R[0].shape[1]
        starts = [0, R[0].shape[0]]
        half = -(-n_labels // 2)
        parts = [slice(0, half), slice(half, n_labels)] if len(R) > 1 else [slice(0, n_labels)]

        def step(part: slice) -> None:
            G = sum(r[:, part].T @ U[start : start + r.shape[0]] for r, start in zip(R, starts))
            if labels.chosen is None:
                b.backend.adagrad(V[part], S[part], G, self.rate)
            else:
                b.backend.adagrad(V, S, G, self.rate, labels.chosen[part])

        b.backend.parallel_map(step, parts)

    def _step(self, state: State, name: str, rows: Array | None, G: Array, b: Block) -> None:
        theta, S = state[name], state[f"{name}²"]
        if theta.ndim == 1:
            theta, S, G = theta[:, None], S[:, None], G[:, None]
        b.backend.adagrad(theta, S, G, self.rate, rows)


def _seen(state: State, labels: _Labels) -> State:
    """V and b of the labels that a batch sees."""
    if labels.chosen is None:
        return state
    return {name: state[name][labels.chosen] for name in ("V", "b")}


def _renumbered(S: Sparse, place: Array, width: int) -> Sparse:
    return Sparse((S.shape[0], width), S.indptr, place[S.indices], None, S.backend)


def _those(S: Sparse, inside: Array) -> tuple[Sparse, Array]:
    """The entries of a pattern in some columns, and which they were."""
    xp = array_namespace(S.indices)
    kept = inside[S.indices]
    before = xp.cumulative_sum(xp.astype(kept, xp.int64), include_initial=True)
    return Sparse(S.shape, before[S.indptr], S.indices[kept], None, S.backend), kept


def _counts(b: Block) -> tuple[Array, Array]:
    """How often each label was said yes, and how often it was said at all."""
    yes = label_counts(b)
    ones = array_namespace(yes).ones((b.Y.shape[0], 1), dtype=yes.dtype, device=yes.device)
    n_rows = array_namespace(yes).full_like(yes, b.Y.shape[0])
    return yes, n_rows if b.omega is None else b.backend.spmm_t(b.omega, ones)[:, 0]
