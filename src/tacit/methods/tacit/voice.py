"""A voice: a first model as the blend hears it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from tacit.backends import get_backend
from tacit.backends.block import Block
from tacit.methods.tacit.blend import logs
from tacit.models import Model
from tacit.models.nearest_rows import NearestRows

__all__ = ["Voice"]


class Voice(NamedTuple):
    """A first model in the blend: its name, itself, and what becomes of its scores.

    `least` is the score below which a logarithm goes on as its tangent; None where scores are
    log-odds already.
    """

    name: str
    model: Model
    least: float | None

    def tells(self, block: Block, at: np.ndarray) -> np.ndarray:
        """What it says of the labels `at` of each row, as the blend wants it."""
        host = isinstance(self.model, NearestRows)  # whose rows lie there
        found = self.model.scores(_on_host(block) if host else block)
        return self.heard(np.take_along_axis(found, at, 1))

    def heard(self, scores: np.ndarray) -> np.ndarray:
        """The scores as the blend wants them."""
        return scores.astype(np.float64) if self.least is None else logs(scores, self.least)


def _on_host(block: Block) -> Block:
    """The block on the CPU's backend, for models that stay on the host."""
    if block.backend.room() is None and isinstance(block.backend, type(get_backend("cpu"))):
        return block
    host = get_backend("cpu")
    X = block.X.scipy() if hasattr(block.X, "scipy") else block.backend.to_numpy(block.X)
    omega = None if block.omega is None else host.sparse(block.omega.scipy(), pattern=True)
    y = None if block.y is None else block.backend.to_numpy(block.y)
    X = host.sparse(X) if sp.issparse(X) else X
    return Block(X, host.sparse(block.Y.scipy(), pattern=True), omega, y, host)
