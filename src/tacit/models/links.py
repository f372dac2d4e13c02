"""Links: from scores to probabilities, by the name that a file of a model keeps."""

from __future__ import annotations

from typing import Any

from tacit.backends import Array
from tacit.basics.numerics import sigmoid
from tacit.engines.losses import LOSSES, Probability

__all__ = ["LINKS", "link_of"]


class Margin:
    """σ(2z): ½ at the boundary of a machine of large margin, and no more calibrated than that."""

    def probability(self, z: Array) -> Array:
        return sigmoid(2 * z)


LINKS: dict[str, Probability] = {**LOSSES, "margin": Margin()}
"""Each loss turns scores into probabilities; what is no loss stands beside them."""


def link_of(name: Any) -> str:
    """The name, if there is such a link."""
    if not isinstance(name, str) or name not in LINKS:
        raise ValueError(f"its link {name!r} is not one of {sorted(LINKS)}")
    return name
