"""First models of masked labels that know the rows of their fit again."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from tacit import Labels, Tacit
from tacit.backends.block import Block
from tacit.blocks import MemoryBlocks, Rows
from tacit.methods.tacit.deal import SomeRows
from tacit.methods.tacit.first import known_rows
from tacit.methods.tacit.first.known_rows import with_known_rows
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.models import LowRank
from tacit.models.known_rows import KnownRows, beside

FORMS = [np.asarray, sp.csr_array]
NETWORK = FirstNetwork(rank=8, passes=3, batch_size=16)


def data(n=60, d=5, n_labels=4, seed=0):
    """Rows of which the last ten are like the first, one is of noughts and one says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, 0] = rng.random(n)
    X[-10:], X[10] = X[:10], 0
    known = rng.random((n, n_labels)) < 0.6
    known[:, 0], known[11] = True, False
    return X, Labels.masked(known & (rng.random(known.shape) < 0.4), known)


def rows_of(X, labels, n_blocks=1, device="cpu"):
    model = Tacit(random_state=0, device=device)
    blocks = MemoryBlocks.from_rows(Rows(X, labels), n_blocks)
    return SomeRows.of(model._problem(*model._rows(blocks, None)))


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_the_fit_has_a_code_of_its_own_and_any_other_that_of_its_features(form, device):
    X, labels = data()
    seen, told = rows_of(form(X), labels, 2, device), []

    def fit(rows):
        told.append(rows)
        W = np.random.default_rng(1).standard_normal((rows.n_features, 3))
        return LowRank(W, np.eye(4, 3), "logistic")

    model = with_known_rows(seen, fit)
    d, [rows] = X.shape[1] + 1, told
    assert rows.n_samples == 59  # all but the one that says nothing
    assert rows.n_features == d + 49  # of which ten are there twice
    W = np.random.default_rng(1).standard_normal((d + 49, 3))
    order = np.random.default_rng(2).permutation(60)
    new = np.vstack([X[order], X[:5] + 0.01])
    [block] = rows_of(form(new), labels[np.arange(65) % 60], device=device).blocks.parts
    codes = block.backend.to_numpy(model.codes(block)) - np.hstack([new, np.ones((65, 1))]) @ W[:d]
    assert_allclose(codes[60:], 0, atol=1e-9)
    own = dict(zip(order, codes[:60]))
    assert_allclose(own[11], 0, atol=1e-9)
    assert_allclose([own[i] for i in range(50, 60)], [own[i] for i in range(10)], atol=1e-9)
    theirs = np.array([own[i] for i in range(50) if i != 11])
    both = theirs[:, None] - known_rows._OWN * W[None, d:]
    assert_array_equal(np.sort(np.abs(both).max(axis=2).argmin(axis=1)), np.arange(49))
    assert np.abs(both).max(axis=2).min(axis=1).max() < 1e-9


def test_what_is_known_of_a_row_tells_of_its_other_cells():
    """Two kinds of rows, that no feature knows; an eighth of the cells is asked for."""
    rng = np.random.default_rng(0)
    X, kind = rng.standard_normal((300, 4)), rng.random((300, 1)) < 0.5
    true = (kind == (np.arange(24) % 2)) ^ (rng.random((300, 24)) < 0.1)
    asked = rng.random(true.shape) < 1 / 8
    model = Tacit(random_state=0).fit(X, Labels.masked(true & ~asked, ~asked))
    assert roc_auc_score(true[asked], model.decision_function(X)[asked]) > 0.85  # alone: 0.5
    other = rng.standard_normal((300, 4))  # of whom nothing is known
    assert abs(roc_auc_score(true[asked], model.decision_function(other)[asked]) - 0.5) < 0.1


@pytest.mark.parametrize("form", FORMS)
def test_a_network_learns_the_same_from_features_in_two_parts(form):
    X, labels = data()
    rows = rows_of(form(X), labels)
    [block] = rows.blocks.parts
    which = np.arange(60) % 7 - 1
    own = np.eye(7)[which] * (which >= 0)[:, None]
    both = replace(rows, blocks=MemoryBlocks((beside(block, which, 7),)), n_features=6 + 7)
    wide = np.hstack([X, np.ones((60, 1)), own])
    X = block.backend.sparse(sp.csr_array(wide)) if sp.issparse(form(X)) else wide
    one = Block(X, block.Y, block.omega, block.y, block.backend)
    wanted = NETWORK.fit(replace(rows, blocks=MemoryBlocks((one,)), n_features=6 + 7))
    found = NETWORK.fit(both)
    assert_allclose(found.W, wanted.W, atol=1e-9)
    assert_allclose(found.H, wanted.H, atol=1e-9)


def test_its_file_keeps_it_and_refuses_what_does_not_fit():
    X, labels = data()
    rows = rows_of(X, labels)
    [block] = rows.blocks.parts
    model = with_known_rows(rows, NETWORK.fit)
    numbers, arrays = model.numbers(), model.arrays()
    again = KnownRows.from_arrays(6, 4, numbers, arrays)
    assert_array_equal(again.scores(block), model.scores(block))
    marks = arrays["marks"]
    for wrong in (marks[1:], marks[:, 1:], marks + np.nan):
        with pytest.raises(ValueError, match=r"its (W|marks) "):
            KnownRows.from_arrays(6, 4, numbers, arrays | {"marks": wrong})
    with pytest.raises(ValueError, match="rows of 'Nobody'"):
        KnownRows.from_arrays(6, 4, numbers | {"kind": "Nobody"}, arrays)
