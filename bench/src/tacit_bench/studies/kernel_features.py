"""What kernel features of dense rows buy: accuracy and time of two methods, with them and without.

λ and, of the rbf kernel, γ (in units of one over the median squared distance of rows) are those of
the best P@1 on a fifth of the training rows, held out; the test rows are seen once, by the model of
these, fitted to all training rows. Kernel features are Nyström's with 2,000 landmarks.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from tacit import LEML, KernelFeatures
from tacit.baselines import Ridge
from tacit.metrics import precision_at_k
from tacit_bench.board import Cell
from tacit_bench.own import with_test_rows
from tacit_bench.study import Study
from tacit_bench.work import loaded, percent

__all__ = ["STUDY"]

GAMMAS = {"linear": (None,), "rbf": (0.25, 1.0, 4.0)}
REGS = (0.001, 0.01, 0.1, 1.0, 10.0)
LANDMARKS = 2000
METHODS: dict[str, Any] = {"LEML": LEML(50, max_iter=20, random_state=0), "Ridge": Ridge(reg=1.0)}


def cells() -> list[Cell]:
    return [
        {"data": "mediamill", "method": method, "features": features}
        for features, method in product(GAMMAS, METHODS)
    ]


def measure(cell: Cell, device: str = "cpu") -> dict[str, Any]:
    """Choose γ and λ, fit with them, and rank the labels of the test rows."""
    data: Any = with_test_rows(loaded(cell["data"]))
    unit, method = 1 / median_squared_distance(data.X), clone(METHODS[cell["method"]])
    method.set_params(device=device, normalize="l2" if cell["features"] == "linear" else None)
    X, X_held, Y, Y_held = train_test_split(data.X, data.Y, test_size=0.2, random_state=0)
    best: tuple[float, float | None, float] = (-1.0, None, 0.0)
    for gamma in GAMMAS[cell["features"]]:
        features = features_of(gamma, unit, X.shape[0])
        Phi, Phi_held = features.fit_transform(X), features.transform(X_held)
        for reg in REGS:
            model = method.set_params(reg=reg).fit(Phi, Y)
            best = max(best, (precisions(model, Phi_held, Y_held)["P@1"], gamma, reg), key=_first)
    _, gamma, reg = best
    start = time.perf_counter()
    features = features_of(gamma, unit, X.shape[0])
    model = method.set_params(reg=reg).fit(features.fit_transform(data.X), data.Y)
    seconds = time.perf_counter() - start
    chosen = {"γ × median": gamma, "λ": reg, "fit s": round(seconds, 1)}
    return chosen | precisions(model, features.transform(data.X_test), data.Y_test)


def features_of(gamma: float | None, unit: float, n_rows: int) -> Any:
    """Kernel features; the features themselves where there is no γ."""
    if gamma is None:
        return make_pipeline("passthrough")
    some = min(LANDMARKS, n_rows // 4)  # small data have fewer
    return KernelFeatures(
        gamma=gamma * unit, approximation="nystroem", n_components=some, random_state=0
    )


def median_squared_distance(X: Any) -> float:
    a, b = np.random.default_rng(0).integers(0, X.shape[0], (2, 20_000))
    return float(np.median(((X[a] - X[b]) ** 2).sum(axis=1)))


def precisions(model: Any, X: Any, Y: Any) -> dict[str, float]:
    found = np.atleast_1d(precision_at_k(Y, model.top_k(X, 5), (1, 3, 5)))
    return {f"P@{k}": percent(p) for k, p in zip((1, 3, 5), found)}


def _first(tried: tuple[float, float | None, float]) -> float:
    return tried[0]


STUDY = Study(
    "kernel_features",
    "What do kernel features of dense rows buy, and at what price?",
    cells,
    measure,
    tiny=[{"data": "random", "method": "Ridge", "features": features} for features in GAMMAS],
)
