"""GenEML: an online update against a loop over rows, an epoch against GEMM, and fold-in.

    python benchmarks/geneml.py update            # bibtex, a batch of 1,024 rows, rank 100
    python benchmarks/geneml.py epoch eurlex57k   # one pass of batch EM, rank 100
    python benchmarks/geneml.py fold_in debtags   # or go_human; completions by both methods' codes

`update`: the loop is the paper's update as one would write it in NumPy: for each row, and then for
each label, a Gram matrix with Pólya–Gamma weights and a solve, in float64. The library's own
Pólya–Gamma update, in float32, must give the same numbers; shared-curvature updates are counted
until they reach the objective that the loop has after a pass over the data. `epoch`: the products
a pass cannot do without, at the rate that GEMM reaches alone on the same shapes, beside the time it
took. `fold_in`: recall@20 of the labels that were really added later, as on `tacit bench missing`,
by the features of a row alone and with what was said of it, of GenEML and LEML in five passes. The
last line is JSON, also written to `results/geneml-….json`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from tacit import LEML, GenEML
from tacit.basics.numerics import eta
from tacit.datasets import load
from tacit.engines.exposure import PerLabel
from tacit.engines.moments import Moments
from tacit.estimators import Problem
from tacit.methods.geneml.em import INTERCEPT_REG, STEPS, Context, Priors, folded_codes
from tacit.methods.geneml.online import Online
from tacit.metrics import recall_at_k

RANK, BATCH, U_STEPS = 100, 1024, 6
ALPHA1, ALPHA2 = 5.0, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["update", "epoch", "fold_in"])
    parser.add_argument("data", nargs="?", default="bibtex")
    options = parser.parse_args()
    parts = {"update": update, "epoch": epoch, "fold_in": fold_in}
    found = parts[options.part](options.data)
    line = json.dumps({"data": options.data, "rank": RANK} | found)
    name = f"geneml-{options.part}-{options.data}.json"
    (Path(__file__).parent / "results" / name).write_text(line + "\n")
    print(line)


def update(name: str) -> dict:
    problem, model = begun(name)
    rows = next(iter(problem.batches(BATCH, 0)))
    n = problem.n_samples
    moments = Moments.of(problem.blocks, cross=False, label_gram=False)
    per_label = PerLabel(problem.n_labels, ALPHA1, ALPHA2)
    start = model._em(problem, moments, per_label).start(RANK)
    updates = {
        curvature: Online(
            per_label, Priors(1.0, 1.0, 1.0), moments,
            polya_gamma=curvature == "polya-gamma", a0=1.0, epsilon=0.6,
        )
        for curvature in ("polya-gamma", "shared")
    }  # fmt: skip
    loop = Loop(start, moments.xx, n)
    X, Y = as_scipy(rows), np.asarray(rows.backend.dense(rows.Y, all_of(rows), float))
    loop_s = best(lambda: loop.update(X, Y, loop.state), 2)
    theirs = loop.update(X, Y, loop.state)
    found: dict = {"loop s": round(loop_s, 4)}
    for curvature, online in updates.items():
        state = online.start(start, 0)
        seconds = best(lambda o=online, s=state: o.update(s, rows, n), 20)
        found[f"{curvature} s"] = round(seconds, 5)
        found[f"loop / {curvature}"] = round(loop_s / seconds, 1)
    ours, _ = updates["polya-gamma"].update(updates["polya-gamma"].start(start, 0), rows, n)
    found["largest difference"] = max(
        float(np.max(np.abs(ours[key] - theirs[key])) / np.max(np.abs(theirs[key])))
        for key in ("V", "W", "mu")
    )
    paths = {
        curvature: path(problem, online, online.start(start, 0))
        for curvature, online in updates.items()
    }
    for curvature, values in paths.items():
        found[f"objective after a pass, {curvature}"] = round(values[-1], 1)
    wanted = paths["polya-gamma"][-1]  # the loop's too: its updates are the same
    needed = 1 + next(i for i, value in enumerate(paths["shared"]) if value <= wanted)
    found["updates of a pass"], found["needed by shared"] = len(paths["shared"]), needed
    ratio = len(paths["shared"]) * loop_s / (needed * found["shared s"])
    found["loop / shared, to the loop's objective"] = round(ratio, 1)
    return found


def path(problem: Problem, online: Online, state: dict) -> list[float]:
    """The objective after each update of a pass."""
    values = []
    for rows in problem.batches(BATCH, 0):
        state, _ = online.update(state, rows, problem.n_samples)
        values.append(objective(problem, state))
    return values


def epoch(name: str) -> dict:
    problem, model = begun(name)
    n, n_labels = problem.n_samples, problem.n_labels
    equations = Moments.of(problem.blocks, cross=False, label_gram=False)
    em = model._em(problem, equations, PerLabel(n_labels, ALPHA1, ALPHA2))
    state, _ = em.step(em.start(RANK))
    seconds = best(lambda: em.step(state), 2)
    # U and V each: STEPS + 1 evaluations of scores, and as many products with R.
    flops = 2 * 2 * (STEPS + 1) * 2.0 * n * n_labels * (RANK + 1)
    rows = 2**22 // n_labels
    A, B = (np.random.default_rng(0).random((m, RANK + 1), np.float32) for m in (rows, n_labels))
    gemm = best(lambda: (A @ B.T) @ B, 10)
    rate = 2 * 2.0 * rows * n_labels * (RANK + 1) / gemm
    return {
        "epoch s": round(seconds, 2),
        "GFLOP": round(flops / 1e9),
        "GFLOP/s": round(flops / seconds / 1e9, 1),
        "GEMM GFLOP/s": round(rate / 1e9, 1),
        "share": round(flops / seconds / rate, 3),
        "peak GiB": round(peak_gib(), 2),
    }


def fold_in(name: str) -> dict:
    data: Any = load(name)
    X, old, new = data.X, data.Y, data.extra.get("Y_2022")
    if new is None:  # debtags
        kept = data.extra["in_bullseye"] == "1"
        X, old, new = data.X[kept], data.extra["Y_bullseye"][kept], data.Y[kept]
    old = old.as_positive_only()
    added = sp.csr_array(new.positives > old.positives)
    found = {}
    for model in (GenEML(RANK, max_iter=5, random_state=0), LEML(RANK, random_state=0)):
        model.fit(X, old)
        for how, folded in (("features", False), ("fold-in", True)):
            best = model.complete(X, old, 20, fold_in=folded).by_row(len(old), 20)
            recall = round(100 * float(recall_at_k(added, best, 20)), 2)
            found[f"{type(model).__name__}, {how}, R@20 (%)"] = recall
    return found


def begun(name: str) -> tuple[Problem, GenEML]:
    model, data = GenEML(RANK, random_state=0), load(name)
    model.label_features_ = None
    blocks, known = model._rows(data.X.astype(np.float32), data.Y.as_positive_only())
    return model._problem(blocks, known), model


class Loop:
    """The update, row by row and label by label."""

    def __init__(self, start: dict, xx: np.ndarray, n: int):
        wide = lambda a: np.asarray(a, dtype=np.float64)
        self.n = n
        self.state = {name: wide(start[name]) for name in ("W", "V", "mu")}
        self.factor = cho_factor(xx + np.eye(len(xx)))

    def update(self, X: np.ndarray, Y: np.ndarray, state: dict) -> dict:
        """γ = 1, as in the first update: the means are those of the batch."""
        W, V, mu = state["W"], state["V"], state["mu"]
        k, size = W.shape[1], X.shape[0]
        basis, b = V[:, :k], V[:, k]
        XW = X @ W
        U = XW.copy()
        for _ in range(U_STEPS):
            for i in range(size):
                psi = basis @ U[i] + b
                p = np.where(Y[i] > 0, 1.0, mu / (1 + (1 - mu) * np.exp(psi)))
                w = p * eta(psi)
                G = (basis * w[:, None]).T @ basis + np.eye(k)
                U[i] = np.linalg.solve(G, basis.T @ (p * (Y[i] - 0.5) - w * b) + XW[i])
        A = np.hstack([U, np.ones((size, 1))])
        reg = np.append(np.ones(k), INTERCEPT_REG) / self.n
        new, asked = np.empty_like(V), np.empty(len(V))
        for j in range(len(V)):
            psi = A @ V[j]
            p = np.where(Y[:, j] > 0, 1.0, mu[j] / (1 + (1 - mu[j]) * np.exp(psi)))
            asked[j] = p.mean()
            G = (A * (p * eta(psi))[:, None]).T @ A / size + np.diag(reg)
            new[j] = np.linalg.solve(G, A.T @ (p * (Y[:, j] - 0.5)) / size)
        W = W + cho_solve(self.factor, (self.n / size) * (X.T @ (U - XW)) - W)
        mu = (self.n * asked + ALPHA1 - 1) / (self.n + ALPHA1 + ALPHA2 - 2)
        return {"W": W, "V": new, "mu": np.clip(mu, 1e-6, 1 - 1e-6)}


def objective(problem: Problem, state: dict) -> float:
    """Minus the log-posterior, the codes of all rows fitted by many U steps."""
    W, V, mu = (np.asarray(state[name], np.float64) for name in ("W", "V", "mu"))
    per_label = PerLabel(problem.n_labels, ALPHA1, ALPHA2)
    context = Context(state["W"], state["V"], per_label, {"mu": state["mu"]}, 1.0, False)
    total = 0.5 * (np.sum(W * W) + np.sum(V[:, :-1] ** 2) + INTERCEPT_REG * np.sum(V[:, -1] ** 2))
    for b in problem.blocks.parts:
        U = folded_codes(b, context, 30).astype(np.float64)
        F = np.hstack([U, np.ones((len(U), 1))]) @ V.T
        Y = b.backend.dense(b.Y, all_of(b), float) > 0
        total -= np.sum(np.where(Y, np.log(mu * expit(F)), np.log1p(-mu * expit(F))))
        total += 0.5 * np.sum((U - b.project(state["W"])) ** 2)
    return float(total - np.sum((ALPHA1 - 1) * np.log(mu)))


def all_of(b) -> slice:
    return slice(0, b.Y.shape[0])


def as_scipy(b) -> sp.csr_array:
    X = b.X
    return sp.csr_array((X.data.astype(float), X.indices, X.indptr), shape=X.shape)


def best(f: Callable, repeats: int) -> float:
    f()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_gib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


if __name__ == "__main__":
    main()
