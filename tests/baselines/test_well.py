import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

import tacit.saved
from tacit.baselines import WELL
from tacit.baselines.well import similarities
from tacit.labels import Labels

ALPHA, BETA, NEAR = 0.02, 0.3, 4


def tight(**params):
    defaults = dict(n_neighbors=NEAR, alpha=ALPHA, beta=BETA, tol=1e-15, max_iter=10_000)
    return WELL(**defaults | params)


@pytest.fixture
def few(toy):
    """The toy problem with a third of its positives."""
    X, Y, _ = toy
    said = Y.toarray() * (np.random.default_rng(1).random(Y.shape) < 0.3)
    return X, said


def graph(X):
    """S by the book."""
    C = cosine_similarity(X)
    np.fill_diagonal(C, -np.inf)
    near = np.argsort(-C, axis=1)[:, :NEAR]
    S = np.zeros_like(C)
    for i, js in enumerate(near):
        for j in js:
            S[i, j] = S[j, i] = max(0, C[i, j])
    return S * len(S) / S.sum()


def objective(S, F, Y, alpha=ALPHA):
    """J of (1), entry by entry, of all labels."""
    rough = sum(S[i, j] * np.sum((F[i] - F[j]) ** 2) for i in range(len(S)) for j in range(len(S)))
    return rough / 4 + alpha * F.sum() + 0.5 * BETA * np.sum((F - Y) ** 2)


def test_the_graph_joins_each_row_with_its_nearest_by_cosine(toy):
    X, _, _ = toy
    S = similarities(X, NEAR).toarray()
    assert_allclose(S, graph(X.toarray()), atol=1e-12)
    assert_allclose(S.sum(axis=1).mean(), 1)
    assert not S[5].any()  # the row of zeros


def test_rows_that_point_away_from_each_other_are_not_joined():
    X = np.array([[1.0, 0], [1, 0.5], [-1, 0.1], [-1, -0.5], [0.1, -1]])
    S = similarities(sp.csr_array(X), NEAR).toarray()
    assert_allclose(S, graph(X), atol=1e-12)
    assert_array_equal(S > 0, (cosine_similarity(X) > 0) & ~np.eye(5, dtype=bool))


def test_each_label_is_scipys_solution_of_the_quadratic_programme(few):
    X, said = few
    F = tight().fit(X, said).completed_
    S = graph(X.toarray())
    laplacian = np.diag(S.sum(axis=1)) - S
    value = lambda f, y: 0.5 * f @ laplacian @ f + ALPHA * sum(f) + 0.5 * BETA * sum((f - y) ** 2)
    slope = lambda f, y: laplacian @ f + ALPHA + BETA * (f - y)
    for f, y in zip(F.T, said.T.astype(float)):
        found = minimize(
            value, y, args=(y,), jac=slope, method="L-BFGS-B", bounds=[(v, 1) for v in y],
            options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000},
        )  # fmt: skip
        assert_allclose(f, found.x, atol=1e-6)
    assert (F[said == 0] > 0.05).any()
    assert (F[said == 0] == 0).any()


def test_the_history_is_the_objective_and_never_rises(few):
    X, said = few
    model = tight().fit(X, said)
    assert_allclose(
        model.history_[-1], objective(graph(X.toarray()), model.completed_, said), rtol=1e-10
    )
    assert (np.diff(model.history_) <= 1e-12).all()
    assert model.history_[-1] < model.history_[0] - 0.01


def test_what_was_said_stays_true_and_a_row_without_neighbours_gains_nothing(few):
    X, said = few
    F = tight().fit(X, said).completed_
    assert_array_equal(F[said == 1], 1)
    assert ((F >= 0) & (F <= 1)).all()
    assert_array_equal(F[5], said[5])


def test_the_dearer_a_yes_the_fewer_there_are(few):
    X, said = few
    totals = [tight(alpha=alpha).fit(X, said).completed_.sum() for alpha in (0, 0.02, 0.1, 10)]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[1] + 1
    assert_allclose(totals[-1], said.sum())


def test_new_rows_are_scored_by_scikit_learns_ridge_on_the_completed_labels(few):
    X, said = few
    model = tight(reg=0.7, fit_intercept=False).fit(X[:30], said[:30])
    ridge = TheirRidge(alpha=0.7, fit_intercept=False, solver="cholesky")
    ridge.fit(normalize(X[:30]).toarray(), model.completed_)
    wanted = ridge.predict(normalize(X[30:]).toarray())
    assert_allclose(model.decision_function(X[30:]), wanted, atol=1e-6)


def test_hidden_labels_of_its_rows_are_found_where_likeness_decides():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 5, 300)
    X = np.eye(5)[kind] + 0.1 * rng.random((300, 5))
    truth = np.eye(5, dtype=bool)[kind]
    said = truth & (rng.random(truth.shape) < 0.2)
    F = tight(alpha=1e-4, beta=0.01).fit(X, said).completed_
    assert (F[truth & ~said].min() > F[~truth].max()).all()


def test_one_row_alone_is_no_problem():
    model = tight().fit(np.ones((1, 3)), np.array([[1, 0]]))
    assert_array_equal(model.completed_, [[1, 0]])


def test_a_saved_model_scores_alike_and_leaves_the_rows_of_its_fit_behind(few, tmp_path):
    X, said = few
    model = tight().fit(X, said)
    model.save(tmp_path / "model.tacit")
    loaded = tacit.saved.load(tmp_path / "model.tacit")
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert not hasattr(loaded, "completed_")


def test_more_than_twenty_thousand_rows_are_refused_in_one_sentence():
    X, Y = sp.csr_array((20_001, 2)), sp.csr_array(np.ones((20_001, 1), int))
    with pytest.raises(
        ValueError, match=r"at most 20,000 of them; got 20,001; give fewer rows, or"
    ):
        WELL().fit(X, Y)


def test_labels_with_a_no_in_them_are_refused_by_name(toy):
    X, Y, _ = toy
    with pytest.raises(ValueError, match="WELL cannot use complete labels, only positive-only;"):
        WELL().fit(X, Labels.complete(Y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an int of at least 1; got 0"),
        ({"alpha": -1}, "alpha must be a finite number of at least 0; got -1"),
        ({"beta": 0}, "beta must be a finite number above 0; got 0"),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=f"^WELL: {message}$"):
        tight(**params).fit(X, Y)
