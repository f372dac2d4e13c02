"""Calibration: scores to probabilities that a label is true, when most true ones were never said.

With one probability c that a true entry is said, whatever its score z and its label,

    P(said | z) = c P(true | z),        P(true | z) = min(1, P(said | z) / c)               (1)

P(said | z) is the non-decreasing map nearest to what was said of held-out entries (`isotonic`).
With q(N) the share said of the N surest entries, where nearly all is true (`exposure`),

    c = max_N  q(N) - √(q(N) (1 - q(N)) / N)                                                (2)

One standard error is taken off, lest small N win by luck too often. The cost is that of a sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device
from sklearn.isotonic import IsotonicRegression

__all__ = ["Monotone", "calibrated", "exposure", "isotonic"]


@dataclass(frozen=True)
class Monotone:
    """P(true | score): a non-decreasing piecewise linear map between knots, constant beyond."""

    scores: np.ndarray  # ascending and distinct
    rates: np.ndarray  # in [0, 1], non-decreasing

    def probability(self, z: Any) -> Any:
        """The map at each score of z, an array of NumPy or PyTorch, as an array of its kind."""
        at = np.asarray(to_device(z, "cpu"))
        p = np.interp(at, self.scores, self.rates).clip(0, 1)  # rounding may pass the last knot
        p = p.astype(np.result_type(at, np.float32), copy=False)  # float32 stays float32
        return array_namespace(z).asarray(p, device=device(z))


def calibrated(scores: np.ndarray, said: np.ndarray, *, known: bool) -> tuple[Monotone, float]:
    """P(true | score) by (1), and c: 1 where `known` says that silence is a no, else `exposure`.

    Examples
    --------
    >>> scores, asked = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    >>> found, c = calibrated(scores, said=scores * asked, known=False)
    >>> round(c, 2), found.probability(np.array([0.0, 0.25, 1.0]))
    (0.46, array([0.  , 0.25, 1.  ]))
    """
    found = isotonic(scores, said)
    c = 1.0 if known else exposure(scores, said)
    return Monotone(found.scores, np.minimum(found.rates / c, 1.0)), c


def isotonic(scores: np.ndarray, said: np.ndarray, *, bins: int = 2000) -> Monotone:
    """P(said | score), by pooling adjacent violators among bins of entries.

    Parameters
    ----------
    scores, said : arrays of one shape
        The scores of some entries by a model that did not learn from them, and 1 or 0 for each.
    bins : int, default=2000
        At most so many: the 20 surest entries (the rate of fewer is mostly luck), then at
        geometric steps: finest at the top, where few entries decide. Equal scores share a bin.
    """
    ranked, yes = _ascending(scores, said)
    m = ranked.size
    edges = np.geomspace(m, min(20, m), bins).astype(np.intp)
    starts = np.unique(np.searchsorted(ranked, ranked[m - edges]))
    entries = np.diff(starts, append=m)
    hits = np.diff(np.searchsorted(yes, ranked[starts]), append=yes.size)
    means = np.add.reduceat(ranked, starts, dtype=np.float64) / entries
    fit = IsotonicRegression(y_min=0.0, y_max=1.0).fit(means, hits / entries, entries)
    return Monotone(fit.X_thresholds_, fit.y_thresholds_)


def exposure(scores: np.ndarray, said: np.ndarray, *, least: int = 100) -> float:
    """c = P(said | true) by (2), with parameters as of `isotonic`; 1 where nothing is said.

    N runs from `least` (or all entries, if fewer) to four times the number said, with equal scores
    counted together; the share said of all entries is the least it can be. It assumes one c for
    all labels, and is biased low when even the surest entries are not all true; so is e₃ of Elkan
    and Noto (2008), max P(said | x), but for its noise.
    """
    ranked, yes = _ascending(scores, said)
    if not yes.size:
        return 1.0
    m, least = ranked.size, min(least, ranked.size)
    lowest = ranked[m - min(m, max(4 * yes.size, least))]
    # From one said entry to the next (2) falls: only N = least and the last N of a said score win.
    at = np.append(yes[np.searchsorted(yes, lowest) :], ranked[m - least])
    N = m - np.searchsorted(ranked, at)
    q = (yes.size - np.searchsorted(yes, at)) / N
    return float((q - np.sqrt(q * (1 - q) / N)).max(where=least <= N, initial=yes.size / m))


def _ascending(scores: np.ndarray, said: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of all entries and of those said, each ascending."""
    if scores.shape != said.shape or not scores.size:
        raise ValueError(f"scores, said need one nonempty shape; got {scores.shape}, {said.shape}")
    yes = said.astype(bool, copy=False)
    if not np.array_equal(yes, said):
        raise ValueError("said must hold 0 and 1 only; got others: leave out what is not known")
    ranked = np.sort(scores, axis=None)
    if not np.isfinite(ranked[[0, -1]]).all():  # NaN sorts last
        raise ValueError("scores must be finite; got NaN or infinity: leave such entries out")
    return ranked, np.sort(scores[yes])
