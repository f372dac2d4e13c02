"""An online update of GenEML against the same update as a plain loop over rows and labels.

The loop is what one would write in NumPy from the paper: for each row, and then for each label, a
Gram matrix with Pólya–Gamma weights and a solve, in float64. The library's own Pólya–Gamma update,
in float32, must give the same numbers. Updates with shared curvature, the default, differ: those
are counted that they need to reach the objective which Pólya–Gamma updates have after a pass over
the data.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from tacit import GenEML
from tacit.backends.block import Block
from tacit.basics.numerics import eta
from tacit.codecs.codec_data import on_host
from tacit.engines.exposure import EDGE, PerLabel
from tacit.engines.moments import Moments
from tacit.estimators import Problem
from tacit.methods.geneml.em import INTERCEPT_REG, Context, folded_codes
from tacit.methods.geneml.online import OnlineEM
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import quickest
from tacit_bench.work import loaded

__all__ = ["STUDY"]

U_STEPS = 6  # of a batch, in the library's Pólya–Gamma update and in the loop
CURVATURES = ("polya-gamma", "shared")


def cells() -> list[Cell]:
    return [{"data": "bibtex", "rank": 100, "batch": 1024}]


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds of an update by the loop and by ours, and how far ours get in a pass."""
    # a0 = 1 makes γ = 1 in the first update: the means are those of the batch.
    model = GenEML(cell["rank"], a0=1.0, random_state=0)
    data: Any = loaded(cell["data"])
    problem = model._problem(*model._rows(data.X, data.Y.as_positive_only()))
    moments = Moments.of(problem.blocks, cross=False, label_gram=False)
    exposure = PerLabel(problem.n_labels, model.alpha1, model.alpha2)
    first = model._em(problem, moments, exposure).start(model._rank(problem))
    ours, starts = {}, {}
    for curvature in CURVATURES:
        ours[curvature] = model.set_params(curvature=curvature)._updates(exposure, moments)
        starts[curvature] = ours[curvature].start(first, 0)
    batch, n = next(problem.batches(cell["batch"], 0)), problem.n_samples

    loop = LoopUpdate(first, moments.xx, n, exposure)
    X, Y = on_host(batch.X, batch.backend).astype(float), _laid_out(batch)
    theirs = loop.update(X, Y)
    loop_s = quickest(lambda: loop.update(X, Y), least=2.0)
    found: dict[str, Any] = {"loop s": round(loop_s, 4)}
    for curvature in CURVATURES:
        update = partial(ours[curvature].update, starts[curvature], batch, n)
        mine, _ = update()
        if curvature == "polya-gamma":
            gaps = [abs(mine[key] - theirs[key]).max() / abs(theirs[key]).max() for key in theirs]
            found["largest difference"] = float(max(gaps))
        seconds = quickest(update)
        found[f"{curvature} s"] = round(seconds, 5)
        found[f"loop / {curvature}"] = round(loop_s / seconds, 1)
    paths = {c: _objectives(problem, ours[c], starts[c], cell["batch"]) for c in CURVATURES}
    wanted = paths["polya-gamma"][-1]  # the loop's too: its updates are the same
    for curvature, path in paths.items():
        found[f"objective after a pass, {curvature}"] = round(path[-1], 1)
    found["updates of a pass"] = len(paths["shared"])
    needed = next((i for i, value in enumerate(paths["shared"], 1) if value <= wanted), None)
    found["needed by shared"] = needed
    if needed is not None:
        ratio = found["updates of a pass"] * loop_s / (needed * found["shared s"])
        found["loop / shared, to the loop's objective"] = round(ratio, 1)
    return found


def _objectives(
    problem: Problem, online: OnlineEM, state: dict[str, Any], size: int
) -> list[float]:
    """Minus the log-posterior after each update of a pass."""
    values = []
    for batch in problem.batches(size, 0):
        state, _ = online.update(state, batch, problem.n_samples)
        values.append(_objective(problem, online, state))
    return values


def _objective(problem: Problem, online: OnlineEM, state: dict[str, Any]) -> float:
    """Minus the log-posterior, the codes of all rows fitted by many U steps."""
    exposure = online.exposure
    context = Context(state["W"], state["V"], exposure, {"mu": state["mu"]}, 1.0, False)
    W, V, mu = (np.asarray(state[name], np.float64) for name in ("W", "V", "mu"))
    total = 0.5 * (np.sum(W * W) + np.sum(V[:, :-1] ** 2) + INTERCEPT_REG * np.sum(V[:, -1] ** 2))
    for b in problem.blocks.sum(lambda b: [b]):
        U = folded_codes(b, context, 30).astype(np.float64)
        F = np.hstack([U, np.ones((len(U), 1))]) @ V.T
        said = np.where(_laid_out(b) > 0, np.log(mu * expit(F)), np.log1p(-mu * expit(F)))
        total += 0.5 * np.sum((U - b.project(state["W"])) ** 2) - np.sum(said)
    return float(total - exposure.log_prior({"mu": mu}))


def _laid_out(b: Block) -> np.ndarray:
    return np.asarray(b.backend.dense(b.Y, slice(0, b.Y.shape[0]), float))


class LoopUpdate:
    """The first update of online EM with all precisions 1, row by row and label by label."""

    def __init__(self, start: dict[str, Any], xx: np.ndarray, n: int, exposure: PerLabel):
        self.W, self.V, self.mu = (np.asarray(start[name], float) for name in ("W", "V", "mu"))
        self.n, self.exposure = n, exposure
        self.factor = cho_factor(xx + np.eye(len(xx)))

    def update(self, X: Any, Y: np.ndarray) -> dict[str, np.ndarray]:
        """V, W and μ after the batch X, Y."""
        W, V, mu, (size, _) = self.W, self.V, self.mu, X.shape
        k = W.shape[1]
        basis, b, XW = V[:, :k], V[:, k], X @ W
        U = XW.copy()
        for _ in range(U_STEPS):
            for i in range(size):
                psi = basis @ U[i] + b
                p = _asked(Y[i], psi, mu)
                w = p * eta(psi)
                G = (basis * w[:, None]).T @ basis + np.eye(k)
                U[i] = np.linalg.solve(G, basis.T @ (p * (Y[i] - 0.5) - w * b) + XW[i])
        A = np.hstack([U, np.ones((size, 1))])
        reg = np.diag(np.append(np.ones(k), INTERCEPT_REG) / self.n)
        new, asked = np.empty_like(V), np.empty(len(V))
        for j in range(len(V)):
            psi = A @ V[j]
            p = _asked(Y[:, j], psi, mu[j])
            asked[j] = p.mean()
            G = (A * (p * eta(psi))[:, None]).T @ A / size + reg
            new[j] = np.linalg.solve(G, A.T @ (p * (Y[:, j] - 0.5)) / size)
        W = W + cho_solve(self.factor, (self.n / size) * (X.T @ (U - XW)) - W)
        alpha1, alpha2 = self.exposure.alpha1, self.exposure.alpha2
        mu = (self.n * asked + alpha1 - 1) / (self.n + alpha1 + alpha2 - 2)
        return {"V": new, "W": W, "mu": np.clip(mu, EDGE, 1 - EDGE)}


def _asked(y: np.ndarray, psi: np.ndarray, mu: Any) -> np.ndarray:
    """P(asked), given what was said."""
    return np.where(y > 0, 1.0, mu / (1 + (1 - mu) * np.exp(psi)))


STUDY = Study(
    "geneml_update",
    "How much faster is an online update of GenEML than a plain loop over rows and labels?",
    cells,
    measure,
    tiny=[{"data": "random", "rank": 5, "batch": 100}],
)
