"""Backends: where the arithmetic happens.

A backend is a handful of kernels, not a copy of NumPy; dense algebra goes through the array API.

    ===================== ======================================================================
    spmm(S, B, values)    S B;  S dense or `Sparse`, `values` in place of S's own entries
    spmm_t(S, B, values)  Sᵀ B, through the cached transpose
    sddmm(S, A, B)        a_iᵀ b_j on the pattern of S only
    dense(S, rows, dtype) some rows of a pattern S as an array of zeros and ones
    cross(S, T)           SᵀT, dense, in float64
    grams(S, A, columns)  Σ_{i: s_ij ≠ 0} s_ij a_i a_iᵀ for each j of some columns of S
    solve_spd(G, B)       x_j = G_j⁻¹ b_j for a batch of symmetric positive definite G_j
    exposed(F, μ, S, …)   F ← p ∘ (y - σ(F)), in place, with its sums; see `Exposed`
    softmax(F, b, S, …)   F ← w (P - G), in place, and the losses; see `Backend.softmax`
    log_sum_exp(F, b)     log Σ_j exp(f_ij + b_j) of each row; F may be overwritten
    adagrad(θ, S, G, ρ)   S ← S + g², θ ← θ - ρ g / (√S + ε), in place, for some rows or all
    adagrad_spmm(θ, S, …)  the same with g = T D + diag(decay) θ, for some rows
    packed_grams(A, w)    Σ_j w_ji a_j a_jᵀ for each column i of w: lower triangles, row by row
    solve_packed(G, B, r) x_i = (G_i + diag(r))⁻¹ b_i for packed G_i
    parallel_map(f, …)    [f(item), …] of some items, side by side where there are cores
    top_k(A, B, k, skip)  the k best columns of each row of A Bᵀ, entries of `skip` left out
    ===================== ======================================================================

All backends agree with dense NumPy in float64 (tests/backends); ties in `top_k` go to the
lower index everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tacit.backends.sparse import Sparse as Sparse

__all__ = ["Array", "Backend", "Exposed", "Sparse", "get_backend"]

ADAGRAD_EPSILON = 1e-8  # outside the root; the paper does not show where
Array = Any  # an array of the backend: numpy.ndarray or torch.Tensor


class Exposed(NamedTuple):
    """What the logistic likelihood under exposure μ says of some rows of scores ψ.

    Something said yes has the likelihood μσ(ψ), and silence 1 - μσ(ψ): it may be a no, or nobody
    was asked. p = P(asked | silence) = μσ(-ψ) / (1 - μσ(ψ)), and 1 where something was said.

    Attributes
    ----------
    residual : (n_rows, n_labels)
        R = p ∘ (y - σ(ψ)), the derivative of the log-likelihood; its second derivative in ψ, for
        given p, is at most |R|.
    rows, labels : (2, n_rows), (3, n_labels)
        Sums over each row, and over each label: the log-likelihood; (labels only) p; and |R| times
        a weight of the other side. Without weights of the labels the last sum of a row is 0;
        without weights of the rows `labels` is None.
    """

    residual: Array
    rows: Array
    labels: Array | None


class Backend(Protocol):
    """What every backend offers.

    `chunk` is how many scores it likes to lay out at a time, `block_rows` how many rows in a block,
    and `pieces` into how many a block of many rows is cut at least, to be shared out.
    """

    chunk: int
    pieces: int
    block_rows: int

    def room(self) -> int | None:
        """How many bytes its memory has free, where it is not the host's."""
        ...

    def asarray(self, x: Any) -> Array: ...
    def kept(self, x: Any) -> Array:
        """The array of weights that many blocks need: moved once in the life of the backend."""
        ...

    def to_numpy(self, x: Array) -> Any: ...
    def sparse(self, S: Any, *, pattern: bool = False) -> Sparse: ...
    def transpose(self, S: Sparse) -> Sparse: ...
    def spmm(self, S: Any, B: Array, values: Array | None = None) -> Array: ...
    def spmm_t(self, S: Any, B: Array, values: Array | None = None) -> Array: ...
    def sddmm(self, S: Sparse, A: Array, B: Array) -> Array: ...
    def dense(self, S: Sparse, rows: slice, dtype: Any) -> Array: ...
    def cross(self, S: Any, T: Any) -> Array: ...
    def grams(self, S: Sparse, A: Array, columns: slice, values: Array | None = None) -> Array: ...
    def solve_spd(self, G: Array, B: Array) -> Array: ...
    def parallel_map(self, f: Callable, items: Sequence) -> list: ...
    def packed_grams(self, A: Array, weights: Array) -> Array: ...
    def solve_packed(self, G: Array, B: Array, reg: Array) -> Array: ...
    def exposed(
        self,
        F: Array,
        mu: Array,
        S: Sparse,
        y: Array | None,
        rows: slice,
        row_weights: Array | None,
        label_weights: Array | None,
    ) -> Exposed: ...
    def softmax(
        self,
        F: Array,
        offset: Array,
        S: Sparse,
        omega: Sparse | None,
        rows: slice,
        by_count: bool,
    ) -> tuple[Array, Array]:
        """The loss w_i (log Σ_j exp h_ij - Σ_j g_ij h_ij) of some rows, and its derivative in h.

        h = F + offset; the sums are over the labels, or over the known entries `omega` only. g is
        1/ℓ_i on the ℓ_i positives S of a row, w_i is 1 or (`by_count`) ℓ_i; a row without any has
        neither loss nor derivative. F may be overwritten.
        """
        ...

    def log_sum_exp(self, F: Array, offset: Array) -> Array: ...
    def adagrad(
        self, theta: Array, S: Array, G: Array, rate: float, rows: Array | None = None
    ) -> None: ...
    def adagrad_spmm(
        self, theta: Array, S: Array, T: Sparse, D: Array, rate: float, rows: Array, decay: Array
    ) -> None:
        """`adagrad` of some rows of θ, given one by one in T: g = T D + diag(decay) θ[rows]."""
        ...

    def top_k(self, A: Array, B: Array | None, k: int, skip: Sparse | None) -> Any: ...


def get_backend(device: str) -> Backend:
    """The backend of a `device`: "cpu" is NumPy and Numba; "torch", "cuda:1", … are PyTorch."""
    if device == "cpu":
        from tacit.backends.numpy import NumpyBackend

        return NumpyBackend()
    if device == "torch" or device.split(":")[0] == "cuda":
        try:
            from tacit.backends.torch import TorchBackend
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"device={device!r} needs PyTorch, which is not installed; "
                'pip install "tacit[torch]" or use device="cpu"'
            ) from None
        return TorchBackend.on(device)
    raise ValueError(f'device must be "cpu", "torch", "cuda" or "cuda:<number>"; got {device!r}')
