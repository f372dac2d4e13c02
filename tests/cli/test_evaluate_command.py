"""`tacit evaluate`: thresholds, labels and promises, against plain counting."""

import json

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.datasets import write_table

WORDS = {"cooking": "stew oven", "sailing": "boat mast", "maths": "proof sum", "<b>music": "opera"}


def rows_of(n, seed):
    """Rows whose words tell their tags, of which a third was forgotten, and some are wrong."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        tags = [tag for tag in WORDS if rng.random() < 0.5]
        words = [WORDS[tag] for tag in tags if rng.random() < 0.8]
        rows.append(
            {
                "about": " ".join([*words, "and more"]),
                "kinds": [tag for tag in tags if rng.random() < 0.67],
            }
        )
    return rows


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    """A folder with new.csv and train.tacit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_table("train.csv", rows_of(200, 0))
    write_table("new.csv", rows_of(150, 1))
    columns = ("--text", "about", "--labels", "kinds", "--method", "elkan08", "--quiet")
    run("fit", "train.csv", *columns)
    return tmp_path


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


def test_thresholds_labels_and_promises_are_those_that_counting_gives(fitted):
    told = json.loads(run("evaluate", "train.tacit", "new.csv", "--json").stdout)
    rows, model = rows_of(150, 1), tacit.load("train.tacit")
    p = model.predict_proba([row["about"] for row in rows])
    names = [str(name) for name in model[-1].classes_]
    Y = np.array([[name in row["kinds"] for name in names] for row in rows])
    assert [line["threshold"] for line in told["thresholds"]] == [0.1, 0.2, 0.3, 0.5, 0.7, 0.9]
    for line in told["thresholds"]:
        chosen = p >= line["threshold"]
        if chosen.any():
            wanted = precision_recall_fscore_support(Y, chosen, average="micro")[:3]
            assert (line["precision"], line["recall"], line["f1"]) == pytest.approx(wanted)
        assert line["chosen"] == chosen.sum()
    precision, recall, f1, said = precision_recall_fscore_support(Y, p >= 0.5)
    assert [label["f1"] for label in told["labels"]] == pytest.approx(sorted(f1)[::-1])
    for label in told["labels"]:
        j = names.index(label["label"])
        assert label["said"] == said[j]
        assert (label["precision"], label["recall"]) == pytest.approx((precision[j], recall[j]))
    for b, found in enumerate(told["reliability"]):
        within = np.minimum((p * 10).astype(int), 9) == b
        assert found["entries"] == within.sum()
        assert found["said"] == (pytest.approx(Y[within].mean()) if within.any() else None)
    assert told["lower_bound"] is True


def test_a_person_is_told_what_figures_are_and_what_they_cannot_say(fitted):
    out = " ".join(run("evaluate", "train.tacit", "new.csv", "--output", "e.html").stdout.split())
    assert "of a row's likeliest label, the share said" in out
    assert "every precision is a lower bound" in out
    page = (fitted / "e.html").read_text(encoding="utf-8")
    assert "every precision is a lower bound" in page
    assert "&lt;b&gt;music" in page
    assert "<b>" not in page
    assert page.count("<figure>") == 1


def test_where_all_was_said_nothing_is_a_lower_bound(fitted):
    args = ("evaluate", "train.tacit", "new.csv", "--noes", "all")
    assert "lower bound" not in run(*args).stdout
    assert json.loads(run(*args, "--json").stdout)["lower_bound"] is False


def test_of_many_labels_the_best_and_the_worst_are_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"about": f"word{i % 14} more", "kinds": [f"tag{i % 14}"]} for i in range(140)]
    write_table("rows.csv", rows)
    run("fit", "rows.csv", "--text", "about", "--labels", "kinds", "--method", "ridge", "--quiet")
    out = run("evaluate", "rows.tacit", "rows.csv").stdout
    assert "the 5 best and the 5 worst of 14" in " ".join(out.split())
    assert sum(f" tag{i} " in out for i in range(14)) == 10
