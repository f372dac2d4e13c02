"""Parts: all first models, and the second look, fitted to some rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from tacit.backends import Array, Sparse
from tacit.backends.block import Block, pieces
from tacit.engines.descend import Loop
from tacit.engines.ease import ease
from tacit.features.scaling import Scaling
from tacit.labels import TopK
from tacit.methods.leml.minimise import Minimiser
from tacit.methods.tacit.blend import LEAST, Blend
from tacit.methods.tacit.blended import Blended
from tacit.methods.tacit.deal import Dealt, SomeRows
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.methods.tacit.first.products import FOLDS
from tacit.methods.tacit.limits import Limits
from tacit.methods.tacit.plan import LINKS, LOOK, NETWORKS, Plan
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.second_look import SecondLook, rows_of
from tacit.methods.tacit.shortlists import OffListEntries, Shortlists, listed
from tacit.methods.tacit.voice import Voice
from tacit.metrics.top import contains
from tacit.models.nearest_rows import NearestRows

__all__ = ["Parts"]

NEAREST = 20  # rows that vote
_C = 1.0  # of the second look: half and twice of it rank alike
_DRAWN = 10  # labels of a row beyond its shortlist, where the lead is rough
_LINKED = 100.0  # λ of the links between labels
_RANK, _REG, _PASSES = 100, 3.0, 8  # of the low rank of what is known


@dataclass(frozen=True)
class Parts:
    """What is fitted, and how: the same for the rows without a fold and for all of them."""

    plan: Plan
    limits: Limits
    seed: int
    scaling: Scaling = Scaling("none")  # noqa: RUF009
    lead: Any = None
    wanted: tuple[str, ...] | None = None

    def only(self, names: tuple[str, ...]) -> Parts:
        """The same, but for parts that the blend has no use for."""
        return replace(self, wanted=names)

    def fit(self, rows: SomeRows) -> Blended:
        """All parts, fitted to these rows, without a blend of them."""
        scaled, plain = rows.scaled(self.scaling), rows.scaled(self.scaling.without_waves())
        masked = rows.problem.kind == "masked"
        voices, look = (self._masked(plain), None) if masked else self._ranked(scaled, plain)
        if self._wants("nearest rows"):
            blocks = plain.blocks.map(_without_constant)
            near = NearestRows.of(blocks, NEAREST, rows.dtype)
            voices.append(Voice("nearest rows", near, 1 / (2 * NEAREST), True))
        counts, n = rows.blocks.sum(_counts)
        rarity = np.log((counts + 0.5) / (n + 1)).astype(rows.dtype)
        links = rows.to_host(ease(rows.blocks.sum(_label_gram), _LINKED)) if self.links else None
        names = (voices[0].name,)
        nobody = Blend(names, np.ones(1), 0.0, 1.0, np.array([1.0, 0.0]))
        shortlist = 0 if masked else listed(rows.problem.n_labels)
        own = self.scaling, tuple(voices), shortlist, rarity
        return Blended(*own, nobody, None, Report(), look, links)

    @property
    def links(self) -> bool:
        """Whether the labels of a row may complete it."""
        return LINKS in self.plan.names

    def _wants(self, name: str) -> bool:
        return name in self.plan.names and (self.wanted is None or name in self.wanted)

    def _masked(self, rows: SomeRows) -> list[Voice]:
        """Of masked labels: networks, and logistic low rank of what is known."""
        named = zip(("network", "network again"), NETWORKS)
        voices = [
            Voice(name, replace(net, seed=self.seed).fit(rows), None, True)
            for name, net in named
            if name == "network" or self.wanted is None or name in self.wanted
        ]
        if self._wants("low rank"):
            problem = rows.as_problem(Loop("low rank", _PASSES, 1e-4), self.seed)
            found = Minimiser(loss="logistic").solve(problem, _RANK, _REG)
            voices.append(Voice("low rank", found.model, None, True))
        return voices

    def _ranked(self, scaled: SomeRows, plain: SomeRows) -> tuple[list[Voice], SecondLook | None]:
        """The lead, and what stands beside it."""
        assert self.lead is not None
        model, held = self.lead.fit(scaled, self.limits)
        voices = [Voice(self.lead.name, model, LEAST, False)]
        look = None
        if self._wants(LOOK):
            look = self._look(scaled, plain, held, self.lead.rough)
        if self._wants("network"):
            network = FirstNetwork(seed=self.seed).fit(plain)
            voices.append(Voice("network", network, None, True))
        return voices, look

    def _look(
        self, scaled: SomeRows, plain: SomeRows, held: list[tuple[Any, Any]], rough: bool
    ) -> SecondLook:
        """A second look learned from the shortlists of rows by models that have not seen them."""
        most, parts = listed(scaled.problem.n_labels), []
        for fold, unseen in held:
            mine, theirs = plain.blocks, scaled.blocks
            if fold is not None:
                n = scaled.n_samples
                mine, theirs = (Dealt.of(r).fold(fold, FOLDS, n).blocks for r in (plain, scaled))
            X, tops = mine.sum(_rows_of), theirs.sum(_shortlisted, unseen, most, rough)
            parts += [Shortlists(x, *top) for x, top in zip(X, tops, strict=True)]
        return SecondLook.fit(Shortlists.of(parts), scaled.problem.n_labels, _C).cast(scaled.dtype)


def _without_constant(b: Block) -> Block:
    """The rows at unit length without the constant feature, which would make all of them alike."""
    if not isinstance(b.X, Sparse):
        xp = array_namespace(b.X)
        ones = xp.arange(b.X.shape[1], device=b.X.device) < b.X.shape[1] - 1
        X = b.X * xp.astype(ones, b.X.dtype)[None, :]
        norm = xp.sqrt(xp.sum(X * X, axis=1, keepdims=True))
        return replace(b, X=X / xp.where(norm > 0, norm, xp.ones_like(norm)))
    xp = array_namespace(b.X.data)
    data = xp.where(b.X.indices == b.X.shape[1] - 1, xp.zeros_like(b.X.data), b.X.data)
    rest = replace(b, X=replace(b.X, data=data), more=())
    ones = xp.ones((b.X.shape[1], 1), dtype=data.dtype, device=data.device)
    norm = xp.sqrt(b.backend.spmm(replace(b.X, data=data * data), ones)[:, 0])
    return rest.weighted(1 / xp.where(norm > 0, norm, xp.ones_like(norm)))


def _label_gram(b: Block) -> Array:
    """YᵀY: whole numbers, so that no cut into blocks changes it."""
    return b.backend.cross(b.Y, b.Y)


def _counts(b: Block) -> tuple[np.ndarray, int]:
    """How often each label was said, of how many rows."""
    return np.bincount(b.Y.scipy().indices, minlength=b.Y.shape[1]), b.Y.shape[0]


def _rows_of(b: Block) -> list[Any]:
    """A list of one: lists add to longer ones."""
    return [rows_of(b.X)]


def _shortlisted(b: Block, unseen: Any, most: int, rough: bool) -> list[Any]:
    """The best labels of each row by a model that has not seen it, and what was said of them."""
    parts, beyond = [], []
    for i, rows in enumerate(pieces(b, b.Y.shape[1])):
        part = b.some(rows)
        S: Array = unseen.scores(part)
        S = b.backend.asarray(S)
        top = b.backend.top_k(S, None, most, None)
        Y = part.Y.scipy()
        parts.append((top, contains(Y, top.indices), np.diff(Y.indptr) > 0))
        if rough:
            drawn = OffListEntries.drawn(S, Y, top.indices, _DRAWN, i)
            beyond.append(drawn._replace(row=drawn.row + rows.start))
    joined = TopK(*(np.concatenate([getattr(t, a) for t, *_ in parts]) for a in TopK._fields))
    said, says = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    off = OffListEntries.none()
    if rough:
        off = OffListEntries(*(np.concatenate(arrays) for arrays in zip(*beyond)))
    return [(joined, said, says, off)]
