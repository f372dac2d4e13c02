"""The papers' tables: what they ask for, what is found, and what was published beside it."""

import io
import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tacit_bench.board import Board, Skip
from tacit_bench.boards import papers
from tacit_bench.boards.papers import compare, sem, splits, tables, timing
from tacit_bench.boards.papers.protocol import Answer, Method, Metric, Protocol
from tacit_bench.boards.papers.ranks import Ranks, along_path, held_out
from tacit_bench.boards.papers.splits import Split

from tacit.baselines import LabelSpaceReduction, Ridge
from tacit.datasets import store
from tacit.datasets.npz import write_npz
from tacit.features.kernel_features import KernelFeatures
from tacit.labels import Labels
from tacit.metrics import macro_f1, precision_at_k

ELSEWHERE = {  # data sets of the papers that we do not have
    *("autofood", "compphys", "eurlex", "nus-wide", "wiki", "ESPGame", "RCV1 large"),
    *("Eurlex-4K", "Movielens", "RCV", "RCV-2K", "Wiki10-31K", "Wikipedia"),
    *("MSRC", "SUN", "Eurlex-Sub", "EurLex-sub", "Eurlex-des", "Wiki10K"),
}
NO_METHOD = {"WSABIE", "BCS", "BR (L-SVM)", "FastXML", "PD-Sparse", "PfasterXML", "BMLPL", "SLEEC"}


def rows_and_labels(n, seed=0, n_labels=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    Y = X @ np.random.default_rng(1).standard_normal((5, n_labels)) > 0.5
    return X, Labels.complete(Y.astype(int))


def toy_split(cell):
    for seed in range(3):
        X, Y = rows_and_labels(60, seed)
        yield Split(X[:40], Y[:40], X[40:], Y[40:], seed)


TOY = Protocol(
    "Toy",
    "7",
    data={"Planted!": "planted"},
    split=toy_split,
    methods={"Ridge": Method(lambda cell, split: Ridge(reg=cell["reg"], normalize=None))},
    metrics={"P@1 (%)": Metric(lambda t, a: precision_at_k(t.Y_test, a.scores, 1), 1.0)},
    settings=({"reg": 0.1}, {"reg": 10.0}),
    quick={"settings": ({"reg": 0.1},), "trials": 1},
)


def toy_row(value, method="Ridge", data="Planted!", setting=None):
    setting = {"reg": 0.1} if setting is None else setting
    names = {"paper": "Toy", "table": "7", "data": data, "method": method}
    return names | {"setting": setting, "values": {"P@1 (%)": value}}


def precision_by_ridge(trials, reg):
    """P@1 in %, by normal equations with a penalised constant and a loop over rows."""
    found = []
    for X, Y, X_test, Y_test, _ in trials:
        A, B = (np.column_stack([Z, np.ones(len(Z))]) for Z in (X, X_test))
        W = np.linalg.solve(A.T @ A + reg * np.eye(6), A.T @ Y.positives.toarray())
        true = Y_test.positives.toarray()
        found.append(np.mean([row[score.argmax()] for row, score in zip(true, B @ W)]))
    return round(100 * float(np.mean(found)), 2)


# What is asked


def test_every_published_figure_has_exactly_one_cell_or_a_reason():
    asked = Counter()
    for protocol in papers.PROTOCOLS:
        names = {ours: name for name, ours in protocol.data.items()}
        for cell in protocol.cells():
            inside = protocol.settings if protocol.path else ({},)
            for setting in inside:
                at = {k: v for k, v in cell.items() if k in ("k_over_L", "n_train")} | setting
                at |= {k: cell[k] for k in ("observed_fraction", "n", "rate") if k in cell}
                for metric in protocol.metrics:
                    key = (names[cell["data"]], cell["method"], tuple(sorted(at.items())), metric)
                    asked[protocol.paper, protocol.table, *key] += 1
    total = 0
    for row in compare.published():
        for metric in row["values"]:
            key = (row["data"], row["method"], tuple(sorted(row["setting"].items())), metric)
            why = compare.reason(row, metric, papers.PROTOCOLS)
            assert asked[row["paper"], row["table"], *key] == (why is None), (row, metric)
            assert (why == "no data") == (row["data"] in ELSEWHERE), row
            if row["data"] not in ELSEWHERE:
                assert (why == "no method") == (row["method"] in NO_METHOD and why != "not run")
            assert why != "not run" or (row["paper"], row["table"]) == ("FaIE", "6")
            total += 1
    assert total == 1183


def test_no_cell_is_asked_twice_and_each_belongs_to_one_protocol():
    cells = papers.cells() + papers.cells(quick=True)
    assert len({str(sorted(cell.items(), key=str)) for cell in cells}) == len(cells)
    for cell in cells:
        assert sum(cell in protocol for protocol in papers.PROTOCOLS) == 1


def test_quick_cells_are_some_of_all_and_say_so():
    whole = papers.cells()
    quick = papers.cells(quick=True)
    assert {cell["paper"] for cell in quick} == {cell["paper"] for cell in whole}
    for cell in quick:
        assert cell["quick"] is True
        assert {name: cell[name] for name in cell if name != "quick"} in whole
    assert not any("quick" in cell for cell in whole)
    topics = papers.cells("MPU", "figure 5", quick=True)  # the longest of all
    assert {cell["data"] for cell in topics} == {"rcv1sub1"}
    assert "M3L-RBF" not in {cell["method"] for cell in topics}


def test_cells_of_a_paper_and_a_table_are_those_alone():
    found = papers.cells("LEML", "2")
    assert found == [c for c in papers.cells() if (c["paper"], c["table"]) == ("LEML", "2")]
    assert len(found) == 2 * 3 * 3


def test_an_unknown_paper_or_table_names_those_that_there_are():
    with pytest.raises(ValueError, match=r"paper must be one of LEML, FaIE, .*; got 'LMEL'"):
        papers.cells("LMEL")
    with pytest.raises(ValueError, match="table of MPU must be one of 2, figure 5; got '5'"):
        papers.cells("MPU", "5")
    with pytest.raises(ValueError, match="cell must be one of those that cells"):
        papers.measure({"paper": "MPU", "table": "5", "data": "rcv1sub1", "method": "MPU"})


# What is found


def test_a_toy_table_through_the_board_is_what_ridge_by_hand_finds(tmp_path):
    board = Board(tmp_path / "toy.jsonl")
    rows = board.fill(TOY.cells(), TOY.measure, show=False)
    for row, reg in zip(rows, (0.1, 10.0), strict=True):
        assert row["cell"]["reg"] == reg
        assert row["found"]["P@1 (%)"] == precision_by_ridge(toy_split({}), reg)
        assert row["found"]["trials"] == 3
        assert "Ridge(" in row["found"]["model"]
    [quick] = board.fill(TOY.cells(quick=True), TOY.measure, show=False)
    assert quick["found"]["P@1 (%)"] == precision_by_ridge(list(toy_split({}))[:1], 0.1)
    assert len(board.rows()) == 3  # quick ones are others


def test_what_is_found_is_set_beside_what_was_published(tmp_path):
    rows = Board(tmp_path / "toy.jsonl").fill(TOY.cells(), TOY.measure, show=False)
    ours = rows[0]["found"]["P@1 (%)"]
    known = [toy_row(ours - 2), toy_row(ours + 0.5, setting={"reg": 10.0}), toy_row(1, "SVM")]
    first, second = compare.compared(rows, [TOY], known)
    assert (first.published, first.ours, first.difference) == (ours - 2, ours, 2.0)
    assert (first.verdict, first.missed, first.why) == ("reached", False, None)
    assert second.setting == {"reg": 10.0}
    assert second.ours == rows[1]["found"]["P@1 (%)"]
    [alone, _] = compare.compared(rows, [TOY], known[2:])
    assert (alone.published, alone.verdict) == (None, "ours only")


def test_one_fit_with_all_settings_unfolds_into_one_comparison_a_setting():
    class Both(Ridge):
        def at(self, setting):
            return Ridge(reg=setting["reg"], normalize=None).fit(*self.seen_)

        def fit(self, X, Y):
            self.seen_ = X, Y
            return self

    path = replace(TOY, methods={"Ridge": Method(lambda cell, split: Both())}, path=True)
    [cell] = path.cells()
    assert "reg" not in cell
    row = {"cell": cell, "found": path.measure(cell)}
    values = [precision_by_ridge(toy_split({}), reg) for reg in (0.1, 10.0)]
    assert [c.ours for c in compare.compared([row], [path], [])] == values
    [_, second] = compare.compared([row], [path], [toy_row(0, setting={"reg": 10.0})])
    assert (second.published, second.verdict) == (0, "reached")


@pytest.mark.parametrize(
    ("metric", "ours", "published", "verdict"),
    [
        (Metric(None, 1.0), 30.0, 30.0, "reached"),
        (Metric(None, 1.0), 29.0, 30.0, "within"),
        (Metric(None, 1.0), 28.99, 30.0, "missed"),
        (Metric(None, 0.1, relative=True), 0.0451, 0.05, "within"),
        (Metric(None, 0.1, relative=True), 0.0449, 0.05, "missed"),
        (Metric(None, 0.001, better="lower"), 0.012, 0.013, "reached"),
        (Metric(None, 0.001, better="lower"), 0.0141, 0.013, "missed"),
        (Metric(None, 0.0, better="equal"), 121, 120, "missed"),
        (Metric(None, 0.0, better="equal"), 119, 120, "missed"),
        (Metric(None, None, better="lower"), 99.0, 1.0, "shown"),
    ],
)
def test_worse_by_more_than_the_tolerance_is_missed(metric, ours, published, verdict):
    protocol = replace(TOY, metrics={"P@1 (%)": metric})
    row = {"cell": TOY.cells()[0], "found": {"P@1 (%)": ours}}
    [found] = compare.compared([row], [protocol], [toy_row(published)])
    assert found.verdict == verdict
    assert found.missed == (verdict == "missed")
    assert found.why == ("not explained" if found.missed else None)


def test_a_miss_that_is_understood_is_explained():
    cell = {"paper": "GenEML", "table": "2", "data": "planted", "method": "LEML"}
    found = {"P@1 (%)": 60.0, "P@2 (%)": 90.0, "P@3 (%)": 90.0}
    missed, *others = papers.compared([{"cell": cell, "found": found}])
    assert missed.published == 78.8
    assert "generator" in missed.why
    assert [c.why for c in others] == [None, None]


def test_tables_show_both_figures_and_count_what_has_no_cell():
    cells = TOY.cells()
    rows = [
        {"cell": cells[0], "found": {"P@1 (%)": 41.25}},
        {"cell": cells[1], "skipped": "there is no [such] data"},
    ]
    known = [toy_row(50.0), toy_row(1, "SVM"), toy_row(1, data="Other"), toy_row(2, data="More")]
    text = io.StringIO()
    tables.show(rows, [TOY], known, Console(file=text, width=120, color_system=None))
    printed = text.getvalue()
    for expected in (
        "Toy, table 7",
        "41.25",
        "50.00",
        "-8.75",
        "missed Toy 7 planted Ridge: not explained",
        "skipped 1 cells: there is no [such] data",
        "1 figures: 1 missed",
        "4 published: 1 have a cell here; 2 no data, 1 no method",
    ):
        assert expected in printed
    colours = io.StringIO()
    console = Console(file=colours, width=120, color_system="standard", force_terminal=True)
    tables.show(rows, [TOY], known, console)
    assert "\x1b[31m-8.75" in colours.getvalue()  # red


def test_where_the_console_is_narrow_each_metric_has_its_own_line():
    count = Metric(lambda t, a: len(t.Y), 0.0, better="equal")
    many = replace(TOY, metrics=dict.fromkeys("abcde", count))
    row = {"cell": TOY.cells()[0], "found": dict.fromkeys("abcde", 40.0)}
    known = toy_row(0) | {"values": dict.fromkeys("abcde", 41)}
    lines = {}
    for width in (60, 120):
        text = io.StringIO()
        tables.show([row], [many], [known], Console(file=text, width=width, color_system=None))
        lines[width] = [line.split() for line in text.getvalue().splitlines()]
    for name in "abcde":
        assert ["planted", "Ridge", "0.1", name, "40", "41", "-1"] in lines[60]
    assert ["planted", "Ridge", "0.1", *["40", "41", "-1"] * 5] in lines[120]


def test_the_device_reaches_every_step_that_has_one():
    asked = {}

    class Kept(Ridge):
        def fit(self, X, Y):
            asked["device"] = self.device
            self.device = "cpu"
            return super().fit(X, Y)

    make = lambda cell, split: make_pipeline(StandardScaler(), Kept(reg=1.0))
    protocol = replace(TOY, methods={"Ridge": Method(make)})
    protocol.measure(protocol.cells()[0], device="cuda:7")
    assert asked["device"] == "cuda:7"


# Splits


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A function that puts a data set of some rows where `load` finds it."""
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    monkeypatch.setattr(store, "_cache", lambda: tmp_path / "cache")

    def put(name, X, Y, X_test, Y_test):
        write_npz(tmp_path / name, X, Y, X_test=X_test, Y_test=Y_test)

    return put


def test_data_that_is_not_there_is_a_skip_of_one_sentence(data):
    with pytest.raises(Skip, match="there is no data set 'bibtex' here"):
        papers.measure(papers.cells("LEML", "2")[0])


def test_folds_test_every_row_once_and_learn_from_the_others(data):
    X, Y = rows_and_labels(50)
    data("some", X[:30], Y[:30], X[30:], Y[30:])
    trials = list(splits.some_in_folds({"data": "some"}))
    assert len(trials) == 5
    tested = np.vstack([split.X_test for split in trials])
    assert_array_equal(np.sort(tested, axis=0), np.sort(X.astype(np.float32), axis=0))
    for split in trials:
        both = np.vstack([split.X, split.X_test])
        assert_array_equal(np.sort(both, axis=0), np.sort(X.astype(np.float32), axis=0))


def test_labels_numbered_differently_in_the_two_parts_are_matched(data):
    rng = np.random.default_rng(0)
    true = rng.random((400, 8)) < 0.25
    X = sp.csr_array(true @ np.kron(np.eye(8), np.ones((1, 3))) * rng.random((400, 24)))
    order = rng.permutation(8)
    data("rcv1", X[:200], true[:200], X[200:], true[200:][:, order])
    seen = []
    for split in splits.hidden_positives({"data": "rcv1", "rate": 0.0}):
        for rows, labels in ((split.X, split.Y), (split.X_test, split.Y_test)):
            words = rows.toarray().reshape(-1, 8, 3).sum(axis=2) > 0
            assert_array_equal(labels.positives.toarray() > 0, words)
        seen.append(split.Y_test.positives.shape[0])
    assert seen == [40] * 10
    left = next(splits.hidden_positives({"data": "rcv1", "rate": 0.9})).Y
    assert left.kind == "positive-only"
    assert left.positives.nnz < 0.2 * true.sum()


def test_test_rows_without_labels_are_left_out_and_features_scaled_by_training_rows(data):
    X, Y = rows_and_labels(50)
    Y = Y.positives.toarray()
    Y[[30, 47]] = 0
    data("some", X[:30], Y[:30], X[30:], Y[30:])
    [split] = splits.standardised(splits.labelled(splits.as_given))({"data": "some"})
    kept = 30 + np.flatnonzero(Y[30:].any(axis=1))
    assert not {30, 47} & set(kept)
    expected = StandardScaler().fit(X[:30]).transform(X[kept])
    assert_allclose(split.X_test, expected, rtol=1e-5, atol=1e-5)
    assert_array_equal(split.Y_test.positives.toarray(), Y[kept])


def test_observed_entries_and_first_rows_are_as_many_as_the_cell_asks(data):
    X, Y = rows_and_labels(2000)
    data("some", X[:1500], Y[:1500], X[1500:], Y[1500:])
    [split] = splits.entries_observed({"data": "some", "observed_fraction": 0.2})
    assert split.Y.kind == "masked"
    assert_allclose(split.Y.observed.nnz / (1500 * 6), 0.2, atol=0.02)
    [split] = splits.first_rows({"data": "some", "n_train": 439})
    assert split.X.shape[0] == len(split.Y) == 439


def test_planted_labels_are_said_by_the_exposures():
    trials = list(splits.planted_exposures({"n": 3000}))
    assert len(trials) == 10
    true = trials[0].Y_test.positives.toarray().mean(axis=0)  # as frequent as in the other half
    said = trials[0].Y.positives.toarray().mean(axis=0)
    nearest = np.abs((said / true)[:, None] - np.array(splits.MU)).min(axis=1)
    assert nearest.max() < 0.12
    assert_allclose(true.mean(), 0.2, atol=0.05)


# The papers' own


def test_the_model_of_a_ratio_is_the_estimator_at_that_rank():
    X, Y = rows_and_labels(80, n_labels=12)
    plst = LabelSpaceReduction("plst", reg=1e-3, normalize=None)
    fitted = Ranks(plst, along_path, ratios=(0.2, 0.5)).fit(X, Y)
    for ratio, rank in ((0.2, 2), (0.5, 6)):
        direct = plst.set_params(rank=rank).fit(X, Y).decision_function(X)
        assert_allclose(fitted.at({"k_over_L": ratio}).decision_function(X), direct, atol=1e-6)
    assert str(fitted).count("; ") == 1
    assert "rank=6" in str(fitted)  # what is told of a fit is what was chosen
    whole = Ranks(plst, along_path, ratios=(None,)).fit(X, Y).at({})
    ridge = Ridge(reg=1e-3, normalize=None).fit(X, Y).decision_function(X)
    assert_allclose(whole.decision_function(X), ridge, atol=1e-3)


def test_a_kernel_model_takes_rows_as_they_are():
    X, Y = rows_and_labels(60, n_labels=12)
    cplst = LabelSpaceReduction("cplst", reg=1e-2, normalize=None)
    found = Ranks(cplst, along_path, ratios=(0.5,), kernel=True).fit(X, Y).at({"k_over_L": 0.5})
    features = found[0]
    assert isinstance(features, KernelFeatures)
    apart = [np.linalg.norm(X[i] - X[j]) for i in range(60) for j in range(i)]
    assert_allclose(features.gamma, 1 / (2 * (2 * np.mean(apart)) ** 2))
    direct = cplst.set_params(rank=6).fit(features.transform(X), Y)
    scores = direct.decision_function(features.transform(X[:9]))
    assert_allclose(found.decision_function(X[:9]), scores, atol=1e-5)


def test_the_value_held_out_rows_like_best_is_chosen():
    X, Y = rows_and_labels(100, n_labels=12)
    cs = LabelSpaceReduction("cs", 10, reg=1e-3, normalize=None, random_state=0)
    [chosen] = held_out(cs, X, Y, [10], name="sparsity", values=[1, 2, 4, 8])
    order = np.random.RandomState(0).permutation(100)  # of train_test_split
    test, train = order[:20], order[20:]
    scores = [
        macro_f1(Y[test], cs.set_params(sparsity=s).fit(X[train], Y[train]).predict(X[test]))
        for s in (1, 2, 4, 8)
    ]
    assert chosen.sparsity == (1, 2, 4, 8)[int(np.argmax(scores))]
    assert len(set(scores)) > 1


def test_a_row_is_given_as_many_labels_as_it_has():
    X, Y = rows_and_labels(60)
    model = Ridge(normalize=None).fit(X[:40], Y[:40])
    split = Split(X[:40], Y[:40], X[40:], Y[40:])
    answer = Answer(model, X[40:])
    given = np.zeros((20, 6), dtype=int)
    for row, (score, true) in enumerate(zip(answer.scores, Y[40:].positives.toarray())):
        given[row, np.argsort(-score)[: true.sum()]] = 1
    for metric, average in (("micro-F1", "micro"), ("macro-F1", "macro")):
        expected = f1_score(Y[40:].positives.toarray(), given, average=average, zero_division=0)
        assert_allclose(sem.TABLE_2.metrics[metric].of(split, answer), expected)


def test_what_is_timed_is_the_fit_on_all_rows_and_not_the_one_that_compiles(monkeypatch):
    fits, clock = [], iter(range(100))

    class Counted(Ridge):
        def fit(self, X, Y):
            fits.append((len(X), next(clock), self.reg))
            return self

    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    X, Y = rows_and_labels(1000)
    model = timing.timed(Counted(reg=7.0)).make({}, None).fit(X, Y)
    assert fits == [(timing.FEW, 0, 7.0), (1000, 2, 7.0)]
    assert timing.SECONDS.of(None, Answer(model, X)) == 3 - 1


def test_a_table_that_needs_no_data_runs_on_a_fresh_clone(tmp_path, data):
    cells = papers.cells("GenEML", "2", quick=True)[2:] + papers.cells("GenEML", "3", quick=True)
    rows = Board(tmp_path / "papers.jsonl").fill(cells, papers.measure, show=False)
    assert 40 < rows[0]["found"]["P@1 (%)"] < 80
    assert all("no data set" in row["skipped"] for row in rows[1:])
    text = io.StringIO()
    papers.show(rows, Console(file=text, width=120))
    assert "1183 published" in text.getvalue()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="needs the real data sets")
def test_real_data_are_the_papers_and_binary_relevance_passes_table_4():
    cells = papers.cells("LEML", "1")
    cells += [c for c in papers.cells("LEML", "4") if c["method"] == "BR"]
    found = papers.compared([{"cell": cell, "found": papers.measure(cell)} for cell in cells])
    assert len(found) == 2 * 8 + 3
    assert {c.metric.partition(" ")[0] for c in found if c.missed} <= {"avg"}  # of other rows
    assert [c.verdict for c in found if c.method == "BR"] == ["reached"] * 3
