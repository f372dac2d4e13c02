"""The first ridge: its formula, the scores of rows left out one by one, and the λ and p chosen."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import fractional_matrix_power
from sklearn.linear_model import Ridge
from sklearn.metrics import dcg_score

from tacit import Labels, Tacit
from tacit.blocks import MemoryBlocks, Rows
from tacit.methods.tacit import LIMITS
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first import normal
from tacit.methods.tacit.first.normal import Normal
from tacit.methods.tacit.first.ridge import LADDER, POWERS, START, FirstRidge, climbed

FORMS = [np.asarray, sp.csr_array]
NO_SPECTRUM = replace(LIMITS, spectrum_features=1)
NO_ROWS = replace(LIMITS, exact_rows=0)  # XᵀX even of more features than rows


def data(n=40, d=6, n_labels=8, seed=0):
    """Features of unequal spread, labels that follow them, and every fourth row silent."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.3, 1.5, d)
    Z = X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels))
    Y = (Z > 1).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    Y[::4] = 0
    return X, Y


def rows_of(X, Y, device="cpu", n_blocks=1):
    model = Tacit(device=device, random_state=0)
    blocks = MemoryBlocks.from_rows(Rows(X, Labels.positive_only(Y)), n_blocks)
    return SomeRows.of(model._problem(*model._rows(blocks, None)))


def with_constant(X):
    X = X.toarray() if sp.issparse(X) else X
    return np.hstack([X, np.ones((len(X), 1))]).astype(float)


def parts_of(X, Y, reg, power, weight):
    """XᵀVX, λP, XᵀY and the diagonal of V."""
    A, v = with_constant(X), np.where(Y.any(axis=1), 1.0, weight)
    G = A.T @ (v[:, None] * A)
    P = fractional_matrix_power(G / (np.trace(G) / len(G)), -power).real
    return G, reg * P, A.T @ Y, v


def by_formula(X, Y, reg, power, weight):
    """(1)."""
    G, P, B, _ = parts_of(X, Y, reg, power, weight)
    return np.linalg.solve(G + P, B)


def left_out(X, Y, reg, power, weight):
    """The scores of each row by (1) without what it adds to XᵀVX and XᵀY; P is that of all."""
    A, (G, P, B, v) = with_constant(X), parts_of(X, Y, reg, power, weight)
    refit = lambda x, y, w: np.linalg.solve(G - w * np.outer(x, x) + P, B - np.outer(x, y))
    return np.array([x @ refit(x, y, w) for x, y, w in zip(A, Y, v)])


def scores_of(unseen, rows):
    return np.vstack(rows.blocks.sum(listed, unseen))


def listed(b, unseen):
    return [b.backend.to_numpy(unseen.scores(b))]


@pairwise(form=FORMS, power=POWERS, weight=[0.2, 1.0], reg=[0.3, 30.0], n_blocks=[1, 3])
def test_the_weights_are_the_formula_with_the_datas_own_prior(form, power, weight, reg, n_blocks):
    X, Y = data()
    rows = rows_of(form(X), Y, n_blocks=n_blocks)
    model, _ = FirstRidge(reg, power, weight).fit(rows, LIMITS)
    assert_allclose(model.W, by_formula(X, Y, reg, power, weight), atol=1e-9)


@pytest.mark.parametrize("weight", [0.2, 1.0])
def test_without_power_it_is_scikit_learns_ridge_with_silent_rows_at_little_weight(weight):
    X, Y = data()
    model, _ = FirstRidge(2.0, 0.0, weight).fit(rows_of(X, Y), LIMITS)
    v = np.where(Y.any(axis=1), 1.0, weight)
    theirs = Ridge(alpha=2.0, fit_intercept=False).fit(with_constant(X), Y, sample_weight=v)
    assert_allclose(model.W, theirs.coef_.T, atol=1e-9)


@pairwise(form=FORMS, power=POWERS, weight=[0.2, 1.0], reg=[0.3, 30.0], n_blocks=[1, 3])
def test_rows_left_out_one_by_one_have_the_scores_of_as_many_refits(
    form, power, weight, reg, n_blocks
):
    X, Y = data()
    rows = rows_of(form(X), Y, n_blocks=n_blocks)
    _, [(fold, unseen)] = FirstRidge(reg, power, weight).fit(rows, LIMITS)
    assert fold is None  # all rows at once
    assert_allclose(scores_of(unseen, rows), left_out(X, Y, reg, power, weight), atol=1e-9)


def test_without_power_a_row_left_out_has_the_score_of_scikit_learns_ridge_of_the_others():
    X, Y = data()
    rows, A, v = rows_of(X, Y), with_constant(X), np.where(Y.any(axis=1), 1.0, 0.2)
    _, [(_, unseen)] = FirstRidge(2.0, 0.0, 0.2).fit(rows, LIMITS)
    got = scores_of(unseen, rows)
    for i in range(len(A)):
        some = np.arange(len(A)) != i
        theirs = Ridge(alpha=2.0, fit_intercept=False).fit(A[some], Y[some], sample_weight=v[some])
        assert_allclose(got[i], theirs.predict(A[i : i + 1])[0], atol=1e-9)


@pytest.mark.parametrize("power", POWERS)
def test_every_device_gives_the_same_weights_scores_and_choice(device, power):
    X, Y = data()
    X = sp.csr_array(X * (np.abs(X) > 0.4))
    rows, X = rows_of(X, Y, device), X.toarray()
    model, [(_, unseen)] = FirstRidge(1.0, power, 0.2).fit(rows, LIMITS)
    assert isinstance(model.W, np.ndarray)
    assert_allclose(model.W, by_formula(X, Y, 1.0, power, 0.2), atol=1e-8)
    assert_allclose(scores_of(unseen, rows), left_out(X, Y, 1.0, power, 0.2), atol=1e-8)
    same_choice(X, Y, device, LIMITS)


def test_pytorch_gives_the_same_choice_where_eigenvectors_take_too_long():
    pytest.importorskip("torch")
    same_choice(*data(), "torch", NO_SPECTRUM)


def same_choice(X, Y, device, limits):
    here, there = rows_of(X, Y), rows_of(X, Y, device)
    gain, best = FirstRidge.choose(there, there.blocks, 0.2, limits)
    wanted, same = FirstRidge.choose(here, here.blocks, 0.2, limits)
    assert_allclose(gain, wanted)
    assert best == same
    assert best.refined(there, there.blocks, limits) == same.refined(here, here.blocks, limits)


# More features than rows: by XXᵀ, in float32


def wide(n=30, d=70, n_labels=8):
    """Sparse rows, one of them without features and two of them the same."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.2)
    X[3], X[5] = 0, X[6]
    Y = (X @ rng.standard_normal((d, n_labels)) > 0.4).astype(int)
    Y[::4] = 0
    return X, Y


def in_the_span(X, Y, reg, power, weight):
    """(1) along the directions in which rows vary; in others P has no bound, and W nothing."""
    G, _, B, v = parts_of(X, Y, reg, 0.0, weight)
    _, s, Vt = np.linalg.svd(np.sqrt(v)[:, None] * with_constant(X), full_matrices=False)
    s, Vt = s[s > 1e-10], Vt[s > 1e-10]
    q = (s**2 / (np.trace(G) / len(G))) ** power
    return Vt.T @ ((q / (s**2 * q + reg))[:, None] * (Vt @ B))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("power", POWERS)
def test_more_features_than_rows_give_the_formula_too(form, power, device):
    X, Y = wide()
    rows = rows_of(form(X), Y, device, n_blocks=2)
    model, [(_, unseen)] = FirstRidge(0.5, power, 0.2).fit(rows, LIMITS)
    assert_allclose(model.W, in_the_span(X, Y, 0.5, power, 0.2), atol=1e-4)
    if power == 0:
        assert_allclose(model.W, by_formula(X, Y, 0.5, 0.0, 0.2), atol=1e-4)
        assert_allclose(scores_of(unseen, rows), left_out(X, Y, 0.5, 0.0, 0.2), atol=1e-4)


@pytest.mark.parametrize("power", POWERS)
def test_the_way_by_rows_is_that_by_features(power):
    X, Y = wide()
    (one, [(_, left)]), (other, [(_, right)]) = (
        FirstRidge(0.5, power, 0.2).fit(rows_of(X, Y), limits) for limits in (LIMITS, NO_ROWS)
    )
    assert_allclose(one.W, other.W, atol=1e-4)
    rows = rows_of(X, Y)
    assert_allclose(scores_of(left, rows), scores_of(right, rows), atol=1e-4)
    gains = [FirstRidge.choose(rows, rows.blocks, 0.2, limits)[0] for limits in (LIMITS, NO_ROWS)]
    assert_allclose(*gains, rtol=0.02)


def test_many_features_have_their_eigenvectors_in_float32_which_is_enough(monkeypatch):
    X, Y = data()
    monkeypatch.setattr(normal, "_LARGE", 2)
    for power in POWERS:
        model, _ = FirstRidge(1.0, power, 0.2).fit(rows_of(X, Y), LIMITS)
        assert_allclose(model.W, by_formula(X, Y, 1.0, power, 0.2), atol=1e-4)


def test_a_row_that_alone_has_a_feature_decides_its_score_and_divides_by_nothing():
    X, Y = data()
    X = np.hstack([X, 1e9 * np.eye(len(X))[:, 1:2]])
    rows = rows_of(X, Y)
    _, [(_, unseen)] = FirstRidge(1e-9, 0.0, 1.0).fit(rows, LIMITS)
    scores, others = scores_of(unseen, rows), np.arange(len(X)) != 1
    assert_allclose(scores[1], Y[1], atol=0.01)
    wanted = left_out(X[others, :-1], Y[others], 1e-9, 0.0, 1.0)
    assert_allclose(scores[others], wanted, atol=1e-6)


@pytest.mark.parametrize("n", [40, 6])  # by features, and by rows
def test_float32_stays_float32(n):
    X, Y = data()
    model, _ = FirstRidge(1.0, 0.0, 0.2).fit(rows_of(X[:n].astype(np.float32), Y[:n]), LIMITS)
    assert model.W.dtype == np.float32
    assert_allclose(model.W, by_formula(X[:n], Y[:n], 1.0, 0.0, 0.2), atol=1e-4)


# The choice


def gains_of_ladder(X, Y, judged, weight):
    """The mean gain of the judged rows, each left out, for every p and λ."""
    Y, tried = Y.astype(float), lambda reg, power: left_out(X, Y, reg, power, weight)[judged]
    gain = lambda scores: dcg_score(Y[judged], scores, k=5, ignore_ties=True)
    return np.array([[gain(tried(reg, power)) for reg in LADDER] for power in POWERS])


@pytest.mark.parametrize("weight", [0.2, 1.0])
def test_the_choice_has_the_gain_of_a_naive_search_and_no_neighbour_is_better(weight):
    best_of_all, chosen = 0, set()
    for seed in range(8):
        X, Y = data(n=60, d=9, n_labels=12, seed=seed)
        rows = rows_of(X, Y, n_blocks=2)
        some = Dealt.of(rows).first(35)
        judged = np.flatnonzero(np.isin(X[:, 0], some.blocks.sum(first_of)))
        assert len(judged) == 35
        table = gains_of_ladder(X, Y, judged, weight)
        gain, best = FirstRidge.choose(rows, some.blocks, weight, LIMITS)
        p, step = POWERS.index(best.power), LADDER.index(best.reg)
        assert_allclose(gain, table[p, step])
        assert best.weight == weight
        assert gain >= table[p, max(step - 1, 0) : step + 2].max() - 1e-12
        assert gain > 0.98 * table.max()  # of all λ and p, though few of them were tried
        best_of_all += gain >= table.max() - 1e-12
        chosen.add(best.power)
    assert best_of_all >= 4
    assert len(chosen) > 1


def first_of(b):
    return b.backend.to_numpy(b.X)[:, 0].tolist()


def test_where_eigenvectors_take_too_long_plain_ridge_has_its_lambda_chosen_at_last():
    X, Y = data(n=60, d=9, n_labels=12)
    rows = rows_of(X, Y)
    gain, rough = FirstRidge.choose(rows, rows.blocks, 0.2, NO_SPECTRUM)
    plain = gains_of_ladder(X, Y, np.arange(60), 0.2)[0]
    assert rough.reg == LADDER[START]
    assert_allclose(gain, plain[START], rtol=1e-4)
    best = rough.refined(rows, rows.blocks, NO_SPECTRUM)
    step = LADDER.index(best.reg)
    assert best.power == 0
    assert plain[step] >= plain[max(step - 1, 0) : step + 2].max() - 1e-4
    assert plain[step] > plain[START]


def test_of_all_rows_the_equations_that_chose_are_solved_again(monkeypatch):
    X, Y = data(n=60, d=9, n_labels=12)
    rows = rows_of(X, Y)
    _, lead = FirstRidge.choose(rows, rows.blocks, 0.2, LIMITS)
    wanted, _ = FirstRidge(lead.reg, lead.power, 0.2).fit(rows, LIMITS)
    fewer = Dealt.of(rows).rest(0, 3)
    without, _ = FirstRidge(lead.reg, lead.power, 0.2).fit(fewer, LIMITS)
    found, _ = lead.fit(fewer, LIMITS)
    assert_allclose(found.W, without.W)  # of other rows they are not
    monkeypatch.setattr(Normal, "of", None)
    assert_allclose(lead.fit(rows, LIMITS)[0].W, wanted.W)


@pytest.mark.parametrize(
    ("heights", "first", "wanted", "visited"),
    [
        ([0, 1, 2, 3, 4, 3, 0, 0, 0], 3, 4, [3, 4, 5]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 3, 8, [3, 4, 5, 6, 7, 8]),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, 0, [3, 4, 2, 1, 0]),
        ([0, 0, 5, 3, 3, 9, 0, 0, 0], 3, 2, [3, 4, 2, 1]),
        ([0, 0, 0, 0, 0, 0, 0, 1, 2], 8, 8, [8, 7]),
    ],
)
def test_a_ladder_is_climbed_up_or_else_down_and_no_step_is_tried_twice(
    heights, first, wanted, visited
):
    tried = []
    found = climbed(lambda step: tried.append(step) or heights[step], first)
    assert found == (heights[wanted], wanted)
    assert_array_equal(tried, visited)


def test_the_ladder_starts_inside_and_each_step_is_half_a_power_of_ten():
    assert 0 < START < len(LADDER) - 1
    assert_allclose(np.diff(np.log10(LADDER)), 0.5)
