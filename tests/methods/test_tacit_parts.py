"""First models by their formulas, and what is fitted beside the one that leads."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.metrics import dcg_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler

from tacit import Labels, Tacit
from tacit.baselines import NNML
from tacit.blocks import MemoryBlocks, Rows
from tacit.features.scaling import Scaling
from tacit.methods.tacit import LIMITS, second_look
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first import by_feature, products
from tacit.methods.tacit.first.by_feature import RARITIES, REGS, ByThemselves, SparseWeights, Tally
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.methods.tacit.first.products import FOLDS, ByProducts, Weights
from tacit.methods.tacit.first.ridge import LADDER, FirstRidge
from tacit.methods.tacit.parts import _LINKED, NEAREST, Parts, _shortlisted, listed

FORMS = [np.asarray, sp.csr_array]


def data(n=60, d=8, n_labels=6, seed=0):
    """Features that are mostly 0, labels that follow them, the last of which nobody said."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    Y = (X @ rng.standard_normal((d, n_labels)) > 0.5).astype(int)
    Y[:, -1] = 0
    return X, Y


def rows_of(X, labels, device="cpu", n_blocks=1):
    model = Tacit(device=device, random_state=0)
    labels = labels if isinstance(labels, Labels) else Labels.positive_only(labels)
    blocks = MemoryBlocks.from_rows(Rows(X, labels), n_blocks)
    return SomeRows.of(model._problem(*model._rows(blocks, None)))


def with_constant(X):
    return np.hstack([X, np.ones((len(X), 1))])


def dealt_rows(n, fold, cv):
    """Of n rows those outside this fold, and those in it."""
    dealt = Dealt.of(rows_of(np.arange(n, dtype=float)[:, None], np.ones((n, 1), int)))
    parts = dealt.rest(fold, cv), dealt.fold(fold, cv, n)
    return [np.array(part.blocks.sum(first_of)).astype(int) for part in parts]


def first_of(b):
    return b.X[:, 0].tolist()


# Features by themselves


def by_formula(X, Y, reg, power):
    """(1) of `first.by_feature`, number by number; no weight of the constant."""
    n_l, W = Y.sum(axis=0), np.zeros((X.shape[1] + 1, Y.shape[1]))
    for j, label in np.ndindex(X.shape[1], Y.shape[1]):
        both = sum(x * y for x, y in zip(X[:, j], Y[:, label]))
        rarity = (max(n_l[label], 1) / n_l.mean()) ** -power
        W[j, label] = both / (sum(x * x for x in X[:, j]) + reg) * rarity
    return W


@pytest.mark.parametrize("power", [0.0, 0.5])
@pytest.mark.parametrize("form", FORMS)
def test_weights_are_the_formula_and_0_where_feature_and_label_never_met(form, power, device):
    X, Y = data()
    W = rows_of(form(X), Y, device).blocks.sum(Tally.of).weights(2.0, power, np.float64).W
    assert_allclose(W.toarray(), by_formula(X, Y, 2.0, power))
    assert W.nnz == np.count_nonzero(X.T @ Y)  # and none is of the constant


def test_tallies_of_some_rows_add_up_to_that_of_all():
    X, Y = data()
    tally = lambda a, b: rows_of(sp.csr_array(X[a:b]), Y[a:b]).blocks.sum(Tally.of)
    whole, parts = tally(0, 60), tally(0, 11) + tally(11, 60)
    assert_allclose(parts.xy.toarray(), whole.xy.toarray())
    assert_allclose(parts.xx, whole.xx)
    assert_allclose(parts.y, whole.y)


def test_of_a_feature_with_many_labels_the_strongest_weights_are_kept(monkeypatch):
    X, Y = data(n_labels=12)
    tally = rows_of(sp.csr_array(X), Y).blocks.sum(Tally.of)
    whole = tally.weights(2.0, 0.25, np.float64).W.toarray()
    monkeypatch.setattr(by_feature, "_KEPT", 4)
    W = tally.weights(2.0, 0.25, np.float64).W.toarray()
    least = -np.sort(-whole, axis=1)[:, [3]]
    assert_array_equal(W, np.where(whole >= least, whole, 0))
    assert (W != 0).sum() < (whole != 0).sum()


@pytest.mark.parametrize("form", FORMS)
def test_their_best_labels_are_those_of_their_scores_and_then_the_frequent_ones(form, device):
    X, Y = data(n_labels=12)
    rows = rows_of(form(X * (np.arange(X.shape[1]) < 2)), Y, device)
    model, _ = ByThemselves(2.0, 0.0).fit(rows, LIMITS)
    [block] = rows.blocks.parts
    S, n_l = model.scores(block), Y.sum(axis=0)
    found = model.best(block, 12, None)
    assert_allclose(np.take_along_axis(S, found.indices, 1), found.scores)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for scores, labels in zip(found.scores, found.indices):
        assert (np.diff(n_l[labels[scores == 0]]) <= 0).all()
    skip = model.best(block, 3, block.Y).indices
    assert not np.take_along_axis(Y, skip, 1)[skip >= 0].any()


def test_features_by_themselves_score_rows_by_weights_of_the_other_folds():
    X, Y = data()
    rows = rows_of(sp.csr_array(X), Y, n_blocks=3)
    model, held = ByThemselves(2.0, 0.25).fit(rows, LIMITS)
    assert_allclose(model.W.toarray(), by_formula(X, Y, 2.0, 0.25))
    [block] = rows_of(sp.csr_array(X), Y).blocks.parts
    assert_allclose(model.scores(block), X @ model.W.toarray()[:-1])
    assert [fold for fold, _ in held] == list(range(FOLDS))
    for fold, unseen in held:
        some, _ = dealt_rows(60, fold, FOLDS)
        assert_allclose(unseen.W.toarray(), by_formula(X[some], Y[some], 2.0, 0.25))


def test_features_by_themselves_take_dense_rows_and_say_the_same_of_them():
    X, Y = data()
    model, held = ByThemselves(2.0, 0.25).fit(rows_of(X, Y), LIMITS)
    [dense], [sparse] = (rows_of(form(X), Y).blocks.parts for form in FORMS)
    assert_allclose(model.scores(dense), model.scores(sparse))
    assert_allclose(held[0][1].scores(dense), held[0][1].scores(sparse))


def test_their_lambda_and_power_rank_a_fold_best_by_the_weights_of_the_others():
    chosen = set()
    for seed in range(6):
        X, Y = data(n=100, n_labels=12, seed=seed)
        rows = rows_of(sp.csr_array(X), Y, n_blocks=2)
        gain, best = ByThemselves.choose(rows, rows.blocks, 1.0, LIMITS)
        others, judged = dealt_rows(100, 0, 5)
        gains = {}
        for reg, p in product(REGS, RARITIES):
            S = X[judged] @ by_formula(X[others], Y[others], reg, p)[:-1]
            gains[reg, p] = dcg_score(Y[judged], S, k=5, ignore_ties=True)
        assert_allclose(gain, gains[best.reg, best.power])
        assert_allclose(gain, max(gains.values()))
        chosen.add((best.reg, best.power))
    assert len(chosen) > 1


# Ridge by products


@pytest.fixture
def tight(monkeypatch):
    monkeypatch.setattr(products, "_CG", dict(rtol=1e-12, max_iter=200))


def theirs(X, Y, reg, power=0.0):
    A = with_constant(X)
    G = A.T @ A
    mean = np.trace(G) / len(G)
    P = np.linalg.matrix_power(np.linalg.pinv(G / mean), int(power))
    return np.linalg.solve(G + reg * P, A.T @ Y)


@pytest.mark.parametrize("power", [0.0, 2.0])
@pytest.mark.parametrize("form", FORMS)
def test_ridge_by_products_is_the_formula_and_so_are_those_without_a_fold(
    form, device, tight, power
):
    X, Y = data()
    rows = rows_of(form(X), Y, device, n_blocks=2)
    model, held = ByProducts(0.7, power, 1.0).fit(rows, LIMITS)
    assert_allclose(model.W, theirs(X, Y, 0.7, power), atol=1e-7)
    assert [fold for fold, _ in held] == list(range(FOLDS))
    for fold, unseen in held:
        some, _ = dealt_rows(60, fold, FOLDS)
        wanted = theirs(X[some], Y[some], 0.7, power)
        assert_allclose(rows.backend.to_numpy(unseen.W), wanted, atol=1e-7)


def test_rows_that_say_nothing_teach_ridge_by_products_by_their_weight(tight):
    X, Y = data()
    Y[:20] = 0
    silent = (Y.sum(axis=1) == 0)[:, None]
    for power in (0.0, 2.0):
        model, _ = ByProducts(0.7, power, 0.2).fit(rows_of(X, Y), LIMITS)
        A = with_constant(X)
        G = A.T @ (np.where(silent, 0.2, 1.0) * A)
        P = np.linalg.matrix_power(np.linalg.inv(G * len(G) / np.trace(G)), int(power))
        assert_allclose(model.W, np.linalg.solve(G + 0.7 * P, A.T @ Y), atol=1e-7)


@pytest.mark.parametrize("power", [0.0, 2.0])
def test_at_its_own_tolerance_it_comes_near(power):
    X, Y = data()
    model, _ = ByProducts(0.7, power, 1.0).fit(rows_of(X, Y), LIMITS)
    wanted = theirs(X, Y, 0.7, power)
    assert np.linalg.norm(model.W - wanted) < 0.03 * np.linalg.norm(wanted)


def test_its_lambda_ranks_a_fold_better_than_its_neighbours_do(tight):
    chosen = set()
    for seed in range(6):
        X, Y = data(n=100, n_labels=12, seed=seed)
        rows = rows_of(X, Y, n_blocks=2)
        gain, rough = ByProducts.choose(rows, rows.blocks, 1.0, LIMITS)
        best = rough.refined(rows, rows.blocks, LIMITS)
        others, judged = dealt_rows(100, 0, 5)
        models = [theirs(X[others], Y[others], reg, best.power) for reg in LADDER]
        scores = [with_constant(X[judged]) @ W for W in models]
        gains = [dcg_score(Y[judged], S, k=5, ignore_ties=True) for S in scores]
        step = LADDER.index(best.reg)
        assert gains[step] >= max(gains[max(step - 1, 0) : step + 2]) - 1e-9
        plain = with_constant(X[judged]) @ theirs(X[others], Y[others], rough.reg)
        assert_allclose(gain, dcg_score(Y[judged], plain, k=5, ignore_ties=True))
        chosen.add((step, best.power))
    assert len({power for _, power in chosen}) > 1
    assert len(chosen) > 2


# The network


def network(rows, **how):
    return FirstNetwork(rank=20, passes=5, rate=0.05, batch_size=16, **{"seed": 3} | how).fit(rows)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_the_network_is_nnml_of_the_same_settings_rows_and_seed(kind, dropout, device):
    X, Y = data()
    Y[:, 0] = 1  # so that every row says something
    Y[1] *= kind == "complete"  # as noes that are known do too
    known = (np.random.default_rng(0).random(Y.shape) < 0.9) | (Y > 0)
    labels = Labels.complete(Y) if kind == "complete" else Labels.masked(Y, known)
    net = network(rows_of(X, labels, device), dropout=dropout)
    how = dict(rate=0.05, batch_size=16, max_iter=5, tol=0, normalize=None, random_state=3)
    nnml = NNML(20, **how, dropout=dropout, device=device).fit(X, labels)
    assert nnml.n_iter_ == 5
    assert_allclose(net.W, nnml.model_.W, atol=1e-9)
    assert_allclose(net.H, nnml.model_.H, atol=1e-9)


@pytest.mark.parametrize("kind", ["positive-only", "complete", "masked"])
def test_rows_that_say_nothing_change_no_network(kind):
    X, Y = data()
    silent = np.arange(60) % 3 == 0
    Y[silent], Y[~silent, 0] = 0, 1
    known = ~silent[:, None] & (Y > -1)
    make = {"complete": Labels.complete, "positive-only": Labels.positive_only}
    labels = Labels.masked(Y, known) if kind == "masked" else make[kind](Y)
    net, wanted = network(rows_of(X, labels)), network(rows_of(X[~silent], labels[~silent]))
    assert_array_equal(net.W, wanted.W)
    assert_array_equal(net.H, wanted.H)


def test_no_cut_into_blocks_and_no_other_seed_of_numpy_changes_the_network():
    X, Y = data()
    wanted = network(rows_of(X, Y))
    for net in (network(rows_of(X, Y, n_blocks=n)) for n in (2, 5)):
        assert_array_equal(net.W, wanted.W)
        assert_array_equal(net.H, wanted.H)
    assert np.abs(network(rows_of(X, Y), seed=4).W - wanted.W).max() > 0.01


# All parts


def fitted(X, Y, scaling):
    """The parts of these rows, fitted beside a ridge regression."""
    rows = rows_of(X, Y, n_blocks=2)
    scaling = Scaling.of(scaling, rows.blocks, np.random.RandomState(0))
    return parts_of(X, Y, scaling).fit(rows)


def parts_of(X, Y, scaling):
    return Parts(Tacit().plan(X, Y), LIMITS, 0, scaling, FirstRidge(1.0, 0.0, 0.2))


@pytest.mark.parametrize("scaling", ["unit", "none", "fourier"])
@pytest.mark.parametrize("form", FORMS)
def test_nearest_rows_vote_by_the_cosine_of_features_without_waves_or_constant(form, scaling):
    X, Y = data()
    parts = fitted(form(X), Y, scaling)
    [near] = [voice.model for voice in parts.voices if voice.name == "nearest rows"]
    X = StandardScaler().fit_transform(X) if scaling == "fourier" else X
    wanted, cosines = np.zeros(Y.shape), cosine_similarity(X)
    for i in range(60):
        some = np.argsort(-cosines[i], kind="stable")[:NEAREST]
        votes = np.maximum(cosines[i, some], 0)
        wanted[i] = votes @ Y[some] / max(votes.sum(), 1e-300)
    [block] = rows_of(X, Y).blocks.parts
    assert_allclose(near.scores(block), wanted, atol=1e-9)


def test_rarity_is_the_log_of_a_share_and_links_are_ridge_regressions_on_all_other_labels():
    X, Y = data(n_labels=7)
    parts = fitted(X, Y, "none")
    assert_allclose(np.exp(parts.rarity), (Y.sum(axis=0) + 0.5) / 61)
    links = parts.links
    assert_array_equal(np.diag(links), 0)
    for j in range(7):
        others = np.arange(7) != j
        ridge = Ridge(alpha=_LINKED, fit_intercept=False).fit(Y[:, others], Y[:, j])
        assert_allclose(links[others, j], ridge.coef_, atol=1e-10)


def test_parts_that_the_blend_has_no_use_for_are_not_fitted():
    X, Y = data()
    rows, parts = rows_of(X, Y), parts_of(X, Y, Scaling("none"))
    every = parts.fit(rows).names()
    assert set(every) == {"ridge", "network", "nearest rows", "second look", "rarity"}
    for wanted in (("ridge",), ("ridge", "network"), ("ridge", "second look", "rarity")):
        assert set(parts.only(wanted).fit(rows).names()) == {*wanted, "rarity"}


def test_shortlists_tell_what_was_said_of_which_labels_and_which_rows_say_anything():
    X, Y = data(n_labels=9)
    Y[:20] = 0
    rows = rows_of(sp.csr_array(X), Y)
    W = np.random.default_rng(1).random((9, 9))
    scorers = Weights(W), SparseWeights(sp.csr_array(W), np.arange(9))
    for scorer, rough in zip(scorers, (False, True)):
        [(top, said, says_something, beyond)] = rows.blocks.sum(_shortlisted, scorer, 3, rough)
        S = with_constant(X) @ W
        assert_array_equal(top.indices, np.argsort(-S, axis=1)[:, :3])
        assert_allclose(top.scores, np.take_along_axis(S, top.indices, axis=1))
        assert_array_equal(said, np.take_along_axis(Y, top.indices, axis=1))
        assert_array_equal(says_something, Y.any(axis=1))
        assert_array_equal(beyond.said, Y[beyond.row, beyond.label])
        # Of a rough model what was said beyond the shortlists is there too, and some of the rest.
        assert beyond.said.sum() == rough * (Y.sum() - said.sum())
        assert (~beyond.said).any() == rough


def test_a_hundredth_of_the_labels_are_in_question_but_30_at_least_and_100_at_most():
    assert [listed(n) for n in (1, 29, 31, 3_000, 5_000, 10**6)] == [1, 29, 30, 30, 50, 100]


def test_the_second_look_reads_roots_of_unit_rows_and_standardised_ones_as_they_are(device):
    X, Y = data()
    X[0] *= -1
    unit = X / np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
    for form in FORMS:
        [block] = rows_of(form(X), Y, device).blocks.parts
        for kind in ("none", "unit", "idf"):
            read = second_look.rows_of(
                block, Scaling.of(kind, rows_of(X, Y).blocks, None)
            ).toarray()
            assert_allclose(read * np.abs(read), unit, atol=1e-7)
            assert (read[0] <= 0).all()
    [block] = rows_of(X, Y, device).blocks.parts
    read = second_look.rows_of(block, Scaling.of("standard", rows_of(X, Y).blocks, None))
    assert_allclose(read.toarray(), StandardScaler().fit_transform(X), atol=1e-6)
