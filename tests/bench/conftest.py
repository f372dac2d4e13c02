"""A small data set where `load` finds it."""

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.datasets import write_npz
from tacit.labels import Labels


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The name of a data set of 240 + 60 rows and 12 labels that follow from the features."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.4, rng=rng, format="csr", dtype=np.float32)
    Y = X @ rng.standard_normal((20, 12)) > 0.8
    Y_test = Labels.complete(Y[240:])
    write_npz(
        tmp_path / "data" / "toy", X[:240], Labels.complete(Y[:240]), X_test=X[240:], Y_test=Y_test
    )
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    return "toy"
