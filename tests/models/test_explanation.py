"""What adds to a score, against what was known of it beforehand."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler, normalize

from tacit import Labels, Tacit, load
from tacit.baselines import (
    EASE,
    NNML,
    BinaryRelevance,
    Elkan08,
    LabelSpaceReduction,
    Neighbours,
    Popularity,
    Ridge,
)
from tacit.methods import LEML, MPU, SEM
from tacit.methods.tacit.first.by_feature import SparseWeights
from tacit.models import LowRank
from tacit.models.explanation import explanations
from tacit.models.known_rows import KnownRows, marks_of
from tacit.testing import problem

ALL = 100  # more reasons than there are


def amounts(explanation, kind="feature"):
    return {r.name: r.amount for r in explanation.reasons if r.kind == kind}


@pytest.fixture(scope="module")
def data():
    return problem("complete")


@pytest.fixture(scope="module")
def blended(data):
    return Tacit(cv=3, scaling="unit", random_state=0).fit(*data)


@pytest.mark.parametrize("form", [sp.csr_array, lambda X: X.toarray()], ids=["sparse", "dense"])
@pytest.mark.parametrize("estimator", [Ridge(reg=0.3, normalize="l2"), LEML(rank=3, reg=0.3)])
def test_each_feature_adds_its_weight_times_its_value(data, estimator, form):
    X, Y = data
    fitted = clone(estimator).set_params(normalize="l2").fit(form(X), Y)
    model = fitted.model_
    weights = model.W if model.H is None else model.W @ model.H.T
    (found,) = fitted.explain(form(X), 3, 5, ALL)
    x = normalize(X[[3]]).toarray()[0]
    there = np.flatnonzero(x)
    assert amounts(found) == pytest.approx({j: x[j] * weights[j, 5] for j in there})
    assert_allclose(found.rest, weights[-1, 5])


def test_standardised_columns_add_what_is_unlike_the_mean(data):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4)) + 5
    fitted = Ridge().fit(X, Labels.complete(X[:, :2] > 5))
    (found,) = fitted.explain(X, 0, 1, ALL)
    z = normalize(StandardScaler().fit_transform(X))[0]
    assert amounts(found) == pytest.approx(dict(enumerate(z * fitted.model_.W[:-1, 1])), abs=1e-6)


def test_in_a_network_a_feature_adds_its_slope_times_its_value(data):
    """It is linear around a row, as far as no unit passes 0."""
    X, Y = data[0].toarray(), data[1]
    fitted = NNML(rank=20, dropout=0, max_iter=50, normalize=None, random_state=0).fit(X, Y)
    assert (fitted.transform(X[[3]]) == 0).any()
    found = amounts(fitted.explain(X, 3, 5, ALL)[0])
    step = 1e-6
    for j in np.flatnonzero(X[3]):
        more = X[[3]] + step * np.eye(X.shape[1])[j]
        slope = (fitted.decision_function(more) - fitted.decision_function(X[[3]]))[0, 5] / step
        assert_allclose(found[j], slope * X[3, j], atol=1e-6)


def test_elkans_features_add_to_the_log_odds(data):
    X, Y = problem("positive-only")
    fitted = Elkan08(reg=0.3, holdout=0.3, random_state=0).fit(X, Y)
    (found,) = fitted.explain(X, 3, 5, ALL)
    z = sum(amounts(found).values()) + fitted.model_.W[-1, 5]
    assert_allclose(found.score, -np.log1p(np.exp(-z)) - np.log(fitted.model_.c[5]))


def test_neighbours_that_have_the_label_add_their_share_of_the_votes(data):
    X, Y = data
    fitted = Neighbours(6, normalize="l2").fit(X, Y)
    (found,) = fitted.explain(X, 3, 0, ALL)
    cosines = cosine_similarity(X[[3]], X)[0]
    near = np.argsort(-cosines, kind="stable")[:6]
    has = Y.positives.toarray()[:, 0]
    wanted = {int(i): cosines[i] / cosines[near].sum() for i in near if has[i]}
    assert amounts(found, "row") == pytest.approx(wanted)
    assert len(wanted) > 1


def test_of_masked_labels_only_rows_that_know_one_vote():
    X = sp.csr_array(np.ones((3, 1)))
    Y = Labels.masked(np.array([[1, 0], [0, 0], [0, 1]]), np.array([[1, 0], [1, 0], [0, 1]]))
    found = Neighbours(2, normalize="l2").fit(X, Y).explain(X, [0, 0], [0, 1])
    assert amounts(found[0], "row") == pytest.approx({0: 0.5})
    assert amounts(found[1], "row") == {}  # the near ones do not know it: its rate
    assert found[1].rest == found[1].score == 1


def test_a_stack_also_names_the_labels_that_it_predicted(data):
    X, Y = data
    fitted = MPU(2, cv=2, reg=0.3, solver="newton", random_state=0).fit(X, Y)
    (found,) = fitted.explain(X, 3, 5, ALL)
    model = fitted.model_
    below = 1 / (1 + np.exp(-(sp.hstack([normalize(X), np.ones((60, 1))]) @ model.W)[3]))
    wanted = dict(zip(Y.classes, below * model.stack[len(model.W) :, 5]))
    assert amounts(found, "label") == pytest.approx(wanted)


def test_the_parts_of_a_blend_add_to_the_log_odds(data, blended):
    X, _ = data
    (found,) = blended.explain(X, 3, 5, 1)  # all parts, whatever k
    assert [each.kind for each in found.reasons] == ["part"] * len(blended.model_.blend.names)
    assert_allclose(found.rest, blended.model_.blend.bias)
    rarity = blended.model_.rarity[5]
    weight = dict(zip(blended.model_.blend.names, blended.model_.blend.weights))["rarity"]
    assert_allclose(amounts(found, "part")["rarity"], weight * rarity)


def test_the_lead_of_a_blend_names_features_and_explains_its_own_score(data, blended):
    X, _ = data
    (found,) = blended.explain(X, 3, 5, ALL)
    lead, model = found.lead, blended.model_
    x = model.scaling(next(blended._blocks(X[[3]], 1)))
    assert_allclose(lead.score, model.voices[0].model.scores(x)[0, 5])
    assert {r.kind for r in lead.reasons} == {"feature"}
    assert len(blended.explain(X, 3, 5, 2)[0].lead.reasons) == 2


def test_behind_the_shortlist_the_lead_alone_adds(data):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 30), density=0.3, rng=rng, format="csr")
    Y = (X @ rng.standard_normal((30, 120)) > 1).astype(int)
    fitted = Tacit(cv=3, scaling="unit", random_state=0).fit(X, Labels.complete(Y))
    assert 0 < fitted.model_.shortlist < 120
    scores = fitted.decision_function(X[:2])
    last = int(np.argmin(scores[1]))
    (found,) = fitted.explain(X, 1, last)
    assert_allclose(found.score, scores[1, last])
    assert [each.name for each in found.reasons] == ["ridge"]


def test_waves_have_no_names_and_so_the_lead_on_them_has_no_reasons():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    Y = Labels.complete((X[:, :3] > 0).astype(int))
    fitted = Tacit(cv=3, scaling="fourier", random_state=0).fit(X, Y)
    (found,) = fitted.explain(X, 0, 0)
    assert found.lead is None
    assert_allclose(found.score, fitted.decision_function(X)[0, 0])


def test_names_come_from_the_frame_the_labels_and_the_caller(tmp_path):
    frame = pd.DataFrame({"red": [1.0, 0, 1, 0], "green": [0.0, 1, 1, 0]})
    fitted = Ridge(normalize=None).fit(frame, [["a"], ["b"], ["a", "b"], []])
    fitted.save(tmp_path / "m.tacit")
    one, two = load(tmp_path / "m.tacit").explain(frame, 2, ["a", "b"])
    assert one.reasons[0].name == "red"
    assert two.reasons[0].name == "green"
    assert fitted.explain(frame, [2], 0)[0] == one
    (own,) = fitted.explain(frame, 2, "a", names=["rouge", "vert"])
    assert own.reasons[0].name == "rouge"
    assert str(own).startswith(f"{own.score:.3g} = rouge +")


def test_what_looks_at_no_feature_has_no_reason(data):
    found = Popularity().fit(*data).explain(data[0], 0, 0)[0]
    assert found.reasons == ()


@pytest.mark.parametrize(
    "estimator",
    [SEM(rank=3, max_iter=1), LabelSpaceReduction("bmad", rank=3), EASE()],
    ids=["SEM", "BMaD", "EASE"],
)
def test_who_has_no_sums_says_so(data, estimator):
    name = type(estimator).__name__
    with pytest.raises(ValueError, match=f"scores of this {name} are no sums over features"):
        estimator.fit(*data).explain(data[0], 0, 0)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"rows": 60}, "rows must be numbers of rows of X, 0 to 59"),
        ({"rows": 0.5}, "rows must be numbers of rows of X, 0 to 59"),
        ({"labels": 8}, "the model knows no label 8"),
        ({"labels": "lable 3"}, "knows no label 'lable 3'; did you mean 'label 3'?"),
        ({"names": ["a"]}, "names must be of all 15 features; got 1"),
        ({"rows": [1, 2, 3], "labels": [0, 1]}, "give a row for each label; got 3 rows, 2 labels"),
        ({"k": 0}, "k must be an int of at least 1; got 0"),
    ],
    ids=str,
)
def test_what_is_asked_wrongly_is_told_in_a_sentence(data, asked, sentence):
    fitted = BinaryRelevance().fit(*data)
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        fitted.explain(data[0], **({"rows": 0, "labels": 0} | asked))


@pytest.mark.parametrize("kind", [SparseWeights, KnownRows])
def test_first_models_of_tacit_that_no_method_is_alone_add_up(data, kind):
    rng, block = np.random.default_rng(0), next(Ridge().fit(*data)._blocks(data[0], 1))
    if kind is KnownRows:  # its weights of known rows come behind those of features
        model = KnownRows(LowRank(rng.standard_normal((16 + 60, 8))), marks_of(block))
    else:
        W = sp.random_array((16, 8), density=0.5, rng=rng, format="csr")
        model = SparseWeights(W, np.arange(8))
    labels = np.arange(60) % 8
    found = explanations(model.contributions(block, labels), {"feature": range(15)}, ALL)
    wanted = model.scores(block)[np.arange(60), labels]
    assert_allclose([each.score for each in found], wanted, atol=1e-12)


def test_rows_beyond_a_block_keep_their_labels(data, monkeypatch):
    monkeypatch.setattr("tacit.estimators.estimator._BLOCK_ENTRIES", 40)
    fitted = Ridge().fit(*data)
    rows, labels = np.arange(20), np.arange(20) % 8
    found = fitted.explain(data[0], rows, labels)
    assert_allclose([e.score for e in found], fitted.decision_function(data[0])[rows, labels])
