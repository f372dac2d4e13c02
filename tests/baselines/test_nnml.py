import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.preprocessing import normalize

import tacit.saved
from tacit.baselines import NNML, Ridge
from tacit.engines.network import Network
from tacit.labels import Labels

RATE, EPSILON = 0.05, 1e-8


def small(**params):
    return NNML(**dict(rank=6, dropout=0, rate=RATE, tol=0, random_state=0) | params)


def start(n_features, rank):
    """The first W of `random_state=0`; a fit draws the seed of its batches before it."""
    rng = np.random.RandomState(0)
    rng.randint(2**31)
    return 0.1 * rng.standard_normal((n_features, rank))


def by_the_book(X, A, rank, n_steps):
    """W, V and b after some full-batch AdaGrad steps on the known entries of A, entry by entry."""
    known = ~np.isnan(A)
    yes, said = np.nansum(A, axis=0), known.sum(axis=0)
    rate = (yes + 0.5) / (said + 1)
    theta = [start(X.shape[1], rank), np.zeros((A.shape[1], rank)), np.log(rate / (1 - rate))]
    squares = [np.zeros_like(part) for part in theta]
    for _ in range(n_steps):
        W, V, b = theta
        U = np.maximum(X @ W, 0)
        R = np.where(known, expit(U @ V.T + b) - np.nan_to_num(A), 0)
        gradients = X.T @ ((U > 0) * (R @ V)), R.T @ U, R.sum(axis=0)
        squares = [S + g**2 for S, g in zip(squares, gradients)]
        theta = [
            part - RATE * g / (np.sqrt(S) + EPSILON)
            for part, g, S in zip(theta, gradients, squares)
        ]
    return theta


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_without_dropout_one_batch_a_pass_is_adagrad_by_the_book(toy, masked, kind, device):
    X, labels = masked if kind == "masked" else toy[:2]
    A = labels.to_array() if kind == "masked" else toy[1].toarray().astype(float)
    model = small(max_iter=7, batch_size=100, fit_intercept=False, device=device).fit(X, labels)
    W, V, b = by_the_book(normalize(X.toarray()), A, 6, 7)
    assert np.abs(W - start(*W.shape)).max() > 0.1
    assert_allclose(model.model_.W, W, atol=1e-9)
    assert_allclose(model.model_.H, np.hstack([V, b[:, None]]), atol=1e-9)


def test_the_code_is_the_positive_part_of_xw_and_scores_are_affine_in_it(toy):
    X, Y, _ = toy
    model = small(max_iter=5).fit(X, Y)
    Z = np.hstack([normalize(X.toarray()), np.ones((X.shape[0], 1))]) @ model.model_.W
    assert (Z < 0).any()
    assert_allclose(model.transform(X), np.where(Z > 0, Z, 0), atol=1e-14)
    V, b = model.model_.H[:, :-1], model.model_.H[:, -1]
    assert_allclose(model.decision_function(X), model.transform(X) @ V.T + b, atol=1e-12)
    assert_allclose(model.predict_proba(X), expit(model.decision_function(X)), atol=1e-12)


@pytest.mark.parametrize("dropout", [0, 0.5])
def test_the_history_is_the_cross_entropy_after_each_pass_and_falls(toy, dropout):
    X, Y, _ = toy
    model = small(rank=50, dropout=dropout, max_iter=20, batch_size=15).fit(X, Y)
    each = log_loss(Y.toarray().ravel(), model.predict_proba(X).ravel(), normalize=False)
    assert_allclose(model.history_[-1], each)
    assert model.history_[-1] < 0.7 * model.history_[0]


def test_every_pass_has_an_order_of_its_own(toy, monkeypatch):
    X, Y, _ = toy
    orders, update = [], Network.update

    def spy(self, state, b, *rest):
        orders.append(b.Y.indices.tobytes())
        return update(self, state, b, *rest)

    monkeypatch.setattr(Network, "update", spy)
    small(max_iter=4, batch_size=100).fit(X, Y)
    assert len(orders) == len(set(orders)) == 4


def test_rows_of_which_nothing_is_known_change_nothing(masked, device):
    X, labels = masked
    nothing = np.full((10, labels.n_labels), np.nan)
    more = Labels.from_array(np.vstack([labels.to_array(), nothing]))
    fit = lambda X, labels: small(max_iter=5, batch_size=100, device=device).fit(X, labels).model_
    alone, among_others = fit(X, labels), fit(sp.vstack([X, X[:10]], format="csr"), more)
    assert_allclose(among_others.W, alone.W, atol=1e-10)
    assert_allclose(among_others.H, alone.H, atol=1e-10)


def test_observing_everything_is_having_complete_labels(toy):
    X, Y, _ = toy
    fit = lambda labels: small(dropout=0.5, max_iter=5, batch_size=15).fit(X, labels).model_
    complete, masked = fit(Y), fit(Labels.masked(Y, np.ones(Y.shape)))
    assert_allclose(masked.W, complete.W, atol=1e-10)
    assert_allclose(masked.H, complete.H, atol=1e-10)


def test_the_seed_decides_the_model_whatever_the_device(toy, device):
    X, Y, _ = toy
    fit = lambda **params: small(dropout=0.5, max_iter=4, batch_size=15, **params).fit(X, Y).model_
    ours, theirs = fit(), fit(device=device)
    assert_allclose(theirs.W, ours.W, atol=1e-9)
    assert_allclose(theirs.H, ours.H, atol=1e-9)
    assert_array_equal(fit().H, ours.H)
    assert np.abs(fit(random_state=1).H - ours.H).max() > 0.01


def test_dropout_learns_the_rows_less_by_heart(toy):
    X, Y, _ = toy
    y = Y.toarray().ravel()
    fit = lambda dropout: small(rank=50, dropout=dropout, max_iter=20, batch_size=15).fit(X, Y)
    known_by_heart = [log_loss(y, fit(p).predict_proba(X).ravel()) for p in (0, 0.5, 0.9)]
    assert known_by_heart == sorted(known_by_heart)
    assert known_by_heart[0] < 0.7 * known_by_heart[2]


def parities(n, rng):
    """Signs of ten features, and labels that are the exclusive or of two of them each."""
    X = rng.choice([-1.0, 1.0], (n, 10))
    return X, (X[:, 0::2] * X[:, 1::2] < 0).astype(int)


def test_it_learns_exclusive_ors_of_which_a_linear_model_knows_nothing():
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = parities(2000, rng), parities(1000, rng)
    right = lambda model: (model.fit(X, Y).predict(X_test).toarray() == Y_test).mean()
    assert right(Ridge()) < 0.6
    assert right(NNML(100, dropout=0.1, rate=0.1, random_state=0)) > 0.97


def test_a_saved_model_comes_back_with_the_same_scores(masked, tmp_path, monkeypatch):
    X, labels = masked
    model = small(max_iter=3).fit(X, labels)
    model.save(tmp_path / "model.tacit")
    monkeypatch.setitem(tacit.saved.METHODS, "NNML", NNML)
    loaded = tacit.saved.load(tmp_path / "model.tacit")
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dropout": 1}, "dropout must be a number of at least 0 and below 1; got 1"),
        ({"dropout": float("nan")}, "dropout must be a number of at least 0 and below 1; got nan"),
        ({"rank": 0}, "rank must be an int of at least 1; got 0"),
        ({"rate": 0}, "rate must be a finite number above 0; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=f"^NNML: {message}$"):
        small(**params).fit(X, Y)
