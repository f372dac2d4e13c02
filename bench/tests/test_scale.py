import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from rich.console import Console
from scipy.stats import linregress
from tacit_bench import timing
from tacit_bench.board import Board
from tacit_bench.boards import scale
from tacit_bench.boards.scale import AXES, BASE, METHODS, cells, exponents, measure, show
from tacit_bench.timing import KERNELS, TimedRun, copying, multiplying, quickest, rates

law = settings(max_examples=60, deadline=None)  # a busy machine must not break a law
TINY = {"n": 300, "nnz": 10, "L": 50, "k": 5}


def fits(sizes, seconds, predict=None, memory=None, method="LEML", axis="n"):
    """Rows as a board has them."""
    predict = seconds if predict is None else predict
    rows = []
    for i, value in enumerate(sizes):
        found = {"seconds": seconds[i], "predict s": predict[i], "empty GiB": 0.3}
        if memory is not None:
            found["peak GiB"] = 0.3 + memory[i]
        cell = {"what": "fit", "method": method, "axis": axis, "value": value}
        rows.append({"cell": cell, "found": found})
    return rows


powers = st.floats(-0.5, 3.5)


@law
@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=8, unique=True), powers, powers, powers)
def test_exponents_of_exact_power_laws_are_recovered(sizes, time, predict, memory):
    x = np.array(sizes, float)
    assume(np.ptp(np.log(np.sort(x)[-3:])) > 0.01)  # of nearly one size any slope fits
    rows = fits(sizes, 0.7 * x**time, 0.2 * x**predict, 1e-3 * x**memory)
    [row] = exponents(rows)
    found = row["found"]
    assert row["cell"] == {"what": "exponent", "method": "LEML", "axis": "n"}
    names = ("exponent", "predict exponent", "memory exponent")
    # The memory is a difference, with a few digits less.
    assert_allclose([found[name] for name in names[:2]], [time, predict], atol=0.0051)
    if np.min(1e-3 * x**memory) > 1e-6:
        assert_allclose(found["memory exponent"], memory, atol=0.02)
    assert found["to"] == max(sizes)


def test_slope_and_r2_are_those_of_scipy():
    rng = np.random.default_rng(0)
    x = 1000 * 2.0 ** np.arange(3)
    y = x**1.3 * np.exp(0.2 * rng.standard_normal(3))
    found = exponents(fits(x, y))[0]["found"]
    line = linregress(np.log(x), np.log(y))
    assert_allclose(found["exponent"], line.slope, atol=0.0051)
    assert_allclose(found["R²"], line.rvalue**2, atol=0.00051)


def test_the_smaller_half_of_the_sizes_does_not_count_and_order_does_not_matter():
    x = 100 * 2 ** np.arange(6)
    rows = fits(x, x**1.5)
    spoilt = fits(x, np.where(x < 800, 9e9, x**1.5))
    assert exponents(spoilt[::-1]) == exponents(rows)
    assert exponents(rows)[0]["found"]["from"] == 800


def test_only_fits_that_were_found_and_vary_have_exponents():
    x = np.array([1, 2, 4, 8])
    rows = fits(x, x)
    skipped = {"cell": rows[0]["cell"] | {"value": 16}, "skipped": "stopped after 1 s"}
    kernel = {"cell": {"what": "kernel", "name": "spmm"}, "found": {"GB/s": 1.0}}
    once = fits([5], [1.0], axis="k")
    assert exponents([*rows, skipped, kernel, *once]) == exponents(rows)
    assert "memory exponent" not in exponents(rows)[0]["found"]  # no process of its own, no peak
    assert "exponent" not in exponents(fits(x, 0 * x))[0]["found"]  # too quick to be measured


def test_cells_identify_themselves_and_quick_is_some_of_all():
    every = [json.dumps(cell, sort_keys=True) for cell in cells()]
    assert len(set(every)) == len(every)
    assert {json.dumps(cell, sort_keys=True) for cell in cells(quick=True)} < set(every)
    assert [cell["method"] for cell in cells(["SEM"]) if cell["what"] == "fit"] == ["SEM"] * 21
    assert all(BASE[axis] in values for axis, values in AXES.items())
    with pytest.raises(ValueError, match=r"methods must be some of Ridge, LEML, .*; got 'Leml'"):
        cells(["Leml"])


def test_axes_of_a_method_without_rank_do_not_vary_k():
    with_rank = {name for name, timed in METHODS.items() if "rank" in timed.make(3).get_params()}
    assert {name for name, timed in METHODS.items() if "k" in timed.powers} == with_rank


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_timed_at_its_own_rank(method, monkeypatch):
    asked = []
    make = METHODS[method].make
    recording = scale.TimedMethod(lambda k: asked.append(k) or make(k), "", {"k": 1})
    monkeypatch.setitem(METHODS, method, recording)
    monkeypatch.setattr(scale, "BASE", TINY)
    monkeypatch.setattr(scale, "N_FEATURES", 100)
    monkeypatch.setattr(scale, "quickest", lambda run: quickest(run, least=0.0))
    found = measure({"what": "fit", "method": method, "axis": "k", "value": 7})
    assert asked == [5, 7]  # to compile, and to be timed
    assert found.keys() == {"seconds", "predict s", "data GiB", "empty GiB"}


@law
@given(st.sampled_from([(25, 50), (50, 7), (100, 1000)]), st.integers(1, 40))
def test_data_have_as_many_features_and_labels_a_row_as_asked(sizes, n):
    nnz, L = sizes
    X, Y = scale._problem(n, nnz, L, d=200)
    assert X.shape == (n, 200)
    assert Y.shape == (n, L)
    for S, each in ((X, nnz), (Y, 5)):
        entries = (S.toarray() != 0).sum(axis=1)  # as scipy reads it: duplicates would be one
        assert entries.tolist() == [each] * n
        assert S.toarray().min() >= 0


def toy(cell):
    """Like `measure`, at a size that takes no time; a function that a new process can import."""
    return scale._fit(METHODS[cell["method"]], TINY)


def test_a_fit_in_its_own_process_has_a_peak_above_what_it_began_with(tmp_path):
    cell = {"what": "fit", "method": "Ridge", "axis": "n", "value": 300}
    [row] = Board(tmp_path / "scale.jsonl").fill([cell], toy, jobs=1, show=False)
    found = row["found"]
    assert found["peak GiB"] > found["empty GiB"] > 0
    assert found["data GiB"] < found["peak GiB"]


def test_copy_bandwidth_hardly_depends_on_the_size_and_all_limits_are_positive():
    small, large = copying(2**25), copying(2**26)
    found = rates({"small": small, "large": large})
    assert 1 / 3 < found["large"] / found["small"] < 3
    assert large.amount == 2 * small.amount
    assert multiplying(size=10).run().dtype == np.float32
    found = rates({name: multiplying(name, 256) for name in ("float32", "float64")})
    assert 0 < found["float64"] < 3 * found["float32"]  # with a wide margin for busy machines


def test_a_copy_copies_every_byte(monkeypatch):
    kept = []
    empty = np.empty
    # The target, which nobody else sees.
    monkeypatch.setattr(timing.np, "empty", lambda *size: kept.append(empty(*size)) or kept[-1])
    work = copying(1001)
    [target] = kept
    target[:] = 0
    work.run()
    assert (target == 1).all()


class Clock:
    """Time that passes only when somebody works."""

    now = 0.0

    def __call__(self):
        return self.now

    def takes(self, *seconds):
        times = iter(seconds)

        def run():
            self.now += next(times)

        return run


def test_a_rate_is_the_amount_by_the_quickest_round_the_first_left_out(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", clock)
    works = {
        "a": TimedRun(clock.takes(0.125, 5.0, 4.0), 8e9, "GB/s"),
        "b": TimedRun(clock.takes(0.125, 2.0, 3.0), 8e9, "GB/s"),
    }
    assert rates(works, rounds=2) == {"a": 2.0, "b": 4.0}


def test_short_work_is_repeated_and_long_work_is_not(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", clock)
    assert quickest(clock.takes(0.5, 0.25, 0.375), least=1.0) == 0.25
    assert quickest(clock.takes(7.0), least=1.0) == 7.0


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_have_a_rate_a_limit_and_their_ratio(name, small_kernels):
    found = timing.kernel(name)
    rate = found.get("GB/s", found.get("GFLOP/s"))
    assert rate > 0
    share, limit = found["share of limit"] / 100, found["limit"]
    rounding = 0.0051 * (1 + share) + 5.1e-5 * limit  # all three to two digits
    assert_allclose(share * limit, rate, atol=rounding)


@pytest.mark.parametrize("name", ["spmm", "spmm_t", "solve_spd", "solve_packed", "ridge solve"])
def test_kernels_and_their_rivals_compute_the_same(name, small_kernels):
    kernel = KERNELS[name]()
    assert_allclose(kernel.ours(), np.squeeze(kernel.theirs()), rtol=1e-3, atol=1e-4)


@pytest.fixture
def small_kernels(monkeypatch):
    sizes = {
        "_ROWS": 500,
        "_WORDS": 300,
        "_RANK": 8,
        "_SOLVES": 16,
        "_RIDGE": (40, 3),
        "_TOP": (50, 60),
    }
    for name, size in sizes.items():
        monkeypatch.setattr(timing, name, size)
    monkeypatch.setattr(timing, "copying", lambda: copying(2**16))
    monkeypatch.setattr(timing, "multiplying", lambda dtype="float32": multiplying(dtype, 64))


def test_tables_have_exponents_beside_theory_and_kernels_beside_their_limit():
    x = np.array(AXES["nnz"], float)
    rows = fits(x, x**1.87, memory=x, method="Ridge", axis="nnz")
    kernel = {"GB/s": 21.04, "limit": 42.08, "share of limit": 50.0, "their time / ours": 2.5}
    rows += [
        {"cell": {"what": "kernel", "name": "spmm"}, "found": kernel},
        {"cell": {"what": "kernel", "name": "sddmm"}, "skipped": "its process died"},
    ]
    console = Console(width=200)
    with console.capture() as captured:
        show(rows, console)
    text = captured.get()
    for part in ("Ridge", "n s² + d³ + d² L", "1.87", " 2 ", "21.0", "50 %", "its process died"):
        assert part in text


def test_no_line_of_the_tables_is_wider_than_80_columns():
    rows = []
    for method, timed in METHODS.items():
        for axis in timed.powers:
            x = np.array(AXES[axis], float)
            rows += fits(AXES[axis], x**1.5, memory=x**-0.5, method=method, axis=axis)
    kernel = {"GFLOP/s": 100.0, "limit": 1000.0, "share of limit": 10.0, "their time / ours": 10.0}
    rows += [{"cell": {"what": "kernel", "name": name}, "found": kernel} for name in KERNELS]
    console = Console(width=200)
    with console.capture() as captured:
        show(rows, console)
    assert max(len(line.rstrip()) for line in captured.get().splitlines()) <= 80
