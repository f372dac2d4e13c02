"""A machine with a GPU may have PyTorch and no Numba: `device="torch"` is the same code."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

ALONE = """
import sys

sys.modules["numba"] = None  # whoever imports it fails
import numpy as np
import scipy.sparse as sp

from tacit import LEML, MPU, SEM, FaIE, GenEML, Labels, Tacit, load
from tacit.baselines import Ridge

rng = np.random.default_rng(0)
X = sp.random_array((120, 20), density=0.3, rng=rng, format="csr", dtype=np.float32)
Y = Labels.complete(X @ rng.standard_normal((20, 8)) > 0.8)
models = [
    LEML(3), LEML(3, loss="logistic"), FaIE(3), MPU(max_iter=2), GenEML(3), SEM(3, max_iter=2),
    GenEML(3, inference="online"), SEM(3, head="kernel", max_iter=2), Ridge(), Tacit(cv=3),
]
for model in models:
    model.set_params(device="torch").fit(X, Y)
    model.complete(X, Y.as_positive_only(), 2)
    model.save("model.tacit")
    assert (load("model.tacit").top_k(X, 3).indices == model.top_k(X, 3).indices).all()
assert any("it needs Numba" in note for note in models[-1].report_.notes)
print("all of them")
"""


def test_every_method_runs_with_pytorch_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "all of them\n", done.stderr
