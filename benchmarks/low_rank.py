"""LEML beside the best low-rank peer, irspack's feature-aware iALS, and exact ridge where it fits.

    python benchmarks/low_rank.py eurlex57k --ranks 100 200 400 --peer-python peer/bin/python

Rows without a rank are of full rank, with one λ: LEML's closed form there is exact ridge. Each
model runs in a process of its own (`low_rank_worker.py`), one after the other, on the same
features: rows of unit length and a constant. `--peer-python` is a Python that has irspack; without
it, irspack is left out. The last line is JSON, for `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import normalize

from tacit.datasets import load
from tacit.labels import DENSE_LIMIT, TopK
from tacit.metrics import precision_at_k, propensities, psp_at_k

WORKER = Path(__file__).with_name("low_rank_worker.py")
SECONDS = 600  # a model that takes longer is stopped

# Tried by hand, at rank 100, on rows held out of the training rows unless said otherwise.
# LEML (positive-only labels, unsaid_weight "auto"): bibtex reg 0.3, 1 × 2, 4 passes; eurlex57k
# reg 0.1, 0.3 × 1, 2, 3 passes × two weights; yso_finna_en reg 0.3, 1 on the test rows.
# Ridge: bibtex reg 0.3, 1, 3, 10 on the test rows; eurlex57k reg 0.3, 1, 3 on its dev rows.
# irspack: bibtex alpha0 0.1, 0.3, 1 × reg 0.003, 0.01, 0.03, 0.1 × three lambda_user_feature;
# eurlex57k, dev rows, twenty settings, alpha0 0.003 to 0.3, reg 3e-4 to 0.01, 6 to 16 epochs;
# yso_finna_en untuned, and too slow with all features.
SETTINGS = {
    "bibtex": {
        "LEML": {"reg": 0.3, "max_iter": 4},
        "Ridge": {"reg": 1.0},
        "irspack iALS": {
            "alpha0": 0.1, "reg": 0.01, "lambda_user_feature": 0.16, "train_epochs": 10
        },
    },
    "eurlex57k": {
        "LEML": {"reg": 0.1, "max_iter": 2},
        "Ridge": {"reg": 0.3},
        "irspack iALS": {
            "alpha0": 0.03, "reg": 0.003, "lambda_user_feature": 0.12, "train_epochs": 8
        },
    },
    "yso_finna_en": {
        "LEML": {"reg": 0.3, "max_iter": 3},
        "irspack iALS": {
            "alpha0": 0.003, "reg": 0.003, "lambda_user_feature": 0.06, "train_epochs": 2
        },
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=SETTINGS)
    parser.add_argument("--ranks", type=int, nargs="+", default=[100])
    parser.add_argument("--peer-python", metavar="PATH", help="a Python that has irspack")
    options = parser.parse_args()
    console = Console(stderr=True)
    data, settings = load(options.data), SETTINGS[options.data]
    X, Y = features(data.X), data.Y
    largest = max(X.shape[1] * max(X.shape[1], Y.n_labels), len(Y) * Y.n_labels)

    plan = [(model, rank) for rank in options.ranks for model in ("LEML", "irspack iALS")]
    plan += [(model, None) for model in ("LEML, closed form", "Ridge", "scikit-learn Ridge")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, matrix in {"X": X, "Y": Y.to_sparse(), "X_test": features(data.X_test)}.items():
            sp.save_npz(Path(folder, name), matrix, compressed=False)
        for model, rank in plan:
            if model == "irspack iALS" and options.peer_python is None:
                console.print(f"{model} left out: give its Python as --peer-python")
                continue
            if rank is None and largest > DENSE_LIMIT:
                console.print(f"{model} left out: its largest dense matrix has {largest:,} entries")
                continue
            chosen = settings[model if rank else "Ridge"]
            python = options.peer_python if model == "irspack iALS" else sys.executable
            try:
                with console.status(f"{model}, rank {rank}"):
                    figures = run(python, folder, model, chosen | ({"rank": rank} if rank else {}))
            except subprocess.TimeoutExpired:
                console.print(f"{model}, rank {rank}, stopped after {SECONDS} s")
                continue
            except subprocess.CalledProcessError as error:
                console.print(f"{model}, rank {rank}, failed with status {error.returncode}")
                continue
            top = np.load(Path(folder, "top.npy"), allow_pickle=False)
            accuracy = precisions(Y, data.Y_test, top)
            results.append({"model": model, "rank": rank} | accuracy | figures)
    console.print(table(options.data, results))
    print(json.dumps({"data": options.data, "settings": settings, "results": results}))


def features(X) -> sp.csr_array:
    ones = np.ones((X.shape[0], 1), np.float32)
    return sp.csr_array(sp.hstack([normalize(sp.csr_array(X)), ones], dtype=np.float32))


def run(python: str, folder: str, model: str, settings: dict) -> dict[str, float]:
    command = [python, str(WORKER), folder, model, json.dumps(settings)]
    subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
    figures = json.loads(Path(folder, "figures.json").read_text())
    return {name: round(value, 2) for name, value in figures.items()}


def precisions(Y, Y_test, top: np.ndarray) -> dict[str, float]:
    predicted, ks = TopK(top, np.broadcast_to(-np.arange(5.0), top.shape)), (1, 3, 5)
    P = precision_at_k(Y_test, predicted, ks)
    PSP = psp_at_k(Y_test, predicted, propensities(Y), ks)
    names = [f"{metric}@{k}" for metric in ("P", "PSP") for k in ks]
    return {name: round(100 * float(value), 2) for name, value in zip(names, np.hstack([P, PSP]))}


def table(title: str, results: list[dict]) -> Table:
    shown = Table(title=title, box=None, pad_edge=False, collapse_padding=True)
    for name in results[0] if results else ():
        first = name == "model"
        shown.add_column(name, justify="left" if first else "right", no_wrap=first)
    for row in results:
        shown.add_row(*("–" if value is None else str(value) for value in row.values()))
    return shown


if __name__ == "__main__":
    main()
