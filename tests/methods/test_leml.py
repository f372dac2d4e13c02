"""The laws of LEML: three losses, three kinds of labels, and the closed form."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import linear_model

from tacit import LEML, Labels
from tacit.baselines import Ridge
from tacit.engines.moments import Moments
from tacit.methods.leml import curvature, masked
from tacit.methods.leml.minimise import Minimiser
from tacit.methods.leml.squared import ClosedForm

EXACT = dict(cg_tol=1e-13, cg_max_iter=500)
PLAIN = dict(normalize=None, fit_intercept=False, random_state=0)
CURVED = ["logistic", "squared_hinge"]
# The pairs that minimise (1); positive-only labels with squared loss minimise (4) instead.
OF_ONE = [
    (loss, kind)
    for loss in ("squared", *CURVED)
    for kind in ("complete", "masked", "positive-only", "reviewed")
    if loss != "squared" or kind in ("complete", "masked")
]


def labels_of(toy, kind):
    _, Y, observed = toy
    return {
        "complete": lambda: Labels.complete(Y),
        "masked": lambda: Labels.masked(Y * observed, observed),
        "positive-only": lambda: Labels.positive_only(Y * observed),
        "reviewed": lambda: Labels.positive_only(
            Y * observed, no=observed.astype(int) - Y * observed
        ),
    }[kind]()


def weights(model, labels):
    """What each entry counts, dense: an unobserved one nothing."""
    if labels.observed is not None:
        return labels.observed.toarray().astype(float)
    silence = 1.0
    if labels.kind == "positive-only":
        silence = model.unsaid_weight_ if hasattr(model, "model_") else model.unsaid_weight
    return weights_of(labels, silence)


def weights_of(labels, silence):
    """1 for a yes, and half way to that of silence, geometrically, for a no among it."""
    of_silence = np.full(labels.shape, silence)
    if labels.noes is not None:
        of_silence[labels.noes.toarray()] = silence**0.5
    return np.where(labels.positives.toarray(), 1.0, of_silence)


def losses(name, y, z):
    t = 2 * y - 1
    return {
        "squared": lambda: 0.5 * (y - z) ** 2,
        "logistic": lambda: np.logaddexp(0, -t * z),
        "squared_hinge": lambda: 0.5 * np.maximum(0, 1 - t * z) ** 2,
    }[name]()


def slopes(name, y, z):
    t = 2 * y - 1
    return {
        "squared": lambda: z - y,
        "logistic": lambda: -t * expit(-t * z),
        "squared_hinge": lambda: -t * np.maximum(0, 1 - t * z),
    }[name]()


def objective(model, X, labels, W=None, H=None):
    """J of (1), dense; at the factors of a fitted model unless told otherwise."""
    W, H = (model.model_.W, model.model_.H) if W is None else (W, H)
    entries = losses(model.loss, labels.to_sparse().toarray(), X @ W @ H.T)
    penalty = 0.5 * model.reg * ((W**2).sum() + (H**2).sum())
    return (weights(model, labels) * entries).sum() + penalty


def gradients(model, X, labels, W, H):
    """∂J/∂W and ∂J/∂H, dense."""
    R = slopes(model.loss, labels.to_sparse().toarray(), X @ W @ H.T)
    R = weights(model, labels) * R
    return X.T @ R @ H + model.reg * W, R.T @ (X @ W) + model.reg * H


def alternation_of(model, X, labels):
    """The alternation that `fit` would run on the rows."""
    problem = model._problem(*model._rows(X, labels))
    how = Minimiser(model.loss, model.solver, model.unsaid_weight, model.cg_tol, model.cg_max_iter)
    return how.alternation(problem, how.equations(problem))


def never_increases(history):
    return bool((np.diff(history) <= 1e-9 * np.abs(history[:-1])).all())


@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize(("loss", "kind"), OF_ONE)
def test_history_is_the_objective_and_never_increases(device, toy, loss, kind, solver):
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(rank=3, loss=loss, reg=0.1, tol=0, max_iter=12, solver=solver, **PLAIN)
    model.set_params(device=device).fit(X, labels)
    assert len(model.history_) == model.n_iter_
    assert model.n_iter_ > 1
    assert never_increases(model.history_)
    assert_allclose(model.history_[-1], objective(model, X, labels), rtol=1e-10)


@pytest.mark.parametrize(("loss", "kind"), OF_ONE)
def test_a_converged_fit_is_stationary_in_both_factors(toy, loss, kind):
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(rank=3, loss=loss, reg=1.0, tol=0, max_iter=100, cg_tol=1e-8, **PLAIN).fit(
        X, labels
    )
    slope_W, slope_H = gradients(model, X, labels, model.model_.W, model.model_.H)
    assert abs(slope_W).max() < 1e-4
    assert abs(slope_H).max() < 1e-4
    assert abs(model.model_.W).max() > 0.1, "0 is stationary too"


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


@pytest.mark.parametrize("loss", CURVED)
def test_a_mask_of_everything_has_the_minimum_of_complete_labels(toy, loss):
    """TRON and the bound (5) are two roads to one place."""
    X, Y, _ = toy
    fit = lambda labels: LEML(
        rank=3, loss=loss, reg=1.0, tol=0, max_iter=150, cg_tol=1e-6, **PLAIN
    ).fit(X, labels)
    by_tron, by_bound = fit(Labels.masked(Y, np.ones(Y.shape))), fit(Y)
    assert_allclose(by_tron.history_[-1], by_bound.history_[-1], rtol=1e-6)
    assert_allclose(by_tron.decision_function(X), by_bound.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("loss", CURVED)
def test_silence_of_full_weight_is_a_no(device, toy, loss):
    X, Y, _ = toy
    fit = lambda labels: LEML(
        rank=3, loss=loss, unsaid_weight=1.0, max_iter=5, device=device, random_state=0
    ).fit(X, labels)
    complete, positive = fit(Labels.complete(Y)), fit(Labels.positive_only(Y))
    assert_allclose(positive.decision_function(X), complete.decision_function(X), rtol=1e-10)


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_the_W_step_solves_for_W_with_H_as_it_is(toy, kind):
    """The gradient Xᵀ(P_Ω(X W Hᵀ - Y) H) + λW vanishes."""
    X, labels = toy[0], labels_of(toy, kind)
    model, rng = LEML(rank=3, reg=0.3, **PLAIN, **EXACT), np.random.default_rng(0)
    W, H = rng.standard_normal((12, 3)), rng.standard_normal((9, 3))
    W = alternation_of(model, X, labels)._solve_W(W, H, 0.3)
    assert_allclose(gradients(model, X, labels, W, H)[0], 0, atol=1e-8)


@pytest.mark.parametrize("kind", ["complete", "positive-only"])
@pytest.mark.parametrize(("loss", "bound"), [("logistic", 0.25), ("squared_hinge", 1.0)])
def test_a_plain_pass_minimises_the_bound_and_lowers_J_by_what_it_promises(toy, loss, bound, kind):
    """(5), with its Hessian c HᵀH ⊗ XᵀX + λI written out."""
    X, labels = toy[0].toarray(), labels_of(toy, kind)
    model = LEML(rank=3, loss=loss, reg=0.3, unsaid_weight=0.1, **PLAIN)
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((12, 3)), rng.standard_normal((9, 3))
    moved_W, moved_H = alternation_of(model, X, labels)._pass(W, H, None, 0.3)

    g = gradients(model, X, labels, W, H)[0].ravel()
    step = np.linalg.solve(np.kron(X.T @ X, bound * H.T @ H) + 0.3 * np.eye(36), -g)
    assert_allclose(moved_W, W + step.reshape(12, 3), atol=1e-8)
    promised = -0.5 * g @ step

    A = X @ moved_W
    g = gradients(model, X, labels, moved_W, H)[1]
    step = np.linalg.solve(bound * A.T @ A + 0.3 * np.eye(3), -g.T).T
    assert_allclose(moved_H, H + step, atol=1e-8)
    promised -= 0.5 * (g * step).sum()

    fell = objective(model, X, labels, W, H) - objective(model, X, labels, moved_W, moved_H)
    assert fell >= promised > 0


def test_momentum_needs_fewer_passes_and_still_never_rises():
    """Rare labels, where the bound is loose; after 45 passes momentum overshoots and must stop."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((80, 10)), np.ones((80, 1))])
    Y = (X @ rng.standard_normal((11, 12)) > 4).astype(int)
    model = LEML(rank=3, loss="logistic", reg=1.0, tol=0, max_iter=100, **PLAIN).fit(X, Y)
    assert never_increases(model.history_)
    alternation = alternation_of(model, X, Y)
    state = alternation.start(3, 1.0)
    W, H = state["W"], state["H"]
    for _ in range(100):
        W, H = alternation._pass(W, H, None, 1.0)
    assert model.history_[-1] < 0.95 * objective(model, X, Labels.complete(Y), W, H)


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_a_pass_lays_out_all_scores_once_a_half_whatever_the_inner_solver_does(
    toy, solver, monkeypatch
):
    X, Y, _ = toy
    calls = []
    scores = curvature._scores
    monkeypatch.setattr(curvature, "_scores", lambda *args: calls.append(1) or scores(*args))
    model = LEML(rank=3, loss="logistic", reg=0.3, solver=solver, **PLAIN, **EXACT)
    alternation = alternation_of(model, X, Y)
    state = alternation.start(3, 0.3)
    counts = []
    for _ in range(3):
        calls.clear()
        state, _ = alternation.step(state, 0.3)
        counts.append(len(calls))
    assert counts == [2, 3, 3], "two a plain pass; one more for the slope at a point beyond"


def test_scores_laid_out_some_at_a_time_do_not_change_the_model(toy, monkeypatch):
    X, Y, _ = toy
    fit = lambda: LEML(rank=3, loss="logistic", random_state=0).fit(X, Y).decision_function(X)
    whole = fit()
    monkeypatch.setattr(curvature, "_BLOCK_ENTRIES", 7 * 9)  # seven rows at a time
    assert_allclose(fit(), whole, rtol=1e-9)


@pytest.mark.parametrize("loss", CURVED)
def test_tron_stops_at_a_share_of_the_slope_of_the_start(toy, loss, monkeypatch):
    """So once the slope is that small a pass takes no Hessian product, however it began."""
    X, labels = toy[0], labels_of(toy, "masked")
    taken = []
    tron = masked.tron

    def counted(*args, **kwargs):
        found = tron(*args, **kwargs)
        taken.append(found.n_products)
        return found

    monkeypatch.setattr(masked, "tron", counted)
    model = LEML(rank=3, loss=loss, reg=0.3, cg_tol=0.01, **PLAIN)
    alternation = alternation_of(model, X, labels)
    state = first = alternation.start(3, 0.3)
    slope_W, slope_H = gradients(model, X, labels, first["W"], first["H"])
    assert_allclose(first["gtol_W"], np.linalg.norm(slope_W))
    assert_allclose(first["gtol_H"], np.linalg.norm(slope_H, axis=1, keepdims=True))
    for _ in range(60):
        state, _ = alternation.step(state, 0.3)
    assert_array_equal(state["gtol_W"], first["gtol_W"])
    assert_array_equal(state["gtol_H"], first["gtol_H"])
    assert taken[0] > 0
    assert sum(taken[-2:]) == 0
    slope_W, slope_H = gradients(model, X, labels, state["W"], state["H"])
    assert np.linalg.norm(slope_W) <= 0.01 * first["gtol_W"]
    assert (np.linalg.norm(slope_H, axis=1) <= 0.01 * first["gtol_H"][:, 0]).all()


@pytest.mark.parametrize(("share", "works"), [(1.01, False), (0.99, True)])
def test_tron_does_nothing_where_the_slope_is_within_its_share(toy, share, works):
    X, labels = toy[0], labels_of(toy, "masked")
    alternation = alternation_of(LEML(rank=3, loss="logistic", reg=0.3, **PLAIN), X, labels)
    start = alternation.start(3, 0.3)
    alternation.cg_tol = share
    state, _ = alternation.step(start, 0.3)
    assert bool((state["W"] != start["W"]).any()) is works


def one_class_pass(X, Y, c, W, H, reg):
    """U, W and H of (4) in turn, row by row and label by label, and J there; c are the weights."""
    eye = np.eye(W.shape[1])
    U = np.array(
        [
            np.linalg.solve((H.T * c[i]) @ H + reg * eye, H.T @ Y[i] + reg * W.T @ X[i])
            for i in range(len(X))
        ]
    )
    W = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ U)
    H = np.array(
        [np.linalg.solve((U.T * c[:, j]) @ U + reg * eye, U.T @ Y[:, j]) for j in range(Y.shape[1])]
    )
    squares = (c * (Y - U @ H.T) ** 2).sum()
    penalty = ((U - X @ W) ** 2).sum() + (W**2).sum() + (H**2).sum()
    return W, H, 0.5 * (squares + reg * penalty)


@pytest.mark.parametrize("weight", [0.03, 1.0])
@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("kind", ["positive-only", "reviewed"])
def test_positive_only_passes_are_those_of_the_dense_formula(device, toy, kind, solver, weight):
    X, labels = toy[0], labels_of(toy, kind)
    Y, c = labels.positives.toarray(), weights_of(labels, weight)
    model = LEML(rank=3, reg=0.2, unsaid_weight=weight, solver=solver, device=device, **PLAIN)
    alternation = alternation_of(model.set_params(**EXACT), X, labels)
    to_numpy = alternation.problem.backend.to_numpy
    state = alternation.start(3, 0.2)
    W, H = (to_numpy(state[name]) for name in "WH")
    history = []
    for _ in range(4):
        state, J = alternation.step(state, 0.2)
        W, H, wanted = one_class_pass(X.toarray(), Y, c, W, H, 0.2)
        assert_allclose(J, wanted, rtol=1e-9)
        assert_allclose(to_numpy(state["W"]), W, atol=1e-5)
        assert_allclose(to_numpy(state["H"]), H, atol=1e-5)
        history.append(J)
    assert never_increases(history)


def test_positive_only_silence_is_weighed_not_read_as_a_no(toy):
    """The less it weighs, the more is said yes to."""
    X, labels = toy[0], labels_of(toy, "positive-only")
    fit = lambda w: LEML(rank=3, reg=0.1, unsaid_weight=w, random_state=0).fit(X, labels)
    means = [fit(w).decision_function(X).mean() for w in (0.01, 0.1, 1.0)]
    assert means[0] > means[1] > means[2]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_silence_weighs_by_the_share_of_what_was_said(toy, loss):
    X, labels = toy[0], labels_of(toy, "positive-only")
    weight = 0.3 * np.sqrt(labels.positives.nnz / 360)
    fit = lambda w: LEML(rank=3, loss=loss, unsaid_weight=w, random_state=0).fit(X, labels)
    auto, given = fit("auto"), fit(weight)
    assert_allclose(auto.unsaid_weight_, weight)
    assert_allclose(auto.decision_function(X), given.decision_function(X), rtol=1e-9)


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


def claim_1(X, Y, rank):
    """V_X Σ_X⁻¹ (U_XᵀY)_k, the Z of least ‖Y - X Z‖ and then of least norm among rank k."""
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    kept = s > 1e-10 * s[0]
    A, t, Bt = np.linalg.svd(U[:, kept].T @ Y, full_matrices=False)
    return Vt[kept].T / s[kept] @ (A[:, :rank] * t[:rank]) @ Bt[:rank]


def closed_form_data(shape=(40, 6, 8)):
    rng = np.random.default_rng(3)
    n, d, n_labels = shape
    return rng.standard_normal((n, d)), (rng.random((n, n_labels)) < 0.4).astype(float)


def closed_form(X, Y, rank, reg):
    model = LEML(rank=rank, reg=reg, solver="closed_form", **PLAIN).fit(X, Y)
    assert model.history_ == []
    return model.model_.W @ model.model_.H.T


@pytest.mark.parametrize("shape", [(40, 6, 8), (9, 15, 8)], ids=["tall", "d > n"])
def test_the_closed_form_is_claim_1(shape):
    X, Y = closed_form_data(shape)
    assert_allclose(closed_form(X, Y, 3, 0.0), claim_1(X, Y, 3), atol=1e-8)


def test_vanishing_regularisation_is_claim_1():
    X, Y = closed_form_data()
    model = LEML(rank=3, reg=1e-8, tol=0, max_iter=300, **PLAIN).fit(X, Y)
    assert_allclose(model.decision_function(X), X @ claim_1(X, Y, 3), atol=1e-5)


def test_the_closed_form_is_cplst():
    """Claim 2: X⁺Y V_kV_kᵀ with V_k the top eigenvectors of YᵀXX⁺Y."""
    X, Y = closed_form_data()
    ridge = np.linalg.pinv(X) @ Y
    V = np.linalg.eigh(Y.T @ X @ ridge)[1][:, -3:]
    assert_allclose(closed_form(X, Y, 3, 0.0), ridge @ V @ V.T, atol=1e-10)


def test_the_closed_form_of_centred_moments_is_cplst_as_published():
    """Codes V_kᵀ(y - ȳ), their ridge regressions with an intercept, and back."""
    X, Y = closed_form_data()
    X += 1.0
    Xc, Yc = X - X.mean(0), Y - Y.mean(0)
    moments = Moments(40.0, Xc.sum(0), Yc.sum(0), Xc.T @ Xc, Xc.T @ Yc, None)
    factors = ClosedForm(moments).start(3, 0.5)
    V = factors["H"]
    codes = linear_model.Ridge(alpha=0.5).fit(X, Yc @ V).predict(X)
    assert_allclose(Xc @ factors["W"] @ V.T, codes @ V.T, atol=1e-10)
    hat = Xc @ np.linalg.solve(Xc.T @ Xc + 0.5 * np.eye(6), Xc.T)
    assert_allclose(Yc.T @ hat @ Yc @ V, V * np.linalg.eigvalsh(Yc.T @ hat @ Yc)[:-4:-1])


def test_the_closed_form_at_full_rank_is_ridge(device, toy):
    X, Y, _ = toy
    full = LEML(rank=9, reg=0.4, solver="closed_form", device=device).fit(X, Y)
    wanted = Ridge(reg=0.4).fit(X, Y).decision_function(X)
    assert_allclose(full.decision_function(X), wanted, atol=1e-10)


def test_the_closed_form_is_the_best_of_its_rank():
    """Against Claim 1 on rows that carry the penalty, and against L-BFGS from random starts."""
    X, Y = closed_form_data()
    Z = closed_form(X, Y, 3, 0.7)
    stacked_X, stacked_Y = (
        np.vstack([X, np.sqrt(0.7) * np.eye(6)]),
        np.vstack([Y, np.zeros((6, 8))]),
    )
    assert_allclose(Z, claim_1(stacked_X, stacked_Y, 3), atol=1e-8)

    def value_and_slope(v):
        W, H = v[:18].reshape(6, 3), v[18:].reshape(8, 3)
        R = stacked_X @ W @ H.T - stacked_Y
        return 0.5 * (R**2).sum(), np.hstack(
            [(stacked_X.T @ R @ H).ravel(), (R.T @ stacked_X @ W).ravel()]
        )

    ours = 0.5 * ((stacked_Y - stacked_X @ Z) ** 2).sum()
    rng = np.random.default_rng(0)
    found = [minimize(value_and_slope, rng.standard_normal(42), jac=True).fun for _ in range(4)]
    assert_allclose(min(found), ours, rtol=1e-6)


def test_what_is_unsaid_is_not_read_as_no(masked):
    """Declaring the unsaid a no changes the model: so it was not one before."""
    X, labels = masked
    fit = lambda labels: LEML(rank=3, reg=0.1, random_state=0).fit(X, labels).decision_function(X)
    assert abs(fit(labels) - fit(labels.as_complete())).max() > 0.1


@pytest.mark.parametrize("loss", ["squared", *CURVED])
def test_a_label_never_observed_gets_no_weight_and_the_others_do_not_notice(masked, loss):
    X, labels = masked
    A = labels.to_array()
    A[:, 4] = np.nan
    model = LEML(rank=3, loss=loss, reg=0.1, random_state=0).fit(X, Labels.from_array(A))
    assert_allclose(model.model_.H[4], 0, atol=1e-12)
    assert np.isfinite(model.decision_function(X)).all()


def test_the_ridge_start_needs_few_passes():
    """From the reduced-rank ridge start, the first pass is within 1 % of the last."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    Y = (X @ rng.standard_normal((30, 4)) @ rng.standard_normal((4, 20)) > 1).astype(int)
    model = LEML(rank=4, reg=1.0, tol=0, max_iter=60, random_state=0).fit(X, Y)
    assert model.history_[0] < 1.01 * model.history_[-1]


@pytest.mark.parametrize(("loss", "kind"), [*OF_ONE, ("squared", "positive-only")])
def test_huge_regularisation_collapses_to_zero(toy, loss, kind):
    model = LEML(rank=3, loss=loss, reg=1e6, **PLAIN).fit(toy[0], labels_of(toy, kind))
    assert_allclose(model.decision_function(toy[0]), 0, atol=1e-5)


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


@pytest.mark.parametrize("kind", ["masked", "positive-only"])
def test_gram_batches_do_not_change_the_model(toy, kind, monkeypatch):
    X, labels = toy[0], labels_of(toy, kind)
    fit = lambda: LEML(rank=3, random_state=0).fit(X, labels).decision_function(X)
    whole = fit()
    monkeypatch.setattr(masked, "_GRAM_NUMBERS", 18)  # two labels at a time
    assert_allclose(fit(), whole, rtol=1e-9)


@pytest.mark.parametrize(("loss", "kind"), [*OF_ONE, ("squared", "positive-only")])
def test_a_fit_cut_short_ends_in_the_same_model(toy, loss, kind, tmp_path):
    """So the state holds all that a step depends on: momentum, tolerances of TRON."""
    X, labels = toy[0], labels_of(toy, kind)
    model = lambda n: LEML(rank=3, loss=loss, reg=0.1, tol=0, max_iter=n, random_state=0)
    model(4).fit(X, labels, checkpoint=tmp_path / "fit")
    resumed = model(8).fit(X, labels, checkpoint=tmp_path / "fit")
    whole = model(8).fit(X, labels)
    assert resumed.history_ == whole.history_
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("loss", ["squared", *CURVED])
@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
def test_completion_without_fold_in_is_by_the_scores(toy, loss, kind):
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(rank=3, loss=loss, reg=0.1, random_state=0).fit(X, labels)
    found = model.complete(X, labels, k=9, fold_in=False)
    said = (labels.positives if labels.observed is None else labels.observed).toarray()
    scores = np.where(said, -np.inf, model.decision_function(X))
    assert_allclose(found.probability, model.model_.probability(scores[found.row, found.label]))
    order = np.argsort(-scores[~said], kind="stable")
    assert_allclose(scores[found.row, found.label], scores[~said][order], rtol=1e-12)


@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
def test_completion_is_by_codes_fitted_to_what_was_said(device, toy, kind):
    """Row by row: a ridge problem centred on Wᵀx, where silence weighs little or nothing.

    Its λ is the mean eigenvalue of HᵀH.
    """
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(rank=3, reg=0.3, unsaid_weight=0.05, device=device, **PLAIN).fit(X, labels)
    found = model.complete(X, labels, k=9)
    W, H = model.model_.W, model.model_.H
    Y = labels.to_sparse().toarray()
    said = (labels.positives if labels.observed is None else labels.observed).toarray()
    c = np.where(said, 1.0, 0.0 if kind == "masked" else 0.05)
    reg = np.linalg.eigvalsh(H.T @ H).mean()
    U = np.array(
        [
            np.linalg.solve((H.T * c[i]) @ H + reg * np.eye(3), H.T @ Y[i] + reg * code)
            for i, code in enumerate(X @ W)
        ]
    )
    scores = np.where(said, -np.inf, U @ H.T)
    assert len(found.row) == (~said).sum()
    assert_allclose(found.probability, np.clip(scores[found.row, found.label], 0, 1), atol=1e-5)
    assert_allclose(scores[found.row, found.label], np.sort(scores[~said])[::-1], atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", *CURVED])
def test_completion_does_not_depend_on_how_W_and_H_share_their_scale(toy, loss):
    """Nor does it need λ: the closed form has none here."""
    X, labels = toy[0], labels_of(toy, "masked")
    solver, reg = ("closed_form", 0) if loss == "squared" else ("auto", 0.3)
    model = LEML(rank=3, loss=loss, reg=reg, solver=solver, **PLAIN).fit(X, toy[1])
    W, H = model.model_.W, model.model_.H
    before = model.complete(X, labels, k=9)
    model.model_ = replace(model.model_, W=20 * W, H=H / 20)
    after = model.complete(X, labels, k=9)
    assert_allclose(after.probability, before.probability, atol=1e-6)
    model.model_ = replace(model.model_, H=0 * H)  # as after a huge λ: there is nothing to fit
    assert_allclose(model.complete(X, labels).probability, 0.0 if loss == "squared" else 0.5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(rank=0), 'LEML: rank must be an int of at least 1, or "auto"; got 0'),
        (dict(rank="best"), "LEML: rank must be an int of at least 1, or \"auto\"; got 'best'"),
        (dict(reg=-1.0), 'LEML: reg must be a finite number of at least 0, or "auto"; got -1.0'),
        (
            dict(loss="hinge"),
            "LEML: loss must be one of 'squared', 'logistic', 'squared_hinge'; got 'hinge'",
        ),
        (
            dict(unsaid_weight=0.0),
            'LEML: unsaid_weight must be above 0 and at most 1, or "auto"; got 0.0',
        ),
        (dict(normalize="l1"), "LEML: normalize must be one of 'auto', 'l2', None; got 'l1'"),
        (dict(reg=0), r'reg must be above 0 \(or "auto"\) unless solver="closed_form"; got 0'),
        (
            dict(solver="closed_form", loss="logistic"),
            'solver="closed_form" is for complete labels and squared loss; got complete labels and '
            "loss='logistic'; use solver=\"auto\"",
        ),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=message):
        LEML(**params).fit(X, Y)


@pytest.mark.parametrize("kind", ["masked", "positive-only"])
def test_the_closed_form_refuses_labels_that_are_not_complete(toy, kind):
    wanted = f"is for complete labels and squared loss; got {kind} labels"
    with pytest.raises(ValueError, match=wanted):
        LEML(solver="closed_form").fit(toy[0], labels_of(toy, kind))
