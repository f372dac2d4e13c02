import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from tacit.losses import LOSSES


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_derivatives_match_central_differences(loss, y):
    z, eps = np.linspace(-6, 6, 41), 1e-5
    y = np.full_like(z, y)
    slope = (loss.value(y, z + eps) - loss.value(y, z - eps)) / (2 * eps)
    assert_allclose(loss.grad(y, z), slope, atol=1e-8)
    bend = (loss.grad(y, z + eps) - loss.grad(y, z - eps)) / (2 * eps)
    assert_allclose(loss.hess(y, z), bend, atol=1e-8)


@pytest.mark.parametrize(("name", "score"), [("squared", 0.5), ("logistic", 0.0)])
def test_at_the_threshold_a_label_is_as_likely_as_not(name, score):
    assert_allclose(LOSSES[name].probability(np.array([score])), 0.5)


def test_logistic_does_not_overflow_and_is_the_log_likelihood():
    z, y = np.array([-1e4, -3.0, 0.5, 1e4]), np.array([1.0, 1.0, 0.0, 0.0])
    loss = LOSSES["logistic"]
    assert_allclose(loss.value(y, z)[[0, 3]], 1e4)
    p = expit(z[1:3])
    assert_allclose(loss.value(y, z)[1:3], -np.log(np.where(y[1:3] == 1, p, 1 - p)))
