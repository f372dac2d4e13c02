"""Calibration: against scikit-learn, by hand, and on labels drawn from the probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

from tacit.labels import Labels, TopK
from tacit.methods.tacit.calibration import Monotone, calibrated, exposure, isotonic
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


def planted(c, size=100_000, seed=0):
    """Probabilities that reach 1, their logits as scores, and what was said of the true ones."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 1, size).clip(1e-9, 1 - 1e-9)
    return p, np.log(p / (1 - p)), rng.random(size) < c * p


@pytest.mark.parametrize("decimals", [1, 2])
def test_with_fine_bins_the_map_is_the_isotonic_regression_of_all_entries(decimals):
    rng = np.random.default_rng(0)
    scores = rng.random(3000).round(decimals)
    scores[:20] = 1.0  # the surest bin holds 20 entries at least
    said = rng.random(scores.shape) < 0.5 * scores
    found = isotonic(scores, said, bins=10**5).probability(scores)
    assert_allclose(found, IsotonicRegression().fit_transform(scores, said), atol=1e-12)


def test_bins_of_many_entries_stay_near_the_isotonic_regression_of_all():
    _, scores, said = planted(0.5)
    distance = np.abs(
        isotonic(scores, said, bins=200).probability(scores)
        - IsotonicRegression().fit_transform(scores, said)
    )
    assert distance.mean() < 0.005


def test_no_bin_is_surer_than_twenty_entries_allow():
    scores, said = np.arange(1000.0), np.zeros(1000)
    said[-1] = 1  # alone, the surest entry would have the rate 1
    assert isotonic(scores, said).rates.max() == pytest.approx(1 / 20)


@given(st.data())
def test_the_map_never_falls_and_stays_within_0_and_1(data):
    size, some = data.draw(st.integers(1, 60)), st.floats(-1e6, 1e6, width=32)
    scores = data.draw(arrays(np.float32, size, elements=some))
    said = data.draw(arrays(bool, size))
    found, c = calibrated(scores, said, known=data.draw(st.booleans()))
    assert 0 < c <= 1
    assert (np.diff(found.scores) > 0).all()
    assert (np.diff(found.rates) >= 0).all()
    assert found.rates[0] >= 0
    assert found.rates[-1] <= 1
    p = found.probability(np.sort(data.draw(arrays(np.float64, 20, elements=some))))
    assert (np.diff(p) >= -1e-12).all()
    assert p.min() >= 0
    assert p.max() <= 1


def test_no_rounding_makes_a_probability_above_one():
    found = Monotone(
        np.array([-0.8636400902455758, 9.811950400663443e-05]), np.array([0.09572101796109636, 1.0])
    )
    z = np.nextafter(found.scores[1:], -1)
    assert np.interp(z, found.scores, found.rates) > 1
    assert found.probability(z) == 1


@pytest.mark.parametrize("c", [0.1, 0.5, 0.9])
def test_with_the_true_exposure_the_map_is_the_true_probability(c):
    p, scores, said = planted(c)
    assert np.abs(isotonic(scores, said).probability(scores) / c - p).mean() < 0.02


@pytest.mark.parametrize("c", [0.3, 0.5, 0.9])
def test_on_average_over_draws_the_exposure_and_the_true_probability_are_found(c):
    # Of one draw the exposure may be 0.06 off: the few surest entries of (2) have their luck.
    exposures, distances = [], []
    for seed in range(10):
        p, scores, said = planted(c, seed=seed)
        found, found_c = calibrated(scores, said, known=False)
        exposures.append(found_c)
        distances.append(np.abs(found.probability(scores) - p).mean())
    assert np.mean(exposures) == pytest.approx(c, abs=0.03)
    assert np.mean(distances) < 0.02


def test_where_silence_is_a_no_the_exposure_is_one_and_the_map_the_isotonic_one():
    _, scores, said = planted(0.5, size=5000)
    found, c = calibrated(scores, said, known=True)
    assert c == 1
    assert_allclose(found.rates, isotonic(scores, said).rates)


@pytest.mark.parametrize("least", [1, 30, 10**6])
@pytest.mark.parametrize("decimals", [1, 9])
def test_the_exposure_is_the_best_bound_of_a_loop_over_the_surest_entries(least, decimals):
    _, scores, said = planted(0.5, size=2000)
    scores = scores.round(decimals)
    bounds, smallest = [], min(least, scores.size)
    for lowest in np.sort(scores)[::-1][: max(4 * said.sum(), smallest)]:
        inside = scores >= lowest
        if inside.sum() >= smallest:
            q = said[inside].mean()
            bounds.append(q - np.sqrt(q * (1 - q) / inside.sum()))
    assert exposure(scores, said, least=least) == pytest.approx(max(*bounds, said.mean()))


def test_entries_of_equal_score_count_alike_in_whatever_order_they_come():
    scores, said = np.repeat([0.0, 1.0], 500), np.tile([1, 0, 0, 0, 0], 200)
    found, c = calibrated(scores, said, known=False)
    order = np.lexsort((-said, scores))  # of equal scores, those said first
    other, other_c = calibrated(scores[order], said[order], known=False)
    assert c == other_c == pytest.approx(0.2, abs=0.02)
    assert_allclose(found.rates, other.rates)


def test_a_bin_takes_all_entries_of_its_lowest_score():
    scores = np.r_[np.zeros(55), np.ones(30), np.arange(2, 17)]  # the twentieth is one of the ones
    said = (scores > 1) | (np.arange(100) >= 75) & (scores == 1)
    found = isotonic(scores, said, bins=2)
    assert_allclose(found.scores, [0, scores[55:].mean()])
    assert_allclose(found.rates, [0, 25 / 45])


def test_the_fewest_entries_may_end_on_one_not_said():
    scores = np.arange(1000.0)
    bound = 0.3 - np.sqrt(0.3 * 0.7 / 100)  # thirty said, the surest, of the first hundred
    assert exposure(scores, scores >= 970) == pytest.approx(bound)


def test_the_exposure_is_no_less_than_the_share_said_however_bad_the_scores():
    scores = np.arange(1000.0)
    assert exposure(scores, scores < 50) == pytest.approx(0.05)


@pytest.mark.parametrize(("value", "rate"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("size", [1, 1000])
def test_nothing_said_is_never_true_and_everything_said_always(value, rate, size):
    scores = np.random.default_rng(0).normal(size=(size, 2))
    found, c = calibrated(scores, np.full((size, 2), value), known=False)
    assert c == 1
    assert_allclose(found.probability(scores), np.full((size, 2), float(rate)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_scores_give_the_same_probabilities_as_torch(dtype):
    torch = pytest.importorskip("torch")
    found = Monotone(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    z = np.array([[-1.0, 0.5], [0.9, 2.0]], dtype=dtype)
    p = found.probability(torch.asarray(z))
    assert isinstance(p, torch.Tensor)
    assert p.dtype == getattr(torch, dtype)
    assert found.probability(z).dtype == dtype
    assert_allclose(p.numpy(), found.probability(z))
    assert_allclose(p.numpy(), [[0.25, 0.5], [0.7, 0.75]], rtol=1e-6)


@pytest.mark.parametrize(
    ("scores", "said", "message"),
    [
        ([1.0, 2.0], [1], r"one nonempty shape; got \(2,\), \(1,\)"),
        ([], [], r"one nonempty shape; got \(0,\), \(0,\)"),
        ([1.0, 2.0], [1, -1], "said must hold 0 and 1 only"),
        ([1.0, 2.0], [1, np.nan], "said must hold 0 and 1 only"),
        ([1.0, np.nan], [1, 0], "scores must be finite"),
        ([1.0, -np.inf], [1, 0], "scores must be finite"),
    ],
)
@pytest.mark.parametrize("function", [isotonic, exposure])
def test_entries_that_cannot_be_counted_are_refused(function, scores, said, message):
    with pytest.raises(ValueError, match=message):
        function(np.array(scores), np.array(said))
