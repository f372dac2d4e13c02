"""Approximate top k against sorting all scores, and the refusals of indexes that do not fit."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import tacit.estimators.estimator
from tacit import LEML
from tacit.baselines import Popularity, Ridge
from tacit.engines.index import LabelIndex
from tacit.testing import problem

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="needs tacit[search]")


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    return rng.standard_normal((2000, 16)), rng.standard_normal((300, 16))


def recall(found, scores):
    k = found.indices.shape[1]
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.mean([np.isin(a, b).mean() for a, b in zip(found.indices, best)])


# ---- the index


@needs_faiss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, 50])
def test_nearly_all_of_the_best_labels_are_found_with_their_exact_scores(factors, k, dtype):
    H, codes = (part.astype(dtype) for part in factors)
    found, scores = LabelIndex.of(H).search(codes, k), codes @ H.T
    assert found.indices.shape == found.scores.shape == (300, k)
    assert recall(found, scores) >= 0.95
    exact = np.take_along_axis(scores, found.indices, axis=1)
    assert found.scores.dtype == dtype
    assert_allclose(found.scores, exact, rtol=20 * np.finfo(dtype).eps)
    assert (np.diff(found.scores, axis=1) <= 0).all(), "not best first"
    assert all(len(set(row)) == k for row in found.indices.tolist())


@needs_faiss
@pytest.mark.parametrize("k", [2000, 3000])
def test_as_many_labels_as_there_are_is_sorting_all_scores(factors, k):
    H, codes = factors
    found, scores = LabelIndex.of(H).search(codes[:20], k), codes[:20] @ H.T
    assert_array_equal(found.indices, np.argsort(-scores, axis=1, kind="stable"))


@needs_faiss
def test_labels_that_the_graph_cannot_reach_are_found_all_the_same(factors):
    # A label of huge factors is everyone's nearest, so hardly a link leads on to the others.
    H, codes = factors
    H = H * np.geomspace(1e-6, 1e6, len(H))[:, None]
    index = LabelIndex.of(H, accuracy=1)
    _, reached = index._graph.search(codes.astype(np.float32), 400)
    short = (reached < 0).any(axis=1)
    assert short.any(), "the graph reaches everything: nothing is tested"
    found, best = index.search(codes, 400), np.argsort(-(codes @ H.T), axis=1)[:, :400]
    assert_array_equal(found.indices[short], best[short])


@needs_faiss
def test_of_equal_scores_the_lower_label_comes_first(factors):
    H, codes = factors
    found = LabelIndex.of(np.concatenate([H[:30], H[:30]])).search(codes, 6)
    best = np.argsort(-(codes @ H[:30].T), axis=1)[:, :3]
    assert_array_equal(found.indices, np.stack([best, best + 30], axis=2).reshape(-1, 6))


@needs_faiss
def test_more_accuracy_finds_more(factors):
    H, codes = factors
    few, many = (recall(LabelIndex.of(H, accuracy=a).search(codes, 1), codes @ H.T) for a in (1, 9))
    assert few < 0.8 < many


# ---- in a model


@needs_faiss
@pytest.mark.parametrize("name", ["LEML", "Popularity"])
def test_top_k_by_the_index_is_top_k(monkeypatch, device, name):
    X, Y = problem("complete")
    model = {
        "LEML": LEML(rank=3, reg=0.1, max_iter=3, random_state=0, device=device),
        "Popularity": Popularity(),
    }[name].fit(X, Y)
    index = model.build_index()
    monkeypatch.setattr(tacit.estimators.estimator, "_PREDICTED_ROWS", 7)
    for k in (1, 3, 100):  # of 8 labels: the graph finds them all
        found, exact = model.top_k(X, k, index=index), model.top_k(X, k)
        assert_array_equal(found.indices, exact.indices)
        assert_allclose(found.scores, exact.scores, rtol=1e-10, atol=1e-14)


@needs_faiss
def test_the_accuracy_asked_of_a_model_is_that_of_its_index():
    model = LEML(rank=3, reg=0.1, max_iter=1, random_state=0).fit(*problem("complete"))
    assert model.build_index(accuracy=7)._graph.hnsw.efSearch == 7


# ---- refusals


@needs_faiss
def test_the_index_of_another_model_is_one_clear_sentence():
    X, Y = problem("complete")
    model = LEML(rank=3, reg=0.1, max_iter=2, random_state=0).fit(X, Y)
    wide, stale = LabelIndex.of(np.eye(9)), model.build_index()
    with pytest.raises(ValueError, match=r"shape \(9, 9\), not from this model's \(of shape \(8,"):
        model.top_k(X, index=wide)
    with pytest.raises(ValueError, match=r"\(it has none\); make one by build_index\(\)"):
        Ridge().fit(X, Y).top_k(X, index=wide)
    with pytest.raises(ValueError, match=r"index must be None or come from build_index\(\); got 5"):
        model.top_k(X, index=5)
    model.set_params(reg=9.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"make one by build_index\(\) after the fit"):
        model.top_k(X, index=stale)


def test_a_model_without_label_factors_has_no_index():
    with pytest.raises(ValueError, match=r"Ridge has no label factors .* use top_k without index"):
        Ridge().fit(*problem("complete")).build_index()
    with pytest.raises(NotFittedError):
        LEML().build_index()


@needs_faiss
@pytest.mark.parametrize("bad", [0, 2.5, None, True])
def test_a_count_that_is_none_is_one_clear_sentence(bad):
    with pytest.raises(ValueError, match="accuracy must be an int of at least 1; got"):
        LabelIndex.of(np.eye(3), accuracy=bad)
    with pytest.raises(ValueError, match="k must be an int of at least 1; got"):
        LabelIndex.of(np.eye(3)).search(np.eye(3), bad)


@needs_faiss
@pytest.mark.parametrize("shape", [(3,), (5, 2)])
def test_codes_of_another_rank_are_one_clear_sentence(shape):
    with pytest.raises(ValueError, match=r"codes have shape .*; give one row of length 3"):
        LabelIndex.of(np.eye(3)).search(np.ones(shape), 1)


def test_without_the_library_the_index_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    X, Y = problem("complete")
    model = LEML(rank=3, reg=0.1, max_iter=1, random_state=0).fit(X, Y)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "tacit\[search\]", or use top_k'):
        model.build_index()
    assert model.top_k(X, 2).indices.shape == (60, 2)


@needs_faiss
def test_the_library_is_imported_by_the_first_index_and_not_before():
    code = """
import sys, numpy, tacit.estimators.estimator, tacit.engines.index
print("faiss" in sys.modules)
tacit.engines.index.LabelIndex.of(numpy.eye(3))
print("faiss" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
