"""The loop of a fit: when it stops, what it shows, and that a kill costs time but not the model."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from tacit import LEML, Labels, load
from tacit.backends import get_backend
from tacit.basics.files import read_arrays, write_arrays
from tacit.engines.descend import Checkpoint, Loop
from tacit.methods.leml.masked import MaskedSquared
from tacit.methods.leml.squared import CompleteSquared
from tacit.testing import problem

ROUTES = {"exact": ("complete", "exact"), "cg": ("complete", "cg"), "masked": ("masked", "auto")}


@pytest.fixture
def checkpoint(tmp_path):
    return tmp_path / "fit.checkpoint"


def medium(kind):
    """Large enough that BLAS rounds by the layout of its arguments, small enough for a test."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 150), density=0.1, rng=rng, format="csr")
    Y = X @ rng.standard_normal((150, 8)) @ rng.standard_normal((8, 60)) > 0.3
    observed = rng.random(Y.shape) < 0.3
    return X, Labels.masked(Y & observed, observed) if kind == "masked" else Labels.complete(Y)


def leml(solver="auto", **params):
    return LEML(
        **{"rank": 7, "solver": solver, "tol": 0, "max_iter": 6, "random_state": 0} | params
    )


def assert_identical(model, other):
    assert_array_equal(model.model_.W, other.model_.W)
    assert_array_equal(model.model_.H, other.model_.H)
    assert model.history_ == other.history_
    assert model.n_iter_ == other.n_iter_


# ---- kill and resume


def _fit_and_save(route, checkpoint, target, pause):
    """What the child processes run; `pause` leaves time for a kill after each checkpoint."""
    write = Checkpoint.write

    def write_and_wait(self, state, history):
        write(self, state, history)
        time.sleep(pause)

    Checkpoint.write = write_and_wait
    kind, solver = ROUTES[route]
    leml(solver).fit(*medium(kind), checkpoint=checkpoint).save(target)


@pytest.mark.slow
@pytest.mark.parametrize("route", ["masked"])  # that any route resumes to the bit is tested below
def test_a_fit_killed_and_resumed_in_another_process_is_the_same_to_the_last_bit(
    route, checkpoint, tmp_path
):
    spawn, target = multiprocessing.get_context("spawn"), tmp_path / "model.tacit"
    child = spawn.Process(target=_fit_and_save, args=(route, checkpoint, target, 60))
    child.start()
    while not checkpoint.exists() and child.is_alive():
        time.sleep(0.01)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL, "it ended before it could be killed"
    assert not target.exists()
    assert len(read_arrays(checkpoint)[0]["history"]) == 1, "the kill came too late"

    # The fit that nothing stopped runs in a child too: BLAS rounds by its number of threads, and
    # whatever ran in this process before may have changed that.
    whole = tmp_path / "whole.tacit"
    for saved, kept in ((target, checkpoint), (whole, tmp_path / "other.checkpoint")):
        child = spawn.Process(target=_fit_and_save, args=(route, kept, saved, 0))
        child.start()
        child.join()
        assert child.exitcode == 0
    assert_identical(load(target), load(whole))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_a_fit_resumed_from_any_pass_is_the_same_to_the_last_bit(
    route, dtype, form, device, checkpoint
):
    kind, solver = ROUTES[route]
    X, Y = medium(kind)
    X = (X if form == "sparse" else X.toarray()).astype(dtype)
    whole = leml(solver, device=device).fit(X, Y)
    for passes in (1, 2, 4, 6):  # each goes on from the checkpoint of the one before
        resumed = leml(solver, device=device, max_iter=passes).fit(X, Y, checkpoint=checkpoint)
        if device != "cuda":
            assert resumed.history_ == whole.history_[:passes]
    if (
        device == "cuda"
    ):  # cuSPARSE adds up long rows in no fixed order: two fits differ by rounding
        assert_allclose(resumed.history_, whole.history_, rtol=1e-4)
        assert_allclose(resumed.decision_function(X), whole.decision_function(X), atol=1e-2)
    else:
        assert_identical(resumed, whole)


def test_a_checkpoint_of_a_finished_fit_takes_no_further_step(checkpoint, monkeypatch):
    X, Y = problem("complete")
    done = leml(rank=3).fit(X, Y, checkpoint=checkpoint)

    def never(*args):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(CompleteSquared, "step", never)
    assert_identical(leml(rank=3).fit(X, Y, checkpoint=checkpoint), done)


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_an_interrupt_leaves_a_checkpoint_to_go_on_from_and_no_half_fitted_model(
    kind, checkpoint, monkeypatch
):
    X, Y = problem(kind)
    route = CompleteSquared if kind == "complete" else MaskedSquared
    step, taken = route.step, []

    def interrupted(self, *args):
        taken.append(1)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(route, "step", interrupted)
    model = leml(rank=3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, checkpoint=checkpoint)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save(checkpoint.with_name("model"))
    monkeypatch.undo()
    assert len(read_arrays(checkpoint)[0]["history"]) == 2
    assert_identical(model.fit(X, Y, checkpoint=checkpoint), leml(rank=3).fit(X, Y))


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(checkpoint, monkeypatch):
    X, Y = problem("masked")
    replace, calls = os.replace, []

    def full_the_third_time(*args):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        replace(*args)

    monkeypatch.setattr(os, "replace", full_the_third_time)
    with pytest.raises(OSError, match="No space left"):
        leml(rank=3).fit(X, Y, checkpoint=checkpoint)
    monkeypatch.undo()
    assert list(checkpoint.parent.iterdir()) == [checkpoint]
    assert len(read_arrays(checkpoint)[0]["history"]) == 2
    assert_identical(leml(rank=3).fit(X, Y, checkpoint=checkpoint), leml(rank=3).fit(X, Y))


# ---- a checkpoint belongs to one fit


@pytest.fixture
def begun(checkpoint):
    """The data of a fit of three passes, whose checkpoint is at `checkpoint`."""
    X, Y = problem("complete")
    leml(rank=3, max_iter=3).fit(X, Y, checkpoint=checkpoint)
    return X, Y


@pytest.mark.parametrize(
    "change",
    [
        {"rank": 4},
        {"reg": 2.0},
        {"random_state": 1},
        {"solver": "cg"},
        {"normalize": None},
        {"fit_intercept": False},
        {"device": "torch"},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_parameters_is_refused(begun, checkpoint, change):
    message = f"checkpoint {checkpoint} belongs to a fit with another params"
    with pytest.raises(ValueError, match=message):
        leml(**{"rank": 3} | change).fit(*begun, checkpoint=checkpoint)


def _one_value(X, Y):
    X = X.copy()
    X.data[0] += 1e-9
    return X, Y


def _one_label(X, Y):
    positives = Y.positives.toarray()
    positives[0, 0] ^= True
    return X, Labels.complete(positives)


@pytest.mark.parametrize(
    "change",
    [
        _one_value,
        _one_label,
        lambda X, Y: (X[:-1], Y[:-1]),
        lambda X, Y: (X[::-1], Y[::-1]),
        lambda X, Y: (X, Labels.masked(Y.positives, np.ones(Y.shape))),
        lambda X, Y: (X.astype(np.float32), Y),
    ],
    ids=["a value", "a label", "a row less", "rows reversed", "masked", "float32"],
)
def test_a_checkpoint_of_other_data_is_refused(begun, checkpoint, change):
    with pytest.raises(ValueError, match=f"{checkpoint} belongs to a fit with another data"):
        leml(rank=3).fit(*change(*begun), checkpoint=checkpoint)


def test_a_checkpoint_of_another_class_is_refused(begun, checkpoint):
    class Other(LEML):
        pass

    with pytest.raises(ValueError, match=f"{checkpoint} belongs to a fit with another class"):
        Other(rank=3).fit(*begun, checkpoint=checkpoint)


@pytest.mark.parametrize(
    "change",
    [{"max_iter": 9}, {"threshold": 0.1}, {"k": 2}, {"verbose": True}],
    ids=str,
)
def test_what_alters_no_step_may_change_between_stop_and_resume(begun, checkpoint, change):
    resumed = leml(**{"rank": 3} | change).fit(*begun, checkpoint=checkpoint)
    assert_identical(resumed, leml(**{"rank": 3} | change).fit(*begun))


def test_a_larger_tol_on_resuming_is_content_with_the_passes_already_taken(begun, checkpoint):
    resumed = leml(rank=3, tol=0.5).fit(*begun, checkpoint=checkpoint)
    assert_identical(resumed, leml(rank=3, max_iter=3).fit(*begun))


def _truncate(path):
    path.write_bytes(path.read_bytes()[:-9])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def _lose(what):
    def lose(path):
        header, arrays = read_arrays(path)
        (header if what in header else arrays).pop(what)
        write_arrays(path, header, arrays)

    return lose


@pytest.mark.parametrize(
    "damage",
    [
        _truncate,
        _flip,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("epoch,loss\n"),
        _lose("history"),
        _lose("W"),
    ],
    ids=["truncated", "a bit flipped", "empty", "text", "no history", "no W"],
)
def test_a_damaged_checkpoint_is_one_clear_sentence(begun, checkpoint, damage):
    damage(checkpoint)
    before = checkpoint.read_bytes()
    with pytest.raises(ValueError, match=str(checkpoint)) as caught:
        leml(rank=3).fit(*begun, checkpoint=checkpoint)
    assert "damaged" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert checkpoint.read_bytes() == before


def test_a_model_file_is_no_checkpoint(begun, checkpoint):
    leml(rank=3).fit(*begun).save(checkpoint)
    with pytest.raises(ValueError, match=f"{checkpoint} belongs to a fit with another"):
        leml(rank=3).fit(*begun, checkpoint=checkpoint)


def test_a_checkpoint_is_no_model(begun, checkpoint):
    with pytest.raises(ValueError, match=f"{checkpoint} does not hold a model"):
        load(checkpoint)


# ---- the loop itself


def run(objectives, **params):
    """How many of the objectives `descend` looks at."""
    loop = Loop("test", **{"max_iter": 100} | params)
    coming = iter(objectives)
    step = lambda state: ({"A": state["A"] + 1}, next(coming))
    state, history = loop.descend(get_backend("cpu"), lambda: {"A": np.zeros(1)}, step)
    assert history == list(objectives)[: len(history)]
    assert state["A"] == len(history), "not one step an objective"
    return len(history)


def test_the_loop_stops_once_a_pass_lowers_the_objective_by_no_more_than_tol_of_itself():
    halves = [2.0**-i for i in range(50)]
    assert run(halves, tol=0.5) == 2  # each is exactly half the one before
    assert run(halves, tol=0.499, max_iter=50) == 50


@pytest.mark.parametrize(
    ("objectives", "params", "passes"),
    [
        ([8, 4, 2, 1], {"max_iter": 3}, 3),
        ([8, 4, 2, 1], {"max_iter": 1}, 1),
        ([8, 4, 4, 1], {}, 3),
        ([8, 4, 5, 1], {}, 3),
        ([8, 4, 3.9, 1], {"tol": 0.1}, 3),
        ([-1, -2, -2.1, -9], {"tol": 0.1}, 3),
        ([0, 0, -1], {}, 2),
    ],
)
def test_the_loop_stops_where_it_says(objectives, params, passes):
    assert run(objectives, **params) == passes


def test_every_step_sees_row_major_arrays_as_a_checkpoint_would_give_them(device):
    backend = get_backend(device)
    seen = []

    def step(state):
        seen.append(backend.to_numpy(state["A"]))
        return {"A": backend.asarray(np.asfortranarray(seen[-1] + 1))}, -len(seen)

    start = lambda: {"A": backend.asarray(np.arange(6.0).reshape(2, 3))}
    state, _ = Loop("test", max_iter=3).descend(backend, start, step)
    seen.append(backend.to_numpy(state["A"]))
    for i, array in enumerate(seen):
        assert array.flags.c_contiguous
        assert_array_equal(array, np.arange(6.0).reshape(2, 3) + i)


def test_a_second_fit_starts_a_history_of_its_own():
    X, Y = problem("complete")
    model = leml(rank=3)
    first = model.fit(X, Y).history_
    kept = list(first)
    second = model.set_params(max_iter=2).fit(X, Y).history_
    assert first == kept, "the second fit wrote into the history of the first"
    assert second == kept[:2]


def test_a_regularisation_in_float32_does_not_round_the_objective():
    X, Y = problem("complete")
    histories = [leml(rank=3, reg=reg).fit(X, Y).history_ for reg in (0.5, np.float32(0.5))]
    assert histories[0] == histories[1]
    assert all(type(value) is float for value in histories[1])


# ---- what it shows


def test_verbose_shows_a_bar_with_the_passes_and_the_objective(capsys):
    X, Y = problem("complete")
    model = leml(rank=3, max_iter=4, verbose=True).fit(X, Y)
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert "LEML" in shown
    assert "4/4" in shown
    assert f"objective {model.history_[-1]:.6g}" in shown


def test_a_bar_of_a_fit_that_settles_early_ends_full(capsys):
    X, Y = problem("complete")
    model = leml(rank=3, max_iter=50, tol=0.5, verbose=True).fit(X, Y)
    captured = capsys.readouterr()
    assert model.n_iter_ < 50
    assert f"{model.n_iter_}/{model.n_iter_}" in captured.out + captured.err


def test_without_verbose_nothing_is_printed(capfd, checkpoint):
    X, Y = problem("complete")
    leml(rank=3).fit(X, Y, checkpoint=checkpoint)
    assert capfd.readouterr() == ("", "")
