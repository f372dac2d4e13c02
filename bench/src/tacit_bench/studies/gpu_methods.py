"""A pass of each method on a GPU, beside two cores and beside what the GPU could do at best.

The seconds of a pass are those of three passes less those of one, over two. FaIE, in closed form,
is one pass. The least that a pass asks of a GPU is the operations of its dense products, at the
rate of a float32 product, and the bytes of its sparse ones, at the rate of a copy: a row of the
dense factor an entry, and the result once. Nothing else is counted, though passes over n × L
scores are most of what some methods do: what is left over is what a better kernel could save.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from tacit.backends import Sparse
from tacit_bench.board import Cell
from tacit_bench.gpu import METHODS, drawn, machine_limits, method, wait
from tacit_bench.study import Study

__all__ = ["STUDY"]

DEVICE, TWO_CORES = "device", "two cores"  # of the CPU
FEW, MANY = 1, 3  # passes


def cells() -> list[Cell]:
    return [
        {"shape": shape, "method": name, "on": on}
        for shape in ("eurlex57k", "Wiki10")
        for name in METHODS
        for on in (DEVICE, TWO_CORES)
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Seconds of a pass; on a GPU also what it asked for at least, and the share of the limit."""
    (X, Y), name = drawn(cell["shape"]), cell["method"]
    two_cores = cell["on"] == TWO_CORES
    where = "cpu" if two_cores else device

    def fit(passes: int) -> float:
        start = time.perf_counter()
        method(name, where, passes).fit(X, Y)
        wait(where)
        return time.perf_counter() - start

    with _two_threads() if two_cores else nullcontext():
        fit(FEW)  # compiles
        times = {passes: fit(passes) for passes in (FEW, MANY)}
    seconds = _of_a_pass(name, times.__getitem__)
    found = {"fit s": round(times[MANY], 2), "pass s": round(seconds, 4)}
    if not where.startswith("cuda"):
        return found

    def asked(passes: int) -> np.ndarray:
        with _counted() as counts:
            fit(passes)
        return counts

    flops, moved = _of_a_pass(name, asked)
    rates = machine_limits(where)
    limit = flops / rates["float32 TFLOP/s"] / 1e12 + moved / rates["copy TB/s"] / 1e12
    found |= {"GFLOP": round(flops / 1e9, 1), "GB gathered": round(moved / 1e9, 2)}
    return found | {"share of the limit": round(limit / seconds, 3)} | rates


def _of_a_pass(name: str, amount: Callable[[int], Any]) -> Any:
    """What many passes take less what few take, a pass; in closed form, what the fit takes."""
    if "max_iter" not in METHODS[name].get_params():
        return amount(FEW)
    return (amount(MANY) - amount(FEW)) / (MANY - FEW)


@contextmanager
def _two_threads() -> Iterator[None]:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(2, before))
    with threadpool_limits(2):
        yield
    numba.set_num_threads(before)


@contextmanager
def _counted() -> Iterator[np.ndarray]:
    """Operations of the dense products in this block, and bytes of the sparse ones."""
    from torch.utils.flop_counter import FlopCounterMode

    from tacit.backends.torch import TorchBackend

    counts = np.zeros(2)

    def counting(product: Callable) -> Callable:
        def counted(backend: Any, S: Any, B: Any, *more: Any, **named: Any) -> Any:
            out = product(backend, S, B, *more, **named)
            if isinstance(S, Sparse):  # a dense product counts itself
                counts[1] += (S.nnz * B.shape[1] + out.numel()) * B.element_size()
            return out

        return counted

    products: dict[str, Any] = {
        name: counting(getattr(TorchBackend, name)) for name in ("spmm", "sddmm")
    }
    with patch.multiple(TorchBackend, **products), FlopCounterMode(display=False) as counter:
        yield counts
    counts[0] = counter.get_total_flops()


STUDY = Study(
    "gpu_methods",
    "How long is a pass of each method on a GPU, and what share of its limit does it reach?",
    cells,
    measure,
    tiny=[{"shape": "tiny", "method": "SEM", "on": on} for on in (DEVICE, TWO_CORES)],
)
