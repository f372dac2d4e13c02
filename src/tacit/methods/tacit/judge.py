"""How a choice is judged: by how well it ranks rows that it has not seen.

    gain = Σ_r [the label at rank r was said] / log₂(1 + r),   r = 1 … 5,  a row                (1)

takes silence neither for yes nor for no: it lowers the gain of all choices alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.backends.block import Block
from tacit.metrics.top import contains

__all__ = ["RANKS", "gain_of_scores", "gains", "is_clear"]

RANKS = 5


def gains(said: np.ndarray, ranks: int = RANKS) -> np.ndarray:
    """(1) for each row, of what was said at each rank."""
    said = said[:, :ranks]
    return said @ (1 / np.log2(2 + np.arange(said.shape[1])))


def gain_of_scores(b: Block, scores: Any) -> np.ndarray:
    """(1) for each row of a block, ranked by these scores."""
    top = b.backend.top_k(scores, None, min(RANKS, b.Y.shape[1]), None)
    return gains(contains(b.Y.scipy(), top.indices))


def is_clear(won: np.ndarray, errors: float) -> bool:
    """Whether rows won by more than so many standard errors of their mean."""
    return bool(won.mean() > errors * won.std() / max(len(won), 1) ** 0.5)
