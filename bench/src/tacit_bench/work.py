"""The work that ours and peers are given alike: what is said, what was hidden, whom to find it for.

Training labels are hidden by a mechanism; test labels stay complete. The settings of a model
are judged by P@3 on held-out training rows, against what is still said there: nobody has more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from tacit.datasets import Dataset, load, names
from tacit.labels import Labels, TopK
from tacit.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k
from tacit.missing import Positives, UniformEntries, hide
from tacit_bench.board import Cell, Skip
from tacit_bench.own import own_data, with_test_rows

__all__ = ["SETTINGS", "Work", "check_data", "loaded", "percent", "prepared"]

SETTINGS = 4
"""How many settings a model, ours or a peer, may choose from: the tuning budget of the boards."""

HELD_SHARE, HELD_ROWS = 0.2, 10_000  # the smaller of the two is held out
MOST_OBSERVED = 5e8  # entries whose pattern is laid out: some GiB
MECHANISMS = {"positives": Positives, "entries": UniformEntries}


@dataclass(frozen=True)
class Work:
    """Training rows of which some labels are hidden, and test rows with complete labels."""

    X: Any
    said: Labels
    hidden: sp.csr_array
    X_test: Any
    Y_test: Labels
    complete: Labels
    fitted: np.ndarray
    """The training rows on which settings are tried, and below those on which they are judged."""
    held: np.ndarray

    def figures(self, top: TopK) -> dict[str, float]:
        """P@k, nDCG@k and PSP@k of the best labels of the test rows, in %."""
        weights = propensities(self.complete)
        found = {
            "P": precision_at_k(self.Y_test, top, (1, 3, 5)),
            "nDCG": ndcg_at_k(self.Y_test, top, (1, 3, 5)),
            "PSP": psp_at_k(self.Y_test, top, weights, (1, 3, 5)),
        }
        return {
            f"{name}@{k}": percent(value)
            for name, values in found.items()
            for k, value in zip((1, 3, 5), np.atleast_1d(values))
            if (name, k) != ("nDCG", 1)  # the same as P@1
        }


def prepared(cell: Cell) -> Work:
    """The work of a cell: its data, mechanism, rate and seed."""
    data: Any = with_test_rows(loaded(cell["data"], cell.get("columns")))
    observed = cell["rate"] * np.prod(data.Y.shape, dtype=float)
    if cell["mechanism"] == "entries" and observed > MOST_OBSERVED:
        raise Skip(f"{observed:.0e} observed entries do not fit in memory")
    try:
        said, hidden = hide(
            data.Y, MECHANISMS[cell["mechanism"]](cell["rate"]), random_state=cell["seed"]
        )
    except ValueError as refusal:  # such as: labels that are masked already
        raise Skip(f"{cell['data']}: {refusal}") from None
    share = min(HELD_SHARE, HELD_ROWS / len(said))
    rows = np.arange(len(said))
    fitted, held = train_test_split(rows, test_size=share, random_state=cell["seed"])
    return Work(data.X, said, hidden, data.X_test, data.Y_test, data.Y, fitted, held)


def loaded(name: str, columns: dict[str, Any] | None = None) -> Dataset:
    """The data set of this name, or what is at this path.

    What is not there, or cannot be read, is a `Skip` that says so. "random" is small and made here.
    """
    if name == "random":
        return _random()
    try:
        of_ones_own = columns is not None or (name not in names() and Path(name).exists())
        return own_data(name, columns) if of_ones_own else load(name)
    except (OSError, ValueError) as error:
        raise Skip(str(error)) from None


def check_data(name: str, board: Iterable[str]) -> None:
    """Say at once, in one sentence, that there is no such data set, nor a path."""
    if name not in board and name not in names() and not Path(name).exists():
        raise ValueError(
            f"--data {name} is not on this board; there are {', '.join(board)}, those that tacit "
            "datasets lists, and paths of your own, of which this is none"
        )


def percent(share: Any) -> float:
    return round(100 * float(share), 2)


def _random() -> Dataset:
    """Rows of few words, a quarter of them to test on, and labels that are linear in them."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 60), density=0.2, format="csr", rng=rng, dtype=np.float32)
    Y = Labels.complete(sp.csr_array(X @ rng.standard_normal((60, 12)) > 1.5))
    return Dataset("random", X[:300], Y[:300], X_test=X[300:], Y_test=Y[300:])
