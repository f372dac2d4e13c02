"""The laws of SEM and SEM-K: shares of a softmax, streams, held-out rows and the kernel head."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.special import expit, log_expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

import tacit
from tacit import Labels
from tacit.basics.files import read_arrays, write_arrays
from tacit.blocks import Rows
from tacit.blocks.rows import rows_of_fold
from tacit.methods.sem import SEM
from tacit.metrics import ndcg_at_k

AS_PUBLISHED = dict(updates="gauss-seidel", instance_weight="uniform")
PLAIN = AS_PUBLISHED | dict(rank=3, rate=0.3, batch_size=16, tol=0, random_state=0)
UPDATES = ["gauss-seidel", "one-pass"]
INTERCEPT_REG = 0.01


def problem(n=60, d=10, n_labels=7, seed=0):
    """X, labels that depend on it, and who was observed; one row has no labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal((d, 2)) @ rng.standard_normal((2, n_labels))
    Y = scores > scores.max(1, keepdims=True) - 1
    Y[3] = False
    return X, Y.astype(int), rng.random(Y.shape) < 0.7


def loss_of(model, X, Y):
    """J of (1) from the scores, which are log p."""
    said = Y.any(1)
    G = Y[said] / Y[said].sum(1, keepdims=True)
    return -(G * model.decision_function(X[said])).sum()


def identical(model, other):
    assert model.history_ == other.history_
    assert_array_equal(model.model_.W, other.model_.W)
    assert_array_equal(model.model_.H, other.model_.H)


# ---- the softmax head


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_scores_are_the_log_softmax_of_the_code_and_probabilities_its_shares(
    device, sparse, fit_intercept
):
    X, Y, _ = problem()
    given = sp.csr_array(X) if sparse else X
    how = PLAIN | dict(normalize="l2", fit_intercept=fit_intercept)
    model = SEM(**how, max_iter=9, device=device).fit(given, Y)
    unit = normalize(X)
    U = expit((np.hstack([unit, np.ones((60, 1))]) if fit_intercept else unit) @ model.model_.W)
    assert_allclose(model.transform(given), U, rtol=1e-10)
    assert U.shape == (60, 3)
    V, b, one = np.split(model.model_.H, [3, 4], axis=1)
    assert_array_equal(one, 1)
    scores = model.decision_function(given)
    assert_allclose(scores, log_softmax(U @ V.T + b.T, axis=1), rtol=1e-10, atol=1e-12)
    assert_allclose(np.exp(scores).sum(1), 1, rtol=1e-12)
    count = Y.sum() / Y.any(1).sum()
    assert_allclose(model.label_count_, count)
    shares = np.minimum(1, count * np.exp(scores))
    assert (shares == 1).any()
    assert_allclose(model.predict_proba(given), shares, rtol=1e-10)
    assert_array_equal(model.predict(given).toarray(), shares > 0.5)


def test_the_best_labels_by_an_index_are_those_of_the_scores():
    X, Y, _ = problem()
    model = SEM(**PLAIN, max_iter=4).fit(X, Y)
    order = np.argsort(-model.decision_function(X), axis=1, kind="stable")[:, :3]
    assert_array_equal(model.top_k(X, 3).indices, order)
    assert_array_equal(model.top_k(X, 3, index=model.build_index()).indices, order)


@pytest.mark.parametrize("instance_weight", ["uniform", "label_count"])
@pytest.mark.parametrize("updates", UPDATES)
def test_passes_lower_the_objective(updates, instance_weight):
    X, Y, _ = problem()
    options = dict(updates=updates, instance_weight=instance_weight, max_iter=12)
    model = SEM(**PLAIN | options).fit(X, Y)
    assert len(model.history_) == 12
    assert (np.diff(model.history_) < 0).all()
    first = SEM(**PLAIN | options | dict(max_iter=1)).fit(X, Y)
    assert loss_of(model, X, Y) < 0.8 * loss_of(first, X, Y)


def test_the_history_is_the_loss_of_the_batches_as_they_were_met():
    X, Y, _ = problem()
    whole = PLAIN | dict(batch_size=60)
    for passes in (1, 2, 3):  # the one batch of a pass is met with the model of the pass before
        longer = SEM(**whole, max_iter=passes + 1).fit(X, Y)
        model = SEM(**whole, max_iter=passes).fit(X, Y)
        assert_allclose(longer.history_[passes], loss_of(model, X, Y), rtol=1e-10)


@pytest.mark.parametrize("options", [{}, dict(beta=0.5), dict(updates="one-pass", beta=0.5)])
def test_every_device_learns_the_same(options):
    pytest.importorskip("torch")
    X, Y, _ = problem(n_labels=40)
    models = [SEM(**PLAIN | options, max_iter=3, device=d).fit(X, Y) for d in ("cpu", "torch")]
    assert_allclose(models[0].history_, models[1].history_, rtol=1e-9)
    assert_allclose(*(model.decision_function(X) for model in models), rtol=1e-7, atol=1e-9)


def test_rows_without_labels_change_no_score():
    X, Y, _ = problem()
    extra = np.random.default_rng(1).standard_normal((9, 10))
    options = PLAIN | dict(
        normalize="l2", batch_size=100, max_iter=5
    )  # one batch: others would be cut elsewhere
    without = SEM(**options).fit(X, Y)
    added = SEM(**options).fit(np.vstack([X, extra]), np.vstack([Y, np.zeros((9, 7), int)]))
    assert added.label_count_ == without.label_count_
    assert_allclose(added.decision_function(X), without.decision_function(X), rtol=1e-8)


def test_only_known_entries_of_masked_labels_are_read():
    X, Y, observed = problem()
    options = PLAIN | dict(max_iter=4)
    everything = Labels.masked(Y, np.ones_like(Y))
    assert_allclose(
        SEM(**options).fit(X, everything).decision_function(X),
        SEM(**options).fit(X, Y).decision_function(X),
        rtol=1e-8,
    )
    # A label of which nothing is known competes with nobody, so its own score never matters.
    observed[:, 2] = False
    kept = np.arange(7) != 2
    masked = SEM(**options).fit(X, Labels.masked(Y * observed, observed))
    fewer = SEM(**options).fit(X, Labels.masked((Y * observed)[:, kept], observed[:, kept]))
    assert_allclose(masked.history_, fewer.history_, rtol=1e-9)
    assert_allclose(masked.transform(X), fewer.transform(X), rtol=1e-8)


def test_positive_only_labels_are_refused():
    X, Y, _ = problem()
    with pytest.raises(ValueError, match="SEM cannot use positive-only labels, only complete or"):
        SEM(**PLAIN).fit(X, Labels.positive_only(Y))


@pytest.mark.parametrize("log_q", [False, True])
def test_drawn_labels_rank_nearly_as_well_as_all(log_q):
    X, Y, _ = problem(n=400, n_labels=60)
    options = PLAIN | dict(batch_size=4, max_iter=5)
    best = {
        beta: SEM(**options, beta=beta, log_q=log_q).fit(X, Y).score(X, Y) for beta in (None, 0.5)
    }
    assert best[0.5] > best[None] - 0.1
    frequent = np.tile(Y.sum(0), (400, 1))
    assert best[0.5] > ndcg_at_k(Labels.complete(Y), frequent, 5) + 0.1


def test_float32_stays_float32():
    X, Y, _ = problem()
    for head in ("softmax", "kernel"):
        model = SEM(**PLAIN, head=head, n_components=20, max_iter=2).fit(X.astype(np.float32), Y)
        assert model.decision_function(X).dtype == np.float32


# ---- streams


def test_one_batch_of_all_rows_is_one_pass_of_fit():
    """From the same W: `fit` has drawn the seed of its batches before it."""
    X, Y, _ = problem()
    options = PLAIN | dict(batch_size=60)
    begun = np.random.RandomState(0)
    begun.randint(2**31)
    stream = SEM(**options | dict(random_state=begun)).partial_fit(X, Y)
    whole = SEM(**options, max_iter=1).fit(X, Y)
    assert_allclose(stream.history_, whole.history_, rtol=1e-12)
    assert stream.label_count_ == whole.label_count_
    assert_allclose(stream.decision_function(X), whole.decision_function(X), rtol=1e-8)


def test_partial_fit_goes_on_where_fit_or_the_batch_before_stopped():
    X, Y, _ = problem()
    options = PLAIN | dict(batch_size=60)
    longer = SEM(**options, max_iter=3).fit(X, Y)
    model = SEM(**options, max_iter=2).fit(X, Y).partial_fit(X, Y)  # AdaGrad's squares go on too
    assert_allclose(model.history_, longer.history_, rtol=1e-9)
    assert_allclose(model.decision_function(X), longer.decision_function(X), rtol=1e-8)
    stream = SEM(**options)
    for _ in range(8):
        stream.partial_fit(X, Y)
    assert (np.diff(stream.history_) < 0).all()
    assert stream.n_iter_ == 8
    identical(stream.fit(X, Y), SEM(**options).fit(X, Y))  # and fit begins anew


def test_a_stream_counts_the_labels_of_all_its_rows():
    X, Y, _ = problem()
    stream = SEM(**PLAIN)
    for rows in (slice(0, 20), slice(20, 60)):
        stream.partial_fit(X[rows], Y[rows])
    assert_allclose(stream.label_count_, Y.sum() / Y.any(1).sum())


def test_partial_fit_refuses_what_it_cannot_go_on_with(tmp_path, monkeypatch):
    X, Y, observed = problem()
    model = SEM(**PLAIN).partial_fit(X, Y)
    with pytest.raises(ValueError, match="X has 9 features, but SEM is expecting 10"):
        model.partial_fit(X[:, :9], Y)
    with pytest.raises(ValueError, match=r"^this batch has 6 complete labels, the first had 7 com"):
        model.partial_fit(X, Y[:, :6])
    with pytest.raises(ValueError, match=r"^this batch has 7 masked labels, the first had 7 com"):
        model.partial_fit(X, Labels.masked(Y * observed, observed))
    model.partial_fit(X, Y)  # and the stream goes on
    for options in (dict(head="kernel"), dict(early_stopping=True)):
        with pytest.raises(ValueError, match=r"^partial_fit is for head=.softmax. and early_stopp"):
            SEM(**PLAIN | options).partial_fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="cannot go on with this SEM, which was loaded"):
        tacit.load(tmp_path / "model").partial_fit(X, Y)


def test_a_batch_that_was_refused_leaves_the_model_as_it_was():
    X, Y, _ = problem()
    model = SEM(**PLAIN).partial_fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"^this batch has 6 complete labels"):
        model.partial_fit(X, Y[:, :6])
    assert_array_equal(model.predict_proba(X), before)


# ---- held-out rows


def noisy():
    """Labels with little to learn, so that a fast network soon learns too much."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((80, 30)), (rng.random((80, 8)) < 0.3).astype(int)
    held = rows_of_fold(Rows(X, Labels.complete(Y)), 0, 4, True)
    return X, Y, held.X, held.labels.positives.toarray()


EARLY = PLAIN | dict(early_stopping=True, validation_fraction=0.25, max_iter=30)


def test_early_stopping_keeps_the_pass_of_least_held_out_loss_and_stops():
    X, Y, X_held, Y_held = noisy()
    model = SEM(**EARLY).fit(X, Y)
    assert len(X_held) == 20
    assert 2 < model.n_iter_ < 30
    assert np.argmin(model.history_) == model.n_iter_ - 2  # stopped by the first pass to do worse
    assert_allclose(loss_of(model, X_held, Y_held), min(model.history_), rtol=1e-10)
    # Pass by pass, the history is the held-out loss of the model as it was then.
    for passes in range(1, model.n_iter_):
        shorter = SEM(**EARLY | dict(max_iter=passes)).fit(X, Y)
        assert_allclose(loss_of(shorter, X_held, Y_held), model.history_[passes - 1], rtol=1e-10)


def test_early_stopping_learns_nothing_from_the_rows_held_out():
    X, Y, X_held, _ = noisy()
    held = (X[:, None] == X_held).all(2).any(1)
    assert held.sum() == 20
    other = np.where(held[:, None], 1 - Y, Y)
    options = EARLY | dict(max_iter=1)
    model, changed = (SEM(**options).fit(X, labels) for labels in (Y, other))
    assert model.history_ != changed.history_
    assert_array_equal(changed.decision_function(X), model.decision_function(X))
    assert changed.label_count_ == model.label_count_


# ---- checkpoints and files

FITS = {
    "plain": dict(),
    "drawn labels": dict(beta=0.5, updates="one-pass"),
    "early stopping": dict(early_stopping=True, validation_fraction=0.25),
    "kernel": dict(head="kernel", n_components=30),
    "kernel, early stopping": dict(head="kernel", n_components=30, early_stopping=True),
}


@pytest.mark.parametrize("name", FITS)
def test_a_resumed_fit_ends_in_the_very_same_model(tmp_path, device, name):
    X, Y, *_ = noisy()
    options = PLAIN | FITS[name] | dict(device=device)
    whole = SEM(**options, max_iter=12).fit(X, Y)
    for passes in (1, 2, 12, 12):  # each goes on from the checkpoint of the one before
        resumed = SEM(**options, max_iter=passes).fit(X, Y, checkpoint=tmp_path / "fit")
    identical(resumed, whole)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*FITS, "no intercept"])
def test_a_saved_model_predicts_the_same(tmp_path, name, dtype):
    X, Y, _ = problem()
    X = X.astype(dtype)
    options = FITS.get(name, dict(fit_intercept=False))
    model = SEM(**PLAIN | options, max_iter=3).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model")
    for predict in (
        lambda m: m.predict_proba(X),
        lambda m: m.transform(X),
        lambda m: m.top_k(X, 3).indices,
        lambda m: m.complete(X, Y, k=3),
    ):
        assert_array_equal(predict(loaded), predict(model))
    assert loaded.history_ == model.history_


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("H", (7, 4)),
        ("phases", (29,)),
        ("frequencies", (3, 29)),
    ],
)
def test_a_file_whose_arrays_do_not_fit_is_refused(tmp_path, name, shape):
    X, Y, _ = problem()
    SEM(**PLAIN, head="kernel", n_components=30, max_iter=1).fit(X, Y).save(tmp_path / "model")
    header, arrays = read_arrays(tmp_path / "model")
    write_arrays(tmp_path / "other", header, arrays | {name: np.ones(shape)})
    with pytest.raises(ValueError, match="does not hold a model of this tacit"):
        tacit.load(tmp_path / "other")


# ---- SEM-K


def features(model, X):
    """ψ of (2)."""
    angle = model.transform(X) @ model.model_.frequencies + model.model_.phases
    return np.sqrt(2 / len(model.model_.phases)) * np.cos(angle)


@pytest.mark.parametrize("reg", [0.1, 1.0])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_the_kernel_head_is_scikit_learns_logistic_regression(device, masked, reg):
    X, Y, observed = problem(n=200)
    labels = Labels.masked(Y * observed, observed) if masked else Y
    options = dict(head="kernel", n_components=25, reg=reg, max_iter=3, device=device)
    model = SEM(**PLAIN | options).fit(X, labels)
    psi = features(model, X)
    assert_allclose(
        model.decision_function(X), psi @ model.model_.H[:, :-1].T + model.model_.H[:, -1],
        rtol=1e-9, atol=1e-11,
    )  # fmt: skip
    assert_allclose(model.predict_proba(X), expit(model.decision_function(X)), rtol=1e-10)
    total = wanted = 0.0
    for j in range(7):
        rows = observed[:, j] if masked else np.full(200, True)
        sign = 2 * Y[rows, j] - 1

        def objective(z, psi=psi[rows], sign=sign):
            penalty = reg * (z[:-1] ** 2).sum() + INTERCEPT_REG * z[-1] ** 2
            return -log_expit(sign * (psi @ z[:-1] + z[-1])).sum() + penalty / 2

        # A column of c with the penalty reg is one of 1 with the penalty reg / c².
        c = np.sqrt(reg / INTERCEPT_REG)
        sk = LogisticRegression(C=1 / reg, fit_intercept=False, tol=1e-8, solver="newton-cholesky")
        z = sk.fit(np.hstack([psi[rows], np.full((len(sign), 1), c)]), sign).coef_[0]
        z[-1] *= c
        total += objective(model.model_.H[j])
        wanted += objective(z)
    assert wanted - 1e-6 <= total <= wanted * (1 + 1e-3)


def test_gamma_is_one_over_the_median_of_squared_distances_of_the_codes():
    X, Y, _ = problem()
    options = PLAIN | dict(head="kernel", n_components=20, max_iter=2)
    model = SEM(**options).fit(X, Y)
    gamma = 1 / np.median(pdist(model.transform(X), "sqeuclidean"))
    told = SEM(**options, gamma=gamma).fit(X, Y)
    quarter = SEM(**options, gamma=gamma / 4).fit(X, Y)
    found, wanted, half = (m.model_.frequencies for m in (model, told, quarter))
    assert_allclose(found, wanted, rtol=1e-9)
    assert_allclose(wanted / 2, half)


def test_many_features_are_the_gaussian_kernel_of_the_linear_codes():
    X, Y, _ = problem()
    how = PLAIN | dict(normalize="l2", head="kernel", n_components=500, gamma=0.7)
    model = SEM(**how, max_iter=8).fit(X, Y)
    codes = np.hstack([normalize(X), np.ones((60, 1))]) @ model.model_.W
    assert_allclose(model.transform(X), codes, rtol=1e-10)
    wanted = rbf_kernel(codes, gamma=0.7)
    assert wanted.min() < 0.3
    psi = features(model, X)
    assert np.abs(psi @ psi.T - wanted).mean() < 0.05


def test_the_kernel_head_ranks_by_the_code_of_the_softmax():
    X, Y, _ = problem()
    options = PLAIN | dict(max_iter=5, n_components=50)
    kernel, softmax = (SEM(**options, head=head).fit(X, Y) for head in ("kernel", "softmax"))
    assert_array_equal(kernel.model_.W, softmax.model_.W)
    assert kernel.history_ == softmax.history_
    assert_allclose(expit(kernel.transform(X)), softmax.transform(X), rtol=1e-12)


# ---- parameters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0),
        ("head", "linear"),
        ("beta", 0.0),
        ("beta", "many"),
        ("log_q", 1),
        ("updates", "jacobi"),
        ("instance_weight", "count"),
        ("rate", 0.0),
        ("batch_size", 0),
        ("max_iter", 0),
        ("tol", -1.0),
        ("early_stopping", None),
        ("validation_fraction", 0.0),
        ("validation_fraction", 0.6),
        ("gamma", 0.0),
        ("n_components", 0),
        ("reg", 0.0),
        ("normalize", "l1"),
        ("k", 0),
    ],
)
def test_a_parameter_out_of_range_names_itself(name, value):
    X, Y, _ = problem()
    for fit in (SEM.fit, SEM.partial_fit):
        with pytest.raises(ValueError, match=rf"{name} must be .*; got {value!r}"):
            fit(SEM(**PLAIN | {name: value}), X, Y)
