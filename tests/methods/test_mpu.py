"""The laws of MPU: one level is PU logistic regression, and no row's own labels reach its stack."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit
from tacit import MPU, Labels
from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.backends.numpy import NumpyBackend
from tacit.basics.files import read_arrays, write_arrays
from tacit.blocks import Rows, write_shards
from tacit.methods import mpu
from tacit.methods.mpu.descent import Descent, feature_counts
from tacit.methods.mpu.folded_batches import FoldedBatches
from tacit.methods.mpu.minimise import Level
from tacit.metrics import best_threshold
from tacit.missing import estimate

EXACT = dict(solver="newton", tol=1e-9, normalize=None, fit_intercept=False, random_state=0)


def problem(n=300, d=6, n_labels=4, c=0.5, seed=0):
    """X, the truth by a logistic model, and what is said of it at rate c."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, n_labels))
    truth = rng.random((n, n_labels)) < expit(X @ W)
    return X, truth, truth & (rng.random(truth.shape) < c), W


def loss_of(W, X, said, c, reg=0.1):
    """J of (2), naively: P(said) = cσ(f)."""
    p = c * expit(X @ W)
    return -np.sum(np.where(said, np.log(p), np.log1p(-p))) + 0.5 * reg * np.sum(W * W)


def caught(monkeypatch):
    """What every level sees beside the features, as it is set: a list of {batch: predictions}."""
    found, beside = [], FoldedBatches.beside

    def catch(self, predicted):
        found.append(predicted)
        return beside(self, predicted)

    monkeypatch.setattr(FoldedBatches, "beside", catch)
    return found


# ---- one level


@pytest.mark.parametrize("labels", ["positive-only", "complete"])
def test_with_c_of_one_a_level_is_logistic_regression(device, labels):
    X, truth, _, _ = problem()
    Y = Labels.positive_only(truth) if labels == "positive-only" else Labels.complete(truth)
    model = MPU(1, c=1.0 if labels == "positive-only" else "global", reg=0.5, device=device,
                **EXACT).fit(X, Y)  # fmt: skip
    for label in range(truth.shape[1]):
        theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000)
        theirs.fit(X, truth[:, label])
        assert_allclose(model.model_.W[:, label], theirs.coef_[0], atol=1e-5)


def test_newtons_method_finds_the_minimum_of_the_likelihood_of_what_is_said(device):
    X, _, said, _ = problem()
    model = MPU(1, c=0.5, device=device, **EXACT).fit(X, said)
    for label in range(said.shape[1]):
        f = lambda w, s=said[:, label]: loss_of(w, X, s, 0.5)
        start = LogisticRegression(fit_intercept=False).fit(X, said[:, label]).coef_[0]
        assert_allclose(f(model.model_.W[:, label]), minimize(f, start, tol=1e-9).fun, rtol=1e-7)
    assert_allclose(model.history_[-1], loss_of(model.model_.W, X, said, 0.5), rtol=1e-9)


def test_a_known_c_finds_the_true_weights_where_plain_logistic_regression_does_not():
    X, _, said, W = problem(n=20_000, c=0.4)
    found = MPU(1, c=0.4, **EXACT).fit(X, said).model_.W
    plain = MPU(1, c=1.0, **EXACT).fit(X, said).model_.W
    assert np.abs(found - W).max() < 0.15
    assert np.abs(plain - W).max() > 0.4


@pytest.mark.parametrize("c", [0.5, 1.0, "learned"])
def test_newtons_method_reads_a_said_no_as_one(c):
    """Where every entry was said it is logistic regression of the truth, whatever c is."""
    X, truth, _, _ = problem()
    reviewed = Labels.positive_only(truth, no=1 - truth)
    found = MPU(1, c=c, reg=0.5, **EXACT).fit(X, reviewed).model_.W
    known = MPU(1, reg=0.5, **EXACT).fit(X, Labels.complete(truth)).model_.W
    assert_allclose(found, known, atol=1e-5)


@pytest.mark.parametrize("kind", ["positive-only", "reviewed", "masked"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_gradient_of_a_batch_is_that_of_the_loss(device, sparse, kind):
    """AdaGrad's first squares are those of the gradient; one batch of all rows has all of λ."""
    rng = np.random.default_rng(0)
    X, _, said, _ = problem(n=30)
    X = X * (rng.random(X.shape) < 0.5)
    X[:, 2], c, reg = 0, 0.3, 0.7
    observed = said | (rng.random(said.shape) < 0.5)
    noes = observed & ~said.astype(bool) & (kind == "reviewed")
    Y = Labels.masked(said, observed) if kind == "masked" else Labels.positive_only(said, no=noes)
    backend = get_backend(device)
    b = place(Rows(sp.csr_array(X) if sparse else X, Y), Placement(backend, "float64", None, False))
    W = rng.standard_normal((X.shape[1], 4))
    state = {"W": backend.asarray(W.copy()), "W²": backend.asarray(np.zeros_like(W))}
    counts = feature_counts(b, state["W"])
    Descent(0.1, reg, counts + (counts == 0)).update(state, b, backend.asarray(np.full((1, 4), c)))

    def loss(w):
        F = X @ w.reshape(W.shape)
        if kind == "masked":
            value = -np.sum(np.where(observed, log_expit(np.where(said, F, -F)), 0))
        else:
            silence = np.log1p(-np.where(noes, 1.0, c) * expit(F))
            value = -np.sum(np.where(said, np.log(c * expit(F)), silence))
        here = W.copy()
        here[2] = 0  # no row has feature 2: it is not touched
        return value + 0.5 * reg * np.sum((w.reshape(W.shape) * (here != 0)) ** 2)

    wanted = approx_fprime(W.ravel(), loss, 1e-6).reshape(W.shape)
    assert_allclose(np.sqrt(backend.to_numpy(state["W²"])), np.abs(wanted), atol=1e-4)
    stepped = W - 0.1 * np.sign(wanted) * (np.abs(wanted) > 1e-4)
    assert_allclose(backend.to_numpy(state["W"]), stepped, atol=1e-5)


def test_the_penalty_of_all_batches_adds_up_to_that_of_the_objective(monkeypatch):
    """Silent labels and c so small that data say nothing: what is left is λ, feature by feature."""
    X = sp.random_array((50, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    backend = get_backend("cpu")
    total, W = np.zeros(8), np.ones((8, 1))
    counts = np.maximum(np.diff(sp.csc_array(X).indptr), 1).astype(float)
    monkeypatch.setattr(
        type(backend), "adagrad_spmm",
        lambda self, theta, S, T, D, rate, rows, decay: np.add.at(total, rows, decay),
    )  # fmt: skip
    for start in range(0, 50, 7):
        part = X[start : start + 7]
        rows = Rows(part, Labels("positive-only", sp.csr_array((part.shape[0], 1), dtype=bool)))
        b = place(rows, Placement(backend, "float64", None, False))
        Descent(0.1, 0.7, counts).update({"W": W, "W²": W * 0}, b, np.ones((1, 1)))
    assert_allclose(total, 0.7 * (np.diff(sp.csc_array(X).indptr) > 0))


def test_sgd_comes_to_where_newtons_method_does():
    X, _, said, _ = problem(n=1000)
    plain = dict(levels=1, c=0.5, normalize=None, random_state=0)
    exact = MPU(solver="newton", tol=1e-9, **plain).fit(X, said)
    sgd = MPU(max_iter=100, batch_size=50, **plain).fit(X, said)
    assert sgd.history_[-1] < 1.01 * exact.history_[-1]
    assert (
        np.corrcoef(sgd.decision_function(X).ravel(), exact.decision_function(X).ravel())[0, 1]
        > 0.99
    )


def test_where_c_comes_in_what_was_rarely_said_stays_as_likely_to_be_said():
    """cσ(f') = σ(f) for small σ: by the constant feature, the last of X, and by nothing else."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((50, 2)), np.ones((50, 1)), rng.random((50, 3))])
    W, c = rng.standard_normal((6, 4)) * 0.3, np.array([[0.05, 0.2, 0.5, 1.0]])
    W[2] = -11

    def level(fit_intercept):
        placement = SimpleNamespace(fit_intercept=fit_intercept)
        return Level(SimpleNamespace(n_features=3, placement=placement), None, c)

    louder = level(fit_intercept=True).shift_intercept_by_log_c(W)
    assert_allclose(c * expit(X @ louder), expit(X @ W), rtol=0.1)
    assert_array_equal(np.delete(louder, 2, axis=0), np.delete(W, 2, axis=0))
    assert_array_equal(level(fit_intercept=False).shift_intercept_by_log_c(W), W)


@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_c_comes_in_once_a_training_after_plain_logistic_regression(monkeypatch, solver):
    X, _, said, _ = problem()
    met, louder = [], Level.shift_intercept_by_log_c

    def note(self, W):
        met.append(np.array(W))
        return louder(self, W)

    monkeypatch.setattr(Level, "shift_intercept_by_log_c", note)
    options = dict(levels=1, solver=solver, tol=0, random_state=0)
    MPU(c=0.3, max_iter=6, **options).fit(X, said)
    plain = MPU(c=1.0, max_iter=2 if solver == "sgd" else 1, **options).fit(X, said)
    assert len(met) == (1 if plain.max_iter == 1 else 2)
    assert_array_equal(met[0], plain.model_.W)


def test_silence_has_the_likelihood_that_geneml_gives_it(device):
    """The kernel that GenEML climbs, with μ = c and the scores of MPU, is minus MPU's loss."""
    X, _, said, _ = problem(n=50)
    model = MPU(1, c=0.3, device=device, **EXACT).fit(X, said)
    backend, n_labels = get_backend(device), said.shape[1]
    b = place(Rows(X, Labels.positive_only(said)), Placement(backend, "float64", None, False))
    F = backend.asarray(model.decision_function(X))
    zeros = backend.asarray(np.zeros(50))
    mu = backend.asarray(np.full((1, n_labels), 0.3))
    at = backend.exposed(F, mu, b.Y, None, slice(0, 50), zeros, zeros[:n_labels])
    likelihood = float(backend.to_numpy(at.rows[0]).sum())
    assert_allclose(-likelihood, loss_of(model.model_.W, X, said, 0.3, reg=0))


# ---- c


def test_the_likelihood_finds_c_of_a_well_specified_model_better_the_more_rows_there_are():
    errors = []
    for n in (1_000, 20_000):
        found = [
            MPU(1, c="learned", reg=0.01, solver="newton", normalize=None, max_iter=2)
            .fit(*_said(problem(n=n, c=0.6, seed=seed))).c_
            for seed in range(2)
        ]  # fmt: skip
        errors.append(np.abs(np.array(found) - 0.6))
    assert errors[1].max() < 0.05
    assert errors[1].mean() < 0.6 * errors[0].mean()


def _said(problem):
    return problem[0], problem[2]


@pytest.mark.parametrize("by", ["global", "labels"])
def test_elkan_and_notos_estimate_is_the_mean_of_g_over_the_held_out_said(by):
    X, _, said, _ = problem(n=500)
    model = MPU(1, c=by, cv=5, **EXACT).fit(X, said)
    plain = MPU(1, c=1.0, cv=5, **EXACT)
    dealt = np.random.RandomState(0).randint(2**31)  # of `_folded_batches`
    order = _order(500, 100, dealt)
    held = order[:100]
    rest = np.setdiff1d(np.arange(500), held)
    g = plain.fit(X[rest], said[rest]).predict_proba(X[held])
    wanted = g[said[held]].mean()
    if by == "global":
        assert_allclose(model.c_, wanted, rtol=1e-6)
    else:
        means = np.array([g[said[held][:, j], j].mean() for j in range(4)])
        counts = said[held].sum(axis=0)
        assert_allclose(model.c_, (counts * means + 10 * wanted) / (counts + 10), rtol=1e-6)


def _order(n, size, seed):
    """The rows of batches in turn, as `Blocks.batches` deals those of one block."""
    rng = np.random.default_rng(seed)
    rng.permutation(1)  # the order of the blocks
    return rng.permutation(n)


def test_how_much_is_missing_is_told_from_c():
    X, truth, said, _ = problem(n=5_000, c=0.6)
    model = MPU(1, c="learned", reg=0.01, solver="newton", normalize=None).fit(X, said)
    found = estimate(model, X, Labels.positive_only(said))
    hidden = truth.sum(axis=0) - said.sum(axis=0)
    with pytest.raises(ValueError, match=r"Y has shape \(5000, 4\); for this X and model"):
        estimate(model, X[:10], Labels.positive_only(said))
    assert (found.low <= hidden).all() and (hidden <= found.high).all()  # noqa: PT018


# ---- levels


def test_no_rows_own_labels_change_what_the_next_level_sees_of_it(monkeypatch):
    X, _, said, _ = problem(n=60)
    found = caught(monkeypatch)
    changed = said.copy()
    changed[17] = ~changed[17]
    for Y in (said, changed):
        MPU(3, c=0.5, top=None, max_iter=3, batch_size=5, random_state=0).fit(X, Y)
    order = _order(60, 5, np.random.RandomState(0).randint(2**31))
    t, place_ = divmod(int(np.flatnonzero(order == 17)[0]), 5)
    first, second = found[0], found[2]  # of level 0, before and after
    assert_array_equal(first[t][place_], second[t][place_])
    others = [t for t in first if not np.array_equal(first[t], second[t])]
    assert len(others) >= 8  # all folds but its own were predicted with its labels


def test_the_stack_is_trained_on_what_models_of_other_rows_predict(monkeypatch):
    """Figure 4, by hand: five models, each of all rows but a fifth, and one level on top."""
    X, _, said, _ = problem(n=100)
    found = caught(monkeypatch)
    model = MPU(2, c=0.5, cv=5, **EXACT).fit(X, said)
    order = _order(100, 20, np.random.RandomState(0).randint(2**31))
    stacked = np.empty(said.shape)
    for fold in range(5):
        held = order[20 * fold : 20 * fold + 20]
        rest = np.setdiff1d(np.arange(100), held)
        stacked[held] = MPU(1, c=0.5, **EXACT).fit(X[rest], said[rest]).predict_proba(X[held])
        assert_allclose(found[0][fold], stacked[held], atol=1e-4)
    above = MPU(1, c=0.5, **EXACT).fit(np.hstack([X, stacked]), said)
    assert_allclose(model.stack_, above.model_.W, atol=2e-3)


@pytest.mark.parametrize("top", [None, 2])
def test_inference_goes_through_all_levels(device, top):
    X, _, said, _ = problem(n=80)
    model = MPU(3, c=0.5, top=top, max_iter=3, normalize="l2", device=device, random_state=0)
    model.fit(X, said)
    Z = np.hstack([X / np.linalg.norm(X, axis=1, keepdims=True), np.ones((80, 1))])
    d, n_labels = Z.shape[1], said.shape[1]
    assert model.stack_.shape == (2 * d + 3 * n_labels, n_labels)
    F = Z @ model.model_.W
    for W in (model.stack_[: d + n_labels], model.stack_[d + n_labels :]):
        P = expit(F)
        if top:
            P[np.sort(F, axis=1)[:, [-top]] > F] = 0
        Z = np.hstack([Z, P])
        F = Z @ W
    assert_allclose(model.decision_function(X), F, atol=1e-6)


def test_a_level_on_top_of_related_labels_ranks_better_than_the_base_alone():
    """The last label applies between two others: not linear in X, but in what is said of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    score = X @ rng.standard_normal(5) / np.linalg.norm(X, axis=1)
    truth = np.stack([score > -0.4, score > 0.4, (score > -0.4) & (score < 0.4)], axis=1)
    fitted = lambda levels: MPU(levels, c=1.0, random_state=0).fit(X[:2000], truth[:2000])
    auc = lambda model: roc_auc_score(truth[2000:, 2], model.decision_function(X[2000:])[:, 2])
    assert auc(fitted(1)) < 0.6
    assert auc(fitted(2)) > 0.9


# ---- prediction


def test_what_is_said_is_true_and_was_said_and_silence_is_weighed_by_bayes():
    X, _, said, _ = problem()
    model = MPU(2, c=0.3, random_state=0).fit(X, said)
    true, heard = model.predict_proba(X), model.predict_proba(X, what="said")
    assert_allclose(heard, 0.3 * true)
    found = model.complete(X, said, k=4)
    wanted = ((true - heard) / (1 - heard))[found.row, found.label]
    assert_allclose(found.probability, wanted)
    with pytest.raises(ValueError, match=r'what must be "true" or "said"; got .heard.'):
        model.predict_proba(X, what="heard")


def test_what_a_mask_leaves_out_was_not_silent_and_is_as_likely_as_its_score_says():
    X, _, said, _ = problem()
    model = MPU(1, c=0.3, random_state=0).fit(X, said)
    found = model.complete(X, Labels.masked(said, said), k=4)
    assert_allclose(found.probability, model.predict_proba(X)[found.row, found.label])


def test_a_tuned_threshold_is_the_best_one_on_a_fold_that_was_held_out():
    X, _, said, _ = problem(n=1000, c=0.4)
    options = dict(levels=1, c=0.4, **EXACT)
    tuned = MPU(threshold="tuned", **options).fit(X, said)
    order = _order(1000, 200, np.random.RandomState(0).randint(2**31))
    held, rest = order[:200], order[200:]
    P = MPU(**options).fit(X[rest], said[rest]).predict_proba(X[held])
    wanted = best_threshold(Labels.positive_only(said[held]), P, c=0.4)
    assert_allclose(tuned.threshold_, wanted, rtol=1e-4)
    assert_array_equal(tuned.predict(X).toarray(), tuned.predict_proba(X) > tuned.threshold_)


def test_entries_that_nobody_observed_teach_nothing():
    X, truth, _, _ = problem()
    observed = np.random.default_rng(1).random(truth.shape) < 0.6
    other = np.where(observed, truth, ~truth)
    models = [
        MPU(1, random_state=0).fit(X, Labels.masked(Y & observed, observed)) for Y in (truth, other)
    ]
    assert_array_equal(models[0].model_.W, models[1].model_.W)
    assert_array_equal(models[0].c_, 1)


# ---- streams, files and bad input


def test_a_stream_of_batches_is_the_pass_of_a_fit(device):
    """With one mini-batch a call, c = 1 and the first call's start, a stream is plain AdaGrad."""
    X, _, said, _ = problem(n=120)
    options = dict(levels=1, c=1.0, batch_size=200, max_iter=1, device=device, random_state=0)
    whole = MPU(**options).fit(X, said)
    stream = MPU(**options).partial_fit(X, said)
    assert_allclose(stream.decision_function(X), whole.decision_function(X))
    whole.partial_fit(X, said)  # goes on from there
    stream.partial_fit(X, said)
    assert_allclose(stream.decision_function(X), whole.decision_function(X))
    for _ in range(30):
        stream.partial_fit(X, said)
    assert len(stream.history_) == 32
    assert stream.history_[-1] < 0.9 * stream.history_[0]


def test_a_stream_may_have_features_that_no_row_has_yet(device):
    X, _, said, _ = problem(n=40)
    X[:20, 3] = 0
    stream = MPU(1, c=0.5, normalize=None, device=device)
    stream.partial_fit(sp.csr_array(X[:20]), said[:20])
    assert_array_equal(stream.model_.W[3], 0)
    stream.partial_fit(sp.csr_array(X[20:]), said[20:])
    assert (stream.model_.W[3] != 0).all()


def test_partial_fit_says_what_it_needs():
    X, _, said, _ = problem(n=40)
    with pytest.raises(ValueError, match=r"partial_fit trains the base level alone.*levels=3"):
        MPU(c=0.5).partial_fit(X, said)
    with pytest.raises(ValueError, match=r"in mini-batches.*solver='newton'"):
        MPU(1, c=0.5, solver="newton").partial_fit(X, said)
    stream = MPU(1, c=0.5).partial_fit(X, said)
    with pytest.raises(ValueError, match="this batch has 3 positive-only labels"):
        stream.partial_fit(X, said[:, :3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_may_be_as_many_as_fill_half_of_the_device_twice_over(monkeypatch, dtype):
    X, _, said, _ = problem(n=40, d=2, n_labels=20)
    model = MPU(10, c=0.5, max_iter=1, random_state=0)
    most = (3 + 9 * 20) * 20  # of the last level
    room = 2 * 2 * most * np.dtype(dtype).itemsize
    monkeypatch.setattr(mpu, "_MOST_WEIGHTS", most - 1)
    with pytest.raises(ValueError, match=r"MPU's weights would lay out 183 × 20 .* fewer levels"):
        model.fit(X.astype(dtype), said)  # where memory is the host's
    monkeypatch.setattr(NumpyBackend, "room", lambda self: room)
    assert model.fit(X.astype(dtype), said).model_.W.dtype == dtype
    monkeypatch.setattr(NumpyBackend, "room", lambda self: room - 1)
    with pytest.raises(ValueError, match="more than the 3,659 allowed"):
        model.fit(X.astype(dtype), said)


def test_shards_larger_than_memory_are_placed_anew_in_every_pass(tmp_path):
    X, _, said, _ = problem(n=90)
    rows = Rows(sp.csr_array(X), Labels.positive_only(said))
    shards = write_shards(tmp_path, ((part.X, part.labels) for part in rows.cut(2)))
    model = MPU(2, c=0.5, max_iter=2, random_state=0).fit(shards)
    assert model.stack_.shape == (7 + 4, 4)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_saved_model_is_the_same_and_a_damaged_one_is_told(tmp_path, levels):
    X, _, said, _ = problem(n=50)
    model = MPU(levels, max_iter=2, threshold="tuned", random_state=0).fit(X, said)
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_array_equal(loaded.predict(X).toarray(), model.predict(X).toarray())
    assert_array_equal(loaded.c_, model.c_)


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("W", lambda W: W[:-1], r"its W has shape \(6, 4\)"),
        ("W", lambda W: None, "its W is missing"),
        ("stack", lambda stack: stack[:-1], r"its stack of shape \(25, 4\) .* does not fit its W"),
        ("stack", lambda stack: stack.astype(np.float32), "float32 does not fit its W"),
        ("c", lambda c: None, "its c is missing"),
        ("c", lambda c: c - c, "its c is not above 0 and at most 1"),
        ("c_interval", lambda ends: ends[:, :2], r"its c_interval has shape \(2, 2\)"),
        ("c_overall", lambda ends: ends.astype(int), "its c_overall is of int64"),
        ("top", lambda top: 0, "its top is 0"),
        ("how", lambda how: None, "its how None"),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_told(tmp_path, name, damage, told):
    X, _, said, _ = problem(n=50)
    MPU(3, top=2, max_iter=1, random_state=0).fit(X, said).save(tmp_path / "model")
    header, arrays = read_arrays(tmp_path / "model")
    parts = header["model"] if name in header["model"] else arrays
    parts[name] = damage(parts[name])
    kept = {key: array for key, array in arrays.items() if array is not None}
    write_arrays(tmp_path / "bad", header, kept)
    with pytest.raises(ValueError, match=told):
        tacit.load(tmp_path / "bad")


def test_a_loaded_model_says_how_its_rates_were_got(tmp_path):
    X, _, said, _ = problem(n=50)
    model = MPU(1, max_iter=2, random_state=0).fit(X, said)
    model.save(tmp_path / "model")
    wanted, found = (m.rates(X, said) for m in (model, tacit.load(tmp_path / "model")))
    assert_array_equal(found.low, wanted.low)
    assert found.how == wanted.how
    assert "e1 on held-out rows" in found.how


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (dict(c=0), 'c must be a number above 0 and at most 1, "global"'),
        (dict(c="each"), 'c must be a number above 0 and at most 1, "global"'),
        (dict(levels=0), "levels must be an int of at least 1; got 0"),
        (dict(cv=1), "cv must be an int of at least 2; got 1"),
        (dict(threshold="best"), 'threshold must be a number of at least 0, or "tuned"'),
        (dict(estimator="e4"), "estimator must be one of 'e1', 'e2', 'e3'; got 'e4'"),
    ],
)
def test_bad_parameters_get_one_sentence(given, told):
    with pytest.raises(ValueError, match=told):
        MPU(**given).fit(np.eye(3), np.eye(3))
