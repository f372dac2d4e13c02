import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.preprocessing import normalize

from tacit.baselines import Ridge
from tacit.labels import DENSE_LIMIT


def test_scores_are_those_of_scikit_learn(toy, device):
    X, Y, _ = toy
    ours = Ridge(reg=0.7, fit_intercept=False, device=device).fit(X, Y)
    unit = normalize(X.toarray())
    theirs = TheirRidge(alpha=0.7, fit_intercept=False).fit(unit, Y.toarray())
    assert_allclose(ours.decision_function(X), theirs.predict(unit), atol=1e-10)


def test_coefficients_beyond_the_limit_are_refused_with_the_alternative(toy, monkeypatch):
    assert DENSE_LIMIT > 100
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 100)
    X, Y, _ = toy
    with pytest.raises(ValueError, match=r"Ridge's coefficients would lay out 13 × 9.*use LEML"):
        Ridge().fit(X, Y)
    assert np.isfinite(X.data).all()


def test_many_features_are_solved_by_conjugate_gradients_to_the_same_scores(
    toy, device, monkeypatch
):
    X, Y, _ = toy
    exact = Ridge(reg=0.7, device=device).fit(X, Y)
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 13 * 13 - 1)  # coefficients are 13 x 9
    monkeypatch.setattr("tacit.baselines.ridge.Moments", None)
    by_steps = Ridge(reg=0.7, device=device).fit(X, Y)
    assert_allclose(by_steps.model_.W, exact.model_.W, atol=1e-5)
