import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

import tacit
from tacit.backends.block import Placement, place
from tacit.baselines import LabelSpaceReduction
from tacit.codecs import BMaD, CodecData
from tacit.labels import Labels


def asso(Y, tau, rank):
    """Groups and who has them, by ASSO's greedy algorithm, entry by entry."""
    n, n_labels = Y.shape
    candidates = np.zeros((n_labels, n_labels), bool)
    for i in np.flatnonzero(Y.any(axis=0)):
        candidates[i] = Y[Y[:, i] == 1].mean(axis=0) >= tau
    covered = np.zeros(Y.shape, bool)
    groups, usage = [], []
    for _ in range(rank):
        gains = np.zeros((n_labels, n), int)
        for c in range(n_labels):
            for i in range(n):
                for label in range(n_labels):
                    if candidates[c, label] and not covered[i, label]:
                        gains[c, i] += 1 if Y[i, label] else -1
        totals = [sum(max(g, 0) for g in row) for row in gains]
        best = int(np.argmax(totals))
        if totals[best] == 0:
            break
        has = gains[best] > 0
        covered |= np.outer(has, candidates[best])
        groups.append(candidates[best])
        usage.append(has)
    return np.array(groups, float).T, np.array(usage, float).T


def training(X, Y, backend, blocks_of, where="three blocks"):
    blocks = blocks_of(X, Labels.complete(Y), where)
    placed = blocks.map(place, Placement(backend, "float64", None, False))
    return CodecData(
        placed, X.shape[1], Y.shape[1],
        centred=False, backend=backend, dtype=np.dtype("float64"), rng=np.random.RandomState(0),
    )  # fmt: skip


def overlapping(seed, n=30, n_labels=9):
    """Rows of some overlapping groups, a tenth of their entries flipped."""
    rng = np.random.default_rng(seed)
    groups = rng.random((4, n_labels)) < 0.4
    Y = (rng.random((n, 4)) < 0.4) @ groups
    Y ^= rng.random(Y.shape) < 0.1
    return rng.standard_normal((n, 3)), Y.astype(int)


def encoded(code, rows, backend):
    return np.concatenate(rows.blocks.sum(_codes, code, backend))


def _codes(b, code, backend):
    return [backend.to_numpy(code.encode(b))]


@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_groups_and_codes_are_those_of_asso_entry_by_entry(backend, blocks_of, tau, seed):
    X, Y = overlapping(seed)
    groups, usage = asso(Y, tau, 7)
    assert groups.shape[1] > 1
    rows = training(X, Y, backend, blocks_of)
    code = BMaD(tau).learn(rows, 7, 1.0)
    assert_array_equal(backend.to_numpy(code.H), groups)
    assert_array_equal(encoded(code, rows, backend), usage)


def test_disjoint_groups_are_found_and_their_labels_given_back(backend, blocks_of):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.eye(4), [3, 1, 2, 4], axis=1)
    Y = np.vstack([np.eye(4), rng.random((20, 4)) < 0.3]) @ groups
    rows = training(rng.standard_normal((24, 2)), Y, backend, blocks_of)
    code = BMaD(1.0).learn(rows, 10, 1.0)
    found = backend.to_numpy(code.H).T
    assert sorted(map(tuple, found)) == sorted(map(tuple, groups))
    codes = backend.asarray(encoded(code, rows, backend))
    assert_array_equal(backend.to_numpy(BMaD().decode(codes, code.H)), Y)


def test_a_share_of_exactly_tau_is_enough(backend, blocks_of):
    Y = np.zeros((100, 2))
    Y[:25, 0], Y[18:, 1] = 1, 1  # 7 of 25 are 0.28, but 0.28 × 25 is more than 7 in floats
    code = BMaD(0.28).learn(training(np.ones((100, 1)), Y, backend, blocks_of), 2, 1.0)
    assert_array_equal(backend.to_numpy(code.H).T, [[0, 1], [1, 1]])


def test_a_label_scores_what_the_best_of_its_groups_does(backend):
    rng = np.random.default_rng(0)
    codes, H = rng.standard_normal((6, 4)), (rng.random((7, 4)) < 0.5).astype(float)
    wanted = [[max(0, *(z[H[j] > 0]), 0) for j in range(7)] for z in codes]
    got = BMaD().decode(backend.asarray(codes), backend.asarray(H))
    assert_array_equal(backend.to_numpy(got), wanted)


def test_codes_are_predicted_by_ridge(device):
    X, Y = overlapping(3)
    _, usage = asso(Y, 0.5, 5)
    model = LabelSpaceReduction(
        "bmad", 5, reg=0.3, normalize=None, fit_intercept=False, device=device
    ).fit(X, Y)
    wanted = Ridge(0.3, fit_intercept=False).fit(X, usage).predict(X)
    assert_allclose(model.transform(X), wanted, atol=1e-9)


@pytest.mark.parametrize("Y", [np.zeros((6, 4)), np.zeros((6, 1))])
def test_without_groups_all_scores_are_0_and_the_model_can_be_saved(device, Y, tmp_path):
    X = np.random.default_rng(0).standard_normal((6, 3))
    model = LabelSpaceReduction("bmad", 3, device=device).fit(X, Y)
    assert_array_equal(model.decision_function(X), 0)
    tacit.save(model, tmp_path / "model")
    assert_array_equal(tacit.load(tmp_path / "model").decision_function(X), np.zeros(Y.shape))


def test_a_label_of_nobody_scores_0(device):
    X = np.random.default_rng(0).standard_normal((6, 3))
    for Y in (np.zeros((6, 1)), np.eye(6, 4, 1)):  # the first column is empty
        scores = LabelSpaceReduction("bmad", 9, device=device).fit(X, Y).decision_function(X)
        assert_array_equal(scores.any(axis=0), Y.any(axis=0))


def test_the_estimator_agrees_with_itself_on_every_road(tmp_path):
    X, Y = overlapping(1)
    fit = lambda device: LabelSpaceReduction("bmad", 5, reg=0.1, device=device).fit(X, Y)
    model = fit("cpu")
    scores = model.decision_function(X)
    assert_allclose(fit("torch").decision_function(X), scores, atol=1e-9)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    top = model.top_k(X, 3)
    assert_array_equal(top.indices, best)
    assert_array_equal(top.scores, np.take_along_axis(scores, best, axis=1))
    assert_array_equal(model.predict(X).toarray(), scores > 0.5)
    tacit.save(model, tmp_path / "model")
    assert_array_equal(tacit.load(tmp_path / "model").decision_function(X), scores)
