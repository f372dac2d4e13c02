"""A second look: each label's logistic regression, what it learns from, and the new scores."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from tacit.engines.logistic import regressions
from tacit.labels import TopK
from tacit.methods.tacit.second_look import SecondLook
from tacit.methods.tacit.shortlists import OffListEntries, Shortlists


def shortlists(n=80, d=6, n_labels=5, m=3, seed=0):
    """Rows, three labels of five for each, and what was said; label 4 is never on a shortlist."""
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7))
    indices = np.array([rng.permutation(n_labels - 1)[:m] for _ in range(n)])
    scores = -np.sort(-rng.random((n, m)), axis=1)
    said = rng.random((n, m)) < 0.5
    says_something = said.any(axis=1) | (rng.random(n) < 0.5)
    return Shortlists(X, TopK(indices, scores), said, says_something, OffListEntries.none())


def regression(design, before, yes, C):
    """The weights of least ½‖w‖² + C Σ log-loss of `before` + design w, a constant as the last."""
    A, sign = np.hstack([design, np.ones((len(design), 1))]), np.where(yes, -1.0, 1.0)
    loss = lambda w: 0.5 * w @ w + C * np.logaddexp(0, sign * (before + A @ w)).sum()
    return minimize(loss, np.zeros(A.shape[1]), options={"gtol": 1e-6}).x


def test_each_label_has_a_regression_of_the_rows_that_shortlist_it_around_that_of_all_labels():
    rows = shortlists()
    look = SecondLook.fit(rows, 5, C=2.0)
    got = look.logits(rows.X, rows.top)
    says_something = rows.says_something
    assert 0 < (says_something & ~rows.said.any(axis=1)).sum() < (~rows.said.any(axis=1)).sum()
    for label in range(4):
        row, place = np.nonzero(rows.top.indices == label)
        s = np.log(rows.top.scores[row, place])[:, None]
        design, y = np.hstack([rows.X.toarray()[row], s]), rows.said[row, place]
        before, some = s[:, 0] * look.pooled[0] + look.pooled[1], says_something[row]
        *w, b = regression(design[some], before[some], y[some], C=2.0)
        assert_allclose(got[row, place], before + design @ w + b, atol=0.05)
    assert_array_equal(look.trust[:, 4], look.pooled)


def test_rows_that_say_nothing_and_labels_that_are_not_known_teach_nothing():
    rows = shortlists()
    nothing, something = np.full(80, False), np.full(80, True)
    silent = replace(rows, said=np.zeros_like(rows.said), says_something=nothing)
    nobody = TopK(np.full_like(rows.top.indices, -1), np.full_like(rows.top.scores, -np.inf))
    unknown = replace(rows, top=nobody, said=np.ones_like(rows.said), says_something=something)
    for more in (silent, unknown):
        a, b = SecondLook.fit(rows, 5, 1.0), SecondLook.fit(Shortlists.of([rows, more]), 5, 1.0)
        assert_array_equal(a.weights.toarray(), b.weights.toarray())
        assert_array_equal(a.trust, b.trust)


def test_a_label_of_which_nothing_is_known_is_like_all_others():
    rows = shortlists()
    few = replace(rows, says_something=rows.says_something & ~(rows.top.indices == 0).any(axis=1))
    look = SecondLook.fit(few, 5, 1.0)
    assert_array_equal(look.trust[:, 0], look.pooled)
    # And the less counts what is known of the others, the more they are.
    for C, alike in ((1e-6, True), (1.0, False)):
        look = SecondLook.fit(rows, 5, C)
        assert (np.abs(look.trust - look.pooled[:, None]).max() < 1e-3) == alike


def test_beyond_the_shortlist_all_that_was_said_counts_and_draws_stand_for_the_others():
    rng = np.random.default_rng(0)
    n, n_labels = 4000, 12
    scores, said = rng.random((n, n_labels)), rng.random((n, n_labels)) < 0.2
    scores[:, 11] = -np.inf  # not known
    listed = np.argsort(-scores, axis=1)[:, :3]
    listed[0] = [2, -1, -1]
    got = OffListEntries.drawn(lambda *at: scores[at], sp.csr_array(said), listed, q=5, seed=0)
    off = np.isfinite(scores)
    for row, labels in enumerate(listed):
        off[row, labels[labels >= 0]] = False
    assert off[got.row, got.label].all()
    assert_array_equal(got.score, scores[got.row, got.label])
    assert_array_equal(got.said, said[got.row, got.label])
    assert got.said.sum() == (off & said).sum()
    assert (got.weight[got.said] == 1).all()
    # A sum over the draws is, on average, that over all entries that were not said.
    total = (got.weight * got.score)[~got.said].sum()
    assert_allclose(total, np.where(off & ~said, scores, 0).sum(), rtol=0.03)


def test_an_entry_beyond_the_shortlist_teaches_as_so_many_on_it():
    rows = shortlists()
    few = replace(rows, says_something=np.full(80, True))
    row, label = np.nonzero(~(rows.top.indices[:, :, None] == np.arange(4)).any(axis=1))
    score, said = np.full(len(row), 0.3), np.arange(len(row)) % 3 == 0
    beyond = OffListEntries(row, label, score, said, np.where(said, 1.0, 2.0))
    look = SecondLook.fit(replace(few, beyond=beyond), 5, 2.0)
    assert_array_equal(look.pooled, SecondLook.fit(few, 5, 2.0).pooled)
    # Nor does it matter which rows stand before it.
    silent = replace(few, says_something=np.full(80, False), beyond=beyond)
    again = SecondLook.fit(Shortlists.of([silent, replace(few, beyond=beyond)]), 5, 2.0)
    assert_array_equal(again.weights.toarray(), look.weights.toarray())
    for each in range(4):
        r, place = np.nonzero(rows.top.indices == each)
        own = label == each
        once, twice = own & said, own & ~said
        X = rows.X.toarray()
        design = np.vstack([X[r], X[row[once]], X[row[twice]], X[row[twice]]])
        s = np.log(np.concatenate([rows.top.scores[r, place], np.full(len(design) - len(r), 0.3)]))
        y = np.concatenate([rows.said[r, place], np.full(once.sum(), True),
                            np.full(2 * twice.sum(), False)])  # fmt: skip
        before = look.pooled[0] * s + look.pooled[1]
        *z, a, b = regression(np.column_stack([design, s]), before, y, C=2.0)
        assert_allclose(look.weights.toarray()[each], z, atol=0.05)
        assert_allclose(look.trust[:, each] - look.pooled, [a, b], atol=0.05)


def test_some_rows_after_the_other_are_all_rows():
    rows = shortlists()
    cuts = [slice(0, 5), slice(5, 5), slice(5, 80)]
    more = OffListEntries(
        np.array([1, 40, 79]), *np.zeros((2, 3), int), np.ones(3, bool), np.ones(3)
    )
    own = lambda c: (more.row >= c.start) & (more.row < c.stop)
    of = lambda c: Shortlists(
        rows.X[c], TopK(rows.top.indices[c], rows.top.scores[c]), rows.said[c],
        rows.says_something[c],
        OffListEntries(more.row[own(c)] - c.start, *(a[own(c)] for a in more[1:])),
    )  # fmt: skip
    again = Shortlists.of([of(c) for c in cuts])
    assert_array_equal(again.X.toarray(), rows.X.toarray())
    for got, wanted in zip(again.top, rows.top):
        assert_array_equal(got, wanted)
    assert_array_equal(again.said, rows.said)
    assert_array_equal(again.says_something, rows.says_something)
    assert_array_equal(again.beyond.row, more.row)


@pytest.mark.parametrize("yes", [True, False])
def test_a_label_always_or_never_said_on_shortlists_is_likely_or_unlikely(yes):
    rows = shortlists()
    said = np.where(rows.top.indices == 0, yes, rows.said)
    said[~said.any(axis=1), 0] |= rows.top.indices[~said.any(axis=1), 0] != 0
    look = SecondLook.fit(replace(rows, said=said), 5, 1.0)
    row, place = np.nonzero(rows.top.indices == 0)
    logit = look.logits(rows.X, rows.top)[row, place]
    assert (logit > 0).mean() > 0.8 if yes else (logit < 0).mean() > 0.8


def test_beyond_shortlists_counts_the_regression_of_all_labels_on_the_first_score_alone():
    rows = shortlists()
    top = TopK(rows.top.indices.copy(), rows.top.scores)
    top.indices[:7, 2] = -1  # none
    look = SecondLook.fit(replace(rows, top=top), 5, 2.0)
    row, place = np.nonzero((top.indices >= 0) & rows.says_something[:, None])
    s = np.log(top.scores[row, place])[:, None]
    a, b = regression(s, 0.0, rows.said[row, place], C=1.0)
    assert_allclose(look.pooled, [max(a, 0.01), b], atol=0.02)


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_each_regression_is_at_its_minimum_as_scipy_finds_it(C):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4))
    row, start = np.concatenate([np.arange(40), np.arange(20, 60)]), np.array([0, 40, 80])
    extra, before, yes = *rng.standard_normal((2, 80)), rng.random(80) < 0.3
    features, weights, pointer, trust = regressions(
        X.indptr, X.indices, X.data, extra, before, np.ones(80), row, start, yes, C, 1e-6, 0.0, 9
    )
    found = sp.csr_array((weights, features, pointer), shape=(2, 9)).toarray()
    for label in range(2):
        mine = slice(start[label], start[label + 1])
        design = np.hstack([X.toarray()[row[mine]], extra[mine, None]])
        *z, a, b = regression(design, before[mine], yes[mine], C)
        assert_allclose(found[label], z, atol=1e-4)
        assert_allclose(trust[:, label], [a, b], atol=1e-4)


def test_rare_answers_are_learned_as_exactly_as_frequent_ones():
    """Few yeses move the gradient little, and a tolerance that forgets it stops at once."""
    rng = np.random.default_rng(0)
    n = 2000
    X = sp.csr_array(rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5))
    yes, extra = np.arange(n) % 400 == 0, rng.standard_normal(n)
    X = sp.csr_array(X + sp.csr_array(yes[:, None] * np.eye(6)[[2]]))
    features, weights, _, trust = regressions(
        X.indptr, X.indices, X.data, extra, np.zeros(n), np.ones(n), np.arange(n),
        np.array([0, n]), yes, 3.0, 1e-2, 0.0, 6,
    )  # fmt: skip
    found = np.zeros(6)
    found[features] = weights
    exact = regression(np.hstack([X.toarray(), extra[:, None]]), 0.0, yes, C=3.0)
    assert_allclose([*found, *trust[:, 0]], exact, atol=0.05)
