"""How much is missing: the labels that are true though nobody said so.

A label that is said with probability c where it is true, and was said N times, is true about N / c
times, so

    missing = N (1 - c) / c,    share missing = 1 - c.                                         (1)

The rate c and its interval come from a model (`tacit.missing.rates` has what can be known of it):
`Tacit`, unless another is given. They are what stands and falls with its assumptions: all methods
take it that which true labels were said does not depend on anything they do not see. Where the
interval is too wide to say anything, so is (1), and `Missing` says so in words.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from tacit.labels import as_labels
from tacit.missing.rates import Rates, no_rates

__all__ = ["Missing", "estimate"]

_NAMED = 3  # labels that a warning names
_LISTED = 10  # labels that a summary lists


def estimate(model: Any = None, X: Any = None, Y: Any = None) -> Missing:
    """Say how many true labels of Y were never said.

    Parameters
    ----------
    model : estimator or None, default=None
        Fitted to positive-only labels by a method that learns how often true labels are said: its
        `said_rates_` are not None (Tacit, MPU, GenEML, Elkan08). None fits a Tacit to X and Y. An
        estimator of your own needs `said_rates_`, one rate a label; intervals come from its
        `rates(X, Y)`, if it has that.
    X, Y
        The features, and the labels to which something is missing: positive-only, or a plain 0/1
        matrix, which is read so.

    Examples
    --------
    >>> from tacit.missing import Positives, hide
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 6))
    >>> Y = rng.random(X.shape) < 1 / (1 + np.exp(-8 * X))
    >>> said, hidden = hide(Y, Positives(0.4), random_state=0)
    >>> found = estimate(X=X, Y=said)
    >>> missing, low, high = found.total_missing
    >>> low < hidden.nnz < high, found.rates.total_known
    (True, True)
    """
    labels = as_labels(Y, "positive-only")
    if labels.kind != "positive-only":
        raise ValueError(_KNOWN[labels.kind])
    if not labels.positives.nnz:
        raise ValueError("Y says yes to nothing, which is no measure of what is missing; give more")
    if model is None:
        from tacit.methods.tacit import Tacit  # the one import upwards: see the layers

        model = Tacit(random_state=0).fit(X, labels)
    try:
        c = model.said_rates_
    except NotFittedError:
        raise
    except AttributeError:
        c = None
    if c is None:
        raise ValueError(no_rates(type(model).__name__))
    if len(c) != labels.n_labels:
        raise ValueError(
            f"Y has {labels.n_labels} labels but model has {len(c)}; give the labels it was "
            "fitted to"
        )
    classes = model.classes_ if labels.classes is None else labels.classes
    said = np.bincount(labels.positives.indices, minlength=labels.n_labels)
    if hasattr(model, "rates"):
        rates = model.rates(X, labels)
    else:
        nan = np.full(labels.n_labels, np.nan)
        how = f"{type(model).__name__}'s own rates, which come without intervals."
        rates = Rates.of_labels(c, nan, nan, how, said)
    warning = _warning(classes, rates)
    if warning is not None:
        warnings.warn(warning, UserWarning, stacklevel=2)
    return Missing(classes, said, rates, warning)


_KNOWN = {
    "complete": "Y is complete, so whatever was not said is a no and nothing is missing; give "
    "Labels.positive_only(Y) if silence means nothing",
    "masked": "Y is masked, so its mask says what is missing: all that is not in Y.observed; give "
    "Y.as_positive_only() if the mask is to be forgotten",
}


@dataclass(frozen=True, eq=False)
class Missing:
    """How much is missing, by (1).

    Attributes
    ----------
    classes : ndarray
        The names of the labels, or their numbers.
    said : ndarray of shape (n_labels,)
        How often each was said.
    rates : Rates
        The rates c, and how they were got.
    warning : str or None
        What is not known, in one sentence.
    """

    classes: np.ndarray
    said: np.ndarray
    rates: Rates
    warning: str | None

    @property
    def missing(self) -> np.ndarray:
        """How often each label is true and was not said; 0, unknowing, where it never was said."""
        return _unsaid(self.said, self.rates.c)

    @property
    def low(self) -> np.ndarray:
        """The lower ends of the intervals of `missing`, from the upper ends of those of c."""
        return _unsaid(self.said, self.rates.high)

    @property
    def high(self) -> np.ndarray:
        """The upper ends of the intervals of `missing`."""
        return _unsaid(self.said, self.rates.low)

    @property
    def total_said(self) -> int:
        return int(self.said.sum())

    @property
    def total_missing(self) -> tuple[float, float, float]:
        """How many labels are missing in all, from the overall rate, and its interval."""
        c, low, high = self.rates.overall
        missing, least, most = _unsaid(self.total_said, np.array([c, high, low])).tolist()
        return missing, least, most

    @property
    def share(self) -> tuple[float, float, float]:
        """The share of all true labels that is missing, 1 - c, and its interval."""
        c, low, high = self.rates.overall
        return 1 - c, 1 - high, 1 - low

    def summary(self) -> str:
        """What a person wants to see first: how much is missing, and of which labels most."""
        table = self._table()
        width = max(len(name) for name, *_ in table)
        lines = [f"{name:<{width}}" + "".join(f"{c:>17}" for c in cells) for name, *cells in table]
        return "\n".join(lines + self._notes())

    __str__ = summary

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        row = lambda cells, tag: "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
        body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<table><tr>{row(head, 'th')}</tr>{body}</table>{notes}"

    def _table(self) -> list[tuple[str, ...]]:
        """All labels, then those with most missing: name, said, missing, its interval, share."""
        rates, missing = self.rates, self.missing
        head = ("label", "said", "missing", "between", "share missing")
        name = "all labels" + ("" if _tells_of_all(rates) else " ?")
        rows: list[tuple[str, ...]] = [head, _row(name, self.total_said, *rates.overall)]
        for j in np.argsort(-missing, kind="stable")[: min(_LISTED, np.count_nonzero(missing))]:
            name = str(self.classes[j]) + ("" if rates.identifiable[j] else " ?")
            rows.append(_row(name, self.said[j], rates.c[j], rates.low[j], rates.high[j]))
        return rows

    def _notes(self) -> list[str]:
        return [self.rates.how] + ([] if self.warning is None else [f"? {self.warning}"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the share missing of each label against how often it was said; needs matplotlib.

        Labels whose rate is not identifiable are pale. Returns the axes.
        """
        ax = _axes() if ax is None else ax
        c, low, high = self.rates.c, self.rates.low, self.rates.high
        for known, colour, name in (
            (False, "#c9d3db", "not identifiable"),
            (True, "#1b6ca8", "identifiable"),
        ):
            these = (self.rates.identifiable == known) & (self.said > 0)
            if these.any():
                ends = 100 * np.nan_to_num([high - c, c - low])[:, these]
                ax.errorbar(
                    self.said[these], 100 * (1 - c[these]), ends, fmt="o", markersize=4,
                    elinewidth=1, color=colour, label=name,
                )  # fmt: skip
        share, *_ = self.share
        ax.axhline(100 * share, color="#b5482f", linewidth=1, label=f"all labels: {share:.0%}")
        ax.set(xscale="log", ylim=(0, 100), xlabel="times said", ylabel="share missing (%)")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return ax


def _unsaid(said: Any, c: Any) -> Any:
    return said * (1 - c) / c


def _row(name: str, said: int, c: float, low: float, high: float) -> tuple[str, ...]:
    missing, least, most = (_unsaid(said, rate) for rate in (c, high, low))
    between = "–" if np.isnan(least) else f"{least:,.0f} – {most:,.0f}"
    return name, f"{said:,}", f"{missing:,.0f}", between, f"{1 - c:.0%}"


def _tells_of_all(rates: Rates) -> bool:
    """Whether nothing speaks against the rate of all: an interval that is there and too wide."""
    return rates.total_known or bool(np.isnan(rates.overall[1]))


def _warning(classes: np.ndarray, rates: Rates) -> str | None:
    told, unknown = [], np.flatnonzero(~rates.identifiable)
    if not _tells_of_all(rates):
        _, low, high = rates.overall
        told.append(
            "how much is missing in all is not identifiable, since too few rows are sure enough "
            f"of a label to show how often it is said: between {1 - high:.0%} and {1 - low:.0%} of "
            "what is true would suit them"
        )
    if len(unknown):
        names = ", ".join(str(name) for name in classes[unknown[:_NAMED]])
        more = ", …" if len(unknown) > _NAMED else ""
        some = f"{len(unknown)} of {len(classes)} labels ({names}{more})"
        told.append(f"how much is missing cannot be told for {some}")
    if not told:
        return None
    advice = "give more rows, a known c, or a random sample of fully annotated rows"
    return "; ".join([*told, advice])


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'plot needs matplotlib, which is not installed; pip install "tacit[plot]"'
        ) from None
    return pyplot.subplots(layout="constrained")[1]
