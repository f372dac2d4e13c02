"""Files that are whole or absent: write beside the target, then rename onto it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["FORMAT", "read_arrays", "replacing", "write_arrays"]

FORMAT = 1
"""The version of the files that `write_arrays` writes and `read_arrays` reads."""

_HEADER = "tacit"


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
    with replacing(path) as beside:
        save_file(arrays, beside, metadata={_HEADER: json.dumps({"format": FORMAT, **header})})


def read_arrays(path: str | os.PathLike) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and the arrays that `write_arrays` wrote.

    Reading runs no code from the file. Whatever is wrong with it (truncated, of another kind, of a
    later version) is one clear sentence.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as opened:
            header = json.loads((opened.metadata() or {})[_HEADER])
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        version = header["format"]
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged or was not written by tacit ({type(error).__name__}: {error})"
        ) from None
    if version != FORMAT:
        raise ValueError(
            f"{path} is in format {version!r}, this tacit reads format {FORMAT}; update tacit"
        )
    return header, arrays
