"""Model: what a fit leaves behind, a frozen value that knows neither data nor parameters.

    codes(block)          the code of each row: what `transform` gives
    scores(block)         one score a row and label; larger is more likely
    top_k(block, k)       the k best labels of each row, without laying out all scores
    probability(scores)   the probability that a label of this score is true
    probabilities(block)  that of all labels of each row, or of its best
    rates_of(block)       how often a label is said where it is true, if the model knows
    completion(block, k)  the k best of what was not said of each row
    contributions(block, labels)  what features, rows or parts add to a score of each row
    numbers(), arrays()   what a file keeps of it, and `from_arrays`, which checks what it is given

The estimator places rows on a backend and forwards; a file holds a model; whoever serves one needs
nothing else. A kind of model that several methods share has a file in this folder, a method's own
kind stands beside the method.

Most kinds end in a product: the scores of some rows are U Hᵀ, with U computed from the rows and H
one row a label. All verbs follow from these `factors`; H is None where the scores are laid out
already, as those of a decoder or of neighbours are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.labels import TopK
from tacit.missing.rates import Rates, shares
from tacit.models.explanation import Contributions

__all__ = ["Model", "check_shape", "said", "silent_shift"]

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class Model(ABC):
    """A fitted model. A kind writes what is abstract, and more where it knows more.

    `folds_in` says whether `completion` can look at what was said of a row (None: it cannot) and
    whether it does so by itself. `H` holds the label factors, or is None where scores are no inner
    products.
    """

    folds_in: ClassVar[bool | None] = None
    H: Any

    # What a kind writes

    @property
    @abstractmethod
    def n_labels(self) -> int: ...

    @property
    @abstractmethod
    def n_codes(self) -> int: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype: ...

    @abstractmethod
    def factors(self, block: Block) -> tuple[Array, Array | None]:
        """U and H, whose product U Hᵀ are the scores; or the scores, and None."""

    @abstractmethod
    def probability(self, scores: Array) -> Array:
        """The probability that a label of this score is true."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray | None]:
        """What a file keeps, by name; None is left out."""

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        """The model again; whatever does not fit together is a ValueError."""

    # What it may write

    @property
    def said_rates(self) -> np.ndarray | None:
        return None

    @property
    def width(self) -> int:
        """How many numbers ranking lays out for a row."""
        return self.n_labels if self.H is None else self.H.shape[1]

    @property
    def completion_width(self) -> int:
        """The same for `completion`."""
        return self.width

    def codes(self, block: Block) -> Array:
        return self.factors(block)[0]

    def probabilities(self, block: Block, top: TopK | None = None) -> np.ndarray:
        """P(true) of each row and label, or of the best labels that `top_k` gave for these rows."""
        return self.probability(self.scores(block) if top is None else top.scores)

    def numbers(self) -> dict[str, Any]:
        return {}

    def rates_of(self, block: Block) -> np.ndarray | None:
        """The rates of these rows, (1 or n_rows) × n_labels."""
        return None if self.said_rates is None else np.asarray(self.said_rates)[None, :]

    def rates(self, blocks: Callable[[], Iterator[Block]], n_said: np.ndarray) -> Rates:
        """The rates with intervals, for labels that were said `n_said` times of these rows."""
        c, error = shares(self._chances(b) for b in blocks())
        how = "the rates of the model, with scores held fixed: their intervals are too narrow"
        return Rates.of_labels(c, c - 1.96 * error, c + 1.96 * error, how, n_said)

    def unsaid_factors(self, block: Block, fold_in: bool) -> tuple[Array, Array | None]:
        """As `factors`, of scores whose probability is that of being true though nobody said so."""
        return self.factors(block)

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions | None:
        """What makes the score of one label of each row; None where scores are no such sums."""
        return None

    # What follows

    def scores(self, block: Block) -> np.ndarray:
        U, H = self.factors(block)
        return block.backend.to_numpy(U if H is None else U @ H.T)

    def top_k(self, block: Block, k: int) -> TopK:
        return block.backend.top_k(*self.factors(block), k, None)

    def completion(self, block: Block, k: int, fold_in: bool) -> TopK:
        """The k best of each row of those that nobody said yes or no to."""
        return block.backend.top_k(*self.unsaid_factors(block, fold_in), k, said(block))

    def unsaid_probability(self, scores: np.ndarray, fold_in: bool) -> np.ndarray:
        """The probabilities of what `completion` gives these scores."""
        return self.probability(scores)

    def _chances(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """P(true), and P(said | true), of each entry of some rows."""
        rates = self.rates_of(block)
        assert rates is not None
        return self.probability(self.scores(block).astype(np.float64)), rates


def said(block: Block) -> Any:
    """The pattern of what is known of these rows: it is no candidate for completion."""
    return block.said[0]


def silent_shift(rates: np.ndarray, like: np.dtype, most: float = 1.0) -> np.ndarray:
    """What silence adds to the log-odds of a label that is said at such rates: log(1 - c).

    P(true | nothing was said) = (1 - c) σ(z) / (1 - c σ(z)) = σ(z + log(1 - c)).
    """
    return np.log1p(-np.minimum(rates, most)).astype(like)


def check_shape(name: str, array: Any, *shape: int | None, integers: bool = False) -> np.ndarray:
    """The array if it is of this shape (None: any length) and of float32 or float64, or ValueError.

    `integers` asks for a signed integer type in place of the floats.
    """
    if not isinstance(array, np.ndarray):
        raise ValueError(f"its {name} is missing")
    if not (array.dtype.kind == "i" if integers else array.dtype in FLOATS):
        raise ValueError(f"its {name} is of {array.dtype}")
    fits = array.ndim == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, array.shape)
    )
    if not fits or (array.size == 0 and 0 not in shape):
        raise ValueError(f"its {name} has shape {array.shape}")
    return array
