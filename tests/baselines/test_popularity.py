import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from tacit import Labels
from tacit.baselines import Popularity


def test_probability_is_the_share_of_yes_among_what_was_said(masked):
    X, labels = masked
    A = labels.to_array()
    wanted = np.nanmean(A, axis=0)
    assert_allclose(Popularity().fit(X, labels).predict_proba(X), np.tile(wanted, (40, 1)))


def test_every_row_gets_the_commonest_labels(toy):
    X, Y, _ = toy
    order = np.argsort(-Y.toarray().sum(0), kind="stable")
    top = Popularity().fit(X, Labels.positive_only(Y)).top_k(X, 3).indices
    assert_array_equal(top, np.tile(order[:3], (40, 1)))
