"""The work that ours and peers are given alike: what is said, what was hidden, whom to find it for.

Training labels are hidden by a mechanism; test labels stay complete. The settings of a model
are judged by P@3 on held-out training rows, against what is still said there: nobody has more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from tacit.bench.board import Cell, Skip
from tacit.datasets import Dataset, load
from tacit.labels import Labels, TopK
from tacit.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k
from tacit.missing import Positives, UniformEntries, hide

__all__ = ["SETTINGS", "Work", "loaded", "percent", "prepared"]

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
    data: Any = loaded(cell["data"])
    observed = cell["rate"] * np.prod(data.Y.shape, dtype=float)
    if cell["mechanism"] == "entries" and observed > MOST_OBSERVED:
        raise Skip(f"{observed:.0e} observed entries do not fit in memory")
    said, hidden = hide(
        data.Y, MECHANISMS[cell["mechanism"]](cell["rate"]), random_state=cell["seed"]
    )
    share = min(HELD_SHARE, HELD_ROWS / len(said))
    rows = np.arange(len(said))
    fitted, held = train_test_split(rows, test_size=share, random_state=cell["seed"])
    return Work(data.X, said, hidden, data.X_test, data.Y_test, data.Y, fitted, held)


def loaded(name: str) -> Dataset:
    """The data set of this name; where it is not found, a `Skip` that says where it was sought."""
    try:
        return load(name)
    except (OSError, ValueError) as error:
        raise Skip(str(error)) from None


def percent(share: Any) -> float:
    return round(100 * float(share), 2)
