"""The laws of paths: held-out risks, warm starts, and what "auto" chooses."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import tacit
from tacit import LEML, Labels
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines import moments
from tacit.estimators.paths import Path, Point
from tacit.methods.leml import path as path_module
from tacit.methods.leml.squared import CompleteSquared

TIGHT = dict(cg_tol=1e-12, cg_max_iter=200, random_state=0)


def labels_of(toy, kind):
    _, Y, observed = toy
    if kind == "masked":
        return Labels.masked(Y * observed, observed)
    return Labels.complete(Y) if kind == "complete" else Labels.positive_only(Y * observed)


def dense_risk(model, X, labels):
    """The mean loss of an observed entry, dense; of positive-only labels what is not on top."""
    y, z = labels.to_sparse().toarray(), model.decision_function(X)
    weight, n_entries = np.ones(y.shape), y.size
    if labels.kind == "masked":
        weight, n_entries = labels.observed.toarray(), labels.observed.nnz
    elif labels.kind == "positive-only":
        return 1 - np.take_along_axis(y, model.top_k(X, 5).indices, 1).sum() / y.sum()
    t = 2 * y - 1
    entries = {
        "squared": 0.5 * (y - z) ** 2,
        "logistic": np.logaddexp(0, -t * z),
        "squared_hinge": 0.5 * np.maximum(0, 1 - t * z) ** 2,
    }[model.loss]
    return (weight * entries).sum() / n_entries


@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_held_out_risks_are_those_of_a_naive_loop(toy, loss, kind, solver, monkeypatch):
    monkeypatch.setattr(path_module, "_FOLD_PASSES", 5)
    monkeypatch.setattr(path_module, "_FOLD_TOL", 0.0)
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(rank=3, reg=0.3, loss=loss, solver=solver, tol=0, max_iter=5, **TIGHT)
    model.set_params(unsaid_weight=0.05)
    (point,) = model.fit_path(X, labels, cv=3).points
    order = np.random.RandomState(0).permutation(40) % 3
    wanted = []
    for fold in range(3):
        rest, held = np.flatnonzero(order != fold), np.flatnonzero(order == fold)
        fitted = LEML(**model.get_params()).fit(X[rest], labels[rest])
        wanted.append(dense_risk(fitted, X[held], labels[held]))
    assert_allclose(point.scores, -np.array(wanted), rtol=1e-6)
    assert_allclose(point.risk, np.mean(wanted), rtol=1e-6)


def test_held_out_risks_of_the_closed_form_are_those_of_a_naive_loop(toy):
    X, labels = toy[0], labels_of(toy, "complete")
    path = LEML(solver="closed_form").fit_path(X, labels, ranks=[2, 4], regs=[0, 0.5], cv=3)
    order = np.random.RandomState(0).permutation(40) % 3
    for point in path.points:
        model = LEML(rank=point.rank, reg=point.reg, solver="closed_form")
        for fold, score in enumerate(point.scores):
            fitted = model.fit(X[order != fold], labels[np.flatnonzero(order != fold)])
            held = np.flatnonzero(order == fold)
            assert_allclose(-score, dense_risk(fitted, X[held], labels[held]), rtol=1e-8)
        assert_allclose(
            point.model.decision_function(X), model.fit(X, labels).decision_function(X), atol=1e-9
        )


def test_squared_loss_on_complete_labels_reads_the_rows_once(toy, monkeypatch):
    """For all folds, ranks and λs together."""
    X, Y, _ = toy
    read, of_a_block = [], moments._moments

    def counted(block, *args):
        read.append(block.Y.shape[0])
        return of_a_block(block, *args)

    monkeypatch.setattr(moments, "_moments", counted)
    LEML(**TIGHT).fit_path(X, Y, ranks=[2, 4], regs=[0.1, 1.0, 10.0], cv=5)
    assert sum(read) == 40


def test_a_path_starts_once_for_each_rank_whatever_the_number_of_regs(toy, monkeypatch):
    X, Y, _ = toy
    begun, start = [], CompleteSquared.start
    counted = lambda self, rank, reg: begun.append((rank, reg)) or start(self, rank, reg)
    monkeypatch.setattr(CompleteSquared, "start", counted)
    LEML(random_state=0).fit_path(X, Y, ranks=[2, 4], regs=[1.0, 0.1, 10.0], cv=None)
    assert begun == [(2, 0.1), (4, 0.1)]


@pytest.mark.parametrize("kind", ["complete", "masked"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_a_path_ends_where_cold_fits_end(toy, loss, kind):
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(loss=loss, tol=1e-5, max_iter=80, random_state=0, cg_tol=1e-4)
    path = model.fit_path(X, labels, ranks=[2, 4], regs=[2.0, 0.5, 1.0], cv=None)
    assert [(p.rank, p.reg) for p in path.points] == [
        (rank, reg) for rank in (2, 4) for reg in (0.5, 1.0, 2.0)
    ]
    for point in path.points:
        cold = LEML(**{**model.get_params(), "rank": point.rank, "reg": point.reg}).fit(X, labels)
        factors = point.model.model_
        penalty = 0.5 * point.reg * ((factors.W**2).sum() + (factors.H**2).sum())
        n_entries = 360 if kind == "complete" else labels.observed.nnz
        ours = n_entries * dense_risk(point.model, X, labels) + penalty
        assert_allclose(ours, cold.history_[-1], rtol=1e-3)


@pytest.mark.parametrize(
    "auto", [("rank",), ("reg",), ("rank", "reg")], ids=["rank", "reg", "rank and reg"]
)
@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
def test_auto_is_the_best_of_the_path_and_a_fit_there(toy, kind, auto, monkeypatch):
    monkeypatch.setattr(tacit.methods.leml, "RANKS", (2, 4))
    monkeypatch.setattr(tacit.methods.leml, "REGS", (0.05, 0.5, 50.0))
    X, labels = toy[0], labels_of(toy, kind)
    model = LEML(**({"rank": 3, "reg": 0.3} | dict.fromkeys(auto, "auto")), random_state=0)
    best = model.fit_path(X, labels).best
    model.fit(X, labels)
    assert (model.rank_, model.reg_) == (best.rank, best.reg)
    assert best.rank in ((2, 4) if "rank" in auto else (3,))
    assert best.reg in ((0.05, 0.5, 50.0) if "reg" in auto else (0.3,))
    again = LEML(rank=best.rank, reg=best.reg, random_state=0).fit(X, labels)
    assert_array_equal(model.decision_function(X), again.decision_function(X))
    assert model.history_ == again.history_
    assert [getattr(model, name) for name in auto] == ["auto"] * len(auto)


def test_the_best_point_has_the_least_risk_and_of_two_alike_is_the_first():
    point = lambda rank, *risks: Point({"rank": rank}, tuple(-r for r in risks), None)
    assert Path((point(2, 2.0, 3.0), point(4, 2.0, 2.0), point(8, 3.0, 1.0))).best.rank == 4


def test_without_folds_there_is_no_best(toy):
    X, Y, _ = toy
    path = LEML(rank=3).fit_path(X, Y, cv=None)
    assert path.points[0].scores == ()
    assert math.isnan(path.points[0].risk)
    with pytest.raises(ValueError, match="best needs held-out rows; call fit_path with cv=5"):
        _ = path.best


def test_ranks_beyond_the_smaller_side_are_cut_and_not_fitted_twice(toy):
    X, Y, _ = toy
    path = LEML().fit_path(X, Y, ranks=[50, 3, 100, 9, 3], cv=None)
    assert [point.rank for point in path.points] == [3, 9]
    assert path.points[1].model.transform(X).shape == (40, 9)


def test_a_path_leaves_the_estimator_as_it_was(toy):
    X, Y, _ = toy
    model = LEML(rank="auto", reg=0.3, random_state=0)
    params = dict(model.get_params())
    best = model.fit_path(X, Y, ranks=[2, 3], cv=3).best
    assert model.get_params() == params
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert best.model.get_params() == {**params, "rank": best.rank}
    assert (best.model.rank_, best.model.reg_) == (best.rank, best.reg)


@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
def test_what_was_chosen_is_saved_and_completes_alike(toy, kind, tmp_path):
    X, labels = toy[0], labels_of(toy, kind)
    for model in (
        LEML(rank=3, reg="auto", random_state=0).fit(X, labels),
        LEML(rank=3, random_state=0).fit_path(X, labels, regs=[0.1, 2.0], cv=2).best.model,
    ):
        model.save(tmp_path / "model")
        loaded = tacit.load(tmp_path / "model")
        assert loaded.get_params() == model.get_params()
        assert (loaded.rank_, loaded.reg_) == (model.rank_, model.reg_)
        assert type(loaded.rank_) is int
        for found, wanted in zip(loaded.complete(X, labels), model.complete(X, labels)):
            assert_array_equal(found, wanted)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kind", ["complete", "masked", "positive-only"])
def test_a_block_of_fewer_rows_than_folds_does_no_harm(toy, kind, loss):
    rows = Rows(toy[0], labels_of(toy, kind))
    blocks = MemoryBlocks((rows[np.arange(38)], rows[np.arange(38, 40)]))
    path = LEML(rank=3, loss=loss, random_state=0).fit_path(blocks, cv=5)
    assert len(path.points[0].scores) == 5
    assert np.isfinite(path.points[0].scores).all()


def test_a_fold_without_an_observed_entry_is_one_clear_sentence(toy):
    A = np.full((40, 9), np.nan)
    A[:3] = 1.0
    with pytest.raises(ValueError, match="cv=5 folds has no observed entry; use fewer folds"):
        LEML(rank=3).fit_path(toy[0], Labels.from_array(A), cv=5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(cv=1), "cv must be None or an int of at least 2; got 1"),
        (dict(cv="5"), "cv must be None or an int of at least 2; got '5'"),
        (dict(cv=41), "cv=41 folds need as many rows; got 40"),
        (dict(ranks=[]), "ranks must hold at least one value; got none"),
        (dict(regs=[]), "regs must hold at least one value; got none"),
        (dict(ranks=[3, 0]), "rank must be an int of at least 1, .*; got 0"),
        (dict(regs=[1.0, -1.0]), "reg must be a finite number of at least 0, .*; got -1.0"),
        (
            dict(regs=[0, 1]),
            r'reg must be above 0 \(or "auto"\) unless solver="closed_form"; got 0',
        ),
        (dict(regs=3.0), "regs must be a sequence of values; got 3.0"),
    ],
)
def test_a_bad_grid_is_one_clear_sentence(toy, params, message):
    X, Y, _ = toy
    with pytest.raises(ValueError, match=message):
        LEML(rank=3).fit_path(X, Y, **params)
