"""LEML on a Dask cluster: the same model as in memory, and a lost worker does not change it."""

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tacit import LEML, GenEML, Labels
from tacit.blocks import Rows, write_shards
from tacit.methods.leml.squared import CompleteSquared
from tacit.testing import problem

distributed = pytest.importorskip("distributed")

from tacit.blocks.dask import DaskBlocks  # noqa: E402  (needs Dask)

pytestmark = pytest.mark.cluster

ROUTES = {"exact": ("complete", "exact"), "cg": ("complete", "cg"), "masked": ("masked", "auto")}


def leml(solver, **params):
    """Tight inner solves: with loose ones, sums in another order may stop a product apart."""
    tight = {"cg_tol": 1e-10, "cg_max_iter": 60, "tol": 0, "max_iter": 2, "random_state": 0}
    return LEML(**{"rank": 3, "reg": 1.0, "solver": solver} | tight | params)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("source", ["rows", "shards"])
@pytest.mark.slow
def test_a_fit_on_a_cluster_is_the_fit_in_memory(client, tmp_path, route, source):
    kind, solver = ROUTES[route]
    X, Y = problem(kind)
    rows = Rows(X, Y)
    if source == "rows":
        blocks = DaskBlocks.from_rows(client, rows, n_blocks=5)
    else:
        shards = write_shards(tmp_path / "shards", ((p.X, p.labels) for p in rows.cut(4)))
        blocks = DaskBlocks.from_shards(client, shards)
    there, here = leml(solver).fit(blocks), leml(solver).fit(X, Y)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-8)
    assert_allclose(there.history_, here.history_, rtol=1e-8)
    assert list(there.classes_) == list(Y.classes)


@pytest.mark.parametrize("params", [{}, {"embedding": "tied", "exposure": "covariates"}])
def test_codes_of_rows_on_a_cluster_are_those_in_memory(client, params):
    """GenEML's free codes travel to their blocks with every pass."""
    X, Y = problem("reviewed")
    model = GenEML(rank=3, tol=0, max_iter=2, random_state=0, **params)
    here = model.fit(X, Y).decision_function(X)
    there = model.fit(DaskBlocks.from_rows(client, Rows(X, Y), n_blocks=5))
    assert_allclose(there.decision_function(X), here, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2**13, 2**16])
def test_values_arrive_at_their_blocks_whether_large_or_small(client, size):
    X, Y = problem("complete")
    blocks = DaskBlocks.from_rows(client, Rows(X, Y), n_blocks=3)
    values = [np.full(size, float(i + 1)) for i in range(3)]
    assert blocks.zip(values).sum(_paired) == [(20, 1.0 * size), (20, 2.0 * size), (20, 3.0 * size)]


def _paired(pair):
    rows, numbers = pair
    return [(len(rows), float(numbers.sum()))]


@pytest.mark.parametrize("size", [1, 2**13, 2**16])
def test_an_argument_arrives_whether_it_is_sent_once_or_rides_in_every_task(client, size):
    X, Y = problem("complete")
    blocks = DaskBlocks.from_rows(client, Rows(X, Y), n_blocks=3)
    numbers = np.arange(float(size))
    assert_allclose(blocks.sum(_total, numbers), 3 * numbers.sum())


def _total(rows, numbers):
    return float(numbers.sum())


@pytest.fixture
def cluster():
    """Two worker processes, so that one can be killed."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def wide():
    """So many features that W is sent once, and may be on the worker that is killed."""
    rng = np.random.default_rng(0)
    X, n_labels = rng.random((400, 3000)) * (rng.random((400, 3000)) < 0.02), 20
    Y = (X @ rng.standard_normal((3000, 3)) @ rng.standard_normal((3, n_labels)) > 0).astype(int)
    return X, Labels.complete(Y)


@pytest.mark.slow
def test_a_lost_worker_costs_time_but_not_the_answer(cluster, monkeypatch):
    X, Y = wide()
    model = leml("cg", reg=10.0)
    here = model.fit(X, Y).decision_function(X)
    step, killed = CompleteSquared._solve_W, []

    def kill_then_step(self, *args):
        if not killed:
            pid = sorted(cluster.run(os.getpid).values())[0]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return step(self, *args)

    monkeypatch.setattr(CompleteSquared, "_solve_W", kill_then_step)
    model.fit(DaskBlocks.from_rows(cluster, Rows(X, Y), n_blocks=4))
    assert killed
    assert_allclose(model.decision_function(X), here, atol=1e-8)
