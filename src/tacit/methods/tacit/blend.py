"""The blend: one logistic regression of what was said on the scores of unlike models.

For an entry with features f (the logarithms or logits that the first models give it, and how rare
its label is)

    P(true) = σ(wᵀf + b),        P(said) = c P(true),                                           (1)
    -Σ log P(what was said) + ½ ‖w ∘ sd‖² - 2 log c(1 - c)  least.                              (2)

w, b and c are shared by all rows and labels: so many entries teach so few numbers that labels said
once or twice are ranked by what is known of all, and that the ceiling of P(said) can be seen. That
ceiling c is the share of true labels that was said: (1) is MPU's likelihood with c learnt. Where a
label that was not said is a no, c = 1.

Beyond the shortlist of a row there is the score of the lead alone: its own regression a log s + b',
bent so that it stays below the worst of the row's shortlist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

__all__ = ["Blend", "least", "logs", "standardised"]

LEAST = 1e-3  # score; below it the logarithm goes on as its tangent
_RISES = 1e-2  # least weight of the lead beyond the shortlist, where its order stays
_DOUBT = 2.0  # of (2): c is neither 0 nor 1 unless the entries say so
_FULL, _TINY, _STEPS = 8.0, 1e-12, 50  # log-odds of a c of 1; least P; steps of scoring


@dataclass(frozen=True)
class Blend:
    """(1).

    Attributes
    ----------
    names : tuple of str
        What each weight is of.
    weights : ndarray of shape (n_names,)
        w.
    bias, exposure : float
        b and c.
    lead : ndarray of shape (2,)
        a and b' of the lead alone.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    bias: float
    exposure: float
    lead: np.ndarray

    @classmethod
    def fit(
        cls,
        names: tuple[str, ...],
        features: np.ndarray,
        said: np.ndarray,
        *,
        c: np.ndarray | float | None = None,
    ) -> Blend:
        """(2), of some entries: features of shape (n_entries, n_names); the first is the lead's.

        Where `c` is given, one for all or that of each entry (`tacit.methods.tacit.ceiling`), w and
        b alone are learnt, and the blend's c is the mean.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> f = 3 * rng.standard_normal((20000, 1))
        >>> said = (rng.random(20000) < 1 / (1 + np.exp(-2 * f[:, 0]))) & (rng.random(20000) < 0.4)
        >>> blend = Blend.fit(("score",), f, said)
        >>> round(blend.exposure, 1), round(float(blend.weights[0]))
        (0.4, 2)
        """
        w, b, common = _fitted(features, said, c)
        alone = features.shape[1] == 1
        a, b0, _ = (w, b, common) if alone else _fitted(features[:, :1], said, c)
        return cls(names, w, b, common, np.array([max(a[0], _RISES), b0]))

    @classmethod
    def judged(
        cls,
        features: np.ndarray,
        said: np.ndarray,
        other: np.ndarray,
        *,
        c: np.ndarray | float | None = None,
    ) -> np.ndarray:
        """The log-odds of other entries, by the blend of these."""
        w, b, _ = _fitted(features, said, c)
        return other @ w + b

    def logits(self, features: np.ndarray) -> np.ndarray:
        """log-odds of P(true), of features whose last axis is that of the names."""
        return features @ self.weights + self.bias

    def towards(self, other: Blend, share: float) -> Blend:
        """The log-odds of this blend for the most part, and a share of those of another."""
        own, theirs = (dict(zip(b.names, b.weights.tolist())) for b in (self, other))
        mixed = [(1 - share) * own.get(n, 0.0) + share * theirs[n] for n in other.names]
        bias = (1 - share) * self.bias + share * other.bias
        return replace(other, weights=np.array(mixed), bias=float(bias))

    def off_list(self, scores: np.ndarray, worst: np.ndarray) -> np.ndarray:
        """Those of labels off the shortlist, below the worst of each row on it."""
        found = self.lead[0] * logs(scores) + self.lead[1]
        return worst - np.logaddexp(0.0, worst - found)

    def cast(self, dtype: np.dtype) -> Blend:
        """The same in the float type that a file keeps."""
        return replace(self, weights=self.weights.astype(dtype), lead=self.lead.astype(dtype))


def logs(scores: np.ndarray, least: float = LEAST) -> np.ndarray:
    """Logarithms of scores, below `least` their tangent there: the order stays."""
    scores = np.asarray(scores, np.float64)
    return np.log(np.maximum(scores, least)) + np.minimum(scores - least, 0) / least


def _fitted(
    features: np.ndarray, said: np.ndarray, c: np.ndarray | float | None
) -> tuple[np.ndarray, float, float]:
    """w, b and c of (2), with the mean of c where it is given."""
    G, mean, sd = standardised(features)
    n, k = features.shape
    share = float(np.clip(said.mean(), 1 / (n + 1), n / (n + 1)))
    t = np.append(np.full(k, 1 / k), [np.log(share / (1 - share)), 0.0])
    t, _ = least(G, said, t, held=c)
    w = t[:k] / sd
    return w, float(t[k] - mean @ w), float(expit(t[-1]) if c is None else np.mean(c))


def standardised(features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of mean 0 and standard deviation 1 with the constant one, and both."""
    mean, sd = features.mean(axis=0), features.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    return np.hstack([(features - mean) / sd, np.ones((len(features), 1))]), mean, sd


def least(
    G: np.ndarray,
    said: np.ndarray,
    t: np.ndarray,
    shift: np.ndarray | float = 0.0,
    held: np.ndarray | float | None = None,
    steps: int = _STEPS,
) -> tuple[np.ndarray, float]:
    """Where (2) is least, from t = (w ∘ sd, b + wᵀ mean, γ) on, and its value there.

    c = σ(γ + shift), a number or one for each entry; where c is `held`, γ stays, and nothing of γ
    is in the value. By Fisher's scoring: Newton's method with the expected curvature. In γ and
    z = wᵀf + b the slope of P(said) = cσ(z) is (cσ(1-σ) f, cσ(1-σ), c(1-c)σ), and the expected
    curvature is Σ slope slopeᵀ / (P(said) (1 - P(said))).
    """
    y, prior = said.astype(np.float64), np.append(np.ones(len(t) - 2), [0.0, 0.0])

    def value(t: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray | float]:
        p, c = expit(G @ t[:-1]), expit(t[-1] + shift) if held is None else held
        q = np.clip(c * p, _TINY, 1 - _TINY)
        log_loss = -float(np.sum(np.log(np.where(said, q, 1 - q))))
        return log_loss + 0.5 * float(prior @ (t * t)) + (_doubt(t) if held is None else 0), p, q, c

    J, p, q, c = value(t)
    for _ in range(steps):
        in_z, in_c = q * (1 - p), (1 - c) * q
        curvature, error = 1 / (q * (1 - q)), (q - y) / (q * (1 - q))
        weighed = G * (in_z**2 * curvature)[:, None]
        H = np.zeros((len(t), len(t)))
        H[:-1, :-1] = weighed.T @ G
        H[:-1, -1] = H[-1, :-1] = G.T @ (in_z * in_c * curvature)
        H[-1, -1] = float(np.sum(in_c**2 * curvature)) if held is None else 1.0
        slope = np.append(G.T @ (in_z * error), np.sum(in_c * error))
        slope += prior * t
        if held is None:
            one = float(expit(t[-1]))
            slope[-1] += _DOUBT * (2 * one - 1)
            H[-1, -1] += 2 * _DOUBT * one * (1 - one)
        H[np.diag_indices(len(t))] += prior + 1e-9 * (1 + np.diagonal(H))
        step, length = _bounded_step(H, slope, t[-1], held is None), 1.0
        while length > 1e-3:
            new = t - length * step
            if held is None:
                new[-1] = np.clip(new[-1], -_FULL, _FULL)
            found = value(new)
            if found[0] <= J:
                break
            length /= 2
        else:
            break
        before, t, (J, p, q, c) = J, new, found
        if before - J <= 1e-10 * before:
            break
    return t, J


def _doubt(t: np.ndarray) -> float:
    c = expit(t[-1])
    return float(-_DOUBT * np.log(c * (1 - c)))


def _bounded_step(H: np.ndarray, slope: np.ndarray, gamma: float, free: bool) -> np.ndarray:
    """Newton's step, in which γ moves by at most 1 and stays within its bounds.

    Where a bound is met, the others take the step that is best with γ there: it still goes down.
    """
    if not free:
        return np.append(np.linalg.solve(H[:-1, :-1], slope[:-1]), 0.0)
    step = np.linalg.solve(H, slope)
    at = float(np.clip(step[-1], max(-1.0, gamma - _FULL), min(1.0, gamma + _FULL)))
    if at == step[-1]:
        return step
    return np.append(np.linalg.solve(H[:-1, :-1], slope[:-1] - H[:-1, -1] * at), at)
