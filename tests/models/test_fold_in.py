"""The laws of fold-in: the code of a row given its features and what was said of it."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from tacit.backends.block import Placement, place
from tacit.blocks import Rows
from tacit.engines.losses import LOSSES
from tacit.labels import Labels
from tacit.models import fold_in

REG = 0.4


def problem(backend, toy, kind, seed=0):
    """A block, dense X, Y and what was said, and factors that were never fitted."""
    X, Y, observed = toy
    Y = (Y * observed).tolil()
    Y[3], observed = 0, observed.tolil()
    observed[3] = 0  # nothing at all is said of row 3
    Y, observed = Y.tocsr(), observed.tocsr()
    labels = {
        "masked": lambda: Labels.masked(Y, observed),
        "positive-only": lambda: Labels.positive_only(Y),
        "reviewed": lambda: Labels.positive_only(Y, no=observed.astype(int) - Y),
    }[kind]()
    block = place(Rows(X, labels), Placement(backend, "float64", None, False))
    rng = np.random.default_rng(seed)
    W, H = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    said = (Y if kind == "positive-only" else observed).toarray().astype(bool)
    return block, X.toarray(), Y.toarray().astype(float), said, W, H


def dense(X, Y, said, W, H, weight, kind="positive-only"):
    """(1) row by row."""
    c = np.where(said, 1.0, weight)
    if kind == "reviewed":
        c[said & (Y == 0)] = weight**0.5
    return np.array(
        [
            np.linalg.solve((H.T * c[i]) @ H + REG * np.eye(4), H.T @ Y[i] + REG * W.T @ X[i])
            for i in range(len(X))
        ]
    )


@pytest.mark.parametrize(
    ("kind", "weight"),
    [("positive-only", 0.03), ("positive-only", 1.0), ("reviewed", 0.03), ("masked", 0.03)],
)
def test_codes_solve_the_ridge_problem_of_each_row(backend, toy, kind, weight):
    block, X, Y, said, W, H = problem(backend, toy, kind)
    args = (backend.asarray(W), backend.asarray(H))
    U = backend.to_numpy(fold_in(block, *args, LOSSES["squared"], weight, REG))
    wanted = dense(X, Y, said, W, H, 0.0 if kind == "masked" else weight, kind)
    assert_allclose(U, wanted, atol=1e-5)


def test_a_row_of_which_nothing_was_said_keeps_the_code_of_its_features(backend, toy):
    """With a mask; where silence weighs, it shrinks that code by λ (w HᵀH + λI)⁻¹."""
    for kind, weight in (("masked", 0.0), ("positive-only", 0.2)):
        block, X, _, said, W, H = problem(backend, toy, kind)
        assert not said[3].any()
        args = (backend.asarray(W), backend.asarray(H))
        U = backend.to_numpy(fold_in(block, *args, LOSSES["squared"], 0.2, REG))
        wanted = REG * np.linalg.solve(weight * H.T @ H + REG * np.eye(4), W.T @ X[3])
        assert_allclose(U[3], wanted, atol=1e-10)


def test_products_are_no_more_than_the_most_said_of_a_row(backend, toy, monkeypatch):
    """Each row is a system with one unknown for each thing said."""
    block, *_, said, W, H = problem(backend, toy, "positive-only")
    module = sys.modules[fold_in.__module__]
    taken, cg = [], module.cg

    def counted(*args, **kwargs):
        found = cg(*args, **kwargs)
        taken.append(found.n_products)
        return found

    monkeypatch.setattr(module, "cg", counted)
    fold_in(block, backend.asarray(W), backend.asarray(H), LOSSES["squared"], 0.03, REG)
    assert 1 < taken[0] <= said.sum(axis=1).max() + 1


@pytest.mark.parametrize("kind", ["positive-only", "reviewed", "masked"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_with_another_loss_codes_go_down_to_where_the_slope_vanishes(
    backend, toy, loss, kind, monkeypatch
):
    """Silence weighs nothing there: Σ_S a ℓ(y, uᵀh) + ½ λ ‖u - Wᵀx‖² of every row."""
    block, X, Y, said, W, H = problem(backend, toy, kind)
    T = np.where(said, 2 * Y - 1, 0.0)
    a = np.where((Y == 0) & (kind == "reviewed"), 0.03**0.5, 1.0)

    def objective(U):
        Z = T * (U @ H.T)
        entries = {"logistic": np.logaddexp(0, -Z), "squared_hinge": np.maximum(0, 1 - Z) ** 2 / 2}
        return (said * a * entries[loss]).sum(1) + 0.5 * REG * ((U - X @ W) ** 2).sum(1)

    def slope(U):
        Z = T * (U @ H.T)
        R = {"logistic": -T * expit(-Z), "squared_hinge": -T * np.maximum(0, 1 - Z)}[loss]
        return (a * R) @ H + REG * (U - X @ W)

    module = sys.modules[fold_in.__module__]
    args = (block, backend.asarray(W), backend.asarray(H), LOSSES[loss], 0.03, REG)
    before = objective(X @ W)
    assert abs(slope(X @ W)).max() > 0.1
    for steps in (1, 2, module._STEPS):
        monkeypatch.setattr(module, "_STEPS", steps)
        after = objective(backend.to_numpy(fold_in(*args)))
        assert (after <= before + 1e-9).all()
        assert after.sum() < before.sum()
        before = after
    monkeypatch.setattr(module, "_STEPS", 150)
    assert abs(slope(backend.to_numpy(fold_in(*args)))).max() < 1e-4
