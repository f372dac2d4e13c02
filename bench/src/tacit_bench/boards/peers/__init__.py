"""The same work by what people use today: `tacit bench peers`.

Each peer gets the same features (rows of unit length), the same labels of which some are hidden,
and the same budget: `SETTINGS` settings (`work.py`), judged by P@3 on held-out training rows and
what is still said of them, and the best fitted again to all rows. It runs in an environment of its
own (`environments.py`), as one process (`worker.py`); only its five best labels of each test row
come back, and are scored here, by the complete test labels.

The process of a peer is timed and measured from inside, so `Board.fill` should measure these cells
one at a time and in its own process (`jobs=0`). Nor can two runs make one environment at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from tacit.labels import TopK
from tacit_bench.board import Cell, Skip
from tacit_bench.boards.missing import DATA, show
from tacit_bench.boards.peers.environments import Peer, default_folder, python_of
from tacit_bench.study import Study
from tacit_bench.work import Work, prepared

__all__ = ["DATA", "PEERS", "RATES", "Peer", "cells", "measure", "show"]

RATES = (0.0, 0.5, 0.8)
WORKER = Path(__file__).with_name("worker.py")

_SKLEARN = ("scikit-learn==1.9.1", "numpy==2.4.6", "scipy==1.17.1")
_IALS = {"n_components": 400, "lambda_user_feature": 0.16, "train_epochs": 10}
_WARP = {"loss": "warp", "no_components": 100, "learning_rate": 0.05}

PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "scikit-learn Ridge",
            _SKLEARN,
            "sklearn",
            tuple({"alpha": alpha} for alpha in (1.0, 0.25, 4.0, 16.0)),
            "Ridge by Cholesky, a constant among the features; lays Y out dense",
        ),
        Peer(
            "scikit-learn OneVsRest",
            _SKLEARN,
            "sklearn",
            tuple({"C": C} for C in (10.0, 3.0, 30.0, 1.0)),
            "one liblinear logistic regression a label",
        ),
        Peer(
            "napkinXC",
            ("napkinxc==0.7.2", "numpy==2.4.6", "scipy==1.17.1"),
            "napkinxc",
            tuple({"liblinear_c": C} for C in (10.0, 3.0, 30.0, 1.0)),
            "probabilistic label tree; rows without a label are dropped",
        ),
        Peer(
            "PECOS",
            # XLinear needs no more than these; without "--no-deps" come 6 GB of language models.
            (
                "libpecos==1.2.8",
                "numpy==1.26.4",
                "scipy==1.13.1",
                "scikit-learn==1.6.1",
                "joblib==1.4.2",
                "threadpoolctl==3.5.0",
                "--no-deps",
            ),
            "pecos",
            (
                {"Cp": 1.0, "Cn": 1.0, "threshold": 0.1, "beam_size": 10},
                {"Cp": 0.2, "Cn": 0.2, "threshold": 0.01, "beam_size": 10},
                {"Cp": 0.5, "Cn": 0.1, "threshold": 0.01, "beam_size": 10},
                {"Cp": 0.5, "Cn": 0.5, "threshold": 0.01, "beam_size": 10},
            ),
            "XLinear on a tree of label features; rows without a label are dropped",
        ),
        Peer(
            "Omikuji",
            ("omikuji==0.5.2", *_SKLEARN),
            "omikuji",
            tuple(
                {"linear_c": C, "cluster_k": k, "beam_size": 10}
                for k in (2, 100)
                for C in (1.0, 0.3)
            ),
            "three label trees; rows without a label or a feature are dropped; the fit includes "
            "writing the file it learns from",
        ),
        Peer(
            "irspack",
            ("irspack==0.5.2", "numpy==2.4.6", "scipy==1.17.1"),
            "irspack",
            tuple(
                {"alpha0": alpha0, "reg": reg, **_IALS}
                for alpha0, reg in ((0.03, 0.003), (0.1, 0.01), (0.1, 0.003), (0.1, 0.001))
            ),
            "feature-aware iALS; a test row is one without history",
        ),
        Peer(
            "LightFM",
            ("lightfm-next==1.19.0", "numpy==2.4.6", "scipy==1.17.1"),
            "lightfm",
            tuple(
                {"epochs": epochs, "user_alpha": alpha, "item_alpha": alpha, **_WARP}
                for epochs in (10, 30)
                for alpha in (0.0, 1e-5)
            ),
            "WARP on features of rows alone; a fork that builds, as lightfm 1.17 no longer does",
        ),
    )
}


def cells(
    data: Iterable[str] = DATA,
    rates: Iterable[float] = RATES,
    peers: Iterable[str] = tuple(PEERS),
    seeds: int = 1,
) -> list[Cell]:
    """One cell for each seed, data set, share of positives hidden, and peer.

    Examples
    --------
    >>> cells(["bibtex"], [0.8], ["napkinXC"])
    [{'data': 'bibtex', 'mechanism': 'positives', 'rate': 0.8, 'method': 'napkinXC', 'seed': 0}]
    """
    peers = list(peers)
    for name in peers:
        if name not in PEERS:
            raise ValueError(f"peers has {name!r}, which is none of {', '.join(PEERS)}")
    return [
        {"data": name, "mechanism": "positives", "rate": rate, "method": peer, "seed": seed}
        for seed, name, rate, peer in product(range(seeds), data, rates, peers)
    ]


def measure(
    cell: Cell,
    folder: Path | None = None,
    limit: float | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """What a peer reaches in a cell, in %, and what it took.

    Parameters
    ----------
    cell : dict
        One of `cells`.
    folder : Path, optional
        Where environments are kept; by default the user's cache.
    limit : float, optional
        Seconds after which the peer is stopped. No setting is begun after half of it.
    threads : int, optional
        How many threads the peer may use; by default one for each core.
    """
    peer = PEERS[cell["method"]]
    work = prepared(cell)
    python = python_of(peer, folder or default_folder())
    with tempfile.TemporaryDirectory() as desk:
        _write_work(Path(desk), work, peer)
        _run_worker(python, Path(desk), peer, limit, threads or joblib.cpu_count())
        top = np.load(Path(desk, "top.npy"), allow_pickle=False)
        figures = json.loads(Path(desk, "figures.json").read_text())
    scores = np.where(top < 0, -np.inf, -np.arange(top.shape[1], dtype=float))
    about = {"package": peer.requirements[0], "device": "cpu"}
    return work.figures(TopK(top, scores)) | about | figures


def _write_work(desk: Path, work: Work, peer: Peer) -> None:
    np.save(desk / "fit.npy", work.fitted)
    np.save(desk / "held.npy", work.held)
    for name, X in {"X": work.X, "X_test": work.X_test}.items():
        rows = normalize(sp.csr_array(X, dtype=np.float32))
        sp.save_npz(desk / f"{name}.npz", rows, compressed=False)
    sp.save_npz(desk / "Y.npz", work.said.to_sparse().astype(np.int8), compressed=False)
    (desk / "grid.json").write_text(json.dumps(peer.grid))


def _run_worker(python: Path, work: Path, peer: Peer, limit: float | None, threads: int) -> None:
    """Run the worker to its end; a crash, or more than `limit` seconds, is a `Skip`."""
    command = [str(python), "-I", str(WORKER), str(work), peer.name, "--threads", str(threads)]
    command += [] if limit is None else ["--limit", str(limit)]
    # BLAS and OpenMP have no argument to be told by.
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(
            command, env=env, timeout=limit, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        raise Skip(f"stopped after {limit:g} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it died with status {done.returncode}"])[-1]
        raise Skip(f"{peer.name} stopped: {last}")


STUDY = Study(
    "peers",
    "What do other packages reach, given the same work?",
    cells,
    measure,
    show=show,
    apart=False,  # each has a process of its own, which measures itself
)
