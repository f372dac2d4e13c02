"""What every method inherits: prediction in blocks, data frames, pipelines and clear refusals."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline

import tacit.engines.problem
import tacit.estimators.estimator
import tacit.labels
from tacit import LEML, GenEML, Labels
from tacit.backends.numpy import NumpyBackend
from tacit.baselines import Popularity, Ridge
from tacit.blocks import MemoryBlocks, Rows, StreamedBlocks
from tacit.blocks.facts import facts
from tacit.estimators import placing
from tacit.metrics import ndcg_at_k
from tacit.testing import problem


@pytest.fixture(params=["sparse", "dense"])
def data(request):
    X, Y = problem("complete")
    return X if request.param == "sparse" else X.toarray(), Y


@pytest.fixture
def model(data):
    return LEML(rank=3, reg=0.1, max_iter=3, random_state=0).fit(*data)


# ---- blocks of rows


@pytest.mark.parametrize("rows", [1, 7, 59, 60, 61])
def test_predicting_in_blocks_changes_nothing(monkeypatch, data, model, rows):
    X, Y = data
    answers = lambda: [
        model.decision_function(X),
        model.predict_proba(X),
        model.predict(X).toarray(),
        *model.top_k(X, 3),
        *model.complete(X, Y, k=2),
        model.transform(X),
        model.score(X, Y),
    ]
    whole = answers()
    monkeypatch.setattr(tacit.estimators.estimator, "_PREDICTED_ROWS", rows)
    monkeypatch.setattr(tacit.estimators.estimator, "_BLOCK_ENTRIES", rows * Y.n_labels)
    sizes, place = [], tacit.estimators.estimator.place
    monkeypatch.setattr(
        tacit.estimators.estimator,
        "place",
        lambda part, how: sizes.append(len(part)) or place(part, how),
    )
    for got, wanted in zip(answers(), whole):
        assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)
    assert max(sizes) == min(rows, 60), "the blocks were not that small"


@pytest.mark.parametrize("kind", ["masked", "complete"])
def test_completing_in_blocks_is_sorting_the_whole(monkeypatch, kind):
    X, Y = problem(kind)
    model = LEML(rank=3, reg=0.1, random_state=0).fit(X, Y)
    monkeypatch.setattr(tacit.estimators.estimator, "_PREDICTED_ROWS", 7)
    found = model.complete(X, Y, k=2, fold_in=False)
    said = (Y.positives if Y.observed is None else Y.observed).toarray()
    scores, wanted = model.decision_function(X), []
    for i in range(len(Y)):  # the naive way
        open_ = sorted((-scores[i, j], j) for j in range(Y.n_labels) if not said[i, j])
        wanted += [(score, i, j) for score, j in open_[:2]]
    wanted.sort(key=lambda entry: entry[0])
    assert_array_equal(np.c_[found.row, found.label], [entry[1:] for entry in wanted])
    assert_allclose(found.probability, np.clip([-entry[0] for entry in wanted], 0, 1))


def test_a_row_with_less_unsaid_than_k_offers_what_it_has(data, model):
    X, _ = data
    observed = np.ones((X.shape[0], 8), bool)
    observed[4, [1, 6]] = False
    found = model.complete(X, Labels.masked(observed * 0, observed), k=5)
    assert_array_equal(found.row, [4, 4])
    assert sorted(found.label) == [1, 6]
    nothing = model.complete(X, Labels.masked(observed * 0, observed * 0 + 1), k=5)
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_a_dense_answer_beyond_the_limit_is_refused_and_top_k_is_not(monkeypatch, data, model):
    X, _ = data
    monkeypatch.setattr(tacit.labels, "DENSE_LIMIT", 60 * 8 - 1)
    for method in (model.decision_function, model.predict_proba):
        with pytest.raises(ValueError, match=rf"LEML\.{method.__name__} .* 60 × 8 .* use top_k"):
            method(X)
        assert method(X[:59]).shape == (59, 8)
    assert model.top_k(X, 2).indices.shape == (60, 2)
    assert model.predict(X).shape == (60, 8)


# ---- what is asked for


@pytest.mark.parametrize("k", [0, -1, 2.5, "five", None, True])
def test_a_k_that_is_no_count_is_one_clear_sentence(data, model, k):
    for ask in (lambda: model.top_k(data[0], k), lambda: model.complete(*data, k=k)):
        with pytest.raises(ValueError, match=r"k must be an int of at least 1; got"):
            ask()


def test_more_labels_than_there_are_is_all_of_them(data, model):
    X, _ = data
    assert_array_equal(np.sort(model.top_k(X, 100).indices), np.tile(np.arange(8), (60, 1)))
    assert model.set_params(k=100).predict(X).nnz == 60 * 8


def test_the_latent_codes_decode_to_the_scores(data, model):
    X, _ = data
    codes = model.transform(X)
    assert codes.shape == (60, 3)
    assert_allclose(codes @ model.model_.H.T, model.decision_function(X))
    assert_array_equal(model.get_feature_names_out(), ["leml0", "leml1", "leml2"])


def test_score_is_the_ndcg_of_the_five_best(data, model):
    X, Y = data
    rows = Y.positives.sum(axis=1) > 0  # scikit-learn gives a row without positives 0
    truth = Y.to_sparse().toarray()
    theirs = ndcg_score(truth[rows], model.decision_function(X)[rows], k=5)
    assert_allclose(model.score(X[rows], Y[rows]), theirs)
    assert model.score(X, Y) == ndcg_at_k(Y, model.top_k(X, 5), 5)
    assert model.score(X, truth) == model.score(X, Y)


# ---- data frames and names


def test_a_pandas_frame_is_remembered_by_its_columns(data):
    pd = pytest.importorskip("pandas")
    X, Y = data
    X = X.toarray() if sp.issparse(X) else X
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = LEML(rank=3, max_iter=2, random_state=0).fit(frame, Y)
    assert_array_equal(model.feature_names_in_, frame.columns)
    plain = LEML(rank=3, max_iter=2, random_state=0).fit(X, Y)
    assert_allclose(model.decision_function(frame), plain.decision_function(X))
    assert model.set_params(k=2).predict(frame).nnz == 120  # and no warning about lost names
    for method in (model.predict, model.top_k, model.transform, model.decision_function):
        with pytest.raises(ValueError, match="feature names should match"):
            method(frame[frame.columns[::-1]])


def test_a_polars_frame_is_remembered_by_its_columns():
    pl = pytest.importorskip("polars")
    X, Y = problem("complete")
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pl.DataFrame(X.toarray(), schema=names)
    model = LEML(rank=3, max_iter=2, random_state=0).fit(frame, Y)
    assert_array_equal(model.feature_names_in_, names)
    plain = LEML(rank=3, max_iter=2, random_state=0).fit(X.toarray(), Y)
    assert_allclose(model.decision_function(frame), plain.decision_function(X.toarray()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.select(names[::-1]))


def test_a_frame_of_labels_names_the_classes_and_its_gaps_are_unsaid():
    pd = pytest.importorskip("pandas")
    X, Y = problem("masked")
    frame = pd.DataFrame(Y.to_array(), columns=Y.classes)
    model = LEML(rank=3, max_iter=2, random_state=0)
    scores = model.fit(X, frame).decision_function(X)
    assert_array_equal(model.classes_, Y.classes)
    assert_array_equal(scores, model.fit(X, Y).decision_function(X))


def test_blocks_after_a_frame_leave_no_names_of_features_behind():
    pd = pytest.importorskip("pandas")
    X, Y = problem("complete")
    frame = pd.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(X.shape[1])])
    model = LEML(rank=3, max_iter=2, random_state=0).fit(frame, Y)
    model.fit(MemoryBlocks.from_rows(Rows(X, Y), 2))
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == Y.shape


# ---- through scikit-learn's tools


TEXTS = [f"{animal} and {food}" for animal in ("cat", "dog", "cow") for food in ("tea", "rye")] * 5
SETS = [[word for word in text.split() if word != "and"] for text in TEXTS]


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_labels_travel_through_split_pipeline_and_search(kind):
    Y = Labels.from_sets(SETS, kind="complete")
    if kind == "masked":
        observed = np.random.default_rng(0).random(Y.shape) < 0.8
        Y = Labels.masked(Y.to_sparse().toarray() * observed, observed, classes=Y.classes)
    train, test, Y_train, Y_test = train_test_split(TEXTS, Y, random_state=0)
    assert isinstance(Y_train, Labels)
    assert Y_train.kind == kind
    leml = LEML(rank=4, max_iter=5, random_state=0)
    pipeline = Pipeline([("words", TfidfVectorizer()), ("leml", leml)])
    grid = {"leml__reg": [1e-3, 1e6]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(train, Y_train)
    assert search.best_params_ == {"leml__reg": 1e-3}, "a model shrunk to nothing won"
    fitted = search.best_estimator_
    assert_array_equal(fitted[-1].classes_, Y.classes)
    best = fitted[-1].top_k(fitted[0].transform(test), 2).indices
    wanted = [sorted(text.split(" and ")) for text in test]
    assert [sorted(Y.classes[row].tolist()) for row in best] == wanted
    assert search.score(test, Y_test) == pytest.approx(1.0)


def test_cross_validation_is_fitting_and_scoring_each_fold_by_hand():
    X, Y = problem("masked")
    scores = cross_val_score(Ridge(reg=0.3), X, Y.as_complete(), cv=4)
    folds = np.array_split(np.arange(60), 4)
    for fold, score in zip(folds, scores, strict=True):
        rest = np.setdiff1d(np.arange(60), fold)
        model = Ridge(reg=0.3).fit(X[rest], Y.as_complete()[rest])
        assert score == model.score(X[fold], Y.as_complete()[fold])


# ---- refusals


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_one_clear_sentence(data, model, bad):
    X, Y = data
    X = X.copy()
    if sp.issparse(X):
        X.data[3] = bad
    else:
        X[3, 1] = bad
    for use in (lambda: model.predict(X), lambda: LEML().fit(X, Y), lambda: model.top_k(X)):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            use()


@pytest.mark.parametrize("estimator", [LEML(), Ridge(), Popularity()])
def test_rows_that_do_not_match_are_one_clear_sentence(data, estimator):
    X, Y = data
    with pytest.raises(ValueError, match=r"X and Y have inconsistent numbers of rows: 60 and 59;"):
        estimator.fit(X, Y[:-1])


def test_features_that_do_not_match_are_one_clear_sentence(data, model):
    with pytest.raises(ValueError, match="X has 14 features, but LEML is expecting 15"):
        model.predict(data[0][:, :-1])


@pytest.mark.parametrize("change", [lambda Y: Y[:-1], lambda Y: Y.to_sparse()[:, :-1]])
def test_completing_labels_of_another_shape_is_one_clear_sentence(data, model, change):
    X, Y = data
    with pytest.raises(ValueError, match=r"Y has shape \(\d+, \d\); .* must be \(60, 8\)"):
        model.complete(X, change(Y))


def test_blocks_bring_their_labels_and_take_no_others(data):
    X, Y = data
    blocks = MemoryBlocks.from_rows(Rows(X, Y))
    with pytest.raises(ValueError, match="Y must be left out when X is Blocks"):
        LEML().fit(blocks, Y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        LEML().fit(X)


def test_blocks_that_disagree_are_one_clear_sentence(data):
    X, Y = data
    parts = (Rows(X[:30], Y[:30]), Rows(X[30:, :-1], Y[30:]))
    with pytest.raises(ValueError, match="the blocks disagree on n_features: 15 and 14"):
        LEML().fit(MemoryBlocks(parts))


def test_no_rows_are_one_clear_sentence(data, model):
    X, Y = data
    empty = lambda: model.complete(X[:0], Y[:0])
    methods = (model.predict, model.top_k, model.decision_function, model.transform)
    for ask in (empty, *((lambda m=m: m(X[:0])) for m in methods)):
        with pytest.raises(ValueError, match="Found array with 0 sample"):
            ask()


@pytest.mark.parametrize("estimator", [LEML(), Ridge(), Popularity()])
def test_nothing_is_predicted_before_a_fit_nor_after_one_that_failed(data, estimator):
    X, Y = data
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    with pytest.raises(ValueError, match="inconsistent"):
        estimator.fit(X, Y[:-1])
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_scores_do_not_depend_on_the_sparse_format(data, model):
    X = sp.csr_array(data[0])
    wanted = model.decision_function(X)
    for other in (X.tocsc(), X.tocoo(), sp.csr_matrix(X), sp.lil_array(X)):
        assert_allclose(model.decision_function(other), wanted, atol=1e-14)
    shuffled = X.copy()
    for i in range(X.shape[0]):  # indices in no order are valid CSR
        row = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.indices[row], shuffled.data[row] = X.indices[row][::-1], X.data[row][::-1]
    shuffled.has_sorted_indices = False
    assert_allclose(model.decision_function(shuffled), wanted, atol=1e-14)
    Y = data[1]
    refit = LEML(rank=3, reg=0.1, max_iter=3, random_state=0).fit(shuffled, Y)
    assert_allclose(refit.decision_function(X), wanted, atol=1e-8)


def test_a_fit_that_does_not_fit_the_device_is_one_clear_sentence(monkeypatch, capsys):
    X, Y = problem("complete")
    monkeypatch.setattr(NumpyBackend, "room", lambda self: 1000)
    with pytest.raises(MemoryError, match=r"LEML: a fit needs about .* free; give a smaller rank"):
        LEML(rank=3).fit(X, Y)
    monkeypatch.setattr(NumpyBackend, "room", lambda self: 2**30)
    LEML(rank=3, random_state=0, verbose=True).fit(X, Y)
    assert "and 1.0 GiB are free" in capsys.readouterr().err


def test_streamed_blocks_need_room_for_one_of_them_only(monkeypatch):
    X, Y = problem("complete")
    data = (X.nnz + Y.positives.nnz) * (16 + 4 * X.dtype.itemsize)
    model = LEML(rank=2, solver="cg", cg_tol=1e-10, cg_max_iter=500, random_state=0, tol=0)
    work = model._working_set(facts(Rows(X, Y))) * X.dtype.itemsize
    monkeypatch.setattr(NumpyBackend, "room", lambda self: int(data + 0.5 * work))
    with pytest.raises(MemoryError, match="for factors and work"):
        model.fit(X, Y)
    monkeypatch.setattr(NumpyBackend, "room", lambda self: int(work + 0.6 * data))
    with pytest.raises(MemoryError, match="StreamedBlocks"):
        model.fit(X, Y)
    streamed = model.fit(StreamedBlocks.from_rows(Rows(X, Y), 2)).decision_function(X)
    monkeypatch.undo()
    assert_allclose(streamed, model.fit(X, Y).decision_function(X), atol=1e-6)


def test_draws_for_many_rows_repeat_some_with_random_signs(monkeypatch):
    X, Y = problem("complete")
    model = LEML(rank=3, random_state=0)
    task = model._problem(*model._rows(X, Y))
    monkeypatch.setattr(tacit.engines.problem, "_DRAWN_ROWS", 40)
    found = task.normal(1000, 5)
    assert found.shape == (1000, 5)
    assert len(np.unique(np.abs(found[:, 0]))) == 40
    assert len(np.unique(found[:, 0])) == 80, "with both signs"
    assert abs(found.mean()) < 0.1
    assert 0.8 < found.std() < 1.2
    assert np.abs(np.corrcoef(found.T) - np.eye(5)).max() < 0.5


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            LEML(rank=2),
            r"LEML .* as complete labels.* a no\. .*, give Labels\.positive_only\(Y\); .*",
        ),
        (
            GenEML(rank=2),
            r"GenEML .* as positive-only labels.* may be true\. .*, give Labels\.complete\(Y\); .*",
        ),
    ],
    ids=["LEML", "GenEML"],
)
def test_how_a_plain_matrix_is_read_is_told_once(toy, model, told):
    X, Y, _ = toy
    placing._tell_reading.cache_clear()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for given in (Y, Y.toarray(), Y):
            model.fit(X, given)
    (only,) = [each for each in heard if "plain" in str(each.message)]
    assert re.fullmatch(told, str(only.message))


def test_labels_and_matrices_that_have_one_reading_are_read_in_silence(toy, masked):
    X, Y, _ = toy
    placing._tell_reading.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LEML(rank=2).fit(X, Labels.complete(Y))
        LEML(rank=2).fit(X, masked[1].to_array())  # NaN says what is unsaid
        Ridge().fit(X, Y)
