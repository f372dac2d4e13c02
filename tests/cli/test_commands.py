"""fit → predict → complete → evaluate, as a user runs them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import coverage_error, ndcg_score
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import tacit
from tacit import LEML, GenEML, KernelFeatures, Labels, metrics
from tacit.baselines import Ridge
from tacit.cli import app
from tacit.datasets import write_npz, write_svmlight, write_table, write_xmlrepo

WORDS = {
    "cooking": ["stew", "oven", "recipe", "flour"],
    "sailing": ["boat", "mast", "harbour", "wind"],
    "maths": ["proof", "lemma", "theorem", "integer"],
    "[bold]music": ["violin", "chord", "opera", "tempo"],  # Rich must not read it as markup
}


def corpus(n, seed, forgotten=0.0):
    """Rows whose words tell their tags, of which a share was forgotten; and the tags forgotten."""
    rng = np.random.default_rng(seed)
    rows, missing = [], set()
    for i in range(n):
        tags = rng.choice(list(WORDS), size=2, replace=False).tolist()
        said = [tag for tag in tags if rng.random() >= forgotten] or tags
        missing |= {(f"r{i}", tag) for tag in tags if tag not in said}
        text = " ".join(str(word) for tag in tags for word in rng.choice(WORDS[tag], 3))
        rows.append({"name": f"r{i}", "about": text, "kinds": said})
    return rows, missing


def run(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.output
    return done


def run_json(*args):
    return json.loads(run(*args, "--json").stdout)


@pytest.fixture(params=["csv", "tsv", "jsonl", "csv.gz", "parquet"])
def suffix(request):
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return request.param


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("TACIT_DATA", raising=False)
    return tmp_path


@pytest.fixture
def fitted(here):
    """A folder with train.csv and its model, train.tacit."""
    write_table("train.csv", corpus(60, 0)[0])
    run("fit", "train.csv", "--text", "about", "--labels", "kinds", "--quiet")
    return here


def test_the_right_tag_comes_first_from_every_kind_of_table(here, suffix):
    train, new = f"train.{suffix}", f"new.{suffix}"
    write_table(train, corpus(60, 0)[0])
    truth = corpus(20, 1)[0]
    write_table(new, truth)
    facts = run_json("fit", train, "--text", "about", "--labels", "kinds")
    assert facts["rows"] == 60
    assert facts["labels"] == 4
    assert facts["model"] == "train.tacit"

    found = run_json("predict", "train.tacit", new, "--id", "name", "--k", 2)["predictions"]
    assert [f["row"] for f in found] == [row["name"] for row in truth]
    for f, row in zip(found, truth):
        assert {best["label"] for best in f["labels"]} == set(row["kinds"])

    figures = run_json("evaluate", "train.tacit", new)
    assert figures["P@1"] == 1.0
    assert figures["nDCG@5"] == 1.0


@pytest.mark.parametrize("output", ["missing.csv", "missing.jsonl"])
def test_forgotten_tags_are_the_first_completions(here, output):
    rows, missing = corpus(200, 0, forgotten=0.15)
    write_table("rows.jsonl", rows)
    run("fit", "rows.jsonl", "--text", "about", "--labels", "kinds", "--quiet")
    args = ("rows.tacit", "rows.jsonl", "--id", "name", "--top", len(missing))
    found = run_json("complete", *args)["completions"]
    assert len({(f["row"], f["label"]) for f in found} - missing) <= 1
    run("complete", *args, "--output", output)
    with open(output, encoding="utf-8", newline="") as file:
        kept = list(csv.DictReader(file)) if "csv" in output else [json.loads(s) for s in file]
    assert [(k["row"], k["label"], float(k["probability"])) for k in kept] == [
        (f["row"], f["label"], f["probability"]) for f in found
    ]


def test_what_somebody_said_no_to_is_never_proposed_again(here):
    rows, _ = corpus(120, 0, forgotten=0.3)
    write_table("rows.jsonl", rows)
    columns = ("--text", "about", "--labels", "kinds", "--quiet")
    run("fit", "rows.jsonl", *columns)
    args = ("rows.tacit", "rows.jsonl", "--id", "name", "--min-probability", 0)
    proposals = lambda: {(f["row"], f["label"]) for f in run_json("complete", *args)["completions"]}
    first = proposals()
    denied = set(sorted(first)[::2])
    for row in rows:
        row["kinds"] += [f"-{label}" for name, label in sorted(denied) if name == row["name"]]
    write_table("rows.jsonl", rows)
    assert proposals() == first - denied
    run("fit", "rows.jsonl", "--force", *columns)
    assert proposals() == first - denied


def test_completions_under_the_least_probability_are_dropped_and_no_others(here):
    write_table("rows.csv", corpus(200, 0, forgotten=0.15)[0])
    run("fit", "rows.csv", "--text", "about", "--labels", "kinds", "--quiet")
    all_of_them = run_json("complete", "rows.tacit", "rows.csv")["completions"]
    middle = np.unique([c["probability"] for c in all_of_them])[-2]
    kept = run_json("complete", "rows.tacit", "rows.csv", "--min-probability", middle)
    assert kept["completions"] == [c for c in all_of_them if c["probability"] >= middle]
    assert 0 < kept["found"] < len(all_of_them)


def test_evaluate_agrees_with_scikit_learn(fitted):
    rows = corpus(30, 5)[0]
    for row in rows[::2]:
        row["about"] = rows[-1]["about"]  # so that the figures are not all 1
    write_table("new.csv", rows)
    model = tacit.load("train.tacit")
    scores = model.decision_function([row["about"] for row in rows])
    truth = np.array([[name in row["kinds"] for name in model[-1].classes_] for row in rows])
    figures = run_json("evaluate", "train.tacit", "new.csv")
    assert figures["coverage"] == pytest.approx(coverage_error(truth, scores))
    assert figures["nDCG@5"] == pytest.approx(ndcg_score(truth, scores, k=5))
    first = truth[np.arange(len(rows)), scores.argmax(axis=1)]
    assert figures["P@1"] == pytest.approx(first.mean())
    assert figures["P@1"] < 1
    assert "PSP@1" not in figures  # a table has no training rows to take propensities from


def test_predictions_written_are_those_of_the_library(fitted):
    run("predict", "train.tacit", "train.csv", "--k", 9, "--output", "out.csv")
    model = tacit.load("train.tacit")
    proba = model.predict_proba([row["about"] for row in corpus(60, 0)[0]])
    with open("out.csv", encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert len(written) == proba.size  # nine were asked for, there are four
    names = model[-1].classes_.tolist()
    for row in written:
        expected = proba[int(row["row"]), names.index(row["label"])]
        assert float(row["probability"]) == pytest.approx(expected, abs=1e-6)


def test_predictions_of_a_sampled_model_are_those_of_predict_proba(here):
    """Its probabilities are means over draws, which no link makes of the scores."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    Y = (X @ rng.standard_normal((5, 4)) > 0.5).astype(int)
    model = GenEML(rank=2, inference="gibbs", max_iter=30, random_state=0).fit(X, Y)
    model.save("gibbs.tacit")
    write_table("new.csv", ({f"x{j}": v for j, v in enumerate(row)} for row in X[:9].tolist()))
    columns = [word for j in range(5) for word in ("--features", f"x{j}")]
    found = run_json("predict", "gibbs.tacit", "new.csv", *columns, "--k", "4")["predictions"]
    for told, row in zip(found, model.predict_proba(X[:9]), strict=True):
        chances = [label["probability"] for label in told["labels"]]
        wanted = [row[int(label["label"])] for label in told["labels"]]
        assert chances == pytest.approx(wanted, abs=1e-6)


def test_columns_of_numbers_give_a_model_of_features(here):
    write_table("n.csv", [{"a": i % 2, "b": 1 - i % 2, "tags": "ab"[i % 2]} for i in range(20)])
    run("fit", "n.csv", "--features", "a", "--features", "b", "--quiet")
    found = run_json("predict", "n.tacit", "n.csv", "--k", 1)["predictions"]
    assert [f["labels"][0]["label"] for f in found] == ["ab"[i % 2] for i in range(20)]


def dataset(seed):
    """Rows that have label j where feature j is not zero."""
    X = np.random.default_rng(seed).random((40, 3)).astype(np.float32)
    X[X < 0.5] = 0
    X[0] = 1  # every feature and label occurs, so that svmlight can tell how many there are
    return X, (X > 0).astype(int)


@pytest.mark.parametrize("data", ["rows.svm", "rows.txt", "rows", "named"])
def test_matrices_on_disk_and_data_sets_by_name_are_read(here, monkeypatch, data):
    X, Y = dataset(0)
    if data == "rows.svm":
        write_svmlight(data, X, Y)
    elif data == "rows.txt":
        write_xmlrepo(data, X, Y)
    elif data == "rows":
        write_npz(data, X, Y)
    else:
        monkeypatch.setenv("TACIT_DATA", "sets")
        write_npz("sets/named", X, Y)
    run("fit", data, "--output", "m.tacit", "--quiet")
    figures = run_json("evaluate", "m.tacit", data)
    assert figures["rows"] == 40
    best = tacit.load("m.tacit").top_k(X, 1).indices[:, 0]
    assert figures["P@1"] == pytest.approx(Y[np.arange(40), best].mean())


def test_svmlight_rows_are_as_wide_as_the_model_wants_them(here):
    X, Y = dataset(0)
    write_svmlight("train.svm", X, Y)
    write_svmlight("narrow.svm", X[:, :2], Y[:, :2])  # nothing in it says that there are three
    run("fit", "train.svm", "--quiet")
    found = run_json("predict", "train.tacit", "narrow.svm", "--k", 3)["predictions"]
    X[:, 2] = 0
    proba = tacit.load("train.tacit").predict_proba(X)
    for f, row in zip(found, proba, strict=True):
        assert [b["probability"] for b in f["labels"]] == pytest.approx(sorted(row)[::-1])


def test_of_a_data_set_fit_takes_the_training_rows_and_evaluate_the_test_rows(here):
    X, Y = dataset(0)
    X_test, Y_test = dataset(1)
    write_npz("split", X, Y, X_test=X_test[:7], Y_test=Y_test[:7])
    assert run_json("fit", "split", "--output", "m.tacit")["rows"] == 40
    figures = run_json("evaluate", "m.tacit", "split")
    assert figures["rows"] == 7
    # PSP@1 by hand: what the first label of each row weighs, of what the rarest true one would.
    weight = 1 / metrics.propensities(Y)
    first = tacit.load("m.tacit").top_k(X_test[:7], 1).indices[:, 0]
    gained = (Y_test[np.arange(7), first] * weight[first]).sum()
    assert figures["PSP@1"] == pytest.approx(gained / (Y_test[:7] * weight).max(axis=1).sum())


def curved(seed):
    """Rows whose labels no linear model tells, each with one at least."""
    X = np.random.default_rng(seed).uniform(-1, 1, (30, 3))
    product = X[:, 0] * X[:, 1]
    return X, np.column_stack([product > 0, product <= 0, (X**2).sum(axis=1) < 0.8]).astype(int)


@pytest.fixture(params=["new.csv --features a --features b --features c", "new.svm", "text"])
def kernel(request, here):
    """A pipeline with a kernel, saved from Python as k.tacit; new rows, their labels, arguments."""
    if request.param == "text":
        rows, new = corpus(60, 0)[0], corpus(30, 1)[0]
        for row in new[::2]:
            row["about"] = new[-1]["about"]  # so that the figures are not all 1
        Y = Labels.from_sets([row["kinds"] for row in rows], kind="complete")
        steps = (KernelFeatures(gamma=0.5), Ridge(reg=0.1, normalize=None))
        pipeline = make_pipeline(TfidfVectorizer(), *steps)
        tacit.save(pipeline.fit([row["about"] for row in rows], Y), "k.tacit")
        write_table("new.csv", [{"about": row["about"], "tags": row["kinds"]} for row in new])
        truth = np.array([[name in row["kinds"] for name in Y.classes] for row in new])
        return pipeline, [row["about"] for row in new], truth, ["new.csv", "--text", "about"]
    estimator = LEML(rank=2, reg=0.1, normalize=None, random_state=0)
    pipeline = make_pipeline(KernelFeatures(gamma=2.0), estimator).fit(*curved(0))
    tacit.save(pipeline, "k.tacit")
    X, Y = curved(1)
    X[:, 2] = 0  # nothing in the svmlight file says that there is a third feature
    write_svmlight("new.svm", X, Y)
    tags = [[str(j) for j in np.flatnonzero(y)] for y in Y]
    write_table("new.csv", [dict(zip("abc", x.tolist()), tags=t) for x, t in zip(X, tags)])
    return pipeline, X, Y, request.param.split()


def test_predict_runs_every_step_of_a_kernel_pipeline(kernel):
    pipeline, X, _, rows = kernel
    names = [str(name) for name in pipeline[-1].classes_]
    found = run_json("predict", "k.tacit", *rows, "--k", len(names))["predictions"]
    for f, row in zip(found, pipeline.predict_proba(X), strict=True):
        assert {b["label"]: b["probability"] for b in f["labels"]} == pytest.approx(
            dict(zip(names, row)), abs=1e-6
        )


def test_complete_runs_every_step_of_a_kernel_pipeline(kernel):
    pipeline, X, truth, rows = kernel
    names = [str(name) for name in pipeline[-1].classes_]
    all_of_them = ("--min-probability", "0")
    found = run_json("complete", "k.tacit", *rows, *all_of_them)["completions"]
    said = Labels.complete(truth) if "new.svm" in rows else Labels.positive_only(truth)
    expected = pipeline[-1].complete(pipeline[:-1].transform(X), said)
    assert {(f["row"], f["label"]): f["probability"] for f in found} == pytest.approx(
        {
            (row, names[label]): p
            for row, label, p in zip(expected.row, expected.label, expected.probability)
        },
        abs=1e-6,
    )
    assert len(found) == (truth == 0).sum()
    likely = run_json("complete", "k.tacit", *rows)["completions"]  # none that reads as 0.000
    assert likely == [entry for entry in found if entry["probability"] >= 0.001]


def test_evaluate_runs_every_step_of_a_kernel_pipeline(kernel):
    pipeline, X, truth, rows = kernel
    scores = pipeline.decision_function(X)
    figures = run_json("evaluate", "k.tacit", *rows)
    assert figures["coverage"] == pytest.approx(coverage_error(truth, scores))
    assert figures["nDCG@5"] == pytest.approx(ndcg_score(truth, scores, k=5))
    assert figures["nDCG@5"] < 1


def test_a_kernel_pipeline_refuses_what_its_first_step_does_not_read(kernel):
    if isinstance(kernel[0][0], TfidfVectorizer):
        write_svmlight("numbers.svm", *curved(1))
        rows, wanted = ["numbers.svm"], "was trained on text; name its column with --text"
    else:
        rows, wanted = ["new.csv", "--text", "tags"], "was trained on features, not on text"
    done = run("predict", "k.tacit", *rows, code=2)
    assert done.stderr.startswith(f"tacit: k.tacit {wanted}")


def test_labels_new_to_the_model_are_counted_in_one_line_and_ignored(fitted):
    rows = corpus(10, 3)[0]
    write_table("same.csv", rows)
    write_table("more.csv", [row | {"kinds": [*row["kinds"], "zebra"]} for row in rows])
    done = run("evaluate", "train.tacit", "more.csv", "--json")
    assert done.stderr.splitlines() == [
        "1 label of more.csv unknown to the model and ignored, 'zebra' first"
    ]
    assert json.loads(done.stdout) == run_json("evaluate", "train.tacit", "same.csv")


def test_a_fit_resumed_from_its_checkpoint_gives_the_same_model(here):
    write_table("train.csv", corpus(60, 0)[0])
    fit = ("fit", "train.csv", "--text", "about", "--labels", "kinds", "--method", "leml")
    run(*fit, "--output", "straight.tacit", "--max-iter", 4)
    run(*fit, "--output", "early.tacit", "--max-iter", 1, "--checkpoint", "state")
    run(*fit, "--output", "resumed.tacit", "--max-iter", 4, "--checkpoint", "state")
    assert (here / "state").exists()
    straight, resumed = (tacit.load(f"{name}.tacit")[-1] for name in ("straight", "resumed"))
    np.testing.assert_array_equal(straight.model_.W, resumed.model_.W)
    assert straight.history_ == resumed.history_


def test_without_json_a_person_is_told_what_was_done_and_what_comes_next(here):
    write_table("train.csv", corpus(60, 0)[0])
    fit = ("fit", "train.csv", "--text", "about", "--labels", "kinds", "--force")
    assert "unsaid tags are read as no" in run(*fit, "--method", "ridge").stdout
    summary = run(*fit).stdout
    assert "unsaid tags are read as no" not in summary
    assert "tacit complete train.tacit train.csv" in summary
    predicted = run("predict", "train.tacit", "train.csv")
    assert "[bold]music" in predicted.stdout  # not eaten as markup
    assert "the first 10 of 60 rows" in predicted.stderr
    completed = run("complete", "train.tacit", "train.csv")
    assert "label that seems to be missing" in completed.stdout
    assert "P@5" in run("evaluate", "train.tacit", "train.csv").stdout


def test_fit_tells_what_tacit_chose_and_the_model_file_keeps_it(here):
    write_table("train.csv", corpus(60, 0)[0])
    fit = ("fit", "train.csv", "--text", "about", "--labels", "kinds", "--force")
    facts = run_json(*fit)
    assert (facts["method"], facts["labels_kind"]) == ("Tacit", "positive-only")
    assert facts["report"] == tacit.load("train.tacit")[-1].report_.as_dict()
    shown = run(*fit).stdout
    told = str(tacit.load("train.tacit")[-1].report_)
    assert "".join(told.split()) in "".join(shown.replace("chosen", "").split())  # lines may wrap
    assert run_json(*fit, "--method", "ridge")["report"] is None


@pytest.mark.parametrize(("given", "meant"), [("0.001s", "0.001s"), ("1e-3", 0.001)])
def test_a_budget_is_the_methods_and_ends_its_choosing(here, given, meant):
    write_table("train.csv", corpus(60, 0)[0])
    fit = ("fit", "train.csv", "--text", "about", "--labels", "kinds", "--budget", given)
    assert any("more than the budget leaves" in note for note in run_json(*fit)["report"]["notes"])
    assert tacit.load("train.tacit")[-1].budget == meant


def test_datasets_lists_names_and_sizes_and_a_damaged_one_hides_none(here, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", "sets")
    X, Y = dataset(0)
    write_npz("sets/mine", X, Y, X_test=X[:7], Y_test=Y[:7])
    write_npz("sets/broken", X, Y)
    for path in (here / "sets" / "broken").glob("*.npz"):
        path.write_bytes(b"PK")
    listed = {d["name"]: d for d in run_json("datasets")["datasets"]}
    sizes = ("rows", "test_rows", "features", "labels")
    assert [listed["mine"][key] for key in sizes] == [40, 7, 3, 3]
    assert [listed["debian"][key] for key in sizes] == [30283, 0, 3880, 366]
    assert listed["broken"]["rows"] == 0
    assert "mine" in run("datasets").stdout


def test_demo_is_given_what_the_user_asked_for(here, monkeypatch):
    asked = {}
    monkeypatch.setattr("tacit.cli.demo.demo", lambda **kwargs: asked.update(kwargs))
    run("demo", "--output", "page.html", "--seed", 3, "--json")
    assert asked == {"output": Path("page.html"), "seed": 3, "as_json": True}


def test_version_and_help():
    assert run("--version").stdout == f"tacit {tacit.__version__}\n"
    for command in ("demo", "fit", "predict", "complete", "evaluate", "datasets"):
        assert f"Example: tacit {command}" in run(command, "--help").stdout


def test_the_installed_command_keeps_stdout_for_the_result(here):
    write_table("train.csv", corpus(60, 0)[0])
    command = [sys.executable, "-c", "from tacit.cli import main; main()"]
    fit = ["fit", "train.csv", "--text", "about", "--labels", "kinds", "--json"]
    done = subprocess.run(command + fit, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 60
    assert "Tacit: choosing" in done.stderr  # what it says as it goes
    done = subprocess.run([*command, "fit", "no.csv"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tacit: there is no file no.csv\n"
