"""The ceiling: planted rates of all and of each label, intervals, and when it cannot be told."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from tacit import Labels, Tacit, load
from tacit.basics.files import read_arrays, write_arrays
from tacit.methods.tacit.blend import Blend
from tacit.methods.tacit.ceiling import Ceiling
from tacit.missing import estimate


def entries(c, n_rows=1000, steep=2.0, shift=-1.0, seed=0, more=1):
    """Two scores of each row and label that tell what is true, of which a share c_l is said."""
    rng, c = np.random.default_rng(seed), np.asarray(c)
    z = steep * rng.standard_normal((n_rows, len(c))) * 1.5 + shift
    features = np.stack([z + rng.normal(0, s, z.shape) for s in (0.5, 1.0, 2.0)[: 1 + more]], -1)
    said = (rng.random(z.shape) < expit(z)) & (rng.random(z.shape) < c)
    row, label = np.indices(z.shape)
    return features.reshape(z.size, -1), said.ravel(), label.ravel(), row.ravel()


def found(c, **how):
    return Ceiling.of(*entries(c, **how), len(c))


def rows_of(share, n=600, seed=0):
    """Labels that are features, of which a share is said: ridge hardly sees where that ends."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 12)) < 0.3) * 1.0
    true = X[:, :10] > 0
    return X, true, Labels.positive_only(true & (rng.random(true.shape) < share))


# Of all labels


@pytest.mark.parametrize("c", [0.2, 0.5, 0.8])
def test_a_planted_share_is_found_and_nine_intervals_in_ten_have_it_in_them(c):
    each = [found([c] * 5, seed=seed) for seed in range(20)]
    assert_allclose(np.mean([ceiling.overall[0] for ceiling in each]), c, atol=0.05)
    inside = [low <= c <= high for _, low, high in (ceiling.overall for ceiling in each)]
    assert np.mean(inside) >= 0.8


def test_where_all_is_said_the_interval_reaches_to_the_end():
    c, low, high = found([1.0] * 5).overall
    assert c > 0.95
    assert low > 0.9
    assert high > 0.99


def test_by_chance_alone_the_interval_is_where_the_likelihood_has_fallen_by_half_of_1_645_squared():
    """Of one score, whose entries are rows of their own: no part to leave out, nothing shared."""
    rng = np.random.default_rng(0)
    f = 3 * rng.standard_normal(4000)
    said = (rng.random(4000) < expit(f)) & (rng.random(4000) < 0.5)
    none = np.zeros(4000, int)
    c, low, high = Ceiling.of(f[:, None], said, none, np.arange(4000), 1).overall
    x = (f - f.mean()) / f.std()

    def J(c):
        def loss(t):
            z = t[0] * x + t[1]
            told = np.log(c) + log_expit(z[said])
            return -told.sum() - np.log1p(-c * expit(z[~said])).sum() + 0.5 * t[0] ** 2

        return minimize(loss, [2.0, 0.0]).fun

    for end in (low, high):
        assert_allclose(2 * (J(end) - J(c)), 1.645**2, rtol=0.25)  # a line between two far points


def test_entries_that_stand_in_rows_together_make_the_interval_wider():
    """Each entry ten times in its row tells what it tells once."""
    features, said, label, row = entries([0.5], n_rows=800)
    once = Ceiling.of(features, said, label, row, 1)
    ten = lambda a: np.repeat(a, 10, axis=0)
    same = Ceiling.of(ten(features), ten(said), ten(label), ten(row), 1)
    blind = Ceiling.of(ten(features), ten(said), ten(label), np.arange(8000), 1)
    wide = lambda ceiling: logit(ceiling.overall[2]) - logit(ceiling.overall[1])
    assert_allclose(wide(same), wide(once), rtol=0.2)
    assert wide(blind) < 0.7 * wide(same)


def test_where_no_entry_is_sure_it_says_that_the_share_is_not_identifiable():
    ceiling = found([0.5] * 5, steep=0.3, shift=-4.0)
    _, low, high = ceiling.overall
    assert high > 3 * low
    assert not ceiling.says_something
    wanted = "how many of the true labels were said is not identifiable: by these rows it may be"
    assert str(ceiling).startswith(wanted)
    assert f"{low:.0%} and {high:.0%}" in str(ceiling)


# Of each label


def test_labels_that_are_said_at_rates_of_their_own_are_told_apart():
    c = np.tile([0.2, 0.4, 0.6, 0.9], 5)
    ceiling = found(c, n_rows=2000)
    assert np.abs(ceiling.labels[0] - c).mean() < 0.05
    low, high = ceiling.labels[1:]
    assert np.mean((low <= c) & (c <= high)) >= 0.8
    times = np.bincount(entries(c, n_rows=2000)[2], entries(c, n_rows=2000)[1])
    assert_allclose(ceiling.overall[0], times.sum() / (times / ceiling.labels[0]).sum())
    assert_allclose(ceiling.overall[0], times.sum() / (times / c).sum(), atol=0.04)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_labels_that_are_alike_have_one_rate_and_it_is_that_of_all(share):
    ceiling = found([share] * 20, n_rows=300)
    assert_allclose(ceiling.labels, np.repeat(np.array(ceiling.overall)[:, None], 20, axis=1))
    assert np.ptp(ceiling.labels, axis=1).max() == 0


def test_a_label_of_which_little_is_known_has_about_the_rate_of_all_and_a_wide_interval():
    """Here one of which a few likely entries are silent, as if it were never said."""
    c = np.tile([0.2, 0.4, 0.6, 0.9], 5)
    features, said, label, row = entries(c, n_rows=2000)
    keep = (label != 3) | ((row < 100) & ~said & (features[:, 0] > 0))
    ceiling = Ceiling.of(features[keep], said[keep], label[keep], row[keep], 21)  # 20 is nowhere
    middle = np.median(ceiling.labels[0])
    assert 0.05 < ceiling.labels[0, 3] < middle
    wide = ceiling.labels[2] - ceiling.labels[1]
    assert wide[3] > 2 * wide[7]
    assert ceiling.labels[1, 20] < ceiling.labels[0, 20] < ceiling.labels[2, 20]


# In a blend, a model and a file


def test_a_blend_that_is_given_each_c_learns_weights_and_bias_alone():
    c = np.array([0.2, 0.9])
    features, said, label, _ = entries(c, n_rows=8000, more=0)
    z = np.random.default_rng(0).standard_normal((8000, 2)).ravel() * 3 - 1  # as in `entries`
    blend = Blend.fit(("score",), features, said, c=c[label])
    assert blend.exposure == pytest.approx(0.55)
    p = expit(blend.logits(features))
    for one in (0, 1):
        assert_allclose(p[label == one].mean(), expit(z[label == one]).mean(), atol=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_a_share_is_found_by_all_parts_even_where_ridge_alone_ranks_best(seed):
    """By the blend of ridge alone it was 0.93 of these rows with seeds 0 and 2."""
    X, true, labels = rows_of(0.3, seed=seed)
    model = Tacit(scaling="unit", random_state=0).fit(X, labels)
    assert abs(model.exposure_ - 0.3) < 0.06
    assert f"about {model.exposure_:.0%} of the true labels were said" in str(model.report_)
    total = estimate(model, X, labels).total_missing
    assert total[1] < true.sum() - labels.positives.nnz < total[2]


def test_where_the_first_model_stands_alone_the_report_says_that_nothing_is_known():
    X, _, labels = rows_of(0.3)
    model = Tacit(scaling="unit", budget=1e-9, random_state=0).fit(X, labels)
    assert "is not identifiable: by these rows it may be anything between 0%" in str(model.report_)
    with pytest.warns(UserWarning, match="in all is not identifiable, since .*; how much is miss"):
        found = estimate(model, X, labels)
    assert not found.rates.total_known
    assert not found.rates.identifiable.any()


def test_rates_of_labels_are_kept_in_the_file_and_those_that_are_none_refused(tmp_path):
    X, _, labels = rows_of(0.5)
    model = Tacit(scaling="unit", random_state=0).fit(X, labels)
    model.save(tmp_path / "model.tacit")
    loaded = load(tmp_path / "model.tacit")
    assert_array_equal(loaded.said_rates_, model.said_rates_)
    assert_array_equal(loaded.model_.ceiling.labels, model.model_.ceiling.labels)
    assert loaded.model_.ceiling.overall == model.model_.ceiling.overall
    header, arrays = read_arrays(tmp_path / "model.tacit")
    for wrong in (arrays["ceiling"][::-1], arrays["ceiling"] + 1, arrays["ceiling"][:, :-1]):
        write_arrays(tmp_path / "wrong.tacit", header, arrays | {"ceiling": wrong.copy()})
        with pytest.raises(ValueError, match="does not hold a model of this tacit"):
            load(tmp_path / "wrong.tacit")


def test_completions_know_at_which_rate_each_label_is_said():
    """Of two labels that are as likely, silence says more of the one that is said more readily."""
    X, _, labels = rows_of(0.5)
    model = Tacit(scaling="unit", random_state=0).fit(X, labels)
    rates = np.tile(np.linspace(0.1, 1.0, 10), (3, 1))
    model.model_ = replace(model.model_, ceiling=replace(model.model_.ceiling, labels=rates))
    unsaid = model.complete(X, labels, k=10, fold_in=False)
    p, c = model.predict_proba(X)[unsaid.row, unsaid.label], rates[0, unsaid.label]
    wanted = np.where(c == 1, p, (1 - c) * p / (1 - c * p))
    assert_allclose(unsaid.probability, wanted, atol=1e-9)
    assert (np.diff(unsaid.probability) <= 0).all()
