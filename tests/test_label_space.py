"""The laws of label space reduction: codes, the regression to them, decoding, and paths."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, jaccard_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit
from tacit import FaIE, Labels
from tacit.baselines import LabelSpaceReduction
from tacit.basics.files import read_arrays, write_arrays
from tacit.codecs import BMaD, CodecData
from tacit.engines import moments
from tacit.estimators import MultiLabelEstimator
from tacit.label_space import path as path_module

CODECS = ["plst", "cplst", "cs", "cssp", "bmad", "rembed"]
NESTED = [
    FaIE(3, alpha=2.0, reg=0.3),
    FaIE(3, alpha=2.0, variant="linear", reg=0.3),
    FaIE(3, variant="p-linear", reg=0.3),
    LabelSpaceReduction("plst", 3, reg=0.3),
    LabelSpaceReduction("cplst", 3, reg=0.3),
]


def name(model):
    return getattr(model, "variant", None) or model.codec


@pytest.fixture
def dense(toy):
    X, Y, _ = toy
    return X.toarray(), Y.toarray()


def reduction(codec, rank=3, **params):
    return LabelSpaceReduction(codec, rank, **(dict(reg=0.3, random_state=0) | params))


def learnt(model, X, Y):
    """The code that `fit` learns, and the codes of the rows."""
    problem = model._problem(*model._rows(X, Y))
    rows = CodecData.of(problem, model.fit_intercept)
    code = model._codec.learn(rows, model.rank, model.reg)
    return code, np.concatenate(problem.blocks.sum(encoded, code))


def encoded(block, code):
    return [block.backend.to_numpy(code.encode(block))]


# ---- codes, ridge and decoding


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("codec", ["plst", "cplst", "cssp", "rembed"])
def test_scores_are_ridge_regressions_to_the_codes_and_back(device, dense, codec, centred):
    """With scikit-learn's ridge; the constant feature of "rembed" is one like the others."""
    X, Y = dense
    model = reduction(codec, normalize=None, fit_intercept=centred, device=device).fit(X, Y)
    code, C = learnt(reduction(codec, normalize=None, fit_intercept=centred), X, Y)
    means = np.zeros(9)
    if codec == "rembed" and centred:
        X = np.hstack([X, np.ones((40, 1))])
    elif centred:
        means = Y.mean(0)
    ridge = linear_model.Ridge(alpha=0.3, fit_intercept=centred and codec != "rembed").fit(X, C)
    wanted = ridge.predict(X) @ code.H.T + means
    assert_allclose(model.decision_function(dense[0]), wanted, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 3, 9])
def test_cplst_is_the_eigenproblem_of_its_paper(device, dense, rank):
    """V_k of Ỹᵀ Δ Ỹ, with Δ n × n; at full rank nothing is lost, and it is ridge."""
    X, Y = dense
    A, B = X - X.mean(0), Y - Y.mean(0)
    hat = A @ np.linalg.solve(A.T @ A + 0.3 * np.eye(12), A.T)
    V = np.linalg.eigh(B.T @ hat @ B)[1][:, ::-1][:, :rank]
    model = reduction("cplst", rank, normalize=None, device=device).fit(X, Y)
    assert_allclose(model.decision_function(X), Y.mean(0) + hat @ B @ V @ V.T, atol=1e-9)
    ridge = linear_model.Ridge(alpha=0.3).fit(X, Y).predict(X)
    assert np.allclose(model.decision_function(X), ridge, atol=1e-9) == (rank == 9)


@pytest.mark.parametrize("codec", ["plst", "cplst", "cssp", "rembed"])
def test_transform_gives_what_scores_are_linear_in(toy, codec):
    X, Y, _ = toy
    model = reduction(codec).fit(X, Y)
    wanted = model.transform(X) @ model.model_.H.T
    assert_allclose(model.decision_function(X), wanted, atol=1e-12)


@pytest.mark.parametrize("codec", CODECS)
def test_degenerate_data_give_finite_scores(dense, codec):
    X, Y = dense
    for some_X, some_Y in [
        (X, Y[:, :1]),
        (X, 0 * Y),
        (X[:, :1], Y),
        (X[:4], Y[:4]),
        (X[:1], Y[:1]),
        (0 * X, Y),
        (0 * X + 2, Y),
    ]:
        for rank in (1, 1000):
            model = reduction(codec, rank, normalize=None).fit(some_X, some_Y)
            assert np.isfinite(model.decision_function(some_X)).all()


@pytest.mark.parametrize("predictor", [None, KNeighborsRegressor(3)])
@pytest.mark.parametrize("codec", ["cs", "bmad"])
def test_an_index_is_refused_where_scores_are_no_inner_products(toy, codec, predictor):
    model = reduction(codec, predictor=predictor).fit(*toy[:2])
    message = "LabelSpaceReduction has no label factors to index: .* no inner products"
    with pytest.raises(ValueError, match=message):
        model.build_index()


@pytest.mark.parametrize("kind", ["masked", "positive-only"])
def test_labels_that_are_not_complete_are_refused_with_the_methods_that_can_use_them(toy, kind):
    X, Y, observed = toy
    masked = kind == "masked"
    labels = Labels.masked(Y * observed, observed) if masked else Labels.positive_only(Y)
    wanted = f"LabelSpaceReduction cannot use {kind} labels, only complete; .*GenEML and LEML.* can"
    with pytest.raises(ValueError, match=wanted):
        LabelSpaceReduction().fit(X, labels)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(codec="faie"), "codec must be one of 'plst', .*'rembed'; got 'faie'"),
        (dict(rank=0), "rank must be an int of at least 1; got 0"),
        (dict(sparsity=0), "sparsity must be an int of at least 1; got 0"),
        (dict(decoder="lasso"), "decoder must be one of 'omp', 'cosamp'; got 'lasso'"),
        (dict(tau=0.0), "tau must be .*; got 0.0"),
        (dict(tau=1.5), "tau must be .* at most 1; got 1.5"),
        (dict(reg=0.0), "reg must be a finite number above 0; got 0.0"),
        (
            dict(predictor=LogisticRegression()),
            r"predictor must be None or a scikit-learn regressor; got LogisticRegression\(\)",
        ),
        (
            dict(predictor=make_pipeline(StandardScaler(), LogisticRegression())),
            "predictor must be None or a scikit-learn regressor; got Pipeline",
        ),
        (dict(predictor="ridge"), "predictor must be None or a scikit-learn reg.*; got 'ridge'"),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(toy, params, message):
    with pytest.raises(ValueError, match=f"LabelSpaceReduction: {message}"):
        LabelSpaceReduction(**params).fit(*toy[:2])


# ---- the models


def test_the_two_estimators_are_siblings():
    assert FaIE.__bases__ == LabelSpaceReduction.__bases__ == (MultiLabelEstimator,)


@pytest.mark.parametrize("predictor", [None, KNeighborsRegressor(3)])
@pytest.mark.parametrize(
    ("codec", "change"),
    [("cs", dict(sparsity=1)), ("cs", dict(decoder="cosamp")), ("cs", dict(codec="plst")),
     ("bmad", dict(codec="cs"))],
)  # fmt: skip
def test_a_model_decodes_as_it_was_fitted_whatever_becomes_of_the_parameters(
    toy, codec, change, predictor
):
    X, Y, _ = toy
    model = reduction(codec, 6, predictor=predictor).fit(X, Y)
    wanted = model.decision_function(X)
    assert_array_equal(model.set_params(**change).decision_function(X), wanted)
    assert (model.fit(X, Y).decision_function(X) != wanted).any()


@pairwise(
    dtype=[np.float32, np.float64],
    predictor=[None, RandomForestRegressor(2, random_state=0)],
    codec=CODECS,
)
def test_scores_and_codes_keep_the_float_type(device, dense, codec, predictor, dtype):
    X, Y = dense[0].astype(dtype), dense[1]
    model = reduction(codec, predictor=predictor, device=device).fit(X, Y)
    assert model.decision_function(X).dtype == model.transform(X).dtype == dtype
    assert model.model_.dtype == dtype


def without(**values):
    return lambda header, arrays: [header["model"].pop(name) for name in values]


def sets(**values):
    return lambda header, arrays: header["model"].update(values)


def array(name, change):
    return lambda header, arrays: arrays.update({name: change(arrays[name])})


DAMAGED = {
    "no codec": without(codec=...),
    "no sparsity": without(sparsity=...),
    "no H": lambda header, arrays: arrays.pop("H"),
    "no W": lambda header, arrays: arrays.pop("W"),
    "another codec": sets(codec="plst"),
    "a list of codecs": sets(codec=["cs"]),
    "the settings of another": sets(codec="bmad"),
    "one setting more": sets(tau=0.5),
    "no label a row": sets(sparsity=0),
    "sparsity as text": sets(sparsity="5"),
    "sparsity true": sets(sparsity=True),
    "a decoder of nobody": sets(decoder="lasso"),
    "a decoder that is a list": sets(decoder=["omp"]),
    "a regressor": sets(kind="OwnRegressor"),
    "H of other labels": array("H", lambda H: np.vstack([H, H])),
    "H of other codes": array("H", lambda H: H[:, :-1]),
    "H of integers": array("H", lambda H: H.astype(np.int64)),
    "W of other features": array("W", lambda W: W[:-1]),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_file_whose_codec_is_damaged_is_refused(toy, damage, tmp_path):
    path = tmp_path / "model.tacit"
    reduction("cs").fit(*toy[:2]).save(path)
    header, arrays = read_arrays(path)
    damage(header, arrays)
    write_arrays(path, header, arrays)
    with pytest.raises(ValueError, match=r"a model of this tacit \(ValueError: it"):
        tacit.load(path)


def test_a_share_of_groups_that_cannot_be_is_refused_in_a_file_too(toy, tmp_path):
    path = tmp_path / "model.tacit"
    reduction("bmad", tau=0.7).fit(*toy[:2]).save(path)
    assert tacit.load(path).model_.codec == BMaD(0.7)
    header, arrays = read_arrays(path)
    for tau in (0, 1.5, None, "0.5"):
        write_arrays(path, header | {"model": header["model"] | {"tau": tau}}, arrays)
        with pytest.raises(ValueError, match=rf"its tau is {tau!r}"):
            tacit.load(path)


# ---- regressors of scikit-learn


@pairwise(sparse=[True, False], centred=[True, False], model=NESTED)
def test_scikit_learns_ridge_is_the_ridge_here(device, toy, model, centred, sparse):
    X, Y, _ = toy
    X = X if sparse else X.toarray()
    params = model.get_params() | dict(fit_intercept=centred, device=device)
    solver = "sparse_cg" if sparse and centred else "auto"
    ridge = linear_model.Ridge(alpha=0.3, fit_intercept=centred, solver=solver, tol=1e-12)
    ours, theirs = (
        type(model)(**params | dict(predictor=predictor)).fit(X, Y) for predictor in (None, ridge)
    )
    assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-7)
    assert_allclose(theirs.transform(X), ours.transform(X), atol=1e-7)
    assert_array_equal(theirs.top_k(X, 3).indices, ours.top_k(X, 3).indices)
    assert not hasattr(ridge, "coef_"), "it was fitted, not a clone of it"


REGRESSORS = [
    KernelRidge(kernel="rbf", alpha=0.1, gamma=0.5),
    KNeighborsRegressor(3),
    make_pipeline(StandardScaler(with_mean=False), linear_model.Ridge(alpha=0.1)),
]


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("predictor", REGRESSORS, ids=lambda model: type(model).__name__)
def test_any_regressor_predicts_the_codes_that_are_decoded(toy, codec, predictor, rank):
    X, Y, _ = toy
    model = reduction(codec, rank, predictor=predictor, normalize=None).fit(X, Y)
    code, C = learnt(reduction(codec, rank, normalize=None), X, Y)
    predicted = predictor.fit(X, C).predict(X).reshape(40, -1)
    if hasattr(model._codec, "decode"):
        wanted = model._codec.decode(predicted, code.H)
    else:
        wanted = predicted @ code.H.T + (0 if codec == "rembed" else Y.toarray().mean(0))
    assert_allclose(model.decision_function(X), wanted, atol=1e-9)


def test_the_rows_of_all_blocks_reach_the_regressor_in_order(toy, blocks_of):
    X, Y, _ = toy
    model = FaIE(3, reg=0.3, predictor=KNeighborsRegressor(3))
    wanted = model.fit(X, Y).decision_function(X)
    blocks = blocks_of(X, Labels.complete(Y), "three blocks")
    assert_allclose(model.fit(blocks).decision_function(X), wanted, atol=1e-9)


def test_one_code_is_one_target(toy):
    X, Y, _ = toy  # a forest warns of a column
    forest = RandomForestRegressor(2, random_state=0)
    model = LabelSpaceReduction("plst", 1, predictor=forest).fit(X, Y)
    assert model.transform(X).shape == (40, 2)


@pytest.mark.parametrize("centred", [True, False])
def test_the_fitted_regressor_stands_in_the_place_of_the_weights(toy, centred):
    X, Y, _ = toy
    model = FaIE(3, fit_intercept=centred)
    assert not hasattr(model, "predictor_")
    assert model.fit(X, Y).predictor_ is None
    assert model.model_.W.shape == (12 + centred, 3 + centred)
    model.set_params(predictor=KNeighborsRegressor(3)).fit(X, Y)
    assert model.predictor_.n_features_in_ == 12
    assert model.predictor_ is not model.predictor
    assert model.model_.W.shape == (0, 3 + centred)
    assert model.set_params(predictor=None).fit(X, Y).predictor_ is None


def test_an_index_searches_the_codes_that_a_regressor_predicts(toy):
    pytest.importorskip("faiss")
    X, Y, _ = toy
    model = FaIE(3, predictor=KNeighborsRegressor(3)).fit(X, Y)
    found = model.top_k(X, 3, index=model.build_index())
    assert_allclose(found.scores, model.top_k(X, 3).scores, atol=1e-12)


@pytest.mark.parametrize("save", [lambda model, path: model.save(path), tacit.save])
def test_a_model_with_a_regressor_is_not_saved_and_leaves_no_file(toy, tmp_path, save):
    model = FaIE(3, predictor=KernelRidge()).fit(*toy[:2])
    with pytest.raises(ValueError, match=r"regressor of your own \(KernelRidge\) cannot be saved"):
        save(model, tmp_path / "model.tacit")
    assert list(tmp_path.iterdir()) == []


# ---- paths


def grid_of(model):
    grid = dict(ranks=[4, 1, 100], regs=[0.1, 2.0])
    return grid | dict(alphas=[0.5, 20.0]) if isinstance(model, FaIE) else grid


@pairwise(cv=[None, 3], centred=[True, False], model=NESTED)
def test_every_point_of_a_path_is_a_fit_of_its_own(device, toy, model, centred, cv):
    """100 codes are more than there can be; the estimator itself stays as it was."""
    X, Y, _ = toy
    params = model.get_params() | dict(fit_intercept=centred, device=device)
    model = type(model)(**params)
    path = model.fit_path(X, Y, cv=cv, **grid_of(model))
    assert len(path.points) == (12 if isinstance(model, FaIE) else 6)
    for point in path.points:
        alone = type(model)(**params | point.params).fit(X, Y)
        assert point.model.get_params() == alone.get_params()
        assert_allclose(point.model.decision_function(X), alone.decision_function(X), atol=1e-7)
        assert len(point.scores) == (cv or 0)
    assert model.get_params() == params
    assert not hasattr(model, "model_")


def test_a_path_without_grids_is_the_estimators_own_values(toy):
    X, Y, _ = toy
    (point,) = FaIE(2, alpha=0.7, reg=0.3).fit_path(X, Y).points
    assert point.params == {"alpha": 0.7, "reg": 0.3, "rank": 2}
    assert np.isnan(point.score)


def measured(measure, model, X, Y):
    said, Y = model.predict(X).toarray(), Y.toarray()
    if measure == "macro_f1":
        return f1_score(Y, said, average="macro", zero_division=0)
    if measure == "accuracy":
        return jaccard_score(Y, said, average="samples", zero_division=1)
    return -((model.decision_function(X) - Y) ** 2).sum(axis=1).mean()


def test_a_path_says_yes_where_predict_does_even_at_a_threshold_no_probability_passes(toy):
    X, Y, _ = toy
    path = FaIE(3, reg=0.001, threshold=1.0, normalize=None).fit_path(X, Y, cv=3)
    assert path.points[0].scores == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("measure", ["macro_f1", "accuracy", "squared"])
@pytest.mark.parametrize("model", NESTED, ids=name)
def test_held_out_scores_are_those_of_a_naive_loop(device, toy, model, measure):
    """To single precision, in which folds are judged; some rows and a label say nothing."""
    X, Y, _ = toy
    Y = sp.csr_array(Y * np.outer(np.arange(40) % 3 > 0, np.arange(9) != 4))
    model = type(model)(**model.get_params() | dict(threshold=0.4, normalize="l2", device=device))
    path = model.fit_path(X, Y, cv=3, measure=measure, **grid_of(model))
    fold_of = np.random.RandomState(0).permutation(40) % 3
    for point in path.points:
        wanted = []
        for fold in range(3):
            alone = type(model)(**point.model.get_params()).fit(
                X[fold_of != fold], Y[fold_of != fold]
            )
            wanted.append(measured(measure, alone, X[fold_of == fold], Y[fold_of == fold]))
        assert_allclose(point.scores, wanted, rtol=1e-5)
        assert_allclose(point.score, np.mean(wanted), rtol=1e-5)
    assert path.best.score == max(point.score for point in path.points)
    assert len({point.score for point in path.points}) > 1


@pytest.mark.parametrize("model", NESTED, ids=name)
def test_precision_on_a_path_is_that_of_the_three_best_labels(device, model):
    """Of labels that differ: those that are said of the same rows tie, and share a place."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 8)), rng.random((60, 9)) < np.linspace(0.2, 0.6, 9)
    model = type(model)(**model.get_params() | dict(normalize="l2", device=device))
    fold_of = np.random.RandomState(0).permutation(60) % 2
    for point in model.fit_path(X, Y, cv=2, measure="precision", **grid_of(model)).points:
        for fold, score in enumerate(point.scores):
            held, rest = fold_of == fold, fold_of != fold
            alone = type(model)(**point.model.get_params()).fit(X[rest], Y[rest])
            best = alone.top_k(X[held], 3).indices
            assert_allclose(score, np.take_along_axis(Y[held], best, 1).mean())


def test_every_block_is_dealt_into_folds_by_itself(toy, blocks_of):
    X, Y, _ = toy
    blocks = blocks_of(X, Labels.complete(Y), "three blocks")
    (point,) = FaIE(3, reg=0.3).fit_path(blocks, cv=3, measure="squared").points
    fold_of = np.concatenate([np.random.RandomState(0).permutation(n) % 3 for n in (13, 13, 14)])
    for fold, score in enumerate(point.scores):
        alone = FaIE(3, reg=0.3).fit(X[fold_of != fold], Y[fold_of != fold])
        wanted = measured("squared", alone, X[fold_of == fold], Y[fold_of == fold])
        assert_allclose(score, wanted, rtol=1e-5)


def test_rows_tallied_some_at_a_time_do_not_change_the_scores(toy, monkeypatch):
    X, Y, _ = toy
    scores = lambda: FaIE(3).fit_path(X, Y, cv=3, measure="accuracy").points[0].scores
    whole = scores()
    monkeypatch.setattr(path_module, "_CELLS", 4 * 9)  # four rows at a time
    assert_allclose(scores(), whole, rtol=1e-12)


@pytest.mark.parametrize(("cv", "times"), [(None, 1), (4, 4)])
def test_the_moments_of_the_rows_are_summed_once_whatever_the_grid(toy, cv, times, monkeypatch):
    X, Y, _ = toy
    read, of_a_block = [], moments._moments

    def counted(block, *args):
        read.append(block.Y.shape[0])
        return of_a_block(block, *args)

    monkeypatch.setattr(moments, "_moments", counted)
    path = FaIE().fit_path(X, Y, ranks=[2, 4], alphas=[1, 10, 100], regs=[0.1, 1.0], cv=cv)
    assert all(point.model.n_features_in_ == 12 for point in path.points)
    assert len(read) == times
    assert sum(read) == 40


@pytest.mark.parametrize("cv", [None, 3])
def test_a_path_decomposes_the_features_once_for_each_set_of_rows(toy, cv, monkeypatch):
    """Not once for each α, λ and rank: one fit of all rows, and one without each fold."""
    X, Y, _ = toy
    eigh, sizes = np.linalg.eigh, []

    def counted(A, *args, **kwargs):
        sizes.append(len(A))
        return eigh(A, *args, **kwargs)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    path = FaIE().fit_path(X, Y, ranks=[2, 4], alphas=[1, 10], regs=[0.1, 1.0], cv=cv)
    assert sizes.count(12) == (cv or 0)
    assert len({id(point.model) for point in path.points}) == 8
    assert path.points[0].model is path.points[0].model
    assert sizes.count(12) == 1 + (cv or 0)


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (FaIE(), dict(cv=1), "cv must be None or an int of at least 2; got 1"),
        (FaIE(), dict(cv=41), "cv=41 folds need as many rows; got 40"),
        (FaIE(), dict(cv="5"), "cv must be None or an int of at least 2; got '5'"),
        (FaIE(), dict(measure="f1"), "measure must be one of .*'accuracy', .*; got 'f1'"),
        (FaIE(), dict(ranks=[]), "ranks must hold at least one value; got none"),
        (FaIE(), dict(alphas=[]), "alphas must hold at least one value; got none"),
        (FaIE(), dict(regs=()), "regs must hold at least one value; got none"),
        (FaIE(), dict(ranks=3), "ranks must be a sequence of values; got 3"),
        (FaIE(), dict(ranks=[2, 0]), "FaIE: rank must be an int of at least 1; got 0"),
        (FaIE(), dict(regs=[-1.0]), "FaIE: reg must be a finite number above 0; got -1.0"),
        (
            FaIE(),
            dict(alphas=["a"]),
            "FaIE: alpha must be a finite number of at least 0, or .*; got 'a'",
        ),
        (FaIE(0), dict(ranks=[2]), "FaIE: rank must be an int of at least 1; got 0"),
        (reduction("faie"), {}, "codec must be one of 'plst', .*; got 'faie'"),
        *(
            (LabelSpaceReduction(codec), {}, f"prefixes of each other; .*'{codec}'.* has not both")
            for codec in ("cs", "cssp", "bmad", "rembed")
        ),
        (FaIE(predictor=KernelRidge()), {}, "fit_path needs ridge .*KernelRidge.* has not both"),
    ],
)
def test_a_path_that_cannot_be_is_refused_in_one_clear_sentence(toy, model, params, message):
    with pytest.raises(ValueError, match=message):
        model.fit_path(*toy[:2], **params)


@pytest.mark.parametrize("cv", [None, 3])
def test_grams_too_large_to_lay_out_are_refused_by_fits_and_paths_alike(toy, cv, monkeypatch):
    monkeypatch.setattr("tacit.labels.DENSE_LIMIT", 80)
    message = "the YᵀY of this codec would lay out 9 × 9 .*rembed"
    X, Y = toy[0][:, :5], toy[1]
    with pytest.raises(ValueError, match=message):
        FaIE().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        FaIE().fit_path(X, Y, cv=cv)


def test_best_needs_folds(toy):
    with pytest.raises(ValueError, match="best needs held-out rows; call fit_path with cv=5"):
        FaIE().fit_path(*toy[:2]).best  # noqa: B018
