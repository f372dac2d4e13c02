"""The plan of an MPU fit: known before it begins, and a fit that was killed goes on with it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import expit

from tacit import MPU
from tacit.basics.files import read_arrays
from tacit.methods.mpu.plan import plan_of
from tacit.methods.mpu.stacking import Stacking

NAMES = (
    "c without fold 0",
    "level 0 without fold 0",
    "level 0 without fold 1",
    "level 0",
    "level 1 without fold 0",
    "level 1 without fold 1",
    "level 1",
    "level 2",
    "threshold without fold 0",
)
"""All trainings of these options."""
OPTIONS = dict(levels=3, cv=2, c="labels", threshold="tuned", top=2, max_iter=3, random_state=0)


class KilledError(Exception):
    pass


def problem(n=60, d=6, n_labels=4, c=0.5):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    truth = rng.random((n, n_labels)) < expit(X @ rng.standard_normal((d, n_labels)))
    return X, truth & (rng.random(truth.shape) < c)


def seen(monkeypatch, note):
    """Call `note(names of the finished trainings, running one, state)` before each pass."""
    step = Stacking.step

    def noting(self, state):
        cursor = int(state["training"][0])
        names = [training.name for training in self.plan]
        note(names[:cursor], names[cursor], state)
        return step(self, state)

    monkeypatch.setattr(Stacking, "step", noting)


def resumed_after(monkeypatch, path, stop, **options):
    """A fit that is killed before a pass of which `stop` holds, and goes on in another process."""

    def kill(finished, running, state):
        if stop(finished, running, state):
            raise KilledError

    X, said = problem()
    with monkeypatch.context() as until_killed:
        seen(until_killed, kill)
        with pytest.raises(KilledError):
            MPU(**options).fit(X, said, checkpoint=path)
    return MPU(**options).fit(X, said, checkpoint=path)


def assert_the_same(one, other):
    assert one.history_ == other.history_
    assert one.threshold_ == other.threshold_
    ours, theirs = one.model_.arrays(), other.model_.arrays()
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert_array_equal(ours[name], theirs[name])


def test_all_trainings_are_known_by_name_before_the_first():
    plan = plan_of(3, 2, estimates_c=True, tunes_threshold=True)
    assert tuple(training.name for training in plan) == NAMES
    assert [t.name for t in plan_of(1, 5, estimates_c=False, tunes_threshold=False)] == ["level 0"]


def test_a_fit_goes_through_its_plan_in_turn(monkeypatch):
    met = []
    seen(monkeypatch, lambda finished, running, state: met.append((len(finished), running)))
    MPU(**OPTIONS).fit(*problem())
    assert list(dict.fromkeys(met)) == list(enumerate(NAMES))
    assert len(met) == 3 * len(NAMES)


@pytest.mark.parametrize("solver", ["sgd", "newton"])
@pytest.mark.parametrize("n_finished", range(1, len(NAMES)))
def test_a_fit_killed_after_any_training_goes_on_to_the_very_same_model(
    tmp_path, monkeypatch, solver, n_finished
):
    options = OPTIONS | {"solver": solver}
    stop = lambda finished, *_: len(finished) == n_finished
    resumed = resumed_after(monkeypatch, tmp_path / "fit", stop, **options)
    assert_the_same(resumed, MPU(**options).fit(*problem()))


@pytest.mark.parametrize("solver", ["sgd", "newton"])
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_killed_within_any_training_goes_on_to_the_very_same_model(
    tmp_path, monkeypatch, solver, name
):
    options = OPTIONS | {"solver": solver, "tol": 0}
    stop = lambda finished, running, state: running == name and len(state["history"]) == 2
    resumed = resumed_after(monkeypatch, tmp_path / "fit", stop, **options)
    assert_the_same(resumed, MPU(**options).fit(*problem()))


def test_a_fit_that_was_at_its_end_is_read_from_its_file(tmp_path, monkeypatch):
    whole = MPU(**OPTIONS).fit(*problem(), checkpoint=tmp_path / "fit")
    _, state = read_arrays(tmp_path / "fit")
    assert set(NAMES) <= set(state)  # the weights of each, by its name
    seen(monkeypatch, lambda *_: pytest.fail("a training begins anew"))
    assert_the_same(MPU(**OPTIONS).fit(*problem(), checkpoint=tmp_path / "fit"), whole)


def test_where_no_file_keeps_them_weights_that_nobody_needs_are_let_go(monkeypatch):
    kept = []
    seen(monkeypatch, lambda finished, running, state: kept.append({*NAMES} & {*state}))
    MPU(**OPTIONS).fit(*problem())
    assert kept[-1] == {"level 0", "level 1", "level 2"}
    assert max(map(len, kept)) == 3


def test_a_threshold_can_still_be_tuned_when_a_fit_is_at_its_end(tmp_path):
    """The threshold is no part of what binds a file to its fit: it alters no step already taken."""
    X, said = problem()
    whole = MPU(**OPTIONS).fit(X, said)
    MPU(**OPTIONS | {"threshold": 0.5}).fit(X, said, checkpoint=tmp_path / "fit")
    tuned = MPU(**OPTIONS).fit(X, said, checkpoint=tmp_path / "fit")
    assert_the_same(tuned, whole)
    back = MPU(**OPTIONS | {"threshold": 0.3}).fit(X, said, checkpoint=tmp_path / "fit")
    assert back.threshold_ == 0.3
    assert_array_equal(back.stack_, whole.stack_)


def test_a_stream_goes_on_from_a_fit_that_was_resumed(tmp_path, monkeypatch):
    options = dict(levels=1, c=0.5, max_iter=4, random_state=0)
    stop = lambda finished, running, state: len(state["history"]) == 2
    resumed = resumed_after(monkeypatch, tmp_path / "fit", stop, **options)
    again = MPU(**options).fit(*problem(), checkpoint=tmp_path / "fit")  # from its end
    whole = MPU(**options).fit(*problem())
    for model in (resumed, again, whole):
        model.partial_fit(*problem())
    assert_the_same(resumed, whole)
    assert_the_same(again, whole)


def test_a_stream_does_not_go_on_with_the_squares_of_another_training(tmp_path):
    X, said = problem()
    options = dict(levels=1, c=0.5, max_iter=2, random_state=0)
    MPU(threshold="tuned", **options).fit(X, said, checkpoint=tmp_path / "fit")
    model = MPU(**options).fit(X, said, checkpoint=tmp_path / "fit")
    with pytest.raises(ValueError, match="leaves nothing to go on from"):
        model.partial_fit(X, said)
