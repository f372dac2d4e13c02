"""The laws of Tacit: each level by its formula, what is kept and why, and probabilities."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import fractional_matrix_power
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score
from sklearn.preprocessing import StandardScaler, normalize

import tacit.methods.tacit
from tacit import LEML, Labels, Tacit, load
from tacit.backends import Sparse
from tacit.backends.block import Placement, pieces, place
from tacit.blocks import Rows
from tacit.features.scaling import Scaling
from tacit.labels import TopK
from tacit.methods.tacit import (
    _KNOWN_REG,
    _LEML_PASSES,
    _LEML_TOL,
    _WORTH,
    Clock,
    _clear,
    _climb,
    _shortlists,
)
from tacit.methods.tacit.levels import (
    LADDER,
    SHRINKAGES,
    SILENT,
    START,
    UNSAID,
    Fold,
    Folds,
    HeldOutModel,
    Solution,
    ease_links,
    gain_of_completion,
    ridge_in_labels,
)
from tacit.metrics import auc_per_label, precision_at_k

REG = LADDER[5]
UNSAID_LEVEL = "less weight to what is unsaid"
PRIORS = pytest.mark.parametrize("power", [0.0, 1.0, 2.0])


def data(n=60, d=6, n_labels=7, seed=0):
    """Features, and labels that follow them; every row says something."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 1.5, d)
    Z = X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels))
    Y = (Z > 1.5).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    return X, Y


def of_kind(kind, Y, share=0.7, seed=1):
    """The labels Y as one of the three kinds."""
    if kind != "masked":
        return Labels.complete(Y) if kind == "complete" else Labels.positive_only(Y)
    known = np.random.default_rng(seed).random(Y.shape) < share
    return Labels.masked(Y * known, known)


def in_folds(X, labels, cv=3, kind="none", directions=0):
    """The rows in folds, and those of each fold in NumPy: X with the constant, said, known."""
    model = Tacit(cv=cv)
    problem = model._problem(*model._rows(X, labels))
    scaling = Scaling.of(kind, problem.blocks, problem.rng)
    if directions:
        scaling = scaling.with_products(problem.blocks, directions, problem.rng)
    parts = [problem.fold(k, cv).map(scaling) for k in range(cv)]
    return Folds([Fold.of(part, np.float64) for part in parts]), [p.sum(laid_out) for p in parts]


def laid_out(block):
    X = block.X.scipy().toarray() if isinstance(block.X, Sparse) else block.X
    X = np.hstack([X, *block.more])
    said = block.Y.scipy().toarray().astype(float)
    known = np.ones_like(said) if block.omega is None else block.omega.scipy().toarray()
    return X, said, known.astype(bool)


def stacked(parts, without=()):
    left = [part for k, part in enumerate(parts) if k not in without]
    return tuple(np.vstack(column) for column in zip(*left))


def penalty(parts, power):
    """P = (XᵀX / mean eigenvalue)^(-p), of all rows."""
    X = stacked(parts)[0]
    G = X.T @ X
    return fractional_matrix_power(G / (np.trace(G) / len(G)), -power).real


def by_formula(parts, reg, P, without=(), weight=SILENT[0], labels=None):
    """(2) of all folds but some, of what was said or of `labels`."""
    X, said, known = stacked(parts, without)
    silent = ~said.any(axis=1) if known.all() else ~known.any(axis=1)
    V = np.where(silent, weight, 1.0)
    return np.linalg.solve(
        X.T @ (V[:, None] * X) + reg * P, X.T @ (said if labels is None else labels)
    )


def naive_gain(parts, weights):
    """(1), row by row: unknown entries are not ranked."""
    gains = []
    for (X, said, known), W in zip(parts, weights):
        for x, y, told in zip(X, said, known):
            ranked = [j for j in np.argsort(-(x @ W), kind="stable") if told[j]]
            gains.append(sum(y[j] / np.log2(2 + r) for r, j in enumerate(ranked[:5])))
    return 100 * np.mean(gains)


def chosen_reg(model):
    """The λ that the report names, on the ladder."""
    told = float(re.search(r"λ = ([\d.e+-]+)", model.report_.steps[0].choice)[1])
    return min(LADDER, key=lambda reg: abs(np.log(reg / told)))


# Level 0


def test_level_0_is_scikit_learns_ridge_of_scaled_features_and_a_constant():
    X, Y = data()
    model = Tacit(levels=0, scaling="standard").fit(X, Y)
    scaled = np.hstack([StandardScaler().fit_transform(X), np.ones((len(X), 1))])
    ridge = Ridge(alpha=chosen_reg(model), fit_intercept=False).fit(scaled, Y)
    assert_allclose(model.decision_function(X), ridge.predict(scaled), atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_say_nothing_weigh_little(form):
    X, Y = data()
    Y[::4] = 0
    folds, parts = in_folds(form(X), Labels.positive_only(Y))
    A, said, _ = stacked(parts)
    weights = np.where(said.any(axis=1), 1.0, SILENT[0])
    ridge = Ridge(alpha=REG, fit_intercept=False).fit(A, said, sample_weight=weights)
    assert_allclose(folds.ridge(REG, ()).W, ridge.coef_.T, atol=1e-9)


def test_of_masked_labels_a_row_is_silent_where_nothing_is_known_of_it():
    X, Y = data()
    known = np.random.default_rng(0).random(Y.shape) < 0.5
    known[::4] = False
    folds, parts = in_folds(X, Labels.masked(Y * known, known))
    A, said, told = stacked(parts)
    weights = np.where(told.any(axis=1), 1.0, SILENT[0])
    ridge = Ridge(alpha=REG, fit_intercept=False).fit(A, said, sample_weight=weights)
    assert_allclose(folds.ridge(REG, ()).W, ridge.coef_.T, atol=1e-9)


@PRIORS
def test_a_prior_of_the_datas_own_is_its_explicit_penalty(power):
    X, Y = data()
    Y[::4] = 0
    folds, parts = in_folds(X, Labels.positive_only(Y))
    folds = folds.with_prior(power)
    wanted = by_formula(parts, REG, penalty(parts, power))
    assert_allclose(folds.back(folds.ridge(REG, ()).W), wanted, atol=1e-8)


@PRIORS
@pytest.mark.parametrize("kind", ["positive-only", "masked"])
def test_the_gain_is_that_of_rows_ranked_one_by_one_by_models_of_the_other_folds(kind, power):
    X, Y = data()
    folds, parts = in_folds(X, of_kind(kind, Y))
    got, without = folds.with_prior(power).level_0(5)
    P = penalty(parts, power)
    wanted = [by_formula(parts, REG, P, (k,)) for k in range(len(parts))]
    for W, V in zip(without, wanted):
        assert_allclose(folds.with_prior(power).back(W), V, atol=1e-8)
    assert_allclose(got, naive_gain(parts, wanted))
    first, without = folds.with_prior(power).level_0(5, judged=1)
    assert len(without) == 1
    assert_allclose(first, naive_gain(parts[:1], wanted))


@pytest.mark.parametrize("judged", [3, 1])
def test_the_lambda_of_level_0_is_the_best_of_its_neighbours_on_the_ladder(monkeypatch, judged):
    """By all folds or, where solving takes long, by the first; the gain told is of all."""
    if judged == 1:
        monkeypatch.setattr(tacit.methods.tacit, "_LONG_SOLVE", 0)
    X, Y = data(n=80, seed=3)
    model = Tacit(levels=0, scaling="standard", cv=3).fit(X, Y)
    _, parts = in_folds(X, Labels.positive_only(Y), kind="standard")
    without = lambda reg: [by_formula(parts, reg, np.eye(7), (k,)) for k in range(3)]
    gains = [naive_gain(parts[:judged], without(reg)) for reg in LADDER]
    at = LADDER.index(chosen_reg(model))
    assert gains[at] >= max(gains[max(at - 1, 0) : at + 2])
    assert_allclose(model.report_.steps[0].gain, naive_gain(parts, without(LADDER[at])))


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_weight_of_silent_rows_is_that_of_the_largest_gain(power):
    X, Y = data(n=90)
    Y[::2] = 0
    folds, parts = in_folds(X, Labels.positive_only(Y))
    folds, P = folds.with_prior(power), penalty(parts, power)
    assert folds.some_silent
    for weight in SILENT:
        other = folds.with_silent(weight)
        wanted = [by_formula(parts, REG, P, (k,), weight) for k in range(3)]
        gain, without = other.level_0(5)
        for W, V in zip(without, wanted, strict=True):
            assert_allclose(other.back(W), V, atol=1e-8)
        assert_allclose(gain, naive_gain(parts, wanted))
        assert_allclose(other.back(other.ridge(REG, ()).W), by_formula(parts, REG, P, (), weight))


def test_another_weight_of_silent_rows_is_taken_where_it_ranks_clearly_better():
    told = set()
    for seed in range(8):
        X, Y = data(n=90, seed=seed)
        Y[::2] = 0
        model = Tacit(levels=0, scaling="standard", cv=3).fit(X, Labels.positive_only(Y))
        _, parts = in_folds(X, Labels.positive_only(Y), kind="standard")
        gains = {}
        for weight in SILENT:
            of = (parts, chosen_reg(model), np.eye(7))
            gains[weight] = naive_gain(parts, [by_formula(*of, (k,), weight) for k in range(3)])
        wanted = SILENT[0]
        for weight in SILENT[1:]:
            wanted = weight if gains[weight] > _WORTH * gains[wanted] else wanted
        chosen = float(re.search(r"silent rows at ([\d.]+)", model.report_.steps[0].choice)[1])
        assert chosen == wanted
        assert_allclose(model.report_.steps[0].gain, gains[wanted])
        told.add(chosen)
    assert len(told) > 1
    X, Y = data()
    assert "silent" not in str(Tacit(scaling="standard").fit(X, Y).report_)


@PRIORS
@pytest.mark.parametrize("kind", ["positive-only", "masked"])
def test_less_weight_to_what_is_unsaid_is_a_step_of_weighted_least_squares(kind, power):
    X, Y = data()
    Y[::4] = 0
    folds, parts = in_folds(X, of_kind(kind, Y))
    P = penalty(parts, power)
    folds = folds.with_prior(power)
    found = folds.ridge(REG, folds.level_0(5)[1])

    def weighed(a, *without):
        X, said, known = stacked(parts, without)
        S, labels = X @ by_formula(parts, REG, P, without), said.copy()
        for i, j in np.ndindex(S.shape):
            if said[i, j] or (kind == "masked" and known[i, j]):
                labels[i, j] = (said[i, j] - (1 - a) * S[i, j]) / a
        return by_formula(parts, REG, P, without, labels=labels)

    for a in UNSAID:
        got = folds.weighed(found, REG, a)
        assert got.unsaid == a
        assert_allclose(folds.back(got.W), weighed(a), atol=1e-7)
        for k in range(3):
            assert_allclose(folds.back(got.without[k]), weighed(a, k), atol=1e-7)
            for j, W in zip(np.delete(np.arange(3), k), got.nested_folds(k), strict=True):
                assert_allclose(folds.back(W), weighed(a, k, j), atol=1e-7)


def test_steps_repeated_come_to_weighted_least_squares_with_the_unsaid_at_their_weight():
    X, Y = data()
    folds, parts = in_folds(X, Labels.positive_only(Y))
    a, found = 0.5, folds.ridge(REG, folds.level_0(5)[1])
    for _ in range(200):
        found = folds.weighed(found, REG, a)
    A, said, _ = stacked(parts)
    for j, y in enumerate(said.T):
        ridge = Ridge(alpha=a * REG, fit_intercept=False).fit(A, y, np.where(y > 0, 1.0, a))
        assert_allclose(found.W[:, j], ridge.coef_, atol=1e-8)


def test_imputation_takes_back_what_weights_did_to_the_odds():
    X, Y = data()
    folds, _ = in_folds(X, Labels.positive_only(Y))
    found = folds.ridge(REG, folds.level_0(5)[1])
    weighed = replace(found, unsaid=0.3)  # as if its odds were too large, which they are not
    odds = lambda c: (1 - c) / c
    other = 1 / (1 + 0.3 * odds(0.2))
    assert_allclose(folds.imputed(weighed, REG, 0.2).W, folds.imputed(found, REG, other).W)
    for _, mixed in folds.in_labels(weighed):
        assert mixed.unsaid == 0.3


@pytest.mark.parametrize("power", [0.0, 2.0])
def test_low_rank_is_leml_of_the_known_entries_of_the_rows_it_may_see(monkeypatch, power):
    monkeypatch.setattr(tacit.methods.tacit, "_KNOWN_RANKS", (1, 2, 4))
    X, Y = data(n=90)
    labels = of_kind("masked", Y)
    model = Tacit(cv=3, random_state=0)
    problem = model._problem(*model._rows(X, labels))
    scaling, model._clock = Scaling("none"), Clock(60.0)
    folds, parts = in_folds(X, labels)
    folds = folds.with_prior(power)
    [(choice, found)] = model._low_ranks(problem, folds, scaling, [])
    rank = int(choice.split()[-1])

    def weights(r, *without):
        X, said, known = stacked(parts, without)
        passes = dict(max_iter=_LEML_PASSES, tol=_LEML_TOL)
        leml = LEML(r, reg=_KNOWN_REG, **passes, normalize=None, random_state=0)
        factors = leml.fit(X[:, :-1], Labels.masked(said, known)).model_
        return factors.W @ factors.H.T

    assert_allclose(folds.back(found.W), weights(rank), atol=1e-5)
    for k in range(3):
        assert_allclose(folds.back(found.without[k]), weights(rank, k), atol=1e-5)
    assert_allclose(folds.back(found.pair(0, 2)), weights(rank, 0, 2), atol=1e-5)
    gains = {r: naive_gain(parts[:1], [weights(r, 0)]) for r in (1, 2, 4)}
    assert rank == max(gains, key=gains.__getitem__)
    assert found.unsaid == 0


def test_labels_of_low_rank_that_are_mostly_unknown_learn_from_each_other():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    Z = X @ rng.standard_normal((30, 2)) @ rng.standard_normal((2, 40))
    Y, known = (Z > 3).astype(int), rng.random((400, 40)) < 0.15
    told = Labels.masked((Y * known)[:300], known[:300])
    model = Tacit(scaling="standard", cv=3).fit(X[:300], told)
    low = next(s for s in model.report_.steps if s.level == "low rank")
    assert low.kept
    assert "labels for each other: not tried, since those of low rank do already" in (
        model.report_.notes
    )
    plain = Tacit(scaling="standard", cv=3).fit(X[:300], told.as_complete())
    auc = [auc_per_label(Y[300:], m.decision_function(X[300:])) for m in (plain, model)]
    assert auc[1] > auc[0] + 0.05


def test_low_rank_is_not_tried_on_too_many_known_entries(monkeypatch):
    X, Y = data(n=90)
    labels = of_kind("masked", Y)
    told = lambda: Tacit(scaling="standard", cv=3, levels=0).fit(X, labels).report_
    monkeypatch.setattr(tacit.methods.tacit, "_KNOWN_ENTRIES", labels.observed.nnz)
    assert "low rank" in [step.level for step in told().steps]
    monkeypatch.setattr(tacit.methods.tacit, "_KNOWN_ENTRIES", labels.observed.nnz - 1)
    assert "low rank: not tried, since too many entries are known" in told().notes


# Products


@PRIORS
def test_the_prior_of_products_is_plain_beside_that_of_features(power):
    X, Y = data()
    Y[::4] = 0  # rows that say nothing
    folds, parts = in_folds(X, Labels.positive_only(Y), kind="unit")
    wide, wider = in_folds(X, Labels.positive_only(Y), kind="unit", directions=3)
    d, size = parts[0][0].shape[1], wider[0][0].shape[1]
    assert size == d + 6
    P = np.eye(size)
    P[:d, :d] = penalty(parts, power)
    got = folds.with_prior(power).with_silent(0.5).beside(wide.folds)
    _, without = got.level_0(START)
    for k, W in enumerate(without):
        wanted = by_formula(wider, LADDER[START], P, (k,), weight=0.5)
        assert_allclose(got.back(W), wanted, atol=1e-8)


def of_pairs(n=600, seed=0):
    """Sparse rows, and labels that two features make only together."""
    rng = np.random.default_rng(seed)
    X = sp.csr_array((rng.random((n, 12)) < 0.5) * 1.0)
    Z, pairs = X.toarray(), [(0, 1), (2, 3), (4, 5), (6, 7)]
    return X, np.array([Z[:, i] != Z[:, j] for i, j in pairs]).T.astype(int)


@pytest.mark.parametrize("levels", [0, 3])
def test_products_stay_where_features_tell_only_together(monkeypatch, tmp_path, levels):
    X, Y = of_pairs()
    monkeypatch.setattr(tacit.methods.tacit, "_n_directions", lambda problem: 12)
    labels = Labels.positive_only(Y[:400])
    model = Tacit(cv=3, levels=levels, scaling="unit").fit(X[:400], labels)
    step = next(s for s in model.report_.steps if s.level == "products")
    assert step.kept
    assert step.gain > step.before
    assert model.model_.W.shape == (13 + 78, 4)
    first = lambda m: Y[400:][np.arange(200), m.top_k(X[400:], 1).indices[:, 0]].mean()
    monkeypatch.setattr(tacit.methods.tacit, "_PRODUCTS", 0)
    plain = Tacit(cv=3, levels=levels, scaling="unit").fit(X[:400], labels)
    assert any("products: not tried" in note for note in plain.report_.notes)
    assert first(model) > first(plain) + 0.15
    same_after_loading(model, X, Labels.positive_only(Y), tmp_path)


def test_products_that_rank_no_better_are_left_out_and_nothing_changes(monkeypatch):
    X, Y = data(n=200)
    fit = lambda: Tacit(cv=3, scaling="unit").fit(X, Labels.positive_only(Y))

    def worse(self, problem, folds, reg, unsaid):
        W = np.zeros((folds.folds[0].all.xx.shape[0], Y.shape[1]))
        yield "of none", Solution(W, (W, W, W), lambda k, j: W)

    monkeypatch.setattr(Tacit, "_with_products", worse)
    model = fit()
    step = next(s for s in model.report_.steps if s.level == "products")
    assert not step.kept
    assert model.model_.scaling.directions is None
    monkeypatch.setattr(tacit.methods.tacit, "_PRODUCTS", 0)
    assert_array_equal(model.decision_function(X), fit().decision_function(X))


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("unsaid", [1.0, 0.3])
def test_products_come_with_the_weights_and_levels_that_are_asked_for(levels, unsaid):
    X, Y = of_pairs(n=200)
    model = Tacit(cv=3, levels=levels, scaling="unit").fit(X, Labels.positive_only(Y))
    problem = model._problem(*model._rows(X, Labels.positive_only(Y)))
    folds, _ = in_folds(X, Labels.positive_only(Y), kind="unit", directions=12)
    (_, first), *others = model._with_products(problem, folds, REG, unsaid)
    wanted = folds.ridge(REG, folds.level_0(LADDER.index(REG))[1])
    wanted = wanted if unsaid == 1 else folds.weighed(wanted, REG, unsaid)
    for got, same in zip((first.W, *first.without), (wanted.W, *wanted.without), strict=True):
        assert_allclose(got, same)
    assert len(others) == (len(SHRINKAGES) if levels else 0)


@pytest.mark.parametrize(("host", "gpu"), [(True, False), (False, True)])
def test_products_are_not_tried_where_they_would_take_too_long(monkeypatch, host, gpu):
    X, Y = of_pairs(n=100)
    model = Tacit(cv=3, scaling="unit")
    problem = model._problem(*model._rows(X, Labels.positive_only(Y)))
    scaling, work = Scaling("unit"), 100 * 10 * 4  # four directions, four labels
    monkeypatch.setattr(tacit.methods.tacit, "_MULTIPLIED", (work - host, work - gpu))
    assert bool(model._may_multiply(problem, scaling)) == host
    roomy = replace(problem, backend=SimpleNamespace(room=lambda: 2**30))
    assert bool(model._may_multiply(roomy, scaling)) == gpu


def test_there_are_no_more_products_than_features():
    count = lambda d: tacit.methods.tacit._n_directions(SimpleNamespace(n_features=d + 1))
    assert [count(d) for d in (1, 2, 3, 5, 6, 500, 5_050, 10**5)] == [1, 1, 2, 2, 3, 31, 100, 100]


# Level 1


@PRIORS
def test_level_1_is_ridge_in_labels_of_scores_by_models_that_have_not_seen_the_row(power):
    X, Y = data()
    folds, parts = in_folds(X, Labels.positive_only(Y), cv=4)
    P, K = penalty(parts, power), range(4)
    folds = folds.with_prior(power)
    found = folds.ridge(REG, folds.level_0(5)[1])

    def stack(beta, without=()):
        """B, learned from the scores of each fold by a model of neither it nor `without`."""
        left = [k for k in K if k not in without]
        S = np.vstack([parts[k][0] @ by_formula(parts, REG, P, (k, *without)) for k in left])
        said = np.vstack([parts[k][1] for k in left])
        shrunk = beta * np.eye(S.shape[1])
        return np.linalg.solve(S.T @ S + shrunk, S.T @ said + shrunk)

    tried = list(folds.in_labels(found))
    assert [beta for beta, _ in tried] == list(SHRINKAGES)
    for beta, got in tried:
        assert_allclose(folds.back(got.W), by_formula(parts, REG, P) @ stack(beta), atol=1e-8)
        for k in K:
            wanted = by_formula(parts, REG, P, (k,)) @ stack(beta, (k,))
            assert_allclose(folds.back(got.without[k]), wanted, atol=1e-8)
        for k in K:  # nothing of fold k goes in
            for j, W in zip(np.delete(K, k), got.nested_folds(k), strict=True):
                wanted = by_formula(parts, REG, P, (k, j)) @ stack(beta, (k,))
                assert_allclose(folds.back(W), wanted, atol=1e-8)


def test_infinite_shrinkage_leaves_the_weights_as_they_are():
    rng = np.random.default_rng(0)
    S, Y = rng.standard_normal((30, 5)), rng.random((30, 5)) < 0.4
    assert_allclose(ridge_in_labels(Y.T @ S, S.T @ S, 1e12), np.eye(5), atol=1e-9)


# Level 2


@PRIORS
@pytest.mark.parametrize("kind", ["positive-only", "masked"])
def test_level_2_is_ridge_of_labels_filled_in_one_by_one(kind, power):
    X, Y = data()
    folds, parts = in_folds(X, of_kind(kind, Y))
    P, known = penalty(parts, power), stacked(parts)[2]
    c = known.mean(axis=0) if kind == "masked" else np.full(Y.shape[1], 0.2)

    def filled(W, without=()):
        X, said, known = stacked(parts, without)
        S, full = np.clip(X @ W, 0, 0.999), said.copy()
        for i, j in np.ndindex(S.shape):
            if kind == "positive-only" and not said[i, j]:
                full[i, j] = min(1, (1 - c[j]) * S[i, j] / (c[j] * (1 - S[i, j])))
            if kind == "masked" and not known[i, j]:
                full[i, j] = min(1, S[i, j] / c[j])
        return np.linalg.solve(X.T @ X + REG / 10 * P, X.T @ full)

    folds = folds.with_prior(power)
    found = folds.ridge(REG, folds.level_0(5)[1])
    got = folds.imputed(found, REG, c if kind == "masked" else 0.2)
    assert_allclose(folds.back(got.W), filled(folds.back(found.W)), atol=1e-8)
    for k, W in enumerate(found.without):
        assert_allclose(folds.back(got.without[k]), filled(folds.back(W), (k,)), atol=1e-8)
    for k in range(len(parts)):
        others = np.delete(np.arange(len(parts)), k)
        for j, W in zip(others, got.nested_folds(k), strict=True):
            wanted = filled(by_formula(parts, REG, P, (k, j)), (k, j))
            assert_allclose(folds.back(W), wanted, atol=1e-8)


def test_complete_labels_are_never_imputed():
    X, Y = data()
    report = Tacit(scaling="standard").fit(X, Labels.complete(Y)).report_
    assert "imputation" not in [step.level for step in report.steps]
    assert "imputation: not tried, since nothing is missing" in report.notes
    hidden = Tacit(scaling="standard").fit(X, Labels.positive_only(Y)).report_
    assert "imputation" in [step.level for step in hidden.steps]


def test_mostly_unknown_labels_rank_better_than_with_unknown_taken_for_no():
    """Some labels are hardly ever asked about: taken for no, they would come last."""
    X, Y = data(n=1500, n_labels=12)
    rng = np.random.default_rng(0)
    known = rng.random(Y.shape) < np.linspace(0.03, 0.5, 12)
    train = slice(1000)
    told = Labels.masked((Y * known)[train], known[train])
    fit = lambda labels: Tacit(scaling="standard").fit(X[train], labels)
    score = lambda model: ndcg_score(Y[1000:], model.decision_function(X[1000:]), k=5)
    assert score(fit(told)) > score(fit(told.as_complete())) + 0.02


# What is kept, and what it costs


PROBLEMS = [
    ("positive-only", data(n=200, seed=4)),
    ("masked", data(n=200, seed=5)),
    ("complete", data(n=200, d=2, n_labels=20, seed=6)),
]


@pytest.fixture(scope="module")
def fitted():
    """Each problem at each level but the second look, which is judged on some folds only."""
    options = dict(scaling="standard", cv=3, random_state=0)
    fit = lambda levels, X, Y: Tacit(levels=levels, **options).fit(X, Y)
    return [[fit(levels, X, of_kind(kind, Y)) for levels in range(3)] for kind, (X, Y) in PROBLEMS]


def of_levels(model):
    """The steps but the last: links are of completion, and judged apart."""
    *steps, last = model.report_.steps
    assert last.level == "links"
    return steps


def test_a_level_is_kept_exactly_when_the_gain_rose(fitted):
    told = set()
    for models in fitted:
        best = 0.0
        for step in of_levels(models[2]):
            assert step.before == best
            best = step.gain if step.kept else best
            told.add(step.kept or step.level)
        for step in models[2].report_.steps:
            worth = _WORTH if step.level == UNSAID_LEVEL else 1
            assert step.kept == (step.gain > worth * step.before)
            assert ("left out" in str(step)) != step.kept
            assert ("too little" in str(step)) == (step.gain > step.before and not step.kept)
    assert {True, "labels for each other", "imputation"} <= told  # both happen


def test_levels_are_nested(fitted):
    of_level_0 = {
        "positive-only": ["ridge", UNSAID_LEVEL],
        "masked": ["ridge", UNSAID_LEVEL, "low rank"],
        "complete": ["ridge"],
    }
    for models, (kind, (X, _)) in zip(fitted, PROBLEMS):
        wanted = of_level_0[kind]
        assert [s.level for s in of_levels(models[0])] == wanted
        low = of_levels(models[0])[-1]
        above = [] if low.level == "low rank" and low.kept else ["labels for each other"]
        for levels, more in ((1, above), (2, [] if kind == "complete" else ["imputation"])):
            wanted, steps = wanted + more, of_levels(models[levels])
            assert [s.level for s in steps] == wanted
            for a, b in zip(steps, of_levels(models[levels - 1])):
                assert (a.choice, a.gain, a.kept) == (b.choice, b.gain, b.kept)
            scores = [each.decision_function(X) for each in models[levels - 1 : levels + 1]]
            assert np.array_equal(*scores) == (not more or not steps[-1].kept)


def steep(n=600, n_labels=12):
    """Labels by a steep rule, none of them missing: squared loss ranks worse than logistic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)) ** 3
    Z = X @ rng.standard_normal((5, n_labels)) + rng.logistic(size=(n, n_labels))
    return X, (Z > 1).astype(int)


@pytest.mark.parametrize(("clear", "wanted"), [(True, 1), (False, 4)])
def test_a_second_look_is_judged_on_fold_after_fold_until_the_answer_is_clear(
    monkeypatch, clear, wanted
):
    monkeypatch.setattr(tacit.methods.tacit, "_clear", lambda won: clear)
    asked = []

    class Watched(Tacit):
        def _calibrate_and_rerank(self, problem, scaling, held, nested_folds):
            watched = (asked.append(1) or parts for parts in nested_folds)
            return super()._calibrate_and_rerank(problem, scaling, held, watched)

    X, Y = steep(200)
    model = Watched(scaling="standard", cv=4).fit(X, Labels.complete(Y))
    assert len(asked) == wanted
    step = next(s for s in model.report_.steps if s.level == "second look")
    assert step.kept == (step.gain > step.before) == (model.model_.look is not None)


def test_what_is_twice_the_standard_error_away_from_nothing_is_clear():
    won = np.random.default_rng(0).standard_normal(400)
    won -= won.mean()
    error = won.std() / 20
    for shift, clear in [(0, False), (1.9, False), (2.1, True), (-1.9, False), (-2.1, True)]:
        assert _clear(won + shift * error) == clear
    assert _clear(np.zeros(5))


@pytest.mark.parametrize(
    ("heights", "first", "wanted", "visited"),
    [
        ([0, 1, 2, 3, 1], 1, 3, [1, 2, 3, 4]),
        ([3, 2, 1, 0, 0], 2, 0, [2, 3, 1, 0]),
        ([0, 1, 5, 1, 0], 2, 2, [2, 3, 1]),
        ([0, 1, 2], 2, 2, [2, 1]),
    ],
)
def test_a_ladder_is_climbed_from_its_first_step_and_no_step_is_tried_twice(
    heights, first, wanted, visited
):
    tried = []
    at = lambda j: tried.append(j) or (heights[j], j)
    found, step = _climb(at, first, len(heights), lambda: False)
    assert (found, step, tried) == ((heights[wanted], wanted), wanted, visited)


@pytest.mark.parametrize("kind", ["positive-only", "masked"])
def test_shortlists_tell_what_was_said_of_which_labels_and_which_rows_say_anything(kind):
    X, Y = data()
    known = np.random.default_rng(0).random(Y.shape) < 0.7
    known[:20] = Y[:20] = 0
    labels = Labels.masked(Y * known, known) if kind == "masked" else Labels.positive_only(Y)
    model = Tacit(cv=3)
    problem = model._problem(*model._rows(sp.csr_array(X), labels))
    W = problem.backend.asarray(np.random.default_rng(1).standard_normal((7, 7)))
    rows = problem.blocks.sum(_shortlists, HeldOutModel(W), 3)
    assert_array_equal(rows.says_something, np.arange(60) >= 20)
    place = rows.top.indices
    said = np.take_along_axis(Y * known if kind == "masked" else Y, np.maximum(place, 0), axis=1)
    assert_array_equal(rows.said, said * (place >= 0))
    if kind == "masked":
        assert np.take_along_axis(known, place, axis=1)[place >= 0].all()
        assert_array_equal((place >= 0).sum(axis=1), np.minimum(known.sum(axis=1), 3))
    # Where each feature stands by itself, what was said beyond is there too.
    assert len(rows.beyond.row) == 0
    by_feature = problem.backend.sparse(sp.csr_array(problem.backend.to_numpy(W)))
    rough = problem.blocks.sum(_shortlists, HeldOutModel(by_feature), 3)
    assert_array_equal(rough.top.indices, place)
    assert rough.beyond.said.sum() + rough.said.sum() == labels.positives.nnz
    assert (~rough.beyond.said).any()


def test_a_second_look_stays_where_it_ranks_rows_it_has_not_seen_better(monkeypatch):
    monkeypatch.setattr(tacit.methods.tacit.model, "_SHORTLIST", 6)
    X, Y = steep()
    first, second = (
        Tacit(scaling="standard", levels=levels).fit(X[:300], Labels.complete(Y[:300]))
        for levels in (2, 3)
    )
    step = next(s for s in second.report_.steps if s.level == "second look")
    assert step.kept
    assert step.gain > step.before
    assert first.model_.look is None
    assert second.model_.look is not None
    precision = [precision_at_k(Y[300:], m.top_k(X[300:], 3), 3) for m in (first, second)]
    assert precision[1] > precision[0] + 0.005
    # The best labels are those of the largest scores, on the shortlist and beyond it.
    scores, top = second.decision_function(X[300:]), second.top_k(X[300:], 12)
    assert_array_equal(top.indices, np.argsort(-scores, axis=1, kind="stable"))
    assert_allclose(top.scores, np.take_along_axis(scores, top.indices, axis=1), rtol=1e-5)
    for k in (2, 5, 7, 9):
        assert_array_equal(second.top_k(X[300:], k).indices, top.indices[:, :k])


def test_a_second_look_stays_with_the_model_that_is_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(tacit.methods.tacit.model, "_SHORTLIST", 6)
    X, Y = steep()
    model = Tacit(scaling="standard").fit(X, Labels.complete(Y))
    assert model.model_.look is not None
    same_after_loading(model, X, Labels.complete(Y), tmp_path)


@pytest.mark.parametrize("presence", [False, True])
def test_a_second_look_counts_presence_alone_where_it_ranks_better_so(
    monkeypatch, tmp_path, presence
):
    judged = tacit.methods.tacit._judged

    def told(rows, others, n_labels, form, step):
        gained, look, after = judged(rows, others, n_labels, form, step)
        liked = form == presence
        return gained + 1e6 * liked, look, after + liked

    monkeypatch.setattr(tacit.methods.tacit, "_judged", told)
    monkeypatch.setattr(tacit.methods.tacit.model, "_SHORTLIST", 6)
    monkeypatch.setattr(tacit.methods.tacit, "_PRODUCTS", 0)  # so that W is that of X alone
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((300, 9)) * (rng.random((300, 9)) < np.linspace(0.05, 0.5, 9)))
    Y = (X @ rng.standard_normal((9, 12)) > 0.3).astype(int)
    model = Tacit(scaling="idf", cv=3).fit(X, Labels.complete(Y))
    step = next(s for s in model.report_.steps if s.level == "second look")
    assert ("presence of features" in step.choice) == model.model_.look.presence == presence
    look, top = model.model_.look, model.top_k(X, 12)
    scaled = normalize(X.multiply(model.model_.scaling.weight))
    n = np.maximum(X.count_nonzero(axis=1), 1)[:, None]
    rows = (X != 0) / n**0.25 if presence else scaled
    S = sp.hstack([scaled, np.ones((300, 1))]).toarray() @ model.model_.W
    order = np.argsort(-S, axis=1)
    first = TopK(order, np.take_along_axis(S, order, axis=1))
    wanted = replace(look, presence=False).ranked(sp.csr_array(rows), first, 6)
    assert_allclose(top.scores, wanted.scores, atol=1e-6)
    scores = model.decision_function(X)
    assert_allclose(np.take_along_axis(scores, wanted.indices, axis=1), wanted.scores, atol=1e-6)
    same_after_loading(model, X, Labels.complete(Y), tmp_path)


def test_a_tiny_budget_still_fits_and_says_what_was_left_out():
    X, Y = data()
    model = Tacit(budget=1e-9).fit(sp.csr_array(X * (X > 0)), Y)
    assert [step.level for step in model.report_.steps] == ["ridge"]
    for level in ("labels for each other", "imputation", "links"):
        assert f"{level}: not tried, since the budget is spent" in str(model.report_)
    assert np.isfinite(model.decision_function(X * (X > 0))).all()


@pytest.mark.parametrize("hour", [3600, np.int64(3600), "3600s", "60 min", "1h", "1.0h"])
def test_an_ample_budget_changes_nothing(hour):
    X, Y = data()
    free, bound = (Tacit(scaling="standard", cv=2, budget=b).fit(X, Y) for b in (None, hour))
    assert_array_equal(bound.decision_function(X), free.decision_function(X))
    assert bound._clock.budget == 3600


@pytest.mark.parametrize("budget", ["soon", -1, 0, "0s", True, float("nan"), "5", [60]])
def test_a_bad_budget_is_one_clear_sentence(budget):
    with pytest.raises(
        ValueError, match=r"^Tacit: budget must be None, seconds, or such as .*; got"
    ):
        Tacit(budget=budget).fit(*data())


def test_too_few_rows_for_the_folds_are_one_clear_sentence():
    X, Y = data(n=9)
    with pytest.raises(
        ValueError, match=r"cv=5 folds need at least 10 rows; got n_samples = 9; give"
    ):
        Tacit().fit(X, Y)
    Tacit(cv=4, scaling="standard").fit(X, Y)


# Probabilities and completions


def planted(c=0.3, n=3000, n_labels=10):
    """Truth by informative features, of which a share c is said."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    Z = 4 * (X @ rng.standard_normal((8, n_labels)) / np.sqrt(8) - 0.8)
    truth = rng.random(Z.shape) < 1 / (1 + np.exp(-4 * Z))
    return X, truth, truth & (rng.random(Z.shape) < c)


def test_probabilities_are_monotone_in_the_score_and_nearer_to_the_truth():
    X, truth, said = planted()
    model = Tacit(scaling="standard").fit(X[:2000], Labels.positive_only(said[:2000]))
    scores, p = model.decision_function(X[2000:]), model.predict_proba(X[2000:])
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p.ravel()[np.argsort(scores.ravel())]) >= 0).all()
    wrong = lambda q: np.mean((q - truth[2000:]) ** 2)
    assert wrong(p) < 0.7 * wrong(scores.clip(0, 1))
    assert 0.2 < model.exposure_ < 0.45
    assert_allclose(model.predict_proba(X, what="said"), model.exposure_ * model.predict_proba(X))
    with pytest.raises(ValueError, match=r"^what must be .* or .*; got 'maybe'$"):
        model.predict_proba(X, what="maybe")


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_where_a_no_was_said_the_exposure_is_one(kind):
    X, Y = data()
    assert Tacit(scaling="standard").fit(X, of_kind(kind, Y)).exposure_ == 1


def test_links_are_per_label_ridge_on_the_other_labels():
    Y = (np.random.default_rng(0).random((40, 6)) < 0.4).astype(float)
    A = ease_links(Y.T @ Y, 3.0)
    assert_array_equal(np.diag(A), 0)
    for j in range(6):
        others = np.arange(6) != j
        ridge = Ridge(alpha=3.0, fit_intercept=False).fit(Y[:, others], Y[:, j])
        assert_allclose(A[others, j], ridge.coef_, atol=1e-10)


@pytest.mark.parametrize("links", [True, False])
def test_completion_is_judged_by_the_asked_half_beside_the_known_half(backend, links):
    X, Y = data(n=30, n_labels=25)
    rows = Rows(X, Labels.positive_only(Y))
    block = place(rows, Placement(backend, "float64", None, True))
    rng = np.random.default_rng(1)
    W, A = rng.standard_normal((7, 25)), rng.standard_normal((25, 25))
    seen = HeldOutModel(backend.asarray(W), links=backend.asarray(A) if links else None)
    total, n = gain_of_completion(block, seen)
    rng, wanted, start = np.random.default_rng(0), 0.0, 0
    for piece in pieces(block, 25):
        asked = rng.random(Y[piece].sum()) < 0.5
        places = list(zip(*np.nonzero(Y[piece])))
        for i in range(len(Y[piece])):
            known, new = ({j for (r, j), a in zip(places, asked) if r == i and a == which}
                          for which in (False, True))  # fmt: skip
            row = np.append(X[start + i], 1.0) @ W
            row = row + A[sorted(known)].sum(axis=0) if links else row
            order = [j for j in np.argsort(-row) if j not in known][:20]
            wanted += sum(1 / np.log2(2 + r) for r, j in enumerate(order) if j in new)
        start += len(Y[piece])
    assert n == 30
    assert total == pytest.approx(wanted)


def test_what_else_was_said_of_a_row_completes_it():
    """Labels come in pairs that the features say nothing about."""
    rng = np.random.default_rng(0)
    n, pairs = 600, 10
    twins = np.repeat(rng.random((n, pairs)) < 0.2, 2, axis=1)
    said = twins & (rng.random(twins.shape) < 0.8)
    X = rng.standard_normal((n, 4))
    model = Tacit(scaling="standard").fit(X[:400], Labels.positive_only(said[:400]))
    assert model.model_.links is not None
    hidden = [(i, j) for i in range(400, n) for j in np.flatnonzero(said[i]) if said[i, j ^ 1]]
    found_at = {True: [], False: []}
    for i, j in hidden[:100]:
        left = said[i : i + 1].copy()
        left[0, j] = False
        for fold_in, ranks in found_at.items():
            found = model.complete(X[i : i + 1], Labels.positive_only(left), k=20, fold_in=fold_in)
            ranks.append(int(np.flatnonzero(found.label == j)[0]))
    assert np.mean(found_at[True]) < 1 < 4 < np.mean(found_at[False])


@pytest.mark.parametrize("finds_more", ["look", "links"])
def test_links_stay_where_they_find_more_than_the_second_look_and_only_there(
    finds_more, monkeypatch
):
    """Links take the place of the look in completions, and so are judged against it."""
    X, Y = data(n=120, n_labels=9)
    kept = lambda model: (model.model_.look is not None, model.model_.links is not None)

    def found(block, seen, most):
        with_it = [name for name in ("look", "links") if getattr(seen, name) is not None]
        return sum(1.0 if name == finds_more else 0.5 for name in with_it), 1

    monkeypatch.setattr(tacit.methods.tacit.model, "_SHORTLIST", 6)
    monkeypatch.setattr(tacit.methods.tacit, "gain_of_completion", found)
    monkeypatch.setattr(tacit.methods.tacit, "_SHARES", (1e-9,))  # a look that changes nothing
    monkeypatch.setattr(tacit.methods.tacit, "_clear", lambda won: True)
    always = lambda rows, others, n_labels, presence, step: (
        1.0,
        tacit.methods.tacit._learned(others, n_labels, presence, 1.0),
        np.ones((1, len(rows.said))) * 100,
    )
    monkeypatch.setattr(tacit.methods.tacit, "_judged", always)
    assert kept(Tacit(scaling="none", cv=3).fit(X, Y)) == (True, finds_more == "links")


def test_the_history_is_that_of_the_model_that_was_kept():
    """A trial of LEML that is thrown away leaves no history behind."""
    rng = np.random.default_rng(0)
    X, Y = data(n=90, d=8, n_labels=6)
    known = rng.random(Y.shape) < 0.8
    model = Tacit(scaling="standard", cv=3).fit(X, Labels.masked(Y * known, known))
    low = next(step for step in model.report_.steps if step.level == "low rank")
    assert not low.kept
    assert (model.n_iter_, model.history_) == (0, [])


def test_masked_labels_of_features_that_are_widened_are_learned():
    """LEML of low rank sees the features as they are scaled: 2,000 where there were 8."""
    X, Y = data(n=90, d=8, n_labels=6)
    known = np.random.default_rng(0).random(Y.shape) < 0.8
    model = Tacit(scaling="fourier", cv=3).fit(X, Labels.masked(Y * known, known))
    assert any(step.level == "low rank" for step in model.report_.steps)
    assert model.decision_function(X).shape == Y.shape


# Regimes, devices and files


def test_conjugate_gradients_come_near_to_exact_ridge(monkeypatch):
    monkeypatch.setattr(tacit.methods.tacit, "_EXACT_FEATURES", 5)
    X, Y = data(n=200)
    model = Tacit(scaling="standard", levels=0).fit(X, Y)
    assert "conjugate gradients" in model.report_.steps[0].choice
    scaled = np.hstack([StandardScaler().fit_transform(X), np.ones((len(X), 1))])
    ridge = Ridge(alpha=chosen_reg(model), fit_intercept=False).fit(scaled, Y)
    assert_allclose(model.decision_function(X), ridge.predict(scaled), atol=1e-2)


@pytest.mark.parametrize("exact", [5, 6_000])  # features: by conjugate gradients, or moments
def test_models_have_not_seen_the_rows_they_are_asked_about(monkeypatch, exact):
    monkeypatch.setattr(tacit.methods.tacit, "_EXACT_FEATURES", exact)
    monkeypatch.setattr(tacit.methods.tacit, "_WORTH", np.inf)  # so that level 0 is plain ridge
    monkeypatch.setattr(tacit.methods.tacit, "_EXACT_LABELS", 0)  # no level 1
    monkeypatch.setattr(tacit.methods.tacit, "_IMPUTED_WORK", 0)  # no level 2
    monkeypatch.setattr(tacit.methods.tacit, "_CG", dict(rtol=1e-12, max_iter=100))
    X, Y = data(n=90)
    kept = []

    class Watched(Tacit):
        def _calibrate_and_rerank(self, problem, scaling, held, nested_folds):
            kept.append((held, [list(parts) for parts in nested_folds]))
            return super()._calibrate_and_rerank(problem, scaling, held, iter(kept[0][1]))

    model = Watched(scaling="standard", cv=3).fit(X, Y)
    held, nested_folds = kept[0]
    rows = [[laid_out(part) for part in blocks.parts] for blocks, _ in held]
    rows = [[np.vstack(arrays) for arrays in list(zip(*fold))[:2]] for fold in rows]

    def ridge(*without):
        X, Y = (np.vstack([f[i] for k, f in enumerate(rows) if k not in without]) for i in (0, 1))
        return np.linalg.solve(X.T @ X + chosen_reg(model) * np.eye(X.shape[1]), X.T @ Y)

    for k, parts in enumerate(nested_folds):
        for j, (blocks, _) in zip([k, *np.delete(np.arange(3), k)], parts, strict=True):
            assert_array_equal(np.vstack([laid_out(b)[0] for b in blocks.parts]), rows[j][0])
    for k, (judged, *others) in enumerate(nested_folds):
        for _, seen in (held[k], judged):
            assert_allclose(seen.W, ridge(k), atol=1e-8)
        for j, (_, seen) in zip(np.delete(np.arange(3), k), others, strict=True):
            assert_allclose(seen.W, ridge(k, j), atol=1e-8)


@pytest.mark.parametrize("cv", [2, 3, 5])
def test_the_first_fold_and_two_halves_of_the_others_are_all_rows(cv):
    X, Y = data(n=53)
    model = Tacit(cv=cv)
    problem = model._problem(*model._rows(X, Y))
    rows = lambda blocks: np.vstack([laid_out(part)[0] for part in blocks.parts])
    judged, one, other = (rows(part) for part in model._judged_and_halves(problem))
    assert_array_equal(judged, rows(problem.fold(0, cv)))
    assert abs(len(one) - len(other)) <= cv
    together, whole = np.vstack([judged, one, other]), rows(problem.blocks)
    assert_array_equal(together[np.lexsort(together.T)], whole[np.lexsort(whole.T)])


@pytest.fixture
def roomless(monkeypatch):
    """No room for the weights of all features and labels."""
    monkeypatch.setattr(Tacit, "_full_rank", lambda self, n_features, n_labels: False)


def words(n=400, d=60, n_labels=20):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((n, d)) * (rng.random((n, d)) < 0.1))
    return X, (X @ rng.standard_normal((d, n_labels)) > 0.8).astype(int)


def test_without_room_each_feature_stands_by_itself(roomless, device, monkeypatch, tmp_path):
    monkeypatch.setattr(tacit.methods.tacit.model, "_SHORTLIST", 6)
    X, Y = words()
    model = Tacit(random_state=0, device=device).fit(X, Labels.positive_only(Y))
    first, *_ = model.report_.steps
    assert first.level == "each feature by itself"
    reg = min(
        LADDER, key=lambda r: abs(np.log(r / float(re.search(r"λ = (\S+),", first.choice)[1])))
    )
    power = float(first.choice.split()[-1])
    said, rows = Y.astype(float), normalize(X).toarray()
    W = (rows.T @ said) / ((rows**2).sum(axis=0) + reg)[:, None]
    W = W * (np.maximum(said.sum(axis=0), 1) / said.sum(axis=0).mean()) ** -power
    assert_allclose(model.model_.W.toarray()[:-1], W)
    assert model.model_.W.nnz < W.size
    order = np.argsort(-(rows @ W), axis=1, kind="stable")
    top = TopK(order, np.take_along_axis(rows @ W, order, axis=1))
    wanted = model.model_.look.ranked(sp.csr_array(rows), top, 6)
    assert_allclose(model.top_k(X, 20).scores, wanted.scores, atol=1e-8)
    same_after_loading(model, X, Labels.positive_only(Y), tmp_path)


def test_models_of_single_features_have_not_seen_the_rows_they_are_asked_about(roomless):
    X, Y = words()
    held_out = []

    class Watched(Tacit):
        def _calibrate_and_rerank(self, problem, scaling, held, nested_folds):
            held_out.extend([held, [list(parts) for parts in nested_folds]])
            raise InterruptedError

    with pytest.raises(InterruptedError):
        Watched(cv=3, random_state=0).fit(X, Labels.positive_only(Y))
    held, nested_folds = held_out
    rows = [part.sum(laid_out) for part, _ in held]
    pattern = lambda seen: seen.W.scipy().toarray()[:-1] != 0
    met = lambda *which: (
        np.vstack([rows[k][0] for k in which])[:, :-1].T @ np.vstack([rows[k][1] for k in which])
    )
    for k, (_, seen) in enumerate(held):
        assert_array_equal(pattern(seen), met(*(j for j in range(3) if j != k)) > 0)
    for k, parts in enumerate(nested_folds):
        assert_array_equal(pattern(parts[0][1]), pattern(held[k][1]))
        for j, (_, seen) in zip([j for j in range(3) if j != k], parts[1:], strict=True):
            [left] = set(range(3)) - {j, k}
            assert_array_equal(pattern(seen), met(left) > 0)


def test_a_damaged_file_of_sparse_weights_is_refused(roomless, tmp_path):
    X, Y = words()
    model = Tacit(random_state=0).fit(X, Labels.positive_only(Y))
    header, arrays = model.contents()
    arrays["W_labels"] = arrays["W_labels"] + 20
    with pytest.raises(ValueError, match="indices"):
        Tacit().restore(header, arrays)


def test_of_low_rank_it_is_leml_of_the_scaled_features(monkeypatch, tmp_path):
    tight = dict(rank=3, max_iter=300, tol=1e-13)
    monkeypatch.setattr(tacit.methods.tacit, "DENSE_LIMIT", 10)
    for name, value in dict(_LOW_RANK=3, _LEML_PASSES=300, _LEML_TOL=1e-13).items():
        monkeypatch.setattr(tacit.methods.tacit, name, value)
    X, Y = data(n=200)
    labels = Labels.positive_only(Y)
    model = Tacit(scaling="unit", levels=0, random_state=0).fit(X, labels)
    assert "LEML" in model.report_.steps[0].choice
    leml = LEML(**tight, random_state=0).fit(X, labels)
    assert_allclose(model.decision_function(X), leml.decision_function(X), atol=1e-3)
    assert model.history_[-1] == pytest.approx(leml.history_[-1], rel=1e-5)
    again = Tacit(scaling="unit", levels=0, random_state=0)
    resumed = again.fit(X, labels, checkpoint=tmp_path / "state")
    assert_array_equal(resumed.decision_function(X), model.decision_function(X))
    same_after_loading(model, X, labels, tmp_path)


@pytest.mark.parametrize("scaling", ["none", "unit", "idf", "standard", "fourier"])
def test_a_loaded_model_predicts_completes_and_reports_the_same(monkeypatch, tmp_path, scaling):
    learn = Scaling.of
    few = lambda *args: learn(*args, n_components=30)
    monkeypatch.setattr(tacit.methods.tacit.Scaling, "of", few)
    X, Y = data()
    labels = Labels.positive_only(Y)
    same_after_loading(Tacit(scaling=scaling, cv=3).fit(abs(X), labels), abs(X), labels, tmp_path)


def same_after_loading(model, X, labels, folder):
    model.save(folder / "model.tacit")
    loaded = load(folder / "model.tacit")
    assert loaded.report_ == model.report_
    assert str(loaded.report_) == str(model.report_)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    for got, wanted in zip(loaded.complete(X, labels), model.complete(X, labels)):
        assert_array_equal(got, wanted)


@pytest.mark.parametrize("where", PLACES[2:])
@pytest.mark.parametrize("kind", ["positive-only", "masked"])
@pytest.mark.slow
def test_where_the_blocks_lie_changes_nothing(blocks_of, kind, where):
    X, Y = data()
    fit = lambda lie: Tacit(scaling="standard", cv=3).fit(blocks_of(X, of_kind(kind, Y), lie))
    got, wanted = fit(where), fit("three blocks")
    assert_allclose(got.predict_proba(X), wanted.predict_proba(X), atol=1e-8)
    assert [s.gain for s in got.report_.steps] == pytest.approx(
        [s.gain for s in wanted.report_.steps]
    )


@pytest.mark.parametrize("kind", ["positive-only", "complete", "masked"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_float32_stays_float32_on_every_device(device, kind, form):
    X, Y = data(n=120)
    labels, single = of_kind(kind, Y), form(X.astype(np.float32))
    model = Tacit(scaling="unit", cv=3, device=device).fit(single, labels)
    scores = model.decision_function(single)
    assert scores.dtype == model.predict_proba(single).dtype == model.model_.W.dtype == np.float32
    double = Tacit(scaling="unit", cv=3).fit(form(X), labels)
    assert_allclose(scores, double.decision_function(form(X)), atol=1e-3)


HARD = {
    "one label": lambda X, Y: (X, Y[:, :1]),
    "hardly anything said": lambda X, Y: (X, Y * (np.arange(len(Y)) == 0)[:, None]),
    "all said": lambda X, Y: (X, 0 * Y + 1),
    "a label nobody has": lambda X, Y: (X, Y * (np.arange(Y.shape[1]) != 2)),
    "rows without features": lambda X, Y: (X * (np.arange(len(X)) % 2)[:, None], Y),
    "one feature": lambda X, Y: (X[:, :1], Y),
    "no feature varies": lambda X, Y: (0 * X + 1, Y),
}


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("kind", ["positive-only", "complete", "masked"])
@pytest.mark.parametrize("scaling", ["idf", "standard"])
def test_hard_rows_do_no_harm(hard, kind, scaling):
    X, Y = HARD[hard](*data())
    labels = of_kind(kind, Y)
    model = Tacit(scaling=scaling, cv=3).fit(sp.csr_array(abs(X)), labels)
    p = model.predict_proba(abs(X))
    assert p.shape == Y.shape
    assert ((p >= 0) & (p <= 1)).all()
    unsaid = ~(labels.positives if labels.observed is None else labels.observed).toarray()
    found = model.complete(abs(X), labels, k=Y.shape[1])
    assert len(found.row) == unsaid.sum()
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
