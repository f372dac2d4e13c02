"""A model of one's own that is no product of two matrices: cosine neighbours, kept sparse."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

from tacit.basics.params import an_int
from tacit.estimators import Fit, MultiLabelEstimator
from tacit.models import Model
from tacit.testing import CHECKS, check_save_and_load_give_the_identical_model, problem

# ---- the example: CONTRIBUTING.md points to it


@dataclass(frozen=True, eq=False)
class Neighbours(Model):
    """Rows of unit length, and what was said of them: the k nearest of a new row vote."""

    X: sp.csr_array
    Y: sp.csr_array
    k: int
    H = None  # the scores are no inner products
    n_labels = n_codes = property(lambda self: self.Y.shape[1])
    dtype = property(lambda self: self.X.dtype)

    def factors(self, block):
        votes = sp.csr_array(rows_of(block) @ self.X.T)  # the cosines
        for row in np.split(votes.data, votes.indptr[1:-1]):
            row[:] = np.argsort(np.argsort(-row, kind="stable")) < self.k
        return np.asarray((votes @ self.Y).toarray() / self.k, self.dtype), None

    def probability(self, scores):
        return scores

    def numbers(self):
        return {"k": self.k, "n_rows": self.X.shape[0]}

    def arrays(self):
        parts = (("X", self.X), ("Y", self.Y))
        return {f"{n}_{a}": getattr(S, a) for n, S in parts for a in ("data", "indices", "indptr")}

    @classmethod
    def from_arrays(cls, n_weights, n_labels, numbers, arrays):
        def sparse(name, width):
            parts = tuple(arrays[f"{name}_{a}"] for a in ("data", "indices", "indptr"))
            S = sp.csr_array(parts, shape=(numbers["n_rows"], width))
            S.check_format(full_check=True)  # SciPy trusts the arrays it is given
            return S

        return cls(sparse("X", n_weights), sparse("Y", n_labels), numbers["k"])


class CosineKNN(MultiLabelEstimator):
    """P(true) is the share of the nearest rows that say so."""

    label_kinds, model_kinds = ("complete", "positive-only"), (Neighbours,)
    _checks = {"n_neighbors": an_int(at_least=1)}
    normalize, fit_intercept, device, random_state, verbose = "l2", False, "cpu", None, False

    def __init__(self, n_neighbors=10, *, threshold=0.5, k=None):
        self.n_neighbors, self.threshold, self.k = n_neighbors, threshold, k

    def _fit(self, problem):
        X, Y = zip(*problem.blocks.sum(listed))
        return Fit(Neighbours(sp.vstack(X, format="csr"), sp.vstack(Y), self.n_neighbors))


def listed(block):
    """A list of one: lists add to longer ones."""
    return [(rows_of(block), block.Y.scipy().astype(np.float32))]


def rows_of(block):
    return sp.csr_array(block.X.scipy() if hasattr(block.X, "scipy") else block.X)


# ---- and its laws


@pytest.mark.parametrize("kind", CosineKNN.label_kinds)
@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract_of_every_method(monkeypatch, check, kind):
    if check is check_save_and_load_give_the_identical_model:
        monkeypatch.setitem(__import__("tacit.saved").saved.METHODS, "CosineKNN", CosineKNN)
    check(CosineKNN(3), kind)


def test_it_votes_as_scikit_learns_neighbours_do():
    X, Y = problem("complete")
    scores = CosineKNN(4).fit(X[10:], Y[10:]).decision_function(X[:7])  # the last row is empty
    near = NearestNeighbors(n_neighbors=4, metric="cosine").fit(X[10:]).kneighbors(X[:7])[1]
    wanted = Y.to_sparse().toarray()[10:][near].mean(axis=1)
    assert_allclose(scores, wanted, atol=1e-7)


def test_its_rows_stay_sparse_in_the_model_and_in_its_file(tmp_path):
    X, Y = problem("complete")
    model = CosineKNN(4).fit(X, Y)
    header, arrays = model.contents()
    assert arrays["X_data"].size == X.nnz == model.model_.X.nnz
    again = CosineKNN(4).restore(header, arrays)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="indices must be < 15"):
        CosineKNN(4).restore(header, arrays | {"X_indices": arrays["X_indices"] + 99})
