"""`tacit bench scale`: how time and memory grow with the data, and kernels beside the machine.

A **fit** is timed on data made in the process, of n rows with s features each, d = 2,000 features
in all, L labels, five a row, and rank k. One of n, s (`nnz`), L and k varies, by factors of two,
and the others stay at 20,000, 50, 1,000 and 50. Passes are few and fixed, so that work is what the
sizes say and not when a fit has converged. Each cell has a process of its own; what must be
compiled is compiled before the clock starts.

The **exponent** b of an axis is the slope of the least-squares line

    log t = a + b log x                                                                        (1)

over the larger half of the sizes x: over the smaller, constant costs rule. Beside it stands the
power of x in the method's cost; terms without x (d³, where features are factorised) pull the
measured one below it. That of memory is the slope of what the process held at most, less what it
held before there were data.

A **kernel** is measured against the rate of a copy, or of BLAS: `tacit_bench.timing`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table

from tacit.baselines import NNML, BinaryRelevance, Ridge
from tacit.label_space import LabelSpaceReduction
from tacit.methods import LEML, MPU, SEM, FaIE, GenEML
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study
from tacit_bench.timing import KERNELS, kernel, quickest

__all__ = ["AXES", "METHODS", "cells", "exponents", "measure", "show"]

N_FEATURES, LABELS_A_ROW, PREDICTED = 2000, 5, 5
BASE = {"n": 20_000, "nnz": 50, "L": 1000, "k": 50}
AXES = {
    "n": (5000, 10_000, 20_000, 40_000, 80_000, 160_000),
    "nnz": (25, 50, 100, 200, 400),  # each divides N_FEATURES
    "L": (250, 500, 1000, 2000, 4000),
    "k": (25, 50, 100, 200, 400),
}
_QUICK_METHODS, _QUICK_AXES, _QUICK_VALUES = ("Ridge", "LEML"), ("n", "L"), 3
_QUICK_KERNELS = ("spmm", "solve_spd")


@dataclass(frozen=True)
class TimedMethod:
    """A method as it is timed: `make` takes the rank k; `powers` are those in `cost`, by axis."""

    make: Callable[[int], Any]
    cost: str
    powers: dict[str, int]


_CG: dict[str, Any] = {"solver": "cg", "max_iter": 1, "tol": 0, "cg_tol": 0, "cg_max_iter": 5}
_PASS: dict[str, Any] = {"max_iter": 1, "tol": 0, "random_state": 0}
_ENTRIES = "n (s + L) k", {"n": 1, "nnz": 1, "L": 1, "k": 1}  # every score, once or a few times

METHODS = {
    "Ridge": TimedMethod(lambda k: Ridge(), "n s² + d³ + d² L", {"n": 1, "nnz": 2, "L": 1}),
    "LEML": TimedMethod(
        lambda k: LEML(k, random_state=0, **_CG),
        "n s k + (n + d + L) k²",
        {"n": 1, "nnz": 1, "L": 1, "k": 2},
    ),
    "LEML logistic": TimedMethod(
        lambda k: LEML(k, loss="logistic", random_state=0, **_CG), *_ENTRIES
    ),
    "FaIE": TimedMethod(
        lambda k: FaIE(k),
        "n s² + d³ + d² L + (d + L)² k",
        {"n": 1, "nnz": 2, "L": 2, "k": 1},
    ),
    "CPLST": TimedMethod(
        lambda k: LabelSpaceReduction("cplst", k),
        "n s² + d³ + d L (d + L) + L² k",
        {"n": 1, "nnz": 2, "L": 2, "k": 1},
    ),
    "GenEML": TimedMethod(lambda k: GenEML(k, **_PASS), *_ENTRIES),
    "GenEML online": TimedMethod(lambda k: GenEML(k, inference="online", **_PASS), *_ENTRIES),
    "SEM": TimedMethod(lambda k: SEM(k, **_PASS), *_ENTRIES),
    "NNML": TimedMethod(lambda k: NNML(k, **_PASS), *_ENTRIES),
    "MPU": TimedMethod(
        lambda k: MPU(1, c=0.5, max_iter=1, random_state=0),
        "n s L",
        {"n": 1, "nnz": 1, "L": 1},
    ),
    "BinaryRelevance": TimedMethod(
        lambda k: BinaryRelevance(loss="logistic", reg=10.0, max_iter=1, tol=0.1),
        "n s L a step, of as many as labels need",
        {"n": 1, "nnz": 1, "L": 1},
    ),
}


def cells(methods: Sequence[str] | None = None, quick: bool = False) -> list[Cell]:
    """What is measured: fits at every size of every axis, and kernels.

    Parameters
    ----------
    methods : sequence of str, optional
        Only the fits of these, and no kernels.
    quick : bool, default=False
        Two methods (or `methods`), two axes, three sizes and two kernels, in about a minute.

    Examples
    --------
    >>> cells(["Ridge"], quick=True)[0]
    {'what': 'fit', 'method': 'Ridge', 'axis': 'n', 'value': 5000}
    """
    for name in methods or ():
        if name not in METHODS:
            raise ValueError(f"methods must be some of {', '.join(METHODS)}; got {name!r}")
    names = methods or (_QUICK_METHODS if quick else tuple(METHODS))
    fits = [
        {"what": "fit", "method": name, "axis": axis, "value": value}
        for name in names
        for axis in METHODS[name].powers
        if not quick or axis in _QUICK_AXES
        for value in (AXES[axis][:_QUICK_VALUES] if quick else AXES[axis])
    ]
    kernels = () if methods else _QUICK_KERNELS if quick else tuple(KERNELS)
    return fits + [{"what": "kernel", "name": name} for name in kernels]


def measure(cell: Cell) -> dict[str, Any]:
    """What is found of one of `cells`."""
    if cell["what"] == "kernel":
        return kernel(cell["name"])
    return _fit(METHODS[cell["method"]], BASE | {cell["axis"]: cell["value"]})


def exponents(rows: Iterable[Row]) -> list[Row]:
    """The slopes (1) of fit, prediction and memory, for each method and axis in `rows`.

    Rows that are not fits, or were skipped, are left out, and so is an axis with fewer than two
    sizes. At least three sizes count where there are as many.
    """
    found: dict[tuple[str, str], dict[float, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        if row["cell"]["what"] == "fit" and "found" in row:
            cell = row["cell"]
            found[cell["method"], cell["axis"]][cell["value"]] = _amounts(row["found"])
    return [
        {
            "cell": {"what": "exponent", "method": method, "axis": axis},
            "found": _slopes(sorted(sizes.items())),
        }
        for (method, axis), sizes in found.items()
        if len(sizes) > 1
    ]


def show(rows: Iterable[Row], console: Console) -> None:
    """Print exponents beside those of theory, and kernels beside their limits."""
    rows = list(rows)
    slopes, kernels = exponents(rows), [row for row in rows if row["cell"]["what"] == "kernel"]
    if slopes:
        console.print(_exponent_table(slopes))
        console.print(_cost_table(slopes))
    if kernels:
        console.print(_kernel_table(kernels))


STUDY = Study(
    "scale",
    "How do time and memory grow, and how near are kernels to the limits of the machine?",
    cells,
    measure,
    tiny=[{"what": "fit", "method": "Ridge", "axis": "n", "value": n} for n in (500, 1000)],
    show=show,
)


# Fits


def _fit(timed: TimedMethod, size: dict[str, int]) -> dict[str, float]:
    tiny = _problem(n=300, nnz=10, L=50, d=100)
    timed.make(5).fit(*tiny).top_k(tiny[0], PREDICTED)  # compiles
    empty = _held_gib()
    X, Y = _problem(size["n"], size["nnz"], size["L"], N_FEATURES)
    models: list[Any] = []

    def fit() -> None:
        models.clear()  # so that memory never holds two
        models.append(timed.make(size["k"]).fit(X, Y))

    seconds = quickest(fit)
    predict = quickest(lambda: models[0].top_k(X, PREDICTED))
    data = sum(part.nbytes for S in (X, Y) for part in (S.data, S.indices, S.indptr))
    return {
        "seconds": round(seconds, 2),
        "predict s": round(predict, 3),
        "data GiB": round(data / 2**30, 3),
        "empty GiB": round(empty, 3),
    }


def _problem(n: int, nnz: int, L: int, d: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Rows with one feature of each of `nnz` groups; five of the features name a label each.

    Labels are skewed, as they always are: with all alike, no few directions of them would stand
    out, and eigenvectors would take forever to be found.
    """
    rng = np.random.default_rng(0)
    groups, labels = d // nnz, L // LABELS_A_ROW  # how many there are in each
    drawn = rng.integers(groups, size=(n, nnz), dtype=np.int32)
    share = (drawn[:, :LABELS_A_ROW] + rng.random((n, LABELS_A_ROW))) / groups
    drawn += groups * np.arange(nnz, dtype=np.int32)
    said = (share**3 * labels).astype(np.int32) + labels * np.arange(LABELS_A_ROW, dtype=np.int32)
    values = rng.random(drawn.size, np.float32) + np.float32(0.1)
    return _rows(values, drawn, d), _rows(np.ones(said.size, np.int8), said, L)


def _rows(values: np.ndarray, columns: np.ndarray, width: int) -> sp.csr_array:
    n, each = columns.shape
    pointer = np.arange(0, n * each + 1, each, dtype=np.int32)
    return sp.csr_array((values, columns.ravel(), pointer), shape=(n, width))


def _held_gib() -> float:
    """What this process holds now; 0 where /proc does not tell."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0.0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**30


# Exponents


def _amounts(found: dict[str, float]) -> dict[str, float]:
    """What is to have a slope, by the prefix of its name in what `exponents` finds."""
    amounts = {"": found["seconds"], "predict ": found["predict s"]}
    if "peak GiB" in found:
        amounts["memory "] = found["peak GiB"] - found["empty GiB"]
    return amounts


def _slopes(sizes: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    sizes = sizes[-max(3, -(-len(sizes) // 2)) :]
    x = np.array([value for value, _ in sizes])
    found: dict[str, float] = {}
    for prefix in sizes[0][1]:
        y = np.array([amounts.get(prefix, 0.0) for _, amounts in sizes])
        if (y > 0).all():  # what was too little to be measured has no logarithm
            found |= dict(zip((f"{prefix}exponent", f"{prefix}R²"), _line(np.log(x), np.log(y))))
    return found | {"from": sizes[0][0], "to": sizes[-1][0]}


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of the least-squares line, and its R² (1 where y is constant: it explains all)."""
    slope, level = np.polyfit(x, y, 1)
    left, total = np.sum((y - slope * x - level) ** 2), np.sum((y - y.mean()) ** 2)
    return round(float(slope), 2), round(float(1 - left / total) if total > 0 else 1.0, 3)


# Tables


def _exponent_table(slopes: list[Row]) -> Table:
    table = Table(title="Exponents: how much x-fold data costs, x to the power of", box=None)
    table.add_column("method")
    table.add_column("axis")
    for column in ("from", "to", "time", "theory", "R²", "top k", "memory"):
        table.add_column(column, justify="right")
    last = ""
    for row in slopes:
        (method, axis), found = (row["cell"]["method"], row["cell"]["axis"]), row["found"]
        table.add_row(
            method if method != last else "",
            axis,
            f"{found['from']:,}",
            f"{found['to']:,}",
            _number(found, "exponent"),
            str(METHODS[method].powers[axis]),
            _number(found, "R²", 3),
            _number(found, "predict exponent"),
            _number(found, "memory exponent"),
        )
        last = method
    return table


def _cost_table(slopes: list[Row]) -> Table:
    table = Table("method", "cost", title="Theory", box=None)
    for method in dict.fromkeys(row["cell"]["method"] for row in slopes):
        table.add_row(method, METHODS[method].cost)
    return table


def _kernel_table(kernels: list[Row]) -> Table:
    table = Table(title="Kernels beside the machine's limit, and NumPy or SciPy")
    table.add_column("kernel")
    for column in ("rate", "limit", "unit", "share of limit", "their time / ours"):
        table.add_column(column, justify="right")
    for row in kernels:
        found = row.get("found")
        if found is None:
            table.add_row(row["cell"]["name"], row["skipped"])
            continue
        unit = "GB/s" if "GB/s" in found else "GFLOP/s"
        table.add_row(
            row["cell"]["name"],
            f"{found[unit]:.1f}",
            f"{found['limit']:.1f}",
            unit,
            f"{found['share of limit']:.0f} %",
            _number(found, "their time / ours"),
        )
    return table


def _number(found: dict[str, float], name: str, digits: int = 2) -> str:
    return f"{found[name]:.{digits}f}" if name in found else ""
