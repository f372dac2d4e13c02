"""Hide labels on purpose, in each paper's way, to learn what a method makes of the rest.

With y_il the truth of row i and label l, entry by entry and independently,

    ==================== ============================================= ======== ==================
    mechanism            what stays said                               used by  gives
    ==================== ============================================= ======== ==================
    `UniformEntries(r)`  any entry, yes or no, with probability r      LEML     masked
    `Positives(s)`       y_il = 1 with probability 1 − s               MPU      positive-only
    `Exposure(mu)`       y_il = 1 with probability μ_l                 GenEML   positive-only
    `Covariates(X, β)`   y_il = 1 with probability σ(x_iᵀβ_l + β_0l)   GenEML   positive-only
    ==================== ============================================= ======== ==================

FaIE and SEM hide nothing; for methods that read silence as no, `Hidden.labels.as_complete()` says
so. Hiding positives of masked labels leaves them masked, with what was hidden no longer observed.
Noes of positive-only labels stay said, whatever positives are hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tacit.labels import DENSE_LIMIT, Labels, as_labels

__all__ = ["Covariates", "Exposure", "Hidden", "Mechanism", "Positives", "UniformEntries", "hide"]


BLOCK_ENTRIES = 2**22
"""Covariates of positives that are laid out at a time: 32 MiB in float64."""


class Hidden(NamedTuple):
    """What is left to learn from, and the answers.

    `labels` are the Labels still said; `hidden` (csr_array of bool) the positives no longer said.
    """

    labels: Labels
    hidden: sp.csr_array


class Mechanism(Protocol):
    """A way of hiding labels."""

    def hide(self, labels: Labels, rng: np.random.Generator) -> Hidden: ...


def hide(
    Y: Any, mechanism: Mechanism, *, random_state: int | np.random.Generator | None = None
) -> Hidden:
    """Hide labels of Y in the way of a mechanism.

    Parameters
    ----------
    Y : Labels, or 0/1 array or sparse matrix
        The labels as they are; a plain matrix is read as complete.
    mechanism : UniformEntries, Positives, Exposure or Covariates
        What is hidden.
    random_state : int, Generator or None, default=None
        The same int hides the same entries.

    Examples
    --------
    >>> Y = np.tile([1, 1, 0, 0, 1], (100, 1))
    >>> labels, hidden = hide(Y, Positives(0.8), random_state=1)
    >>> labels
    Labels(positive-only, 100 × 5, 56 said yes)
    >>> hidden.nnz
    244
    >>> hide(Y, UniformEntries(0.2), random_state=1).labels
    Labels(masked, 100 × 5, 61 of 94 observed said yes)
    """
    if not hasattr(mechanism, "hide"):
        raise ValueError(
            f"mechanism must be one of tacit.missing, such as Positives(0.5); got {mechanism!r}"
        )
    return mechanism.hide(as_labels(Y), np.random.default_rng(random_state))


@dataclass(frozen=True)
class UniformEntries:
    """Observe every entry, zeros and ones alike, with one probability (LEML).

    The pattern is drawn by the gaps between observed entries, so memory is that of what is
    observed, r n L entries, and never n × L.

    Parameters
    ----------
    rate : float
        The probability r that an entry stays observed, above 0 and at most 1.
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(
                f"UniformEntries: rate is the share observed, above 0 and at most 1; "
                f"got {self.rate!r}"
            )

    def hide(self, labels: Labels, rng: np.random.Generator) -> Hidden:
        if labels.kind == "positive-only":
            raise ValueError(
                "UniformEntries observes zeros as well, and positive-only labels have none that "
                "are known; use Positives, or as_complete() if silence means no"
            )
        n, n_labels = labels.shape
        expected = self.rate * n * n_labels
        if expected > DENSE_LIMIT:
            raise ValueError(
                f"UniformEntries: rate {self.rate} would observe {expected:,.0f} of {n:,} × "
                f"{n_labels:,} entries, more than the {DENSE_LIMIT:,} allowed; lower the rate, or "
                "use Positives"
            )
        cells = _bernoulli_cells(n * n_labels, self.rate, rng)
        indptr = np.searchsorted(cells, np.arange(n + 1) * n_labels)
        drawn = sp.csr_array(
            (np.ones(len(cells), bool), cells % max(n_labels, 1), indptr), shape=labels.shape
        )
        observed = drawn if labels.observed is None else _both(drawn, labels.observed)
        positives = _both(labels.positives, observed)
        hidden = sp.csr_array(labels.positives > positives)
        return Hidden(Labels("masked", positives, observed, labels.classes), hidden)


@dataclass(frozen=True)
class Positives:
    """Hide a share of the positives (MPU).

    Parameters
    ----------
    share : float
        The share of positives that is hidden, at least 0 and below 1.
    per_instance : bool, default=False
        False hides each positive independently; True hides that share of each row. Where this is
        no whole number it is rounded up or down at random, so that it is right on average.
    keep_one : bool, default=False
        Whether a row with positives always keeps one of them.
    """

    share: float
    per_instance: bool = False
    keep_one: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(
                f"Positives: share is the share hidden, at least 0 and below 1; got {self.share!r}"
            )

    def hide(self, labels: Labels, rng: np.random.Generator) -> Hidden:
        counts = np.diff(labels.positives.indptr)
        rows = np.repeat(np.arange(labels.n_samples), counts)
        draw = rng.random(len(rows))
        place = np.empty(len(rows), np.intp)  # of a draw among those of its row, from 0
        place[np.lexsort((draw, rows))] = np.arange(len(rows)) - labels.positives.indptr[rows]
        if self.per_instance:
            # Rounded first, since 0.7 × 10 is a little more than 7.
            quota = np.floor(np.round(self.share * counts, 9) + rng.random(len(counts)))
            gone = place < quota[rows]
        else:
            gone = draw < self.share
        if self.keep_one:
            # A row's largest draw is hidden only if all others are.
            gone &= place < counts[rows] - 1
        return _without(labels, gone)


@dataclass(frozen=True, eq=False)
class Exposure:
    """Show each positive with its label's probability of being exposed (GenEML).

    Parameters
    ----------
    mu : float or array of shape (n_labels,)
        The probability μ_l that a positive of label l stays said; one number serves all labels.
    """

    mu: Any

    def __post_init__(self) -> None:
        mu = np.asarray(self.mu, dtype=np.float64)
        if not ((mu >= 0) & (mu <= 1)).all():
            raise ValueError(f"Exposure: mu must hold probabilities, 0 to 1; got {self.mu!r}")

    def hide(self, labels: Labels, rng: np.random.Generator) -> Hidden:
        mu = _per_label(self.mu, labels.n_labels, "Exposure: mu")
        columns = labels.positives.indices
        return _without(labels, rng.random(len(columns)) >= mu[columns])


@dataclass(frozen=True, eq=False)
class Covariates:
    """Show each positive with a probability that depends on its row (GenEML with covariates).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_covariates)
        The covariates x_i: the features, or others.
    beta : array of shape (n_covariates, n_labels) or (n_covariates,)
        The weights β_l of each label, or one β for all.
    intercept : float or array of shape (n_labels,), default=0.0
        β_0l; raise it to hide less.
    """

    X: Any
    beta: Any
    intercept: Any = 0.0

    def hide(self, labels: Labels, rng: np.random.Generator) -> Hidden:
        X = sp.csr_array(self.X) if sp.issparse(self.X) else np.asarray(self.X, dtype=np.float64)
        beta = np.asarray(self.beta, dtype=np.float64)
        n, n_labels = labels.shape
        if X.ndim != 2 or X.shape[0] != n:
            raise ValueError(
                f"Covariates: X has shape {X.shape} but Y has {n} rows; give one row for each"
            )
        if beta.shape not in ((X.shape[1],), (X.shape[1], n_labels)):
            raise ValueError(
                f"Covariates: beta has shape {beta.shape}; give ({X.shape[1]},) or "
                f"({X.shape[1]}, {n_labels}), one weight for each covariate (and label)"
            )
        logits = _per_label(self.intercept, n_labels, "Covariates: intercept")
        logits = logits[labels.positives.indices] + _at_positives(X, beta, labels)
        return _without(labels, rng.random(len(logits)) >= expit(logits))


def _without(labels: Labels, gone: np.ndarray) -> Hidden:
    """The labels less some of the positives, given as a mask of the stored ones."""
    hidden, positives = (_some(labels.positives, chosen) for chosen in (gone, ~gone))
    if labels.observed is None:
        noes = labels.noes
        return Hidden(Labels("positive-only", positives, None, labels.classes, noes), hidden)
    observed = sp.csr_array(labels.observed > hidden)
    return Hidden(Labels("masked", positives, observed, labels.classes), hidden)


def _some(pattern: sp.csr_array, chosen: np.ndarray) -> sp.csr_array:
    """The stored entries that are chosen."""
    indptr = np.append(0, np.cumsum(chosen))[pattern.indptr]
    indices = pattern.indices[chosen]
    return sp.csr_array((np.ones(len(indices), bool), indices, indptr), shape=pattern.shape)


def _both(a: sp.csr_array, b: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(a.multiply(b))


def _bernoulli_cells(n_cells: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """The successes, in order, of n_cells independent trials: the gaps between are geometric."""
    parts = [np.empty(0, np.int64)]
    last = -1
    while last < n_cells:
        # Drawn in sequence, so how many at a time does not change them.
        more = int((n_cells - last) * rate * 1.01) + 100
        parts.append(last + rng.geometric(rate, more).cumsum())
        last = parts[-1][-1]
    cells = np.concatenate(parts)
    return cells[: np.searchsorted(cells, n_cells)]


def _per_label(values: Any, n_labels: int, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.shape not in ((), (n_labels,)):
        raise ValueError(
            f"{name} has shape {values.shape} but Y has {n_labels} labels; give one number, or "
            "one for each label"
        )
    return np.broadcast_to(values, n_labels)


def _at_positives(X: Any, beta: np.ndarray, labels: Labels) -> np.ndarray:
    """x_iᵀβ_l at the positives (i, l), without any n × L product."""
    counts = np.diff(labels.positives.indptr)
    rows = np.repeat(np.arange(labels.n_samples), counts)
    if beta.ndim == 1:
        return (X @ beta)[rows]
    products = np.empty(len(rows))
    step = max(BLOCK_ENTRIES // max(X.shape[1], 1), 1)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        weights = beta.T[labels.positives.indices[part]]
        x = X[rows[part]]
        products[part] = (x.multiply(weights) if sp.issparse(x) else x * weights).sum(axis=1)
    return products
