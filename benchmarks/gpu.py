"""The GPU: LEML at the shape of the paper's largest data, the kernels under it, every method.

    python benchmarks/gpu.py wikipedia        # 881,805 × 366,932 features, 213,707 labels, rank 500
    python benchmarks/gpu.py methods          # a pass of each method, its limit, and two cores
    python benchmarks/gpu.py parity           # every method's scores, GPU against CPU

The data are drawn, with the long tails of text and with topics that tie labels to words, so that
there is something to learn. Beside every figure stand the rate of a copy and of a float32 matrix
product on the same GPU in the same run. Each part prints its tables and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit import LEML, MPU, SEM, FaIE, GenEML, Labels
from tacit.engines.losses import Logistic

WIKIPEDIA = dict(n=881_805, d=366_932, n_labels=213_707, words=147, said=7)
SHAPES = {
    "eurlex57k": dict(n=45_000, d=5_000, n_labels=4_271, words=119, said=5),
    "Wiki10": dict(n=14_146, d=101_938, n_labels=30_938, words=673, said=19),
}
METHODS: dict[str, Callable[..., Any]] = {
    "LEML": lambda **k: LEML(rank=100, tol=0, solver="cg", **k),
    "LEML logistic": lambda **k: LEML(rank=100, loss="logistic", tol=0, **k),
    "GenEML": lambda **k: GenEML(rank=100, tol=0, **k),
    "SEM": lambda **k: SEM(rank=100, tol=0, **k),
    "MPU": lambda **k: MPU(levels=1, tol=0, **k),
    "FaIE": lambda max_iter, **k: FaIE(rank=100, **k),  # closed form: nothing to iterate
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PUBLISHED = 18_072  # seconds, on 32 cores


def synthetic(n, d, n_labels, words, said, device="cpu", seed=0) -> tuple[sp.csr_array, Labels]:
    """Rows of `words` features and `said` labels, half of both by the row's topic."""
    import torch

    torch.manual_seed(seed)
    topics = max(2, n // 500)
    topic = torch.randint(topics, (n,), device=device)

    def matrix(width: int, per_row: int) -> sp.csr_array:
        tail = torch.arange(1, width + 1, device=device, dtype=torch.float64).reciprocal().cumsum(0)
        draw = lambda m: torch.searchsorted(
            tail, tail[-1] * torch.rand(m, device=device, dtype=torch.float64)
        ).clamp_(max=width - 1)
        shift = torch.randint(width, (topics,), device=device)
        rows = torch.arange(n, device=device).repeat_interleave(2 * per_row)
        own = (torch.arange(len(rows), device=device) % 2).bool()
        column = draw(len(rows))
        column = torch.where(own, (column + shift[topic[rows]]) % width, column)
        key = torch.unique(rows * width + column)
        place = torch.rand(len(key), device=device).argsort()  # of those drawn twice, one is left
        share = (n * per_row) / len(key)
        kept = key[place[: int(share * len(key))]].sort().values if share < 1 else key
        rows, column = kept // width, kept % width
        pointer = torch.cat([rows.new_zeros(1), torch.bincount(rows, minlength=n).cumsum(0)])
        data = (1 + torch.rand(len(kept), device=device)).cpu().numpy()
        index = column.to(torch.int32).cpu().numpy(), pointer.cpu().numpy()
        return sp.csr_array((data, *index), shape=(n, width))

    return matrix(d, words), Labels.complete(matrix(n_labels, said) > 0)


def milliseconds(f: Callable[[], Any], repeats: int = 5) -> float:
    """The median time on the device."""
    import torch

    f()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        f()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[repeats // 2]


def limits() -> dict[str, float]:
    """What this GPU copies, and multiplies in float32."""
    import torch

    x = torch.rand(2**29, device="cuda")
    y, square = torch.empty_like(x), torch.rand(8192, 8192, device="cuda")
    copied = 2 * 4 * 2**29 / milliseconds(lambda: y.copy_(x)) / 1e9
    products = 2 * 8192**3 / milliseconds(lambda: square @ square) / 1e9
    return {"copy TB/s": round(copied, 2), "float32 TFLOP/s": round(products, 1)}


def fitted(model: Any, X: Any, Y: Labels) -> dict[str, Any]:
    """A fit taken apart: rows checked, placed on the device, and the fit itself."""
    import torch

    times, facts, placing = [time.perf_counter()], [], model._problem

    def placed(blocks: Any, known: Any, resume: Any = None) -> Any:
        times.append(time.perf_counter())
        problem = placing(blocks, known, resume)
        torch.cuda.synchronize()
        times.append(time.perf_counter())
        facts.append(known)
        return problem

    model._problem = placed
    torch.cuda.reset_peak_memory_stats()
    model.fit(X, Y)
    torch.cuda.synchronize()
    times.append(time.perf_counter())
    check, place, fit = np.diff(times)
    return {
        "check s": round(check, 2),
        "place s": round(place, 2),
        "fit s": round(fit, 3),
        "objective": model.history_,
        "peak GiB": round(torch.cuda.max_memory_allocated() / 2**30, 1),
        "planned GiB": round(_planned(model, facts[0]) / 2**30, 1),
    }


def _planned(model: Any, known: Any) -> float:
    size = np.dtype(known.dtype).itemsize
    return known.n_entries * (16 + 4 * size) + model._working_set(known) * size


def kernels(X: sp.csr_array, Y: Labels, rank: int) -> dict[str, Any]:
    """The sparse products, ours and PyTorch's library's, at the shape of the data."""
    import torch

    from tacit.backends import get_backend

    backend = get_backend("cuda")
    S, P = backend.sparse(X), backend.sparse(Y.positives, pattern=True)
    T = S.transposed
    csr = lambda M: torch.sparse_csr_tensor(M.indptr, M.indices, M.data, size=M.shape)
    library, turned = csr(S), csr(T)
    V, U, H = (torch.rand(m, rank, device="cuda") for m in (*X.shape[::-1], Y.n_labels))
    pairs = {
        "X V": (lambda: backend.spmm(S, V), lambda: library @ V),
        "XᵀU": (lambda: backend.spmm_t(S, U), lambda: turned @ U),
    }
    found = {}
    for name, (ours, theirs) in pairs.items():
        ms = milliseconds(ours)
        found[name] = {
            "ours ms": round(ms, 1),
            "library ms": round(milliseconds(theirs), 1),
            "gathered TB/s": round(4 * rank * S.nnz / ms / 1e9, 2),
            "difference": float((ours() - theirs()).norm() / theirs().norm()),
        }
    ms = milliseconds(lambda: backend.sddmm(P, U, H))
    gathered = 4 * rank * P.nnz / ms / 1e9
    found["dots on Y"] = {"ours ms": round(ms, 2), "gathered TB/s": round(gathered, 2)}
    # What fusing the loss with them could save at most.
    loss, y, z = Logistic(), torch.ones(P.nnz, device="cuda"), backend.sddmm(P, U, H)
    for part in ("value", "grad", "hess"):
        ms = milliseconds(partial(getattr(loss, part), y, z))
        found["dots on Y"][f"logistic {part} ms"] = round(ms, 3)
    return found


def wikipedia(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = limits()
    rank = options.rank
    X, Y = synthetic(**WIKIPEDIA, device="cuda")
    torch.cuda.empty_cache()
    found |= {"nnz X": X.nnz, "nnz Y": Y.positives.nnz, "rank": rank}
    found["kernels"] = kernels(X, Y, rank)
    torch.cuda.empty_cache()
    for steps in options.steps:
        model = LEML(
            rank=rank, max_iter=5, tol=0, solver="cg", cg_max_iter=steps, device="cuda",
            random_state=0,
        )  # fmt: skip
        found[f"LEML, at most {steps} steps"] = row = fitted(model, X, Y)
        row["times faster than published"] = round(PUBLISHED / row["fit s"])
        print(json.dumps({steps: row}), flush=True)
    small = {name: size // 50 if size > 1000 else size for name, size in WIKIPEDIA.items()}
    X, Y = synthetic(**small, device="cuda")
    same = dict(rank=rank, max_iter=5, tol=0, solver="cg", random_state=0)
    histories = {d: LEML(device=d, **same).fit(X, Y).history_ for d in ("cpu", "cuda")}
    cpu, gpu = histories["cpu"][-1], histories["cuda"][-1]
    found["1/50"] = {"cpu": cpu, "cuda": gpu, "difference": abs(cpu - gpu) / cpu}
    return found


class Counted:
    """The least that a fit asks of a GPU: operations of dense products, bytes of sparse ones.

    A sparse product reads a row of its dense factor for each entry, and writes its result once.
    Nothing else is counted, though the passes over n × L scores are most of what some methods do:
    what is left over is what a better kernel could save.
    """

    def __enter__(self) -> Counted:
        from torch.utils.flop_counter import FlopCounterMode

        from tacit.backends.torch import TorchBackend

        self.bytes, self.kept = 0, {name: getattr(TorchBackend, name) for name in ("spmm", "sddmm")}
        self.counter = FlopCounterMode(display=False)
        self.counter.__enter__()
        for name, product in self.kept.items():
            setattr(TorchBackend, name, self._counting(product))
        return self

    def _counting(self, product: Callable) -> Callable:
        def counted(backend: Any, S: Any, B: Any, *more: Any, **named: Any) -> Any:
            out = product(backend, S, B, *more, **named)
            if hasattr(S, "nnz"):  # a dense product counts itself
                self.bytes += (S.nnz * B.shape[1] + out.numel()) * B.element_size()
            return out

        return counted

    def __exit__(self, *error: Any) -> None:
        from tacit.backends.torch import TorchBackend

        self.counter.__exit__(*error)
        for name, product in self.kept.items():
            setattr(TorchBackend, name, product)
        self.flops = self.counter.get_total_flops()


def _pass(name: str, X: Any, Y: Labels, device: str, passes: tuple[int, int]) -> dict[str, Any]:
    """Seconds of a pass: those of more passes less those of fewer; on a GPU also of its limit."""

    def fit(max_iter: int) -> float:
        model = METHODS[name](max_iter=max_iter, device=device)
        model.set_params(**({"random_state": 0} if "random_state" in model.get_params() else {}))
        start = time.perf_counter()
        model.fit(X, Y.as_complete() if Y.kind not in model._kinds else Y)
        return time.perf_counter() - start

    few, many = passes
    fit(few)  # compiles
    times = {max_iter: fit(max_iter) for max_iter in passes}
    seconds = (times[many] - times[few]) / (many - few)
    whole = name == "FaIE"  # in closed form: the fit is the pass
    seconds = times[few] if whole else seconds
    found = {"fit s": round(times[many], 2), "pass s": round(seconds, 4)}
    if device == "cpu":
        return found
    counts = {}
    for max_iter in passes:
        with Counted() as counted:
            fit(max_iter)
        counts[max_iter] = np.array([counted.flops, counted.bytes], float)
    flops, moved = counts[few] if whole else (counts[many] - counts[few]) / (many - few)
    rates = limits()
    limit = flops / rates["float32 TFLOP/s"] / 1e12 + moved / rates["copy TB/s"] / 1e12
    return found | {
        "GFLOP": round(flops / 1e9, 1),
        "GB gathered": round(moved / 1e9, 2),
        "share of the limit": round(limit / seconds, 3),
    }


def methods(options: argparse.Namespace) -> dict[str, Any]:
    """Those on the CPU run side by side, two cores each; those on the GPU in turn."""
    found: dict[str, Any] = limits()
    for shape in options.shapes:
        asked = [sys.executable, __file__, "pass", "--shapes", shape]
        two = os.environ | dict.fromkeys(THREADS, "2")
        pipes = dict(text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        start = time.perf_counter()
        hosted = {}
        for i, name in enumerate(options.methods):
            bound = ["taskset", "-c", f"{2 * i + 2},{2 * i + 3}"]
            ask = [*bound, *asked, "--device", "cpu", "--methods", name]
            hosted[name] = subprocess.Popen(ask, env=two, **pipes)
        for name in options.methods:
            ask = [*asked, "--device", "cuda", "--methods", name]
            row = _told(subprocess.Popen(ask, **pipes), options.limit, options.limit)
            found.setdefault(shape, {})[name] = {"cuda": row}
            print(shape, name, row, flush=True)
        for name, process in hosted.items():
            left = max(0.0, start + options.limit - time.perf_counter())
            found[shape][name]["cpu"] = row = _told(process, left, options.limit)
            print(shape, name, "cpu", row, flush=True)
    return found


def _told(process: subprocess.Popen, left: float, limit: float) -> dict[str, Any]:
    try:
        out, errors = process.communicate(timeout=left)
        return json.loads(out.splitlines()[-1]) if out else {"missing": errors.splitlines()[-1]}
    except subprocess.TimeoutExpired:
        process.kill()
        return {"missing": f"more than {limit:.0f} s"}


def one_pass(options: argparse.Namespace) -> dict[str, Any]:
    X, Y = synthetic(**SHAPES[options.shapes[0]])
    return _pass(options.methods[0], X, Y, options.device, (1, 3))


def parity(options: argparse.Namespace) -> dict[str, Any]:
    """The largest difference of scores between the GPU and the CPU, in units of their spread."""
    X, Y = synthetic(n=2000, d=500, n_labels=100, words=30, said=4)
    found = {}
    for name, make in METHODS.items():
        scores = {}
        for device in ("cpu", "cuda"):
            model = make(max_iter=3, device=device)
            if name == "LEML":  # or its solver stops at a tolerance of its own
                model.set_params(cg_tol=1e-6, cg_max_iter=300)
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
            labels = Y if Y.kind in model._kinds else Labels.positive_only(Y.positives)
            scores[device] = model.fit(X, labels).decision_function(X[:200])
        found[name] = float(np.abs(scores["cpu"] - scores["cuda"]).max() / scores["cpu"].std())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"wikipedia": wikipedia, "methods": methods, "parity": parity, "pass": one_pass}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--steps", type=int, nargs="*", default=[5, 10, 20])
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a method on a shape")
    options = parser.parse_args()
    print(json.dumps(parts[options.part](options), ensure_ascii=False))


if __name__ == "__main__":
    main()
