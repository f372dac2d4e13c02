"""The PyTorch backend, for a GPU or (as "torch") for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tacit.backends import ADAGRAD_EPSILON, Exposed
from tacit.backends.sparse import Sparse
from tacit.labels import TopK

try:
    from tacit.backends import triton
except ImportError:  # comes with PyTorch for CUDA on Linux, and is of use there alone
    triton = None  # type: ignore[assignment]

__all__ = ["TorchBackend"]

_BLOCK_ENTRIES = 2**26  # numbers a kernel lays out at a time: 256 MiB in float32


@dataclass(frozen=True)
class TorchBackend:
    """Tensors on one device."""

    device: str = "cpu"
    pieces = 1
    chunk = _BLOCK_ENTRIES  # class attributes, not fields: the same for all
    block_rows = 2**22
    _kept: dict = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def on(cls, device: str) -> TorchBackend:
        """The backend of "torch" (the CPU) or of a CUDA device, if there is one."""
        if device == "torch":
            return cls("cpu")
        number = int(device.split(":")[1]) if ":" in device else 0
        if number >= torch.cuda.device_count():
            raise ValueError(
                f"device={device!r} is not there: PyTorch sees {torch.cuda.device_count()} CUDA "
                'devices; use device="cpu"'
            )
        return cls(device)

    def room(self) -> int | None:
        if torch.device(self.device).type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        kept = torch.cuda.memory_reserved(self.device)  # by PyTorch, for its next arrays
        return free + kept - torch.cuda.memory_allocated(self.device)

    def asarray(self, x: Any) -> torch.Tensor:
        return torch.as_tensor(x, device=self.device)

    def kept(self, x: np.ndarray) -> torch.Tensor:
        place = (x.__array_interface__["data"][0], x.shape)
        if place not in self._kept:
            self._kept[place] = x, self.asarray(x)  # with x itself, or its place might be reused
        return self._kept[place][1]

    def to_numpy(self, x: torch.Tensor) -> np.ndarray:
        return x.detach().cpu().numpy()

    def sparse(self, S: Any, *, pattern: bool = False) -> Sparse:
        S = sp.csr_array(S)
        kind = np.int32 if max(S.nnz, *S.shape) < 2**31 else np.int64
        indptr, indices = (self.asarray(a.astype(kind)) for a in (S.indptr, S.indices))
        return Sparse(S.shape, indptr, indices, None if pattern else self.asarray(S.data), self)

    def transpose(self, S: Sparse) -> Sparse:
        order = torch.argsort(S.indices, stable=True)
        counts = torch.bincount(S.indices, minlength=S.shape[1])
        indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(S.indptr.dtype)
        data = None if S.data is None else S.data[order]
        shape = (S.shape[1], S.shape[0])
        return Sparse(shape, indptr, _owners(S)[order], data, self, order.to(S.indptr.dtype))

    def plan(self, S: Sparse) -> Any:
        """How Triton shares out the products with S; None where PyTorch's library does them."""
        return triton.segments(S) if triton is not None and S.indptr.is_cuda else None

    def spmm(self, S: Any, B: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
        if isinstance(B, Sparse):  # on the host, as the second look that it is for
            return self.asarray((S.scipy() @ B.scipy()).toarray())
        if not isinstance(S, Sparse):
            dtype = torch.promote_types(S.dtype, B.dtype)
            return S.to(dtype) @ B.to(dtype)
        data = S.data
        if values is not None:
            data = values if S.order is None else values[S.order]
        dtype = B.dtype if data is None else torch.promote_types(data.dtype, B.dtype)
        if S.plan is not None:
            dealt = S.plan.data if values is None else S.plan.of(data)
            dealt = None if dealt is None else dealt.to(dtype)
            return triton.gather_sum(S.plan, dealt, B.to(dtype), S.shape[0])
        if data is None:
            data = B.new_ones(S.nnz)
        if not S.nnz:  # PyTorch's own product mishandles a matrix without entries
            return B.new_zeros((S.shape[0], B.shape[1]), dtype=dtype)
        matrix = torch.sparse_csr_tensor(S.indptr, S.indices, data.to(dtype), size=S.shape)
        return matrix @ B.to(dtype)

    def spmm_t(self, S: Any, B: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
        return self.spmm(S.transposed if isinstance(S, Sparse) else S.T, B, values)

    def sddmm(self, S: Sparse, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if S.plan is not None:
            return triton.dots(S.plan, A, B)
        rows = _owners(S)
        out = A.new_empty(S.nnz)
        size = max(1, _BLOCK_ENTRIES // max(A.shape[1], 1))
        for start in range(0, S.nnz, size):
            e = slice(start, start + size)
            out[e] = (A[rows[e]] * B[S.indices[e]]).sum(1)
        return out

    def dense(self, S: Sparse, rows: slice, dtype: Any) -> torch.Tensor:
        part = S.some(rows)
        out = torch.zeros(part.shape, dtype=dtype, device=self.device)
        out[_owners(part), part.indices] = 1
        return out

    def cross(self, S: Any, T: Any) -> torch.Tensor:
        if isinstance(T, Sparse) and not isinstance(S, Sparse):
            return self.spmm_t(T, S.to(torch.float64)).T
        n, width = T.shape
        out = torch.zeros((S.shape[1], width), dtype=torch.float64, device=self.device)
        size = max(1, _BLOCK_ENTRIES // max(n, 1))  # columns of T laid out at a time
        for start in range(0, width, size):
            some = slice(start, min(start + size, width))
            sparse = isinstance(T, Sparse)
            part = _dense(T.transposed.some(some)).T if sparse else T[:, some].to(torch.float64)
            out[:, some] = self.spmm_t(S, part)
        return out

    def grams(
        self, S: Sparse, A: torch.Tensor, columns: slice, values: torch.Tensor | None = None
    ) -> torch.Tensor:
        T, width = S.transposed.some(columns), A.shape[1]
        out = A.new_empty((T.shape[0], width, width))
        size = max(1, _BLOCK_ENTRIES // max(A.shape[0] * width, 1))
        for p in range(0, width, size):  # Σ_i s_ij a_ip a_i: one product for some p
            products = (A[:, p : p + size, None] * A[:, None, :]).flatten(1)
            out[:, p : p + size] = self.spmm(T, products, values).unflatten(1, (-1, width))
        return out

    def solve_spd(self, G: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.cholesky_solve(B[..., None], torch.linalg.cholesky(G))[..., 0]

    def parallel_map(self, f: Callable, items: Sequence) -> list:
        return [f(item) for item in items]

    def packed_grams(self, A: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        size = max(1, _BLOCK_ENTRIES // 4 // max(A.shape[1] ** 2, 1))
        parts = [slice(start, start + size) for start in range(0, max(len(A), 1), size)]
        dtype = torch.promote_types(A.dtype, weights.dtype)
        columns, (p, q) = A.T.contiguous(), torch.tril_indices(*[A.shape[1]] * 2, device=A.device)
        products = lambda part: (columns[p, part] * columns[q, part]).to(dtype)
        return torch.stack([products(part) @ weights[part].to(dtype) for part in parts]).sum(0)

    def solve_packed(self, G: torch.Tensor, B: torch.Tensor, reg: torch.Tensor) -> torch.Tensor:
        m, k = B.shape
        p, q = torch.tril_indices(k, k, device=self.device)
        out = G.new_empty((m, k))
        size = max(1, _BLOCK_ENTRIES // (4 * k * k))  # unpacked, factorised, and room to work
        for start in range(0, m, size):
            some = slice(start, start + size)
            lower = G.new_zeros((len(out[some]), k, k))
            lower[:, p, q] = G[:, some].T
            lower.diagonal(dim1=1, dim2=2).add_(reg.to(G.dtype))
            factor, failed = torch.linalg.cholesky_ex(lower)
            if failed.any():
                raise np.linalg.LinAlgError(
                    "solve_packed: G + diag(reg) is not positive definite; use a larger reg"
                )
            out[some] = torch.cholesky_solve(B[some, :, None].to(G.dtype), factor)[..., 0]
        return out

    def exposed(
        self,
        F: torch.Tensor,
        mu: torch.Tensor,
        S: Sparse,
        y: torch.Tensor | None,
        rows: slice,
        row_weights: torch.Tensor | None,
        label_weights: torch.Tensor | None,
    ) -> Exposed:
        part, wanted = S.some(rows), row_weights is not None
        row_weights = F.new_zeros(F.shape[0]) if row_weights is None else row_weights
        label_weights = F.new_zeros(F.shape[1]) if label_weights is None else label_weights
        owner, label = _owners(part), part.indices
        f = F[owner, label].clamp(-40, 40)
        logsigmoid = torch.nn.functional.logsigmoid
        if y is None:  # silence everywhere, and then what was said in its place
            silence = triton.silence if triton is not None and F.is_cuda else _silence
            residual, by_row, by_label = silence(F, mu, row_weights, label_weights)
            m, e = mu.expand(F.shape)[owner, label], torch.exp(f)
            p = m / (1 + (1 - m) * e)
            value = torch.log(m) + logsigmoid(f) - torch.log1p((1 - m) * e) + torch.log1p(e)
            slope, before, asked = torch.sigmoid(-f), p * torch.sigmoid(f), 1 - p
        else:  # nothing but what is known counts
            residual = torch.zeros_like(F)
            by_row, by_label = (F.new_zeros((m, n)) for m, n in zip((2, 3), F.shape))
            first = int(S.indptr[rows.start])
            truth = y[first : first + label.shape[0]]
            value = torch.where(truth > 0, logsigmoid(f), logsigmoid(-f))
            slope = truth - torch.sigmoid(f)
            before, asked = torch.zeros_like(f), torch.ones_like(f)
        residual[owner, label] = slope
        size = slope.abs() - before
        by_row.index_add_(1, owner, torch.stack([value, size * label_weights[label]]))
        if not wanted:
            return Exposed(residual, by_row, None)
        sums = torch.stack([value, asked, size * row_weights[owner]])
        return Exposed(residual, by_row, by_label.double().index_add_(1, label, sums.double()))

    def softmax(
        self,
        F: torch.Tensor,
        offset: torch.Tensor,
        S: Sparse,
        omega: Sparse | None,
        rows: slice,
        by_count: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        part = S.some(rows)
        at = _owners(part), part.indices
        F = F + offset
        if omega is not None:
            F = F.masked_fill(self.dense(omega, rows, F.dtype) == 0, -torch.inf)
        counts = part.indptr.diff().to(F.dtype)
        share = 1 / counts.clamp(min=1)
        weight = counts if by_count else (counts > 0).to(F.dtype)
        means = torch.zeros_like(counts).index_add_(0, at[0], F[at]) * share
        total = torch.where(counts > 0, F.logsumexp(1), torch.zeros_like(counts))
        R = torch.where((counts > 0)[:, None], F.softmax(1) * weight[:, None], 0.0)
        R[at] -= (weight * share)[at[0]]
        return R, weight * (total - means)

    def log_sum_exp(self, F: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        return (F + offset).logsumexp(1)

    def adagrad(
        self,
        theta: torch.Tensor,
        S: torch.Tensor,
        G: torch.Tensor,
        rate: float,
        rows: torch.Tensor | None = None,
    ) -> None:
        if rows is None:
            S.addcmul_(G, G)
            theta.addcdiv_(G, S.sqrt().add_(ADAGRAD_EPSILON), value=-rate)
        else:
            squares = S[rows].addcmul_(G, G)
            S[rows] = squares
            theta[rows] -= rate * G / (squares.sqrt() + ADAGRAD_EPSILON)

    def adagrad_spmm(
        self,
        theta: torch.Tensor,
        S: torch.Tensor,
        T: Sparse,
        D: torch.Tensor,
        rate: float,
        rows: torch.Tensor,
        decay: torch.Tensor,
    ) -> None:
        G = self.spmm(T, D)
        if triton is not None and theta.is_cuda and theta.is_contiguous() and S.is_contiguous():
            triton.adagrad(theta, S, G, rows, decay, rate, ADAGRAD_EPSILON)
        else:
            self.adagrad(theta, S, G + decay[:, None] * theta[rows], rate, rows)

    def top_k(
        self, A: torch.Tensor, B: torch.Tensor | None, k: int, skip: Sparse | None = None
    ) -> TopK:
        n_labels = A.shape[1] if B is None else B.shape[0]
        k = min(k, n_labels)
        size = max(1, _BLOCK_ENTRIES // max(n_labels, 1))
        owners: Any = None if skip is None else _owners(skip)
        parts = [np.empty((0, k), np.int64)], [self.to_numpy(A[:0, :1]).repeat(k, 1)]
        for start in range(0, A.shape[0], size):
            rows = slice(start, start + size)
            scores = A[rows].clone() if B is None else A[rows] @ B.T
            if skip is not None:
                e = slice(int(skip.indptr[start]), int(skip.indptr[min(start + size, len(A))]))
                scores[owners[e] - start, skip.indices[e]] = -torch.inf
            indices, best = _stable_top_k(scores, k)
            parts[0].append(self.to_numpy(indices))
            parts[1].append(self.to_numpy(best))
        return TopK(np.concatenate(parts[0]), np.concatenate(parts[1]))


def _owners(S: Sparse) -> torch.Tensor:
    """The row of each entry."""
    return torch.repeat_interleave(S.indptr.diff(), output_size=S.nnz)  # or it waits for the size


def _silence(
    F: torch.Tensor, mu: torch.Tensor, row_weights: torch.Tensor, label_weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three arrays of `Exposed` where nothing was said."""
    e = torch.exp(F.clamp(-40, 40))
    p = mu / (1 + (1 - mu) * e)
    value = torch.log1p((1 - mu) * e) - torch.log1p(e)
    size = p * (e / (1 + e))
    by_row = torch.stack([value.sum(1), size @ label_weights])
    return -size, by_row, torch.stack([value.sum(0), p.sum(0), row_weights @ size])


def _dense(S: Sparse) -> torch.Tensor:
    out = torch.zeros(S.shape, dtype=torch.float64, device=S.indptr.device)
    out[_owners(S), S.indices] = 1.0 if S.data is None else S.data.to(torch.float64)
    return out


def _stable_top_k(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k best of each row; `torch.topk` leaves ties to chance, so they are settled here."""
    least = torch.topk(scores, k).values[:, -1:]
    above, level = scores > least, scores == least
    room = k - above.sum(1, keepdim=True)
    chosen = above | (level & (level.cumsum(1) <= room))
    indices = chosen.nonzero()[:, 1].reshape(-1, k)  # k a row, in ascending order
    best, order = torch.sort(scores.gather(1, indices), dim=1, descending=True, stable=True)
    indices = indices.gather(1, order)
    return torch.where(best == -torch.inf, -1, indices), best
