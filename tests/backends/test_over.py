"""`NumpyBackend.over`: many threads of ours, one of everybody else's."""

import multiprocessing
import threading

import numba
import pytest

from tacit.backends import get_backend
from tacit.backends import numpy as module


@pytest.fixture
def cpu():
    """Three threads, whatever the machine and its settings have."""
    before = getattr(module._scope, "threads", 0)
    module._scope.threads = 3
    yield get_backend("cpu")
    module._scope.threads = before


def blas_threads():
    info = module._blas().info()
    return {library["num_threads"] for library in info if library["user_api"] == "blas"}


def test_results_come_in_the_order_of_the_items(cpu):
    assert cpu.parallel_map(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    assert cpu.parallel_map(lambda i: i, []) == []


def test_items_run_side_by_side(cpu):
    meet = threading.Barrier(3, timeout=20)
    cpu.parallel_map(lambda _: meet.wait(), range(3))  # would time out one after the other


def test_inside_there_is_one_thread_for_blas_and_numba_and_outside_as_before(cpu):
    before = blas_threads(), numba.get_num_threads()
    for items in ([0], range(6)):
        found = cpu.parallel_map(lambda _: (blas_threads(), numba.get_num_threads()), items)
        assert all(blas == {1} and threads == 1 for blas, threads in found)
    assert (blas_threads(), numba.get_num_threads()) == before


def test_one_item_may_share_its_own_items_out_and_many_may_not(cpu):
    meet = threading.Barrier(3, timeout=20)
    cpu.parallel_map(lambda _: cpu.parallel_map(lambda _: meet.wait(), range(3)), [0])
    names = lambda _: cpu.parallel_map(lambda _: threading.current_thread().name, range(5))
    for found in cpu.parallel_map(names, range(4)):
        assert len(set(found)) == 1

    def threads(_):
        meet.wait()  # each of the three, the caller too, has one of the items
        return module._threads()

    assert cpu.parallel_map(threads, range(3)) == [1, 1, 1]


def test_numba_has_its_threads_back_afterwards(cpu, monkeypatch):
    calls = []
    monkeypatch.setattr(numba, "get_num_threads", lambda: 5)  # there may be but one to set
    monkeypatch.setattr(numba, "set_num_threads", calls.append)
    cpu.parallel_map(lambda i: i, [0])
    assert calls == [1, 5]


def test_an_error_of_a_helper_is_raised_too(cpu):
    meet = threading.Barrier(3, timeout=20)

    def f(_):
        meet.wait()
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError("a helper's")

    with pytest.raises(ZeroDivisionError, match="a helper's"):
        cpu.parallel_map(f, range(3))


@pytest.mark.parametrize("wrong", [0, 3, 7])
def test_an_error_in_any_item_is_raised_and_leaves_nothing_behind(cpu, wrong):
    before = blas_threads(), numba.get_num_threads()

    def f(i):
        if i == wrong:
            raise ZeroDivisionError(f"item {i}")
        return i

    with pytest.raises(ZeroDivisionError, match=f"item {wrong}"):
        cpu.parallel_map(f, range(8))
    assert (blas_threads(), numba.get_num_threads()) == before
    assert cpu.parallel_map(f, [1, 2]) == [1, 2]


def _in_child(queue):
    module._scope.threads = 3
    queue.put(get_backend("cpu").parallel_map(lambda i: -i, range(6)))


def test_a_forked_child_has_threads_of_its_own(cpu):
    cpu.parallel_map(lambda i: i, range(6))  # the parent's are there
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [-i for i in range(6)]
    child.join()
