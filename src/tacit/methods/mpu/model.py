"""The model that MPU leaves behind: the weights of its levels, and the rates c."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import sigmoid
from tacit.basics.params import an_int
from tacit.methods.mpu.folded_batches import predictions
from tacit.missing import Rates
from tacit.models.explanation import Contributions, Kind, of_features
from tacit.models.model import Model, check_shape, silent_shift

__all__ = ["Stacked"]


@dataclass(frozen=True, eq=False)
class Stacked(Model):
    """Logistic models of all labels in levels, each of which sees what is predicted below it.

    Attributes
    ----------
    W : ndarray of shape (n_features, n_labels)
        The base level. With an intercept the last row belongs to the constant feature.
    stack : ndarray or None
        The levels above, of shape (n_features + ℓ n_labels, n_labels), one below the other; None
        where there are none.
    top : int or None
        How many of a row's predictions the next level sees, the best; None is all.
    c : ndarray of shape (n_labels,)
        How often each label is said where it is true.
    c_interval : ndarray of shape (2, n_labels)
        Its 95 % interval, NaN where there is none.
    c_overall : ndarray of shape (3,)
        One rate for all labels together, and its interval.
    how : str
        How c was got, and what is known to be wrong with it.
    """

    W: np.ndarray
    stack: np.ndarray | None
    top: int | None
    c: np.ndarray
    c_interval: np.ndarray
    c_overall: np.ndarray
    how: str
    H = None  # the scores of the last level are no inner products

    @classmethod
    def of(cls, levels: Sequence[np.ndarray], top: int | None, rates: Rates) -> Self:
        """The model of the weights of these levels, the base first."""
        base, *above = levels
        return cls(
            base,
            np.concatenate(above) if above else None,
            None if top is None else int(top),
            np.asarray(rates.c, np.float64),
            np.stack([rates.low, rates.high]).astype(np.float64),
            np.asarray(rates.overall, np.float64),
            rates.how,
        )

    @property
    def n_labels(self) -> int:
        return self.W.shape[1]

    @property
    def n_codes(self) -> int:
        return self.W.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.W.dtype

    @property
    def said_rates(self) -> np.ndarray:
        return self.c

    def codes(self, block: Block) -> Array:
        """The scores of the base level."""
        return block.project(block.backend.kept(self.W))

    def factors(self, block: Block) -> tuple[Array, None]:
        """The scores of the last level: those of each level are features of the next."""
        block, W = self._last_level(block)
        return block.project(block.backend.kept(W)), None

    def _last_level(self, block: Block) -> tuple[Block, np.ndarray]:
        """The rows as the last level sees them, and its weights."""
        W = self.W
        for above in self._above():
            F = block.project(block.backend.kept(W))
            block = replace(block, more=(*block.more, predictions(F, self.top, block.backend)))
            W = above
        return block, W

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """Of the last level: those of features, and of what is predicted of labels below it."""
        block, W = self._last_level(block)
        found = of_features(block, lambda i, at: W[at, labels[i]])
        amounts: dict[Kind, Any] = {"feature": found[:, : len(self.W)]}
        for start in range(len(self.W), len(W), self.n_labels):
            level = found[:, start : start + self.n_labels]
            amounts["label"] = level if "label" not in amounts else amounts["label"] + level
        return Contributions(amounts, np.zeros(len(labels)))

    def _above(self) -> list[np.ndarray]:
        """The weights of the levels above the base."""
        if self.stack is None:
            return []
        return [self.stack[rows] for rows in _cuts(len(self.stack), *self.W.shape)]

    def probability(self, scores: Array) -> Array:
        return sigmoid(scores)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, None]:
        """Scores of being true though nothing was said, (1 - c)σ(f) / (1 - cσ(f)).

        Entries of masked labels that were not observed have σ(f), and so have all where c is 1.
        """
        F, _ = self.factors(block)
        if block.omega is not None or (self.c >= 1).all():
            return F, None
        return F + block.backend.asarray(silent_shift(self.c, self.dtype, most=1 - 1e-7)), None

    def rates(self, blocks: Callable[[], Iterator[Block]], n_said: np.ndarray) -> Rates:
        """Those of the fit, whatever rows they are asked of."""
        low, high = self.c_interval
        return Rates.of(self.c, low, high, self.c_overall, self.how, n_said)

    def numbers(self) -> dict[str, Any]:
        return {"top": self.top, "how": self.how}

    def arrays(self) -> dict[str, np.ndarray | None]:
        return {
            "W": self.W,
            "stack": self.stack,
            "c": self.c,
            "c_interval": self.c_interval,
            "c_overall": self.c_overall,
        }

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        top, how, stack = numbers["top"], numbers["how"], arrays.get("stack")
        if not (top is None or an_int(at_least=1)[0](top)) or not isinstance(how, str):
            raise ValueError(f"its top is {top!r} and its how {how!r}")
        W = check_shape("W", arrays.get("W"), n_weights, n_labels)
        if stack is not None:
            check_shape("stack", stack, None, n_labels)
            if _cuts(len(stack), *W.shape)[-1].stop != len(stack) or stack.dtype != W.dtype:
                raise ValueError(
                    f"its stack of shape {stack.shape} and {stack.dtype} does not fit its W of "
                    f"shape {W.shape} and {W.dtype}"
                )
        c = check_shape("c", arrays.get("c"), n_labels)
        if not ((c > 0) & (c <= 1)).all():
            raise ValueError("its c is not above 0 and at most 1 throughout")
        interval = check_shape("c_interval", arrays.get("c_interval"), 2, n_labels)
        overall = check_shape("c_overall", arrays.get("c_overall"), 3)
        return cls(W, stack, top, c, interval, overall, how)


def _cuts(n_rows: int, n_features: int, n_labels: int) -> list[slice]:
    """The rows of the stack that each level has; beyond its end where it is not whole."""
    cuts: list[slice] = []
    stop = 0
    while stop < n_rows:
        start, stop = stop, stop + n_features + (len(cuts) + 1) * n_labels
        cuts.append(slice(start, stop))
    return cuts
