"""What the studies of a GPU share: methods, data drawn in the process, and what the GPU can do.

Data have the long tails of text, and topics that tie labels to words, so that there is something
to learn. A study that is asked for the device "cpu" runs PyTorch there wherever it is about
PyTorch: figures of a GPU they are not, but every line of the study runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
from sklearn.base import clone

from tacit.backends import get_backend
from tacit.labels import Labels
from tacit.methods import LEML, MPU, SEM, FaIE, GenEML
from tacit_bench.board import Skip

__all__ = [
    "METHODS",
    "SHAPES",
    "drawn",
    "machine_limits",
    "method",
    "milliseconds",
    "on_pytorch",
    "wait",
]

SHAPES = {  # rows, features, labels, features a row, labels a row
    "Wikipedia": (881_805, 366_932, 213_707, 147, 7),
    "Wikipedia / 50": (17_636, 7_338, 4_274, 147, 7),
    "eurlex57k": (45_000, 5_000, 4_271, 119, 5),
    "Wiki10": (14_146, 101_938, 30_938, 673, 19),
    "small": (2_000, 500, 100, 30, 4),
    "tiny": (300, 150, 120, 20, 4),
}
METHODS: dict[str, Any] = {
    "LEML": LEML(rank=100, tol=0, solver="cg"),
    "LEML logistic": LEML(rank=100, loss="logistic", tol=0),
    "GenEML": GenEML(rank=100, tol=0),
    "SEM": SEM(rank=100, tol=0),
    "MPU": MPU(levels=1, tol=0),
    "FaIE": FaIE(rank=100),  # in closed form: nothing is repeated
}


def method(name: str, device: str, passes: int, **settings: Any) -> Any:
    """One of `METHODS`, with as many passes where it makes some, and with these settings."""
    model = clone(METHODS[name])
    own = model.get_params()
    asked = {"device": device, "max_iter": passes, "random_state": 0}
    model.set_params(**{key: value for key, value in asked.items() if key in own})
    return model.set_params(**settings)


def on_pytorch(device: str) -> str:
    """The device, with PyTorch's CPU in place of NumPy's; a `Skip` where it is not there."""
    name = "torch" if device == "cpu" else device
    try:
        get_backend(name)
    except (ImportError, ValueError) as error:
        raise Skip(str(error)) from None
    return name


def drawn(shape: str, device: str = "cpu") -> tuple[sp.csr_array, Labels]:
    """Features and complete labels of one of `SHAPES`, half of both by the row's topic.

    The same device draws the same data.
    """
    place = _place(device)
    import torch

    n, d, n_labels, words, said = SHAPES[shape]
    torch.manual_seed(0)
    topics = max(2, n // 500)
    topic = torch.randint(topics, (n,), device=place)

    def matrix(width: int, per_row: int) -> sp.csr_array:
        ranks = torch.arange(1, width + 1, device=place, dtype=torch.float64)
        tail = ranks.reciprocal().cumsum(0)
        shift = torch.randint(width, (topics,), device=place)
        rows = torch.arange(n, device=place).repeat_interleave(2 * per_row)
        own = (torch.arange(len(rows), device=place) % 2).bool()
        drawn = tail[-1] * torch.rand(len(rows), device=place, dtype=torch.float64)
        column = torch.searchsorted(tail, drawn).clamp_(max=width - 1)
        column = torch.where(own, (column + shift[topic[rows]]) % width, column)
        key = torch.unique(rows * width + column)
        order = torch.rand(len(key), device=place).argsort()  # of those drawn twice, one is left
        key = key[order[: n * per_row]].sort().values
        rows, column = key // width, key % width
        pointer = torch.cat([rows.new_zeros(1), torch.bincount(rows, minlength=n).cumsum(0)])
        data = 1 + torch.rand(len(key), device=place)
        parts = (part.cpu().numpy() for part in (data, column.to(torch.int32), pointer))
        return sp.csr_array(tuple(parts), shape=(n, width))

    return matrix(d, words), Labels.complete(matrix(n_labels, said) > 0)


def wait(device: str) -> None:
    """Until the GPU has done what it was given; the CPU has."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)


def milliseconds(run: Callable[[], Any]) -> float:
    """The median time of some runs of PyTorch, waited for."""
    import torch
    from torch.utils.benchmark import Timer

    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    return 1e3 * timer.blocked_autorange().median


def machine_limits(device: str) -> dict[str, Any]:
    """Which machine this is, what it copies, and what it multiplies in float32."""
    place = _place(device)
    import torch

    on_gpu = place.startswith("cuda")
    n, side = (2**29, 8192) if on_gpu else (2**24, 1024)  # far larger than any cache
    x, square = torch.rand(n, device=place), torch.rand(side, side, device=place)
    y = torch.empty_like(x)
    copied = 2 * x.nbytes / milliseconds(lambda: y.copy_(x)) / 1e9
    multiplied = 2 * side**3 / milliseconds(lambda: square @ square) / 1e9
    return {
        "device": torch.cuda.get_device_name(place) if on_gpu else "CPU",
        "copy TB/s": round(copied, 2),
        "float32 TFLOP/s": round(multiplied, 1),
    }


def _place(device: str) -> str:
    """What PyTorch calls the device."""
    backend: Any = get_backend(on_pytorch(device))
    return backend.device
