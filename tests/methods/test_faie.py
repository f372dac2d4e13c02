"""The laws of FaIE: the paper's n × n eigenproblem, its bounds, its variants and their limits."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import pairwise
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator
from sklearn import linear_model
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

import tacit
from tacit import LEML, FaIE, KernelFeatures, Labels
from tacit.baselines import LabelSpaceReduction
from tacit.codecs import codec_data, faie
from tacit.methods import faie as faie_method

VARIANTS = ["faie", "linear", "p-linear", "op", "r"]


def data(shape=(30, 6, 7), seed=0):
    """Features of very different sizes and off the origin, labels, and rows never seen."""
    n, d, n_labels = shape
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 10, d)) * np.logspace(0.5, -1, d) + 1
    Z = X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n + 10, n_labels))
    Y = (np.median(Z, axis=0) < Z).astype(float)
    return X[:n], Y[:n], X[n:]


def repeated(Y):
    """Labels of lower rank than there are: two of them twice, and one that is never said."""
    return np.hstack([Y, Y[:, :2], np.zeros((len(Y), 1))])


def less_means(X, Y, centred=True):
    return (X - X.mean(0), Y - Y.mean(0)) if centred else (X, Y)


def delta(X, reg):
    """Δ = X (XᵀX + λI)⁻¹ Xᵀ, n × n."""
    return X @ np.linalg.solve(X.T @ X + reg * np.eye(X.shape[1]), X.T)


def leading(M, k):
    return np.linalg.eigh(M)[1][:, ::-1][:, :k]


def codes_by_definition(model, X, Y):
    """The maximiser of tr[Cᵀ(YYᵀ + αΔ)C] over CᵀC = I, or over C = YP too; X and Y centred."""
    D = delta(X, model.reg)
    if model.variant == "faie":
        return leading(Y @ Y.T + model.alpha * D, model.rank)
    U, s, _ = np.linalg.svd(Y, full_matrices=False)
    U, s = U[:, s > 1e-8], s[s > 1e-8]
    E = {
        "linear": np.diag(s**2) + model.alpha * U.T @ D @ U,
        "p-linear": U.T @ D @ U,
        "r": np.diag(s**2),
    }[model.variant]
    return U @ leading(E, model.rank)


def by_definition(model, X, Y, fresh):
    """Codes, their ridge regressions, CᵀY, and the means: the paper, step by step."""
    A, B = less_means(X, Y, model.fit_intercept)
    C = codes_by_definition(model, A, B)
    W = np.linalg.solve(A.T @ A + model.reg * np.eye(A.shape[1]), A.T @ C)
    offset = X.mean(0) if model.fit_intercept else 0
    return (fresh - offset) @ W @ (C.T @ B) + (Y.mean(0) if model.fit_intercept else 0)


def plain(rank=3, **params):
    return FaIE(rank, normalize=None, **params)


def learnt(model, X, Y):
    """The code that `fit` learns, what it learns from, and the codes of the rows."""
    problem = model._problem(*model._rows(X, Labels.complete(Y)))
    rows = codec_data.CodecData.of(problem, model.fit_intercept)
    code = model._codec.learn(rows, model.rank, model.reg)
    return code, rows, np.concatenate(problem.blocks.sum(encoded, code))


def encoded(block, code):
    return [block.backend.to_numpy(code.encode(block))]


# ---- the problem, and the route from the Gram triple


@pairwise(alpha=[0.1, 2.0, 50.0], reg=[0.01, 0.3, 20.0], rank=[1, 3, 8], centred=[True, False])
def test_predictions_are_those_of_the_n_by_n_eigenproblem(device, alpha, reg, rank, centred):
    X, Y, fresh = data()
    model = plain(rank, alpha=alpha, reg=reg, fit_intercept=centred, device=device).fit(X, Y)
    wanted = by_definition(model, X, Y, fresh)
    assert_allclose(model.decision_function(fresh), wanted, atol=1e-8)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 2.0, 50.0])
def test_predictions_are_the_same_where_the_matrix_is_only_multiplied_by(
    alpha, centred, monkeypatch
):
    taken, solve = [], codec_data.leading_eigenpairs
    monkeypatch.setattr(faie, "_LAID_OUT", 0)
    counted = lambda T, k: taken.append(T) or solve(T, k)
    monkeypatch.setattr(codec_data, "leading_eigenpairs", counted)
    X, Y, fresh = data()
    model = plain(alpha=alpha, reg=0.3, fit_intercept=centred).fit(X, Y)
    wanted = by_definition(model, X, Y, fresh)
    assert_allclose(model.decision_function(fresh), wanted, atol=1e-8)
    assert [isinstance(T, LinearOperator) for T in taken] == [True]


def test_more_features_than_rows_are_as_good():
    X, Y, fresh = data((12, 20, 5))
    model = plain(alpha=2.0, reg=0.3).fit(X, Y)
    assert_allclose(model.decision_function(fresh), by_definition(model, X, Y, fresh), atol=1e-8)


def test_with_more_features_than_rows_nothing_is_as_large_as_the_gram_matrix_of_features():
    X, Y, _ = data((60, 2000, 4))
    model = plain(2).fit(X[:10], Y[:10])  # first, whatever is compiled
    tracemalloc.start()
    model.fit(X, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2000**2 / 2
    assert isinstance(learnt(model, X, Y)[0], faie.RowCode)


def test_a_fit_takes_far_less_memory_than_the_n_by_n_matrix():
    X, Y, _ = data((4000, 5, 4))
    model = plain(2).fit(X[:10], Y[:10])  # first, whatever is compiled
    tracemalloc.start()
    model.fit(X, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 4000**2 / 10


# ---- the route by rows, where the Gram triple is too large


FEW_ROWS = [(12, 20, 5), (12, 5, 20), (12, 20, 30)]


@pytest.fixture
def small_limit(monkeypatch):
    """From here on, 12 rows can be laid out against each other but 20 features or labels cannot."""

    def lower(limit=12**2):
        monkeypatch.setattr("tacit.labels.DENSE_LIMIT", limit)
        monkeypatch.setattr("tacit.codecs.codec_data.DENSE_LIMIT", limit)

    return lower


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", FEW_ROWS)
def test_few_rows_give_the_scores_of_the_gram_triple(
    device, shape, centred, as_given, small_limit, monkeypatch
):
    X, Y, fresh = data(shape)
    X, fresh = as_given(X), as_given(fresh[:4])
    models = [
        FaIE(rank, alpha=alpha, reg=reg, fit_intercept=centred, device=device)
        for rank, alpha, reg in [(1, 2.0, 0.3), (4, 50.0, 0.01), (100, 0.1, 3.0), (100, 0.0, 0.3)]
    ]
    size = lambda model: np.linalg.norm(model.transform(fresh))  # whatever the signs and rotations
    found = lambda model: (model.fit(X, Y).decision_function(fresh), size(model))
    with monkeypatch.context() as patched:
        patched.setattr(codec_data.CodecData, "by_rows", False)
        wanted = [found(model) for model in models]
    small_limit()
    for model, (scores, codes) in zip(models, wanted):
        assert isinstance(learnt(model, X, Y)[0], faie.RowCode)
        assert_allclose(found(model)[0], scores, atol=1e-9)
        assert_allclose(size(model), codes, rtol=1e-9)


@pytest.mark.parametrize("where", ["three blocks", "streamed", "disk", "dask"])
def test_few_rows_in_blocks_give_the_same_scores(blocks_of, where, small_limit):
    X, Y, fresh = data((12, 20, 5))
    model = plain(3, alpha=2.0, reg=0.3)
    wanted = model.fit(X, Y).decision_function(fresh)
    rows = blocks_of(sp.csr_array(X), Labels.complete(Y), where)
    small_limit()
    assert_allclose(model.fit(rows).decision_function(fresh), wanted, atol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_codes_by_rows_can_be_encoded_for_any_regressor(device, centred, small_limit):
    X, Y, fresh = data((12, 20, 5))
    small_limit()
    params = dict(alpha=2.0, reg=0.3, fit_intercept=centred, device=device)
    model = plain(3, **params)
    code, rows, C = learnt(model, X, Y)
    A, B = less_means(X, Y, centred)
    wanted = codes_by_definition(model, A, B)
    assert_allclose(C.T @ C, np.eye(3), atol=1e-9)
    assert_allclose(C @ C.T, wanted @ wanted.T, atol=1e-9)
    assert_allclose(rows.backend.to_numpy(code.H), B.T @ C, atol=1e-9)
    ridge = linear_model.Ridge(alpha=0.3, fit_intercept=centred)
    other = plain(3, predictor=ridge, **params).fit(X, Y)
    found = other.decision_function(fresh)
    assert_allclose(found, model.fit(X, Y).decision_function(fresh), atol=1e-8)


def test_few_rows_of_very_many_features_and_labels_fit_and_stay_sparse():
    rng = np.random.default_rng(0)
    n, d, n_labels = 60, 40_000, 20_000
    assert max(d, n_labels) ** 2 > codec_data.DENSE_LIMIT
    X = sp.random_array((n, d), density=0.001, rng=rng, format="csr")
    Y = sp.random_array((n, n_labels), density=0.001, rng=rng, format="csr") > 0
    model = plain(3, alpha=2.0, reg=0.3)
    model.fit(X[:10], Labels.complete(Y[:10]))  # first, whatever is compiled
    tracemalloc.start()
    model.fit(X, Labels.complete(Y))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n * (d + n_labels) / 2, "neither X nor Y laid out"
    A, B = less_means(X.toarray(), Y.toarray())
    smoother = np.linalg.inv(A @ A.T + 0.3 * np.eye(n))
    C = leading(B @ B.T + 2 * A @ A.T @ smoother, 3)
    wanted = Y.toarray().mean(0) + A[:5] @ (A.T @ (smoother @ C)) @ (C.T @ B)
    assert_allclose(model.decision_function(X[:5]), wanted, atol=1e-9)


@pytest.mark.parametrize("case", ["silent labels", "labels always said", "no features", "one row"])
def test_degenerate_data_by_rows_give_finite_scores(device, case, small_limit):
    X, Y, _ = data((12, 20, 5))
    X, Y = {
        "silent labels": (X, 0 * Y),
        "labels always said": (X, 0 * Y + 1),
        "no features": (0 * X, Y),
        "one row": (X[:1], Y[:1]),
    }[case]
    small_limit()
    for rank in (1, 1000):
        for centred in (True, False):
            model = plain(rank, fit_intercept=centred, device=device).fit(X, Y)
            assert np.isfinite(model.decision_function(X)).all()


def test_what_has_no_route_by_rows_is_refused_in_one_clear_sentence(small_limit):
    X, Y, _ = data((12, 20, 5))
    small_limit()
    message = "the XᵀX of this codec would lay out 21 × 21 .*rembed"
    for variant in VARIANTS[1:]:
        with pytest.raises(ValueError, match=message):
            plain(variant=variant).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        plain().fit_path(X, Y)
    small_limit(12**2 - 1)
    with pytest.raises(ValueError, match=message):
        plain().fit(X, Y)


# ---- α


def silent(seed=0):
    """Rows of many labels, most of which nobody said."""
    X, Y, _ = data((200, 10, 30))
    return X, Y * (np.random.default_rng(seed).random(Y.shape) < 0.5)


def test_alpha_auto_is_the_best_point_of_a_path_and_is_kept(tmp_path):
    X, Y = silent()
    model = plain(4, alpha="auto", reg=0.3).fit(X, Y)
    path = plain(4, reg=0.3).fit_path(X, Y, alphas=faie_method.ALPHAS, cv=5, measure="precision")
    assert len({point.score for point in path.points}) > 1
    assert model.alpha_ == path.best.params["alpha"] == path.best.model.alpha_
    wanted = plain(4, alpha=model.alpha_, reg=0.3).fit(X, Y)
    assert_array_equal(model.decision_function(X), wanted.decision_function(X))
    model.save(tmp_path / "model.tacit")
    assert tacit.load(tmp_path / "model.tacit").alpha_ == model.alpha_


def test_alpha_auto_with_a_predictor_of_ones_own_is_refused_in_one_sentence():
    X, Y = silent()
    with pytest.raises(ValueError, match="needs ridge and codes that are prefixes"):
        plain(4, alpha="auto", predictor=linear_model.Ridge()).fit(X, Y)


# ---- codes


@pytest.mark.parametrize("variant", ["faie", "linear", "p-linear"])
@pytest.mark.parametrize("centred", [True, False])
def test_codes_are_orthonormal_and_H_and_the_regression_are_theirs(device, variant, centred):
    """CᵀC = I, H = ỸᵀC, and (X̃ᵀX̃ + λI) W = X̃ᵀC, though the last two never saw a row."""
    X, Y, _ = data()
    model = plain(4, alpha=2.0, variant=variant, reg=0.3, fit_intercept=centred, device=device)
    code, rows, C = learnt(model, X, Y)
    A, B = less_means(X, Y, centred)
    to_numpy = rows.backend.to_numpy
    assert_allclose(C.T @ C, np.eye(4), atol=1e-10)
    wanted = codes_by_definition(model, A, B)
    assert_allclose(C @ C.T, wanted @ wanted.T, atol=1e-8)
    assert_allclose(to_numpy(code.H), B.T @ C, atol=1e-10)
    W = to_numpy(code.weights(rows, 0.3))
    assert_allclose((A.T @ A + 0.3 * np.eye(6)) @ W[:6], A.T @ C, atol=1e-10)
    if centred:
        assert_allclose(W[6], -X.mean(0) @ W[:6], atol=1e-10)


# ---- figure 2: what α trades


@pytest.mark.parametrize("reg", [1e-9, 0.3, 5.0])
def test_alpha_trades_recovery_for_prediction_within_the_bounds_of_the_lemma(reg):
    X, Y, _ = data()
    A, B = less_means(X, Y)
    s2 = np.linalg.svd(A, compute_uv=False) ** 2
    predictable, recovered = [], []
    for alpha in np.logspace(-2, 4, 13):
        C = learnt(plain(3, alpha=alpha, reg=reg), X, Y)[2]
        predictable.append(np.trace(C.T @ delta(A, reg) @ C))
        recovered.append((B**2).sum() - ((B - C @ C.T @ B) ** 2).sum())
    assert min(predictable) > 0
    assert max(predictable) <= (s2 / (s2 + reg))[:3].sum() + 1e-9
    assert max(recovered) <= (np.linalg.svd(B, compute_uv=False)[:3] ** 2).sum() + 1e-9
    assert (np.diff(predictable) >= -1e-9).all()
    assert (np.diff(recovered) <= 1e-9).all()
    assert predictable[-1] > predictable[0] + 0.01
    assert recovered[-1] < recovered[0] - 0.01


@pytest.mark.parametrize("rank", [4, 11])
def test_no_more_can_be_predicted_than_there_are_codes_or_features(rank):
    """min(k, rank X̃): with 6 features and λ → 0, all of 4 codes, but 6 of 11."""
    X, Y, _ = data()
    C = learnt(plain(rank, alpha=1e4, reg=1e-9), X, Y)[2]
    found = np.trace(C.T @ delta(less_means(X, Y)[0], 1e-9) @ C)
    assert found <= min(rank, 6) + 1e-6
    assert_allclose(found, min(rank, 6), rtol=1e-3)


# ---- variants and limits


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("rank", [1, 3])
def test_alpha_of_zero_is_plst_which_is_the_singular_vectors_of_the_labels(device, rank, centred):
    X, Y, fresh = data()
    B = less_means(X, Y, centred)[1]
    V = np.linalg.svd(B)[2][:rank].T
    ridge = linear_model.Ridge(alpha=0.3, fit_intercept=centred).fit(X, B @ V)
    wanted = ridge.predict(fresh).reshape(10, rank) @ V.T + (Y.mean(0) if centred else 0)
    params = dict(reg=0.3, normalize=None, fit_intercept=centred, device=device)
    for model in (
        LabelSpaceReduction("plst", rank, **params),
        FaIE(rank, alpha=0.0, **params),
        FaIE(rank, variant="r", **params),
        FaIE(rank, alpha=0, variant="linear", **params),
    ):
        assert_allclose(model.fit(X, Y).decision_function(fresh), wanted, atol=1e-9)


@pytest.mark.parametrize("reg", [1e-12, 0.3])
def test_op_faie_is_cplst_and_the_closed_form_of_leml(device, reg):
    X, Y, fresh = data()
    params = dict(reg=reg, normalize=None, fit_intercept=False, device=device)
    wanted = LEML(3, solver="closed_form", **params).fit(X, Y).decision_function(fresh)
    for model in (FaIE(3, variant="op", **params), LabelSpaceReduction("cplst", 3, **params)):
        assert_allclose(model.fit(X, Y).decision_function(fresh), wanted, atol=1e-9)


def op_as_printed(X, Y, rank):
    """C Cᵀ Y of the codes C = Q U_k, Q a basis of the features and U_k from the SVD of QᵀY."""
    A, B = less_means(X, Y)
    Q, _ = np.linalg.qr(A)
    C = Q @ np.linalg.svd(Q.T @ B)[0][:, :rank]
    return Y.mean(0) + C @ C.T @ B


def test_op_faie_without_a_penalty_is_the_one_of_the_paper():
    X, Y, _ = data()
    model = plain(3, variant="op", reg=1e-12).fit(X, Y)
    assert_allclose(model.decision_function(X), op_as_printed(X, Y, 3), atol=1e-9)


def test_a_large_alpha_tends_to_op_faie_where_the_penalty_is_tiny():
    X, Y, _ = data()
    wanted = op_as_printed(X, Y, 3)
    far, near = (
        abs(plain(3, alpha=alpha, reg=1e-12).fit(X, Y).decision_function(X) - wanted).max()
        for alpha in (1e3, 1e6)
    )
    assert near < 1e-5
    assert near < far / 100


@pytest.mark.parametrize("alpha", [0.5, 20.0])
@pytest.mark.parametrize(
    "shape",
    [
        (12, 20, 5),
        (40, 3, 2),
        (40, 4, 1),
    ],
)
def test_full_rank_is_ridge_regression(device, shape, alpha):
    X, Y, fresh = data(shape)
    wanted = linear_model.Ridge(alpha=0.3).fit(X, Y).predict(fresh).reshape(10, -1)
    for variant in VARIANTS:
        model = plain(100, alpha=alpha, variant=variant, reg=0.3, device=device).fit(X, Y)
        assert_allclose(model.decision_function(fresh), wanted, atol=1e-7, err_msg=variant)


@pytest.mark.parametrize("variant", ["linear", "p-linear"])
@pytest.mark.parametrize("centred", [True, False])
def test_linear_codes_are_right_where_labels_repeat_and_one_is_silent(device, variant, centred):
    X, Y, fresh = data()
    Y = repeated(Y)
    model = plain(3, alpha=2.0, variant=variant, reg=0.3, fit_intercept=centred, device=device)
    code, rows, C = learnt(model, X, Y)
    P = rows.backend.to_numpy(code.P)
    assert code.R is None
    assert_allclose(C, less_means(X, Y, centred)[1] @ P, atol=1e-12)
    assert_allclose(C.T @ C, np.eye(3), atol=1e-9)
    found = model.fit(X, Y).decision_function(fresh)
    assert_allclose(found, by_definition(model, X, Y, fresh), atol=1e-8)


@pytest.mark.parametrize("variant", ["linear", "p-linear"])
def test_linear_codes_are_no_more_than_the_labels_have_rank(variant):
    X, Y, _ = data()
    C = learnt(plain(10, variant=variant), X, repeated(Y))[2]
    assert C.shape == (30, 7)
    assert_allclose(C.T @ C, np.eye(7), atol=1e-8)


# ---- kernels


def test_kernel_features_make_it_kernel_faie():
    """Γ = K (K + λI)⁻¹ of the centred kernel, and kernel ridge regressions to the codes."""
    X, Y, fresh = data()
    J = np.eye(30) - 1 / 30
    K, k = rbf_kernel(X, gamma=0.2), rbf_kernel(fresh, X, gamma=0.2)
    k = (k - K.mean(0)) @ J
    K, B = J @ K @ J, J @ Y
    smoother = np.linalg.inv(K + 0.3 * np.eye(30))
    C = leading(B @ B.T + 5 * K @ smoother, 3)
    wanted = Y.mean(0) + k @ smoother @ C @ (C.T @ B)
    features = KernelFeatures("rbf", gamma=0.2, approximation="exact")
    model = make_pipeline(features, plain(3, alpha=5.0, reg=0.3)).fit(X, Y)
    assert_allclose(model.decision_function(fresh), wanted, atol=1e-8)


def test_without_a_penalty_kernel_faie_does_not_see_the_features():
    """As printed: Γ → I, whose eigenvectors are any, so that codes are those of R-FaIE."""
    X, Y, _ = data()
    Phi = KernelFeatures("rbf", gamma=1.0, approximation="exact").fit_transform(X)
    U = np.linalg.svd(Y - Y.mean(0))[0][:, :3]
    blind, seeing = (learnt(plain(3, alpha=5.0, reg=reg), Phi, Y)[2] for reg in (1e-10, 1.0))
    assert_allclose(blind @ blind.T, U @ U.T, atol=1e-6)
    assert abs(seeing @ seeing.T - U @ U.T).max() > 0.01


# ---- what cannot matter


def gap(model, X, Y):
    """From the last code that is kept to the first that is not: of equal ones any may be kept."""
    A, B = less_means(X, Y, model.fit_intercept)
    w = np.linalg.eigvalsh(B @ B.T + model.alpha * delta(A, model.reg))[::-1]
    return (w[model.rank - 1] - w[model.rank]) / w[0]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(8, 25), st.integers(1, 9), st.integers(1, 8)),
    st.integers(1, 4),
    st.sampled_from([0.1, 1.0, 30.0]),
    st.booleans(),
)
def test_the_order_of_labels_and_rows_and_the_axes_of_features_do_not_matter(
    seed, shape, rank, alpha, centred
):
    """Other orders give other eigenvectors too, in sign and in rotation."""
    X, Y, fresh = data(shape, seed)
    model = plain(rank, alpha=alpha, reg=0.3, fit_intercept=centred)
    assume(gap(model, X, Y) > 1e-3)
    wanted = model.fit(X, Y).decision_function(fresh)
    rng = np.random.default_rng(seed)
    rows, labels = rng.permutation(len(X)), rng.permutation(Y.shape[1])
    Q, _ = np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))
    turned = model.fit(X[rows] @ Q, Y[rows][:, labels]).decision_function(fresh @ Q)
    assert_allclose(turned, wanted[:, labels], atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(VARIANTS), st.floats(0, 7))
def test_signs_and_rotations_of_eigenvectors_do_not_matter(seed, variant, angle):
    """A problem and its copy, side by side, have every eigenvalue twice."""
    X, Y, fresh = (np.kron(np.eye(2), part) for part in data((15, 4, 5), seed))
    model = plain(4, alpha=2.0, variant=variant, reg=0.3, fit_intercept=False)
    wanted = model.fit(X, Y).decision_function(fresh)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn = np.kron(np.diag([1, -1]), turn)

    def turned(T, k):
        w, V = np.linalg.eigh(T)
        return w[::-1][:k], V[:, ::-1][:, :k] @ turn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec_data, "leading_eigenpairs", turned)
        assert_allclose(model.fit(X, Y).decision_function(fresh), wanted, atol=1e-7)


# ---- what is degenerate, and what is refused


def degenerate():
    X, Y, _ = data()
    return {
        "one label": (X, Y[:, :1]),
        "one feature": (X[:, :1], Y),
        "silent labels": (X, 0 * Y),
        "labels always said": (X, 0 * Y + 1),
        "more features than rows": (X[:4], Y[:4]),
        "one row": (X[:1], Y[:1]),
        "a constant feature": (np.hstack([X, np.full((30, 1), 3.0)]), Y),
        "constant features": (0 * X + 2, Y),
        "no features": (0 * X, Y),
    }


@pytest.mark.parametrize("case", degenerate())
@pytest.mark.parametrize("variant", VARIANTS)
def test_degenerate_data_give_finite_scores(case, variant):
    X, Y = degenerate()[case]
    for rank in (1, 2, 1000):
        for centred in (True, False):
            model = plain(rank, variant=variant, fit_intercept=centred).fit(X, Y)
            assert np.isfinite(model.decision_function(X)).all()


def test_a_constant_feature_changes_nothing():
    X, Y, _ = data()
    fit = lambda X: plain(3, alpha=2.0, reg=0.3).fit(X, Y).decision_function(X)
    assert_allclose(fit(np.hstack([X, np.full((30, 1), 3.0)])), fit(X), atol=1e-8)


@pytest.mark.parametrize("case", ["silent labels", "labels always said"])
def test_labels_that_never_vary_are_predicted_as_they_are(case):
    X, Y = degenerate()[case]
    assert_allclose(plain(3).fit(X, Y).decision_function(X), Y, atol=1e-12)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(rank=0), "FaIE: rank must be an int of at least 1; got 0"),
        (dict(alpha=-1), "FaIE: alpha must be a finite number of at least 0, .*; got -1"),
        (
            dict(alpha=np.inf),
            "FaIE: alpha must be a finite number of at least 0, .*; got inf",
        ),
        (dict(reg=-0.1), "FaIE: reg must be a finite number above 0; got -0.1"),
        (
            dict(variant="kernel"),
            "FaIE: variant must be one of 'faie', 'linear', 'p-linear', 'op', 'r'; got 'kernel'",
        ),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(params, message):
    X, Y, _ = data()
    with pytest.raises(ValueError, match=message):
        FaIE(**params).fit(X, Y)


@pytest.mark.parametrize("kind", ["masked", "positive-only"])
def test_labels_that_are_not_complete_are_refused_with_the_methods_that_can_use_them(kind):
    X, Y, _ = data()
    labels = Labels.masked(Y, 0 * Y + 1) if kind == "masked" else Labels.positive_only(Y)
    wanted = f"FaIE cannot use {kind} labels, only complete; .*GenEML and LEML and MPU.* can"
    with pytest.raises(ValueError, match=wanted):
        FaIE().fit(X, labels)
    with pytest.raises(ValueError, match=wanted):
        FaIE().fit_path(X, labels)
