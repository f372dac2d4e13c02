"""The demo, on a few of the packages: its figures against loops, its claims against the data."""

import json
from collections import Counter
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tacit.baselines import Ridge
from tacit.cli.trial import CHECKABLE, FIRST, GUESSES, PLACES, result, suggestions, trial
from tacit.datasets.debian import load_debian
from tacit.estimators import Completion
from tacit.labels import Labels, TopK

command = import_module("tacit.cli.demo")  # the module, even where the package exports the function


@pytest.fixture(scope="module")
def few():
    """The packages of every tenth source, and the features that ten of them have."""
    data = load_debian()
    rows = np.flatnonzero(data.extra["source"] % 10 == 0)
    X = data.X[rows]
    columns = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= 10)
    Y = data.Y[rows].positives
    labels = np.unique(Y.indices)
    return replace(
        data,
        X=X[:, columns],
        Y=Labels.positive_only(Y[:, labels], classes=data.Y.classes[labels]),
        feature_names=data.feature_names[columns],
        row_names=data.row_names[rows],
        extra={"source": data.extra["source"][rows]},
    )


@pytest.fixture(scope="module")
def made(few):
    return trial(few, seed=0)


def test_the_trial_hides_a_share_of_the_training_tags_alone(few, made):
    n_train, n_test = len(made.shown), len(made.Y_test)
    assert n_train + n_test == len(few.Y)
    assert abs(n_test / len(few.Y) - 0.2) < 0.05
    assert made.shown.positives.multiply(made.hidden).nnz == 0
    total = made.shown.positives.nnz + made.hidden.nnz + made.Y_test.positives.nnz
    assert total == few.Y.positives.nnz
    assert_allclose(made.hidden.nnz / (total - made.Y_test.positives.nnz), 0.3, atol=0.03)


def test_packages_of_one_source_stay_on_one_side(few):
    source = few.extra["source"]
    each = np.unique(source, return_inverse=True)[1]
    marked = replace(few, X=sp.csr_array(np.eye(each.max() + 1)[each]), feature_names=None)
    made = trial(marked, seed=0)
    assert not set(made.X.indices) & set(made.X_test.indices)


def test_figures_match_a_loop_over_the_packages(made):
    model = Ridge(reg=3.0)
    figures = result("ridge", model, made)
    scores = model.decision_function(made.X)
    scores[made.shown.positives.toarray()] = -np.inf
    hidden = made.hidden.toarray()
    for k in (1, 5, GUESSES):
        found = [
            hidden[i, np.argsort(-scores[i])[:k]].sum() / hidden[i].sum()
            for i in range(len(hidden))
            if hidden[i].any()
        ]
        assert_allclose(figures.recall[k - 1], np.mean(found), rtol=1e-4)
    surest = np.argsort(-scores, axis=None)[:FIRST]
    assert_allclose(figures.precision_first, hidden.ravel()[surest].mean(), atol=0.002)
    fresh, truth = model.decision_function(made.X_test), made.Y_test.positives.toarray()
    for k, value in zip(PLACES, figures.precision):
        right = [truth[i, np.argsort(-fresh[i])[:k]].mean() for i in range(len(truth))]
        assert_allclose(value, np.mean(right), rtol=1e-4)


def test_a_model_that_knows_the_answers_finds_every_hidden_tag(made):
    class Oracle:
        def fit(self, X, Y):
            assert Y.kind == "complete"
            assert Y.positives.nnz == made.shown.positives.nnz

        def complete(self, X, Y, k):
            row, label = made.hidden.nonzero()
            shuffle = np.random.default_rng(0).permutation(len(row))
            return Completion(row[shuffle], label[shuffle], np.ones(len(row)))

        def top_k(self, X, k):
            order = np.argsort(-made.Y_test.positives.toarray().astype(int), axis=1)[:, :k]
            return TopK(order, -np.tile(np.arange(k, dtype=float), (len(order), 1)))

    figures = result("oracle", Oracle(), made)
    assert figures.recall[-1] == 1
    assert figures.precision_first == 1
    assert figures.precision[0] == 1


def test_suggestions_are_unsaid_diverse_and_their_reasons_true(few):
    found = suggestions(few, Ridge(reg=3.0))
    rows = {name: i for i, name in enumerate(few.row_names)}
    columns = {name: j for j, name in enumerate(few.feature_names)}
    labels = {name: j for j, name in enumerate(few.Y.classes)}
    Y = few.Y.positives.toarray()
    assert 5 <= len(found) <= 10
    assert len({few.extra["source"][rows[s.package]] for s in found}) == len(found)
    assert max(Counter(s.tag for s in found).values()) <= 2
    assert [s.probability for s in found] == sorted((s.probability for s in found), reverse=True)
    for s in found:
        row, label = rows[s.package], labels[s.tag]
        assert not Y[row, label]
        assert not s.tag.startswith("role::")
        assert s.said == few.Y.classes[Y[row]].tolist()
        feature, counts = s.because.removesuffix(")").split(" (")
        having = few.X[:, [columns[feature]]].toarray().ravel() > 0
        assert having[row]
        assert counts == f"{Y[having, label].sum():,} of {having.sum():,}"
        assert Y[having, label].mean() >= CHECKABLE


@pytest.fixture
def small(few, monkeypatch):
    monkeypatch.setattr(command, "load_debian", lambda: few)
    monkeypatch.setattr(command, "RANK", 20)


@pytest.mark.usefixtures("small")
def test_the_demo_prints_what_it_writes_and_the_models_beat_popularity(tmp_path, capsys):
    command.demo(tmp_path / "new" / "page.html", as_json=True)
    report = json.loads(capsys.readouterr().out)
    text = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert report["page"] == str(tmp_path / "new" / "page.html")
    assert all(f">{s['package']}<" in text for s in report["suggestions"])
    popularity, *models = report["results"]
    assert [m["model"] for m in models] == ["ridge", "LEML"]
    for model in models:
        assert f">{model['recall'][4]:.1%}<" in text
        assert model["recall"][4] > popularity["recall"][4] + 0.1
        assert model["precision"][0] > popularity["precision"][0] + 0.2


@pytest.mark.usefixtures("small")
def test_the_tables_name_every_model_and_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    command.demo(tmp_path / "page.html")
    out = capsys.readouterr().out
    assert all(name in out for name in ("popularity", "ridge", "LEML", "R@10", "P@5"))
    assert str(tmp_path / "page.html") in out


def test_a_folder_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.delattr(command, "load_debian")
    with pytest.raises(ValueError, match="give the name of a file"):
        command.demo(tmp_path)
