import numpy as np
import pytest
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from tacit.baselines import BinaryRelevance, Ridge
from tacit.engines.losses import LOSSES
from tacit.labels import DENSE_LIMIT, Labels

REG = 0.3
losses = pytest.mark.parametrize("loss", LOSSES)


def tight(loss, **params):
    return BinaryRelevance(**dict(loss=loss, reg=REG, tol=1e-13, fit_intercept=False) | params)


def theirs(loss):
    """scikit-learn's model of (1) for one label; LIBLINEAR's ½ is on ‖w‖² alone, so C = 1 / 2λ."""
    if loss == "squared":
        return TheirRidge(alpha=REG, fit_intercept=False, tol=1e-12)
    if loss == "logistic":
        return LogisticRegression(C=1 / REG, fit_intercept=False, tol=1e-10, max_iter=10_000)
    return LinearSVC(C=1 / (2 * REG), dual=False, fit_intercept=False, tol=1e-12, max_iter=10_000)


def objective(loss, X, labels, Z):
    """(1) by the book: the losses of all entries, of which those not said are then left out."""
    A = labels.to_array()
    each = LOSSES[loss].value(np.nan_to_num(A), X @ Z)
    return each[~np.isnan(A)].sum() + 0.5 * REG * (Z**2).sum()


@losses
def test_each_label_is_scikit_learns_model_of_its_observed_rows(masked, loss, device):
    X, labels = masked
    Z = tight(loss, device=device).fit(X, labels).model_.W
    unit, A = normalize(X.toarray()), labels.to_array()
    for j in range(labels.n_labels):
        rows = ~np.isnan(A[:, j])
        wanted = theirs(loss).fit(unit[rows], A[rows, j]).coef_.ravel()
        assert_allclose(Z[:, j], wanted, rtol=1e-4, atol=1e-5)


@losses
def test_observing_everything_is_having_complete_labels(toy, loss):
    X, Y, _ = toy
    complete = tight(loss).fit(X, Y).model_.W
    masked = tight(loss).fit(X, Labels.masked(Y, np.ones(Y.shape))).model_.W
    assert np.abs(complete).max() > 0.1
    assert_allclose(masked, complete, rtol=1e-4, atol=1e-7)


def test_squared_loss_with_complete_labels_is_ridge(toy, device):
    X, Y, _ = toy
    ours = BinaryRelevance(reg=0.7, device=device).fit(X, Y)
    assert_allclose(ours.model_.W, Ridge(reg=0.7).fit(X, Y).model_.W, rtol=1e-10, atol=1e-12)


@losses
@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_the_objective_is_the_one_stated_and_never_rises(toy, masked, loss, kind):
    X, labels = masked if kind == "masked" else (toy[0], Labels.complete(toy[1]))
    histories = []
    for max_iter in (1, 2, 20):
        model = tight(loss, max_iter=max_iter).fit(X, labels)
        stated = objective(loss, normalize(X.toarray()), labels, model.model_.W)
        assert_allclose(model.history_[-1], stated, rtol=1e-10)
        histories.append(model.history_)
    assert (np.diff(histories[-1]) <= 1e-12 * histories[-1][0]).all()
    assert histories[-1][: len(histories[1])] == histories[1]


@losses
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_the_objective_ends_within_tol_of_its_minimum(masked, loss, tol):
    X, labels = masked
    params = dict(reg=0.01, normalize=None)
    least = tight(loss, **params).fit(X, labels).history_[-1]
    assert tight(loss, tol=tol, **params).fit(X, labels).history_[-1] <= (1 + tol) * least


@losses
@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_labels_in_one_group_or_in_many_get_the_same_coefficients(
    toy, masked, loss, kind, monkeypatch
):
    X, labels = masked if kind == "masked" else (toy[0], Labels.complete(toy[1]))
    together = tight(loss).fit(X, labels)
    monkeypatch.setattr("tacit.engines.labelwise._GROUP_SCORES", 4 * X.shape[0] + 1)
    groups = []
    monkeypatch.setattr("tacit.engines.labelwise.LabelwiseMap.__init__", _noting(groups))
    apart = tight(loss).fit(X, labels)
    if loss == "logistic" or (loss == "squared" and kind == "masked"):
        assert set(groups) == {(0, 4), (4, 8), (8, 9)}
    assert_allclose(apart.model_.W, together.model_.W, rtol=1e-5, atol=1e-8)
    assert_allclose(apart.history_[-1], together.history_[-1], rtol=1e-10)


def _noting(groups):
    from tacit.engines.labelwise import LabelwiseMap

    init = LabelwiseMap.__init__

    def noting(self, block, labels):
        groups.append((labels.start, labels.stop))
        init(self, block, labels)

    return noting


@losses
@pytest.mark.parametrize("where", PLACES)
def test_the_place_of_the_rows_does_not_matter(blocks_of, masked, loss, where):
    wanted = tight(loss).fit(*masked).model_.W
    got = tight(loss).fit(blocks_of(*masked, where)).model_.W
    assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)  # the root of what J may be off


def test_a_fit_that_was_stopped_goes_on_to_the_same_model(masked, tmp_path):
    params = dict(normalize=None, reg=1e-4)  # hard enough for several passes
    whole = tight("logistic", **params).fit(*masked)
    kept = tmp_path / "state"
    tight("logistic", max_iter=1, **params).fit(*masked, checkpoint=kept)
    resumed = tight("logistic", **params).fit(*masked, checkpoint=kept)
    assert whole.n_iter_ > 2
    assert resumed.history_ == whole.history_
    assert_array_equal(resumed.model_.W, whole.model_.W)


@losses
def test_a_heavy_penalty_leaves_nothing(masked, loss):
    assert np.abs(tight(loss, reg=1e9).fit(*masked).model_.W).max() < 1e-6


@losses
def test_what_was_not_observed_is_never_read(toy, loss):
    """Zeros and ones outside Ω make the same model; a label without any entry gets none."""
    X, Y, observed = toy
    seen = observed.toarray().copy()
    seen[:, 4] = False
    before = tight(loss).fit(X, Labels.masked(Y * seen, seen)).model_.W
    A = np.where(seen, Y.toarray(), np.nan)
    assert_allclose(tight(loss).fit(X, A).model_.W, before, rtol=1e-12)
    assert (before[:, 4] == 0).all()
    others = np.delete(np.arange(9), 4)
    assert (np.abs(before[:, others]).max(axis=0) > 0).all()


def test_coefficients_beyond_the_limit_are_refused_with_the_alternative(toy, monkeypatch):
    assert DENSE_LIMIT > 200
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 100)
    X, Y, _ = toy
    with pytest.raises(ValueError, match=r"coefficients would lay out 13 × 9.*use LEML"):
        BinaryRelevance(loss="logistic").fit(X, Y)
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 150)
    assert BinaryRelevance(loss="logistic").fit(X, Y).n_iter_ > 0  # it needs no XᵀX
    with pytest.raises(ValueError, match=r"XᵀX would lay out 13 × 13.*use LEML"):
        BinaryRelevance().fit(X, Y)
