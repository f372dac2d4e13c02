"""What `Tacit` leaves behind: first models, a second look, and the blend that makes one of them.

The lead (for labels that are complete or positive-only: ridge) ranks all labels of a row. The best
of them, its shortlist, are scored by every first model and by the second look, and the blend ranks
them anew. Of masked labels every label is scored by all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from tacit.backends import Array
from tacit.backends.block import Block
from tacit.basics.numerics import softplus
from tacit.features.scaling import Scaling
from tacit.labels import TopK
from tacit.methods.tacit.blend import Blend, logs
from tacit.methods.tacit.ceiling import Ceiling
from tacit.methods.tacit.first.by_feature import SparseWeights
from tacit.methods.tacit.plan import LINKS, LOOK
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.saved import arrays_of, fields_of, numbers_of
from tacit.methods.tacit.second_look import SecondLook, rows_of
from tacit.methods.tacit.voice import Voice
from tacit.missing import Rates
from tacit.models import Model
from tacit.models.explanation import Contributions
from tacit.models.model import said, silent_shift

__all__ = ["RARITY", "Blended"]

RARITY = "rarity"


@dataclass(frozen=True, eq=False)
class Blended(Model):
    """First models and their blend.

    Attributes
    ----------
    scaling : Scaling
        How features are scaled.
    voices : tuple of Voice
        The first models; the first is the lead.
    shortlist : int
        How many labels of a row are blended; 0 is all.
    rarity : ndarray of shape (n_labels,)
        Log of the share of rows that say the label.
    blend, completion_blend : Blend
        For labels by the features; and for those that are missing beside what was said.
    look : SecondLook or None
        What looks at the shortlist again.
    links : ndarray of shape (n_labels, n_labels) or None
        How the labels that were said of a row predict each other label.
    ceiling : Ceiling or None
        Which share of what is true was said, of all and of each label; None in parts of a model.
    report : Report
        What was tried and what it brought.
    """

    scaling: Scaling
    voices: tuple[Voice, ...]
    shortlist: int
    rarity: np.ndarray
    blend: Blend
    completion_blend: Blend | None
    report: Report
    look: SecondLook | None = None
    links: np.ndarray | None = None
    ceiling: Ceiling | None = None

    H = None

    @property
    def folds_in(self) -> bool:  # type: ignore[override]
        return self.completion_blend is not None

    @property
    def n_labels(self) -> int:
        return len(self.rarity)

    @property
    def n_codes(self) -> int:
        return self.voices[0].model.n_codes

    @property
    def dtype(self) -> np.dtype:
        return self.rarity.dtype

    @property
    def width(self) -> int:
        return 2 * self.n_labels

    @property
    def exposure(self) -> float:
        """The share of all true labels that was said."""
        return self.blend.exposure

    @property
    def said_rates(self) -> np.ndarray:
        if self.ceiling is None:
            return np.full(self.n_labels, self.exposure)
        return self.ceiling.labels[0]

    def rates(self, blocks: Callable[[], Iterator[Block]], n_said: np.ndarray) -> Rates:
        """Those of the fit, whatever rows they are asked of."""
        assert self.ceiling is not None  # as in every fitted model
        return self.ceiling.rates(n_said)

    def codes(self, block: Block) -> Array:
        return self.voices[0].model.codes(self.scaling(block))

    def factors(self, block: Block) -> tuple[Array, None]:
        return block.backend.asarray(self.scores(block)), None

    def with_blends(
        self, blend: Blend, completions: Blend | None, ceiling: Ceiling, report: Report
    ) -> Blended:
        """The same parts with these blends of them, in the float type of the file."""
        cast = blend.cast(self.dtype)
        links = None if completions is None else self.links
        both = None if completions is None else completions.cast(self.dtype)
        known = ceiling.along(blend.exposure).cast(self.dtype)
        return replace(
            self, blend=cast, completion_blend=both, links=links, ceiling=known, report=report
        )

    # Scores

    def features(self, block: Block, top: TopK, known: Any = None) -> np.ndarray:
        """What the blend is told of the labels `top` of each row, of shape (n_rows, m, n_names).

        `known` is the pattern of what is known of the rows, where labels of the row may tell.
        """
        at = np.maximum(top.indices, 0)
        plain = self.scaling.without_waves()(block)  # random waves are for the lead alone
        told = {self.voices[0].name: self.voices[0].heard(top.scores)}
        for voice in self.voices[1:]:
            told[voice.name] = voice.tells(plain, at)
        if self.look is not None:
            told[LOOK] = self.look.logits(rows_of(block, self.scaling), top)
        told[RARITY] = self.rarity.astype(np.float64)[at]
        if known is not None and self.links is not None:
            found = known.astype(self.dtype) @ self.links
            told[LINKS] = logs(np.take_along_axis(found, at, 1))
        return np.stack(list(told.values()), axis=-1)

    def names(self, known: bool = False) -> tuple[str, ...]:
        """What the features are, in their order."""
        more = [voice.name for voice in self.voices[1:]]
        look = [LOOK] if self.look is not None else []
        links = [LINKS] if known and self.links is not None else []
        return (self.voices[0].name, *more, *look, RARITY, *links)

    def listed(self, block: Block, skip: Any = None, more: int = 0, known: Any = None) -> TopK:
        """The shortlists of the rows by the lead, and `more` labels behind them.

        Where labels that are known of the rows may tell, by the sum of what both say.
        """
        m = min(self.n_labels, (self.shortlist or self.n_labels) + more)
        lead, rows = self.voices[0].model, self.scaling(block)
        if isinstance(lead, SparseWeights):
            found = lead.best(rows, m, skip)
        else:
            U, H = lead.factors(rows)
            S = U if H is None else U @ H.T
            if known is None or self.links is None:
                found = block.backend.top_k(S, None, m, skip)
            else:
                both = S + block.backend.asarray(known.astype(self.dtype) @ self.links)
                found = block.backend.top_k(both, None, m, skip)
                own = np.take_along_axis(block.backend.to_numpy(S), np.maximum(found.indices, 0), 1)
                found = TopK(found.indices, np.where(np.isfinite(found.scores), own, -np.inf))
        there = np.isfinite(found.scores)
        return TopK(np.where(there, found.indices, -1), np.where(there, found.scores, 0))

    def scores(self, block: Block) -> np.ndarray:
        top = self.listed(block, more=self.n_labels)
        ranked = self._blended(block, top, self.blend, None)
        scores = np.empty((len(top.indices), self.n_labels), self.dtype)
        np.put_along_axis(scores, top.indices, ranked, axis=1)
        return scores

    def contributions(self, block: Block, labels: np.ndarray) -> Contributions:
        """What each part adds to the log-odds; behind the shortlist the lead alone adds."""
        top, blend = self.listed(block, more=self.n_labels), self.blend
        place = np.argmax(top.indices == labels[:, None], axis=1)[:, None]
        here = TopK(*(np.take_along_axis(a, place, axis=1) for a in top))
        which = [self.names().index(name) for name in blend.names]
        amounts = self.features(block, here, None)[:, 0, which] * blend.weights
        offset = np.full(len(labels), blend.bias)
        behind = np.flatnonzero(place[:, 0] >= (self.shortlist or self.n_labels))
        if len(behind):
            ranked = self._blended(block, top, blend, None)
            amounts[behind] = 0
            amounts[behind, 0] = blend.lead[0] * logs(here.scores[behind, 0])
            offset[behind] = ranked[behind, place[behind, 0]] - amounts[behind, 0]
        lead = None  # random waves have no names
        if self.scaling.kind != "fourier":
            lead = self.voices[0].model.contributions(self.scaling(block), labels)
        return Contributions({"part": sp.csr_array(amounts)}, offset, blend.names, lead)

    def top_k(self, block: Block, k: int) -> TopK:
        return self._ranked(block, k, None, self.blend, None)

    def completion(self, block: Block, k: int, fold_in: bool) -> TopK:
        """Ranked by P(true | unsaid) = (1 - c) p / (1 - c p) = σ(z + log(1 - c)) for p = σ(z).

        The blend for completions learned where half of what was said was known, so that half of
        this is in its z already.
        """
        c = self.said_rates
        silence = silent_shift(c, np.dtype(np.float64), most=1 - 1e-7)
        silence[c == 1] = 0.0  # nothing is hidden: what the features say, whatever was said
        if not fold_in or self.completion_blend is None:
            return self._ranked(block, k, said(block), self.blend, None, silence)
        silence = np.where(c == 1, 0.0, silence - np.log1p(-c / 2))
        return self._ranked(block, k, said(block), self.completion_blend, block.Y.scipy(), silence)

    def _ranked(
        self, block: Block, k: int, skip: Any, blend: Blend, known: Any, shift: Any = 0.0
    ) -> TopK:
        top = self.listed(block, skip, k, known)
        new = self._blended(block, top, blend, known)
        new += np.broadcast_to(shift, self.n_labels)[top.indices]
        new[top.indices < 0] = -np.inf
        order = np.argsort(-new, axis=1, kind="stable")[:, :k]
        take = lambda a: np.take_along_axis(a, order, axis=1)
        return TopK(take(top.indices), take(new).astype(self.dtype))

    def _blended(self, block: Block, top: TopK, blend: Blend, known: Any) -> np.ndarray:
        """The log-odds of labels: blended on the shortlist, and below it those of the lead."""
        m = self.shortlist or self.n_labels
        short = TopK(top.indices[:, :m], top.scores[:, :m])
        which = [self.names(known is not None).index(name) for name in blend.names]
        new = blend.logits(self.features(block, short, known)[..., which])
        beyond = top.scores[:, m:]
        if not beyond.shape[1]:
            return new
        there = np.where(short.indices >= 0, new, np.inf)
        return np.hstack([new, blend.off_list(beyond, there.min(axis=1, keepdims=True))])

    def probability(self, scores: Any) -> Any:
        """σ(z) = exp(-log(1 + e⁻ᶻ)), which tells apart what ½ (1 + tanh(z/2)) rounds to 0."""
        return array_namespace(scores).exp(-softplus(-scores))

    # Files

    def numbers(self) -> dict[str, Any]:
        return numbers_of(self)

    def arrays(self) -> dict[str, np.ndarray | None]:
        return arrays_of(self)

    @classmethod
    def from_arrays(
        cls, n_weights: int, n_labels: int, numbers: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Self:
        model = cls(**fields_of(n_weights, n_labels, numbers, arrays))
        for each, known in ((model.blend, False), (model.completion_blend, True)):
            if each is not None and not set(each.names) <= set(model.names(known)):
                raise ValueError(f"its blend is of {each.names}, not of {model.names(known)}")
        return model
