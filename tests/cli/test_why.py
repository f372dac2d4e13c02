"""`--show`, `--why` and `--by-label`: what one wants to know before one believes a suggestion."""

import csv
import json
import re
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.cli.why import Carriers
from tacit.datasets import read_table, write_svmlight, write_table

VERBS = ["edit", "sort", "crop", "view", "scan", "send"]
ROWS = [
    *(
        {"name": f"g{i}", "about": f"{w} images in a window", "tags": ["gtk"]}
        for i, w in enumerate(VERBS)
    ),
    *(
        {"name": f"c{i}", "about": f"{w} text in a terminal", "tags": ["cli"]}
        for i, w in enumerate(VERBS)
    ),
    {"name": "lost", "about": "draw images in a window", "tags": ["art"]},
    {"name": "lone", "about": "paint by hand", "tags": ["art"]},
]


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


def run_json(*args):
    return json.loads(run(*args, "--json").stdout)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_table("rows.csv", ROWS)


@pytest.fixture
def fitted():
    return fit("ridge")


def fit(method):
    run("fit", "rows.csv", "--text", "about", "--method", method, "--quiet", "--output", "m.tacit")
    return "m.tacit", "rows.csv", "--id", "name"


def test_carriers_are_counted():
    rng = np.random.default_rng(0)
    X, Y = (sp.random_array((40, d), density=0.3, rng=rng, format="csr") for d in (6, 4))
    counted = Carriers(X, Y)
    there, said = X.toarray() != 0, Y.toarray() != 0
    assert counted.rows.tolist() == there.sum(axis=0).tolist()
    for label in (2, 0, 2):
        assert counted.of(label).tolist() == there[said[:, label]].sum(axis=0).tolist()


def test_a_suggestion_is_told_with_counts_that_a_person_can_check(fitted):
    found = run_json("complete", *fitted, "--why")["completions"]
    assert {"row": "lost", "label": "gtk"}.items() <= found[0].items()
    assert len(found[0]["why"]) == 3
    assert "6 of 7 rows with window have it" in found[0]["why"]
    for each in found:
        for reason in each["why"]:
            have, rows, word = re.fullmatch(
                r"(\d+) of (\d+) rows with (\w+) have it", reason
            ).groups()
            with_it = [row for row in ROWS if word in row["about"].split()]
            assert word in next(row["about"] for row in ROWS if row["name"] == each["row"]).split()
            assert int(rows) == len(with_it)
            assert int(have) == sum(each["label"] in row["tags"] for row in with_it)


def test_reasons_are_words_that_speak_for_the_label(fitted):
    (why,) = tacit.load("m.tacit")[-1].explain(
        tacit.load("m.tacit")[0].transform(["draw images in a window"]), 0, "gtk", 20
    )
    for_it = sum(reason.amount > 0 for reason in why.reasons)
    (found,) = run_json("complete", *fitted, "--top", 1, "--why")["completions"]
    assert len(found["why"]) == min(for_it, 3)


def test_without_why_nothing_is_explained(fitted):
    assert "why" not in run_json("complete", *fitted)["completions"][0]
    assert "why" not in run_json("predict", *fitted)["predictions"][0]["labels"][0]


def test_columns_and_the_tags_that_are_there_are_carried_along(fitted):
    (found,) = run_json("complete", *fitted, "--top", 1, "--show", "about")["completions"]
    assert list(found) == ["row", "about", "has", "label", "probability"]
    assert found["about"] == "draw images in a window"
    assert found["has"] == ["art"]
    run("complete", *fitted, "--show", "about", "--why", "--output", "missing.csv")
    with open("missing.csv", encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))
    assert first["about"] == "draw images in a window"
    assert first["why"].count(" have it") == 3


def test_what_is_told_of_a_suggestion_stands_below_it(fitted):
    lines = run("complete", *fitted, "--top", 1, "--show", "about", "--why").stdout.splitlines()
    told = [" ".join(line.split()) for line in lines]
    assert re.fullmatch(r"lost seems to lack gtk, probability 0\.\d{3}", told[0])
    assert told[1:3] == ["about draw images in a window", "has art"]
    assert told[3].startswith("why ")
    assert re.fullmatch(r"\d of \d rows with \w+ have it", told[4])
    unnamed = run("complete", *fitted[:2], "--top", 1, "--show", "name").stdout
    assert unnamed.startswith("row 12 seems to lack gtk")


def test_by_label_lists_the_rows_that_seem_to_lack_it(fitted):
    plain = run_json("complete", *fitted)["completions"]
    found = run_json("complete", *fitted, "--by-label")["completions"]
    key = lambda each: (each["label"], each["row"])
    assert sorted(map(key, found)) == sorted(map(key, plain))
    groups = [(label, list(own)) for label, own in groupby(found, lambda each: each["label"])]
    assert len(groups) == len({each["label"] for each in plain}) > 1
    chances = [[each["probability"] for each in own] for _, own in groups]
    assert all(own == sorted(own, reverse=True) for own in chances)
    assert [own[0] for own in chances] == sorted((own[0] for own in chances), reverse=True)


def test_by_label_the_screen_has_a_few_rows_of_each(fitted):
    done = run("complete", *fitted, "--by-label")
    rows = [line.split("│")[1:3] for line in done.stdout.splitlines() if line.startswith("│")]
    labels = [label.strip() for label, _ in rows]
    assert [name for name in labels if name][:1] == ["gtk"]
    starts = [i for i, name in enumerate(labels) if name] + [len(labels)]
    assert max(np.diff(starts)) == 5
    assert "--output FILE keeps them all" in done.stderr


def test_predictions_name_the_words_that_count(fitted):
    write_table("new.csv", [{"name": "n", "about": "shrink images in a window"}])
    new = ("m.tacit", "new.csv", "--id", "name", "--show", "about", "--why", "--k", 1)
    (found,) = run_json("predict", *new)["predictions"]
    assert found["about"] == "shrink images in a window"
    (best,) = found["labels"]
    assert best["label"] == "gtk"
    assert set(best["why"]) == {"window", "images", "in"}
    assert f"gtk {best['probability']:.2f}: {', '.join(best['why'])}" in run("predict", *new).stdout


def test_the_reasons_of_each_label_are_its_own(fitted):
    for row in run_json("predict", *fitted, "--why", "--k", 3)["predictions"]:
        for each in row["labels"]:
            wanted = {"gtk": "terminal", "cli": "window"}.get(each["label"])
            assert wanted not in each["why"]


def test_tacit_names_the_words_of_its_lead():
    (found,) = run_json("complete", *fit("tacit"), "--top", 1, "--why")["completions"]
    assert "6 of 7 rows with window have it" in found["why"]


def test_neighbours_name_rows_of_the_fit():
    (found,) = run_json("complete", *fit("neighbours"), "--top", 1, "--why")["completions"]
    numbers = [int(re.fullmatch(r"row (\d+) of the fit has it", w)[1]) for w in found["why"]]
    assert all(found["label"] in ROWS[i]["tags"] for i in numbers)
    assert len(numbers) == 3


def test_who_can_name_nothing_says_so():
    assert "are no sums over features" in run("complete", *fit("sem"), "--why", code=2).stderr


def test_columns_of_numbers_are_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    rows = [{"tall": a, "wide": b, "tags": ["big" if a > 0 else "small"]} for a, b in X]
    write_table("sizes.csv", rows)
    columns = ("--features", "tall", "--features", "wide", "--method", "ridge", "--quiet")
    run("fit", "sizes.csv", *columns)
    found = run_json("predict", "sizes.tacit", "sizes.csv", "--k", 1, "--why")["predictions"]
    assert all("tall" in row["labels"][0]["why"] for row in found if abs(X[row["row"], 0]) > 1)


@pytest.mark.parametrize("name", ["has", "label", "why"])
def test_a_column_of_the_answer_is_not_carried_along(fitted, name):
    done = run("complete", *fitted, "--show", name, code=2)
    assert f"--show {name}: the answer has a column {name} of its own" in done.stderr


def test_the_name_of_a_column_is_no_markup(fitted):
    write_table("odd.csv", [{**row, "[bold]x": "y"} for row in ROWS])
    args = ("m.tacit", "odd.csv", "--show", "[bold]x")
    assert "[bold]x" in run("complete", *args).stdout
    assert "[bold]x" in run("predict", *args).stdout


def test_a_column_to_show_must_be_there(fitted):
    assert "did you mean 'about'" in run("complete", *fitted, "--show", "abuot", code=2).stderr
    X = sp.csr_array(np.eye(2))
    write_svmlight("rows.svm", X, tacit.Labels.complete(np.eye(2, dtype=int)))
    run("fit", "rows.svm", "--method", "ridge", "--quiet")
    done = run("complete", "rows.tacit", "rows.svm", "--show", "about", code=2)
    assert "is not a table, so it has no column 'about'" in done.stderr


def test_kept_columns_are_those_of_the_first_line_of_a_row():
    frame = pd.DataFrame(
        {
            "id": ["a", "a", "b"],
            "tag": ["x", "y", "x"],
            "note": ["one", "two", None],
            "n": [1, 1, 2],
        }
    )
    table = read_table(frame, labels="tag", features="n", id="id", keep=["note"])
    assert table.kept == {"note": ["one", ""]}
    assert read_table(frame, labels="tag", features="n").kept == {}


def test_a_kept_column_is_no_tag_though_a_pattern_matches_it():
    frame = pd.DataFrame({"x": ["one", "two"], "gtk": [1, 0], "cli": [0, 1], "free": [1, 1]})
    table = read_table(frame, labels="*", text="x", keep=["free"])
    assert table.Y.classes.tolist() == ["cli", "gtk"]
    assert table.kept == {"free": ["1", "1"]}
