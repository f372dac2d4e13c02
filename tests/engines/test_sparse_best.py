"""The best labels by sparse weights, against scores laid out."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tacit.engines.sparse_best import best, entries


def problem(seed=0, n=40, d=12, n_labels=25, dtype=np.float64):
    rng = np.random.default_rng(seed)
    draw = lambda *shape: sp.csr_array(
        (rng.random(shape) * (rng.random(shape) < 0.2)).astype(dtype)
    )
    skip = sp.csr_array(rng.random((n, n_labels)) < 0.2)
    return draw(n, d), draw(d, n_labels), skip, rng.permutation(n_labels)


@pytest.mark.parametrize("m", [1, 4, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_labels_are_those_of_scores_laid_out(m, dtype):
    X, W, skip, others = problem(dtype=dtype)
    S = np.where(skip.toarray(), -np.inf, (X @ W).toarray())
    found = best(X, W, m, others, skip)
    assert found.scores.dtype == dtype
    assert_allclose(found.scores, -np.sort(-S, axis=1)[:, :m], rtol=1e-6)
    there = found.indices >= 0
    assert_array_equal(there, np.isfinite(found.scores))
    rows = np.broadcast_to(np.arange(len(S))[:, None], there.shape)
    assert_allclose(S[rows[there], found.indices[there]], found.scores[there], rtol=1e-6)
    for labels in found.indices:
        assert len(set(labels[labels >= 0])) == (labels >= 0).sum()


def test_where_few_labels_have_a_score_the_others_follow_in_their_order():
    X, W, _, others = problem(d=3)
    found = best(X, W, 25, others, sp.csr_array((40, 25)))
    S = (X @ W).toarray()
    for scores, labels, row in zip(found.scores, found.indices, S):
        assert_array_equal(labels[scores == 0], [label for label in others if row[label] == 0])


def test_some_scores_are_those_laid_out():
    X, W, _, _ = problem()
    rng = np.random.default_rng(1)
    row, label = rng.integers(0, 40, 300), rng.integers(0, 25, 300)
    assert_allclose(entries(X, W, row, label), (X @ W).toarray()[row, label])
