"""Rates: the probability c that a true label was said, P(said | x) = c P(true | x).

**From held-out rows** (Elkan & Noto 2008). With g ≈ P(said | x) fitted on other rows, V the rows
held out and P_l those of them in which label l was said,

    e1 = Σ_P g / |P|,    e2 = Σ_P g / Σ_V g,    e3 = max_V g.                                  (1)

All three estimate c where the classes are separable, that is where P(true | x) is 0 or 1. Else

    e1 → c E[P(true | x) | true] ≤ c,                                                          (2)

which is *below* c and may be far below: a g that is regularised and unsure says that much is
missing. e2 has the same limit where g is right; e3 is what the surest row says, noise included.

**From the likelihood.** Where P(true | x) is a model of its own, -log likelihood J_l(c), minimised
over the model with c held, has its minimum at the c that explains the data best. What is known of
c is how fast J_l rises on both sides of it; 2 (J_l(c) - min J_l) ≤ 3.84 is an interval of 95 %.

**One label or all.** A label of its own rarely has enough said entries. Here each has κ more, in
thought, at the pooled rate ĉ: for means

    ĉ_l = (n_l e_l + κ ĉ) / (n_l + κ),    se_l = s_l / √(n_l + κ),                             (3)

with n_l said entries and s_l² the variance of one of them, pulled to the pooled one in the same
way; for likelihoods

    ĉ_l = argmin_c J_l(c) - κ (ĉ log c + (1 - ĉ) log(1 - c)).                                  (4)

References
----------
C. Elkan, K. Noto. Learning classifiers from only positive and unlabeled data. KDD 2008.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from tacit.basics.params import a_float, one_of

__all__ = ["HeldOut", "Rates", "is_sharp", "is_total_known", "no_rates", "profile_rates", "shares"]

LOWEST = 1e-3  # of a rate: below, a thousand true labels stand behind each one said
_NORMAL = 1.96  # standard errors either side that make 95 %; its square is 3.84
_WIDEST = 3.0  # high / low of an interval of a label that still says something
_WIDEST_OF_ALL = 1.6  # and of that of all: how many are true is then known to a quarter either way


@dataclass(frozen=True, eq=False)
class Rates:
    """The rate c of each label, with an interval.

    Attributes
    ----------
    c, low, high : ndarray of shape (n_labels,)
        The probability that the label is said where it is true, and the ends of its interval.
    overall : tuple of float
        One rate for all labels together: c, low, high.
    how : str
        How it was got, and what is known to be wrong with it.
    total_known : bool
        Whether they say how much is missing in all: high ≤ 1.6 low in `overall`.
    identifiable : ndarray of bool, shape (n_labels,)
        Whether the data say anything of this label's c: it was said, and high ≤ 3 low. An interval
        that reaches across all of (0.001, 1] never is, nor one that is nan. It is a matter of
        precision alone: a biased rate can be sharp, and `how` tells of the bias.
    """

    c: np.ndarray
    low: np.ndarray
    high: np.ndarray
    overall: tuple[float, float, float]
    how: str
    identifiable: np.ndarray

    @property
    def total_known(self) -> bool:
        return bool(is_total_known(*self.overall[1:]))

    @classmethod
    def of(cls, c: Any, low: Any, high: Any, overall: Any, how: str, n_said: np.ndarray) -> Self:
        """Rates of labels that were said `n_said` times, kept within [0.001, 1]."""
        c, low, high = (np.broadcast_to(_kept(end), n_said.shape) for end in (c, low, high))
        one, least, most = (float(_kept(end)) for end in overall)
        return cls(c, low, high, (one, least, most), how, (n_said > 0) & is_sharp(low, high))

    @classmethod
    def of_labels(cls, c: Any, low: Any, high: Any, how: str, n_said: np.ndarray) -> Self:
        """Rates got for each label alone; that of all is N / Σ_l n_l / c_l, as if independent."""
        true, most, least = (n_said / _kept(rate) for rate in (c, low, high))
        total, spread = true.sum(), lambda end: np.sqrt(((end - true) ** 2).sum())
        overall = n_said.sum() / np.array([total, total + spread(most), total - spread(least)])
        return cls.of(c, low, high, overall, how, n_said)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What (1) needs of held-out rows: sums that add up over blocks of rows.

    Each is an array with one number a label: the count of said entries, Σ_P g, Σ_P g², Σ_V g,
    Σ_V g² and max_V g.

    Examples
    --------
    >>> said = sp.csr_array([[1, 0], [1, 1], [0, 0]], dtype=bool)
    >>> g = np.array([[0.8, 0.1], [0.6, 0.5], [0.1, 0.0]])
    >>> first, rest = HeldOut.of(said[:1], g[:1]), HeldOut.of(said[1:], g[1:])
    >>> (first + rest).c("e1").c.round(3)
    array([0.633, 0.633])
    >>> (first + rest).c("e1", by="labels", kappa=1.0).c.round(3)
    array([0.678, 0.567])
    """

    n_said: np.ndarray
    sum_said: np.ndarray
    squares_said: np.ndarray
    sum_all: np.ndarray
    squares_all: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, said: sp.csr_array, g: np.ndarray) -> Self:
        """The sums of some rows.

        Parameters
        ----------
        said : csr_array of bool, shape (n_samples, n_labels)
            What was said of the rows.
        g : array of shape (n_samples, n_labels)
            P(said | x), by a model that has not seen these rows.
        """
        g = np.asarray(g, np.float64)
        if said.shape != g.shape:
            raise ValueError(
                f"g has shape {g.shape} but said has shape {said.shape}; give both one entry for "
                "each row and label"
            )
        rows, labels = said.nonzero()
        at_said = lambda values: np.bincount(labels, values, minlength=g.shape[1])
        squares, known = g * g, g[rows, labels]
        return cls(
            at_said(np.ones(len(rows))),
            at_said(known),
            at_said(known * known),
            g.sum(axis=0),
            squares.sum(axis=0),
            g.max(axis=0, initial=0.0),
        )

    def __add__(self, other: HeldOut) -> HeldOut:
        """The sums of both sets of rows."""
        return HeldOut(
            self.n_said + other.n_said,
            self.sum_said + other.sum_said,
            self.squares_said + other.squares_said,
            self.sum_all + other.sum_all,
            self.squares_all + other.squares_all,
            np.maximum(self.largest, other.largest),
        )

    def c(
        self,
        estimator: Literal["e1", "e2", "e3"] = "e1",
        by: Literal["global", "labels"] = "global",
        kappa: float = 10.0,
    ) -> Rates:
        """The rates by (1).

        Parameters
        ----------
        estimator : {"e1", "e2", "e3"}, default="e1"
            Which of (1). e1 tends to c E[P(true | x) | true], a lower bound of c unless the classes
            are separable; its interval knows nothing of that. e3 has no interval (nan).
        by : {"global", "labels"}, default="global"
            One rate for all labels, from the sums of all; or one for each by (3). For e3 the rate
            of all is the mean of the labels' largest, weighted by how often each was said.
        kappa : float, default=10.0
            The κ of (3).
        """
        _check("estimator", estimator, one_of("e1", "e2", "e3"))
        _check("by", by, one_of("global", "labels"))
        _check("kappa", kappa, a_float(above=0))
        if not self.n_said.any():
            raise ValueError("no label was said in the held-out rows; hold out more of them")
        n, how = self.n_said, f"{estimator} on held-out rows ({_BIAS[estimator]})"
        mean, variance = (float(v[0]) for v in self._pooled()._each(estimator))
        overall = _interval(mean, np.sqrt(variance / n.sum()))
        if by == "global":
            return Rates.of(*overall, overall, f"One rate for all labels: {how}.", n)
        each, variances = self._each(estimator)
        pulled = lambda own, pooled: (n * own + kappa * pooled) / (n + kappa)
        error = np.sqrt(pulled(variances, variance) / (n + kappa))
        ends = _interval(pulled(each, mean), error)
        return Rates.of(*ends, overall, f"{how}, pulled to the rate of all labels.", n)

    def _pooled(self) -> HeldOut:
        """All labels as one."""
        one = lambda sums: sums.sum(keepdims=True)
        return HeldOut(
            one(self.n_said),
            one(self.sum_said),
            one(self.squares_said),
            one(self.sum_all),
            one(self.squares_all),
            np.average(self.largest, weights=self.n_said, keepdims=True),
        )

    def _each(self, estimator: str) -> tuple[np.ndarray, np.ndarray]:
        """The estimate of each label, and its variance times the number of said entries."""
        n = np.maximum(self.n_said, 1)  # labels never said have no weight, whatever they get
        if estimator == "e1":
            mean = self.sum_said / n
            return mean, np.maximum(self.squares_said / n - mean**2, 0.0)
        if estimator == "e2":
            total = np.maximum(self.sum_all, np.finfo(float).tiny)
            ratio = self.sum_said / total
            # Delta method: Σ_V (said - ratio)² g² / (Σ_V g)².
            squares = (1 - 2 * ratio) * self.squares_said + ratio**2 * self.squares_all
            return ratio, n * np.maximum(squares, 0.0) / total**2
        return self.largest, np.full(len(n), np.nan)


_BIAS = {
    "e1": "the mean of P(said | x) where said: a lower bound, low unless classes are separable",
    "e2": "the said share of P(said | x): as low as e1 unless classes are separable",
    "e3": "the largest P(said | x): one noisy row decides, so there is no interval",
}


def is_sharp(low: Any, high: Any) -> Any:
    """Whether an interval of rates says anything; no comparison with nan holds."""
    return high <= _WIDEST * low


def is_total_known(low: Any, high: Any) -> Any:
    """Whether the interval of the rate of all labels tells how much is missing of them."""
    return high <= _WIDEST_OF_ALL * low


def no_rates(name: str) -> str:
    """The sentence for whoever asks a model for rates that it never learned."""
    return (
        f"model is {name}, which has no rate at which true labels are said; fit MPU, GenEML "
        "with an exposure, Elkan08 or Tacit on positive-only labels"
    )


def shares(rows: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Σcp / Σp over rows of p = P(true) and c, the share that is said, and its standard error.

    Both are (n_rows, n_labels); c may be one row. A factor t on c_l and a shift b of the log-odds
    of p_l move log P(said) by v = (1, 1 - p), so that their information is Σ_n cp / (1 - cp) v vᵀ.
    What is left for t once b is free is next to nothing where p ≪ 1 throughout: only the product
    cp is known there.
    """
    sums: Any = 1e-12  # where all underflows
    for p, c in rows:
        heard = c * p
        odds, silent = heard / (1 - heard), 1 - p
        parts = (p, heard, odds, odds * silent, odds * silent**2)
        sums = sums + np.stack([part.sum(axis=0) for part in parts])
    true, said, tt, tb, bb = sums
    return said / true, said / true / np.sqrt(np.maximum(tt - tb**2 / bb, 1e-12))


def profile_rates(grid: Any, J: Any, n_said: Any, kappa: float = 10.0) -> Rates:
    """The rates by (4), from minimised negative log-likelihoods at a grid of rates.

    Between the points of the grid the lowest is that of the parabola in logit c through the best
    point and its neighbours, and the ends of intervals are where √(2 (J - min J)), a straight line
    on either side of the minimum where J is a parabola, reaches 1.96. An interval that does not end
    within the grid ends with it. That of a label is of its own J_l alone, and reaches to ĉ_l where
    the pull has moved it outside.

    Parameters
    ----------
    grid : array of shape (n_grid,)
        The rates c at which J was minimised, at least three, ascending, above 0 and at most 1.
        Rates above 0.999 have the logit of 0.999.
    J : array of shape (n_grid, n_labels)
        The minimised penalised negative log-likelihood of each label with c held.
    n_said : array of shape (n_labels,)
        How often each label was said.
    kappa : float, default=10.0
        The κ of (4).
    """
    grid, J, n_said = (np.asarray(values, np.float64) for values in (grid, J, n_said))
    kept = np.minimum(grid, 1 - LOWEST)  # log(1 - c) and logit c are finite there
    rising = grid.ndim == 1 and len(grid) >= 3 and (np.diff(kept) > 0).all()
    if not rising or grid[0] < LOWEST or grid[-1] > 1:
        raise ValueError(
            "grid must hold three or more rates that ascend within 0.001 and 1, with at most one "
            f"from 0.999 on; got {grid!r}"
        )
    if J.shape != (len(grid), *n_said.shape) or n_said.ndim != 1 or not np.isfinite(J).all():
        raise ValueError(
            f"J must hold one finite number for each of {len(grid)} rates and {n_said.size} "
            f"labels; got shape {J.shape}"
        )
    _check("kappa", kappa, a_float(above=0))
    z, total = logit(kept), J.sum(axis=1, keepdims=True)
    rate = lambda at: np.where(at >= z[-1], grid[-1], expit(at))
    best, _ = _lowest(z, total)
    pooled = float(rate(best)[0])
    overall = (pooled, *(float(rate(end)[0]) for end in _within(z, total)))
    pull = kappa * (pooled * np.log(kept) + (1 - pooled) * np.log1p(-kept))
    c = rate(_lowest(z, J - pull[:, None])[0])
    low, high = (rate(end) for end in _within(z, J))
    how = (
        "The rate under which the likelihood is largest, that of each label pulled to that of all: "
        "right if the model of the true labels is, and flat where they are rare or unsure."
    )
    return Rates.of(c, np.minimum(low, c), np.maximum(high, c), overall, how, n_said)


def _lowest(z: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each column of J is lowest and how low: by a parabola, or at an end of z."""
    best = J.argmin(axis=0)
    middle = np.clip(best, 1, len(z) - 2)
    near = middle + np.array([[-1], [0], [1]])
    (x0, x1, x2), (y0, y1, y2) = z[near], np.take_along_axis(J, near, axis=0)
    slope = (y1 - y0) / (x1 - x0)
    bend = ((y2 - y1) / (x2 - x1) - slope) / (x2 - x0)
    curved = (best == middle) & (bend > 0)
    at = 0.5 * (x0 + x1) - 0.5 * slope / np.where(curved, bend, 1.0)
    low = y0 + slope * (at - x0) + bend * (at - x0) * (at - x1)
    return np.where(curved, at, z[best]), np.where(curved, low, J.min(axis=0))


def _within(z: np.ndarray, J: np.ndarray) -> list[np.ndarray]:
    """The first and last z at which each column of J is within 3.84 / 2 of its lowest."""
    at, low = _lowest(z, J)
    points = np.vstack([np.broadcast_to(z[:, None], J.shape), at])
    order = np.argsort(points, axis=0)
    points = np.take_along_axis(points, order, axis=0)
    root = np.sqrt(2 * np.maximum(np.take_along_axis(np.vstack([J, low]), order, axis=0) - low, 0))
    inside = root <= _NORMAL
    ends, last, columns = [], len(z), np.arange(J.shape[1])
    for edge, step in ((inside.argmax(axis=0), -1), (last - inside[::-1].argmax(axis=0), 1)):
        beyond = np.clip(edge + step, 0, last)
        rise = root[beyond, columns] - root[edge, columns]
        share = (_NORMAL - root[edge, columns]) / np.where(beyond == edge, np.inf, rise)
        ends.append(
            points[edge, columns] + share * (points[beyond, columns] - points[edge, columns])
        )
    return ends


def _kept(rate: Any) -> np.ndarray:
    return np.clip(np.asarray(rate, np.float64), LOWEST, 1.0)


def _interval(mean: Any, error: Any) -> tuple[Any, Any, Any]:
    return mean, mean - _NORMAL * error, mean + _NORMAL * error


def _check(name: str, value: Any, check: Any) -> None:
    holds, wanted = check
    if not holds(value):
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
