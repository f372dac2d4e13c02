"""`tacit bench missing` on small data: the same work for all, and figures that can be checked."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from tacit_bench import work
from tacit_bench.board import Board, Skip
from tacit_bench.boards import missing, real
from tacit_bench.contenders import CONTENDERS
from tacit_bench.work import SETTINGS, prepared

from tacit.baselines import Ridge
from tacit.datasets import Dataset, load, write_npz
from tacit.labels import Labels
from tacit.metrics import precision_at_k


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The name of a data set of 240 + 60 rows and 12 labels that follow from the features."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.4, rng=rng, format="csr", dtype=np.float32)
    Y = X @ rng.standard_normal((20, 12)) > 0.8
    Y_test = Labels.complete(Y[240:])
    write_npz(
        tmp_path / "data" / "toy", X[:240], Labels.complete(Y[:240]), X_test=X[240:], Y_test=Y_test
    )
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    return "toy"


def cell(method, mechanism="positives", rate=0.5):
    return {"data": "toy", "mechanism": mechanism, "rate": rate, "method": method, "seed": 0}


def test_every_contender_has_the_same_budget():
    alone = ("Popularity", "Tacit")  # has nothing to choose; chooses by itself
    tuned = {name: c for name, c in CONTENDERS.items() if name not in alone}
    assert {len(contender.settings) for contender in tuned.values()} == {SETTINGS}


BOARD = Path(__file__).parents[1] / "results" / "missing.jsonl"
CHOSEN = ("Ridge", "LEML", "FaIE", "MPU", "GenEML", "SEM", "NNML", "Elkan08", "CPLST")


@pytest.mark.parametrize("name", CHOSEN)
def test_the_defaults_of_a_method_are_its_best_single_setting_on_the_board(name):
    best = missing.best_single(Board(BOARD).rows())[name]
    defaults = inspect.signature(type(CONTENDERS[name].make()).__init__).parameters
    assert {key: defaults[key].default for key in best} == best


def test_the_best_single_setting_counts_every_cell_alike():
    grid = CONTENDERS["Ridge"].settings
    row = lambda tried: {"cell": {"method": "Ridge"}, "found": {"tried": tried}}
    # The second is best by far where figures are small, the first by little where they are large.
    rows = [row([80.0, 79.0, 1.0, 1.0]), row([2.0, 4.0, 1.0, 1.0])]
    assert missing.best_single([*rows, {"cell": {"method": "Ridge"}, "skipped": ""}]) == {
        "Ridge": grid[1]
    }


def test_the_work_of_a_cell_is_the_same_for_all(toy):
    one, other = prepared(cell("Ridge")), prepared(cell("LEML"))
    assert one.said == other.said
    assert set(one.fitted) | set(one.held) == set(range(240))
    assert_allclose(one.hidden.nnz / load(toy).Y.positives.nnz, 0.5, atol=0.1)
    assert not one.said.positives.multiply(one.hidden).nnz


def test_figures_are_those_of_the_best_setting_fitted_by_hand(toy):
    found = missing.measure(cell("Ridge"))
    work = prepared(cell("Ridge"))
    scores = [
        precision_at_k(
            work.said[work.held],
            Ridge(**each)
            .fit(work.X[work.fitted], work.said[work.fitted].as_complete())
            .decision_function(work.X[work.held]),
            3,
        )
        for each in CONTENDERS["Ridge"].settings
    ]
    assert found["settings"] == CONTENDERS["Ridge"].settings[int(np.argmax(scores))]
    assert_allclose(found["tried"], 100 * np.array(scores), atol=0.005)
    model = Ridge(**found["settings"]).fit(work.X, work.said.as_complete())
    by_hand = precision_at_k(load(toy).Y_test, model.decision_function(work.X_test), (1, 3, 5))
    assert_allclose([found["P@1"], found["P@3"], found["P@5"]], 100 * by_hand, atol=0.005)


def test_recall_counts_hidden_labels_among_twenty_completions(toy):
    # With twelve labels every unsaid one is among the 20 best completions.
    assert missing.measure(cell("Popularity"))["R@20 hidden"] == 100
    assert missing.measure(cell("Popularity", rate=0.0))["R@20 hidden"] is None


def test_masks_are_used_where_a_method_can_and_silence_is_no_elsewhere(toy):
    masked = prepared(cell("LEML", "entries", 0.2)).said
    assert CONTENDERS["LEML"].read(masked).kind == "masked"
    assert CONTENDERS["LEML, silence is no"].read(masked).kind == "complete"
    assert CONTENDERS["Ridge"].read(masked).kind == "complete"
    with pytest.raises(Skip, match="Elkan08 cannot use complete labels"):
        missing.measure(cell("Elkan08", "entries", 0.2))


def test_more_observed_entries_than_fit_are_one_sentence(toy, monkeypatch):
    monkeypatch.setattr(work, "MOST_OBSERVED", 500)  # of 240 x 12
    prepared(cell("LEML", "positives", 0.2))
    with pytest.raises(Skip, match="6e\\+02 observed entries do not fit in memory"):
        prepared(cell("LEML", "entries", 0.2))


def test_a_method_or_data_set_that_is_not_there_is_one_sentence(toy):
    with pytest.raises(ValueError, match="no method 'Rigde' on this board; there are Tacit"):
        missing.cells(methods=["Rigde"])
    with pytest.raises(Skip, match="there is no data set 'bibtex' here"):
        missing.measure(cell("Ridge") | {"data": "bibtex"})


def test_completions_are_scored_on_what_was_added_and_nothing_else(monkeypatch):
    rng = np.random.default_rng(0)
    new = rng.random((50, 8)) < 0.5
    old = new & (rng.random(new.shape) < 0.5)
    old[:, 0] = new[:, 0] = True  # said of all, so never a completion
    data = Dataset(
        "go_human",
        rng.standard_normal((50, 3)).astype(np.float32),
        Labels.complete(old),
        extra={"Y_2022": Labels.complete(new)},
    )
    monkeypatch.setattr(real, "loaded", lambda name: data)
    found = real.measure({"data": "go_human", "method": "Popularity"})
    # All unsaid entries are listed, fewer than 1,000 of them.
    assert_allclose(found["P of first 1,000"], 100 * (new & ~old).sum() / (~old).sum(), atol=0.005)
    assert found["R@20"] == 100


def test_measured_cells_are_held_out_of_the_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)).astype(np.float32)
    Y = X @ rng.standard_normal((5, 6)) > 0
    observed = rng.random(Y.shape) < 0.5
    data = Dataset("tox21", X, Labels.masked(Y & observed, observed))
    monkeypatch.setattr(real, "loaded", lambda name: data)
    found = real.measure({"data": "tox21", "method": "BR, logistic"})
    assert found["AUC"] > 85
    train, test = real._cut(data.Y, seed=0)
    assert not sp.csr_array(train.observed.multiply(test.observed)).nnz
    assert train.observed.nnz + test.observed.nnz == observed.sum()
