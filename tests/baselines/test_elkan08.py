import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

import tacit.saved
from tacit.baselines import BinaryRelevance, Elkan08
from tacit.baselines.elkan08 import _held_out
from tacit.labels import Labels

REG, HOLDOUT = 0.3, 0.4


def tight(**params):
    defaults = dict(reg=REG, holdout=HOLDOUT, tol=1e-13, fit_intercept=False, random_state=0)
    return Elkan08(**defaults | params)


def theirs(X, y, weights=None):
    """scikit-learn's coefficients of logistic regression, of which no label needs both classes."""
    if y.all() or not y.any():  # scikit-learn wants both: one row of zeros says nothing of either
        X, y = np.vstack([X, np.zeros_like(X[:1])]), np.append(y, not y[0])
        weights = None if weights is None else np.append(weights, 1.0)
    model = LogisticRegression(C=1 / REG, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return model.fit(X, y, sample_weight=weights).coef_.ravel()


def held_out(X):
    """(4) by the book, for `random_state=0`."""
    t = X @ np.random.RandomState(0).standard_normal(X.shape[1])
    turns = 256 * t / np.sqrt(np.mean(t**2))
    return turns - np.floor(turns) < HOLDOUT


def by_the_book(X, Y):
    """g of the rows that are not held out, and c, label by label and row by row."""
    held = held_out(X)
    Z = np.column_stack([theirs(X[~held], y) for y in Y[~held].T])
    each = [
        [expit(X[i] @ Z[:, j]) for i in np.flatnonzero(held & (Y[:, j] > 0))]
        for j in range(Y.shape[1])
    ]
    pooled = np.mean([g for label in each for g in label])
    return Z, np.array([(sum(label) + 10 * pooled) / (len(label) + 10) for label in each])


def test_c_is_the_mean_of_g_over_held_out_positives_drawn_towards_that_of_all_labels(toy, device):
    X, Y, _ = toy
    unit = normalize(X.toarray())
    held = held_out(unit)
    assert 5 < held.sum() < 35
    _, c = by_the_book(unit, Y.toarray())
    assert_allclose(tight(device=device).fit(X, Y).c_, c, rtol=1e-5)
    assert np.ptp(c) > 0.02


def test_a_share_of_the_rows_is_held_out_whatever_their_scale_and_copies_together():
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 300), density=0.05, rng=rng, format="csr")
    for scale in (1e-6, 1.0, 1e6):
        model = tight(normalize=None, fit_intercept=True)
        twice = sp.vstack([X, X], format="csr") * scale
        problem = model._problem(*model._rows(twice, rng.random((6000, 1)) < 0.5))
        ((_, held),) = _held_out(problem, HOLDOUT, intercept=True).parts
        assert_allclose(held.mean(), HOLDOUT, atol=0.03)
        assert_array_equal(held[:3000], held[3000:])


def test_the_ratio_is_logistic_regression_of_what_was_said_divided_by_c(toy, device):
    X, Y, _ = toy
    model = tight(device=device).fit(X, Y)
    unit = normalize(X.toarray())
    Z = np.column_stack([theirs(unit, y) for y in Y.toarray().T])
    assert_allclose(model.model_.W, Z, rtol=1e-4, atol=1e-5)
    g = expit(unit @ Z)
    assert (g > model.c_).any()
    assert_allclose(model.predict_proba(X), np.minimum(1, g / model.c_), rtol=1e-4)
    assert_allclose(model.decision_function(X), np.log(g / model.c_), atol=1e-4)


@pytest.mark.parametrize("reviewed", [False, True])
def test_weighted_is_logistic_regression_on_unsaid_rows_twice_as_yes_and_as_no(
    toy, device, reviewed
):
    X, Y, observed = toy
    noes = ((1 - Y.toarray()) * observed.toarray()) * reviewed
    model = tight(variant="weighted", device=device).fit(X, Labels.positive_only(Y, no=noes))
    unit, Y = normalize(X.toarray()), Y.toarray()
    first, c = by_the_book(unit, Y)
    g = expit(unit @ first)
    w = np.minimum(1, (1 - c) / c * g / (1 - g))
    assert (w == 1).any()
    assert (w < 0.9).any()
    w[noes > 0] = 0  # what somebody said no to is no silence
    for j in range(Y.shape[1]):
        said, unsaid = unit[Y[:, j] > 0], unit[Y[:, j] == 0]
        rows = np.vstack([said, unsaid, unsaid])
        y = np.repeat([1, 1, 0], [len(said), len(unsaid), len(unsaid)])
        v = w[Y[:, j] == 0, j]
        z = theirs(rows, y, np.concatenate([np.ones(len(said)), v, 1 - v]))
        assert_allclose(model.model_.W[:, j], z, rtol=1e-3, atol=1e-4)
    assert_allclose(model.predict_proba(X), expit(unit @ model.model_.W), rtol=1e-10)


@pytest.mark.parametrize("variant", ["ratio", "weighted"])
def test_where_classes_do_not_overlap_c_and_the_truth_are_recovered(variant):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (4000, 6))
    rates = np.array([0.2, 0.4, 0.6, 0.8, 0.4, 1.0])
    said = (X > 0) & (rng.random(X.shape) < rates)
    model = Elkan08(variant=variant, reg=0.01, normalize="l2", random_state=0).fit(X, said)
    assert_allclose(model.c_, rates, atol=0.06)
    assert_array_equal(model.predict(X).toarray(), X > 0)
    plain = BinaryRelevance(loss="logistic", reg=0.01).fit(X, said)
    assert not plain.predict(X).toarray()[:, 0].any()


@pytest.mark.parametrize("x", [[1.0, 2.0], [0.3, -0.7], [-5.0, 0.1]])
def test_a_single_row_is_refused_in_one_sentence_however_it_would_be_rounded(x):
    with pytest.raises(ValueError, match="at least 2 are needed; got n_samples = 1; give more"):
        Elkan08(holdout=0.5, random_state=0).fit(np.array([x]), np.array([[1, 0]]))


def test_no_label_said_among_the_held_out_rows_is_refused_in_one_sentence(toy):
    X, Y, _ = toy
    held = held_out(normalize(X.toarray()))
    with pytest.raises(ValueError, match="no label was said in the held-out rows; hold out more"):
        tight().fit(X, Y.toarray() * ~held[:, None])


@pytest.mark.parametrize("variant", ["ratio", "weighted"])
def test_a_fit_that_was_stopped_goes_on_to_the_same_model(toy, tmp_path, variant):
    X, Y, _ = toy
    fit = lambda max_iter, path: tight(variant=variant, reg=1e-3, tol=0, max_iter=max_iter).fit(
        X, Y, checkpoint=path
    )
    whole = fit(6, None)
    fit(2, tmp_path / "checkpoint")
    resumed = fit(6, tmp_path / "checkpoint")
    assert_array_equal(resumed.c_, whole.c_)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_the_history_never_rises_and_a_saved_model_keeps_c(toy, tmp_path):
    X, Y, _ = toy
    model = tight(reg=1e-3).fit(X, Y)
    assert len(model.history_) > 1
    assert (np.diff(model.history_) <= 1e-12).all()
    model.save(tmp_path / "model.tacit")
    assert_array_equal(tacit.saved.load(tmp_path / "model.tacit").c_, model.c_)


def test_labels_with_a_no_in_them_are_refused_with_the_methods_that_take_them(masked):
    X, labels = masked
    for Y, kind in ((labels, "masked"), (Labels.complete(labels.positives), "complete")):
        with pytest.raises(ValueError, match=f"Elkan08 cannot use {kind} labels, only positive-"):
            tight().fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"variant": "both"}, "variant must be one of 'ratio', 'weighted'; got 'both'"),
        ({"holdout": 1}, "holdout must be a number above 0 and below 1; got 1"),
        ({"holdout": 0}, "holdout must be a number above 0 and below 1; got 0"),
        ({"reg": 0}, "reg must be a finite number above 0; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=f"^Elkan08: {message}$"):
        tight(**params).fit(X, Y)
