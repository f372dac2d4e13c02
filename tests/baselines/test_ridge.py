import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import fractional_matrix_power, solve
from scipy.stats import ortho_group
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.preprocessing import normalize

from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.baselines import Ridge
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines.moments import Moments
from tacit.labels import DENSE_LIMIT, Labels


@pytest.fixture
def dense():
    """Features that vary by different amounts, in no direction not at all, and labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6))
    return X, (X @ rng.standard_normal((6, 4)) > 1).astype(int)


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


@pytest.mark.parametrize(("power", "atol"), [(0, 1e-5), (2, 1e-4)])
def test_many_features_are_solved_by_conjugate_gradients_to_the_same_scores(
    toy, device, monkeypatch, power, atol
):
    X, Y, _ = toy
    exact = Ridge(reg=0.7, power=power, device=device).fit(X, Y)
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 13 * 13 - 1)  # coefficients are 13 x 9
    monkeypatch.setattr("tacit.baselines.ridge.Moments", None)
    by_steps = Ridge(reg=0.7, power=power, device=device).fit(X, Y)
    assert_allclose(by_steps.model_.W, exact.model_.W, atol=atol)


def test_conjugate_gradients_do_not_lose_the_prior_in_float32(monkeypatch):
    """The constant feature makes one eigenvalue large, and (3) takes its cube."""
    rng = np.random.default_rng(0)
    often = rng.random((1000, 150)) < 1 / np.arange(1, 151)  # frequent features and rare ones
    X = sp.csr_array(often.astype(np.float32))
    Y = (X @ rng.standard_normal((150, 5)) > 0.5).astype(int)
    exact = Ridge(reg=0.3, power=2).fit(X, Y).model_.W
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 151 * 151 - 1)
    by_steps = Ridge(reg=0.3, power=2).fit(X, Y).model_.W
    assert by_steps.dtype == np.float32
    assert_allclose(by_steps, exact, atol=1e-4 * np.abs(exact).max())


def test_other_powers_of_many_features_are_one_sentence(toy, monkeypatch):
    X, Y, _ = toy
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 13 * 13 - 1)
    with pytest.raises(
        ValueError, match=r"^Ridge: power must be 0 or 2 where .* 13 × 13 .* 168 .*; got 1\.5$"
    ):
        Ridge(power=1.5).fit(X, Y)


@pytest.mark.parametrize("power", [0.5, 1, 2, 2.5])
def test_weights_are_those_of_the_penalty_written_out(dense, device, power):
    X, Y = dense
    ours = Ridge(reg=0.7, power=power, normalize=None, device=device).fit(X, Y)
    X = np.hstack([X, np.ones((40, 1))])
    gram = X.T @ X
    P = fractional_matrix_power(gram / (np.trace(gram) / 7), -power)
    assert_allclose(ours.model_.W, solve(gram + 0.7 * P, X.T @ Y), atol=1e-10)


def test_a_power_of_nought_is_plain_ridge_to_the_last_bit(dense):
    X, Y = dense
    rows = MemoryBlocks.from_rows(Rows(X, Labels.complete(Y)))
    placed = rows.map(place, Placement(get_backend("cpu"), "float64", "l2", True))
    plain = Moments.of(placed).ridge(0.7)
    for more in ({}, {"power": 0}, {"power": 0.0}):
        model = Ridge(reg=0.7, normalize="l2", **more)
        assert_array_equal(model.fit(X, Y).model_.W, plain)


def test_a_large_power_is_least_squares_on_the_leading_components(dense):
    """Directions that vary more than the mean are not shrunk at all; the others are left out."""
    X, Y = dense
    ours = Ridge(power=1e4, normalize=None, fit_intercept=False).fit(X, Y)
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    leading = s**2 > np.mean(s**2)
    assert 0 < leading.sum() < 6
    wanted = Vt[leading].T @ ((U[:, leading].T @ Y) / s[leading, None])
    assert_allclose(ours.model_.W, wanted, atol=1e-9)


def test_rows_without_labels_raise_the_weight_of_directions_in_which_they_vary():
    """Where λ holds these back. Plain ridge takes the rows for a no, and lowers it; elsewhere
    it changes nothing.
    """
    X, Y = np.eye(2), np.eye(2, dtype=int)
    more = np.vstack([X, [[1, 0]] * 3]), np.vstack([Y, np.zeros((3, 2), int)])
    W = lambda power, X, Y: (
        Ridge(reg=10.0, power=power, normalize=None, fit_intercept=False).fit(X, Y).model_.W
    )
    for power in (0, 2):
        assert_allclose(W(power, X, Y), np.eye(2) / 11, atol=1e-12)
    assert_allclose(W(0, *more), np.diag([1 / 14, 1 / 11]), atol=1e-12)
    # g = (4, 1), of mean 5/2: q = (64, 4) / 25
    assert_allclose(W(2, *more), np.diag([64 / (4 * 64 + 250), 4 / (4 + 250)]), atol=1e-12)
    assert W(0, *more)[0, 0] < 1 / 11 < W(2, *more)[0, 0]


@pytest.mark.parametrize("power", [0, 0.5, 2])
def test_turning_the_features_changes_no_score(dense, power):
    X, Y = dense
    turned = X @ ortho_group.rvs(6, random_state=0)
    model = Ridge(power=power, normalize="l2")
    scores = [model.fit(Z, Y).decision_function(Z) for Z in (X, turned)]
    assert_allclose(*scores, atol=1e-10)


@pytest.mark.parametrize("limit", [DENSE_LIMIT, 6])
def test_features_that_no_row_has_get_no_weight(device, monkeypatch, limit):
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", limit)
    X, Y = np.zeros((4, 3)), np.array([[1, 0], [0, 1], [0, 0], [1, 1]])
    model = Ridge(power=2, fit_intercept=False, device=device).fit(X, Y)
    assert_array_equal(model.model_.W, np.zeros((3, 2)))
