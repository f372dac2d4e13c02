"""The low-rank model Z = X W Hᵀ, and the two linear maps one gets by fixing a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import inner
from tacit.basics.params import a_float
from tacit.engines.losses import LOSSES
from tacit.models.explanation import Contributions, of_features
from tacit.models.fold_in import fold_in
from tacit.models.links import LINKS, link_of
from tacit.models.model import Model, check_shape

__all__ = ["FixedH", "FixedW", "LowRank", "of_weights"]


@dataclass(frozen=True, eq=False)
class LowRank(Model):
    """Scores X W Hᵀ, and a link that makes probabilities of them.

    Attributes
    ----------
    W : ndarray of shape (n_features, rank)
        With an intercept the last row belongs to the constant feature.
    H : ndarray of shape (n_labels, rank), or None
        None is the identity: the weights have full rank.
    link : str
        A name in `tacit.models.links`.
    unsaid_weight : float or None
        How much silence weighs when a completion fits a row's code to what was said of it; with
        None it does not.
    """

    W: np.ndarray
    H: np.ndarray | None = None
    link: str = "squared"
    unsaid_weight: float | None = None

    @property
    def folds_in(self) -> bool | None:  # type: ignore[override]
        return None if self.unsaid_weight is None else True

    @property
    def n_labels(self) -> int:
        return self.W.shape[1] if self.H is None else self.H.shape[0]

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    def factors(self, block: Block) -> tuple[Array, Array | None]:
        kept = block.backend.kept
        return block.project(kept(self.W)), None if self.H is None else kept(self.H)

    def probability(self, scores: Array) -> Array:
        return LINKS[self.link].probability(scores)

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        return of_weights(block, labels, self.W, self.H)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, Array | None]:
        return self._folded_in(block) if fold_in else self.factors(block)

    def _folded_in(self, block: Block) -> tuple[Array, Array | None]:
        """Codes fitted to what was said, with the mean eigenvalue of HᵀH in the place of λ.

        LEML's objective does not say how far codes stray from Wᵀx, and its λ lets them stray too
        far: with this one a typical label moves the code half way, whatever the scale of H.
        """
        assert self.H is not None
        assert self.unsaid_weight is not None
        W, H = (block.backend.asarray(factor) for factor in (self.W, self.H))
        spread = inner(H, H) / H.shape[1]
        if spread == 0:
            return self.factors(block)
        return fold_in(block, W, H, LOSSES[self.link], self.unsaid_weight, spread), H

    def numbers(self) -> dict[str, Any]:
        return {"link": self.link, "unsaid_weight": self.unsaid_weight}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {"W": self.W, "H": self.H}

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        H, link, weight = arrays.get("H"), link_of(numbers["link"]), numbers["unsaid_weight"]
        W = check_shape("W", arrays["W"], n_weights, n_labels if H is None else None)
        if H is not None:
            check_shape("H", H, n_labels, W.shape[1])
        if weight is not None and (H is None or link not in LOSSES or not a_weight(weight)):
            raise ValueError(f"its unsaid_weight is {weight!r}")
        return cls(W, H, link, weight)


a_weight, _ = a_float(above=0, at_most=1)


def of_weights(
    block: Block, labels: np.ndarray, W: np.ndarray, H: np.ndarray | None
) -> Contributions:
    """x_j w_jl with the weights W Hᵀ."""

    def weights(i: int, at: np.ndarray) -> np.ndarray:
        return W[at, labels[i]] if H is None else W[at] @ H[labels[i]]

    return Contributions({"feature": of_features(block, weights)}, np.zeros(len(labels)))


class FixedH:
    """W ↦ P_Ω(X W Hᵀ), whose adjoint is G ↦ Xᵀ (G H)."""

    def __init__(self, block: Block, H: Array):
        self.block, self.H = block, H

    def forward(self, W: Array) -> Array:
        return self.block.backend.sddmm(self.block.omega, self.block.project(W), self.H)

    def adjoint(self, g: Array) -> Array:
        return self.block.project_t(self.block.backend.spmm(self.block.omega, self.H, g))


class FixedW:
    """H ↦ P_Ω(A Hᵀ) with A = X W computed once; its adjoint is G ↦ Gᵀ A."""

    def __init__(self, block: Block, W: Array):
        self.block, self.A = block, block.project(W)

    def forward(self, H: Array) -> Array:
        return self.block.backend.sddmm(self.block.omega, self.A, H)

    def adjoint(self, g: Array) -> Array:
        return self.block.backend.spmm_t(self.block.omega, self.A, g)

    def totals(self, e: Array) -> Array:
        """A sum a label, of shape (n_labels, 1): each row of H is a problem of its own."""
        omega, xp = self.block.omega, array_namespace(e)
        ones = xp.ones((omega.shape[0], 1), dtype=e.dtype, device=e.device)
        return self.block.backend.spmm_t(omega, ones, e)
