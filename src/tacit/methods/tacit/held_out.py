"""Held-out rows: what the blend learns from, and what says which parts are in.

All parts are fitted without the rows of a fold, and tell what they think of these rows. One half of
the rows then weighs the parts and the other half judges, and the other way round. Unlike models
rarely harm each other, and few rows are a poor judge of little gains: a part is in unless the rows
are clearly ranked worse with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from tacit.backends.block import Block
from tacit.labels import TopK
from tacit.methods.tacit.blend import Blend
from tacit.methods.tacit.blended import RARITY, Blended
from tacit.methods.tacit.ceiling import Ceiling
from tacit.methods.tacit.deal import SomeRows, only, together
from tacit.methods.tacit.judge import gains, is_clear
from tacit.methods.tacit.plan import LINKS
from tacit.methods.tacit.report import LOG_LOSS, RANKED, Report, Step
from tacit.metrics.top import contains

_BELIEVED = 0.25  # of the way: of GO annotations that came later, half of it costs precision
_SURE = 1.0  # standard errors, by which a part must harm to be left out, and links must help

__all__ = ["Held", "ceiling_of", "chosen", "with_links"]


@dataclass(frozen=True)
class Held:
    """Rows held out: what each part says of the labels in question, and what was said of them."""

    parts: Blended
    block: Block
    top: TopK
    features: np.ndarray
    said: np.ndarray
    counts: np.ndarray
    n_said: int

    @classmethod
    def of(cls, parts: Blended, rows: SomeRows) -> Self:
        """What these parts say of rows that they have not seen, and of which labels it counts."""
        block = together(rows.blocks, rows.backend)
        top, Y = parts.listed(block), block.Y.scipy()
        counts = top.indices >= 0
        if block.omega is not None:
            counts &= contains(block.omega.scipy(), top.indices)
        said = contains(Y, top.indices)
        return cls(parts, block, top, parts.features(block, top), said, counts, Y.nnz)

    @classmethod
    def of_cells(cls, parts: Blended, block: Block, cells: sp.csr_array) -> Self:
        """What they say of known cells, of rows whose other cells they have seen."""
        top, Y = parts.listed(block), block.Y.scipy()
        said, held = contains(Y, top.indices), contains(cells, top.indices)
        return cls(parts, block, top, parts.features(block, top), said, held, cells.nnz)

    def asked(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Features, answers and labels where half of what was said is known; how much is asked.

        Of so many rows at most.
        """
        first = np.arange(min(most, self.block.Y.shape[0]))
        block = self.block.rows(self.block.backend.asarray(first))
        said = block.Y.scipy()
        known = np.random.default_rng(0).random(said.nnz) < 0.5
        left, wanted = only(said, known), only(said, ~known)
        no = block.noes  # nobody is asked again about what was denied
        skip = left if no is None else sp.csr_array(left + no.scipy())
        top = self.parts.listed(block, block.backend.sparse(skip, pattern=True), known=left)
        features = self.parts.features(block, top, left)
        return features, contains(wanted, top.indices), top.indices, wanted.nnz


def ceiling_of(held: list[Held], kind: str, report: Report) -> Ceiling:
    """How much of what is true was said, by all that the parts say of the rows held out."""
    names, n_labels = held[0].parts.names(), held[0].parts.n_labels
    if kind != "positive-only":
        return Ceiling.none(n_labels)
    features, said, counts, label = _together(held)
    row = np.nonzero(counts)[0]
    found = Ceiling.of(features[counts], said[counts], label[counts], row, n_labels)
    if len({*names} - {RARITY}) < 2:  # by ridge alone it was off by up to a factor of three
        found = found.unknown()
    report.notes.append(str(found))
    return found


def _together(held: list[Held]) -> list[np.ndarray]:
    """Features, what was said, what counts, and the labels, of all folds."""
    parts = [(h.features, h.said, h.counts, h.top.indices) for h in held]
    return [np.concatenate(arrays) for arrays in zip(*parts)]


def chosen(
    held: list[Held], kind: str, ceiling: Ceiling, report: Report, seconds: Mapping[str, float]
) -> Blend:
    """The blend of all parts but those that clearly harm the ranks of held-out rows.

    `seconds` are those that the parts took; of a part that may not be fitted again, infinity.
    """
    names = held[0].parts.names()
    features, said, counts, label = _together(held)
    c = ceiling.labels[0][label] if ceiling.says_something else None
    n_said = sum(h.n_said for h in held)
    judge = _Judge(names, features, said, counts, kind, n_said, c)
    lead, best = names[:1], tuple(n for n in names if np.isfinite(seconds.get(n, 0)))
    if not said.any():  # nothing tells which of them is right
        best = lead
    opposed = set[str]()
    while wrong := _turned(judge.blend(best)):
        best = tuple(name for name in best if name != wrong)
        opposed.add(wrong)
    for name in best[1:]:
        less = tuple(other for other in best if other != name)
        if is_clear(judge.gain(less) - judge.gain(best), _SURE):
            best = less
    if is_clear(judge.gain(lead) - judge.gain(best), _SURE):
        best = lead
    report.measure = LOG_LOSS if kind == "masked" else RANKED
    for name in names:
        with_it = tuple(n for n in names if n in best or n == name)
        without = tuple(n for n in with_it if n != name)
        before = judge.figure(without) if without else 0.0
        took = seconds.get(name, 0.0)
        why = "" if np.isfinite(took) else "and the budget has no room for it"
        why = "but by being believed the opposite of what it says" if name in opposed else why
        report.steps.append(
            Step(name, why, judge.figure(with_it), before, name in best, round(took, 2))
        )
    report.steps.append(Step("all together", "", judge.figure(best), 0.0, True, 0.0))
    blend = judge.blend(best)
    return replace(blend, exposure=ceiling.overall[0]) if ceiling.says_something else blend


def _turned(blend: Blend) -> str | None:
    """The part that the blend believes the opposite of, if there is one: more rows would undo it.

    A second look can learn from the lead's scores of its rows what these rows said, where their
    features tell what the lead would say with them; of other rows it then errs.
    """
    weights = {n: w for n, w in zip(blend.names[1:], blend.weights[1:]) if n != RARITY and w < 0}
    return min(weights, key=weights.__getitem__, default=None)


@dataclass
class _Judge:
    """Held-out entries, in two halves of rows that judge each other's blends."""

    names: tuple[str, ...]
    features: np.ndarray
    said: np.ndarray
    counts: np.ndarray
    kind: str
    n_said: int
    c: np.ndarray | None  # of each entry; None where the blend has to find one
    ranks: int = 5
    known_logits: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    def blend(self, names: tuple[str, ...]) -> Blend:
        """The blend of these parts, by all rows."""
        which = [self.names.index(name) for name in names]
        features, c = self.features[self.counts][:, which], self._of(self.counts)
        return Blend.fit(names, features, self.said[self.counts], c=c)

    def _of(self, entries: np.ndarray) -> np.ndarray | None:
        return None if self.c is None else self.c[entries]

    def gain(self, names: tuple[str, ...]) -> np.ndarray:
        """How well each row is ranked by the blend of the other half of the rows."""
        logits = self._logits(names)
        if self.kind == "masked":
            loss = np.logaddexp(0, np.where(self.said, -logits, logits))
            known = self.counts.sum(axis=1)
            return -np.where(self.counts, loss, 0).sum(axis=1) / max(known.mean(), 1)
        return gains(self._ranked(logits), self.ranks)

    def figure(self, names: tuple[str, ...]) -> float:
        """The figure that people are told (`tacit.methods.tacit.report.Step`)."""
        if self.kind == "masked":
            return 100 * float(self.gain(names).mean())
        first = self._ranked(self._logits(names))[:, : self.ranks]
        return 100 * float(first.sum() / max(self.n_said, 1))

    def _ranked(self, logits: np.ndarray) -> np.ndarray:
        """Whether the label at each rank was said."""
        order = np.argsort(-np.where(self.counts, logits, -np.inf), axis=1, kind="stable")
        return np.take_along_axis(self.said & self.counts, order, axis=1)

    def _logits(self, names: tuple[str, ...]) -> np.ndarray:
        """The log-odds of each row by the blend of the other half of the rows."""
        if names in self.known_logits:
            return self.known_logits[names]
        which = [self.names.index(name) for name in names]
        half = np.random.RandomState(0).permutation(len(self.said)) % 2 == 0
        logits = np.empty(self.said.shape)
        for rows in (half, ~half):
            known = self.counts & ~rows[:, None]
            own, other = self.features[known][:, which], self.features[rows][..., which]
            logits[rows] = Blend.judged(own, self.said[known], other, c=self._of(known))
        self.known_logits[names] = logits
        return logits


def with_links(
    held: list[Held], blend: Blend, kind: str, ceiling: Ceiling, report: Report, most: int
) -> Blend | None:
    """The blend for completions, of what else was said of a row too; None if it finds no more.

    Half of what was said of each held-out row is known and the other half asked for, among the
    labels that are best without those known, over twenty ranks, of `most` rows of each fold. That
    half is hidden at random, and so flatters links: what people forgot is seldom what the other
    labels make certain, or they would have said it. So completions go a part of the way alone.
    """
    asked = [each.asked(most) for each in held]
    features, said, label = (np.concatenate([part[i] for part in asked]) for i in range(3))
    names = held[0].parts.names(known=True)
    counts, n_said = np.ones(said.shape, bool), int(sum(part[3] for part in asked))
    c = ceiling.among_unknown()[label] if ceiling.says_something else None
    judge = _Judge(names, features, said, counts, kind, n_said, c, ranks=20)
    both = (*blend.names, LINKS)
    won = judge.gain(both) - judge.gain(blend.names)
    figures = judge.figure(both), judge.figure(blend.names)
    report.steps.append(Step(f"{LINKS}, for completions", "", *figures, is_clear(won, _SURE), 0.0))
    return blend.towards(judge.blend(both), _BELIEVED) if is_clear(won, _SURE) else None
