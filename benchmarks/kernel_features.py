"""LEML on the features, and on kernel features of them: accuracy and time on one data set.

    python benchmarks/kernel_features.py mediamill

γ (in units of one over the median squared distance of rows) and λ are those of the best P@1 on a
fifth of the training rows, held out; the test rows are seen once, by the model of these, fitted on
all training rows. The last line is JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from tacit import LEML, KernelFeatures
from tacit.baselines import Ridge
from tacit.datasets import load
from tacit.metrics import precision_at_k

GAMMAS = (0.25, 1.0, 4.0)
REGS = (0.001, 0.01, 0.1, 1.0, 10.0)


def median_squared_distance(X: np.ndarray) -> float:
    a, b = np.random.default_rng(0).integers(0, len(X), (2, 20_000))
    return float(np.median(((X[a] - X[b]) ** 2).sum(axis=1)))


def precisions(model, X, Y) -> np.ndarray:
    return precision_at_k(Y, model.top_k(X, 5), (1, 3, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--rank", type=int, default=50)
    parser.add_argument("--n-components", type=int, default=2000)
    options = parser.parse_args()
    data = load(options.data)
    unit = 1 / median_squared_distance(data.X)
    kernels = [
        KernelFeatures(
            gamma=gamma * unit,
            approximation="nystroem",
            n_components=options.n_components,
            random_state=0,
        )
        for gamma in GAMMAS
    ]
    methods = {"LEML": LEML(options.rank, max_iter=20, random_state=0), "Ridge": Ridge(reg=1.0)}
    X, X_held, Y, Y_held = train_test_split(data.X, data.Y, test_size=0.2, random_state=0)
    best: dict[tuple[str, str], tuple] = {}
    for features in ["passthrough", *kernels]:
        before = Pipeline([("features", features)]).fit(X)
        Phi, Phi_held = before.transform(X), before.transform(X_held)
        kind, normalize = ("linear", "l2") if features == "passthrough" else ("rbf", None)
        for (name, method), reg in itertools.product(methods.items(), REGS):
            method.set_params(reg=reg, normalize=normalize).fit(Phi, Y)
            found = precisions(method, Phi_held, Y_held)[0]
            if (name, kind) not in best or found > best[name, kind][0]:
                best[name, kind] = (found, features, reg, normalize)

    table = Table("method", "features", "γ × median", "λ", "P@1", "P@3", "P@5", "seconds")
    results = []
    for (name, kind), (_, features, reg, normalize) in best.items():
        start = time.perf_counter()
        method = methods[name].set_params(reg=reg, normalize=normalize)
        model = Pipeline([("features", features), ("model", method)]).fit(data.X, data.Y)
        seconds = round(time.perf_counter() - start, 1)
        found = precisions(method, model[:-1].transform(data.X_test), data.Y_test)
        gamma = None if kind == "linear" else round(features.gamma / unit, 2)
        results.append(
            [name, kind, gamma, reg, *(round(100 * float(p), 1) for p in found), seconds]
        )
        table.add_row(*map(str, results[-1]))
    Console(stderr=True).print(table)
    columns = ["method", "features", "gamma", "reg", "P@1", "P@3", "P@5", "fit seconds"]
    print(json.dumps({"data": options.data, "results": [dict(zip(columns, r)) for r in results]}))


if __name__ == "__main__":
    main()
