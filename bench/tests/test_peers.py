"""Peers: the worker under this Python, and what becomes of peers that do not work."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tacit_bench import work
from tacit_bench.board import Board, Skip
from tacit_bench.boards import peers
from tacit_bench.boards.peers import PEERS, cells, environments, measure, worker
from tacit_bench.boards.peers.environments import Peer, python_of
from tacit_bench.work import SETTINGS

from tacit.datasets import Dataset
from tacit.labels import Labels

RIDGE = "scikit-learn Ridge"
CELL = {"data": "toy", "mechanism": "positives", "rate": 0.5, "method": RIDGE, "seed": 3}


@pytest.fixture
def toy(monkeypatch):
    """Labels that are linear in the features, under the name "toy"; peers run in this Python."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 8)).astype(np.float32)
    Y = X @ rng.standard_normal((8, 7)) + 0.3 * rng.standard_normal((260, 7)) > 1
    split = X[:200], Labels.complete(Y[:200]), X[200:], Labels.complete(Y[200:])
    data = Dataset("toy", *split)
    monkeypatch.setattr(work, "load", lambda name: data)
    monkeypatch.setattr(peers, "python_of", lambda peer, folder: Path(sys.executable))
    return data


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def ridge_scores(X, Y, X_test, alpha):
    """Closed form, with a constant among the features."""
    A, B = (np.hstack([M, np.ones((len(M), 1))]).astype(float) for M in (X, X_test))
    return B @ np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ Y)


def work_folder(folder, X, Y, X_test, fit, held, grid):
    for name, matrix in {"X": X, "X_test": X_test, "Y": Y.astype(np.int8)}.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_array(matrix))
    np.save(folder / "fit.npy", fit)
    np.save(folder / "held.npy", held)
    (folder / "grid.json").write_text(json.dumps(grid))


def run_worker(folder, *options):
    command = [sys.executable, "-I", worker.__file__, str(folder), RIDGE, *options]
    subprocess.run(command, check=True, capture_output=True)
    return np.load(folder / "top.npy"), json.loads((folder / "figures.json").read_text())


def test_the_worker_tunes_on_held_rows_and_its_refit_is_the_closed_form(toy, tmp_path):
    X, Y, X_test = unit(toy.X), toy.Y.to_array(), unit(toy.X_test)
    fit, held = np.arange(0, 150), np.arange(150, 200)
    grid = [{"alpha": 1e4}, {"alpha": 1.0}, {"alpha": 1e-3}, {"alpha": 100.0}]
    work_folder(tmp_path, X, Y, X_test, fit, held, grid)
    top, figures = run_worker(tmp_path)

    expected = []
    for settings in grid:
        best = np.argsort(-ridge_scores(X[fit], Y[fit], X[held], **settings))[:, :3]
        expected.append(100 * np.take_along_axis(Y[held], best, axis=1).mean())
    assert_allclose(figures["tried"], expected, atol=0.005)
    assert len(set(figures["tried"])) > 1
    assert figures["settings"] == grid[int(np.argmax(expected))] != grid[0]
    assert_array_equal(top, np.argsort(-ridge_scores(X, Y, X_test, **figures["settings"]))[:, :5])


def test_no_setting_but_the_first_is_begun_without_time(toy, tmp_path):
    grid = [{"alpha": 1e4}, {"alpha": 1.0}]
    rows = np.arange(0, 150), np.arange(150, 200)
    work_folder(tmp_path, unit(toy.X), toy.Y.to_array(), unit(toy.X_test), *rows, grid)
    figures = run_worker(tmp_path, "--limit", "0")[1]
    assert len(figures["tried"]) == 1
    assert figures["settings"] == grid[0]


def test_fewer_than_five_labels_are_padded_and_never_hit():
    scores = np.array([[0.1, 0.9], [0.8, 0.2]])
    assert_array_equal(worker.best(scores), [[1, 0, -1, -1, -1], [0, 1, -1, -1, -1]])
    assert_array_equal(worker.padded([[4], []]), [[4, -1, -1, -1, -1], [-1] * 5])
    Y = sp.csr_matrix([[0, 0, 0, 0, 1], [0, 0, 0, 0, 1]])  # a -1 must not be the last label
    assert_allclose(worker.precision_at_3(Y, worker.padded([[4], []])), 1 / 6)


def test_scores_in_blocks_are_ranked_as_all_at_once(monkeypatch):
    scores = np.random.default_rng(0).random((50, 9))
    expected = np.argsort(-scores, axis=1)[:, :5]
    monkeypatch.setattr(worker, "ROWS", 7)
    assert_array_equal(
        worker.in_blocks(lambda rows: rows.toarray(), sp.csr_matrix(scores)), expected
    )


def test_a_peer_is_scored_by_the_complete_test_labels_of_its_five_best(toy, monkeypatch):
    monkeypatch.setitem(PEERS, RIDGE, Peer(RIDGE, ("x==1",), "x", ({"alpha": 1.0},), ""))
    found = measure(CELL)
    left = work.hide(toy.Y, work.Positives(0.5), random_state=3).labels.to_sparse().toarray()
    best = np.argsort(-ridge_scores(unit(toy.X), left, unit(toy.X_test), 1.0))
    hits = np.take_along_axis(toy.Y_test.to_array(), best, axis=1)
    for k in (1, 3, 5):
        assert_allclose(found[f"P@{k}"], 100 * hits[:, :k].mean(), atol=0.005)
    assert {"nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "fit s", "peak GiB"} <= found.keys()


def test_a_worker_that_crashes_is_skipped_with_its_last_line(toy, monkeypatch):
    broken = Peer(RIDGE, ("x==1",), "x", ({"alpha": -1.0},), "")
    monkeypatch.setitem(PEERS, RIDGE, broken)
    with pytest.raises(Skip, match=r"^scikit-learn Ridge stopped: .*alpha.*-1\.0") as caught:
        measure(CELL)
    assert "\n" not in str(caught.value)


def test_a_worker_that_takes_too_long_is_skipped(toy, tmp_path):
    with pytest.raises(Skip, match=r"stopped after 0\.01 s"):
        measure(CELL, limit=0.01)


def test_labels_too_many_to_lay_out_end_with_a_sentence(monkeypatch):
    monkeypatch.setattr(worker, "DENSE_LIMIT", 5)
    X, Y = sp.csr_matrix(np.eye(3, dtype=np.float32)), sp.csr_matrix(np.eye(3, dtype=np.int8))
    with pytest.raises(SystemExit, match="needs Y dense, and 3 × 3 is too large"):
        worker.sklearn_ridge(X, Y, threads=1, alpha=1.0)


def test_a_peer_that_does_not_install_is_skipped_and_not_tried_twice(monkeypatch, tmp_path):
    commands = []

    def pip_fails(command):
        commands.append(command)
        stderr = "  AttributeError: no setup\nnote: not a problem with pip.\n"
        return subprocess.CompletedProcess(command, int("pip" in command), "", stderr)

    monkeypatch.setattr(environments, "_run", pip_fails)
    peer = Peer("Old", ("old==1.2",), "old", (), "")
    for _ in range(2):
        with pytest.raises(Skip, match=r"^old 1\.2 does not install here: AttributeError: no setu"):
            python_of(peer, tmp_path)
    assert len(commands) == 2  # venv and pip, once


def test_an_environment_is_made_once_and_again_for_another_version(monkeypatch, tmp_path):
    commands = []

    def works(command):
        commands.append(command)
        (tmp_path / "new").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments, "_run", works)
    for version, so_far in [("1", 3), ("1", 3), ("2", 6)]:
        python = python_of(Peer("New", (f"new=={version}",), "new", (), ""), tmp_path)
        assert python.is_relative_to(tmp_path / "new")
        assert len(commands) == so_far


def test_a_skipped_peer_is_a_row_of_the_board(toy, monkeypatch, tmp_path):
    def refused(peer, folder):
        raise Skip("old 1.2 does not install here: no compiler")

    monkeypatch.setattr(peers, "python_of", refused)
    rows = Board(tmp_path / "peers.jsonl").fill([CELL], measure, show=False)
    assert rows[0]["skipped"] == "old 1.2 does not install here: no compiler"


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_every_peer_has_the_same_budget_an_exact_version_and_a_worker(peer):
    assert len(peer.grid) == SETTINGS
    assert len({json.dumps(settings) for settings in peer.grid}) == SETTINGS
    assert "==" in peer.requirements[0]
    assert peer.name in worker.PEERS


def test_an_unknown_peer_is_named_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"'XGBoost', which is none of scikit-learn Ridge, "):
        cells(["bibtex"], [0.0], ["XGBoost"])


def test_omikuji_learns_from_rows_with_a_label_and_a_feature(monkeypatch):
    """Its reader stops at a line without features, and its trees at one without labels."""
    X = sp.csr_matrix(np.eye(4, dtype=np.float32)[[0, 1, 2, 3, 0]])
    X.data[3:] = 0
    X.eliminate_zeros()
    Y = sp.csr_matrix(np.array([[1, 0], [0, 0], [0, 1], [1, 1], [0, 1]], np.int8))
    lines = []

    class Model:
        default_hyper_param = staticmethod(SimpleNamespace)
        init_prediction_thread_pool = staticmethod(lambda threads: None)

        @classmethod
        def train_on_data(cls, path, wanted, n_threads):
            lines.extend(Path(path).read_text().splitlines())
            return cls()

    monkeypatch.setitem(sys.modules, "omikuji", SimpleNamespace(Model=Model))
    worker.omikuji(X, Y, threads=1, beam_size=10, linear_c=1.0)
    assert lines == ["2 4 2", "0 0:1", "1 2:1"]
