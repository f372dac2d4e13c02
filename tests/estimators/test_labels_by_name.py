"""y as people have it: names, lists and sets of them, "a|b", class numbers; or a matrix."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tacit import GenEML, Labels, Tacit
from tacit.baselines import Ridge
from tacit.estimators.names import labels_of

NAMES = [["gtk", "cli"], [], ["python"], ["cli"]]
WANTED = Labels.from_sets(NAMES)
polars = pytest.importorskip("polars")


@pytest.mark.parametrize(
    "Y",
    [
        NAMES,
        [set(row) for row in NAMES],
        [("gtk", "cli"), None, ("python",), ("cli",)],
        pd.Series(NAMES, index=[3, 1, 2, 0]),
        pd.Series(["gtk|cli", None, "python", "cli"]),
        pd.Series(["gtk, cli", np.nan, "python", "cli"]),
        ["['gtk', 'cli']", "[]", "['python']", "['cli']"],
        pd.DataFrame({"tags": NAMES}),
        polars.Series(NAMES),
        polars.DataFrame({"tags": NAMES}),
        np.array([*map(np.array, NAMES), None], dtype=object)[:4],
    ],
    ids=lambda Y: type(Y).__name__,
)
def test_names_of_each_row_are_labels(Y):
    assert labels_of(Y, "positive-only") == WANTED
    assert labels_of(Y, "complete") == WANTED.as_complete()


@pytest.mark.parametrize("Y", [[[12, 7], [7, 3]], [{12, 7}, {7, 3}], pd.Series([[12, 7], [7, 3]])])
def test_class_numbers_are_names_in_the_order_of_numbers(Y):
    labels = labels_of(Y, "complete")
    assert labels.classes.tolist() == ["3", "7", "12"]
    assert labels.to_array().tolist() == [[0, 1, 1], [1, 1, 0]]


def test_one_class_a_row_is_a_label_of_that_name():
    assert labels_of(np.array([2, 0, 2]), "complete").to_array().tolist() == [
        [0, 1],
        [1, 0],
        [0, 1],
    ]
    assert labels_of(["cat", "dog", "cat"], "complete").classes.tolist() == ["cat", "dog"]


@pytest.mark.parametrize(
    "Y",
    [
        [[0, 1], [1, 0]],
        [[0.0, np.nan], [1, 0]],
        np.array([1, 0, 1]),
        np.eye(3, dtype=int),
        sp.csr_array(np.eye(3)),
        pd.DataFrame({"a": [1, 0], "b": [np.nan, 1]}),
        pd.DataFrame({"a": [1, 0]}),
        [True, False],
    ],
    ids=lambda Y: type(Y).__name__,
)
def test_zeros_and_ones_are_a_matrix_as_before(Y):
    from tacit.labels import as_labels

    assert labels_of(Y, "positive-only") == as_labels(Y, "positive-only")


def test_an_estimator_takes_names_and_completes_by_those_it_knows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    said = [[name for name, x in zip("abc", row) if x > 0] for row in X]
    for method in (Ridge(), Tacit(random_state=0)):
        model = method.fit(X, said)
        assert model.classes_.tolist() == ["a", "b", "c"]
        found = model.complete(X[:2], [["b"], []], k=3)
        assert (0, 1) not in set(zip(found.row, found.label))
        assert len(found.row) == 5
        assert model.score(X[:2], [["c"] if row[2] > 0 else ["a"] for row in X[:2]]) <= 1
    with pytest.raises(ValueError, match="1 names are not in classes, 'd' first"):
        model.complete(X[:1], [["d"]])


def test_a_later_batch_is_read_by_the_names_of_the_first():
    X = np.random.default_rng(0).random((40, 2))
    names = [["a"] if i % 2 else ["b"] for i in range(40)]
    by_names = GenEML(rank=1, max_iter=2, random_state=0).partial_fit(X, names)
    by_labels = GenEML(rank=1, max_iter=2, random_state=0).partial_fit(X, Labels.from_sets(names))
    by_names.partial_fit(X[:9], [["b"]] * 9)
    by_labels.partial_fit(X[:9], Labels.from_sets([["b"]] * 9, classes=["a", "b"]))
    np.testing.assert_array_equal(by_names.decision_function(X), by_labels.decision_function(X))
