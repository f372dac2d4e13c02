"""A scoreboard: cells that are measured once, and written as soon as they are known.

A cell is what was asked, as plain JSON values: `{"data": "bibtex", "rate": 0.5, "method": "LEML"}`.
A board is a file of lines, one a measured cell, with what was found, the versions and the date. Who
stops a run and starts it again loses the cell that was being measured, and no other. A cell that
could not be measured is a line too, with one sentence that says why; it is tried again next time.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Board", "Cell", "Row", "Skip", "about", "apart", "tell_skipped"]

Cell = dict[str, Any]
Row = dict[str, Any]
Measure = Callable[[Cell], dict[str, Any]]

PACKAGES = ("tacit", "numpy", "scipy", "scikit-learn", "numba", "torch")


class Skip(Exception):  # noqa: N818
    """Why a cell cannot be measured, in one sentence."""


@dataclass(frozen=True)
class Board:
    """The lines of a file: `{"cell": …, "found": … | "skipped": …, "about": …}`.

    Examples
    --------
    >>> import tempfile
    >>> board = Board(Path(tempfile.mkdtemp()) / "sums.jsonl")
    >>> rows = board.fill([{"a": 1}, {"a": 2}], lambda cell: {"double": 2 * cell["a"]}, show=False)
    >>> [row["found"] for row in board.rows()]
    [{'double': 2}, {'double': 4}]
    """

    path: Path

    def rows(self) -> list[Row]:
        """What is known, one row a cell: the newest line of each, in the order of the first."""
        if not self.path.exists():
            return []
        rows: dict[str, Row] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # a run was killed while it wrote this line
                continue
            rows[_key(row["cell"])] = row
        return list(rows.values())

    def fill(
        self,
        cells: Iterable[Cell],
        measure: Measure,
        *,
        jobs: int = 0,
        limit: float | None = None,
        show: bool = True,
    ) -> list[Row]:
        """Measure the cells that are not there yet; the rows of all of `cells`, in their order.

        Parameters
        ----------
        cells : iterable of dict
            What is asked.
        measure : callable
            From a cell to what is found, as plain JSON values; it raises `Skip` where it cannot.
        jobs : int, default=0
            0 measures in this process; from 1 on each cell has a fresh process of its own, so many
            at a time, and "peak GiB" is added to what is found. `measure` must then be a function
            that a new process can import.
        limit : float, optional
            Seconds after which a process is stopped, and its cell skipped.
        show : bool, default=True
            Whether to show progress and rows on stderr as they come.
        """
        cells = list(cells)
        known = {_key(row["cell"]) for row in self.rows() if "found" in row}
        todo = [cell for cell in cells if _key(cell) not in known]
        if todo:
            one = (lambda cell: apart(measure, cell, limit=limit)) if jobs else measure
            self._add(_measured(one, todo, jobs), len(cells) - len(todo), len(cells), show)
        found = {_key(row["cell"]): row for row in self.rows()}
        return [found[_key(cell)] for cell in cells]

    def _add(self, rows: Iterator[Row], done: int, total: int, show: bool) -> None:
        """Write rows as they come, and show how many of the cells are known."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _end_last_line(self.path)
        console = Console(stderr=True, quiet=not show)
        with _progress(console) as progress, self.path.open("a", encoding="utf-8") as file:
            task = progress.add_task(self.path.stem, total=total, completed=done)
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                progress.console.print(_told(row), soft_wrap=True, markup=False)
                progress.advance(task)


def apart(measure: Measure, cell: Cell, limit: float | None = None) -> dict[str, Any]:
    """What `measure` finds in a process of its own, with the peak of its memory in GiB.

    A process that dies, for want of memory say, or takes longer than `limit` seconds, is a `Skip`.
    """
    context = get_context("spawn")  # not fork: its peak would begin at that of this process
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure_there, args=(measure, cell, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(limit):
            raise Skip(f"stopped after {limit:g} s")
        kind, answer = ours.recv()
    except EOFError:
        process.join()
        raise Skip(f"its process died with status {process.exitcode}") from None
    finally:
        if process.is_alive():
            process.terminate()
        process.join()
    if kind == "skipped":
        raise Skip(answer)
    return answer


def tell_skipped(rows: Iterable[Row], console: Console) -> None:
    """A line for each method that was skipped, and why."""
    for row in rows:
        if "skipped" in row:
            console.print(f"{row['cell']['method']}: {row['skipped']}", markup=False, style="dim")


@cache
def about() -> dict[str, Any]:
    """Versions, machine and date: what figures depend on beside their cell."""
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": joblib.cpu_count(),
        "machine": platform.machine(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _measured(measure: Measure, cells: list[Cell], jobs: int) -> Iterator[Row]:
    """The rows of `cells` as they become known: in order, or `jobs` at a time."""
    if jobs < 2:
        yield from (_row(measure, cell) for cell in cells)
        return
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(_row, measure, cell) for cell in cells]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:  # a failure, or whoever stops the run, need not wait for the cells not begun
            pool.shutdown(cancel_futures=True)


def _row(measure: Measure, cell: Cell) -> Row:
    # Times of a machine that had other work to do are worth less: its load says so.
    busy = {"load": round(os.getloadavg()[0], 1)} if hasattr(os, "getloadavg") else {}
    try:
        return {"cell": cell, "found": measure(cell), "about": about() | busy}
    except Skip as why:
        return {"cell": cell, "skipped": str(why), "about": about() | busy}


def _measure_there(measure: Measure, cell: Cell, answer: Any) -> None:
    try:
        found = measure(cell)
        answer.send(("found", found | {"peak GiB": _peak_gib()}))
    except Skip as why:
        answer.send(("skipped", str(why)))
    except Exception as error:  # a fault of one cell need not cost the others; it is tried again
        traceback.print_exc()
        answer.send(("skipped", f"failed with {type(error).__name__}: {error}"))


def _peak_gib() -> float:
    """The most memory this process has had."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage outlives exec, and so begins at the size of the parent
        kib = int(status.read_text().partition("VmHWM:")[2].split()[0])
    else:
        import resource  # not on Windows

        unit = 1024 if sys.platform == "darwin" else 1
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
    return round(kib / 2**20, 2)


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True, ensure_ascii=False)


def _end_last_line(path: Path) -> None:
    """A line that a killed run left unfinished must not swallow the next."""
    if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


def _told(row: Row) -> str:
    what = " · ".join(str(value) for value in row["cell"].values() if value is not None)
    if "skipped" in row:
        return f"{what}: skipped, {row['skipped']}"
    shown = (f"{k} {v:g}" for k, v in row["found"].items() if isinstance(v, int | float))
    return f"{what}: {', '.join(shown)}"


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
