"""What PyTorch's library leaves far from a GPU's limit.

    gather_sum    out_i = Σ_j s_ij b_j            (S B, and Sᵀ B from the stored transpose)
    dots          z_ij = a_iᵀ b_j on the entries of S
    silence       the likelihood of what nobody said, its derivative, and their sums
    adagrad       a step of AdaGrad for some rows of the weights

The two products read a row of B for every entry of S, and that is all their cost: nnz · width
numbers. Where those rows come from decides the time. A GPU's second-level cache is read at about
twice the rate of its memory, so entries are dealt out in **segments** (entries of one row, at most
`_LONGEST` of them) that are in the order of *tiles*: runs of columns whose part of B fits into that
cache. All segments of a tile are worked on before the next one begins, so B goes through memory
once. Long rows, such as those of a frequent feature in the transpose, are shared out by the way,
and the sums of a row that has several segments meet in atomic additions.

On a matrix of the shape of Wikipedia (881,805 × 366,932, rank 500) the library's product with
the transpose takes about twice as long; `tacit bench study gpu_kernels` measures it.

What a loss makes of `dots` stays with the library: it goes over nnz numbers, where the product
reads nnz · width of them. At the shape above the logistic derivative takes 3 % of their time.

`silence` reads a score and writes a derivative. The same in the library's verbs goes through the
n × L scores some twenty times; a pass of GenEML took twice as long with them. `adagrad` reads the
gradient, the weights and their squared gradients and writes the last two, where the library's
verbs gather, square, divide and scatter in some twenty readings and writings.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from tacit.backends.sparse import Sparse

__all__ = ["Segments", "adagrad", "dots", "gather_sum", "segments", "silence"]

_LONGEST = 256  # entries that one program adds up
_COLUMNS = 128  # of B, at a time: one warp, four numbers a thread
_TILE = 2**15  # rows of B: 16 MiB of `_COLUMNS` float32, well inside a large GPU's cache
_SMALL = 2**20  # entries, below which every row is a segment
_ROWS, _LABELS, _TURNS = 16, 128, 64  # of scores: a tile, and how many a program goes through
_STEPPED = 1024  # weights that one program steps
_HOT = 0.75  # share of entries in as many columns as a tile has, from which the cache holds them


@dataclass(frozen=True)
class Segments:
    """The entries of a matrix dealt out: `owner` is a segment's row, [start, stop) its entries.

    `order` says where those entries stand in the matrix (None: as they are), and `alone` whether
    every row has at most one segment, so that nothing needs to be added atomically.
    """

    owner: torch.Tensor
    start: torch.Tensor
    stop: torch.Tensor
    indices: torch.Tensor
    data: torch.Tensor | None
    order: torch.Tensor | None
    alone: bool

    def of(self, values: torch.Tensor) -> torch.Tensor:
        """Values that were given in the order of the matrix."""
        return values if self.order is None else values[self.order]


def segments(S: Sparse, tile: int = _TILE, longest: int = _LONGEST) -> Segments:
    """Deal out the entries of S, tile by tile unless a few columns hold most of them anyway.

    Of a small matrix, such as a mini-batch, every row is a segment: more would not be repaid.
    """
    if S.nnz < _SMALL:
        rows = torch.arange(S.shape[0], device=S.indptr.device)
        return Segments(rows, S.indptr[:-1], S.indptr[1:], S.indices, S.data, None, alone=True)
    rows = torch.repeat_interleave(S.indptr.diff())
    indices, data, order = S.indices, S.data, None
    key = rows.long()
    if _scattered(S, tile):
        at = indices // tile
        order = torch.sort(at, stable=True).indices
        rows, indices, at = rows[order], indices[order], at[order]
        data = None if data is None else data[order]
        key = at.long() * S.shape[0] + rows
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    begin = first.nonzero()[:, 0]
    length = torch.diff(begin, append=begin.new_tensor([len(key)]))
    parts = (length + longest - 1) // longest
    which = torch.repeat_interleave(parts)
    within = torch.arange(len(which), device=which.device) - (parts.cumsum(0) - parts)[which]
    start = begin[which] + within * longest
    stop = torch.minimum(start + longest, (begin + length)[which])
    alone = order is None and len(which) == len(begin)
    kind = S.indptr.dtype
    order = None if order is None else order.to(kind)
    return Segments(
        rows[start].to(kind), start.to(kind), stop.to(kind), indices, data, order, alone
    )


def _scattered(S: Sparse, tile: int) -> bool:
    if S.shape[1] <= tile or not S.nnz:
        return False
    counts = torch.bincount(S.indices, minlength=S.shape[1])
    return float(torch.topk(counts, tile).values.sum()) < _HOT * S.nnz


def gather_sum(
    plan: Segments, data: torch.Tensor | None, B: torch.Tensor, n_rows: int
) -> torch.Tensor:
    """Σ_j s_ij b_j for each row i, with `data` as the entries in the plan's order (None: ones)."""
    B, width = B.contiguous(), B.shape[1]
    out = torch.zeros((n_rows, width), dtype=B.dtype, device=B.device)
    if len(plan.owner) and width:
        columns = min(_COLUMNS, triton.next_power_of_2(width))
        grid = (len(plan.owner), triton.cdiv(width, columns))
        _gather_sum[grid](
            plan.owner, plan.start, plan.stop, plan.indices, data, B, out,
            width=width, COLUMNS=columns, WEIGHTED=data is not None, ATOMIC=not plan.alone,
            WIDE=B.dtype == torch.float64, num_warps=1,
        )  # fmt: skip
    return out


def dots(plan: Segments, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """a_iᵀ b_j for each entry, in the order of the matrix."""
    A, B, width = A.contiguous(), B.contiguous(), A.shape[1]
    out = torch.zeros(len(plan.indices), dtype=A.dtype, device=A.device)
    if len(plan.owner) and width:
        columns = max(16, triton.next_power_of_2(width))
        _dots[(len(plan.owner),)](
            plan.owner, plan.start, plan.stop, plan.indices, plan.order, A, B, out,
            width=width, COLUMNS=columns, ORDERED=plan.order is not None,
            num_warps=max(1, columns // 1024),
        )  # fmt: skip
    return out


def silence(
    F: torch.Tensor, mu: torch.Tensor, row_weights: torch.Tensor, label_weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three arrays of `Exposed` where nothing was said: one reading of F, one writing."""
    F, mu = F.contiguous(), mu.contiguous()
    n, n_labels = F.shape
    residual = torch.empty_like(F)
    by_row, by_label = F.new_zeros((2, n)), F.new_zeros((3, n_labels))
    if F.numel():
        grid = (triton.cdiv(n_labels, _LABELS), triton.cdiv(n, _ROWS * _TURNS))
        _silence[grid](
            F, mu, row_weights.contiguous(), label_weights.contiguous(),
            residual, by_row, by_label, n, n_labels,
            EACH=mu.shape[0] > 1, ROWS=_ROWS, LABELS=_LABELS, TURNS=_TURNS,
        )  # fmt: skip
    return residual, by_row, by_label


def adagrad(
    theta: torch.Tensor,
    S: torch.Tensor,
    G: torch.Tensor,
    rows: torch.Tensor,
    decay: torch.Tensor,
    rate: float,
    epsilon: float,
) -> None:
    """In place: g = G + diag(decay) θ[rows], S[rows] += g², θ[rows] -= ρ g / (√S[rows] + ε)."""
    width = theta.shape[1]
    if G.numel():
        columns = min(_STEPPED, triton.next_power_of_2(width))
        grid = (len(rows), triton.cdiv(width, columns))
        # Constants of the program: arguments of one are of float32.
        constants = dict(rate=rate, epsilon=epsilon, COLUMNS=columns)
        _adagrad[grid](theta, S, G, rows, decay, width, **constants)


@triton.jit
def _gather_sum(  # type: ignore[no-untyped-def]
    owner, start, stop, indices, data, B, out,
    width: tl.constexpr, COLUMNS: tl.constexpr, WEIGHTED: tl.constexpr, ATOMIC: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    segment = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < width
    first, last = tl.load(start + segment), tl.load(stop + segment)
    total = tl.zeros((COLUMNS,), tl.float64 if WIDE else tl.float32)
    for entry in range(first, last, 8):
        for ahead in tl.static_range(8):  # eight rows of B on their way at a time
            there = last > entry + ahead
            j = tl.load(indices + entry + ahead, mask=there, other=0).to(tl.int64)
            within = columns < tl.where(there, width, 0)
            row = tl.load(B + j * width + columns, mask=within, other=0.0)
            if WEIGHTED:
                total += tl.load(data + entry + ahead, mask=there, other=0.0) * row
            else:
                total += row
    place = out + tl.load(owner + segment).to(tl.int64) * width + columns
    if ATOMIC:
        tl.atomic_add(place, total, mask=inside, sem="relaxed")
    else:
        tl.store(place, total, mask=inside)


@triton.jit
def _dots(  # type: ignore[no-untyped-def]
    owner, start, stop, indices, order, A, B, out,
    width: tl.constexpr, COLUMNS: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    segment = tl.program_id(0)
    first, last = tl.load(start + segment), tl.load(stop + segment)
    columns = tl.arange(0, COLUMNS)
    inside = columns < width
    i = tl.load(owner + segment).to(tl.int64)
    a = tl.load(A + i * width + columns, mask=inside, other=0.0)
    for entry in range(first, last):
        j = tl.load(indices + entry).to(tl.int64)
        b = tl.load(B + j * width + columns, mask=inside, other=0.0)
        tl.store(out + (tl.load(order + entry) if ORDERED else entry), tl.sum(a * b))


@triton.jit
def _silence(  # type: ignore[no-untyped-def]
    F, mu, row_weights, label_weights, residual, by_row, by_label, n, n_labels,
    EACH: tl.constexpr, ROWS: tl.constexpr, LABELS: tl.constexpr, TURNS: tl.constexpr,
):  # fmt: skip
    labels = tl.program_id(0) * LABELS + tl.arange(0, LABELS)
    known = labels < n_labels
    weight = tl.load(label_weights + labels, mask=known, other=0.0)
    value_sum, asked_sum = tl.zeros_like(weight), tl.zeros_like(weight)
    size_sum = tl.zeros_like(weight)
    if not EACH:
        m = tl.load(mu + labels, mask=known, other=0.0)[None, :]
    for turn in range(TURNS):
        rows = (tl.program_id(1) * TURNS + turn) * ROWS + tl.arange(0, ROWS)
        there = rows < n
        inside = there[:, None] & known[None, :]
        at = rows.to(tl.int64)[:, None] * n_labels + labels[None, :]
        if EACH:
            m = tl.load(mu + at, mask=inside, other=0.0)
        # `tl.clamp` is not there for float64.
        f = tl.load(F + at, mask=inside, other=-40.0)
        e = tl.exp(tl.minimum(tl.maximum(f, -40.0), 40.0))
        p = tl.where(inside, m / (1 + (1 - m) * e), 0.0)
        value = tl.where(inside, _log1p((1 - m) * e) - _log1p(e), 0.0)
        size = p * (e / (1 + e))
        tl.store(residual + at, -size, mask=inside)
        tl.atomic_add(by_row + rows, tl.sum(value, 1), mask=there, sem="relaxed")
        weighted = tl.sum(size * weight[None, :], 1)
        tl.atomic_add(by_row + n + rows, weighted, mask=there, sem="relaxed")
        value_sum += tl.sum(value, 0)
        asked_sum += tl.sum(p, 0)
        row_weight = tl.load(row_weights + rows, mask=there, other=0.0)
        size_sum += tl.sum(size * row_weight[:, None], 0)
    tl.atomic_add(by_label + labels, value_sum, mask=known, sem="relaxed")
    tl.atomic_add(by_label + n_labels + labels, asked_sum, mask=known, sem="relaxed")
    tl.atomic_add(by_label + 2 * n_labels + labels, size_sum, mask=known, sem="relaxed")


@triton.jit
def _adagrad(  # type: ignore[no-untyped-def]
    theta, S, G, rows, decay, width,
    rate: tl.constexpr, epsilon: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < width
    at = tl.load(rows + i).to(tl.int64) * width + columns
    weight = tl.load(theta + at, mask=inside, other=0.0)
    g = tl.load(G + i.to(tl.int64) * width + columns, mask=inside, other=0.0)
    g += tl.load(decay + i) * weight
    squares = tl.load(S + at, mask=inside, other=0.0) + g * g
    tl.store(S + at, squares, mask=inside)
    tl.store(theta + at, weight - rate * g / (tl.sqrt(squares) + epsilon), mask=inside)


@triton.jit
def _log1p(x):  # type: ignore[no-untyped-def]
    u = 1 + x
    return tl.where(u == 1, x, tl.log(u) * (x / tl.where(u == 1, 1.0, u - 1)))
