"""A said no among silence: what it is worth, on made-up data and on real ones."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from tacit import LEML, MPU, GenEML, Labels
from tacit.baselines import Elkan08
from tacit.datasets import load
from tacit.metrics import precision_at_k
from tacit.missing import Positives, hide
from tacit.testing import check_noes_help

LEARNING = [
    LEML(rank=5, reg=0.1, random_state=0),
    LEML(rank=5, loss="logistic", max_iter=20, random_state=0),
    GenEML(rank=5, max_iter=10, random_state=0),
    MPU(1, c=0.3, random_state=0),
    MPU(1, solver="newton", random_state=0),
    Elkan08(variant="weighted", random_state=0),
]


@pytest.mark.parametrize("estimator", LEARNING, ids=str)
def test_noes_help_the_methods_that_learn_from_them(estimator):
    check_noes_help(estimator)


class ForgettingSilence(LEML):
    """Where anybody said no, the yeses and the noes are all that is learned from."""

    def fit(self, X, Y):
        return super().fit(X, Y if Y.noes is None else Labels.masked(Y, Y.said()))


def test_the_law_notices_noes_that_hurt():
    with pytest.raises(AssertionError, match=r"cost \d+\.\d\d points of nDCG@5"):
        check_noes_help(ForgettingSilence(rank=5, reg=0.1, random_state=0))


# Real data, of which labels are hidden

METHODS = {
    "squared": LEML(rank=100, random_state=0),
    "logistic": LEML(rank=50, loss="logistic", random_state=0),
}


def half(name):
    """X and Y to learn from, and to be judged by."""
    data = load(name)
    if data.X_test is not None:
        return data.X, data.Y, data.X_test, data.Y_test
    test = np.random.default_rng(0).random(len(data.Y)) < 0.2
    return data.X[~test], data.Y[~test], data.X[test], data.Y[test]


def pattern(rows, labels, shape):
    return sp.csr_array((np.ones(len(rows), bool), (rows, labels)), shape=shape)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="needs the real data sets")
@pytest.mark.parametrize(
    ("name", "hidden", "method", "gain"),
    [
        ("delicious", 0.8, "squared", 0.3),
        ("delicious", 0.8, "logistic", 1.0),
        ("debian", 0.5, "squared", 0.3),
        ("debian", 0.5, "logistic", -0.1),  # the review itself has found all there is to gain
    ],
)
def test_noes_of_a_review_help_on_real_data_and_noes_at_random_do_no_harm(
    name, hidden, method, gain
):
    X, Y, X_test, Y_test = half(name)
    said = hide(Y.as_complete(), Positives(hidden), random_state=0).labels
    n = said.positives.nnz

    def fit(yes, no=None):
        return METHODS[method].fit(X, Labels.positive_only(yes, no=no))

    def figure(*labels):
        return 100 * precision_at_k(Y_test, fit(*labels).top_k(X_test, 3), 3)

    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, size, 2 * n) for size in Y.shape]  # of which few are true
    no = pattern(*drawn, Y.shape)
    assert figure(said, sp.csr_array(no > Y.positives)) > figure(said) - 0.4

    found = fit(said).complete(X, said, k=10)
    looked_at = pattern(found.row[:n], found.label[:n], Y.shape)
    right = sp.csr_array(looked_at.multiply(Y.positives))
    yes, no = sp.csr_array(said.positives + right), sp.csr_array(looked_at > right)
    assert figure(yes, no) > figure(yes) + gain
