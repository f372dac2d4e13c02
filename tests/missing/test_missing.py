"""Laws of hiding labels: nothing is lost or invented, and the rates are those asked for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from scipy.special import expit
from scipy.stats import binom, chisquare

from tacit import Labels
from tacit.missing import Covariates, Exposure, Positives, UniformEntries, hide
from tacit.missing.hide import _bernoulli_cells

law = settings(max_examples=60, deadline=None)  # a busy machine must not break a law


@pytest.fixture(name="Y")
def fixture_labels():
    """2,000 rows, 30 labels, about 6 a row; some rows and one label without any."""
    rng = np.random.default_rng(0)
    Y = (rng.random((2000, 30)) < 0.2).astype(np.int8)
    Y[:50] = 0
    Y[:, 7] = 0
    return Y


def mechanisms(n, n_labels):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    return [
        UniformEntries(0.3),
        Positives(0.5),
        Positives(0.5, per_instance=True),
        Positives(0.9, keep_one=True),
        Positives(0.9, per_instance=True, keep_one=True),
        Exposure(0.4),
        Exposure(np.linspace(0, 1, n_labels)),
        Covariates(X, rng.normal(size=(3, n_labels))),
        Covariates(sp.csr_array(X), rng.normal(size=3), intercept=np.ones(n_labels)),
    ]


def assert_binomial(count, trials, rate):
    """A count at a fixed seed that a fair draw would exceed less than once in a million."""
    low, high = binom.interval(1 - 1e-6, trials, rate)
    assert low <= count <= high, f"{count} of {trials} at rate {rate}"


@law
@given(st.data(), st.integers(0, 8), st.booleans(), st.integers(0, 2**32 - 1))
def test_said_and_hidden_positives_are_disjoint_and_make_up_the_original(data, which, mask, seed):
    n, n_labels = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    Y = data.draw(arrays(np.int8, (n, n_labels), elements=st.integers(0, 1)))
    known = data.draw(arrays(np.bool_, Y.shape)) | (Y == 1)
    known[0, 0] = True
    names = [f"label {j}" for j in range(n_labels)]
    original = Labels.masked(Y, known, classes=names) if mask else Labels.complete(Y, classes=names)

    labels, hidden = hide(original, mechanisms(n, n_labels)[which], random_state=seed)

    assert_array_equal(labels.to_sparse().toarray() + hidden.toarray(), Y)
    assert labels.positives.has_canonical_format
    assert hidden.has_canonical_format
    assert labels.classes.tolist() == names
    if labels.kind == "masked":
        observed = labels.observed.toarray()
        assert observed[labels.positives.toarray()].all()
        assert not observed[hidden.toarray()].any()
        if mask:
            assert known[observed].all()


@pytest.mark.parametrize("which", range(9))
def test_the_same_seed_hides_the_same_and_another_does_not(Y, which):
    mechanism = mechanisms(*Y.shape)[which]
    first, second, other = (hide(Y, mechanism, random_state=seed) for seed in (1, 1, 2))
    assert first.labels == second.labels
    assert first.labels != other.labels


@pytest.mark.parametrize("which", range(9))
def test_all_forms_of_the_labels_lose_the_same_entries(Y, which):
    mechanism = mechanisms(*Y.shape)[which]
    forms = Y, sp.csc_matrix(Y), Labels.complete(Y)
    first, *rest = (hide(form, mechanism, random_state=3).labels for form in forms)
    assert all(first == other for other in rest)
    assert first.kind == ("masked" if which == 0 else "positive-only")


def test_hiding_positives_of_masked_labels_leaves_every_observed_no(Y):
    known = (np.random.default_rng(1).random(Y.shape) < 0.5) | (Y == 1)
    labels, hidden = hide(Labels.masked(Y, known), Positives(0.5), random_state=0)
    assert labels.kind == "masked"
    assert_array_equal(labels.observed.toarray(), known & ~hidden.toarray())


# ---- entries


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.7])
def test_entries_are_observed_at_the_rate_whether_yes_or_no_in_every_row_and_column(Y, rate):
    labels = hide(Y, UniformEntries(rate), random_state=0).labels
    observed = labels.observed.toarray()
    assert_binomial(observed.sum(), Y.size, rate)
    assert_binomial(observed[Y == 1].sum(), (Y == 1).sum(), rate)
    assert chisquare(observed.sum(axis=0)).pvalue > 1e-4
    assert chisquare(observed.reshape(20, -1).sum(axis=1)).pvalue > 1e-4
    assert_array_equal(labels.to_array()[observed], Y[observed])


def test_neighbouring_entries_are_observed_independently(Y):
    observed = hide(Y, UniformEntries(0.3), random_state=0).labels.observed.toarray().ravel()
    assert_binomial((observed[:-1] & observed[1:])[::2].sum(), Y.size // 2, 0.09)


def test_what_was_not_known_is_never_observed_and_the_rest_at_the_rate(Y):
    known = (np.random.default_rng(1).random(Y.shape) < 0.5) | (Y == 1)
    observed = hide(Labels.masked(Y, known), UniformEntries(0.3), random_state=0).labels.observed
    assert not observed.toarray()[~known].any()
    assert_binomial(observed.nnz, known.sum(), 0.3)


def test_a_rate_of_one_observes_everything(Y):
    labels, hidden = hide(Y, UniformEntries(1.0), random_state=0)
    assert labels.observed.nnz == Y.size
    assert hidden.nnz == 0


def test_observing_does_not_depend_on_how_many_gaps_are_drawn_at_a_time():
    cells = _bernoulli_cells(10_000, 0.1, np.random.default_rng(0))
    gaps = np.random.default_rng(0)
    one_by_one, at = [], gaps.geometric(0.1) - 1
    while at < 10_000:
        one_by_one.append(at)
        at += gaps.geometric(0.1)
    assert_array_equal(cells, one_by_one)


def test_observing_few_of_very_many_entries_lays_out_only_those():
    Y = sp.csr_array(([1], ([5], [7])), shape=(100_000, 100_000))  # 10^10 entries
    labels = hide(Y, UniformEntries(1e-6), random_state=0).labels
    assert_binomial(labels.observed.nnz, 10**10, 1e-6)
    with pytest.raises(ValueError, match=r"rate 0\.5 would observe 5,000,000,000 of"):
        hide(Y, UniformEntries(0.5))


# ---- positives


@pytest.mark.parametrize("per_instance", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_share_of_positives_is_hidden_on_average(Y, share, per_instance):
    hidden = hide(Y, Positives(share, per_instance=per_instance), random_state=0).hidden
    assert_binomial(hidden.nnz, Y.sum(), share)


def test_per_instance_hides_exactly_the_share_of_each_row_up_to_rounding(Y):
    for share in 0.2, 0.7:
        hidden = hide(Y, Positives(share, per_instance=True), random_state=0).hidden.sum(axis=1)
        exact = share * Y.sum(axis=1)
        whole = np.isclose(exact, np.round(exact))
        assert whole.sum() > 100
        assert_array_equal(hidden[whole], np.round(exact[whole]))
        assert (np.abs(hidden - exact) < 1).all()


def test_per_instance_hides_every_label_alike(Y):
    hidden = hide(Y, Positives(0.5, per_instance=True), random_state=0).hidden.sum(axis=0)
    for count, trials in zip(hidden, Y.sum(axis=0)):
        assert_binomial(count, trials, 0.5)


@pytest.mark.parametrize("per_instance", [False, True])
def test_keep_one_leaves_a_label_to_every_row_that_had_one_and_no_more_than_needed(Y, per_instance):
    kept, free = (
        hide(Y, Positives(0.95, per_instance, keep_one), random_state=0)
        .labels.to_sparse()
        .toarray()
        for keep_one in (True, False)
    )
    emptied = Y.any(axis=1) & ~free.any(axis=1)
    assert emptied.sum() > 100
    assert_array_equal(kept[emptied].sum(axis=1), 1)
    assert_array_equal(kept[~emptied], free[~emptied])


def test_a_share_of_zero_hides_nothing(Y):
    assert hide(Y, Positives(0.0), random_state=0).hidden.nnz == 0


# ---- exposure


def test_each_label_is_exposed_with_its_own_probability(Y):
    mu = np.linspace(0, 1, Y.shape[1])
    shown = hide(Y, Exposure(mu), random_state=0).labels.positives.sum(axis=0)
    for count, trials, rate in zip(shown, Y.sum(axis=0), mu):
        assert_binomial(count, trials, rate)


def test_covariates_show_each_entry_with_the_logistic_probability():
    rng = np.random.default_rng(0)
    X, beta, intercept = rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), np.array([-1, 0, 1])
    probability = expit(X @ beta + intercept)
    copies = 4000  # of every row, each drawn by itself
    Y, big = np.ones((5 * copies, 3), int), np.repeat(X, copies, axis=0)
    for form in big, sp.csr_array(big):
        shown = hide(Y, Covariates(form, beta, intercept), random_state=0).labels.to_sparse()
        counts = shown.toarray().reshape(5, copies, 3).sum(axis=1)
        for count, rate in zip(counts.ravel(), probability.ravel()):
            assert_binomial(count, copies, rate)


def test_one_beta_for_all_labels_is_the_same_beta_for_each(Y):
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(len(Y), 4)), rng.normal(size=4)
    one = hide(Y, Covariates(X, beta), random_state=0).labels
    each = hide(Y, Covariates(X, np.tile(beta[:, None], Y.shape[1])), random_state=0).labels
    assert one == each


def test_covariates_do_not_depend_on_how_many_positives_are_taken_at_a_time(Y, monkeypatch):
    rng = np.random.default_rng(0)
    mechanism = Covariates(rng.normal(size=(len(Y), 4)), rng.normal(size=(4, Y.shape[1])))
    whole = hide(Y, mechanism, random_state=0).labels
    monkeypatch.setitem(hide.__globals__, "BLOCK_ENTRIES", 4 * 17)
    assert hide(Y, mechanism, random_state=0).labels == whole


# ---- bad input


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: UniformEntries(0), "UniformEntries: rate is the share observed.*got 0"),
        (lambda: UniformEntries(1.5), "rate .* above 0 and at most 1; got 1.5"),
        (lambda: UniformEntries(np.nan), "rate .* got nan"),
        (lambda: Positives(1), "Positives: share is the share hidden.* below 1; got 1"),
        (lambda: Positives(-0.1), "share .* got -0.1"),
        (lambda: Exposure([0.5, 2]), r"Exposure: mu must hold probabilities.*got \[0.5, 2\]"),
    ],
)
def test_bad_rates_are_told_in_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        (0.5, "mechanism must be one of tacit.missing.*got 0.5"),
        (Exposure([0.5, 0.5]), r"mu has shape \(2,\) but Y has 3 labels"),
        (Covariates(np.ones((2, 2)), np.ones(2)), r"X has shape \(2, 2\) but Y has 3 rows"),
        (
            Covariates(np.ones((3, 2)), np.ones(3)),
            r"beta has shape \(3,\); give \(2,\) or",
        ),
        (Covariates(np.ones((3, 2)), np.ones(2), [1, 2]), r"intercept has shape \(2,\)"),
    ],
)
def test_what_does_not_fit_the_labels_is_told_in_one_sentence(mechanism, sentence):
    with pytest.raises(ValueError, match=sentence):
        hide(np.eye(3, dtype=int), mechanism)


@pytest.mark.parametrize("which", [Positives(0.5), Exposure(0.5)])
def test_hiding_positives_leaves_every_said_no(which):
    rng = np.random.default_rng(0)
    A = rng.random((30, 6)) < 0.5
    reviewed = Labels.positive_only(A, no=~A & (rng.random(A.shape) < 0.4))
    left, hidden = hide(reviewed, which, random_state=0)
    assert left.kind == "positive-only"
    assert_array_equal(left.noes.toarray(), reviewed.noes.toarray())
    assert_array_equal((left.positives + hidden).toarray(), A)
    assert hidden.nnz > 0


def test_zeros_of_positive_only_labels_cannot_be_observed():
    with pytest.raises(ValueError, match="positive-only labels have none that are known"):
        hide(Labels.positive_only(np.eye(3)), UniformEntries(0.5))
