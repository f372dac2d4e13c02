"""FaIE's table 6 and figure 2, ours beside the published ones, and what the n × n costs.

    python benchmarks/faie_paper.py table6     # seconds of codes and of the regression, delicious
    python benchmarks/faie_paper.py figure2    # α on delicious: docs/images/faie_figure2.png
    python benchmarks/faie_paper.py speed      # against the explicit n × n matrix, delicious
    python benchmarks/faie_paper.py memory     # eurlex57k, where n × n takes 16 GB

Each writes `results/faie_paper-….json` and prints it. Tables 2 to 4 are `tacit bench papers --paper
FaIE`; here too delicious is 5,000 random rows (seed 0), features are not scaled, and λ is 0.001.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from sklearn.model_selection import KFold

from tacit import FaIE
from tacit.baselines import LabelSpaceReduction, Ridge
from tacit.datasets import load
from tacit.labels import as_labels
from tacit.metrics import example_accuracy, macro_f1, precision_at_k

RESULTS = Path(__file__).with_name("results")
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "faie_figure2.png"
REG = 1e-3
PLAIN = {"normalize": None, "reg": REG}

# Seconds on delicious at 10 %: codes, predictor (Matlab, an Intel Xeon E5620).
TABLE_6 = {
    "BR (L-RR)": (0.0, 49.993),
    "CS": (0.064, 4.993),
    "PLST": (0.396, 4.991),
    "CPLST": (2.132, 4.948),
    "MLC-BMaD": (16.276, 4.990),
    "ML-CSSP": (0.371, 4.975),
    "FaIE": (5.032, 4.980),
}

Data = tuple[np.ndarray, np.ndarray]


def main() -> None:
    parts = {"table6": table6, "figure2": figure2, "speed": speed, "memory": memory, "peak": peak}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts)
    parts[parser.parse_args().part]()


def keep(name: str, found: Any) -> None:
    text = json.dumps(found, ensure_ascii=False)
    (RESULTS / f"faie_paper-{name}.json").write_text(text + "\n")
    print(text)


def delicious() -> Data:
    """5,000 random rows, dense."""
    data: Any = load("delicious")
    X = sp.vstack([data.X, data.X_test]).toarray().astype(np.float64)
    Y = sp.vstack([data.Y.positives, data.Y_test.positives]).toarray().astype(np.int8)
    some = np.random.default_rng(0).permutation(len(X))[:5000]
    return X[some], Y[some]


# Table 6


def table6() -> None:
    X, Y = delicious()
    X, Y = X[:4000], Y[:4000]
    rank = int(0.1 * Y.shape[1])
    estimators = {
        "BR (L-RR)": LabelSpaceReduction("plst", Y.shape[1], **PLAIN),
        "CS": LabelSpaceReduction("cs", rank, random_state=0, **PLAIN),
        "PLST": LabelSpaceReduction("plst", rank, **PLAIN),
        "CPLST": LabelSpaceReduction("cplst", rank, **PLAIN),
        "MLC-BMaD": LabelSpaceReduction("bmad", rank, tau=0.5, **PLAIN),
        "ML-CSSP": LabelSpaceReduction("cssp", rank, random_state=0, **PLAIN),
        "FaIE": FaIE(rank, alpha=1000.0, **PLAIN),
    }
    found = {}
    for name, estimator in estimators.items():
        if name == "BR (L-RR)":  # no codes
            estimator = Ridge(reg=REG, normalize=None)
            start = time.perf_counter()
            estimator.fit(X, Y)
            parts = 0.0, time.perf_counter() - start
        else:
            for _ in range(2):  # the first compiles
                parts = _timed_parts(estimator, X, Y)
        found[name] = {"codes": round(parts[0], 3), "predictor": round(parts[1], 3)}
    keep("table6", {"n": len(X), "rank": rank, "rows": found, "published": TABLE_6})


def _timed_parts(estimator: Any, X: np.ndarray, Y: np.ndarray) -> tuple[float, float]:
    blocks, known = estimator._rows(X, as_labels(Y, "complete"))
    training = estimator._training(estimator._problem(blocks, known))
    start = time.perf_counter()
    code = estimator._codec.learn(training, estimator.rank, estimator.reg)
    middle = time.perf_counter()
    code.weights(training, estimator.reg)
    return middle - start, time.perf_counter() - middle


# Figure 2


def figure2() -> None:
    from matplotlib.figure import Figure  # the extra `plot`

    X, Y = delicious()
    train, test = next(KFold(5, shuffle=True, random_state=0).split(X))
    rank = int(0.1 * Y.shape[1])
    rows = []
    for alpha in 10.0 ** np.arange(-2, 5.5, 0.5):
        model = FaIE(rank, alpha=float(alpha), **PLAIN)
        blocks, known = model._rows(X[train], as_labels(Y[train], "complete"))
        training = model._training(model._problem(blocks, known))
        code = model._codec.learn(training, rank, REG)
        S = training.moments
        # tr CᵀYYᵀC = ‖YᵀC‖², and tr CᵀΔC from X̃ᵀC.
        XC = S.xy @ code.P + S.xx @ code.R
        said = model.fit(X[train], Y[train]).predict(X[test])
        rows.append(
            {
                "alpha": float(alpha),
                "recoverability": float((code.H**2).sum()),
                "predictability": float((XC * S.regress(XC, REG)).sum()),
                "macro-F1": 100 * macro_f1(Y[test], said),
                "accuracy": 100 * example_accuracy(Y[test], said),
            }
        )
    total = float(np.trace(S.yy))
    keep("figure2", {"rank": rank, "labels": total, "rows": rows})
    values = {name: [row[name] for row in rows] for name in rows[0]}
    drawing = Figure(figsize=(9.6, 3.6), dpi=200, layout="constrained")
    for axes, names, limits in zip(
        drawing.subplots(1, 2),
        (("macro-F1", "accuracy"), ("predictability", "recoverability")),
        ((None, None), (rank, None)),
    ):
        other = axes.twinx()
        lines = []
        for ax, name, colour, style in zip((axes, other), names, ("#1b6ca8", "#b5482f"), "os"):
            lines += ax.plot(values["alpha"], values[name], f"{style}-", color=colour, label=name)
            ax.set_ylabel(name + (" (%)" if limits[0] is None else ""), color=colour)
            ax.spines["top"].set_visible(False)
        if limits[0]:
            lines += axes.plot(
                values["alpha"], [rank] * len(rows), "--", color="#777777", label="upper bound k"
            )
            axes.set_ylim(bottom=0)
            other.set_ylim(bottom=0)
        axes.set(xscale="log", xlabel="α")
        axes.grid(alpha=0.25)
        axes.legend(handles=lines, loc="best", frameon=False, fontsize=8)
    FIGURE.parent.mkdir(exist_ok=True)
    drawing.savefig(FIGURE)


# Speed and memory


def speed() -> None:
    """One fit each of the Gram triple and of the n × n matrix, with the same answer."""
    data: Any = load("delicious")
    X, Y = (A.toarray().astype(np.float64) for A in (sp.csr_array(data.X), data.Y.positives))
    rank, alpha = int(0.1 * Y.shape[1]), 1000.0
    FaIE(2, alpha=alpha, **PLAIN).fit(X[:200], Y[:200])  # compiles
    start = time.perf_counter()
    model = FaIE(rank, alpha=alpha, **PLAIN).fit(X, Y)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    G = Xc.T @ Xc + REG * np.eye(X.shape[1])
    K = Yc @ Yc.T
    K += alpha * (Xc @ np.linalg.solve(G, Xc.T))
    formed = time.perf_counter() - start
    _, C = eigsh(K, rank, which="LA")
    scores = Xc @ np.linalg.solve(G, Xc.T @ C) @ (C.T @ Yc) + Y.mean(axis=0)
    explicit = time.perf_counter() - start
    gap = float(np.abs(model.decision_function(X) - scores).max())
    keep(
        "speed",
        {
            "n": len(X),
            "rank": rank,
            "gram triple s": round(ours, 2),
            "n × n s": round(explicit, 2),
            "of which forming it": round(formed, 2),
            "ratio": round(explicit / ours, 1),
            "largest difference of a score": gap,
        },
    )


def memory() -> None:
    """The peak of a process that fits eurlex57k, less what loading the library and data takes."""
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, "peak"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    keep("memory-eurlex57k", json.loads(output.stdout.splitlines()[-1]))


def peak() -> None:
    data: Any = load("eurlex57k")
    gib = lambda: round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    before, start = gib(), time.perf_counter()
    model = FaIE(100, alpha=10.0, reg=1.0).fit(data.X, data.Y)
    seconds = round(time.perf_counter() - start, 1)
    found = {"before GiB": before, "peak GiB": gib(), "fit s": seconds}
    top = model.top_k(data.X_test, 5)
    found["P@1, 3, 5"] = [
        round(100 * float(p), 2) for p in precision_at_k(data.Y_test, top, (1, 3, 5))
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
