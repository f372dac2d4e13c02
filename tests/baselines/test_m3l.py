import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

import tacit
import tacit.saved
from tacit import KernelFeatures, Labels
from tacit.baselines import M3L
from tacit.baselines.m3l import correlated

REG = 0.5


def tight(**params):
    defaults = dict(
        reg=REG, tol=1e-13, max_iter=20_000, normalize=None, fit_intercept=False, random_state=0
    )
    return M3L(**defaults | params)


@pytest.fixture
def small():
    """Few rows, labels that go together, one that is never said, and a row of zeros."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    X[4] = 0
    Z = X @ rng.standard_normal((5, 2)) @ rng.standard_normal((2, 4))
    Y = (Z + 0.5 * rng.standard_normal(Z.shape) > 0).astype(int)
    return X, np.hstack([Y, np.zeros((30, 1), int)])


def primal(X, Y, R, Z):
    hinges = np.maximum(0, 1 - 2 * (2 * Y - 1) * (X @ Z))
    return 0.5 * REG * np.trace(np.linalg.solve(R, Z.T @ Z)) + hinges.sum()


def dual(X, Y, R, alpha):
    """The dual objective, by the book: kernels and sums over pairs of labels."""
    signed, K = alpha * (2 * Y - 1), X @ X.T
    return alpha.sum() - 2 / REG * np.sum(R * (signed.T @ K @ signed))


def by_scipy(X, Y, R):
    """The largest value of the dual and its Z, by SciPy's bounded quasi-Newton method."""
    T, K, shape = 2 * Y - 1, X @ X.T, Y.shape

    def loss(a):
        alpha = a.reshape(shape)
        gradient = 1 - 4 / REG * T * (K @ (alpha * T) @ R)
        return -dual(X, Y, R, alpha), -gradient.ravel()

    found = minimize(
        loss, np.zeros(Y.size), jac=True, bounds=[(0, 1)] * Y.size, method="L-BFGS-B",
        options={"maxiter": 50_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    return -found.fun, 2 / REG * X.T @ (found.x.reshape(shape) * T) @ R


def test_the_dual_is_as_large_as_scipy_finds_it_and_z_is_the_same(small):
    X, Y = small
    model = tight(coupling=0.7).fit(X, Y)
    value, Z = by_scipy(X, Y, correlated(Y, 0.7))
    assert_allclose(-model.history_[-1], value, rtol=1e-8)
    assert_allclose(model.model_.W, Z, atol=1e-3)


def test_the_gap_is_that_between_the_primal_and_the_dual_and_closes(small):
    X, Y = small
    R = correlated(Y, 0.7)
    early, late = (tight(coupling=0.7, max_iter=n).fit(X, Y) for n in (2, 20_000))
    assert_allclose(early.gap_, primal(X, Y, R, early.model_.W) + early.history_[-1], rtol=1e-9)
    assert early.gap_ > 0.1
    assert 0 <= late.gap_ < 1e-4


def test_without_coupling_each_label_is_scikit_learns_svm_with_half_the_weights(toy):
    X, Y, _ = toy
    unit = normalize(X.toarray())
    model = tight(coupling=0, normalize="l2").fit(X, Y)
    for j, y in enumerate(Y.toarray().T):
        svm = LinearSVC(loss="hinge", C=4 / REG, fit_intercept=False, tol=1e-9, max_iter=10**6)
        assert_allclose(2 * model.model_.W[:, j], svm.fit(unit, y).coef_[0], atol=2e-3)


def test_the_dual_never_falls_even_where_all_labels_are_one(small):
    """Eight copies of a label are moved one by one: all at once, each would go the whole way."""
    X, Y = small
    model = tight(coupling=0.95, tol=0, max_iter=200).fit(X, np.repeat(Y[:, :1], 8, axis=1))
    assert_array_equal(np.diff(model.history_) <= 1e-10, True)
    assert model.history_[50] < model.history_[0] - 0.1


def test_margins_and_dual_variables_are_complementary_at_the_end(small):
    """Entries with a margin above 1 push Z nowhere: without them the model is the same."""
    X, Y = small
    model = tight(coupling=0.0).fit(X, Y)
    for j in range(4):
        margins = 2 * (2 * Y[:, j] - 1) * (X @ model.model_.W[:, j])
        kept = margins < 1 + 1e-4
        assert 0 < kept.sum() < len(kept)
        again = tight(coupling=0.0).fit(X[kept], Y[kept])
        assert_allclose(again.model_.W[:, j], model.model_.W[:, j], atol=1e-3)


def test_the_prior_is_numpys_correlation_and_nothing_for_a_label_never_said(small):
    _, Y = small
    R = correlated(Y, 0.7)
    assert_allclose(R[:4, :4], 0.7 * np.corrcoef(Y[:, :4].T) + 0.3 * np.eye(4), atol=1e-12)
    assert_allclose(R[4], [0, 0, 0, 0, 1], atol=1e-12)
    assert np.linalg.eigvalsh(R).min() > 0.3 - 1e-12
    assert_allclose(correlated(Y, 0.0), np.eye(5), atol=0)


def test_the_more_two_like_labels_are_coupled_the_more_alike_are_their_weights():
    rng = np.random.default_rng(0)
    X = normalize(rng.standard_normal((100, 40)))
    truth = X @ rng.standard_normal(40)
    Y = np.column_stack([truth + rng.standard_normal(100) > 0 for _ in range(2)]).astype(int)
    angle = lambda W: W[:, 0] @ W[:, 1] / np.linalg.norm(W[:, 0]) / np.linalg.norm(W[:, 1])
    angles = [angle(tight(coupling=c, tol=1e-6).fit(X, Y).model_.W) for c in (0, 0.5, 0.95)]
    assert angles == sorted(angles)
    assert angles[2] > angles[0] + 0.1


def test_behind_kernel_features_it_is_the_machine_of_that_kernel(small, tmp_path):
    X, Y = small
    pipe = make_pipeline(KernelFeatures("rbf", gamma=0.2), tight(coupling=0.5)).fit(X, Y)
    root = np.linalg.cholesky(rbf_kernel(X, gamma=0.2) + 1e-12 * np.eye(len(X)))
    _, Z = by_scipy(root, Y, correlated(Y, 0.5))
    assert_allclose(pipe.decision_function(X), root @ Z, atol=1e-3)
    tacit.save(pipe, tmp_path / "model.tacit")
    loaded = tacit.saved.load(tmp_path / "model.tacit")
    assert_array_equal(loaded.decision_function(X), pipe.decision_function(X))


def test_predict_says_yes_where_the_score_is_positive(small):
    X, Y = small
    model = tight(reg=1.0).fit(X, Y)
    scores = model.decision_function(X)
    assert_array_equal(model.predict(X).toarray(), scores > 0)
    assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-2 * scores)), rtol=1e-9)


def test_a_fit_that_was_stopped_goes_on_to_the_same_model(small, tmp_path):
    X, Y = small
    fit = lambda max_iter, path: tight(tol=0, max_iter=max_iter).fit(X, Y, checkpoint=path)
    fit(3, tmp_path / "checkpoint")
    resumed = fit(9, tmp_path / "checkpoint")
    assert_array_equal(resumed.model_.W, fit(9, None).model_.W)


def test_labels_that_leave_something_unsaid_are_refused_by_name(small):
    X, Y = small
    with pytest.raises(ValueError, match="M3L cannot use positive-only labels, only complete;"):
        tight().fit(X, Labels.positive_only(Y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"coupling": 1}, "coupling must be a number of at least 0 and below 1; got 1"),
        ({"coupling": -0.1}, "coupling must be a number of at least 0 and below 1; got -0.1"),
        ({"reg": 0}, "reg must be a finite number above 0; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(small, params, message):
    X, Y = small
    with pytest.raises(ValueError, match=f"^M3L: {message}$"):
        tight(**params).fit(X, Y)
