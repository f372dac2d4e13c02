import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import tacit
from tacit.baselines import LabelSpaceReduction
from tacit.engines.moments import Moments

K, REG = 5, 0.5


@pytest.fixture
def topics():
    """40 features and 60 labels of ten topics, each rarer than the last, and a little noise."""
    rng = np.random.default_rng(0)
    weights = 0.6 ** np.arange(10)
    topic = rng.choice(10, 600, p=weights / weights.sum())
    X = rng.standard_normal((600, 40)) + 5 * np.eye(10, 40)[topic]
    Y = np.repeat(np.eye(10), 6, axis=1)[topic]
    Y[rng.random(Y.shape) < 0.002] = 1
    return X, Y


def explained(X, Y):
    return Y.T @ X @ np.linalg.solve(X.T @ X + REG * np.eye(X.shape[1]), X.T @ Y)


def fitted(X, Y, codec="rembed", rank=K, **params):
    settings = dict(reg=REG, normalize=None, fit_intercept=False, random_state=0) | params
    return LabelSpaceReduction(codec, rank, **settings).fit(X, Y)


def test_its_subspace_is_that_of_cplst_without_centring(topics, device):
    X, Y = topics
    w, V = np.linalg.eigh(explained(X, Y))
    w, V = w[::-1], V[:, ::-1][:, :K]
    assert w[K] > 0.4 * w[K - 1]  # so that it takes the 20 more
    assert w[K + 20] > 1e-5 * w[0]  # which are not all there is
    H = fitted(X, Y, device=device).model_.H
    assert_allclose(H.T @ H, np.eye(K), atol=1e-10)
    assert np.linalg.norm(H @ H.T - V @ V.T, 2) < 1e-5
    cplst = fitted(X, Y, "cplst").model_.H
    assert np.linalg.norm(H @ H.T - cplst @ cplst.T, 2) < 1e-5
    assert_allclose(np.abs(np.sum(H * V, axis=0)), 1, atol=1e-6)  # the leading one first


def test_codes_are_predicted_by_ridge(topics, device):
    X, Y = topics
    model = fitted(X, Y, device=device)
    H = model.model_.H
    codes = Ridge(REG, fit_intercept=False).fit(X, Y @ H).predict(X)
    assert_allclose(model.decision_function(X), codes @ H.T, atol=1e-9)


def test_all_the_space_is_a_ridge_regression_each(topics, device):
    X, Y = topics
    wanted = Ridge(REG, fit_intercept=False).fit(X, Y[:, :9]).predict(X)
    for rank in (9, 30):
        scores = fitted(X, Y[:, :9], rank=rank, device=device).decision_function(X)
        assert_allclose(scores, wanted, atol=1e-9)


def test_where_the_gram_of_the_features_is_too_large_nobody_forms_it(topics, device, monkeypatch):
    X, Y = topics
    exact = fitted(X, Y, device=device).decision_function(X)
    monkeypatch.setattr("tacit.codecs.codec_data.DENSE_LIMIT", 40**2 - 1)
    monkeypatch.setattr(Moments, "of", None)
    assert_allclose(fitted(X, Y, device=device).decision_function(X), exact, atol=1e-3)


@pytest.mark.parametrize("Y", [np.zeros((12, 4)), np.ones((12, 1)), np.eye(12, 3)])
def test_labels_of_nobody_and_one_label_alone_do_no_harm(device, Y):
    X = np.random.default_rng(0).standard_normal((12, 5))
    wanted = Ridge(REG, fit_intercept=False).fit(X, Y).predict(X).reshape(Y.shape)
    assert_allclose(fitted(X, Y, device=device).decision_function(X), wanted, atol=1e-9)


def test_the_estimator_agrees_with_itself_on_every_road(topics, tmp_path):
    X, Y = topics
    fit = lambda device: fitted(X, Y, fit_intercept=True, normalize="l2", device=device)
    model = fit("cpu")
    scores = model.decision_function(X)
    assert_allclose(fit("torch").decision_function(X), scores, atol=1e-9)
    top = model.top_k(X, 4)
    assert_allclose(top.scores, -np.sort(-scores, axis=1)[:, :4], atol=1e-12)
    assert_allclose(np.take_along_axis(scores, top.indices, axis=1), top.scores, atol=1e-12)
    assert_array_equal(model.predict(X).toarray(), scores > 0.5)
    tacit.save(model, tmp_path / "model")
    assert_array_equal(tacit.load(tmp_path / "model").decision_function(X), scores)
