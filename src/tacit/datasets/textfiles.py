"""What the text formats share: gzip by the name's end."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["opened", "stem"]


@contextmanager
def opened(path: str | os.PathLike, beside: Path | None = None) -> Iterator[BinaryIO]:
    """`path` for reading, or `beside` for writing on its behalf; gzip if `path` ends in .gz."""
    path = Path(path)
    target, mode = (path, "rb") if beside is None else (beside, "wb")
    if path.suffix.lower() != ".gz":
        with open(target, mode) as file:
            yield cast(BinaryIO, file)
        return
    with gzip.open(target, mode, compresslevel=6) as file:
        try:
            yield cast(BinaryIO, file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise ValueError(f"{path.name} is not a whole gzip file: {e}") from None


def stem(path: Path) -> str:
    """The name of a file without .gz and the suffix before it.

    Examples
    --------
    >>> stem(Path("some/train.txt.gz"))
    'train'
    """
    return path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem
