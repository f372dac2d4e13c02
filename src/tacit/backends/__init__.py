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
    top_k(A, B, k, skip)  the k best columns of each row of A Bᵀ, entries of `skip` left out
    ===================== ======================================================================

All backends agree with dense NumPy in float64 (tests/backends); ties in `top_k` go to the
lower index everywhere.
"""

from __future__ import annotations

from typing import Any, Protocol

from tacit.backends.sparse import Sparse as Sparse

__all__ = ["Array", "Backend", "Sparse", "get_backend"]

Array = Any  # an array of the backend: numpy.ndarray or torch.Tensor


class Backend(Protocol):
    """What every backend offers."""

    def asarray(self, x: Any) -> Array: ...
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
