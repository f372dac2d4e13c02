"""The ceiling: which share of the true labels was said, of all and of each, and how sure that is.

(1) of `tacit.methods.tacit.blend` with a ceiling for each label l,

    P(said) = c_l σ(wᵀf + b),    log c_l / (1 - c_l) = γ + δ_l,    δ_l ~ N(0, s²),              (1)

which pulls c_l to the common c as 1 / (s² c (1 - c)) more said entries at that rate would. w, b, γ
and δ are those under which held-out entries are most likely, and s² = Σ δ_l² / Σ (1 - v_l / s²),
with v_l the variance of δ_l (MacKay). Labels are alike, with one c for all, where their c_l hardly
differ, since a blend that is a little off for some labels looks the same; and where they explain
less than so many free numbers would by chance: ½ Σ (δ_l² / s² - log v_l / s²) is the least gain.

f is what *all* parts say. Which of them rank best is another question: a part that is left out may
still show where P(said) levels off, as a network does and ridge alone does not.

**How sure.** By chance: J(γ), the objective of the blend with γ held and w, b free, rises from its
least value on both sides, and the ends are where 2 (J - min J) = 1.645² r. Entries of one row are
not independent, rows are; so r is the variance of γ by rows, H⁻¹ (Σ_row g gᵀ) H⁻¹, over that by
entries, H⁻¹, or 1 if that is less. By the form of (1), which is never quite right: with γ_k what γ
is without part k, 1.645² mean (γ_k - γ)² is added to the square of either side.

References
----------
D. MacKay. Bayesian interpolation. Neural Computation 4, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tacit.methods.tacit.blend import least, standardised
from tacit.missing.rates import Rates, is_sharp, is_total_known

__all__ = ["Ceiling"]

_ENTRIES = 200_000  # entries that are asked: more take longer, and tell no more of a few numbers
_ALIKE = 0.12  # standard deviation of c_l over what was said: evenly hidden labels had up to 0.09
_ROUNDS, _FIRST = 15, 0.3  # of finding s², and where it starts
_FAR = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])  # from γ, where its profile is taken
_NINE_IN_TEN = 1.645  # standard errors either side that make 90 %
_TINY = 1e-12  # least P(said)
_HOW = (
    "Where P(said) levels off on rows that were held out, with ends of 90 %: right if whether a "
    "true label is said depends on the label alone; too high if some labels are said far more "
    "readily than others and were said too seldom for that to be seen."
)


@dataclass(frozen=True)
class Ceiling:
    """(1).

    Attributes
    ----------
    overall : tuple of float
        The share of all true labels that was said, and the ends of its interval, of 90 %.
    labels : ndarray of shape (3, n_labels)
        c_l, and the ends of its interval.
    """

    overall: tuple[float, float, float]
    labels: np.ndarray

    @classmethod
    def none(cls, n_labels: int) -> Ceiling:
        """That of labels of which all that is true was said."""
        return cls((1.0, 1.0, 1.0), np.ones((3, n_labels)))

    @classmethod
    def of(
        cls,
        features: np.ndarray,
        said: np.ndarray,
        label: np.ndarray,
        row: np.ndarray,
        n_labels: int,
    ) -> Ceiling:
        """That of entries: features of shape (n_entries, n_names), whose label and row these are.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> f, label = 4 * rng.standard_normal((8000, 1)), np.arange(8000) % 4
        >>> c = np.array([0.2, 0.4, 0.6, 0.8])
        >>> said = (rng.random(8000) < expit(f[:, 0])) & (rng.random(8000) < c[label])
        >>> found = Ceiling.of(f, said, label, np.arange(8000), 4)
        >>> found.labels[0].round(1)
        array([0.2, 0.4, 0.6, 0.8])
        >>> _, low, high = found.overall
        >>> bool(low < 0.5 < high < 1.2 * low)
        True
        """
        some = row <= np.sort(row)[min(_ENTRIES, len(row)) - 1]
        features, said, label, row = features[some], said[some], label[some], row[some]
        G, *_ = standardised(features)
        k = features.shape[1]
        t, _ = least(G, said, np.append(np.full(k, 1 / k), [-1.0, 0.0]))
        times = np.bincount(label, said, n_labels)
        delta, variance = _differences(G, said, label, times, t)
        if delta.any():
            t, _ = least(G, said, t, delta[label])
        below, above = _sides(G, said, t, delta[label], row)
        c = lambda gamma: expit(gamma + delta)
        share = lambda gamma: times.sum() / (times / c(gamma)).sum() if times.any() else c(gamma)[0]
        ends = t[-1], t[-1] - below, t[-1] + above
        each = _NINE_IN_TEN * np.sqrt(variance)
        low, high = c(t[-1] - np.hypot(below, each)), c(t[-1] + np.hypot(above, each))
        c_all, c_low, c_high = (float(share(end)) for end in ends)
        return cls((c_all, c_low, c_high), np.stack([c(t[-1]), low, high]))

    def unknown(self) -> Ceiling:
        """The same rates, of which the rows tell nothing."""
        ends = np.broadcast_to([[0.0], [1.0]], (2, self.labels.shape[1]))
        return Ceiling((self.overall[0], 0.0, 1.0), np.vstack([self.labels[:1], ends]))

    @property
    def says_something(self) -> bool:
        """Whether the rows tell anything of c; if not, the blend had better find one of its own."""
        return bool(is_sharp(*self.overall[1:]))

    def among_unknown(self) -> np.ndarray:
        """The c_l of what is not known where half of what was said is: c / (2 - c)."""
        return self.labels[0] / (2 - self.labels[0])

    def along(self, c: float) -> Ceiling:
        """The same if it says something, else a blend's own c, with the same doubts."""
        if self.says_something:
            return self
        low, high = self.labels[1:]
        labels = np.stack([np.full(len(low), c), np.minimum(low, c), np.maximum(high, c)])
        return Ceiling((c, min(self.overall[1], c), max(self.overall[2], c)), labels)

    def rates(self, n_said: np.ndarray) -> Rates:
        """The same of labels that were said so often, and what is known to be wrong with it."""
        c, low, high = self.labels
        return Rates.of(c, low, high, self.overall, _HOW, n_said)

    def cast(self, dtype: np.dtype) -> Ceiling:
        """The same in the float type that a file keeps."""
        return Ceiling(self.overall, self.labels.astype(dtype))

    def __str__(self) -> str:
        c, low, high = self.overall
        if is_total_known(low, high):
            return f"about {c:.0%} of the true labels were said (between {low:.0%} and {high:.0%})"
        return (
            "how many of the true labels were said is not identifiable: by these rows it may be "
            f"anything between {low:.0%} and {high:.0%}"
        )


def _differences(
    G: np.ndarray, said: np.ndarray, label: np.ndarray, times: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """δ and its variance; both are 0 where labels are alike."""
    n_labels = len(times)
    count = lambda values: np.bincount(label, values, n_labels)
    there = count(np.ones(len(label))) > 0
    delta, s2, alike = np.zeros(n_labels), _FIRST, (np.zeros(n_labels), np.zeros(n_labels))
    for _ in range(_ROUNDS):
        t, _ = least(G, said, t, delta[label], steps=2)
        p = expit(G @ t[:-1])
        for _ in range(3):
            c = expit(t[-1] + delta)[label]
            q = np.clip(c * p, _TINY, 1 - _TINY)
            slope, information = count((1 - c) * (said - q) / (1 - q)), (1 - c) ** 2 * q / (1 - q)
            variance = 1 / (count(information) + 1 / s2)
            delta = np.clip(delta + np.clip(variance * (slope - delta / s2), -1, 1), -5, 5)
        s2 = np.sum(delta[there] ** 2) / max(np.sum(1 - variance[there] / s2), _TINY)
        if s2 < 1e-3:
            return alike
    c = expit(t[-1] + delta)
    mean = np.average(c, weights=times + _TINY)
    spread = np.sqrt(np.average((c - mean) ** 2, weights=times + _TINY))
    gain = least(G, said, t)[1] - least(G, said, t, delta[label])[1]
    paid = np.sum(delta[there] ** 2) / s2 - np.sum(np.log(variance[there] / s2))
    return (delta, variance) if spread > _ALIKE and gain > paid / 2 else alike


def _sides(
    G: np.ndarray, said: np.ndarray, t: np.ndarray, shift: np.ndarray, row: np.ndarray
) -> tuple[float, float]:
    """How far below and above γ its interval goes; √(J - min J) is straight for a parabola."""
    held = lambda t: least(G, said, t, held=expit(t[-1] + shift))
    parts = range(len(t) - 2) if len(t) > 3 else ()  # the only one cannot be left out
    without = [least(np.delete(G, k, 1), said, np.delete(t, k), shift)[0][-1] for k in parts]
    of_form = _NINE_IN_TEN * np.sqrt(np.mean((np.array([*without, t[-1]]) - t[-1]) ** 2))
    lowest, scale, sides = held(t)[1], np.sqrt(_by_rows(G, said, t, shift, row)), []
    for sign in (-1, 1):
        near, roots = t, [0.0]
        for far in _FAR:
            near, J = held(np.append(near[:-1], t[-1] + sign * far))
            roots.append(max(roots[-1], np.sqrt(2 * max(J - lowest, 0)) / scale))
        by_chance = float(np.interp(_NINE_IN_TEN, roots, [0, *_FAR]))
        sides.append(float(np.hypot(by_chance, of_form)))
    return sides[0], sides[1]


def _by_rows(
    G: np.ndarray, said: np.ndarray, t: np.ndarray, shift: np.ndarray, row: np.ndarray
) -> float:
    """The r of the interval."""
    c, p = expit(t[-1] + shift), expit(G @ t[:-1])
    q = np.clip(c * p, _TINY, 1 - _TINY)
    slope = np.column_stack([G * (q * (1 - p))[:, None], (1 - c) * q])
    H = (slope / (q * (1 - q))[:, None]).T @ slope + np.eye(len(t))
    place = np.unique(row, return_inverse=True)[1]
    of_row = sp.csr_array((np.ones(len(row)), (place, np.arange(len(row)))))
    g = of_row @ (slope * ((q - said) / (q * (1 - q)))[:, None])
    inverse = np.linalg.inv(H)
    return max(1.0, float((inverse @ (g.T @ g) @ inverse)[-1, -1] / inverse[-1, -1]))
