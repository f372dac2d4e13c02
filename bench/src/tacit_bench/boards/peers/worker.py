"""Tune, fit and time one peer: a script for that peer's own Python, which need not have tacit.

    python -I worker.py FOLDER PEER [--limit SECONDS] [--threads N]

FOLDER holds X.npz and X_test.npz (CSR, rows of unit length), Y.npz (CSR, what is said), fit.npy and
held.npy (numbers of rows) and grid.json (a list of settings). Each setting is fitted to the rows
`fit` and judged by P@3 on the rows `held`; the best is fitted again to all rows. FOLDER receives
top.npy, the five best labels of each test row, best first and -1 for none, and figures.json.

A peer is a function from (X, Y, threads, **settings) to a function from X to the five best labels.
It imports its package itself: that time is in the tuning, and not in the fit. What cannot be done
ends with one sentence on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

K = 5
ROWS = 2048  # rows whose scores are laid out at a time
DENSE_LIMIT = 2e8  # entries of Y laid out at most, for a peer that needs them all

Predict = Callable[[sp.csr_matrix], np.ndarray]


def sklearn_ridge(X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, **settings: Any) -> Predict:
    from sklearn.linear_model import Ridge

    if Y.shape[0] * Y.shape[1] > DENSE_LIMIT:
        sys.exit(
            f"scikit-learn's Ridge needs Y dense, and {Y.shape[0]:,} × {Y.shape[1]:,} is too large"
        )
    # "cholesky" factorises XᵀX once for all labels; the iterative solvers go label by label. It
    # takes no intercept with a sparse X.
    model = Ridge(fit_intercept=False, solver="cholesky", **settings)
    model.fit(with_constant(X), Y.toarray().astype(X.dtype))
    basis = np.ascontiguousarray(np.atleast_2d(model.coef_).T)
    return lambda X: in_blocks(lambda rows: with_constant(rows) @ basis, X)


def sklearn_one_vs_rest(
    X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, **settings: Any
) -> Predict:
    import warnings

    from joblib import parallel_config
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", **settings), n_jobs=threads)
    # Threads, since liblinear lets go of the lock, and processes would each have a copy of X.
    with parallel_config(backend="threading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that no row has: their probability is 0
        # Not int8: scikit-learn 1.9.1 then mixes up the labels from the 128th on, without a word.
        model.fit(X, Y.astype(np.int64))
    return lambda X: in_blocks(model.predict_proba, X)


def napkinxc(X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, **settings: Any) -> Predict:
    from napkinxc.models import PLT

    folder = tempfile.TemporaryDirectory()
    model = PLT(folder.name, seed=0, threads=threads, **settings)
    X, Y = labelled(X, Y)
    model.fit(X, Y.astype(np.float32))
    model.load()  # as part of the fit: otherwise the first prediction would do it

    def predict(X: sp.csr_matrix) -> np.ndarray:
        assert folder  # the model's files live as long as the model
        return padded(model.predict(X, top_k=K))

    return predict


def pecos(
    X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, beam_size: int, **settings: Any
) -> Predict:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y = labelled(X, Y)
    Y = Y.astype(np.float32)
    clusters = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), threads=threads)
    model = XLinearModel.train(X, Y.tocsc(), C=clusters, threads=threads, bias=1.0, **settings)
    with tempfile.TemporaryDirectory() as folder:  # what is loaded to predict is ten times as fast
        model.save(folder)
        model = XLinearModel.load(folder, is_predict_only=True)

    def predict(X: sp.csr_matrix) -> np.ndarray:
        scores = model.predict(X, only_topk=K, beam_size=beam_size, threads=threads)
        return padded(labels[np.argsort(-score)] for labels, score in stored(scores))

    return predict


def omikuji(
    X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, beam_size: int, **settings: Any
) -> Predict:
    from omikuji import Model
    from sklearn.datasets import dump_svmlight_file

    wanted = Model.default_hyper_param()
    for name, value in settings.items():
        setattr(wanted, name, value)
    X, Y = labelled(X, Y)
    described = np.flatnonzero(np.diff(X.indptr))  # a line without features stops its reader
    X, Y = X[described], Y[described]
    with tempfile.TemporaryDirectory() as folder:  # it learns from a file, and from nothing else
        path = Path(folder, "train.txt")
        with path.open("wb") as file:
            file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
            dump_svmlight_file(X, Y, file, multilabel=True)
        model = Model.train_on_data(str(path), wanted, n_threads=threads)
    model.init_prediction_thread_pool(threads)

    def five(columns: np.ndarray, values: np.ndarray) -> list[int]:
        pairs = list(zip(columns.tolist(), values.tolist()))
        return [label for label, _ in model.predict(pairs, beam_size=beam_size, top_k=K)]

    return lambda X: padded(five(*row) for row in stored(X))


def irspack(X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, **settings: Any) -> Predict:
    """Feature-aware iALS; a new row is scored as one without history, as irspack documents."""
    from irspack import IALSRecommender

    model = IALSRecommender(
        Y.astype(np.float32),
        user_features=with_constant(X),
        random_seed=0,
        n_threads=threads,
        **settings,
    ).learn()
    basis = np.ascontiguousarray(model.get_item_embedding().T)

    def scores(rows: sp.csr_matrix) -> np.ndarray:
        return model.compute_user_embedding_from_features(with_constant(rows)) @ basis

    return lambda X: in_blocks(scores, X)


def lightfm(
    X: sp.csr_matrix, Y: sp.csr_matrix, threads: int, epochs: int, **settings: Any
) -> Predict:
    """A new row is known by its features alone, so a training row has no embedding of its own."""
    from lightfm import LightFM

    model = LightFM(random_state=0, **settings)
    model.fit(
        Y.astype(np.float32).tocoo(),
        user_features=with_constant(X),
        epochs=epochs,
        num_threads=threads,
    )
    bias, items = model.get_item_representations()

    def scores(rows: sp.csr_matrix) -> np.ndarray:
        return model.get_user_representations(with_constant(rows))[1] @ items.T + bias

    return lambda X: in_blocks(scores, X)


PEERS: dict[str, Callable[..., Predict]] = {
    "scikit-learn Ridge": sklearn_ridge,
    "scikit-learn OneVsRest": sklearn_one_vs_rest,
    "napkinXC": napkinxc,
    "PECOS": pecos,
    "Omikuji": omikuji,
    "irspack": irspack,
    "LightFM": lightfm,
}


def with_constant(X: sp.csr_matrix) -> sp.csr_matrix:
    """X and a column of ones, for a peer that has no intercept."""
    return sp.hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr", dtype=X.dtype)


def labelled(X: sp.csr_matrix, Y: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The rows that have a label: label trees cannot take the others."""
    some = np.flatnonzero(np.diff(Y.indptr))
    return X[some], Y[some]


def in_blocks(scores: Callable[[sp.csr_matrix], np.ndarray], X: sp.csr_matrix) -> np.ndarray:
    """The K best labels of each row, best first, from scores of a block of rows at a time."""
    blocks = (scores(X[start : start + ROWS]) for start in range(0, X.shape[0], ROWS))
    return np.concatenate([np.empty((0, K), np.int64), *map(best, blocks)])


def best(scores: np.ndarray) -> np.ndarray:
    """The columns of the K largest entries of each row, best first; -1 where there are fewer."""
    k = min(K, scores.shape[1])
    columns = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1)
    return np.pad(
        np.take_along_axis(columns, order, axis=1), ((0, 0), (0, K - k)), constant_values=-1
    )


def stored(X: sp.csr_matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The columns and values of each row: a hundred times as fast as rows of a sparse matrix."""
    for start, stop in pairwise(X.indptr):
        yield X.indices[start:stop], X.data[start:stop]


def padded(rows: Iterable[Any]) -> np.ndarray:
    """Lists of at most K labels as an array, -1 where there are fewer."""
    return np.array([[*row, *[-1] * K][:K] for row in rows], np.int64).reshape(-1, K)


def precision_at_3(Y: sp.csr_matrix, top: np.ndarray) -> float:
    rows, labels = np.arange(len(top)).repeat(3), top[:, :3].ravel()
    listed = labels >= 0  # for -1 would be read as the last label
    return float(Y[rows[listed], labels[listed]].sum() / len(rows))


def peak_gib() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage outlives exec, and so begins at the size of the parent
        kib = int(status.read_text().partition("VmHWM:")[2].split()[0])
    else:
        import resource

        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # bytes, as macOS counts
    return kib / 2**20


def tune(
    fit: Callable[..., Predict],
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    fitted: np.ndarray,
    held: np.ndarray,
    grid: list[dict[str, Any]],
    limit: float,
) -> list[float]:
    """P@3 on the held rows of each setting; none is begun once half the limit is spent."""
    start = time.perf_counter()
    found: list[float] = []
    for settings in grid:
        if found and time.perf_counter() - start > limit / 2:
            break
        predict = fit(X[fitted], Y[fitted], **settings)
        found.append(precision_at_3(Y[held], predict(X[held])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    folder, fit = options.folder, partial(PEERS[options.peer], threads=options.threads)
    X, Y, X_test = (sp.csr_matrix(sp.load_npz(folder / f"{n}.npz")) for n in ("X", "Y", "X_test"))
    fitted, held = (np.load(folder / f"{n}.npy", allow_pickle=False) for n in ("fit", "held"))
    grid = json.loads((folder / "grid.json").read_text())

    times = [time.perf_counter()]
    tried = tune(fit, X, Y, fitted, held, grid, options.limit)
    times.append(time.perf_counter())
    settings = grid[int(np.argmax(tried))]
    predict = fit(X, Y, **settings)
    times.append(time.perf_counter())
    np.save(folder / "top.npy", predict(X_test))
    times.append(time.perf_counter())
    figures = {
        "settings": settings,
        "tried": [round(100 * p, 2) for p in tried],
        **dict(zip(("tuning s", "fit s", "predict s"), np.diff(times).round(2).tolist())),
        "peak GiB": round(peak_gib(), 2),
    }
    (folder / "figures.json").write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
