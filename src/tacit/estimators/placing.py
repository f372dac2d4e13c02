"""Placing: from what the user gave to the problem that `_fit` sees, checked and on its backend."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from tacit.backends import Backend, get_backend
from tacit.backends.block import Placement, place
from tacit.blocks import Blocks, MemoryBlocks, Rows, StreamedBlocks
from tacit.blocks.facts import Facts, facts
from tacit.engines.descend import Checkpoint, Loop
from tacit.engines.problem import Problem
from tacit.estimators.names import labels_of
from tacit.features.scaling import Scaling
from tacit.labels import Kind, Labels
from tacit.models.model import check_shape

__all__ = [
    "are_blocks",
    "check_kind",
    "check_room",
    "check_said",
    "place_problem",
    "rows_in_memory",
    "scaling_arrays",
    "scaling_from_arrays",
    "scaling_of_columns",
]


_SCALING = {"scaling.weight": "weight", "scaling.shift": "shift"}


def are_blocks(X: Any) -> bool:
    """Whether these are rows in blocks, which bring their own labels."""
    return hasattr(X, "map") and hasattr(X, "batches")


def rows_in_memory(
    name: str, X: Any, Y: Any, kinds: tuple[Kind, ...], device: str
) -> tuple[Blocks, Facts]:
    """Valid features and labels as blocks; matrices and names are of the first of these kinds."""
    if Y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None; give the labels of the "
            "rows of X"
        )
    labels = labels_of(Y, kinds[0])
    if not isinstance(Y, Labels) and {"complete", "positive-only"} <= set(kinds):
        _tell_reading(name, labels.kind)
    if len(labels) != X.shape[0]:
        raise ValueError(
            f"X and Y have inconsistent numbers of rows: {X.shape[0]} and {len(labels)}; "
            "give one row of labels for each row of features"
        )
    rows = Rows(sp.csr_array(X) if sp.issparse(X) else X, labels)
    n_blocks = max(1, -(-len(rows) // get_backend(device).block_rows))
    return MemoryBlocks.from_rows(rows, n_blocks), facts(rows)


@cache  # once a method: libraries that touch Python's filters make it forget what it told
def _tell_reading(name: str, kind: str) -> None:
    """How a 0/1 matrix is read, where it could be read in two ways."""
    if kind == "masked":  # it has NaN, and so says what it leaves out
        return
    told = {
        "complete": "complete labels: what is not 1 is a no. If silence means nothing, give "
        "Labels.positive_only(Y); Labels.complete(Y) says the same",
        "positive-only": "positive-only labels: what is not 1 may be true. If it is a no, give "
        "Labels.complete(Y); Labels.positive_only(Y) says the same",
    }
    line = f"{name} reads a plain 0/1 matrix as {told[kind]} without this line"
    warnings.warn(line, stacklevel=2)


def scaling_of_columns(blocks: Blocks, known: Facts, device: str) -> Scaling:
    """What standardises the columns of these rows, learned in one pass where they live."""
    return Scaling.standard(
        blocks.map(place, Placement(get_backend(device), known.dtype, None, True))
    )


def scaling_arrays(scaling: Scaling | None) -> dict[str, Any]:
    """What a file keeps of it."""
    return {} if scaling is None else {n: getattr(scaling, p) for n, p in _SCALING.items()}


def scaling_from_arrays(n_features: int, arrays: dict[str, np.ndarray]) -> Scaling | None:
    """What `scaling_arrays` wrote, checked; files of before have none."""
    if not _SCALING.keys() & arrays.keys():
        return None
    found = {p: check_shape(n, arrays.get(n), n_features) for n, p in _SCALING.items()}
    return Scaling("standard", **found)


def check_kind(name: str, kinds: tuple[Kind, ...], known: Facts, able: list[str]) -> None:
    """Refuse labels that the method cannot use; `able` are the names of those that can."""
    if known.n_labels == 0:
        raise ValueError(f"{name}: Y has no columns; give at least one label")
    if known.kind in kinds:
        return
    raise ValueError(
        f"{name} cannot use {known.kind} labels, only {' or '.join(kinds)}; "
        f"{' and '.join(able)} can, and Y.as_complete() declares whatever was not said to be a no"
    )


def check_said(name: str, known: Facts) -> None:
    """Refuse labels from which nothing can be learned: silence alone."""
    if known.kind == "positive-only" and known.n_yes == 0:
        raise ValueError(
            f"{name}: Y says yes to no entry, and where silence is not a no there is nothing to "
            "learn from; give rows that have labels"
        )


def place_problem(
    estimator: Any,
    blocks: Blocks,
    known: Facts,
    placement: Placement,
    *,
    checkpoint: Checkpoint | None = None,
    side: dict[str, np.ndarray] | None = None,
) -> Problem:
    """The rows on their backend, with the loop that the parameters ask for."""
    params = estimator.get_params(deep=False)
    loop = Loop(
        type(estimator).__name__,
        params.get("max_iter"),
        params.get("tol", 0.0),
        bool(estimator.verbose),
        checkpoint,
    )
    return Problem(
        blocks=blocks.map(place, placement),
        kind=known.kind,
        n_samples=known.n_samples,
        n_features=known.n_features + placement.fit_intercept,
        n_labels=known.n_labels,
        backend=placement.backend,
        rng=check_random_state(estimator.random_state),
        dtype=np.dtype(known.dtype),
        loop=loop,
        side=side or {},
        rows=blocks,
        placement=placement,
        seed=estimator.random_state,
    )


def check_room(
    estimator: Any, blocks: Blocks, known: Facts, backend: Backend, numbers: float
) -> None:
    """Plan the memory of the device, say so where `verbose`, and refuse what will not fit.

    `numbers` is how many a fit holds at most beside the data.
    """
    room = backend.room()
    if room is None:
        return
    held = known.n_blocks if isinstance(blocks, StreamedBlocks) else 1  # one of them at a time
    size = np.dtype(known.dtype).itemsize
    data = known.n_entries * (16 + 4 * size) / held  # with its transpose, both dealt out
    work, name = numbers * size, type(estimator).__name__
    told = (
        f"a fit needs about {_gib(data + work)} on {estimator.device} ({_gib(data)} for the data, "
        f"{_gib(work)} for factors and work), and {_gib(room)} are free"
    )
    if data + work > room:
        raise MemoryError(
            f'{name}: {told}; give a smaller rank, device="cpu", or '
            "tacit.blocks.StreamedBlocks.from_rows(Rows(X, labels), n_blocks) in place of X, "
            "which go there one at a time"
        )
    if estimator.verbose:
        print(f"{name}: {told}", file=sys.stderr)


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"
