"""LEML on a GPU at the shape of the largest data of its paper, which are drawn: 881,805 rows.

Rank 500, squared loss, five alternations, each by so many steps of conjugate gradients at most;
published for the data themselves were 18,072 s on 32 cores (Yu et al., ICML 2014). A fit is taken
apart: rows are checked, placed on the device, and learnt from. The first fit of a process compiles
its kernels, so that a small one goes before unless the cell says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from tacit.methods import LEML
from tacit_bench.board import Cell, Row
from tacit_bench.gpu import drawn, machine_limits, wait
from tacit_bench.study import Study, tabulate

__all__ = ["STUDY"]

PASSES = 5


def cells() -> list[Cell]:
    shape = {"shape": "Wikipedia", "rank": 500}
    return [
        *(shape | {"steps": steps, "compiled": True} for steps in (5, 10, 20)),
        shape | {"steps": 10, "compiled": False},
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """The seconds of a fit, part by part, and what it held on the GPU."""
    found = machine_limits(device)
    model = LEML(
        cell["rank"], max_iter=PASSES, tol=0, solver="cg", cg_max_iter=cell["steps"],
        device=device, random_state=0,
    )  # fmt: skip
    if cell["compiled"]:
        model.fit(*drawn("tiny", device))
    X, Y = drawn(cell["shape"], device)
    on_gpu = device.startswith("cuda")
    if on_gpu:
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    times = [time.perf_counter()]

    def done() -> None:
        wait(device)
        times.append(time.perf_counter())

    blocks, known = model._rows(X, Y)
    done()
    problem = model._problem(blocks, known)
    done()
    fit = model._fit(problem)
    done()
    check, place, learn = np.diff(times)
    found |= {"nnz X": X.nnz, "nnz Y": Y.positives.nnz}
    found |= {"check s": round(check, 2), "place s": round(place, 2), "fit s": round(learn, 3)}
    if on_gpu:
        found["GPU peak GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
    return found | {"objective": fit.history}


def show(rows: Sequence[Row], console: Console) -> None:
    """The table, with the last objective in place of all of them."""
    last = lambda found: {"found": found | {"objective": found["objective"][-1]}}
    tabulate([row | (last(row["found"]) if "found" in row else {}) for row in rows], console)


STUDY = Study(
    "gpu_leml",
    "How long does LEML take on a GPU at the shape of its paper's largest data?",
    cells,
    measure,
    tiny=[{"shape": "tiny", "rank": 20, "steps": 5, "compiled": True}],
    show=show,
)
