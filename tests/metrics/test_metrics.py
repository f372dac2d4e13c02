"""Laws of the metrics, against scikit-learn where conventions agree and naive loops elsewhere."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as sk

from tacit import Labels, TopK, metrics
from tacit.metrics import top

law = settings(max_examples=60, deadline=None)  # a busy machine must not break a law

AT_K = [metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k]
WHOLE_RANKING = [
    metrics.auc_per_instance,
    metrics.auc_per_label,
    metrics.coverage,
    metrics.ranking_loss,
    metrics.label_ranking_ap,
]
SETS = [
    metrics.hamming_loss,
    metrics.micro_f1,
    metrics.macro_f1,
    metrics.example_accuracy,
    metrics.example_f1,
]


@st.composite
def problems(draw, *, ties=True):
    """A small truth, scores with many ties (or none) and a mask that contains the positives.

    Each entry is one of few values, so empty rows, empty columns and full rows are common.
    """
    n, n_labels = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    shape = (n, n_labels)
    Y = draw(arrays(np.int8, shape, elements=st.integers(0, 1)))
    if ties:
        scores = draw(arrays(np.float64, shape, elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0])))
    else:
        order = draw(st.permutations(range(n * n_labels)))
        scores = np.reshape(order, shape) / 7 - 1
    known = draw(arrays(np.bool_, shape)) | (Y == 1)
    known[0, 0] = True
    return Y, scores, known


@st.composite
def indicators(draw):
    n, n_labels = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    values = arrays(np.int8, (n, n_labels), elements=st.integers(0, 1))
    Y = draw(values)
    known = draw(arrays(np.bool_, Y.shape)) | (Y == 1)
    known[0, 0] = True
    return Y, draw(values), known


def ranking(scores, known):
    """The known labels of one row, best first, ties to the lowest index."""
    return sorted(np.flatnonzero(known), key=lambda j: (-scores[j], j))


def naive_at_k(Y, scores, known, k):
    """P@k, recall@k and nDCG@k by a loop over rows."""
    precision, recall, ndcg = [], [], []
    for y, s, m in zip(Y, scores, known):
        hits = [y[j] for j in ranking(s, m)[:k]]
        precision.append(sum(hits) / k)
        if y.sum():
            recall.append(sum(hits) / y.sum())
            ideal = sum(1 / np.log2(r + 2) for r in range(min(k, y.sum())))
            ndcg.append(sum(hit / np.log2(r + 2) for r, hit in enumerate(hits)) / ideal)
    return [np.mean(v) if v else np.nan for v in (precision, recall, ndcg)]


def naive_propensity_scored(Y, scores, known, p, k):
    """PSP@k and PSnDCG@k by a loop over rows."""
    got, best = np.zeros(2), np.zeros(2)
    for y, s, m in zip(Y, scores, known):
        for total, order in (
            (got, ranking(s, m)),
            (best, sorted(np.flatnonzero(y), key=lambda j: p[j])),
        ):
            for r, j in enumerate(order[:k]):
                total += y[j] / p[j] * np.array([1, 1 / np.log2(r + 2)])
    return got / best if best.all() else [np.nan, np.nan]


def nan_where_unknown(Y, known):
    return np.where(known, Y.astype(float), np.nan)


def topk_of(scores, k):
    indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return TopK(indices, np.take_along_axis(scores, indices, axis=1))


# ---- at k


@law
@given(problems(), st.integers(1, 9))
def test_precision_recall_and_ndcg_at_k_are_the_loop_over_rows(problem, k):
    Y, scores, known = problem
    everything = np.ones_like(known)
    assert_allclose([f(Y, scores, k) for f in AT_K], naive_at_k(Y, scores, everything, k))
    truth = nan_where_unknown(Y, known)
    assert_allclose([f(truth, scores, k) for f in AT_K], naive_at_k(Y, scores, known, k))


@law
@given(problems(ties=False), st.integers(1, 7))
def test_ndcg_at_k_is_scikit_learns_on_rows_with_labels(problem, k):
    Y, scores, _ = problem
    some = Y.any(axis=1)
    if some.any():
        assert_allclose(metrics.ndcg_at_k(Y, scores, k), sk.ndcg_score(Y[some], scores[some], k=k))


@law
@given(problems(), st.integers(1, 9), st.data())
def test_propensity_scored_metrics_are_the_loop_over_rows(problem, k, data):
    Y, scores, known = problem
    p = data.draw(arrays(np.float64, Y.shape[1], elements=st.sampled_from([0.1, 0.5, 0.9, 1.0])))
    for truth, mask in (Y, np.ones_like(known)), (nan_where_unknown(Y, known), known):
        got = [f(truth, scores, p, k) for f in (metrics.psp_at_k, metrics.psndcg_at_k)]
        assert_allclose(got, naive_propensity_scored(Y, scores, mask, p, k))


@law
@given(problems())
def test_with_equal_propensities_psp_at_1_is_precision_over_its_best_value(problem):
    Y, scores, _ = problem
    if Y.any():
        got = metrics.psp_at_k(Y, scores, np.full(Y.shape[1], 0.3), k=1)
        assert_allclose(got, metrics.precision_at_k(Y, scores, 1) / Y.any(axis=1).mean())


@law
@given(problems(), st.integers(1, 9))
def test_scores_and_their_top_k_give_the_same_figure(problem, k):
    Y, scores, known = problem
    p = np.linspace(0.2, 1, Y.shape[1])
    cut = topk_of(scores, k)
    # Of masked labels the list must reach past those that are taken out of it.
    whole = topk_of(scores, Y.shape[1])
    for truth, listed in (
        (Labels.positive_only(Y) if Y.any() else Y, cut),
        (
            Labels.masked(Y, known),
            whole,
        ),
    ):
        for metric in AT_K:
            assert_allclose(metric(truth, listed, k), metric(truth, scores, k))
        for metric in metrics.psp_at_k, metrics.psndcg_at_k:
            assert_allclose(metric(truth, listed, p, k), metric(truth, scores, p, k))


@law
@given(problems(), st.integers(1, 9))
def test_a_sparse_matrix_offers_only_its_stored_entries(problem, k):
    Y, scores, known = problem
    stored = sp.coo_array(np.where(scores == 0, 9, scores))
    stored.data[stored.data == 9] = 0.0
    keep = stored.data != -1
    few = sp.coo_array((stored.data[keep], (stored.row[keep], stored.col[keep])), shape=Y.shape)
    dense = np.where(scores == -1, -np.inf, scores)
    for truth in Y, Labels.masked(Y, known):
        for metric in AT_K:
            assert_allclose(metric(truth, few, k), metric(truth, dense, k))
            assert_allclose(metric(truth, few.tocsr(), k), metric(truth, dense, k))


def test_minus_infinity_and_index_minus_one_offer_no_label():
    Y = np.array([[1, 0, 1]])
    assert metrics.precision_at_k(Y, np.array([[-np.inf, 1.0, -np.inf]]), k=2) == 0
    assert metrics.precision_at_k(Y, TopK(np.array([[2, -1]]), np.array([[1, -np.inf]])), 2) == 0.5
    # The label before -1 in row-major order is the last one of the row above.
    assert metrics.precision_at_k([[0, 1], [0, 0]], TopK(np.array([[0], [-1]]), None), 1) == 0


@law
@given(problems(), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_many_k_at_once_are_each_k_by_itself(problem, ks):
    Y, scores, _ = problem
    p = np.linspace(0.2, 1, Y.shape[1])
    for metric in AT_K:
        assert_allclose(metric(Y, scores, ks), [metric(Y, scores, k) for k in ks])
    assert_allclose(
        metrics.psndcg_at_k(Y, scores, p, ks), [metrics.psndcg_at_k(Y, scores, p, k) for k in ks]
    )


def test_an_int_k_gives_a_float_and_a_sequence_an_array():
    Y, scores = np.eye(3, dtype=int), np.eye(3)
    assert type(metrics.precision_at_k(Y, scores, np.int64(1))) is float
    assert metrics.precision_at_k(Y, scores, (1, 3)).shape == (2,)


def test_propensities_are_the_formula():
    Y = np.zeros((50, 2), int)
    Y[:20, 0] = 1
    C = (np.log(50) - 1) * 2.5**0.55
    expected = [1 / (1 + C * np.exp(-0.55 * np.log(N + 1.5))) for N in (20, 0)]
    assert_allclose(metrics.propensities(Y), expected)
    # With A = 1 and B = 0, p = N_l / (N_l + ln N − 1).
    assert_allclose(metrics.propensities(Y, A=1, B=0)[0], 20 / (20 + np.log(50) - 1))


# ---- the whole ranking


@law
@given(problems())
def test_coverage_ranking_loss_and_ap_are_scikit_learns(problem):
    Y, scores, _ = problem
    assert_allclose(metrics.coverage(Y, scores), sk.coverage_error(Y, scores))
    assert_allclose(metrics.ranking_loss(Y, scores), sk.label_ranking_loss(Y, scores))
    assert_allclose(
        metrics.label_ranking_ap(Y, scores), sk.label_ranking_average_precision_score(Y, scores)
    )


@law
@given(problems())
def test_masked_figures_are_those_of_each_rows_known_labels_alone(problem):
    Y, scores, known = problem
    truth = Labels.masked(Y, known)
    for ours, theirs in (
        (metrics.coverage, sk.coverage_error),
        (metrics.ranking_loss, sk.label_ranking_loss),
        (metrics.label_ranking_ap, sk.label_ranking_average_precision_score),
    ):
        rows = [
            # A row of one known label is no multi-label problem to scikit-learn: add a second row.
            theirs(np.vstack([y[m]] * 2), np.vstack([s[m]] * 2)) if m.sum() > 1 else None
            for y, s, m in zip(Y, scores, known)
        ]
        if None not in rows:
            assert_allclose(ours(truth, scores), np.mean(rows))


@law
@given(problems())
def test_auc_is_scikit_learns_over_rows_and_over_labels_where_defined(problem):
    Y, scores, known = problem
    scores = np.where(scores == -1, -np.inf, scores)
    finite = np.where(np.isinf(scores), -1e9, scores)
    for truth, mask in (Y, np.ones_like(known)), (Labels.masked(Y, known), known):
        for ours, y, s, m in (
            (metrics.auc_per_instance, Y, finite, mask),
            (metrics.auc_per_label, Y.T, finite.T, mask.T),
        ):
            defined = [i for i in range(len(y)) if 0 < y[i].sum() < m[i].sum()]
            expected = [sk.roc_auc_score(y[i][m[i]], s[i][m[i]]) for i in defined]
            assert_allclose(ours(truth, scores), np.mean(expected) if expected else np.nan)


# ---- sets


@law
@given(indicators())
def test_set_metrics_are_scikit_learns(problem):
    Y, P, _ = problem
    zero, one = {"zero_division": 0}, {"zero_division": 1.0}
    assert_allclose(metrics.hamming_loss(Y, P), sk.hamming_loss(Y, P))
    assert_allclose(metrics.micro_f1(Y, P), sk.f1_score(Y, P, average="micro", **zero))
    assert_allclose(metrics.macro_f1(Y, P), sk.f1_score(Y, P, average="macro", **zero))
    with warnings.catch_warnings():  # scikit-learn warns of rows without labels whatever it is told
        warnings.simplefilter("ignore")
        accuracy = sk.jaccard_score(Y, P, average="samples", **one)
        f1 = sk.f1_score(Y, P, average="samples", **one)
    assert_allclose(metrics.example_accuracy(Y, P), accuracy)
    assert_allclose(metrics.example_f1(Y, P), f1)


@law
@given(indicators())
def test_macro_f1_over_present_labels_is_scikit_learns_on_those_columns(problem):
    Y, P, _ = problem
    present = np.flatnonzero(Y.any(axis=0))
    expected = np.nan
    if len(present):
        expected = sk.f1_score(Y, P, average=None, zero_division=0)[present].mean()
    assert_allclose(metrics.macro_f1(Y, P, present_only=True), expected)


@law
@given(indicators())
def test_masked_set_metrics_count_observed_cells_only(problem):
    Y, P, known = problem
    truth = Labels.masked(Y, known)
    assert_allclose(metrics.hamming_loss(truth, P), (Y != P)[known].mean())
    assert_allclose(metrics.micro_f1(truth, P), sk.f1_score(Y[known], P[known], zero_division=0))
    # For the rest: what is predicted outside the mask might as well not have been.
    for metric in metrics.macro_f1, metrics.example_accuracy, metrics.example_f1:
        assert_allclose(metric(truth, P), metric(Y, P * known))


@law
@given(indicators())
def test_an_indicator_is_the_same_set_however_it_comes(problem):
    Y, P, known = problem
    k = P.shape[1]
    order = np.argsort(-P, axis=1, kind="stable")
    listed = TopK(np.where(np.take_along_axis(P, order, axis=1) == 1, order, -1), np.zeros((1, k)))
    zeros_stored = sp.coo_array(np.ones_like(P))
    zeros_stored.data = P.ravel().copy()
    for metric in SETS:
        for truth in Y, Labels.masked(Y, known):
            figures = [metric(truth, Q) for Q in (sp.csr_array(P), P > 0, listed, zeros_stored)]
            assert_allclose(figures, metric(truth, P.astype(float)))


def test_a_cell_stored_twice_is_predicted_once_and_the_callers_matrix_stays():
    P = sp.csr_array((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert metrics.hamming_loss([[0, 1], [1, 0]], P) == 0
    assert_allclose(metrics.precision_at_k([[0, 1], [1, 0]], P, [1, 2]), [1, 0.5])
    assert P.nnz == 3


# ---- the best threshold


def estimated_f1(Y, scores, t, c):
    """Micro-F1 of {score > t} by (6), entry by entry."""
    hits = total = chosen = 0.0
    for i, j in np.ndindex(Y.shape):
        total += Y[i, j] / c[j]
        chosen += scores[i, j] > t
        hits += (scores[i, j] > t) * Y[i, j] / c[j]
    return 2 * hits / (total + chosen) if total + chosen else 0.0


@law
@given(problems(), st.lists(st.sampled_from([0.1, 0.3, 0.5, 1.0]), min_size=7, max_size=7))
def test_the_best_threshold_has_the_largest_estimated_f1_of_all(problem, rates):
    Y, scores, known = problem
    c = np.array(rates[: Y.shape[1]])
    for truth, offered in (Y, scores), (Labels.masked(Y, known), np.where(known, scores, -np.inf)):
        best = estimated_f1(Y, offered, metrics.best_threshold(truth, scores, c=c), c)
        every = [estimated_f1(Y, offered, t, c) for t in [-9.0, *np.unique(scores)]]
        assert_allclose(best, max(every))


@law
@given(problems(ties=False))
def test_with_everything_said_the_best_threshold_has_scikit_learns_largest_micro_f1(problem):
    Y, scores, _ = problem
    f1 = lambda t: sk.f1_score(Y, scores > t, average="micro", zero_division=0)
    best = f1(metrics.best_threshold(Y, scores))
    assert_allclose(best, max(f1(t) for t in [-9.0, *scores.ravel()]))


@law
@given(problems())
def test_the_best_threshold_scales_with_the_scores_and_never_rises_as_c_falls(problem):
    Y, scores, _ = problem
    t = metrics.best_threshold(Y, scores)
    assert_array_equal(8 * scores > metrics.best_threshold(Y, 8 * scores), scores > t)
    assert_allclose(metrics.best_threshold(np.vstack([Y, Y]), np.vstack([scores, scores])), t)
    falling = [metrics.best_threshold(Y, scores, c=c) for c in (1.0, 0.7, 0.4, 0.1)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == t


@law
@given(problems())
def test_the_best_threshold_is_the_same_however_the_scores_come(problem):
    Y, scores, known = problem
    order = np.argsort(-scores, axis=1, kind="stable")
    listed = TopK(order, np.take_along_axis(scores, order, axis=1))
    stored = sp.coo_array(np.ones_like(scores))
    stored.data = scores.ravel().copy()
    for truth in Y, Labels.masked(Y, known):
        t = metrics.best_threshold(truth, scores, c=0.5)
        assert metrics.best_threshold(truth, listed, c=0.5) == t
        assert metrics.best_threshold(truth, stored, c=0.5) == t
        half = scores.astype(np.float32)  # as exact here, and compared with in float32
        assert_array_equal(half > metrics.best_threshold(truth, half, c=0.5), scores > t)


def test_what_is_not_offered_is_missed_at_any_threshold():
    Y = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    scores = np.array([[0.9, -np.inf, -np.inf, 0.8], [0.4, 0.7, 0.1, -np.inf]])
    listed = TopK(np.array([[0, 3, -1], [1, 0, 2]]), scores[[[0], [1]], [[0, 3, 1], [1, 0, 2]]])
    # Of 4 true ones, one found for 1 predicted is 2/5, two for 4 are 4/8; of 2, both are 2/3.
    assert metrics.best_threshold(Y, scores) == metrics.best_threshold(Y, listed) == 0.1


def test_what_is_not_known_counts_neither_for_nor_against_a_threshold():
    Y, scores = np.array([[1, 0, 0], [1, 0, 0]]), np.array([[0.9, 0.8, 0.7], [0.4, 0.1, 0.1]])
    assert metrics.best_threshold(Y, scores) == 0.8
    assert metrics.best_threshold(Labels.masked(Y, [[1, 0, 0], [1, 1, 1]]), scores) == 0.1


def test_the_best_threshold_predicts_nothing_where_nothing_was_said():
    assert metrics.best_threshold(np.zeros((2, 2)), [[0.1, 0.4], [0.3, 0.2]]) == 0.4
    assert np.isnan(metrics.best_threshold(np.zeros((0, 2)), np.zeros((0, 2))))


@pytest.mark.parametrize(
    ("scores", "c", "sentence"),
    [
        (np.ones((2, 3)), 1.0, r"predicted has shape \(2, 3\) but truth has shape \(2, 2\)"),
        (np.full((2, 2), np.nan), 1.0, "predicted has NaN among its scores"),
        (np.full((2, 2), "a"), 1.0, "predicted must hold numbers; got values of type <U1"),
        (np.ones((2, 2)), 0.0, "c must be one number above 0 .*got 0.0"),
        (np.ones((2, 2)), [0.5, 1.5], "c must be one number above 0 .*one for each of 2 labels"),
        (np.ones((2, 2)), [0.5], "c must be one number above 0"),
    ],
)
def test_a_best_threshold_of_bad_input_is_one_sentence(scores, c, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.best_threshold([[1, 0], [0, 1]], scores, c=c)


# ---- all of them


@law
@given(problems(ties=False), st.data())
def test_permuting_labels_without_ties_changes_nothing(problem, data):
    Y, scores, known = problem
    order = data.draw(st.permutations(range(Y.shape[1])))
    truth, permuted = Labels.masked(Y, known), Labels.masked(Y[:, order], known[:, order])
    for metric in AT_K + WHOLE_RANKING:
        assert_allclose(metric(permuted, scores[:, order]), metric(truth, scores), rtol=1e-12)
    for metric in SETS:
        assert_allclose(metric(permuted, scores[:, order] > 0), metric(truth, scores > 0))


@law
@given(problems())
def test_the_scores_of_unknown_entries_are_never_read(problem):
    Y, scores, known = problem
    truth = Labels.masked(Y, known)
    other = np.where(known, scores, 99.0)
    for metric in AT_K + WHOLE_RANKING:
        assert_allclose(metric(truth, other), metric(truth, scores))


@pytest.mark.parametrize("metric", AT_K + WHOLE_RANKING)
def test_cutting_the_rows_into_blocks_changes_nothing(metric, monkeypatch):
    rng = np.random.default_rng(0)
    Y, scores = rng.integers(0, 2, (23, 5)), rng.integers(0, 4, (23, 5))
    whole = metric(Y, scores)
    monkeypatch.setattr(top, "BLOCK_ENTRIES", 15)
    assert_allclose(metric(Y, scores), whole)


@pytest.mark.parametrize("metric", AT_K + WHOLE_RANKING + SETS)
def test_sparse_and_dense_truth_agree_and_positive_only_reads_as_complete(metric):
    rng = np.random.default_rng(1)
    Y, P = rng.integers(0, 2, (9, 6)), rng.integers(0, 2, (9, 6))
    reviewed = Labels.positive_only(Y, no=(1 - Y) * rng.integers(0, 2, Y.shape))
    truths = (sp.csr_matrix(Y), Labels.positive_only(Y), reviewed, Y.astype(bool))
    assert_allclose([metric(T, P) for T in truths], metric(Y, P))


@pytest.mark.parametrize("metric", AT_K + WHOLE_RANKING + SETS)
def test_shapes_that_differ_are_both_named(metric):
    with pytest.raises(
        ValueError, match=r"predicted has shape \(3, 4\) but truth has shape \(3, 2\)"
    ):
        metric(np.ones((3, 2)), np.ones((3, 4)))


@pytest.mark.parametrize("metric", WHOLE_RANKING)
def test_the_whole_ranking_cannot_be_had_from_a_part(metric):
    Y = np.eye(3, dtype=int)
    with pytest.raises(ValueError, match=r"predicted is a TopK.*a score for every label"):
        metric(Y, topk_of(np.eye(3), 2))
    with pytest.raises(ValueError, match=r"predicted is a sparse matrix.*a score for every label"):
        metric(Y, sp.csr_array(np.eye(3)))


@pytest.mark.parametrize("metric", SETS)
def test_scores_are_not_a_set(metric):
    with pytest.raises(ValueError, match=r"predicted must hold 0 and 1 .* got 0\.25; compare"):
        metric(np.eye(2, dtype=int), np.array([[1, 0.25], [0, 1]]))


@pytest.mark.parametrize(
    ("predicted", "k", "sentence"),
    [
        (np.eye(3), 0, "k must be an int of at least 1.*got 0"),
        (np.eye(3), 1.5, "k must be an int of at least 1.*got 1.5"),
        (np.eye(3), [], "k must be an int of at least 1"),
        (np.full((3, 3), np.nan), 1, "predicted has NaN"),
        (sp.csr_array(np.full((3, 3), np.nan)), 1, "predicted has NaN"),
        (np.full((3, 3), "a"), 1, "predicted must hold numbers"),
        (topk_of(np.eye(3), 1), 2, "lists 1 labels a row but k is 2; ask for a TopK of 2"),
        (topk_of(np.eye(2), 2), 1, r"lists labels of shape \(2, 2\) but truth has shape \(3, 3\)"),
        (topk_of(np.ones((3, 4)), 4), 1, "lists label 3 but truth has 3 labels"),
    ],
)
def test_bad_rankings_are_told_in_one_sentence(predicted, k, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.precision_at_k(np.eye(3, dtype=int), predicted, k)


def test_bad_propensities_are_told_in_one_sentence():
    Y = np.eye(3, dtype=int)
    with pytest.raises(ValueError, match=r"propensities has shape \(2,\) but truth has 3 labels"):
        metrics.psp_at_k(Y, np.eye(3), [0.5, 0.5])
    with pytest.raises(ValueError, match="propensities must be above 0 and at most 1"):
        metrics.psp_at_k(Y, np.eye(3), [0.5, 0.5, 0.0])
    with pytest.raises(ValueError, match="Y_train has 2 rows; the formula needs at least 3"):
        metrics.propensities(Y[:2])
