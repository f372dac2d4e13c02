"""Thresholds, against scikit-learn's curves, SciPy's interval and plain counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.metrics import f1_score, precision_score, recall_score

from tacit import Labels
from tacit.labels import TopK
from tacit.metrics import at_thresholds, precision_threshold, wilson

shapes = st.tuples(st.integers(1, 6), st.integers(1, 4))
tables = shapes.flatmap(
    lambda shape: st.tuples(
        arrays(bool, shape), arrays(float, shape, elements=st.sampled_from([0.1, 0.3, 0.5, 0.8]))
    )
)


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (17, 20), (900, 1000)])
def test_the_interval_is_wilsons(right, n):
    ours = binomtest(right, n).proportion_ci(0.95, "wilson")
    assert_allclose(wilson(right, n), [ours.low, ours.high], atol=1e-4)


@pytest.mark.parametrize("by", ["all", "labels"])
def test_figures_at_a_threshold_are_those_of_scikit_learn(by):
    rng = np.random.default_rng(0)
    Y, scores = rng.random((60, 3)) < 0.4, rng.random((60, 3)).round(1)
    found = at_thresholds(Y, scores, [0.2, 0.5, 0.8], by)
    average = "micro" if by == "all" else None
    for i, t in enumerate([0.2, 0.5, 0.8]):
        chosen = scores >= t
        assert_allclose(found.precision[i], precision_score(Y, chosen, average=average))
        assert_allclose(found.recall[i], recall_score(Y, chosen, average=average))
        assert_allclose(found.f1[i], f1_score(Y, chosen, average=average))
        assert_allclose(found.chosen[i], chosen.sum() if by == "all" else chosen.sum(axis=0))


def test_what_is_not_there_is_nan_and_what_is_not_known_is_not_counted():
    Y = Labels.masked([[1, 0], [0, 0]], [[1, 1], [0, 1]])
    found = at_thresholds(Y, np.array([[0.9, 0.1], [0.9, 0.1]]), [0.5, 1.0], "labels")
    assert found.chosen.tolist() == [[1, 0], [0, 0]]
    assert found.precision[0, 0] == 1
    assert np.isnan(found.precision[0, 1])
    assert np.isnan(found.recall[0, 1])
    listed = TopK(np.array([[0], [1]]), np.array([[0.9], [0.7]]))
    assert at_thresholds([[1, 1], [0, 1]], listed, [0.5]).recall == pytest.approx([2 / 3])


@given(tables, st.sampled_from([0.05, 0.2, 0.4, 0.6]), st.sampled_from(["all", "labels"]))
def test_the_least_threshold_whose_lower_end_reaches_what_is_wanted(table, wanted, by):
    Y, scores = table
    found = precision_threshold(Y, scores, wanted, by)
    columns = [slice(None)] if by == "all" else range(Y.shape[1])
    for c, threshold, best, chosen, low in zip(
        columns, *map(np.atleast_1d, (found.threshold, found.best, found.chosen, found.low))
    ):
        y, s = Y[:, c].ravel(), scores[:, c].ravel()
        lows = {t: wilson(y[s >= t].sum(), (s >= t).sum())[0] for t in np.unique(s)}
        reached = [t for t, low in lows.items() if low >= wanted]
        assert best == pytest.approx(max(lows.values()), abs=1e-12)
        if reached:
            assert threshold == min(reached)
            assert chosen == (s >= threshold).sum()
            assert low == pytest.approx(lows[threshold], abs=1e-12)
        else:
            assert np.isnan(threshold)
            assert chosen == 0


def test_at_least_so_many_are_right_in_rows_that_were_not_used():
    """Of new rows 90 % are right above the threshold in nearly all of 200 tries."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        p = rng.random((400, 1))
        found = precision_threshold(rng.random(p.shape) < p, p, 0.9)
        held += np.isnan(found.threshold) or (1 + found.threshold) / 2 >= 0.9  # E[p | p ≥ t]
    assert held >= 185


def test_what_was_not_asked_well_is_one_clear_sentence():
    with pytest.raises(ValueError, match="above 0 and below 1; got 90"):
        precision_threshold([[1]], np.array([[0.5]]), 90)
    with pytest.raises(ValueError, match='"all" or "labels"; got \'rows\''):
        at_thresholds([[1]], np.array([[0.5]]), [0.5], "rows")
