"""Tags that somebody said no to: `-tag`, beside those said yes to.

A review leaves both: ``gtk|-python`` says that the row is about GTK and not about Python, and
nothing of all other tags. A minus alone is a tag like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit.labels import Labels

__all__ = ["tags_of", "yes_and_no"]


def yes_and_no(tags: Iterable[str]) -> tuple[list[str], list[str]]:
    """The tags said yes to, and those said no to, each once.

    Examples
    --------
    >>> yes_and_no(["gtk", "-python", "-"])
    (['gtk', '-'], ['python'])
    """
    yes, no = dict[str, None](), dict[str, None]()
    for tag in tags:
        denied = tag[1:].strip() if tag.startswith("-") else ""
        (no if denied else yes)[denied or tag] = None
    both = yes.keys() & no.keys()
    if both:
        raise ValueError(f"both {min(both)!r} and '-{min(both)}'; leave one of them")
    return list(yes), list(no)


def tags_of(labels: Labels) -> list[list[str]]:
    """What a table says of each row: the names said yes to and, with a minus, those said no to.

    Examples
    --------
    >>> tags_of(Labels.positive_only([[1, 0]], no=[[0, 1]], classes=["gtk", "python"]))
    [['gtk', '-python']]
    """
    names = np.arange(labels.n_labels) if labels.classes is None else labels.classes
    rows: list[list[str]] = [[] for _ in range(len(labels))]
    for pattern, sign in ((labels.positives, ""), (labels.noes, "-")):
        if pattern is not None:
            for i, j in zip(*(place.tolist() for place in pattern.nonzero())):
                rows[i].append(f"{sign}{names[j]}")
    return rows
