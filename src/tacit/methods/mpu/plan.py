"""The plan of a fit: its trainings by name, in turn, all of them known before the first begins.

With three levels, two folds, c to be estimated and the threshold to be tuned it is

    c without fold 0            plain logistic regression, from whose fold 0 c is estimated
    level 0 without fold 0      predicts fold 0 for level 1
    level 0 without fold 1      predicts fold 1 for level 1
    level 0                     the base level of the model
    level 1 without fold 0      predicts fold 0 for level 2
    level 1 without fold 1      predicts fold 1 for level 2
    level 1                     the next level of the model
    level 2                     the last one
    threshold without fold 0    as the last level, from whose fold 0 the threshold is chosen
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Training", "plan_of"]


@dataclass(frozen=True)
class Training:
    """One training of a plan.

    Attributes
    ----------
    purpose : {"c", "level", "threshold"}
        What it is for.
    level : int
        The level whose features it sees.
    without : int or None
        The fold that it does not see; None where it sees all rows.
    """

    purpose: Literal["c", "level", "threshold"]
    level: int
    without: int | None = None

    @property
    def name(self) -> str:
        what = f"level {self.level}" if self.purpose == "level" else self.purpose
        return what if self.without is None else f"{what} without fold {self.without}"


def plan_of(
    n_levels: int, n_folds: int, *, estimates_c: bool, tunes_threshold: bool
) -> tuple[Training, ...]:
    """The trainings of a fit, in turn.

    Examples
    --------
    >>> plan = plan_of(2, 2, estimates_c=False, tunes_threshold=True)
    >>> [training.name for training in plan]
    ['level 0 without fold 0', 'level 0 without fold 1', 'level 0', 'level 1',
     'threshold without fold 0']
    """
    last = n_levels - 1
    plan = [Training("c", 0, without=0)] if estimates_c else []
    for level in range(last):  # figure 4: rows of a fold are predicted from all others
        plan += [Training("level", level, without=fold) for fold in range(n_folds)]
        plan.append(Training("level", level))
    plan.append(Training("level", last))
    if tunes_threshold:
        plan.append(Training("threshold", last, without=0))
    return tuple(plan)
