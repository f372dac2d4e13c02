"""Parts: all first models, and the second look, fitted to some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
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
from tacit.methods.tacit.first.known_rows import with_known_rows
from tacit.methods.tacit.first.network import FirstNetwork
from tacit.methods.tacit.first.products import FOLDS
from tacit.methods.tacit.limits import Limits
from tacit.methods.tacit.plan import LINKS, LOOK, NETWORKS, Plan
from tacit.methods.tacit.report import Report
from tacit.methods.tacit.second_look import SecondLook, rows_of
from tacit.methods.tacit.shortlists import OffListEntries, Shortlists, learned, listed
from tacit.methods.tacit.voice import Voice
from tacit.methods.tacit.watch import Watch
from tacit.metrics.top import contains
from tacit.models.nearest_rows import NearestRows

__all__ = ["Parts"]

NEAREST = 20  # rows that vote
_DRAWN = 10  # labels of a row beyond its shortlist, where the lead is rough
_LINKED = 100.0  # λ of the links between labels
_RANK, _REG, _PASSES = 100, 10.0, 8  # of the low rank of what is known


@dataclass(frozen=True)
class Parts:
    """What is fitted, and how: the same for the rows without a fold and for all of them."""

    plan: Plan
    limits: Limits
    seed: int
    scaling: Scaling = Scaling("none")  # noqa: RUF009
    lead: Any = None
    wanted: tuple[str, ...] | None = None
    watch: Watch = field(default_factory=Watch)

    def only(self, names: tuple[str, ...]) -> Parts:
        """The same, but for parts that the blend has no use for."""
        return replace(self, wanted=names)

    def fit(self, rows: SomeRows) -> Blended:
        """All parts, fitted to these rows, without a blend of them."""
        plain = rows.scaled(self.scaling.without_waves())
        masked = rows.problem.kind == "masked"
        voices, look = (self._masked(rows), None) if masked else self._ranked(rows)
        if self._wants("nearest rows"):
            blocks = plain.blocks.map(_without_constant)
            with self.watch.part("nearest rows"):
                near = NearestRows.of(blocks, NEAREST, rows.dtype)
            voices.append(Voice("nearest rows", near, 1 / (2 * NEAREST)))
        counts, n = rows.blocks.sum(_counts)
        rarity = np.log((counts + 0.5) / (n + 1)).astype(rows.dtype)
        links = (
            rows.to_host(ease(rows.blocks.sum(_label_gram), _LINKED))
            if self._wants(LINKS)
            else None
        )
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
        """Of masked labels: the lead, networks, and logistic low rank of what is known."""
        plain, fits = rows.scaled(self.scaling.without_waves()), dict[str, Callable[..., Any]]()
        if "network" in self.plan.names:
            for i, (name, net) in enumerate(zip(("network", "network again"), NETWORKS)):
                fits[name] = replace(net, seed=self.seed + i).fit
        if "low rank" in self.plan.names:
            fits["low rank"] = self._low_rank
        # A code of each row: beyond, the networks alone.
        own = rows.n_samples * NETWORKS[0].rank <= self.limits.gathered
        voices = [self._leading(rows)[0]]
        for name, fit in fits.items():
            if self.wanted is None or name in self.wanted:
                with self.watch.part(name):
                    model = with_known_rows(plain, fit) if own else fit(plain)
                voices.append(Voice(name, model, None))
        return voices

    def _leading(self, rows: SomeRows) -> tuple[Voice, list[tuple[Any, Any]]]:
        """The lead, and what scores these rows without having seen them."""
        assert self.lead is not None
        with self.watch.part(self.lead.name):
            model, held = self.lead.fit(rows.scaled(self.scaling), self.limits)
        return Voice(self.lead.name, model, LEAST), held

    def _low_rank(self, rows: SomeRows) -> Any:
        problem = rows.as_problem(Loop("low rank", _PASSES, 1e-4), self.seed)
        return Minimiser(loss="logistic").solve(problem, _RANK, _REG).model

    def _ranked(self, rows: SomeRows) -> tuple[list[Voice], SecondLook | None]:
        """The lead, and what stands beside it."""
        lead, held = self._leading(rows)
        voices, look = [lead], None
        if self._wants(LOOK):
            with self.watch.part(LOOK):
                look = self._look(rows, held)
        if self._wants("network"):
            plain = rows.scaled(self.scaling.without_waves())
            with self.watch.part("network"):
                network = FirstNetwork(seed=self.seed).fit(plain)
            voices.append(Voice("network", network, None))
        return voices, look

    def _look(self, rows: SomeRows, held: list[tuple[Any, Any]]) -> SecondLook:
        """A second look learned from the shortlists of rows by models that have not seen them."""
        parts, n_labels = list[Shortlists](), rows.problem.n_labels
        for fold, scorer in held:
            own = rows if fold is None else Dealt.of(rows).fold(fold, FOLDS, rows.n_samples)
            parts.append(self._shortlists(own, scorer))
        return SecondLook.fit(Shortlists.of(parts), n_labels).cast(rows.dtype)

    def _shortlists(self, rows: SomeRows, scorer: Any) -> Shortlists:
        """The shortlists of rows by what has not seen them."""
        rough = self.lead.rough
        most = learned(rows.problem.n_labels, rough)
        X = rows.blocks.sum(_rows_of, self.scaling)
        tops = rows.scaled(self.scaling).blocks.sum(_shortlisted, scorer, most, rough)
        return Shortlists.of([Shortlists(x, *top) for x, top in zip(X, tops, strict=True)])


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


def _rows_of(b: Block, scaling: Scaling) -> list[Any]:
    """A list of one: lists add to longer ones."""
    return [rows_of(b, scaling)]


def _shortlisted(b: Block, scorer: Any, most: int, rough: bool) -> list[Any]:
    """The best labels of each row by a model that has not seen it, and what was said of them."""
    parts, beyond = [], []
    for i, rows in enumerate(pieces(b, 10 * most if rough else b.Y.shape[1])):  # laid out a row
        part = b.some(rows)
        if rough:
            top = scorer.best(part, most, None)
        else:
            top = b.backend.top_k(b.backend.asarray(scorer.scores(part)), None, most, None)
        Y = part.Y.scipy()
        parts.append((top, contains(Y, top.indices), np.diff(Y.indptr) > 0))
        if rough:
            at = partial(scorer.entries, part)
            drawn = OffListEntries.drawn(at, Y, top.indices, _DRAWN, i)
            beyond.append(drawn._replace(row=drawn.row + rows.start))
    joined = TopK(*(np.concatenate([getattr(t, a) for t, *_ in parts]) for a in TopK._fields))
    said, says = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    off = OffListEntries.none()
    if rough:
        off = OffListEntries(*(np.concatenate(arrays) for arrays in zip(*beyond)))
    return [(joined, said, says, off)]
