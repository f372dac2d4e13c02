"""Bad input: exit code 2, one clear line on stderr, nothing written."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.datasets import write_npz

BAD = {
    "fit no.csv --text about": "there is no file no.csv",
    "fit folder/no.csv --text about": "there is no file folder/no.csv",
    "fit rows.csv --text abuot": "it has about, a, b, tags; did you mean 'about'?",
    "fit rows.csv --text about --labels kinds": "rows.csv has no column 'kinds'",
    "fit rows.csv": "Give --text COLUMN or --features COLUMN",
    "fit rows.csv --text about --features a": "not both",
    "fit rows.csv --features about": "line 2, column 'about': expected a number; got 'wind boat'",
    "fit rows.csv --features a --features b": "no number in row 2, column 'b'; fill",
    "fit cut.csv --text about": "cut.csv, the row that begins in line 3",
    "fit short.csv --text about": "short.csv, line 3: expected 2 cells; got 1",
    "fit wordless.csv --text about --method leml --quiet": "wordless.csv cannot be learnt from",
    "fit untagged.csv --text about": "no tag",
    "fit no_such_set": "there is no data set 'no_such_set'",
    "fit matrices --text about": "matrices is not a table, so it has no column 'about'",
    "fit notes.doc": "cannot tell the format of notes.doc",
    "fit rows.csv --text about --method lmel": "--method must be one of binaryrelevance, ease",
    "fit rows.csv --text about --method ridge --rank 3": "--rank is not for --method ridge",
    "fit no.csv --rank 50": "--rank is not for --method tacit, which has none; leave it out, or",
    "fit no.csv --rank 5": "give another --method: faie, geneml, labelspacereduction, leml, nnml",
    "fit no.csv --method leml --budget 9s": "--budget is not for --method leml, which has none",
    "fit no.csv --budget soon": "--budget must be a time such as 60s, 5min or 1h; got 'soon'",
    "fit no.csv --checkpoint state": "--checkpoint is not for --method tacit, which makes no",
    "fit rows.csv --text about": "on at least 10 rows; rows.csv has 2: give more, or another",
    "fit nan --method leml": "nan has no number in row 1, column 1 (and in 7 cells more)",
    "fit no.csv --method leml --rank 0": '--rank must be an int of at least 1, or "auto"; got 0',
    "fit rows.csv --text about --output matrices": "--output matrices is a folder",
    "fit rows.csv --text about --method leml --quiet --checkpoint rows.csv": "rows.csv is damaged",
    "predict no.tacit rows.csv": "there is no file no.tacit",
    "predict rows.csv rows.csv": "rows.csv is damaged or was not written by tacit",
    "predict text.tacit matrices": "matrices is not a table",
    "predict text.tacit empty.csv": "empty.csv has no rows",
    "predict text.tacit rows.csv --id key": "rows.csv has no column 'key'",
    "predict text.tacit rows.csv --output out.doc": "cannot tell the format of out.doc",
    "predict numbers.tacit rows.csv": "Give --text COLUMN or --features COLUMN",
    "predict numbers.tacit rows.csv --text about": "was trained on features, not on text",
    "predict numbers.tacit rows.csv --features a": "rows of 2 numbers; those of rows.csv have 1",
    "complete text.tacit rows.csv --labels about": "none of the 2 labels of rows.csv, 'boat wind'",
    "complete numbers.tacit three": "three has 3 labels without names, and numbers.tacit has 2",
    "evaluate hostile.tacit rows.csv": "columns that are not names",
    "fit rowz.csv --text about": "there is no file rowz.csv; did you mean rows.csv?",
    "fit rows.csv --text about --method rigde": "got 'rigde'; did you mean ridge?",
    "fit rows.csv --text about --output text.tacit": "text.tacit is there already; --force writes",
    "fit text.tacit": "text.tacit is a model; give the rows",
    "fit upper.csv --text about --quiet": "3 labels are there in several spellings, as A and a; "
    "--case lower settles it, and --yes goes on as it is",
    "look text.tacit": "text.tacit is a model; give the rows",
    "look table.txt": "; if it is a table, give --format csv",
    "look rows.csv --labels Tags": "it has about, a, b, tags; did you mean 'tags'?",
    "look no.csv": "there is no file no.csv",
    "look rows.csv --text abot": "rows.csv has no column 'abot'",
    "predict rows.csv text.tacit": "the model comes first, then the rows; did you mean text.tacit",
    "predict txt.tacit rows.csv": "there is no file txt.tacit; did you mean text.tacit?",
    "predict text.tacit rows.csv --output old.csv": "old.csv is there already; --force writes over",
    "complete text.tacit rows.csv --output old.csv": "old.csv is there already; --force writes",
    "complete text.tacit rows.csv --output matrices": "--output matrices is a folder",
    "demo --output old.csv": "old.csv is there already; --force writes over it",
    "datasets --download no_such_set": "download does not know 'no_such_set'",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "none"))
    files = {
        "rows.csv": 'about,a,b,tags\nwind boat,1,2,x|y\nboat wind,3,,"y"\n',
        "cut.csv": 'about,tags\nwind,x\n"boat,y\n',
        "short.csv": "about,tags\nwind,x\nboat\n",
        "wordless.csv": "about,tags\n!,x\n?,y\n",
        "untagged.csv": "about,tags\nwind,\n",
        "empty.csv": "about,tags\n",
        "notes.doc": "about",
        "old.csv": "a",
        "table.txt": "about,tags\nx,a\n",
        "upper.csv": "about,tags\n" + "x,a\ny,A\nz,b\nw,B\nv,c\nu,C\n" * 4,
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    X = np.eye(4, 2, dtype=np.float32)
    write_npz("matrices", X, np.eye(4, 2, dtype=int))
    write_npz("nan", X * np.float32(np.nan), np.eye(4, 2, dtype=int))
    write_npz("three", X, np.eye(4, 3, dtype=int))
    fit = "fit rows.csv --text about --method leml --output text.tacit --quiet"
    assert CliRunner().invoke(app, fit.split()).exit_code == 0
    model = tacit.LEML(rank=1).fit(X, np.eye(4, 2, dtype=int))
    tacit.save(model, "numbers.tacit")
    tacit.save(model, "hostile.tacit", extra={"columns": {"text": [["a"]]}})
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_writes_nothing(here, line):
    before = contents(here)
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("tacit: ")
    assert BAD[line] in done.stderr
    assert contents(here) == before


def test_a_bug_is_not_taken_for_bad_input(here, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("tacit.datasets.read_table", broken)
    done = CliRunner().invoke(app, ["fit", "rows.csv", "--text", "about"])
    assert isinstance(done.exception, ZeroDivisionError)


def test_names_from_a_file_cannot_command_the_terminal(here):
    Path("esc.csv").write_text("about,tags\nwind,\x1b[2Jx\nboat,y\n", encoding="utf-8")
    fit = ["fit", "esc.csv", "--text", "about", "--method", "leml", "--quiet"]
    assert CliRunner().invoke(app, fit).exit_code == 0
    for args in (["predict", "esc.tacit", "esc.csv"], ["complete", "text.tacit", "esc.csv"]):
        done = CliRunner().invoke(app, args, color=False)
        assert done.output
        assert "\x1b" not in done.output
