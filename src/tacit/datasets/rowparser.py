"""The parser of "l1,l2 f:v f:v …" rows, shared by the XMLRepo and svmlight readers.

A Numba kernel walks the bytes of whole lines, one chunk at a time, so that memory beyond the result
is a few chunks. A number v = ±m·10^e, with m its first 19 digits, is computed as a double with
an error of a few units in the last place; where that could decide how it rounds to float32 (and for
subnormal or huge numbers) the text goes to Python's `float` instead. Every number is therefore
read as `numpy.float32(float(text))`, bit for bit.

This module imports Numba: import it inside the function that reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numba
import numpy as np
from scipy import sparse as sp

__all__ = ["MAX_INDEX", "RowParser"]

MAX_INDEX = 2**31 - 1
"""Labels and features are numbered below this: their indices are kept in int32."""

CHUNK = 1 << 20
"""Bytes parsed at a time: large against the cost of a call, small against any memory."""

_POWERS = np.array([float(f"1e{e}") for e in range(309)])

_WRONG = {
    1: "expected a label (a whole number)",
    2: "expected a comma, a blank or a colon after a number",
    3: "expected a feature and its value, as 12:0.5",
    4: "expected a number after the colon",
    5: "expected a blank after a value",
    6: "expected a label below {n_labels:,}",
    7: "expected a feature below {n_features:,}",
    8: "expected the end after the {n_rows:,} rows that line 1 promises",
}


@dataclass
class RowParser:
    """Parse rows from a stream, from where it stands to its end.

    Parameters
    ----------
    name : str
        What errors call the file.
    line : int
        The number of the stream's first line.
    n_rows : int or None
        How many rows there are, blank lines included; None skips empty lines and allows # comments.
    n_features, n_labels : int
        Indices must be below these.
    """

    name: str
    line: int = 1
    n_rows: int | None = None
    n_features: int = MAX_INDEX
    n_labels: int = MAX_INDEX

    def parse(self, stream: BinaryIO) -> tuple[sp.csr_array, sp.csr_array]:
        """X (float32) and Y (bool), as wide as n_features and n_labels, or as the indices need."""
        parts: dict[str, list[np.ndarray]] = {
            name: [] for name in ("n_values", "features", "values", "n_given", "labels")
        }
        rows = 0
        for chunk in _whole_lines(stream):
            for name, part in zip(parts, self._parse_chunk(chunk, rows)):
                parts[name].append(part)
            rows += len(parts["n_values"][-1])
        if self.n_rows is not None and rows < self.n_rows:
            raise ValueError(
                f"{self.name} ends after {rows:,} of the {self.n_rows:,} rows its first line "
                "promises; the file is not whole"
            )
        # One array at a time, so that the peak is the result and one part of it.
        whole = {name: np.concatenate(parts.pop(name) or [_EMPTY[name]]) for name in list(parts)}
        labels, features = whole["labels"], whole["features"]
        Y = (np.ones(len(labels), np.bool_), labels, _indptr(whole["n_given"]))
        X = (whole["values"], features, _indptr(whole["n_values"]))
        return (
            sp.csr_array(X, shape=(rows, _width(self.n_features, features))),
            sp.csr_array(Y, shape=(rows, _width(self.n_labels, labels))),
        )

    def _parse_chunk(self, chunk: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
        """Row lengths, features and values; row lengths and labels."""
        limit = -1 if self.n_rows is None else self.n_rows - rows
        n_values, n_given, row_line, features, values, labels, hard, end = _parse(
            chunk, limit, self.n_features, self.n_labels, _POWERS
        )
        code, at, lines, ascending = end
        if code:
            expected, got = _WRONG[code].format(**vars(self)), _near(chunk, at)
            raise ValueError(f"{self.name}, line {self.line + lines}: {expected}; got {got}")
        for slot, start, stop in hard:
            values[slot] = _float32(chunk[start:stop].tobytes())
        if not np.isfinite(values).all():
            row = np.searchsorted(np.cumsum(n_values), np.argmin(np.isfinite(values)), side="right")
            raise ValueError(
                f"{self.name}, line {self.line + row_line[row]}: expected values that float32 can "
                "hold; got one beyond 3.4e38"
            )
        self.line += lines
        if not ascending:
            features, values = self._sorted(
                n_values, features, values, self.line - lines + row_line
            )
        return n_values, features, values, n_given, labels

    def _sorted(
        self, n_values: np.ndarray, features: np.ndarray, values: np.ndarray, line: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The features of each row in ascending order, and the values with them."""
        row = np.repeat(np.arange(len(n_values)), n_values)
        order = np.lexsort((features, row))
        features = features[order]
        twice = np.flatnonzero((np.diff(features) == 0) & (np.diff(row) == 0))
        if len(twice):
            raise ValueError(
                f"{self.name}, line {line[row[twice[0]]]}: expected each feature once; "
                f"got {features[twice[0]]} twice"
            )
        return features, values[order]


_EMPTY = {
    "n_values": np.empty(0, np.int32),
    "features": np.empty(0, np.int32),
    "values": np.empty(0, np.float32),
    "n_given": np.empty(0, np.int32),
    "labels": np.empty(0, np.int32),
}


def _whole_lines(stream: BinaryIO) -> Iterator[np.ndarray]:
    """The stream in chunks that end with a line's end."""
    kept: list[bytes] = []  # of a line whose end has not come yet
    while block := stream.read(CHUNK):
        end = block.rfind(b"\n") + 1
        if end:
            yield np.frombuffer(b"".join([*kept, block[:end]]), np.uint8)
            kept = []
        kept.append(block[end:])
    if any(kept):
        yield np.frombuffer(b"".join([*kept, b"\n"]), np.uint8)


def _indptr(lengths: np.ndarray) -> np.ndarray:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _width(limit: int, indices: np.ndarray) -> int:
    return int(indices.max(initial=-1)) + 1 if limit == MAX_INDEX else limit


def _float32(text: bytes) -> np.float32:
    with np.errstate(over="ignore"):  # too large is inf, which the caller tells in words
        return np.float32(float(text))


def _near(chunk: np.ndarray, at: int) -> str:
    """The text at `at`, up to the end of its line, cut short."""
    text = chunk[at : at + 30].tobytes().split(b"\n")[0].rstrip(b"\r")
    return repr(text.decode("utf-8", "replace")) if text else "the end of the line"


@numba.njit(cache=True, nogil=True)
def _parse(buf, limit, n_features, n_labels, powers):
    """Parse whole lines; `limit` rows at most, or any number of non-empty ones if it is -1.

    Gives the parts of the rows and (code, byte, lines, ascending): what went wrong and where, code
    0 if nothing did, the number of line ends passed, and whether the features of each row ascend.
    """
    size = len(buf)
    n_lines = 0
    for byte in buf:
        n_lines += byte == 10
    n_values = np.zeros(n_lines, np.int32)
    n_given = np.zeros(n_lines, np.int32)
    row_line = np.zeros(n_lines, np.int32)
    features = np.empty(size // 4 + 1, np.int32)  # a feature takes at least "1:2 "
    values = np.empty(size // 4 + 1, np.float32)
    labels = np.empty(size // 2 + 1, np.int32)  # a label takes at least "1,"
    hard = np.empty((size // 4 + 1, 3), np.int64)
    n_rows = k = j = n_hard = lines = i = 0
    code = 0
    ascending = True
    while i < size:
        first_value, first_label, start = k, j, i
        comment = False
        no_labels = buf[i] == 32 or buf[i] == 9
        while True:  # one word a turn, until the line ends
            while buf[i] == 32 or buf[i] == 9:
                i += 1
            c = buf[i]
            if c == 13 and buf[i + 1] == 10:
                i += 1
                c = buf[i]
            if c == 10:
                break
            if c == 35 and limit < 0:
                comment = True
                while buf[i] != 10:
                    i += 1
                break
            word = i
            number = np.int64(0)
            while 48 <= buf[i] <= 57:
                if number <= MAX_INDEX:
                    number = number * 10 + (buf[i] - 48)
                i += 1
            if i == word:
                code = 3 if no_labels else 1
                break
            c = buf[i]
            if c == 58:  # a feature
                no_labels = True
                if number >= n_features:
                    code, i = 7, word
                    break
                i += 1
                text = i
                negative = buf[i] == 45
                if negative or buf[i] == 43:
                    i += 1
                mantissa = np.uint64(0)
                digits = significant = exponent = 0
                while 48 <= buf[i] <= 57 or buf[i] == 46:
                    if buf[i] == 46:
                        i += 1
                        break
                    digits += 1
                    if significant < 19:
                        mantissa = mantissa * np.uint64(10) + np.uint64(buf[i] - 48)
                        significant += mantissa > 0
                    else:
                        exponent += 1
                    i += 1
                if i > text and buf[i - 1] == 46:
                    while 48 <= buf[i] <= 57:
                        digits += 1
                        if significant < 19:
                            mantissa = mantissa * np.uint64(10) + np.uint64(buf[i] - 48)
                            significant += mantissa > 0
                            exponent -= 1
                        i += 1
                if digits == 0:
                    code, i = 4, text
                    break
                if buf[i] == 101 or buf[i] == 69:
                    i += 1
                    minus = buf[i] == 45
                    if minus or buf[i] == 43:
                        i += 1
                    if not 48 <= buf[i] <= 57:
                        code, i = 4, text
                        break
                    power = 0
                    while 48 <= buf[i] <= 57:
                        if power < 100000:
                            power = power * 10 + (buf[i] - 48)
                        i += 1
                    exponent += -power if minus else power
                c = buf[i]
                if c != 32 and c != 9 and c != 10 and c != 13 and not (c == 35 and limit < 0):
                    code = 5
                    break
                value = np.float64(mantissa)
                if mantissa > 0:
                    if -308 <= exponent < 0:
                        value /= powers[-exponent]
                    elif 0 <= exponent <= 308:
                        value *= powers[exponent]
                    else:
                        value = 0.0
                    exact = mantissa <= np.uint64(1 << 53) and -22 <= exponent <= 22
                    # Outside these the low bits below do not tell how near a tie the value is.
                    safe = 1e-37 < value < 1e38
                    low = np.int64(np.float64(value).view(np.int64) & 0x1FFFFFFF)
                    if not (safe and (exact or abs(low - 0x10000000) > 16)):
                        hard[n_hard, 0] = k
                        hard[n_hard, 1] = text
                        hard[n_hard, 2] = i
                        n_hard += 1
                        value = 0.0
                features[k] = number
                ascending &= k == first_value or features[k - 1] < number
                values[k] = -value if negative else value
                k += 1
            elif no_labels:
                code, i = 3, word
                break
            else:  # a label
                if number >= n_labels:
                    code, i = 6, word
                    break
                labels[j] = number
                j += 1
                if c == 44:
                    i += 1
                    if not 48 <= buf[i] <= 57:
                        code = 1
                        break
                elif c == 32 or c == 9 or c == 10 or c == 13 or (c == 35 and limit < 0):
                    no_labels = True
                else:
                    code = 2
                    break
        if code:
            break
        blank = k == first_value and j == first_label
        empty = blank and (buf[start] == 10 or buf[start] == 13 or comment)
        if limit >= 0 and n_rows == limit:
            if not blank:
                code, i = 8, start
                break
        elif not (empty and limit < 0):
            n_values[n_rows] = k - first_value
            n_given[n_rows] = j - first_label
            row_line[n_rows] = lines
            n_rows += 1
        lines += 1
        i += 1
    return (
        n_values[:n_rows],
        n_given[:n_rows],
        row_line[:n_rows],
        features[:k].copy(),
        values[:k].copy(),
        labels[:j].copy(),
        hard[:n_hard],
        (code, i, lines, ascending),
    )
