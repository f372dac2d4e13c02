"""The loop of every iterative fit: repeat a step, watch the objective, show it, survive a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from array_api_compat import array_namespace

from tacit.basics.files import FORMAT, read_arrays, write_arrays
from tacit.blocks.facts import Facts

__all__ = ["Checkpoint", "Loop", "State", "settled"]

State = dict[str, Any]
"""The arrays that a step takes and gives: all that the rest of a fit depends on."""

_MAY_CHANGE = ("max_iter", "tol", "verbose", "threshold", "k")  # none alters a step already taken


class Checkpoint:
    """The state of a fit in a file, bound to the parameters and the data of that fit."""

    def __init__(
        self,
        path: str | os.PathLike,
        name: str,
        params: dict[str, Any],
        known: Facts,
        more: int = 0,
    ):
        """`more` is a checksum of what the fit learns from beside the rows."""
        sizes = [known.n_samples, known.n_features, known.n_labels, known.kind]
        self.path = Path(path)
        self.owner = {
            "class": name,
            "params": {k: v for k, v in params.items() if k not in _MAY_CHANGE},
            "data": [*sizes, known.checksum ^ more],
        }

    def read(self) -> tuple[State, list[float]] | None:
        """The state and the objectives so far, or None where there is no file yet."""
        if not self.path.exists():
            return None
        header, arrays = read_arrays(self.path)
        if header["format"] != FORMAT:
            raise ValueError(
                f"checkpoint {self.path} was begun by another version of tacit; finish it there, "
                "or remove it to start anew"
            )
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


@dataclass(frozen=True)
class Loop:
    """How a fit repeats its step: how often at most, until when, and whether it is seen and kept.

    Attributes
    ----------
    name : str
        The method, for the progress bar.
    max_iter, tol : int or None, float
        The loop ends after `max_iter` passes, or once a pass lowers the objective by no more than
        `tol` of itself.
    verbose : bool
        Whether to show progress on stderr.
    checkpoint : Checkpoint or None
        Where the state is kept after each pass, and resumed from.
    """

    name: str
    max_iter: int | None = None
    tol: float = 0.0
    verbose: bool = False
    checkpoint: Checkpoint | None = None

    def descend(
        self,
        backend: Any,
        start: Callable[[], State],
        step: Callable[[State], tuple[State, float]],
        until: Callable[[State], bool] | None = None,
    ) -> tuple[State, list[float]]:
        """The last state, and the objective after each pass.

        `step` maps a state to the next one and its objective, and depends on nothing else, so that
        a fit resumed from a checkpoint takes the very steps it would have taken. A fit of several
        models in turn says itself, by `until`, when its state is the last.
        """
        resumed = self.checkpoint.read() if self.checkpoint is not None else None
        history: list[float] = [] if resumed is None else list(resumed[1])
        total = self.max_iter if until is None else None
        with self.progress(total, len(history)) as show:  # before the start, which may take long
            if resumed is None:
                state = start()
            else:
                state = {name: backend.asarray(array) for name, array in resumed[0].items()}
            while not (self._ended(history) if until is None else until(state)):
                state, objective = step(state)
                state = {name: _row_major(array) for name, array in state.items()}
                history.append(float(objective))
                if self.checkpoint is not None:
                    arrays = {name: backend.to_numpy(array) for name, array in state.items()}
                    self.checkpoint.write(arrays, history)
                show(objective)
        return state, history

    def progress(self, total: int | None, done: int = 0) -> Any:
        """A bar on stderr, where `verbose` asks; to be called with the objective, if any."""
        return _bar(self.name, done, total) if self.verbose else _no_bar()

    def _ended(self, history: list[float]) -> bool:
        assert self.max_iter is not None  # whoever has no `until` has passes
        return len(history) >= self.max_iter or settled(history, self.tol)


def _row_major(array: Any) -> Any:
    """The array in the layout that a checkpoint gives back: BLAS rounds by the layout."""
    xp = array_namespace(array)
    return xp.reshape(xp.reshape(array, (-1,)), array.shape)


def settled(history: list[float], tol: float) -> bool:
    """Whether the last pass lowered the objective by no more than `tol` of it."""
    return len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-2])


@contextmanager
def _no_bar() -> Iterator[Callable[[float | None], None]]:
    yield lambda objective: None


@contextmanager
def _bar(name: str, done: int, total: int | None) -> Iterator[Callable[[float | None], None]]:
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
        task = bar.add_task(name, total=total, completed=done, objective="")
        yield lambda objective: bar.update(task, advance=1, objective=told(objective))
        bar.update(task, total=bar.tasks[task].completed)
