"""The sparse products of LEML on a GPU: ours, and those of PyTorch's library.

The shape is that of the largest data of LEML's paper, which are drawn, and the rank is 500.

The rows of the dense factor that a product reads, one an entry of X or Y, are what it must gather;
their rate may be above that of a copy, where the cache keeps some of them. Beside the products on
the entries of Y stands the logistic loss of these entries: what fusing the two could save at most.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tacit.backends import Sparse, get_backend
from tacit.engines.losses import Logistic
from tacit_bench.board import Cell
from tacit_bench.gpu import drawn, machine_limits, milliseconds, on_pytorch
from tacit_bench.study import Study

__all__ = ["STUDY"]

PRODUCTS = ("X V", "XᵀU", "dots on Y")


def cells() -> list[Cell]:
    return [{"shape": "Wikipedia", "rank": 500, "product": product} for product in PRODUCTS]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Milliseconds of one product, and what it gathers."""
    import torch

    backend: Any = get_backend(on_pytorch(device))
    X, Y = drawn(cell["shape"], device)
    factor = lambda n: torch.rand(n, cell["rank"], device=backend.device)
    U, size = factor(X.shape[0]), 4 * cell["rank"]
    if cell["product"] == "dots on Y":
        P, H = backend.sparse(Y.positives, pattern=True), factor(Y.n_labels)
        ours = partial(backend.sddmm, P, U, H)
        found = _rate(milliseconds(ours), size * P.nnz)
        loss, y, z = Logistic(), torch.ones(P.nnz, device=backend.device), ours()
        for part in ("value", "grad", "hess"):
            ms = milliseconds(partial(getattr(loss, part), y, z))
            found[f"logistic {part} ms"] = round(ms, 3)
    else:
        S = backend.sparse(X)
        if cell["product"] == "X V":
            B, ours = factor(X.shape[1]), backend.spmm
        else:
            B, ours = U, backend.spmm_t
        library = _library(S if cell["product"] == "X V" else S.transposed)
        product, theirs = partial(ours, S, B), lambda: library @ B
        found = _rate(milliseconds(product), size * S.nnz)
        found["library ms"] = round(milliseconds(theirs), 1)
        found["difference"] = float((product() - theirs()).norm() / theirs().norm())
    return found | machine_limits(device)


def _rate(ms: float, n_bytes: float) -> dict[str, float]:
    return {"ours ms": round(ms, 2), "gathered TB/s": round(n_bytes / ms / 1e9, 2)}


def _library(S: Sparse) -> Any:
    import torch

    return torch.sparse_csr_tensor(S.indptr, S.indices, S.data, size=S.shape)


STUDY = Study(
    "gpu_kernels",
    "How fast are the sparse products of LEML on a GPU, beside those of PyTorch's library?",
    cells,
    measure,
    tiny=[{"shape": "tiny", "rank": 20, "product": product} for product in ("XᵀU", "dots on Y")],
)
