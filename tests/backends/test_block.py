"""Block: parts of its rows, against dense NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit.backends.block import Placement, place
from tacit.blocks import Rows
from tacit.labels import Labels


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
