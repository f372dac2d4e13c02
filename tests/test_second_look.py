"""A second look: each label's logistic regression, what it learns from, and the new scores."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from tacit.labels import TopK
from tacit.logistic import regressions
from tacit.second_look import SecondLook, Shortlists


def shortlists(n=80, d=6, n_labels=5, m=3, seed=0):
    """Rows, three labels of five for each, and what was said; label 4 is never on a shortlist."""
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7))
    indices = np.array([rng.permutation(n_labels - 1)[:m] for _ in range(n)])
    scores = -np.sort(-rng.random((n, m)), axis=1)
    said = rng.random((n, m)) < 0.5
    heard = said.any(axis=1) | (rng.random(n) < 0.5)
    return Shortlists(X, TopK(indices, scores), said, heard)


def test_each_label_has_scikit_learns_regression_of_the_rows_that_shortlist_it():
    rows = shortlists()
    look = SecondLook.fit(rows, 5, C=2.0)
    got = look.logits(rows.X, rows.top)
    heard = rows.heard
    assert 0 < (heard & ~rows.said.any(axis=1)).sum() < (~rows.said.any(axis=1)).sum()
    for label in range(4):
        row, place = np.nonzero(rows.top.indices == label)
        s = np.log(rows.top.scores[row, place])[:, None]
        design, y = np.hstack([rows.X.toarray()[row], s]), rows.said[row, place]
        model = LogisticRegression(C=2.0, solver="liblinear", intercept_scaling=3.0, tol=1e-2)
        model.fit(design[heard[row]], y[heard[row]])
        assert_allclose(got[row, place], model.decision_function(design), atol=0.05)
    assert_array_equal(look.trust[:, 4], look.pooled)


def test_rows_that_say_nothing_and_labels_that_are_not_known_teach_nothing():
    rows = shortlists()
    nothing, something = np.full(80, False), np.full(80, True)
    silent = Shortlists(rows.X, rows.top, np.zeros_like(rows.said), nothing)
    nobody = TopK(np.full_like(rows.top.indices, -1), np.full_like(rows.top.scores, -np.inf))
    for more in (silent, Shortlists(rows.X, nobody, np.ones_like(rows.said), something)):
        a, b = SecondLook.fit(rows, 5, 1.0), SecondLook.fit(rows + more, 5, 1.0)
        assert_array_equal(a.weights.toarray(), b.weights.toarray())
        assert_array_equal(a.trust, b.trust)


def test_idf_is_taken_back_from_the_features_and_they_are_at_unit_length():
    rows, idf = shortlists(), np.linspace(1, 4, 6)
    plain = sp.csr_array(normalize(rows.X))
    weighted = sp.csr_array(normalize(rows.X.multiply(idf)))
    wanted = SecondLook.fit(replace(rows, X=plain), 5, 2.0)
    got = SecondLook.fit(replace(rows, X=weighted), 5, 2.0, idf)
    assert_allclose(got.weights.toarray(), wanted.weights.toarray(), atol=1e-8)
    assert_allclose(got.logits(weighted, rows.top), wanted.logits(plain, rows.top), atol=1e-8)


def test_some_rows_after_the_other_are_all_rows():
    rows = shortlists()
    cuts = [slice(0, 5), slice(5, 5), slice(5, 80)]
    of = lambda c: Shortlists(
        rows.X[c], TopK(rows.top.indices[c], rows.top.scores[c]), rows.said[c], rows.heard[c]
    )
    again = Shortlists.of([of(c) for c in cuts])
    assert_array_equal(again.X.toarray(), rows.X.toarray())
    for got, wanted in zip(again.top, rows.top):
        assert_array_equal(got, wanted)
    assert_array_equal(again.said, rows.said)
    assert_array_equal(again.heard, rows.heard)


@pytest.mark.parametrize("yes", [True, False])
def test_a_label_always_or_never_said_on_shortlists_is_likely_or_unlikely(yes):
    rows = shortlists()
    said = np.where(rows.top.indices == 0, yes, rows.said)
    said[~said.any(axis=1), 0] |= rows.top.indices[~said.any(axis=1), 0] != 0
    look = SecondLook.fit(replace(rows, said=said), 5, 1.0)
    row, place = np.nonzero(rows.top.indices == 0)
    logit = look.logits(rows.X, rows.top)[row, place]
    assert (logit > 0).mean() > 0.8 if yes else (logit < 0).mean() > 0.8


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_new_scores_are_on_one_scale_and_keep_the_order_beyond_the_shortlist(share):
    rows = shortlists()
    rng = np.random.default_rng(1)
    first = rng.uniform(-0.2, 0.8, (80, 5))  # some below the least score that has a logarithm
    order = np.argsort(-first, axis=1)
    top = TopK(order, np.take_along_axis(first, order, axis=1))
    look = replace(SecondLook.fit(rows, 5, 1.0), share=share)
    ranked = look.ranked(rows.X, top, 3)
    short = TopK(top.indices[:, :3], top.scores[:, :3])
    scores = look.rescored(rows.X, first, short)
    assert_allclose(np.take_along_axis(scores, ranked.indices, axis=1), ranked.scores)
    assert (np.diff(ranked.scores, axis=1) <= 0).all()
    beyond = np.take_along_axis(scores, top.indices[:, 3:], axis=1)
    assert (np.diff(beyond, axis=1) < 0).all()
    # Whatever the row, the same first score beyond its shortlist is the same new one.
    s = top.scores[:, 3:].ravel()
    logs = np.where(s > 1e-3, np.log(np.maximum(s, 1e-3)), np.log(1e-3) + (s - 1e-3) / 1e-3)
    a, b = look.pooled
    assert_allclose(beyond.ravel(), share * (a * logs + b) + (1 - share) * logs)
    if share == 0:
        assert_array_equal(ranked.indices, top.indices)


def test_beyond_shortlists_counts_the_regression_of_all_labels_on_the_first_score_alone():
    rows = shortlists()
    top = TopK(rows.top.indices.copy(), rows.top.scores)
    top.indices[:7, 2] = -1  # none
    look = SecondLook.fit(replace(rows, top=top), 5, 2.0)
    row, place = np.nonzero((top.indices >= 0) & rows.heard[:, None])
    model = LogisticRegression(C=1.0, solver="liblinear", intercept_scaling=3.0, tol=1e-6)
    s = np.log(top.scores[row, place])[:, None]
    model.fit(s, rows.said[row, place])
    assert_allclose(look.pooled, [max(model.coef_[0, 0], 0.01), model.intercept_[0]], atol=0.02)


def test_a_row_with_fewer_labels_than_asked_for_ends_in_none():
    rows = shortlists()
    top = TopK(np.array([[2, 0, -1, -1]]), np.array([[0.5, 0.2, -np.inf, -np.inf]]))
    ranked = SecondLook.fit(rows, 5, 1.0).ranked(rows.X[[0]], top, 3)
    assert sorted(ranked.indices[0, :2]) == [0, 2]
    assert_array_equal(ranked.indices[0, 2:], [-1, -1])
    assert_array_equal(ranked.scores[0, 2:], [-np.inf, -np.inf])


def test_what_was_said_follows_the_labels_into_their_new_order():
    rows = shortlists()
    look = SecondLook.fit(rows, 5, 10.0)
    shares = (1.0, 0.3, 0.0)
    for share, said in zip(shares, rows.reordered(look, shares), strict=True):
        ranked = replace(look, share=share).ranked(rows.X, rows.top, 3).indices
        for i in range(80):
            known = dict(zip(rows.top.indices[i], rows.said[i]))
            assert_array_equal(said[i], [known[label] for label in ranked[i]])


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_each_regression_is_at_its_minimum_as_scikit_learn_finds_it(C):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4))
    row, start = np.concatenate([np.arange(40), np.arange(20, 60)]), np.array([0, 40, 80])
    extra, yes = rng.standard_normal(80), rng.random(80) < 0.3
    features, weights, pointer, trust = regressions(
        X.indptr, X.indices, X.data, extra, row, start, yes, C, 3.0, 1e-6, 0.0, 9
    )
    found = sp.csr_array((weights, features, pointer), shape=(2, 9)).toarray()
    for label in range(2):
        mine = slice(start[label], start[label + 1])
        design = np.hstack([X.toarray()[row[mine]], extra[mine, None], np.full((40, 1), 3.0)])
        exact = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=1000)
        *z, a, b = exact.fit(design, yes[mine]).coef_[0]
        assert_allclose(found[label], z, atol=1e-4)
        assert_allclose(trust[:, label], [a, 3 * b], atol=1e-4)


def test_rare_answers_are_learned_as_exactly_as_frequent_ones():
    """Few yeses move the gradient little, and a tolerance that forgets it stops at once."""
    rng = np.random.default_rng(0)
    n = 2000
    X = sp.csr_array(rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5))
    yes, extra = np.arange(n) % 400 == 0, rng.standard_normal(n)
    X = sp.csr_array(X + sp.csr_array(yes[:, None] * np.eye(6)[[2]]))
    features, weights, _, trust = regressions(
        X.indptr, X.indices, X.data, extra, np.arange(n), np.array([0, n]), yes,
        3.0, 3.0, 1e-2, 0.0, 6,
    )  # fmt: skip
    found = np.zeros(6)
    found[features] = weights
    design = np.hstack([X.toarray(), extra[:, None], np.full((n, 1), 3.0)])
    exact = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    *z, a, b = exact.fit(design, yes).coef_[0]
    assert_allclose([*found, *trust[:, 0]], [*z, a, 3 * b], atol=0.05)
