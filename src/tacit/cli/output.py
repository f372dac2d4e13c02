"""What a command says: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

__all__ = ["cell", "note", "print_json", "stage"]


@contextmanager
def stage(text: str, show: bool = True) -> Iterator[None]:
    """Show on a terminal that `text` is being done, for as long as it takes."""
    if not show:
        yield
        return
    with Console(stderr=True).status(cell(f"{text} …")):
        yield


def note(text: str) -> None:
    """Say one line on stderr, wherever stdout goes."""
    print(_printable(text), file=sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def cell(text: object) -> Text:
    """Text for Rich from a user's file: never markup, never a command to the terminal.

    Examples
    --------
    >>> str(cell("[bold]x" + chr(27)))
    '[bold]x '
    """
    return Text(_printable(str(text)))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
