"""Each feature by itself: the sparse weights against their formula, entry by entry."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tacit import Labels, Tacit
from tacit.methods.tacit.by_feature import Tally


def problem(seed=0, n=30, d=8, n_labels=6):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.3)
    Y = (rng.random((n, n_labels)) < 0.2).astype(int)
    Y[:, -1] = 0  # a label that nobody said
    return X, Y


def tally(X, Y):
    model = Tacit()
    return model._problem(*model._rows(sp.csr_array(X), Labels.positive_only(Y))).blocks.sum(
        Tally.of
    )


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_weights_are_the_formula_and_0_where_feature_and_label_never_met(power):
    X, Y = problem()
    W = tally(X, Y).weights(2.0, power, np.float64)
    n_l = Y.sum(axis=0)
    for j in range(8):
        for label in range(6):
            both = sum(X[i, j] * Y[i, label] for i in range(30))
            rarity = (max(n_l[label], 1) / n_l.mean()) ** -power
            wanted = both / (sum(X[i, j] ** 2 for i in range(30)) + 2.0) * rarity
            assert_allclose(W[j, label], wanted)
    assert W.shape == (9, 6)
    assert W[[8]].nnz == 0  # the constant feature
    assert W.nnz == np.count_nonzero(X.T @ Y)


def test_tallies_of_some_rows_add_up_to_that_of_all():
    X, Y = problem()
    whole, parts = tally(X, Y), tally(X[:11], Y[:11]) + tally(X[11:], Y[11:])
    assert_allclose(parts.xy.toarray(), whole.xy.toarray())
    assert_allclose(parts.xx, whole.xx)
    assert_array_equal(parts.y, whole.y)
