"""`--precision`: the probability from which on so many suggestions are right.

It is found by rows whose tags somebody checked (`--checked`), and by suggestions made just as those
that it is for:

- `predict`: of rows that the model has not seen, its first labels;
- `complete`: of rows that are in the table too, as they stand there. What was said of a row and
  what was not are no fair sample of each other, so that no rows held out can tell how many of the
  *unsaid* labels are true. Only somebody who looked can.

The threshold is that of `tacit.metrics.precision_threshold`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.cli.inputs import Fitted, InputRows, in_labels_of, read_rows
from tacit.cli.options import TableOptions
from tacit.cli.output import note, stage
from tacit.labels import Labels, TopK
from tacit.metrics import precision_threshold
from tacit.models.completion import Completion

if TYPE_CHECKING:
    from tacit.metrics.thresholds import PrecisionThreshold

__all__ = ["Sure", "Wanted"]

_SILENT = (
    "what nobody said there counts as wrong, though it may be true: this is the least that is right"
)


@dataclass(frozen=True)
class Sure:
    """The least probability that each label is suggested with; infinite where it never is."""

    least: np.ndarray
    told: dict[str, Any]
    """The thresholds, and how many suggestions are right from them on."""

    def kept(self, found: Completion) -> Completion:
        """The completions that are probable enough."""
        sure = found.probability >= self.least[found.label]
        return Completion(*(part[sure] for part in found))


@dataclass(frozen=True)
class Wanted:
    """What the user asks for: this share right, by these rows, of all labels or of each."""

    precision: float
    checked: str
    each_label: bool

    @classmethod
    def of(cls, precision: float | None, checked: str | None, each_label: bool) -> Wanted | None:
        """The options, or None where none was given."""
        if precision is None:
            if checked is None and not each_label:
                return None
            given = "--each-label" if checked is None else "--checked"
            raise ValueError(f"{given} is for --precision; give that too, such as --precision 0.9")
        if not 0 < precision < 1:
            raise ValueError(f"--precision must be above 0 and below 1; got {precision:g}")
        if checked is None:
            raise ValueError(
                "--precision is judged by rows whose tags somebody checked; give --checked FILE"
            )
        return cls(precision, checked, each_label)

    def of_new_rows(self, fitted: Fitted, table: TableOptions, k: int) -> Sure:
        """By the first k labels of the checked rows."""
        rows = self._read(fitted, table)
        with stage(f"judging by {self.checked}"):
            best = fitted.estimator.top_k(fitted.features(rows), k, probability=True)
        return self._judged(fitted, rows.said(), best)

    def of_unsaid(
        self, fitted: Fitted, table: TableOptions, data: InputRows, X: Any, said: Labels, k: int
    ) -> Sure:
        """By k labels that nobody said in the table, of each row that was checked."""
        if fitted.columns.given(table).id is None:
            raise ValueError("--precision finds the checked rows in the table by --id; give that")
        rows = self._read(fitted, table)
        place = {str(name): i for i, name in enumerate(data.ids)}
        pairs = [(i, place[str(name)]) for i, name in enumerate(rows.ids) if str(name) in place]
        if not pairs:
            raise ValueError(
                f"no row of {rows.name} is in {data.name}, {rows.ids[0]!r} first; check some rows "
                "of that table, and leave their --id as it is"
            )
        checked, here = np.array(pairs).T
        with stage(f"judging by {self.checked}"):
            found = fitted.estimator.complete(X[here], said[here], k)
        return self._judged(fitted, rows.said()[checked], found.by_row(len(here), k))

    def _read(self, fitted: Fitted, table: TableOptions) -> InputRows:
        plain = replace(table, delimiter=None, encoding=None, format=None)  # of the other table
        with stage(f"reading {self.checked}"):
            rows = read_rows(self.checked, fitted.columns.given(plain), part="test", model=fitted)
        return in_labels_of(fitted, rows)

    def _judged(self, fitted: Fitted, truth: Labels, suggested: TopK) -> Sure:
        by: Any = "labels" if self.each_label else "all"
        found = precision_threshold(truth, suggested, self.precision, by)
        silent = truth.kind == "positive-only"
        if not np.any(found.chosen):
            raise ValueError(self._refused(found, silent))
        note(self._of_each(found) if self.each_label else self._of_all(found))
        if silent:
            note(_SILENT)
        least = np.where(np.isnan(found.threshold), np.inf, found.threshold)
        told: dict[str, Any] = {"asked": self.precision, "lower_bound": silent}
        if self.each_label:
            told["labels"] = [
                {"label": name, **_facts(*values)}
                for name, *values in zip(fitted.names(), *found[:-1])
                if values[1]
            ]
        else:
            told |= _facts(*found[:-1])
        return Sure(np.broadcast_to(least, truth.n_labels), told)

    def _refused(self, found: PrecisionThreshold, silent: bool) -> str:
        some = found.best[~np.isnan(found.best)] if self.each_label else [found.best]
        best = max(some, default=0.0)
        at_best = f"the best that they show is {np.floor(100 * np.nan_to_num(best)):.0f}%"
        more = f"; {_SILENT}" if silent else ""
        which = "of no label" if self.each_label else "at no probability"
        return (
            f"{which} can --precision {self.precision:g} be relied on, by the rows of "
            f"{self.checked}: {at_best}; ask for that or less, or check more rows{more}"
        )

    def _of_all(self, found: PrecisionThreshold) -> str:
        return (
            f"from probability {found.threshold:.3g} on {found.precision:.1%} of "
            f"{found.chosen:,.0f} suggestions are right in {self.checked}, with an interval from "
            f"{found.low:.1%} to {found.high:.1%}"
        )

    def _of_each(self, found: PrecisionThreshold) -> str:
        reached = found.chosen > 0
        chosen = found.chosen[reached]
        right = (chosen * found.precision[reached]).sum()
        return (
            f"{reached.sum():,} of {len(reached):,} labels have a probability from which on "
            f"{self.precision:.0%} of suggestions can be relied on, and {right / chosen.sum():.1%} "
            f"of {chosen.sum():,.0f} are right in {self.checked}; the others are not suggested"
        )


def _facts(*values: Any) -> dict[str, float]:
    """A threshold and what is right above it."""
    return dict(zip(("threshold", "suggestions", "precision", "low", "high"), map(float, values)))
