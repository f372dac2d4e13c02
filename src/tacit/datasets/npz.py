"""A data set as a folder of sparse matrices.

    ======================= ==========================================================
    X.npz, Y.npz            all rows, or X_train, Y_train, X_test, Y_test
    O.npz, O_train, O_test  the entries that were observed: the labels are then masked
    N.npz, N_train, N_test  the entries that were said no, of labels that are positive-only
    label_names.txt         one name a line; a name that occurs twice is numbered
    feature_names.txt       one name a line
    instance_names.txt      one name a row of X
    meta.json               whatever is known of the set; "labels_kind" says what the labels are
    ======================= ==========================================================

Matrices are saved with `scipy.sparse.save_npz` and read without pickle. Any other .npz, .txt or
.txt.gz file comes in `extra` under its stem: X_* as features, Y_* as labels.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp

from tacit.datasets.dataset import Dataset
from tacit.labels import Labels, as_labels

__all__ = ["is_npz_folder", "read_npz", "write_npz"]


def is_npz_folder(folder: Path) -> bool:
    """Whether the folder holds features and labels in this layout."""
    return all(any(folder.glob(f"{letter}*.npz")) for letter in "XY")


def read_npz(folder: str | os.PathLike) -> Dataset:
    """Read a folder of matrices. X comes dense where more than half of it is not zero."""
    folder = Path(folder)
    if not is_npz_folder(folder):
        raise ValueError(f"{folder} must be a folder with X.npz and Y.npz, or X_train.npz, …")
    files = {path.stem: path for path in sorted(folder.glob("*.npz"))}
    meta = _read_meta(folder / "meta.json")
    classes = _unique(_read_lines(folder / "label_names.txt"))
    parts: dict[str, Any] = {
        stem: _read_matrix(path) for stem, path in files.items() if not stem.startswith("Y")
    }
    patterns = ("O", "N") if meta.get("labels_kind") == "positive-only" else ("O",)
    said = {stem: parts.pop(stem) for stem in list(parts) if stem.split("_")[0] in patterns}
    for stem, path in files.items():
        if stem.startswith("Y"):
            observed, noes = (said.get(letter + stem[1:]) for letter in "ON")
            parts[stem] = _labels(path, observed, noes, classes, meta)
        elif stem.startswith("X"):
            parts[stem] = _features(parts[stem])

    X_stem = _first(parts, "X_train", "X", "X_user", *parts)
    # Without Y or Y_train the earliest of the dated ones is what one trains on.
    Y_stem = _first(parts, "Y_train", "Y", *(stem for stem in parts if stem.startswith("Y")))
    X, Y = parts.pop(X_stem), parts.pop(Y_stem)
    Y_test = parts.pop("Y_test", None)
    # The same rows may be asked about twice: train and test then differ in the labels alone.
    X_test = parts.pop("X_test", X if Y_test is not None else None)
    names_of_X = "user_feature_names" if X_stem == "X_user" else "feature_names.txt"
    return Dataset(
        name=str(meta.get("name", folder.name)),
        X=X,
        Y=Y,
        X_test=X_test,
        Y_test=Y_test,
        feature_names=_as_names(_read_lines(folder / names_of_X)),
        row_names=_as_names(_read_lines(folder / "instance_names.txt")),
        extra=parts | _read_texts(folder),
        meta=meta,
    )


def write_npz(
    folder: str | os.PathLike,
    X: Any,
    Y: Any,
    *,
    X_test: Any = None,
    Y_test: Any = None,
    feature_names: Sequence[str] | np.ndarray | None = None,
    meta: dict[str, Any] | None = None,
) -> None:
    """Write a folder that `read_npz` reads back; it appears whole or not at all.

    The folder must not exist yet, or be empty.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty; give a new folder or remove it first")
    split = X_test is not None
    pairs = [("_train", X, Y), ("_test", X_test, Y_test)] if split else [("", X, Y)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for suffix, features, given in pairs:
            labels = as_labels(given)
            features = sp.csr_array(features, dtype=np.float32)
            if features.shape[0] != len(labels):
                raise ValueError(
                    f"X{suffix} has {features.shape[0]:,} rows but Y{suffix} has {len(labels):,}"
                )
            sp.save_npz(beside / f"X{suffix}.npz", features)
            sp.save_npz(beside / f"Y{suffix}.npz", labels.to_sparse())
            for letter, pattern in (("O", labels.observed), ("N", labels.noes)):
                if pattern is not None:
                    sp.save_npz(beside / f"{letter}{suffix}.npz", pattern.astype(np.int8))
        labels = as_labels(Y)
        for name, lines in [("label_names", labels.classes), ("feature_names", feature_names)]:
            if lines is not None:
                _write_lines(beside / f"{name}.txt", lines)
        about = {"labels_kind": labels.kind} | (meta or {})
        (beside / "meta.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        os.chmod(beside, 0o755)  # mkdtemp makes it private
        os.replace(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _first(parts: dict[str, Any], *stems: str) -> str:
    return next(stem for stem in stems if stem in parts)


def _read_matrix(path: Path) -> sp.csr_array:
    with open(path, "rb") as file:  # opened here, for np.load leaves a damaged file open
        try:
            matrix = sp.csr_array(sp.load_npz(file))
            matrix.check_format(full_check=True)
        except Exception as e:  # zip, zlib, NumPy and SciPy have a dozen ways to say so
            raise ValueError(
                f"{path} is not a whole sparse matrix as scipy.sparse.save_npz writes it ({e}); "
                "fetch or write it again"
            ) from None
    return matrix


def _features(matrix: sp.csr_array) -> sp.csr_array | np.ndarray:
    matrix = matrix.astype(np.float32, copy=False)
    matrix.sum_duplicates()
    n, d = matrix.shape
    return matrix.toarray() if matrix.nnz > 0.5 * n * d else matrix


def _labels(
    path: Path,
    observed: sp.csr_array | None,
    noes: sp.csr_array | None,
    classes: list[str] | None,
    meta: dict[str, Any],
) -> Labels:
    kind = meta.get("labels_kind", "complete" if observed is None else "masked")
    try:
        Y = _read_matrix(path)
        if observed is not None:
            return Labels.masked(Y, observed, classes=classes)
        if kind not in ("complete", "positive-only"):
            raise ValueError(
                f'labels_kind in meta.json must be "complete" or "positive-only" where there is no '
                f"O.npz; got {kind!r}"
            )
        labels = Labels.complete(Y, classes=classes)
        if noes is not None:
            return Labels.positive_only(labels, no=noes)
    except ValueError as e:
        raise ValueError(str(e) if str(path) in str(e) else f"{path}: {e}") from None
    return labels if kind == "complete" else labels.as_positive_only()


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise ValueError(f"{path} is not JSON in UTF-8: {e}") from None
    if not isinstance(meta, dict):
        raise ValueError(f"{path} must hold one JSON object; got a {type(meta).__name__}")
    return meta


def _read_lines(path: Path) -> list[str] | None:
    """The lines, cut at a newline alone: a name may hold any other character."""
    if not path.exists():
        return None
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, EOFError, ValueError, zlib.error) as e:
        raise ValueError(f"{path} is not whole text in UTF-8: {e}") from None
    return text.removesuffix("\n").split("\n") if text else []


def _write_lines(path: Path, lines: Sequence[str] | np.ndarray) -> None:
    broken = next((line for line in lines if "\n" in line), None)
    if broken is not None:
        raise ValueError(f"a name must not hold a line's end; got {broken!r}")
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def _read_texts(folder: Path) -> dict[str, np.ndarray]:
    known = {"label_names", "feature_names", "instance_names"}
    texts = {}
    for path in sorted(folder.glob("*.txt")) + sorted(folder.glob("*.txt.gz")):
        stem = path.name.removesuffix(".gz").removesuffix(".txt")
        if stem not in known:
            # Object, not str: one long line would pad all others to its width.
            texts[stem] = np.array(_read_lines(path), dtype=object)
    return texts


def _as_names(lines: list[str] | None) -> np.ndarray | None:
    return None if lines is None else np.array(lines, dtype=str)


def _unique(names: list[str] | None) -> list[str] | None:
    """The names, a repeated one followed by its number: "bank", "bank (2)"."""
    if names is None:
        return None
    taken: set[str] = set(names)
    seen: set[str] = set()
    unique = []
    for name in names:
        number, given = 1, name
        while given in seen or (number > 1 and given in taken):
            number += 1
            given = f"{name} ({number})"
        seen.add(given)
        unique.append(given)
    return unique
