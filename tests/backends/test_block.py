"""Block: parts of its rows, against dense NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.backends.block import Placement, place
from tacit.blocks import Rows
from tacit.labels import Labels


def labels_of(kind, Y, observed):
    known = Y.multiply(observed)
    return {
        "complete": lambda: Labels.complete(Y),
        "masked": lambda: Labels.masked(known, observed),
        "reviewed": lambda: Labels.positive_only(known, no=observed.astype(int) - known),
    }[kind]()


@pytest.mark.parametrize("sparse", [True, False])
def test_some_rows_and_weighted_rows_are_those_of_the_dense_matrix(backend, toy, sparse):
    X, Y, _ = toy
    X = X if sparse else X.toarray()
    block = place(Rows(X, Labels.complete(Y)), Placement(backend, "float64", None, True))
    X = np.hstack([X.toarray() if sparse else X, np.ones((len(Y.indptr) - 1, 1))])
    V = np.random.default_rng(0).standard_normal((X.shape[1], 3))
    rows, weights = slice(3, 11), np.arange(len(X)) % 3
    part = block.some(rows)
    assert_allclose(backend.to_numpy(part.project(backend.asarray(V))), X[rows] @ V, atol=1e-12)
    assert_allclose(part.Y.scipy().toarray(), Y.toarray()[rows] != 0)
    heavy = block.weighted(backend.asarray(weights)).project(backend.asarray(V))
    assert_allclose(backend.to_numpy(heavy), weights[:, None] * X @ V, atol=1e-12)


@pytest.mark.parametrize("sparse", [True, False])
def test_what_stands_beside_the_features_is_weighted_and_multiplied_with_them(backend, toy, sparse):
    X, Y, _ = toy
    X = X if sparse else X.toarray()
    block = place(Rows(X, Labels.complete(Y)), Placement(backend, "float64", None, True))
    rng = np.random.default_rng(0)
    beside = rng.standard_normal((X.shape[0], 4))
    block = replace(block, more=(backend.asarray(beside), block.X))
    X = np.hstack([X.toarray() if sparse else X, np.ones((X.shape[0], 1))])
    Z, weights = np.hstack([X, beside, X]), rng.random(X.shape[0])
    got = block.cross(block.weighted(backend.asarray(weights)))
    assert_allclose(backend.to_numpy(got), Z.T @ (weights[:, None] * Z), atol=1e-12)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("kind", ["complete", "masked", "reviewed"])
def test_batches_hold_every_row_once_as_if_it_had_been_placed_alone(backend, toy, sparse, kind):
    X, Y, observed = toy
    X = X if sparse else X.toarray()
    labels = labels_of(kind, Y, observed)
    rows, placement = Rows(X, labels), Placement(backend, "float64", "l2", True)
    order = np.random.default_rng(3).permutation(len(rows))
    V = backend.asarray(np.random.default_rng(0).standard_normal((X.shape[1] + 1, 2)))
    batches = list(place(rows, placement).batches(7, np.random.default_rng(3)))
    assert sum(b.Y.shape[0] for b in batches) == len(rows)
    for start, b in zip(range(0, len(rows), 7), batches):
        alone = place(rows[order[start : start + 7]], placement)
        assert_allclose(backend.to_numpy(b.project(V)), backend.to_numpy(alone.project(V)))
        assert (b.Y.scipy() != alone.Y.scipy()).nnz == 0
        if kind == "masked":
            assert (b.omega.scipy() != alone.omega.scipy()).nnz == 0
            assert_allclose(backend.to_numpy(b.y), backend.to_numpy(alone.y))
        if kind == "reviewed":
            assert (b.noes.scipy() != alone.noes.scipy()).nnz == 0


@pytest.mark.parametrize("kind", ["masked", "reviewed"])
def test_what_was_said_is_the_yeses_and_the_noes(backend, toy, kind):
    X, Y, observed = toy
    labels = labels_of(kind, Y, observed)
    block = place(Rows(X, labels), Placement(backend, "float32", None, False))
    said, truth = block.said
    assert (said.scipy() != labels.said()).nnz == 0
    assert_allclose(backend.to_numpy(truth), Y.toarray()[labels.said().nonzero()])
    assert str(truth.dtype).endswith("float32")
