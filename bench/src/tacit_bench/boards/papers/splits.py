"""How the papers choose rows to learn from and to score, and what they hide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler, normalize

from tacit.datasets import Dataset
from tacit.labels import Labels
from tacit.missing import Positives, UniformEntries, hide
from tacit_bench.board import Cell
from tacit_bench.work import loaded

__all__ = [
    "Split",
    "Splitter",
    "as_given",
    "entries_observed",
    "first_rows",
    "hidden_positives",
    "labelled",
    "planted_exposures",
    "some_in_folds",
    "standardised",
]


class Split(NamedTuple):
    """Rows to learn from and rows to score; `seed` tells trials of one cell apart."""

    X: Any
    Y: Labels
    X_test: Any
    Y_test: Labels
    seed: int = 0


Splitter = Callable[[Cell], Iterator[Split]]
"""From a cell to its trials: one, or one a fold or seed."""

ROWS = 5_000  # that FaIE takes of larger data sets
MU = (0.01, 0.05, 0.1, 0.3, 0.5, 0.9)  # GenEML's exposures
FIRST_SEED = 200  # settings were chosen on two others


def as_given(cell: Cell) -> Iterator[Split]:
    """The split that the data set comes with."""
    data: Any = loaded(cell["data"])
    yield Split(data.X, data.Y, data.X_test, data.Y_test)


def entries_observed(cell: Cell) -> Iterator[Split]:
    """As given, with the cell's share of the training entries observed, yes or no."""
    for split in as_given(cell):
        left = hide(split.Y, UniformEntries(cell["observed_fraction"]), random_state=0)
        yield split._replace(Y=left.labels)


def first_rows(cell: Cell) -> Iterator[Split]:
    """As given, with the first so many of the training rows in random order."""
    for split in as_given(cell):
        some = np.random.default_rng(0).permutation(len(split.Y))[: cell["n_train"]]
        yield split._replace(X=split.X[some], Y=split.Y[some])


def labelled(splitter: Splitter) -> Splitter:
    """Without the test rows that have no label, of which no prediction can be right."""

    def part(cell: Cell) -> Iterator[Split]:
        for split in splitter(cell):
            some = np.diff(split.Y_test.positives.indptr) > 0
            yield split._replace(X_test=split.X_test[some], Y_test=split.Y_test[some])

    return part


def standardised(splitter: Splitter) -> Splitter:
    """Dense features with mean 0 and variance 1 over the training rows; sparse as they are."""

    def scaled(cell: Cell) -> Iterator[Split]:
        for split in splitter(cell):
            if not sp.issparse(split.X):
                scaler = StandardScaler().fit(split.X)
                X, X_test = scaler.transform(split.X), scaler.transform(split.X_test)
                split = split._replace(X=X, X_test=X_test)
            yield split

    return scaled


def some_in_folds(cell: Cell) -> Iterator[Split]:
    """Five folds of 5,000 random rows of all, or of all where there are fewer; dense."""
    X, Y = _all_rows(loaded(cell["data"]))
    some = np.random.default_rng(0).permutation(len(Y))[:ROWS]
    X = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    yield from _folds(5, X[some], Y[some])


def hidden_positives(cell: Cell) -> Iterator[Split]:
    """Ten folds of all rows, each training positive removed with the probability `rate`."""
    data: Any = loaded(cell["data"])
    for split in _folds(10, *_all_rows(data, _matched(data))):
        left = hide(split.Y, Positives(cell["rate"]), random_state=split.seed)
        yield split._replace(Y=left.labels)


def planted_exposures(cell: Cell) -> Iterator[Split]:
    """Ten draws of low-rank data of which label l is said with probability μ_l.

    X ~ N(0, 9/D), ψ = 6 X W Vᵀ / √K less its 80 % quantile, W and V standard normal,
    y ~ Bernoulli(σ(ψ)); D = 100, K = 10, 20 labels, n (500) rows to learn from and n to score.
    """
    n, n_features, n_labels, rank = int(cell.get("n", 500)), 100, 20, 10
    for seed in range(FIRST_SEED, FIRST_SEED + 10):
        rng = np.random.default_rng(seed)
        X = 3 / np.sqrt(n_features) * rng.standard_normal((2 * n, n_features))
        W, V = rng.standard_normal((n_features, rank)), rng.standard_normal((n_labels, rank))
        psi = 6 * X @ W @ V.T / np.sqrt(rank)
        psi -= np.quantile(psi, 0.8)
        Y = rng.random(psi.shape) < 1 / (1 + np.exp(-psi))
        exposure = rng.choice(MU, n_labels)
        said = Y[:n] & (rng.random((n, n_labels)) < exposure)
        yield Split(X[:n], Labels.positive_only(said), X[n:], Labels.complete(Y[n:]), seed)


def _all_rows(data: Dataset, matched: np.ndarray | None = None) -> tuple[Any, Labels]:
    """Training and test rows together, the latter's labels in the order `matched`."""
    if data.X_test is None or data.Y_test is None:
        return data.X, data.Y
    stack = sp.vstack if sp.issparse(data.X) else np.vstack
    second = data.Y_test.positives
    second = second if matched is None else sp.csr_array(second.tocsc()[:, matched])
    both = sp.vstack([data.Y.positives, second], format="csr")
    return stack([data.X, data.X_test]), Labels.complete(both)


def _matched(data: Any) -> np.ndarray:
    """For each label of the training rows the one of the test rows with the most similar words.

    The two parts of RCV1's subsets number their labels differently.
    """
    X, X_2, Y, Y_2 = data.X, data.X_test, data.Y.positives, data.Y_test.positives
    counts = np.diff(sp.csc_array(sp.vstack([X, X_2])).indptr)
    idf = -np.log((1 + counts) / (len(Y.indptr) * 2))
    words = lambda X, Y: normalize(Y.T.astype(float) @ normalize(X).multiply(idf)).toarray()
    return linear_sum_assignment(-words(X, Y) @ words(X_2, Y_2).T)[1]


def _folds(n: int, X: Any, Y: Labels) -> Iterator[Split]:
    X = sp.csr_array(X) if sp.issparse(X) else X
    for seed, (train, test) in enumerate(KFold(n, shuffle=True, random_state=0).split(X)):
        yield Split(X[train], Y[train], X[test], Y[test], seed)
