"""Fit one model and write the five best labels of each test row: a child of `low_rank.py`.

    python benchmarks/low_rank_worker.py FOLDER MODEL '{"reg": 1}'

FOLDER holds X.npz, Y.npz and X_test.npz, and receives top.npy and figures.json. Packages are
imported by the model that needs them, so that any Python with NumPy, SciPy and that one will do.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROWS = 2048  # test rows whose scores are laid out at a time

Predict = Callable[[sp.csr_matrix], np.ndarray]


def leml(X: sp.csr_matrix, Y: sp.csr_matrix, **settings) -> Predict:
    from tacit import LEML, Labels

    model = LEML(normalize=None, fit_intercept=False, random_state=0, **settings)
    model.fit(X, Labels.positive_only(Y))
    return lambda X: model.top_k(X, 5).indices


def closed_form(X: sp.csr_matrix, Y: sp.csr_matrix, reg: float) -> Predict:
    from tacit import LEML

    model = LEML(min(X.shape[1], Y.shape[1]), solver="closed_form", reg=reg)
    model.set_params(normalize=None, fit_intercept=False).fit(X, Y)
    return lambda X: model.top_k(X, 5).indices


def ridge(X: sp.csr_matrix, Y: sp.csr_matrix, **settings) -> Predict:
    from tacit.baselines import Ridge

    model = Ridge(normalize=None, fit_intercept=False, **settings).fit(X, Y)
    return lambda X: model.top_k(X, 5).indices


def sklearn_ridge(X: sp.csr_matrix, Y: sp.csr_matrix, reg: float) -> Predict:
    from sklearn.linear_model import Ridge

    # "cholesky" factorises XᵀX once for all labels; the iterative solvers go label by label.
    model = Ridge(alpha=reg, fit_intercept=False, solver="cholesky")
    model.fit(X, Y.toarray().astype(X.dtype))
    return lambda X: five_best(X, np.ascontiguousarray(model.coef_.T))


def irspack(X: sp.csr_matrix, Y: sp.csr_matrix, rank: int, **settings) -> Predict:
    """Feature-aware iALS; a new row is scored as one without history, as irspack documents."""
    from irspack import IALSRecommender

    model = IALSRecommender(
        Y.astype(np.float32), n_components=rank, user_features=X, random_seed=0, **settings
    ).learn()
    item = np.ascontiguousarray(model.get_item_embedding().T)
    return lambda X: five_best(model.compute_user_embedding_from_features(X), item)


def five_best(codes, basis: np.ndarray) -> np.ndarray:
    """The columns of the five largest entries in each row of codes @ basis, best first."""
    best = []
    for start in range(0, codes.shape[0], ROWS):
        scores = codes[start : start + ROWS] @ basis
        five = np.argpartition(scores, -5, axis=1)[:, -5:]
        order = np.argsort(-np.take_along_axis(scores, five, axis=1), axis=1)
        best.append(np.take_along_axis(five, order, axis=1))
    return np.concatenate(best)


def peak_gib() -> float:
    # Not getrusage: its ru_maxrss outlives exec, and so begins at the size of the parent.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


def main() -> None:
    folder, name, settings = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    X, Y, X_test = (sp.csr_matrix(sp.load_npz(folder / f"{n}.npz")) for n in ("X", "Y", "X_test"))
    package, fit = MODELS[name]
    import_module(package)  # here, so that the time it takes is not the fit's
    start = time.perf_counter()
    predict = fit(X, Y, **settings)
    fitted = time.perf_counter()
    np.save(folder / "top.npy", predict(X_test))
    figures = {
        "fit s": fitted - start,
        "predict s": time.perf_counter() - fitted,
        "peak GiB": peak_gib(),
    }
    (folder / "figures.json").write_text(json.dumps(figures))


MODELS: dict[str, tuple[str, Callable[..., Predict]]] = {
    "LEML": ("tacit", leml),
    "LEML, closed form": ("tacit", closed_form),
    "Ridge": ("tacit.baselines", ridge),
    "scikit-learn Ridge": ("sklearn.linear_model", sklearn_ridge),
    "irspack iALS": ("irspack", irspack),
}

if __name__ == "__main__":
    main()
