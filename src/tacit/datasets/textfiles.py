"""What the text formats share: gzip, and the encoding."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["encoding_of", "opened", "stem"]

_PIECE = 2**20
_MARKS = {  # UTF-32 first: its mark begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@contextmanager
def opened(path: str | os.PathLike, beside: Path | None = None) -> Iterator[BinaryIO]:
    """`path` for reading, or `beside` for writing on its behalf.

    It is gzip if `path` ends in .gz, and in reading also if its first bytes say so.
    """
    path = Path(path)
    target, mode = (path, "rb") if beside is None else (beside, "wb")
    zipped = path.suffix.lower() == ".gz"
    if beside is None and not zipped:
        with open(path, "rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    if not zipped:
        with open(target, mode) as file:
            yield cast(BinaryIO, file)
        return
    with gzip.open(target, mode, compresslevel=6) as file:
        try:
            yield cast(BinaryIO, file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise ValueError(f"{path.name} is not a whole gzip file: {e}") from None


def encoding_of(path: Path) -> str:
    """The encoding that a whole text file can be read in: by its mark, its zeros, its bytes.

    What is not UTF-8 is taken for cp1252, as spreadsheets in Western Europe write it; unless it is
    UTF-8 up to some damaged bytes.
    """
    with opened(path) as file:
        piece = file.read(_PIECE)
        for mark, encoding in _MARKS.items():
            if piece.startswith(mark):
                return encoding
        for encoding, zeros in (("utf-16-le", piece[1:400:2]), ("utf-16-be", piece[0:400:2])):
            if zeros and zeros.count(0) > len(zeros) / 2:
                return encoding
        decoder, lines, ascii_so_far = codecs.getincrementaldecoder("utf-8")(), 1, True
        while piece:
            try:
                text = decoder.decode(piece)
            except UnicodeDecodeError as e:
                good, wrong = e.object[: e.start], e.object[e.start : e.end]
                if ascii_so_far and good.isascii():
                    return "cp1252"
                line = lines + good.count(b"\n")
                raise ValueError(
                    f"{path.name} is UTF-8 up to the bytes {wrong!r} in line {line:,}; mend them, "
                    "or name its encoding, such as cp1252"
                ) from None
            ascii_so_far = ascii_so_far and text.isascii()
            lines += text.count("\n")
            piece = file.read(_PIECE)
    return "utf-8"


def stem(path: Path) -> str:
    """The name of a file without .gz and the suffix before it.

    Examples
    --------
    >>> stem(Path("some/train.txt.gz"))
    'train'
    """
    return path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem
