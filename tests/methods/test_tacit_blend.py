"""The blend: its formula against SciPy and scikit-learn, the ceiling, and what is off the list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tacit.methods.tacit.blend import LEAST, Blend, logs

FULL = 8.0  # log-odds of the largest c
NAMES = ("lead", "network", "rarity", "look")
SCORES = st.floats(-5, 5)


def objective(t, features, said, ceiling=True):
    """(2) at t = (w ∘ sd, b + wᵀ mean, log c / (1 - c))."""
    sd = np.where(features.std(axis=0) > 0, features.std(axis=0), 1.0)
    p = expit((features - features.mean(axis=0)) / sd @ t[:-2] + t[-2])
    q = np.clip((expit(t[-1]) if ceiling else 1.0) * p, 1e-12, 1 - 1e-12)
    c = expit(t[-1])
    doubt = -2 * np.log(c * (1 - c)) if ceiling else 0.0
    return -np.log(np.where(said, q, 1 - q)).sum() + 0.5 * t[:-2] @ t[:-2] + doubt


def place_of(blend, features):
    """The t of a blend."""
    mean, sd = features.mean(axis=0), features.std(axis=0)
    c = np.clip(blend.exposure, 1e-9, expit(FULL))
    return np.append(blend.weights * sd, [blend.bias + blend.weights @ mean, np.log(c / (1 - c))])


def is_least(features, said, ceiling=True):
    """That SciPy, from where the blend is and from two other places, comes to nothing lower."""
    mine = place_of(fitted(features, said, ceiling), features)
    starts = [mine, np.zeros_like(mine), np.random.default_rng(0).standard_normal(len(mine))]
    bounds = [(None, None)] * (len(mine) - 1) + [(-FULL, FULL)]
    how = dict(options=dict(ftol=1e-13, gtol=1e-7, maxfun=10**5), method="L-BFGS-B", bounds=bounds)
    args = features, said, ceiling
    found = min(minimize(objective, t, args=args, **how).fun for t in starts)
    assert_allclose(objective(mine, *args), found, rtol=1e-6)


def fitted(features, said, ceiling=True):
    return Blend.fit(NAMES[: features.shape[1]], features, said, c=None if ceiling else 1.0)


def entries(seed, n=3000, n_names=3, c=0.4, steep=3.0, shift=-1.0):
    """Features of unlike scales that tell together, and what was said of a share c."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, n_names)) * 10.0 ** rng.uniform(-1, 1, n_names) + rng.normal()
    w = rng.standard_normal(n_names)
    z = (F - F.mean(axis=0)) / F.std(axis=0) @ w * steep / np.linalg.norm(w) + shift
    return F, (rng.random(n) < expit(z)) & (rng.random(n) < c)


@pytest.mark.parametrize("c", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("n", [60, 400, 2000])
def test_weights_bias_and_ceiling_are_where_scipy_finds_the_objective_least(n, c):
    for seed in range(3):
        is_least(*entries(seed, n, 1 + seed, c))


def test_the_objective_is_least_too_where_scores_are_far_below_their_logarithm():
    rng = np.random.default_rng(0)
    lead = logs(0.5 * rng.standard_normal((600, 1)))  # half of them at some -500
    is_least(lead, (lead[:, 0] > -1) & (rng.random(600) < 0.6))


@pytest.mark.parametrize("n_names", [1, 3])
def test_without_a_ceiling_the_objective_is_least(n_names):
    for seed in range(3):
        is_least(*entries(seed, 400, n_names, c=1.0), ceiling=False)


def test_without_a_ceiling_it_is_scikit_learns_logistic_regression_of_standardised_features():
    for seed in range(4):
        features, said = entries(seed, n_names=1 + seed, c=1.0)
        blend = fitted(features, said, ceiling=False)
        mean, sd = features.mean(axis=0), features.std(axis=0)
        scaled = (features - mean) / sd
        theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(scaled, said)
        assert blend.exposure == 1
        assert_allclose(blend.weights * sd, theirs.coef_[0], rtol=1e-4)
        assert_allclose(blend.logits(features), theirs.decision_function(scaled), atol=1e-3)


@pytest.mark.parametrize("c", [1.0, 0.5, 0.2])
def test_a_planted_ceiling_is_found_where_scores_reach_the_plateau(c):
    rng = np.random.default_rng(1)
    f = np.hstack([3 * rng.standard_normal((20_000, 1)), rng.standard_normal((20_000, 1))])
    true = rng.random(20_000) < expit(2 * f[:, 0] + f[:, 1])
    blend = fitted(f, true & (rng.random(20_000) < c))
    assert_allclose(blend.exposure, c, atol=0.05)
    assert_allclose(blend.weights, [2, 1], atol=0.3)
    p = expit(blend.logits(f))
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):  # of those that are so probable, so many are true
        some = (p >= low) & (p < low + 0.2)
        assert_allclose(true[some].mean(), p[some].mean(), atol=0.08)


@pytest.mark.parametrize("ceiling", [False, True])
def test_the_unit_of_a_feature_and_where_its_zero_is_are_all_one(ceiling):
    features, said = entries(1)
    blend = fitted(features, said, ceiling)
    other = features * [100.0, -0.01, 3.0] + [7.0, -50.0, 0.0]
    got = fitted(other, said, ceiling)
    assert_allclose(got.logits(other), blend.logits(features), atol=0.02)
    assert_allclose(got.exposure, blend.exposure, atol=1e-3)


def test_a_feature_that_is_always_the_same_has_no_weight_and_does_no_harm():
    features, said = entries(1)
    more = np.hstack([features, np.full((len(features), 1), -4.0)])
    got, wanted = fitted(more, said), fitted(features, said)
    assert_allclose(got.weights[-1], 0, atol=1e-9)
    assert_allclose(got.logits(more), wanted.logits(features), atol=0.02)


@pytest.mark.parametrize("ceiling", [False, True])
@pytest.mark.parametrize("all_said", [False, True])
def test_where_nothing_or_everything_was_said_the_blend_is_finite_and_says_so(ceiling, all_said):
    features, _ = entries(0, n=100)
    blend = fitted(features, np.full(100, all_said), ceiling)
    p = blend.exposure * expit(blend.logits(features))
    assert_allclose(p, 1.0 * all_said, atol=0.1)
    assert 0 < blend.exposure <= 1


def test_judged_entries_have_the_log_odds_of_the_blend_of_the_others():
    features, said = entries(2)
    for ceiling in (False, True):
        got = Blend.judged(
            features[:2000], said[:2000], features[2000:], c=None if ceiling else 1.0
        )
        blend = fitted(features[:2000], said[:2000], ceiling)
        assert_allclose(got, blend.logits(features[2000:]), atol=1e-9)


def test_features_may_lie_in_rows_and_columns():
    features, said = entries(0, n=60)
    blend = fitted(features, said)
    assert_allclose(blend.logits(features.reshape(12, 5, 3)), blend.logits(features).reshape(12, 5))


def test_a_blend_that_is_cast_has_its_arrays_in_that_float_type():
    features, said = entries(0, n=200)
    blend = fitted(features, said)
    small = blend.cast(np.dtype(np.float32))
    assert small.weights.dtype == small.lead.dtype == np.float32
    assert_allclose(small.logits(features), blend.logits(features), rtol=1e-4, atol=1e-4)
    assert (small.names, small.exposure) == (blend.names, blend.exposure)


# Off the shortlist


def test_off_the_shortlist_there_is_the_regression_on_the_score_of_the_lead_alone():
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    features = np.stack([logs(s), rng.standard_normal(4000)], axis=1)
    said = rng.random(4000) < expit(2 * logs(s) + 1 + features[:, 1])
    lead = fitted(features[:, :1], said, ceiling=False)
    blend = fitted(features, said, ceiling=False)
    assert_allclose(blend.lead, [lead.weights[0], lead.bias], rtol=1e-6)
    far_above = np.full((1, 1), 1e3)  # a worst label so good that nothing need be bent
    wanted = lead.logits(logs(s[:, None]))
    assert_allclose(blend.off_list(s[None, :], far_above)[0], wanted, atol=1e-9)


@given(
    scores=st.lists(SCORES, min_size=2, max_size=8),
    worst=st.floats(-30, 30),
    lead=st.tuples(st.floats(0.01, 5), st.floats(-10, 10)),
)
def test_off_the_shortlist_the_order_stays_and_all_are_below_the_worst_on_it(scores, worst, lead):
    blend = Blend(("lead",), np.ones(1), 0.0, 1.0, np.array(lead))
    scores = np.sort(scores)[None, :]
    found = blend.off_list(scores, np.array([[worst]]))
    assert (found <= worst).all()
    assert (np.diff(found) >= 0).all()
    there = blend.lead[0] * logs(scores) + blend.lead[1] < worst + 10  # what may be told apart
    apart = np.diff(scores)[0] > 1e-3
    assert (np.diff(found)[0][apart & there[0, 1:]] > 0).all()


@pytest.mark.parametrize("ceiling", [False, True])
def test_the_order_off_the_shortlist_stays_even_where_the_lead_misleads_on_it(ceiling):
    rng = np.random.default_rng(0)
    s = rng.random(500)
    blend = fitted(logs(s)[:, None], rng.random(500) < 0.5 - 0.4 * s, ceiling)
    found = blend.off_list(np.array([[-1.0, 0.0, 0.1, 0.5]]), np.array([[3.0]]))
    assert (np.diff(found) > 0).all()


# Logarithms


@given(scores=st.lists(SCORES, min_size=2, max_size=9).map(np.sort))
def test_logarithms_keep_the_order_and_above_the_least_score_are_those_of_numpy(scores):
    found = logs(scores)
    assert (np.diff(found) >= 0).all()
    assert (np.diff(found)[np.diff(scores) > 1e-9] > 0).all()
    above = scores >= LEAST
    assert_array_equal(found[above], np.log(scores[above]))


@given(score=SCORES, least=st.floats(1e-4, 0.5))
@settings(max_examples=200)
def test_below_the_least_score_the_logarithm_goes_on_with_the_slope_it_has_there(score, least):
    assert_allclose(logs(np.array([least]), least), np.log(least))
    step = 1e-6 * least
    ends = logs(np.array([score - step, score + step]), least)
    assert_allclose(np.diff(ends)[0] / (2 * step), 1 / max(score, least), rtol=1e-3)
    one_sided = [np.diff(logs(least + np.array(s), least))[0] for s in ([-step, 0], [0, step])]
    assert_allclose(*one_sided, rtol=1e-5)  # no corner


def test_a_blend_goes_a_part_of_the_way_to_another_that_knows_more():
    own = Blend(("a", "b"), np.array([1.0, 2.0]), 1.0, 0.5, np.array([1.0, 0.0]))
    other = Blend(("a", "c"), np.array([3.0, 8.0]), 5.0, 0.7, np.array([2.0, 1.0]))
    with_a_c = own.towards(other, 0.25)
    assert with_a_c.names == ("a", "c")
    assert_allclose([*with_a_c.weights, with_a_c.bias], [1.5, 2.0, 2.0])
    assert with_a_c.exposure == 0.7
