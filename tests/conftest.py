"""Shared problems and places: every backend, every way rows may live."""

import os
import shutil
from itertools import combinations, product

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # two threads on toy sizes cost more than they give
if shutil.which("nvidia-smi") is None:  # without a GPU its kernels run in Triton's interpreter
    os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import pytest
import scipy.sparse as sp

from tacit.backends import get_backend
from tacit.blocks import MemoryBlocks, Rows, StreamedBlocks, write_shards
from tacit.labels import Labels

PLACES = ["memory", "three blocks", "streamed", "disk", "dask"]


def pairwise(**factors):
    """Parametrise by few cases in which every two values of different factors meet.

    One formula under many switches: what two of them do together is tested, and what three do only
    by chance. The full cross of ten pairs of values would say the same many times.
    """
    names, cases = list(factors), list(product(*factors.values()))
    met = lambda case: set(combinations(enumerate(map(id, case)), 2))
    left, chosen = set().union(*map(met, cases)), []
    while left:
        chosen.append(max(cases, key=lambda case: len(met(case) & left)))
        left -= met(chosen[-1])
    return pytest.mark.parametrize(names, chosen)


@pytest.fixture(params=["cpu", "torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param != "cpu":
        torch = pytest.importorskip("torch")
        if request.param == "cuda" and not torch.cuda.is_available():
            pytest.skip("no CUDA device")
    return request.param


@pytest.fixture
def backend(device):
    return get_backend(device)


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as c:
        yield c


@pytest.fixture
def blocks_of(request, tmp_path):
    """A function that puts (X, labels) into blocks of the named kind."""

    def make(X, labels, where):
        rows = Rows(X, labels)
        if where == "memory":
            return MemoryBlocks.from_rows(rows)
        if where == "three blocks":
            return MemoryBlocks.from_rows(rows, n_blocks=3)
        if where == "streamed":
            return StreamedBlocks.from_rows(rows, n_blocks=3)
        if where == "disk":
            parts = ((part.X, part.labels) for part in rows.cut(3))
            return write_shards(tmp_path / "shards", parts, overwrite=True)
        from tacit.blocks.dask import DaskBlocks

        return DaskBlocks.from_rows(request.getfixturevalue("client"), rows, n_blocks=3)

    return make


@pytest.fixture
def toy():
    """A rank-3 problem: X sparse, Y 0/1, 60 % of the entries observed, an empty row and column."""
    rng = np.random.default_rng(0)
    n, d, n_labels, r = 40, 12, 9, 3
    X = sp.random_array((n, d), density=0.4, rng=rng, format="lil")
    X[5], X[:, 3] = 0, 0
    X = sp.csr_array(X)
    Z = X @ rng.standard_normal((d, r)) @ rng.standard_normal((r, n_labels))
    Y = sp.csr_array((Z > 0).astype(np.int8))
    observed = sp.csr_array(rng.random((n, n_labels)) < 0.6)
    return X, Y, observed


@pytest.fixture
def masked(toy):
    X, Y, observed = toy
    return X, Labels.masked(Y * observed, observed)
