"""The Triton kernels against SciPy, where there is no GPU in Triton's interpreter (conftest.py)."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
from tacit.backends import ADAGRAD_EPSILON, triton  # noqa: E402
from tacit.backends.torch import TorchBackend, _silence  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

SHAPES = {"whole rows": {}, "cut": {"longest": 3}, "tiled": {"tile": 4, "longest": 3}}


@pytest.fixture(params=SHAPES)
def dealt(request, monkeypatch):
    """A matrix with a full, an empty and a long row, and its segments."""
    rng = np.random.default_rng(0)
    S = sp.csr_array(rng.random((9, 21)) * (rng.random((9, 21)) < 0.3))
    S = sp.vstack([S, np.ones((1, 21)), np.zeros((1, 21))], format="csr")
    monkeypatch.setattr(triton, "_SMALL", 0 if SHAPES[request.param] else 2**20)
    placed = TorchBackend(DEVICE).sparse(S)
    return S, placed, triton.segments(placed, **SHAPES[request.param])


def test_segments_hold_every_entry_once_and_none_is_too_long(dealt):
    S, _, plan = dealt
    taken = np.concatenate(
        [np.arange(a, b) for a, b in zip(plan.start.cpu().numpy(), plan.stop.cpu().numpy())]
    )
    assert_allclose(np.sort(taken), np.arange(S.nnz))
    owners = np.repeat(plan.owner.cpu().numpy(), (plan.stop - plan.start).cpu().numpy())
    again = sp.csr_array(
        (plan.data.cpu().numpy(), (owners, plan.indices.cpu().numpy())), shape=S.shape
    )
    assert_allclose(again.toarray(), S.toarray())
    assert len(plan.owner) == len(S.indptr) - 1 or int((plan.stop - plan.start).max()) <= 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 130])
def test_gather_sum_is_the_product(dealt, width, dtype):
    S, _, plan = dealt
    B = torch.randn(21, width, dtype=dtype, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    rtol = 1e-5 if dtype == torch.float32 else 1e-12
    weighted = triton.gather_sum(plan, plan.data.to(dtype), B, len(S.indptr) - 1)
    assert_allclose(weighted.cpu().numpy(), S @ B.cpu().numpy(), rtol, atol=rtol)
    ones = triton.gather_sum(plan, None, B, len(S.indptr) - 1)
    assert_allclose(ones.cpu().numpy(), (S != 0).astype(float) @ B.cpu().numpy(), rtol, atol=rtol)


@pytest.mark.parametrize("width", [1, 5, 130])
def test_dots_are_the_products_on_the_entries_in_their_order(dealt, width):
    S, _, plan = dealt
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((len(S.indptr) - 1, width)), rng.standard_normal((21, width))
    wanted = (A @ B.T)[sp.coo_array(S).coords]
    found = triton.dots(plan, torch.as_tensor(A, device=DEVICE), torch.as_tensor(B, device=DEVICE))
    assert_allclose(found.cpu().numpy(), wanted, atol=1e-12)


def test_values_given_in_the_order_of_the_matrix_are_dealt_out_alike(dealt):
    S, _, plan = dealt
    assert_allclose(
        plan.of(torch.as_tensor(S.data, device=DEVICE)).cpu().numpy(), plan.data.cpu().numpy()
    )


def test_the_backend_plans_its_products(dealt, monkeypatch):
    S = dealt[0]
    monkeypatch.setattr(TorchBackend, "plan", lambda self, matrix: triton.segments(matrix))
    backend, rng = TorchBackend(DEVICE), np.random.default_rng(2)
    placed, to = backend.sparse(S), backend.asarray
    A, B, values = rng.random((11, 3)), rng.random((21, 3)), rng.random(S.nnz)
    filled = sp.csr_array((values, S.indices, S.indptr), shape=S.shape)
    wanted = {"spmm": S @ B, "values": filled @ B, "spmm_t": S.T @ A, "values_t": filled.T @ A}
    found = {
        "spmm": backend.spmm(placed, to(B)),
        "values": backend.spmm(placed, to(B), to(values)),
        "spmm_t": backend.spmm_t(placed, to(A)),
        "values_t": backend.spmm_t(placed, to(A), to(values)),
    }
    for name in wanted:
        assert_allclose(backend.to_numpy(found[name]), wanted[name], err_msg=name)
    products = backend.to_numpy(backend.sddmm(placed, to(A), to(B)))
    assert_allclose(products, (A @ B.T)[sp.coo_array(S).coords])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("each", [True, False], ids=["mu of entries", "mu of labels"])
def test_silence_is_the_librarys(dtype, each):
    rng = np.random.default_rng(0)
    n, n_labels = 37, 150
    to = lambda a: torch.as_tensor(a, dtype=dtype, device=DEVICE)
    F = to(20 * rng.standard_normal((n, n_labels)))
    mu = to(rng.uniform(0.01, 1.0, (n if each else 1, n_labels)))
    mu[:, :5] = 1.0
    weights = to(rng.random(n)), to(rng.random(n_labels))
    ours, theirs = triton.silence(F, mu, *weights), _silence(F, mu, *weights)
    tolerance = 2e-5 if dtype == torch.float32 else 1e-12
    for got, expected in zip(ours, theirs):
        assert_allclose(got.cpu(), expected.cpu(), rtol=tolerance, atol=tolerance)
    small = to(np.full((1, n_labels), -12.0))  # where log(1 + x) would have lost the digits of x
    value = triton.silence(small, mu[:1], weights[0][:1], weights[1])[2][0]
    exact = -np.asarray(mu[0].cpu(), float) / (1 + np.exp(12.0))
    assert_allclose(value.cpu(), exact, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 5, 1100])
def test_adagrad_steps_the_rows_and_no_others(width, dtype):
    rng = np.random.default_rng(0)
    to = lambda a: torch.as_tensor(a, dtype=dtype, device=DEVICE)
    theta, S = rng.standard_normal((8, width)), rng.random((8, width))
    S[6] = 0  # a first step
    G, decay, rows = rng.standard_normal((3, width)), rng.random(3), np.array([6, 0, 3])
    placed = to(theta), to(S)
    triton.adagrad(
        *placed, to(G), torch.as_tensor(rows, device=DEVICE), to(decay), 0.1, ADAGRAD_EPSILON
    )
    g = G + decay[:, None] * theta[rows]
    S[rows] += g**2
    theta[rows] -= 0.1 * g / (np.sqrt(S[rows]) + ADAGRAD_EPSILON)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for got, wanted in zip(placed, (theta, S)):
        assert_allclose(got.cpu(), wanted, rtol=tolerance, atol=tolerance)
