"""Blocks on disk: memory-mapped shards, one of which is open at a time.

A folder of shards holds `tacit-shards.json` and one folder a shard with plain `.npy` arrays: X in
CSR (or dense), Xᵀ in CSR beside it, so that products with the transpose need no scatter and no
sort, and the patterns of the labels. They are `StreamedBlocks`: `sum` opens one shard after the
other, does what was asked, adds up and lets go. A problem larger than memory costs reading time,
and what it holds is one shard.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tacit.basics.files import replacing
from tacit.blocks.memory import StreamedBlocks
from tacit.blocks.rows import Rows
from tacit.labels import Labels

__all__ = ["DiskBlocks", "open_shards", "read_shard", "write_shards"]

_MANIFEST = "tacit-shards.json"
_FORMAT = 1
_PATTERNS = ("positives", "observed", "noes")  # of the labels, and of a shard's files


@dataclass(frozen=True)
class DiskBlocks(StreamedBlocks):
    """Shards in folders, the `parts`, opened one at a time."""

    classes: np.ndarray | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        return self.parts

    def _open(self, i: int) -> Rows:
        return read_shard(self.parts[i], self.classes)


def write_shards(
    path: str | os.PathLike, parts: Iterable[tuple[Any, Labels]], *, overwrite: bool = False
) -> DiskBlocks:
    """Write (X, labels) pairs, one shard each, and open the result.

    `parts` may be a generator: only one shard is in memory at a time. The folder counts as
    written only once its manifest is there, and that comes last.
    """
    path = Path(path)
    if (path / _MANIFEST).exists() and not overwrite:
        raise FileExistsError(f"path {path} already holds shards; pass overwrite=True to replace")
    path.mkdir(parents=True, exist_ok=True)
    (path / _MANIFEST).unlink(missing_ok=True)
    shape, first = [0, 0, 0], None
    for n_shards, (X, labels) in enumerate(parts):
        first = first or labels
        _check_part(n_shards, X, labels, shape, first)
        _write_shard(path / f"{n_shards:05d}", X, labels)
        shape = [shape[0] + X.shape[0], X.shape[1], labels.n_labels]
    if first is None:
        raise ValueError("parts is empty; give at least one pair (X, labels)")
    manifest = {
        "format": _FORMAT,
        "shards": n_shards + 1,
        "shape": shape,
        "classes": None if first.classes is None else first.classes.tolist(),
    }
    with replacing(path / _MANIFEST) as beside:
        beside.write_text(json.dumps(manifest))
    return open_shards(path)


def open_shards(path: str | os.PathLike) -> DiskBlocks:
    """The shards that `write_shards` wrote into the folder `path`."""
    path = Path(path)
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
        version, n_shards, classes = (manifest[key] for key in ("format", "shards", "classes"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"path {path} holds no {_MANIFEST}; write the shards with write_shards"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path / _MANIFEST} is damaged; write the shards again") from None
    if version != _FORMAT:
        raise ValueError(
            f"{path} is in shard format {version!r}, this tacit reads format {_FORMAT}; "
            "update tacit or write the shards again"
        )
    folders = tuple(path / f"{i:05d}" for i in range(n_shards))
    names = None if classes is None else np.asarray(classes, dtype=str)
    return DiskBlocks(folders, classes=names)


def read_shard(folder: Path, classes: np.ndarray | None = None) -> Rows:
    """One shard's rows; the arrays are mapped, not read."""
    X, X_t = _map_matrix(folder, "X"), _map_matrix(folder, "X_t")
    positives, *more = (_map_matrix(folder, name) for name in _PATTERNS)
    kind = json.loads((folder / "kind.json").read_text())
    observed, noes = more
    return Rows(X, Labels(kind, positives, observed, classes, noes), X_t)


def _check_part(i: int, X: Any, labels: Labels, shape: list[int], first: Labels) -> None:
    if X.shape[0] != len(labels):
        raise ValueError(f"part {i} has {X.shape[0]} rows of X but labels of {len(labels)} rows")
    if i and ([X.shape[1], labels.n_labels] != shape[1:] or labels.kind != first.kind):
        raise ValueError(
            f"part {i} has {X.shape[1]} features and {labels.kind} labels of {labels.n_labels} "
            f"columns; the parts before it have {shape[1]} and {first.kind} of {shape[2]}"
        )


def _write_shard(folder: Path, X: Any, labels: Labels) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _save_matrix(folder, "X", X)
    if sp.issparse(X):
        _save_matrix(folder, "X_t", sp.csr_array(X.T))
    for name in _PATTERNS:
        if (pattern := getattr(labels, name)) is not None:
            _save_matrix(folder, name, pattern)
    (folder / "kind.json").write_text(json.dumps(labels.kind))


def _save_matrix(folder: Path, name: str, A: Any) -> None:
    if not sp.issparse(A):
        np.save(folder / f"{name}.npy", np.ascontiguousarray(A))
        return
    A = sp.csr_array(A)
    np.save(folder / f"{name}.shape.npy", np.array(A.shape))
    for part in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.{part}.npy", getattr(A, part))


def _map_matrix(folder: Path, name: str) -> Any:
    # Mode "c" (copy on write) maps without reading, and yields ordinary writable arrays, so that
    # compiled kernels need no second version for read-only ones.
    load = lambda part: np.asarray(
        np.load(folder / f"{name}{part}.npy", mmap_mode="c", allow_pickle=False)
    )
    if (folder / f"{name}.npy").exists():
        return load("")
    if not (folder / f"{name}.shape.npy").exists():
        return None
    shape = tuple(np.load(folder / f"{name}.shape.npy", allow_pickle=False).tolist())
    return sp.csr_array((load(".data"), load(".indices"), load(".indptr")), shape=shape)
