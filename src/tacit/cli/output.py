"""What a command says: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["cell", "check_new", "check_page", "facts_table", "lines", "note", "print_json", "stage"]
__all__ += ["write_page"]


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


def facts_table(facts: Iterable[tuple[str, object]]) -> Table:
    """Names and what is to be said of them, side by side."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(cell(name), cell(value))
    return grid


def check_new(path: Path | None, force: bool, option: str = "--output") -> None:
    """Refuse a file that is there, unless it may be written over; before any work is done."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder; give the name of a file in it")
    if path.exists() and not force:
        raise ValueError(
            f"{path} is there already; --force writes over it, {option} names another file"
        )


def check_page(path: Path | None) -> None:
    """Refuse to write a page under a name that no browser opens as one."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output writes a page, so its name must end in .html; got {path}")


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all."""
    from tacit.basics.files import replacing

    with replacing(path) as beside:
        beside.write_text(page, encoding="utf-8")


def cell(text: object) -> Text:
    """Text for Rich from a user's file: never markup, never a command to the terminal.

    Examples
    --------
    >>> str(cell("[bold]x" + chr(27)))
    '[bold]x '
    """
    return Text(_printable(str(text)))


def lines(texts: Iterable[str]) -> Text:
    """Such cells below each other in one."""
    return Text("\n").join(map(cell, texts))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
