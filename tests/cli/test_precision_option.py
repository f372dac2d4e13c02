"""`--precision`: so many of the suggestions are right, by rows that somebody checked."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.datasets import write_table
from tacit.metrics import precision_threshold

WORDS = {"cooking": "stew", "sailing": "boat", "maths": "proof", "music": "opera"}
RARE = "music"  # whose word says little


def truth_of(n, seed):
    """Names, text and true tags; words lead astray now and then, that of RARE more often."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        tags = [tag for tag in WORDS if rng.random() < 0.4]
        wrong = {tag: 0.4 if tag == RARE else 0.03 for tag in WORDS}
        words = [w for tag, w in WORDS.items() if (tag in tags) != (rng.random() < wrong[tag])]
        rows.append({"name": f"r{seed}-{i}", "about": " ".join([*words, "more"]), "tags": tags})
    return rows


def said_of(rows, rng):
    return [row | {"tags": [t for t in row["tags"] if rng.random() < 0.6]} for row in rows]


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    """A folder with said.csv, its model, and its first half checked; and rows not seen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rows = truth_of(400, 0)
    write_table("said.csv", said_of(rows, np.random.default_rng(1)))
    write_table("checked.csv", rows[:200])
    write_table("unseen.csv", truth_of(300, 2))
    write_table("new.csv", truth_of(300, 3))
    columns = ("--text", "about", "--id", "name", "--method", "elkan08", "--quiet")
    run("fit", "said.csv", *columns)
    return tmp_path


def right(suggested, rows):
    """The share of (row, label) pairs that is true."""
    true = {(row["name"], tag) for row in rows for tag in row["tags"]}
    return np.mean([pair in true for pair in suggested])


def predicted(*more):
    told = json.loads(run("predict", "said.tacit", "new.csv", *more, "--json").stdout)
    pairs = [(p["row"], each["label"]) for p in told["predictions"] for each in p["labels"]]
    return told.get("precision"), pairs


@pytest.mark.parametrize("each", [(), ("--each-label",)])
def test_so_many_predictions_are_right_in_rows_that_did_not_judge(fitted, each):
    _, every = predicted()
    _, some = predicted("--precision", 0.8, "--checked", "unseen.csv", *each)
    assert right(every, truth_of(300, 3)) < 0.75
    assert right(some, truth_of(300, 3)) > 0.8
    assert set(some) < set(every)


def test_the_threshold_is_that_of_the_library_for_what_predict_suggests(fitted):
    told, _ = predicted("--precision", 0.8, "--checked", "unseen.csv", "--k", 2)
    model, rows = tacit.load("said.tacit"), truth_of(300, 2)
    best = model[-1].top_k(model[0].transform([r["about"] for r in rows]), 2, probability=True)
    Y = [[name in row["tags"] for name in model[-1].classes_] for row in rows]
    found = precision_threshold(Y, best, 0.8)
    assert told["threshold"] == pytest.approx(found.threshold)
    assert (told["precision"], told["low"]) == pytest.approx((found.precision, found.low))
    assert told["lower_bound"] is True


def test_a_label_that_reaches_it_nowhere_is_not_suggested(fitted):
    told, some = predicted("--precision", 0.8, "--checked", "unseen.csv", "--each-label")
    assert {label for _, label in some} == set(WORDS) - {RARE}
    assert {each["label"] for each in told["labels"]} == set(WORDS) - {RARE}


def test_completions_are_judged_by_rows_of_the_table_that_were_checked(fitted):
    """Of unsaid labels, not of all: fewer of these are true."""
    args = ("complete", "said.tacit", "said.csv", "--json")
    told = json.loads(run(*args, "--precision", 0.6, "--checked", "checked.csv").stdout)
    every = json.loads(run(*args, "--min-probability", 0).stdout)["completions"]
    checked = truth_of(400, 0)[:200]
    names = {row["name"] for row in checked}
    least = told["precision"]["threshold"]
    judged = [
        (e["row"], e["label"]) for e in every if e["probability"] >= least and e["row"] in names
    ]
    assert len(judged) == told["precision"]["suggestions"]
    assert right(judged, checked) == pytest.approx(told["precision"]["precision"])
    assert told["precision"]["low"] >= 0.6
    kept = {(e["row"], e["label"]) for e in told["completions"]}
    assert kept == {(e["row"], e["label"]) for e in every if e["probability"] >= least}


def test_what_silence_means_is_said(fitted):
    asked = ("predict", "said.tacit", "new.csv", "--precision", 0.8, "--checked", "unseen.csv")
    err = " ".join(run(*asked).stderr.split())
    assert "suggestions are right in unseen.csv, with an interval from 8" in err
    assert "may be true: this is the least that is right" in err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--precision", 0.99, "--checked", "unseen.csv"), "the best that they show is 9"),
        (("--precision", 90, "--checked", "unseen.csv"), "above 0 and below 1; got 90"),
        (("--precision", 0.9), "give --checked FILE"),
        (("--checked", "unseen.csv"), "--checked is for --precision"),
        (("--each-label",), "--each-label is for --precision"),
    ],
)
def test_what_cannot_be_reached_or_is_half_asked_is_one_clear_sentence(fitted, options, sentence):
    done = run("predict", "said.tacit", "new.csv", *options, code=2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_completions_need_the_same_rows(fitted):
    asked = ("complete", "said.tacit", "said.csv", "--precision", 0.6, "--checked")
    assert "no row of unseen.csv is in said.csv" in run(*asked, "unseen.csv", code=2).stderr
