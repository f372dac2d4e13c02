"""`tacit missing`: what the library says of a table, told with its doubts."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.datasets import read_table, write_table
from tacit.missing import estimate

WORDS = ["stew oven flour", "boat mast wind", "proof lemma sum", "violin chord opera"]
TAGS = ["cooking", "sailing", "maths", "<b>music"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with rows.csv, of whose tags about 40 % were never said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    rng = np.random.default_rng(0)
    true = rng.random((300, 4)) < 0.4
    said = true & (rng.random(true.shape) < 0.6)
    rows = [
        {
            "about": " ".join([*(w for w, t in zip(WORDS, row) if t), "and more"]),
            "kinds": [tag for tag, s in zip(TAGS, heard) if s],
        }
        for row, heard in zip(true, said)
    ]
    write_table("rows.csv", rows)
    return tmp_path


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


COLUMNS = ("rows.csv", "--text", "about", "--labels", "kinds")


def of_library(path):
    """What `tacit.missing.estimate` says of the model at `path`."""
    table = read_table("rows.csv", labels="kinds", text="about")
    model = tacit.load(path)
    with warnings.catch_warnings(action="ignore"):
        return estimate(model[-1], model[0].transform(table.text), table.Y)


def test_a_models_figures_are_those_of_the_library(here):
    run("fit", *COLUMNS, "--method", "mpu", "--output", "m.tacit", "--quiet")
    told = json.loads(run("missing", "rows.csv", "--model", "m.tacit", "--json").stdout)
    found = of_library("m.tacit")
    assert list(told["missing"].values()) == pytest.approx(found.total_missing, abs=1e-3)
    assert list(told["share"].values()) == pytest.approx(found.share, abs=1e-3)
    assert told["doubt"] == found.warning
    by_name = {label["label"]: label for label in told["labels"]}
    for j, name in enumerate(found.classes):
        one = by_name[name]
        ends = (found.missing[j], found.low[j], found.high[j])
        assert one["said"] == found.said[j]
        assert list(one["missing"].values()) == pytest.approx(ends, abs=1e-3)
        assert one["known"] == found.rates.identifiable[j]
        assert (one["doubt"] is None) == one["known"]


def test_without_a_model_it_is_what_a_fit_says_and_the_page_says_it_too(here):
    told = json.loads(run("missing", *COLUMNS, "--output", "page.html", "--json").stdout)
    run("fit", *COLUMNS, "--output", "m.tacit", "--quiet")
    share, low, high = of_library("m.tacit").share
    assert list(told["share"].values()) == pytest.approx((share, low, high), abs=1e-3)
    assert low < 0.4 < high
    page = (here / "page.html").read_text(encoding="utf-8")
    assert f"{share:.0%} of all that is true" in page
    assert "&lt;b&gt;music" in page
    assert "<b>" not in page
    again = run("missing", *COLUMNS, "--output", "page.html", code=2)
    assert "--force" in again.stderr


def test_doubts_are_said_in_words(here):
    """Few rows cannot tell the total, nor anything of a label that was said three times."""
    lines = (here / "rows.csv").read_text(encoding="utf-8").splitlines()
    few = "\n".join([*lines[:25], *(f"salt and more,{tag}" for tag in "abc")])
    (here / "rows.csv").write_text(few + "\n", encoding="utf-8")
    run("fit", *COLUMNS, "--method", "geneml", "--output", "m.tacit", "--quiet")
    out = " ".join(run("missing", "rows.csv", "--model", "m.tacit").stdout.split())
    assert "no more than a guess" in out
    assert "Not known: how much is missing in all is not identifiable" in out
    assert "too few rows are sure of it" in out


def test_what_cannot_be_asked_is_one_clear_sentence(here):
    asked = lambda *more: run("missing", *COLUMNS, *more, code=2).stderr.strip()
    assert "must end in .html" in asked("--output", "page.csv")
    assert "--noes none" in asked("--noes", "all")
    run("fit", *COLUMNS, "--method", "ridge", "--output", "r.tacit", "--quiet")
    assert "leave --model out" in asked("--model", "r.tacit")
