"""Limits: up to which size a part of `Tacit` is tried, each with its unit and its reason.

A part that is left out for one of these says so in `Tacit.plan` and in the report. Tests and users
with another machine pass a value of their own: `Tacit(limits=replace(LIMITS, exact_rows=0))`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True)
class Limits:
    """What `Tacit` may lay out and how long it may take, as counts of numbers and operations."""

    exact_features: int = 6_000  # features; XᵀX and its factor: 36 million numbers each, a second
    spectrum_features: int = 2_500  # features; the eigenvectors of XᵀX, twice in a fit, in seconds
    exact_rows: int = 5_000  # rows, where they are fewer than the features: XXᵀ in place of XᵀX
    directions: int = 3 * 10**8  # rows × features of those; their eigenvectors: 1.2 GiB in float32
    choosing_rows: int = 4_000  # rows that choose scaling, power and λ: a gain to half a per cent
    choosing_scores: int = 5 * 10**6  # of them × labels; beyond, fewer rows choose
    judged_rows: int = 4_000  # rows that teach the blend; it has some six weights
    links_rows: int = 2_000  # of those, the rows that judge links: they are ranked once more
    held_rows: int = 300_000  # rows that teach the parts which are judged; all teach the last fit
    taught_rows: int = 1_500  # rows held out at least, in as many folds as that takes
    look_numbers: int = 10**9  # of features that the second look reads: some 20 s a pass of it
    look_dense: int = 2 * 10**7  # of dense ones, in which it finds little that a network does not
    gathered: int = 4 * 10**8  # numbers of X brought into one place for network and nearest
    nearest_rows: int = 100_000  # among which every prediction looks: a millisecond a row
    link_labels: int = 8_000  # labels; links between all of them: 64 million numbers
    flops: float = 1e11  # operations a second of a network on two cores, as measured in 2026
    auto_seconds: float = 60.0  # for all that may be left out, unless a budget says otherwise …
    auto_times: float = 2.0  # … or this many times what the first model takes, where that is more


LIMITS = Limits()
