"""What GenEML leaves behind: `ExposedLowRank` of one point estimate, `Sampled` of many draws.

The scores are ψ = XW Vᵀ, a constant code carrying the intercepts, and σ(ψ) is the probability that
a label is true. With the exposure μ it is said with probability μσ(ψ), and true though nobody said
so with

    P(y = 1 | silence) = (1 - μ) σ(ψ) / (1 - μσ(ψ)) = σ(ψ + log(1 - μ)).                        (1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.basics.params import a_float, an_int
from tacit.engines.exposure import EDGE, AllAsked, CovariateExposure, Exposure, PerLabel
from tacit.labels import TopK
from tacit.methods.geneml.em import Context, folded_codes
from tacit.missing import Rates
from tacit.missing.rates import shares
from tacit.models.explanation import Contributions
from tacit.models.low_rank import of_weights
from tacit.models.model import Model, check_shape, silent_shift

__all__ = ["ExposedLowRank", "Sampled"]

_FOLD_STEPS = 10  # U steps when a row's code is fitted to what was said of it
_WIDE = ("beta", "label_features")  # a column for each feature of the labels, and one for all
_positive, _ = a_float(above=0)


@dataclass(frozen=True, eq=False)
class ExposedLowRank(Model):
    """W, V and the exposure, that of each label or as features drive it.

    Attributes
    ----------
    W, H : ndarray of shape (n_features, rank), (n_labels, rank)
        W and V; with intercepts, the last code is 1.
    exposures : ndarray of shape (n_labels,)
        μ_l; 1 where everybody was asked; with covariates, its mean over the training rows.
    beta, bias : ndarray or None
        B and m of μ_nl = σ(m_l + x_nᵀB f_l), where covariates drive it.
    label_features, label_map : ndarray or None
        f_l with a constant, and M of v_l ≈ M f_l, where labels have features.
    reg_u, intercept : float, bool
        λ_u, for codes that are fitted to what was said; whether V has intercepts.
    """

    W: np.ndarray
    H: np.ndarray
    exposures: np.ndarray
    beta: np.ndarray | None = None
    bias: np.ndarray | None = None
    label_features: np.ndarray | None = None
    label_map: np.ndarray | None = None
    reg_u: float = 1.0
    intercept: bool = True

    folds_in: ClassVar[bool | None] = False

    @property
    def n_labels(self) -> int:
        return len(self.H)

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    @property
    def completion_width(self) -> int:
        return self.n_labels

    @property
    def said_rates(self) -> np.ndarray:
        return self.exposures

    def factors(self, block: Block) -> tuple[Array, Array]:
        kept = block.backend.kept
        return block.project(kept(self.W)), kept(self.H)

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        return of_weights(block, labels, self.W, self.H)

    def probability(self, scores: Array) -> Array:
        return sigmoid(scores)

    def rates_of(self, block: Block) -> np.ndarray:
        if self.beta is None:
            return self.exposures[None, :]
        codes = block.backend.to_numpy(block.project(block.backend.asarray(self.beta)))
        mu = sigmoid(codes @ self._exposure_features().T + self.bias)
        return np.clip(mu, EDGE, 1 - EDGE)

    def rates(self, blocks: Callable[[], Iterator[Block]], n_said: np.ndarray) -> Rates:
        _check_exposed(self.exposures)
        c, error = shares(self._chances(b) for b in blocks())
        how = (
            "GenEML's exposure, with scores held fixed up to an intercept, so that intervals are "
            "too narrow, and settled only after hundreds of passes (tol=0); for rare labels its "
            "Beta prior decides."
        )
        return Rates.of_labels(c, c - 1.96 * error, c + 1.96 * error, how, n_said)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, None]:
        """(1), laid out; with `fold_in` of codes that were fitted to what was said of each row."""
        U, V = self.factors(block)
        scores = (self._folded_in(block) if fold_in else U) @ V.T
        if block.omega is None and _some_exposed(self.exposures):
            scores = scores + block.backend.asarray(silent_shift(self.rates_of(block), self.dtype))
        return scores, None

    def _folded_in(self, block: Block) -> Array:
        """Codes with what was said of each row, and the constant behind the last."""
        asarray, rank = block.backend.asarray, self.n_codes - self.intercept
        exposure: Exposure = AllAsked(self.n_labels)
        asked: dict[str, Array] = {}
        if self.beta is not None:
            exposure = CovariateExposure(asarray(self._exposure_features()), len(self.beta), 1.0)
            asked = {"beta": asarray(self.beta), "bias": asarray(self.bias)}
        elif _some_exposed(self.exposures):
            exposure = PerLabel(self.n_labels, 1.0, 1.0)  # its prior is for learning, not for this
            asked = {"mu": asarray(self.exposures.astype(self.dtype))}
        factors = asarray(self.W[:, :rank]), asarray(self.H)
        context = Context(*factors, exposure, asked, self.reg_u, polya_gamma=False)
        U = block.backend.to_numpy(folded_codes(block, context, _FOLD_STEPS))
        one = np.ones((len(U), self.n_codes - rank), U.dtype)
        return asarray(np.hstack([U, one]))

    def _exposure_features(self) -> np.ndarray:
        if self.label_features is not None:
            return self.label_features
        return np.ones((self.n_labels, 1), self.dtype)

    def numbers(self) -> dict[str, Any]:
        return {"reg_u": self.reg_u, "intercept": self.intercept}

    def arrays(self) -> dict[str, np.ndarray | None]:
        names = ("W", "H", "exposures", "beta", "bias", "label_features", "label_map")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        reg_u, intercept = numbers["reg_u"], numbers["intercept"]
        if not _positive(reg_u) or not isinstance(intercept, bool):
            raise ValueError(f"its reg_u and intercept are {reg_u!r} and {intercept!r}")
        W = check_shape("W", arrays.get("W"), n_weights, None)
        rank = W.shape[1]
        if rank <= intercept:
            raise ValueError(f"its W has shape {W.shape}")
        shapes: dict[str, tuple[int | None, ...]] = {
            "H": (n_labels, rank),
            "exposures": (n_labels,),
            "beta": (n_weights, None),
            "bias": (n_labels,),
            "label_features": (n_labels, None),
            "label_map": (None, rank),
        }
        found = {
            name: check_shape(name, arrays.get(name), *shape)
            for name, shape in shapes.items()
            if name in arrays or name in ("H", "exposures")
        }
        widths = {name: each.shape[1] for name, each in found.items() if name in _WIDE}
        widths |= {name: len(each) for name, each in found.items() if name == "label_map"}
        if len({*widths.values(), *([] if "label_features" in found else [1])}) > 1:
            raise ValueError(f"its features of labels disagree: {widths}")
        if ("beta" in found) != ("bias" in found):
            raise ValueError("it has only one of beta and bias")
        return cls(W, **found, reg_u=float(reg_u), intercept=intercept)


@dataclass(frozen=True, eq=False)
class Sampled(Model):
    """The factors of all draws side by side: their mean score is a model of low rank.

    Attributes
    ----------
    W, H : ndarray of shape (n_features, n_draws · rank), (n_labels, n_draws · rank)
        W of each draw over their number, and V of each.
    n_draws : int
        How many there are.
    exposures, exposure_interval : ndarray of shape (n_labels,), (2, n_labels)
        The mean of μ_l, and its 5 % and 95 % quantiles.
    """

    W: np.ndarray
    H: np.ndarray
    n_draws: int
    exposures: np.ndarray
    exposure_interval: np.ndarray

    @property
    def n_labels(self) -> int:
        return len(self.H)

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    @property
    def completion_width(self) -> int:
        return self.n_labels

    @property
    def said_rates(self) -> np.ndarray:
        return self.exposures

    def factors(self, block: Block) -> tuple[Array, Array]:
        kept = block.backend.kept
        return block.project(kept(self.W)), kept(self.H)

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        return of_weights(block, labels, self.W, self.H)

    def probability(self, scores: Array) -> Array:
        return sigmoid(scores)

    def probabilities(self, block: Block, top: TopK | None = None) -> np.ndarray:
        """The mean over the draws of σ(ψ), which is not σ of their mean score."""
        each = self.draws(block)
        if top is None:
            return np.mean([sigmoid(scores) for scores in each], axis=0)
        of_best = (np.take_along_axis(scores, top.indices, axis=1) for scores in each)
        return np.mean([sigmoid(scores) for scores in of_best], axis=0)

    def draws(self, block: Block) -> Iterator[np.ndarray]:
        """The scores of each draw."""
        codes, width = block.backend.to_numpy(self.codes(block)), self.n_codes // self.n_draws
        for start in range(0, self.n_codes, width):
            part = slice(start, start + width)
            yield self.n_draws * codes[:, part] @ self.H[:, part].T

    def rates(self, blocks: Callable[[], Iterator[Block]], n_said: np.ndarray) -> Rates:
        _check_exposed(self.exposures)
        how = (
            "GenEML's exposure, the mean of its draws, and their 5 % and 95 % quantiles; for rare "
            "labels its Beta prior decides."
        )
        low, high = self.exposure_interval
        return Rates.of_labels(self.exposures, low, high, how, n_said)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, None]:
        """(1), laid out, for the mean score."""
        U, V = self.factors(block)
        scores = U @ V.T
        if block.omega is None and _some_exposed(self.exposures):
            shift = silent_shift(self.exposures[None, :], self.dtype)
            scores = scores + block.backend.asarray(shift)
        return scores, None

    def numbers(self) -> dict[str, Any]:
        return {"n_draws": self.n_draws}

    def arrays(self) -> dict[str, np.ndarray | None]:
        names = ("W", "H", "exposures", "exposure_interval")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        W = check_shape("W", arrays.get("W"), n_weights, None)
        n_draws = numbers["n_draws"]
        if not an_int(at_least=1)[0](n_draws) or W.shape[1] % n_draws:
            raise ValueError(f"its n_draws is {n_draws!r} for factors of rank {W.shape[1]}")
        return cls(
            W,
            check_shape("H", arrays.get("H"), n_labels, W.shape[1]),
            n_draws,
            check_shape("exposures", arrays.get("exposures"), n_labels),
            check_shape("exposure_interval", arrays.get("exposure_interval"), 2, n_labels),
        )


def _some_exposed(exposures: np.ndarray) -> bool:
    return bool(np.any(exposures < 1))


def _check_exposed(exposures: np.ndarray) -> None:
    if not np.any((exposures > 0) & (exposures < 1)):
        raise ValueError(
            "model has learned no exposure, so it knows nothing of what is missing; fit GenEML "
            'on positive-only labels with exposure="labels" or "covariates"'
        )
