import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import orthogonal_mp

import tacit
from tacit.baselines import LabelSpaceReduction
from tacit.codecs import CS

decoders = pytest.mark.parametrize("decoder", ["omp", "cosamp"])


def projection(n_labels, rank, rng):
    """Φᵀ with columns of quite different lengths."""
    H = rng.standard_normal((n_labels, rank)) / rank**0.5
    return H * rng.uniform(0.5, 2.0, (n_labels, 1))


def decoded(cs, codes, H, backend):
    return backend.to_numpy(cs.decode(backend.asarray(codes), backend.asarray(H)))


def sparse_labels(n, n_labels, sparsity, rng):
    """Rows of at most so many labels, the first of none."""
    Y = np.zeros((n, n_labels))
    for i in range(1, n):
        Y[i, rng.choice(n_labels, rng.integers(1, sparsity + 1), replace=False)] = 1
    return Y


@decoders
def test_few_labels_are_recovered_from_their_codes(backend, decoder):
    rng = np.random.default_rng(0)
    Y = sparse_labels(30, 80, 3, rng)
    H = rng.standard_normal((80, 40)) / 40**0.5
    assert_allclose(decoded(CS(3, decoder), Y @ H, H, backend), Y, atol=1e-9)


def test_omp_is_scikit_learns_on_columns_of_unit_length(backend):
    rng = np.random.default_rng(1)
    H, codes = projection(30, 12, rng), rng.standard_normal((20, 12))
    norms = np.linalg.norm(H, axis=1)
    wanted = np.array([orthogonal_mp((H / norms[:, None]).T, z, n_nonzero_coefs=4) for z in codes])
    assert_allclose(decoded(CS(4), codes, H, backend), wanted / norms, atol=1e-10)


def cosamp(Phi, z, s):
    """CoSaMP of one row, with the largest of |Φᵀr| next to the support, 3s labels in all."""
    y = np.zeros(Phi.shape[1])
    for _ in range(10):
        u = np.abs(Phi.T @ (z - Phi @ y))
        support = np.flatnonzero(y)
        others = [j for j in np.argsort(-u) if j not in support]
        T = [*support, *others[: 3 * s - len(support)]]
        b = np.zeros_like(y)
        b[T] = np.linalg.lstsq(Phi[:, T], z)[0]
        y = np.where(np.abs(b) >= np.sort(np.abs(b))[-s], b, 0)
    return y


def test_cosamp_is_the_loop_over_rows_and_rounds(backend):
    rng = np.random.default_rng(2)
    H, codes = projection(30, 14, rng), rng.standard_normal((20, 14))
    wanted = [cosamp(H.T, z, 3) for z in codes]
    assert_allclose(decoded(CS(3, "cosamp"), codes, H, backend), wanted, atol=1e-9)


@decoders
def test_rows_are_decoded_each_by_itself(backend, decoder, monkeypatch):
    rng = np.random.default_rng(3)
    H, codes = projection(20, 10, rng), rng.standard_normal((11, 10))
    together = decoded(CS(3, decoder), codes, H, backend)
    assert_allclose(
        together,
        np.concatenate([decoded(CS(3, decoder), z[None], H, backend) for z in codes]),
        atol=1e-12,
    )
    monkeypatch.setattr("tacit.codecs.cs._ENTRIES", 330)  # three rows at a time
    assert_allclose(decoded(CS(3, decoder), codes, H, backend), together, atol=1e-12)


@decoders
@pytest.mark.parametrize(("n_labels", "rank"), [(12, 1), (12, 3), (1, 4), (2, 2), (12, 20)])
def test_no_more_labels_a_row_than_asked_for_or_possible(device, decoder, n_labels, rank):
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((25, 6)), sparse_labels(25, n_labels, 1, rng)
    model = LabelSpaceReduction(
        "cs", rank, sparsity=5, decoder=decoder, random_state=0, device=device
    )
    counts = np.count_nonzero(model.fit(X, Y).decision_function(X), axis=1)
    assert counts.max() == min(5, n_labels, rank)


@decoders
def test_labels_of_nobody_score_0(device, decoder):
    X = np.random.default_rng(5).standard_normal((9, 4))
    model = LabelSpaceReduction("cs", 6, decoder=decoder, random_state=0, device=device)
    scores = model.fit(X, np.zeros((9, 10))).decision_function(X)
    assert_array_equal(scores, np.zeros((9, 10)))


def test_codes_of_parallel_columns_do_no_harm(backend):
    H = np.ones((4, 3))
    scores = decoded(CS(2), np.ones((2, 3)), H, backend)
    assert_allclose(scores @ H, np.ones((2, 3)), rtol=1e-6)


@decoders
def test_the_estimator_agrees_with_itself_on_every_road(decoder, tmp_path):
    rng = np.random.default_rng(6)
    X, Y = rng.standard_normal((40, 5)), sparse_labels(40, 15, 3, rng)
    fit = lambda device: LabelSpaceReduction(
        "cs", 8, sparsity=3, decoder=decoder, reg=0.1, random_state=0, device=device
    ).fit(X, Y)
    model = fit("cpu")
    scores = model.decision_function(X)
    assert_allclose(fit("torch").decision_function(X), scores, atol=1e-9)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    top = model.top_k(X, 4)
    assert_array_equal(top.indices, best)
    assert_array_equal(top.scores, np.take_along_axis(scores, best, axis=1))
    assert_array_equal(model.predict(X).toarray(), scores > 0.5)
    tacit.save(model, tmp_path / "model")
    assert_array_equal(tacit.load(tmp_path / "model").decision_function(X), scores)
