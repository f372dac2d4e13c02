"""How tags are written in a cell: cut at a separator, as a list, or each in angle brackets.

A separator that may also stand inside a tag (a blank, a slash) is one only if cutting there leaves
few pieces that come again and again, in numbers that vary from cell to cell: tags do, words of a
sentence and names of two words do not.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "ANGLES",
    "LIST",
    "POSSIBLE",
    "WHOLE",
    "are_sentences",
    "cut",
    "found",
    "in_words",
    "spelt",
]

LIST, ANGLES, WHOLE = "list", "<>", "whole"
_SPELT = {"space": " ", "newline": "\n", "tab": "\t", "\\n": "\n", "\\t": "\t"}
_CERTAIN, POSSIBLE = "|;\n,", " /"
_OFTEN = 0.05  # of the cells with the separator that most have; what is rarer stands inside a tag
_MOST = 0.9  # of the cells; a few may hold "none"
_REPEATED = 3.0  # times as often as whole cells do, pieces must come again
_FEWER = 0.7  # most pieces for one whole cell, all different ones counted; unless …
_REPEATED_MUCH = 8.0  # … they come again so often
_VARIED = 0.1  # least share of cells with another number of pieces than the commonest
_NAMED = ("name", "label", "tag", "title")  # of a tag that is a record, as in [{"name": "bug"}]
_OF_SENTENCES = """
    a an and are as at by for from has in is it of on or that the this to was with you
    der die das und ist mit von für den ein eine le la les et des un une est el los las que
"""


def spelt(separator: str) -> str:
    r"""A separator as it is meant, of one that can be typed: `space`, `newline`, `tab`, ``\n``."""
    if not separator:
        raise ValueError("the separator is empty; give what stands between tags, or 'whole'")
    return _SPELT.get(separator, separator)


def in_words(separator: str) -> str:
    """A separator so that it can be seen, and typed."""
    return {" ": "space", "\n": "newline", "\t": "tab"}.get(separator, separator)


def found(cells: Iterable[str]) -> str:
    """How the tags of these cells are written: a separator, or `LIST`, `ANGLES`, `WHOLE`.

    Examples
    --------
    >>> found(["gtk|cli", "cli"]), found(["['gtk', 'cli']"]), found(["<gtk><cli>"]), found(["gtk"])
    ('|', 'list', '<>', 'whole')
    """
    said = [cell.strip() for cell in cells]
    said = [cell for cell in said if cell]
    for writing, looks in ((LIST, _is_list), (ANGLES, _is_angles)):
        if said and sum(map(looks, said)) >= _MOST * len(said):
            return writing
    having = {s: sum(s in cell for cell in said) for s in _CERTAIN}
    possible = {s: repeated for s in POSSIBLE if (repeated := _repeated(said, s))}
    if possible:
        best = max(possible, key=lambda s: possible[s])
        having[best] = sum(best in cell for cell in said)
    least = max(_OFTEN * max(having.values()), 1)
    return next((s for s, cells_with in having.items() if cells_with >= least), WHOLE)


def cut(cell: Any, writing: str) -> list[str]:
    """The tags of a cell, without blanks around them, each once; ValueError if it has none such."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return []
    if isinstance(cell, str):
        names: Iterable[Any] = _pieces(cell, writing)
    elif isinstance(cell, list | tuple | set | frozenset) or hasattr(cell, "tolist"):
        names = cell.tolist() if hasattr(cell, "tolist") else cell
        names = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    else:
        names = [cell]
    return list(dict.fromkeys(tag for name in names if (tag := _tag(name))))


def are_sentences(texts: Iterable[str]) -> bool:
    """Whether words that every sentence has, or its stops and commas, come again and again."""
    words = Counter(word.lower() for text in texts for word in text.split())
    among = set(_OF_SENTENCES.split()) & set(words)
    stops = sum(n for word, n in words.items() if word[-1] in ".,;:!?")
    least = _OFTEN * words.total()
    return stops > least or (len(among) > 2 and sum(words[word] for word in among) > least)


def _tag(name: Any) -> str:
    if isinstance(name, dict):
        name = next((name[key] for key in _NAMED if key in name), name)
    if isinstance(name, float):
        return "" if math.isnan(name) else str(int(name)) if name.is_integer() else str(name)
    if name is None:
        return ""
    if not isinstance(name, str | int):  # a number may be a tag, a list in the list may not
        raise ValueError("no tag")
    return str(name).strip()


def _pieces(cell: str, writing: str) -> Sequence[Any]:
    cell = cell.strip()
    if writing == LIST and cell[:1] in tuple("[{("):
        return _items(cell)
    if writing == ANGLES and _is_angles(cell):
        return re.findall("<([^<>]+)>", cell)
    if writing in (WHOLE, LIST, ANGLES):
        return [cell]
    return cell.split() if writing == " " else cell.split(writing)


def _items(cell: str) -> Sequence[Any]:
    """The items of a list as JSON, Python or NumPy writes it, or as people do without quotes."""
    if not _is_list(cell):
        raise ValueError("a list that is cut short")
    try:
        read = json.loads(cell)
    except ValueError:
        try:
            with warnings.catch_warnings(action="ignore"):  # a backslash in a tag is no mistake
                # NumPy puts no comma between its items.
                read = ast.literal_eval(re.sub(r"(['\"])\s+(?=['\"])", r"\1, ", cell))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            if re.search("[\"'\\[{(]", cell[1:-1]):
                raise ValueError("no list") from None
            read = cell[1:-1].split(",")
    except RecursionError:
        raise ValueError("no list") from None
    if isinstance(read, dict):
        raise ValueError("no list")
    return list(read) if isinstance(read, list | tuple | set) else [read]


def _is_list(cell: str) -> bool:
    return cell[:1] + cell[-1:] in ("[]", "()", "{}")


def _is_angles(cell: str) -> bool:
    return re.fullmatch(r"(?:<[^<>]+>\s*)+", cell) is not None


def _repeated(cells: list[str], separator: str) -> float:
    """How much oftener the pieces come again than whole cells do; 0 if they are no tags."""
    pieces = [_pieces(cell, separator) for cell in cells]
    counts = Counter(piece.strip() for row in pieces for piece in row)
    lengths = Counter(map(len, pieces))
    different = len(set(cells))
    if (
        not cells
        or len(cells) - max(lengths.values()) < _VARIED * len(cells)
        or any(not any(map(str.isalnum, piece)) for piece in counts)
        or are_sentences(cells)
    ):
        return 0.0
    repeated = counts.total() / len(cells) * different / len(counts)
    few = len(counts) <= _FEWER * different or repeated >= _REPEATED_MUCH
    return repeated if few and repeated >= _REPEATED else 0.0
