"""`tacit look` and the first lines of `tacit fit`: what was understood, and what stops."""

import json
import shlex
from pathlib import Path

import pytest
from awkward import ROWS, make, tables
from typer.testing import CliRunner

import tacit
from tacit.cli import app
from tacit.datasets import write_npz

TABLES = tables()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("awkward")
    make(made)
    return made


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A folder to write in, with the tables in the folder beside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


def words(options):
    """Options of `read_table` as they are typed."""
    pairs = [
        (k, v) for k, many in options.items() for v in ([many] if isinstance(many, str) else many)
    ]
    return [word for k, v in pairs for word in (f"--{k}", v)]


def that(said):
    return [name for name, table in TABLES.items() if said(table)]


@pytest.mark.parametrize("name", that(lambda t: not t.refused))
def test_look_shows_what_is_read_and_what_is_doubted(name, here):
    table = TABLES[name]
    shown = json.loads(run("look", here / name, *words(table.options), "--json").stdout)
    assert [d["what"] for d in shown["doubts"] if table.doubt in d["what"]] or not table.doubt
    if not table.doubt:
        assert (shown["rows"], shown["labels"]["n"]) == (60, 10)
        assert table.note in " ".join(shown["notes"])
        assert shown["plan"]["parts"][0] == "ridge"


@pytest.mark.parametrize("name", that(lambda t: t.refused))
def test_look_refuses_what_cannot_be_read_in_one_line(name, here):
    options = {"labels": "tags", **TABLES[name].options}
    done = run("look", here / name, *words(options), code=2)
    (line,) = done.stderr.splitlines()
    assert TABLES[name].refused in line
    assert done.stdout == ""


@pytest.mark.parametrize("name", that(lambda t: not t.refused and not t.doubt and not t.options))
def test_the_command_that_look_ends_with_learns_what_was_meant(name, here):
    command = shlex.split(json.loads(run("look", here / name, "--json").stdout)["next"])
    assert command[:3] == ["tacit", "fit", str(here / name)]
    facts = json.loads(run(*command[1:], "--method", "ridge", "--json").stdout)
    assert facts["reading"]["columns"]["text"] == ["about"]
    assert (facts["rows"], facts["labels"]) == (60, 10)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("wide.csv", ["--labels", "*"]),
        ("a line each, no id.csv", ["--id", "name"]),
        ("shouted.csv", ["--case", "lower"]),
    ],
)
def test_look_finds_by_itself_what_settles_its_doubt(name, option, here):
    command = shlex.split(json.loads(run("look", here / name, "--json").stdout)["next"])
    assert command[-2:] == option
    facts = json.loads(run(*command[1:], "--method", "ridge", "--json").stdout)
    assert (facts["rows"], facts["labels"], facts["reading"]["doubts"]) == (60, 10, [])


@pytest.mark.parametrize("name", that(lambda t: t.doubt))
def test_a_doubt_stops_a_fit_and_yes_goes_on(name, here):
    fit = ["fit", here / name, "--text", "about", *words(TABLES[name].options)]
    fit += ["--method", "ridge", "--output", "m.tacit", "--quiet"]
    done = run(*fit, code=2)
    (line,) = done.stderr.splitlines()
    assert TABLES[name].doubt in line
    assert line.endswith("settles it, and --yes goes on as it is")
    assert not Path("m.tacit").exists()
    assert run(*fit, "--yes").stdout == "m.tacit\n"


@pytest.mark.parametrize("columns", [80, 50])
@pytest.mark.parametrize("name", that(lambda t: not t.refused))
def test_nothing_is_wider_than_the_terminal(name, columns, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run("look", here / name, *words(TABLES[name].options)).stdout
    assert max(map(len, shown.splitlines())) <= columns
    assert shown.split()[:4] == ["column", "kind", "such", "as"]
    assert "next" in shown


def test_fit_begins_with_what_was_understood_and_what_it_will_take(here):
    done = run("fit", here / "cp1252.csv", "--text", "about")
    told = done.stderr.splitlines()
    assert told[0].split(maxsplit=1)[1].strip() == "cp1252.csv: semicolons between cells, cp1252"
    assert any("it is not UTF-8, so it is read as cp1252" in line for line in told)
    assert any(line.startswith("the fit will take about ") and "ridge" in line for line in told)
    assert "table" not in done.stdout


def test_look_at_matrices_and_a_set_without_rows_enough_for_a_plan(here):
    write_npz("few", [[1.0], [0.0]], [[1], [0]])
    shown = run("look", "few").stdout
    assert "1 × 1" not in shown
    assert "a fit" not in shown
    assert json.loads(run("look", "few", "--json").stdout)["plan"] is None
    shown = run("look", "debian").stdout
    assert "ridge" in shown
    assert "said yes 109,132" in shown


def test_look_takes_titles_for_text_and_a_first_column_without_a_name(here):
    with open("films.csv", "w", encoding="utf-8") as file:
        file.write(",title,genres\n0,Toy Story (1995),Adventure|Comedy\n1,Heat (1995),Crime\n")
        file.write("2,Grumpier Old Men (1995),Comedy|Romance\n")
    shown = json.loads(run("look", "films.csv", "--json").stdout)
    assert shown["next"] == "tacit fit films.csv --text title --labels genres"
    assert [(c["name"], c["kind"]) for c in shown["all_columns"]] == [
        ("title", "text"),
        ("genres", "tags"),
    ]


def test_a_model_remembers_the_id_and_a_separator_that_few_rows_cannot_show(here):
    fit = ["fit", here / "blanks.csv", "--text", "about", "--id", "name", "--method", "ridge"]
    run(*fit, "--output", "m.tacit", "--quiet")
    row = next(row for row in ROWS if len(row["tags"]) > 1)
    with open("new.csv", "w", encoding="utf-8") as file:
        file.write(f"name,about,tags\nnew,{row['about']},{' '.join(row['tags'])}\n")
    found = json.loads(run("complete", "m.tacit", "new.csv", "--json").stdout)["completions"]
    assert {entry["row"] for entry in found} == {"new"}
    assert not {entry["label"] for entry in found} & set(row["tags"])
    with open("unnamed.csv", "w", encoding="utf-8") as file:
        file.write(f"about,tags\n{row['about']},gtk\n")
    done = run("predict", "m.tacit", "unnamed.csv", "--json")
    assert [p["row"] for p in json.loads(done.stdout)["predictions"]] == [0]
    assert done.stderr == "unnamed.csv has no column 'name', so its rows are numbered\n"


def test_a_column_for_each_tag_is_learnt_with_its_noes(here):
    fit = ["fit", here / "wide in words.csv", "--text", "about", "--labels", "*", "--json"]
    facts = json.loads(run(*fit, "--noes", "zeros", "--output", "m.tacit").stdout)
    assert facts["labels_kind"] == "masked"
    assert facts["reading"]["labels"]["written"] == "a column each, noes said and blanks unsaid"
    assert json.loads(run("complete", "m.tacit", here / "wide in words.csv", "--json").stdout)[
        "found"
    ]
    assert json.loads(run(*fit, "--output", "n.tacit").stdout)["labels_kind"] == "positive-only"


def test_the_old_name_of_output_still_writes_the_model(here):
    done = run("fit", here / "bars.csv", "--text", "about", "--model", "old.tacit", "--quiet")
    assert done.stdout == "old.tacit\n"
    assert "--output" in done.stderr
    assert tacit.load("old.tacit")


def test_later_commands_say_what_should_be_known_of_a_table(here):
    fit = ["fit", here / "bars.csv", "--text", "about", "--method", "ridge", "--output", "m.tacit"]
    run(*fit, "--quiet")
    told = run("complete", "m.tacit", here / "cp1252.csv").stderr
    assert "cp1252.csv: it is not UTF-8, so it is read as cp1252" in told
    told = run("complete", "m.tacit", here / "shouted.csv").stderr
    assert "shouted.csv: 9 labels are there in several spellings" in told


def test_force_writes_over_a_file(here):
    fit = ["fit", here / "bars.csv", "--text", "about", "--method", "ridge", "--quiet"]
    run(*fit)
    run(*fit, code=2)
    assert run(*fit, "--force").stdout == "bars.tacit\n"
    for command in ("complete", "predict"):
        args = [command, "bars.tacit", here / "bars.csv", "--output", "out.csv"]
        run(*args, "--force")
        run(*args, code=2)
        run(*args, "--force")
