"""Calibration: against scikit-learn, by hand, and on labels drawn from the probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve

from tacit.labels import Labels, TopK
from tacit.metrics import calibration_error, reliability


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    probability = rng.beta(0.5, 1, (400, 30))
    return rng.random(probability.shape) < probability, probability


def test_the_points_are_those_of_scikit_learn(drawn):
    truth, probability = drawn
    found = reliability(truth, probability)
    true, promised = calibration_curve(truth.ravel(), probability.ravel(), n_bins=10)
    assert_allclose(found.true, true)
    assert_allclose(found.probability, promised)
    assert found.entries.sum() == truth.size


def test_labels_drawn_from_the_probabilities_have_a_small_error_and_others_a_large_one(drawn):
    truth, probability = drawn
    assert calibration_error(truth, probability) < 0.02
    assert calibration_error(truth, probability**3) > 0.1


def test_only_observed_entries_count(drawn):
    truth, probability = drawn
    observed = np.random.default_rng(1).random(truth.shape) < 0.3
    found = reliability(Labels.masked(truth & observed, observed), probability)
    by_hand = reliability(truth[observed][None, :], probability[observed][None, :])
    assert_allclose(found, by_hand)


def test_a_top_k_counts_the_entries_it_lists(drawn):
    truth, probability = drawn
    best = np.argsort(-probability, axis=1)[:, :5]
    scores = np.take_along_axis(probability, best, axis=1)
    listed = np.take_along_axis(truth, best, axis=1)
    assert_allclose(reliability(truth, TopK(best, scores)), reliability(listed, scores))


def test_of_a_top_k_only_observed_entries_count():
    top = TopK(np.array([[0, 1]]), np.array([[0.75, 0.5]]))
    truth = Labels.masked([[1, 0]], [[1, 0]])
    assert calibration_error(truth, top) == pytest.approx(0.25)


def test_a_bin_counts_by_its_entries():
    probability = np.array([[0.05, 0.05, 0.05, 0.95]])
    assert calibration_error([[0, 0, 0, 0]], probability) == pytest.approx(0.275)


def test_labels_that_a_top_k_leaves_out_do_not_count():
    top = TopK(np.array([[0, -1]]), np.array([[0.75, -np.inf]]))
    assert calibration_error([[1, 0]], top) == pytest.approx(0.25)


def test_one_is_in_the_last_bin_and_nothing_known_is_nan():
    assert reliability([[1]], np.array([[1.0]])).entries[-1] == 1
    nothing = TopK(np.array([[-1]]), np.array([[-np.inf]]))
    assert np.isnan(calibration_error([[1, 0]], nothing))


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1; got values from -0\.5 to 2: call"):
        calibration_error([[1, 0]], np.array([[2.0, -0.5]]))
    with pytest.raises(ValueError, match="n_bins must be at least 1; got 0"):
        reliability([[1]], np.array([[0.5]]), n_bins=0)
