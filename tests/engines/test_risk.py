"""The risk of a linear map: adjoints, derivatives, and the same values wherever the rows live."""

import numpy as np
import pytest
from conftest import PLACES
from numpy.testing import assert_allclose

from tacit.backends.block import Placement, place
from tacit.engines.losses import LOSSES
from tacit.engines.risk import Risk
from tacit.models import FixedH, FixedW

RANK = 4


def half(backend, blocks, which, intercept=True):
    """One half of a factorised problem, and the factor it is a function of."""
    rng = np.random.default_rng(1)
    W = backend.asarray(rng.standard_normal((12 + intercept, RANK)))
    H = backend.asarray(rng.standard_normal((9, RANK)))
    placed = blocks.map(place, Placement(backend, "float64", "l2", intercept))
    return (placed.map(FixedH, H), W) if which == "W" else (placed.map(FixedW, W), H)


def _paired(m, w):
    return float((m.forward(w) * m.block.y).sum())


def _pulled_back(m):
    return m.adjoint(m.block.y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("which", "WH")
def test_adjoint_is_the_transpose(backend, blocks_of, masked, which, intercept):
    """⟨𝒜 w, g⟩ = ⟨w, 𝒜ᵀ g⟩."""
    maps, w = half(backend, blocks_of(*masked, "three blocks"), which, intercept)
    right = float((maps.sum(_pulled_back) * w).sum())
    assert_allclose(maps.sum(_paired, w), right, rtol=1e-10)


@pytest.mark.parametrize("which", "WH")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradient_and_hessian_match_central_differences(backend, blocks_of, masked, which, loss):
    maps, w = half(backend, blocks_of(*masked, "memory"), which)
    f, eps = Risk(maps, loss, reg=0.3), 1e-5
    v = backend.asarray(np.random.default_rng(2).standard_normal(tuple(w.shape)))
    slope = (f.value(w + eps * v) - f.value(w - eps * v)) / (2 * eps)
    assert_allclose(float((f.grad(w) * v).sum()), slope, rtol=1e-6)
    bend = (f.grad(w + eps * v) - f.grad(w - eps * v)) / (2 * eps)
    got = backend.to_numpy(f.hessp(w)(v))
    assert_allclose(got, backend.to_numpy(bend), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("which", "WH")
def test_value_gradient_and_hessian_do_not_depend_on_the_place(blocks_of, masked, which, where):
    from tacit.backends import get_backend

    backend = get_backend("cpu")
    maps, w = half(backend, blocks_of(*masked, where), which)
    one, u = half(backend, blocks_of(*masked, "memory"), which)
    f, g = Risk(maps, LOSSES["logistic"], 0.3), Risk(one, LOSSES["logistic"], 0.3)
    assert_allclose(f.value(w), g.value(u), rtol=1e-12)
    assert_allclose(f.grad(w), g.grad(u), rtol=1e-10, atol=1e-12)
    assert_allclose(f.hessp(w)(w), g.hessp(u)(u), rtol=1e-10, atol=1e-12)


def test_the_value_is_the_loss_on_the_observed_entries_alone(backend, blocks_of, masked):
    X, labels = masked
    maps, W = half(backend, blocks_of(X, labels, "memory"), "W")
    X, A = X.toarray(), labels.to_array()
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X = np.hstack([X / np.where(norms > 0, norms, 1), np.ones((len(X), 1))])
    H = (
        np.random.default_rng(1)
        .standard_normal((13 * RANK + 9 * RANK,))[13 * RANK :]
        .reshape(9, -1)
    )
    Z, W_host = X @ backend.to_numpy(W) @ H.T, backend.to_numpy(W)
    wanted = 0.5 * np.nansum((A - Z) ** 2) + 0.15 * (W_host**2).sum()
    assert_allclose(Risk(maps, LOSSES["squared"], 0.3).value(W), wanted, rtol=1e-12)
