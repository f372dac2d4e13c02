import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import tacit
from tacit.backends import get_backend
from tacit.baselines import LabelSpaceReduction
from tacit.codecs import CSSP, CodecData
from tacit.engines.moments import Moments

RNG = np.random.default_rng(0)
Y = (RNG.random((40, 6)) < [0.9, 0.5, 0.4, 0.3, 0.2, 0.1]).astype(float)
Y[:, 4] = Y[:, 1] * Y[:, 2]
X = RNG.standard_normal((40, 5)) + Y[:, :5]


def learnt(Y, rank, *, centred=False, seed=0, backend=None):
    """The code of these labels; of features, none but the constant is there."""
    backend = get_backend("cpu") if backend is None else backend
    n, n_labels = Y.shape
    to = backend.asarray
    sums = Moments(n, to(np.ones(1)), to(Y.sum(0)), to(np.ones((1, 1)) * n), to(Y.sum(0)[None]),
                   to(Y.T @ Y))  # fmt: skip
    training = CodecData(
        None, 1, n_labels, centred=centred, backend=backend, dtype=np.dtype("float64"),
        rng=np.random.RandomState(seed), sums=sums,
    )  # fmt: skip
    return CSSP().learn(training, rank, 1.0)


def chosen(code):
    labels, at = np.nonzero(code.P)
    assert_array_equal(np.sort(at), np.arange(code.P.shape[1]))
    return labels


def leverages(Y, k):
    return (np.linalg.svd(Y)[2][:k] ** 2).sum(axis=0) / k


def frequencies(rank, n):
    counts = np.zeros(6)
    for seed in range(n):
        counts[chosen(learnt(Y, rank, seed=seed))] += 1
    return counts / n


def test_one_label_is_drawn_by_its_leverage():
    p, n = leverages(Y, 1), 1000
    assert np.ptp(p) > 0.4
    assert_allclose(frequencies(1, n), p, atol=4 * (0.25 / n) ** 0.5)


def test_two_labels_are_drawn_one_after_the_other():
    p, n = leverages(Y, 2), 1000
    second = [sum(p[i] * p[j] / (1 - p[i]) for i in range(6) if i != j) for j in range(6)]
    assert np.abs(second - p).max() > 0.08  # it matters that the first is not put back
    assert_allclose(frequencies(2, n), p + second, atol=4 * (0.25 / n) ** 0.5)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_labels_follow_from_those_chosen_by_least_squares(backend, rank, centred):
    code = learnt(Y, rank, centred=centred, backend=backend)
    P, H = backend.to_numpy(code.P), backend.to_numpy(code.H)
    A = Y - Y.mean(axis=0) if centred else Y
    assert P.shape == H.shape == (6, rank)
    assert_array_equal(P.sum(axis=0), 1)
    assert_allclose(H.T, np.linalg.lstsq(A @ P, A)[0], atol=1e-10)


def test_no_more_labels_are_chosen_than_there_are_directions():
    doubled = np.hstack([Y[:, :3], Y[:, :3], np.zeros((40, 2))])
    for seed in range(20):
        code = learnt(doubled, 8, seed=seed)
        labels = chosen(code)
        assert len(labels) == 3
        assert labels.max() < 6  # nobody has the last two
        assert_allclose(code.H.T, np.linalg.lstsq(doubled @ code.P, doubled)[0], atol=1e-10)


def test_all_labels_as_codes_are_a_ridge_regression_each(device):
    model = LabelSpaceReduction("cssp", 6, reg=0.7, normalize=None, random_state=0, device=device)
    wanted = Ridge(0.7).fit(X, Y).predict(X)
    assert_allclose(model.fit(X, Y).decision_function(X), wanted, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("labels", [np.zeros((40, 3)), np.ones((40, 1)), Y[:, :1]])
def test_labels_of_nobody_and_of_everybody_do_no_harm(device, labels, fit_intercept):
    model = LabelSpaceReduction(
        "cssp",
        2,
        reg=0.7,
        normalize=None,
        random_state=0,
        fit_intercept=fit_intercept,
        device=device,
    ).fit(X, labels)
    wanted = Ridge(0.7, fit_intercept=fit_intercept).fit(X, labels).predict(X).reshape(40, -1)
    assert_allclose(model.decision_function(X), wanted, atol=1e-9)


def test_the_estimator_agrees_with_itself_on_every_road(tmp_path):
    fit = lambda device: LabelSpaceReduction("cssp", 3, random_state=0, device=device).fit(X, Y)
    model = fit("cpu")
    scores = model.decision_function(X)
    assert_allclose(fit("torch").decision_function(X), scores, atol=1e-9)
    top = model.top_k(X, 3)
    assert_allclose(top.scores, -np.sort(-scores, axis=1)[:, :3], atol=1e-12)
    assert_allclose(np.take_along_axis(scores, top.indices, axis=1), top.scores, atol=1e-12)
    assert_array_equal(model.predict(X).toarray(), scores > 0.5)
    tacit.save(model, tmp_path / "model")
    assert_array_equal(tacit.load(tmp_path / "model").decision_function(X), scores)
