"""The laws of LEML (squared loss)."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tacit import LEML, Labels
from tacit.backends import get_backend
from tacit.backends.block import Placement, place
from tacit.blocks import MemoryBlocks, Rows
from tacit.moments import Moments

EXACT = dict(cg_tol=1e-13, cg_max_iter=500)
PLAIN = dict(normalize=None, fit_intercept=False, random_state=0)


def objective(model, X, A):
    """J of a fitted model, dense, from A with NaN where unsaid."""
    W, H = model.model_.W, model.model_.H
    return 0.5 * np.nansum((A - X @ W @ H.T) ** 2) + 0.5 * model.reg * ((W**2).sum() + (H**2).sum())


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_history_is_the_objective_and_never_increases(device, toy, solver):
    X, Y, _ = toy
    model = LEML(rank=3, reg=0.1, tol=0, max_iter=6, solver=solver, device=device, **PLAIN)
    model.fit(X, Y)
    assert len(model.history_) == model.n_iter_ == 6
    assert (np.diff(model.history_) <= 1e-9 * np.abs(model.history_[:-1])).all()
    assert_allclose(model.history_[-1], objective(model, X, Y.toarray()), rtol=1e-10)


def test_masked_history_is_the_objective_and_never_increases(device, masked):
    X, labels = masked
    model = LEML(rank=3, reg=0.1, tol=0, max_iter=6, device=device, **PLAIN).fit(X, labels)
    assert (np.diff(model.history_) <= 1e-9 * np.abs(model.history_[:-1])).all()
    assert_allclose(model.history_[-1], objective(model, X, labels.to_array()), rtol=1e-10)


def test_the_exact_route_and_conjugate_gradients_agree(toy):
    X, Y, _ = toy
    fit = lambda solver: LEML(
        rank=3, reg=0.1, tol=0, max_iter=4, solver=solver, random_state=0, **EXACT
    ).fit(X, Y)
    assert_allclose(
        fit("exact").decision_function(X), fit("cg").decision_function(X), rtol=1e-7, atol=1e-9
    )


def test_a_mask_of_everything_is_complete(device, toy):
    """Algorithm 1 with Ω = all equals Algorithm 2."""
    X, Y, _ = toy
    fit = lambda labels: LEML(
        rank=3, reg=0.1, tol=0, max_iter=4, solver="cg", device=device, random_state=0, **EXACT
    ).fit(X, labels)
    masked = fit(Labels.masked(Y, np.ones(Y.shape)))
    assert_allclose(masked.decision_function(X), fit(Y).decision_function(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_the_W_step_solves_for_W_with_H_as_it_is(toy, kind):
    """The gradient Xᵀ(P_Ω(X W Hᵀ - Y) H) + λW vanishes."""
    X, Y, observed = toy
    labels = Labels.complete(Y) if kind == "complete" else Labels.masked(Y * observed, observed)
    model, rng = LEML(rank=3, reg=0.3, **PLAIN, **EXACT), np.random.default_rng(0)
    rows = Rows(X, labels)
    placement = Placement(get_backend("cpu"), "float64", None, False)
    problem = SimpleNamespace(blocks=MemoryBlocks.from_rows(rows, 2).map(place, placement))
    W, H = rng.standard_normal((12, 3)), rng.standard_normal((9, 3))
    if kind == "complete":
        W = model._complete_W(problem, Moments.of(problem.blocks), W, H)
    else:
        W = model._masked_W(problem, None, W, H)
    residual = np.nan_to_num(X @ W @ H.T - labels.to_array())
    assert_allclose(X.T @ residual @ H + 0.3 * W, 0, atol=1e-8)


def test_orthonormal_features_give_singular_value_thresholding():
    """If XᵀX = I the minimiser of (1) soft-thresholds the singular values of XᵀY, to any rank."""
    rng = np.random.default_rng(0)
    X, _ = np.linalg.qr(rng.standard_normal((30, 8)))
    Y = (rng.random((30, 5)) < 0.5).astype(float)
    U, s, Vt = np.linalg.svd(X.T @ Y, full_matrices=False)
    for rank in (2, 5):
        kept = np.maximum(s - 0.4, 0) * (np.arange(5) < rank)
        model = LEML(rank=rank, reg=0.4, tol=0, max_iter=300, **PLAIN).fit(X, Y)
        assert_allclose(model.decision_function(X), X @ (U * kept) @ Vt, atol=1e-6)


def test_full_rank_and_vanishing_regularisation_is_least_squares(toy):
    X, Y, _ = toy
    X = X.toarray() + 0.1
    model = LEML(rank=9, reg=1e-7, tol=0, max_iter=5, **PLAIN).fit(X, Y)
    wanted = X @ np.linalg.lstsq(X, Y.toarray().astype(float), rcond=None)[0]
    assert_allclose(model.decision_function(X), wanted, atol=1e-4)


def test_vanishing_regularisation_is_the_truncated_svd_of_the_projected_labels():
    """Claim 1: Z = X⁺ (U_xU_xᵀ Y)_k for λ → 0."""
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((40, 6)), (rng.random((40, 8)) < 0.4).astype(float)
    Q, _ = np.linalg.qr(X)
    U, s, Vt = np.linalg.svd(Q @ Q.T @ Y, full_matrices=False)
    model = LEML(rank=3, reg=1e-8, tol=0, max_iter=300, **PLAIN).fit(X, Y)
    assert_allclose(model.decision_function(X), (U[:, :3] * s[:3]) @ Vt[:3], atol=1e-5)


def test_what_is_unsaid_is_not_read_as_no(masked):
    """Declaring the unsaid a no changes the model: so it was not one before."""
    X, labels = masked
    fit = lambda labels: LEML(rank=3, reg=0.1, random_state=0).fit(X, labels).decision_function(X)
    assert abs(fit(labels) - fit(labels.as_complete())).max() > 0.1


def test_a_label_never_observed_gets_no_weight_and_the_others_do_not_notice(masked):
    X, labels = masked
    A = labels.to_array()
    A[:, 4] = np.nan
    model = LEML(rank=3, reg=0.1, random_state=0).fit(X, Labels.from_array(A))
    assert_allclose(model.model_.H[4], 0, atol=1e-12)
    assert np.isfinite(model.decision_function(X)).all()


def test_the_ridge_start_needs_few_passes():
    """From the reduced-rank ridge start, the first pass is within 1 % of the last."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    Y = (X @ rng.standard_normal((30, 4)) @ rng.standard_normal((4, 20)) > 1).astype(int)
    model = LEML(rank=4, reg=1.0, tol=0, max_iter=60, random_state=0).fit(X, Y)
    assert model.history_[0] < 1.01 * model.history_[-1]


def test_huge_regularisation_collapses_to_zero(toy):
    X, Y, _ = toy
    model = LEML(rank=3, reg=1e6, **PLAIN).fit(X, Y)
    assert_allclose(model.decision_function(X), 0, atol=1e-6)


def test_rank_beyond_the_smaller_side_is_cut(toy):
    X, Y, _ = toy
    assert LEML(rank=50, random_state=0).fit(X, Y).transform(X).shape == (40, 9)


def test_unit_rows_make_the_scale_of_a_row_irrelevant(toy):
    X, Y, _ = toy
    scaled = sp.csr_array(X * np.linspace(1, 9, 40)[:, None])
    fit = lambda X: LEML(rank=3, random_state=0).fit(X, Y).decision_function(X)
    assert_allclose(fit(scaled), fit(X), atol=1e-9)


def test_the_intercept_learns_a_constant_label():
    X, Y = np.random.default_rng(0).standard_normal((50, 3)), np.ones((50, 1), int)
    fit = lambda intercept: LEML(
        rank=1, reg=1e-3, normalize=None, fit_intercept=intercept, random_state=0
    ).fit(X, Y)
    assert_allclose(fit(True).decision_function(X), 1.0, atol=1e-2)
    assert abs(fit(False).decision_function(X) - 1).max() > 0.5


def test_masked_gram_batches_do_not_change_the_model(masked, monkeypatch):
    X, labels = masked
    fit = lambda: LEML(rank=3, random_state=0).fit(X, labels).decision_function(X)
    whole = fit()
    monkeypatch.setattr("tacit.methods.leml._GRAM_NUMBERS", 18)  # two labels at a time
    assert_allclose(fit(), whole, rtol=1e-12)


def test_positive_only_labels_are_refused_with_what_to_do(toy):
    X, Y, _ = toy
    with pytest.raises(
        ValueError, match=r"LEML cannot use positive-only labels.*Popularity can.*as_complete"
    ):
        LEML().fit(X, Labels.positive_only(Y))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(rank=0), "LEML: rank must be an int of at least 1; got 0"),
        (dict(reg=-1.0), "LEML: reg must be a finite number above 0; got -1.0"),
        (dict(loss="hinge"), "LEML: loss must be one of 'squared'; got 'hinge'"),
        (dict(normalize="l1"), "LEML: normalize must be one of 'l2', None; got 'l1'"),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=message):
        LEML(**params).fit(X, Y)
