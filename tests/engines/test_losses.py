import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from tacit.engines.losses import LOSSES, PositiveUnlabelled


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


@pytest.mark.parametrize("c", [0.01, 0.5, 0.999])
def test_the_pu_loss_is_the_likelihood_of_speech_and_of_silence(c):
    """c σ(f) and 1 - c σ(f); and as the paper prints it, for s = ±1."""
    f = np.linspace(-30, 30, 121)
    loss, p = PositiveUnlabelled(c), c * expit(f)
    assert_allclose(loss.value(np.ones_like(f), f), -np.log(p), atol=1e-12)
    assert_allclose(loss.value(np.zeros_like(f), f), -np.log1p(-p), atol=1e-12)
    for y, s in ((1.0, 1), (0.0, -1)):
        printed = -np.log(c / (1 + np.exp(-s * f)) + (1 - s) * (1 - c) / 2)
        assert_allclose(loss.value(np.full_like(f, y), f), printed, atol=1e-10)


def test_the_pu_loss_does_not_overflow_and_silence_costs_no_more_than_minus_log_of_the_rest():
    f, c = np.array([-700.0, 700.0]), 0.9
    loss = PositiveUnlabelled(c)
    assert_allclose(loss.value(np.ones(2), f), [700 - np.log(c), -np.log(c)])
    assert_allclose(loss.value(np.zeros(2), f), [0, -np.log1p(-c)], atol=1e-12)
    assert np.isfinite(loss.grad(np.zeros(2), f)).all()


def test_the_pu_loss_with_c_of_one_is_the_logistic_loss():
    z, plain = np.linspace(-20, 20, 81), LOSSES["logistic"]
    for y in (np.zeros_like(z), np.ones_like(z)):
        for name in ("value", "grad", "hess"):
            got = getattr(PositiveUnlabelled(1.0), name)(y, z)
            assert_allclose(got, getattr(plain, name)(y, z), atol=1e-12)


def test_a_said_no_is_a_no_to_the_pu_loss_and_its_silence_is_as_it_was():
    z, loss = np.linspace(-20, 20, 81), PositiveUnlabelled(0.3, noes=True)
    for name in ("value", "grad", "hess"):
        of = lambda loss, y, name=name: getattr(loss, name)(np.full_like(z, y), z)
        assert_allclose(of(loss, -1.0), of(LOSSES["logistic"], 0.0), atol=1e-12)
        for y in (0.0, 1.0):
            assert_allclose(of(loss, y), of(PositiveUnlabelled(0.3), y), rtol=1e-12)


@pytest.mark.parametrize("y", [-1.0, 0.0, 1.0])
def test_the_gradient_of_the_pu_loss_is_its_slope_and_its_curvature_a_bound(y):
    z, eps, loss = np.linspace(-6, 6, 41), 1e-5, PositiveUnlabelled(np.array(0.7), noes=True)
    y = np.full_like(z, y)
    slope = (loss.value(y, z + eps) - loss.value(y, z - eps)) / (2 * eps)
    assert_allclose(loss.grad(y, z), slope, atol=1e-8)
    bend = (loss.grad(y, z + eps) - loss.grad(y, z - eps)) / (2 * eps)
    assert (loss.hess(y, z) >= bend - 1e-8).all()
    assert (loss.hess(y, z) >= 0).all()
    assert (bend[z > -0.5 * np.log(0.3) + 0.1] < 0).any() == (y[0] == 0)  # not convex there
