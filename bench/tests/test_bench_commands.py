"""`tacit bench` as a user runs it, on small data."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tacit_bench.boards import missing, peers
from typer.testing import CliRunner

from tacit.cli import app
from tacit.datasets import write_npz
from tacit.labels import Labels


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run `tacit bench …` in an empty folder, where `bibtex` is a small data set."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.4, rng=rng, format="csr", dtype=np.float32)
    Y = Labels.complete(X @ rng.standard_normal((20, 12)) > 0.8)
    write_npz(tmp_path / "data" / "bibtex", X[:240], Y[:240], X_test=X[240:], Y_test=Y[240:])
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["bench", *words])


MISSING = ("missing", "--data", "bibtex", "--rate", "0.8", "--method", "Ridge", "--jobs", "0")


def test_a_cell_is_measured_once_and_kept(run, tmp_path, monkeypatch):
    first = run(*MISSING, "--json")
    assert first.exit_code == 0, first.output
    kept = tmp_path / "bench" / "results" / "missing.jsonl"
    assert len(kept.read_text().splitlines()) == 2  # 80 % of the positives, 20 % of the entries
    assert not kept.with_name("real.jsonl").exists()  # no such data set was asked for
    monkeypatch.setattr(missing, "STUDY", replace(missing.STUDY, measure=lambda cell: 1 / 0))
    again = run(*MISSING, "--json")
    assert json.loads(again.stdout) == json.loads(first.stdout)


def test_peers_are_measured_for_each_seed(run, monkeypatch):
    measure = lambda cell: {"P@3": float(cell["seed"])}
    monkeypatch.setattr(peers, "STUDY", replace(peers.STUDY, measure=measure))
    asked = ("--data", "bibtex", "--rate", "0.8", "--peer", "PECOS", "--seeds", "3")
    found = run("peers", *asked, "--json")
    assert found.exit_code == 0, found.output
    assert [row["found"]["P@3"] for row in json.loads(found.stdout)["rows"]] == [0.0, 1.0, 2.0]


def test_people_see_a_table_and_the_budget(run):
    found = run(*MISSING)
    assert "80% of the positives hidden" in found.stdout
    assert "chooses among 4 settings" in found.stderr


def test_the_report_is_a_page_of_what_is_there(run, tmp_path):
    run(*MISSING)
    board = tmp_path / "scoreboard.md"
    board.write_text("# Mine\n\n<!-- headline -->\n<!-- /headline -->\n\nThe end.\n")
    found = run("report", "--output", "page.html", "--headline", "scoreboard.md")
    assert found.exit_code == 0, found.output
    page = (tmp_path / "page.html").read_text()
    assert "bibtex" in page
    assert "tacit bench scale" in page  # what is not there is named with its command
    assert board.read_text().endswith("The end.\n")
    assert "Ridge" in board.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("missing", "--data", "bibtx"), "--data bibtx is not on this board; there are bibtex"),
        (("missing", "--data", "tags.csv"), "which columns of tags.csv are to be read?"),
        (("missing", "--method", "Rigde"), "no method 'Rigde' on this board; there are"),
        (("papers", "--paper", "LEMON"), "paper must be one of LEML, FaIE"),
        (("report", "--results", "nowhere"), "--results nowhere is no folder"),
        (("peers", "--peer", "nobody"), "nobody"),
        (("scale", "--method", "nobody"), "nobody"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, words, sentence):
    (tmp_path / "tags.csv").write_text("name,tags\na,x|y\n")
    found = run(*words)
    assert found.exit_code == 2
    assert sentence in found.stderr
    assert len(found.stderr.strip().splitlines()) <= 2  # the budget may come first
    assert not (tmp_path / "bench").exists()


OWN = """
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from tacit.baselines import Popularity


class Mine(Popularity):
    pass


def theirs():
    return OneVsRestClassifier(LogisticRegression())
"""


def test_a_table_and_an_estimator_of_ones_own_stand_beside_ours(run, tmp_path):
    """No list is edited: a file and a class are named, and their rows are on the board."""
    (tmp_path / "mine.py").write_text(OWN)
    words = np.random.default_rng(0).choice(["red", "blue", "green", "loud"], (60, 3))
    lines = [f'"{" ".join(row)}",{"|".join(set(row))}' for row in words.tolist()]
    (tmp_path / "things.csv").write_text("\n".join(["title,kinds", *lines]) + "\n")
    asked = ("missing", "--data", "things.csv", "--text", "title", "--labels", "kinds")
    methods = ("--method", "mine:Mine", "--method", "Ridge")
    foreign = ("--method", "sklearn.neighbors:KNeighborsClassifier")
    found = run(*asked, *methods, *foreign, "--rate", "0.5", "--jobs", "0", "--json")
    assert found.exit_code == 0, found.output
    rows = {row["cell"]["method"]: row for row in json.loads(found.stdout)["rows"][:3]}
    assert set(rows) == {"mine:Mine", "Ridge", "sklearn.neighbors:KNeighborsClassifier"}
    assert all(0 < row["found"]["P@1"] <= 100 for row in rows.values())
    assert all(row["found"]["R@20 hidden"] == 100 for row in rows.values())  # of four labels
    assert rows["Ridge"]["found"]["P@1"] > rows["mine:Mine"]["found"]["P@1"]
