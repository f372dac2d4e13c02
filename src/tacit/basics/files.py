"""Files that are whole or absent: write beside the target, then rename onto it."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["FORMAT", "read_arrays", "replacing", "write_arrays"]

FORMAT = 2
"""The version of the files that `write_arrays` writes; `read_arrays` reads those before it too."""

_HEADER, _CHECKSUM = "tacit", "crc32"


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it onto `path` if the block succeeds.

    A reader, or a run killed at any instant, sees the old file or the new one, never half of one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as beside:
    ...     _ = beside.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with open(beside, "rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes the file private; a result should be as readable as any other new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_arrays(path: str | os.PathLike, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write named arrays and a JSON header into one safetensors file, whole or not at all."""
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, **header})
    with replacing(path) as beside:
        save_file(arrays, beside, metadata={_HEADER: text, _CHECKSUM: _checksum(text, arrays)})


def read_arrays(path: str | os.PathLike) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and the arrays that `write_arrays` wrote.

    Reading runs no code from the file. Whatever is wrong with it (truncated, of another kind, of a
    later version) is one clear sentence.
    """
    from safetensors import SafetensorError, safe_open

    # AttributeError: safetensors knows float types that NumPy does not have.
    damage = (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            header = json.loads(metadata[_HEADER])
            version = header["format"]
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        whole = metadata.get(_CHECKSUM) == _checksum(metadata[_HEADER], arrays)
    except damage as error:
        raise ValueError(
            f"{path} is damaged or was not written by tacit ({type(error).__name__}: {error})"
        ) from None
    if version not in range(1, FORMAT + 1):
        raise ValueError(
            f"{path} is in format {version!r}, this tacit reads up to format {FORMAT}; update tacit"
        )
    if not whole:
        raise ValueError(f"{path} is damaged: its contents do not add up to its checksum")
    return header, arrays


def _checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    total = zlib.crc32(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), total)
        total = zlib.crc32(array.data, total)
    return str(total)
