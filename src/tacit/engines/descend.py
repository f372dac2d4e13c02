"""The loop of every iterative fit: repeat a step, watch the objective, show it, survive a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from array_api_compat import array_namespace

from tacit.basics.files import read_arrays, write_arrays
from tacit.blocks.facts import Facts

__all__ = ["Checkpoint", "State", "descend", "progress", "settled"]

State = dict[str, Any]
"""The arrays that a step takes and gives: all that the rest of a fit depends on."""

_MAY_CHANGE = ("max_iter", "tol", "verbose", "threshold", "k")  # none alters a step already taken


class Checkpoint:
    """The state of a fit in a file, bound to the parameters and the data of that fit."""

    def __init__(self, path: str | os.PathLike, estimator: Any, known: Facts):
        params = estimator.get_params(deep=False)
        self.path = Path(path)
        self.owner = {
            "class": type(estimator).__name__,
            "params": {k: v for k, v in params.items() if k not in _MAY_CHANGE},
            "data": [known.n_samples, known.n_features, known.n_labels, known.kind, known.checksum],
        }

    def read(self) -> tuple[State, list[float]] | None:
        """The state and the objectives so far, or None where there is no file yet."""
        if not self.path.exists():
            return None
        header, arrays = read_arrays(self.path)
        for name, mine in json.loads(json.dumps(self.owner, default=str)).items():
            if header.get(name) != mine:
                raise ValueError(
                    f"checkpoint {self.path} belongs to a fit with another {name}; use the same "
                    "estimator and data, or give another file"
                )
        if "history" not in header or header.get("state") != sorted(arrays):
            raise ValueError(f"checkpoint {self.path} is damaged; remove it to start anew")
        return arrays, header["history"]

    def write(self, state: State, history: list[float]) -> None:
        header = json.loads(json.dumps(self.owner, default=str))
        write_arrays(self.path, header | {"history": history, "state": sorted(state)}, state)


def descend(
    estimator: Any,
    backend: Any,
    start: Callable[[], State],
    step: Callable[[State], tuple[State, float]],
    checkpoint: Checkpoint | None,
    until: Callable[[State], bool] | None = None,
) -> State:
    """Repeat `step` until the objective falls by no more than `tol` of itself, or `max_iter` times.

    A fit of several models in turn says itself, by `until`, when its state is the last.

    `step` maps a state to the next one and its objective, and depends on nothing else, so that a
    fit resumed from a checkpoint takes the very steps it would have taken. The objectives go into
    `estimator.history_`.
    """
    history: list[float] = estimator.history_
    resumed = checkpoint.read() if checkpoint is not None else None
    if resumed is not None:
        history.extend(resumed[1])
    bar = progress(estimator, len(history), estimator.max_iter if until is None else None)
    with bar as show:  # before the start, which may take long too
        if resumed is None:
            state = start()
        else:
            state = {name: backend.asarray(array) for name, array in resumed[0].items()}
        while not (_ended(history, estimator) if until is None else until(state)):
            state, objective = step(state)
            state = {name: _row_major(array) for name, array in state.items()}
            history.append(float(objective))
            if checkpoint is not None:
                arrays = {name: backend.to_numpy(array) for name, array in state.items()}
                checkpoint.write(arrays, history)
            show(objective)
    return state


def _row_major(array: Any) -> Any:
    """The array in the layout that a checkpoint gives back: BLAS rounds by the layout."""
    xp = array_namespace(array)
    return xp.reshape(xp.reshape(array, (-1,)), array.shape)


def _ended(history: list[float], estimator: Any) -> bool:
    return len(history) >= estimator.max_iter or settled(history, estimator.tol)


def settled(history: list[float], tol: float) -> bool:
    """Whether the last pass lowered the objective by no more than `tol` of it."""
    return len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-2])


@contextmanager
def progress(
    estimator: Any, done: int, total: int | None
) -> Iterator[Callable[[float | None], None]]:
    """A bar on stderr, where `verbose` asks for one; to be called with the objective, if any."""
    if not estimator.verbose:
        yield lambda objective: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[objective]}"),
        TimeElapsedColumn(),
    )
    told = lambda objective: "" if objective is None else f"objective {objective:.6g}"
    with Progress(*columns, console=Console(stderr=True)) as bar:
        name = type(estimator).__name__
        task = bar.add_task(name, total=total, completed=done, objective="")
        yield lambda objective: bar.update(task, advance=1, objective=told(objective))
        bar.update(task, total=bar.tasks[task].completed)
