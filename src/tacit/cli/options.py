"""The options that several commands share, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

__all__ = [
    "AsJson",
    "Checked",
    "EachLabel",
    "Force",
    "ModelFile",
    "OutputFile",
    "PageFile",
    "Precision",
    "Show",
    "TableOptions",
    "TagOptions",
    "Why",
]
__all__ += ["reads_a_table"]

_FOUND = "found out"

ModelFile = Annotated[Path, typer.Argument(help="A model file that tacit fit wrote.")]
OutputFile = Annotated[
    Path | None, typer.Option(help="A .csv, .tsv, .jsonl or .parquet file to write.")
]
PageFile = Annotated[Path | None, typer.Option(help="An .html page to write, with charts.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
Precision = Annotated[
    float | None,
    typer.Option(
        help="Suggest only what is probable enough that this share of it is right, such as 0.9, by "
        "the rows of --checked."
    ),
]
Checked = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Rows whose tags somebody checked, to judge by."),
]
EachLabel = Annotated[
    bool, typer.Option("--each-label", help="--precision of each label, not of all together.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

Show = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Carry this column along; may be repeated."),
]
Why = Annotated[bool, typer.Option("--why", help="Say what counts most for each label.")]


@dataclass(frozen=True)
class TableOptions:
    """What the user says of a table; None where nothing."""

    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of text; may be repeated."),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of numbers; may be repeated."),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that names rows; alike lines of one name are one row.",
            show_default="row numbers",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(help="What stands between cells, such as ; or tab.", show_default=_FOUND),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Such as utf-8 or cp1252.", show_default=_FOUND)
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            help="csv, tsv, jsonl, json, parquet or xlsx.", show_default="by the file's name"
        ),
    ] = None


@dataclass(frozen=True)
class TagOptions(TableOptions):
    """The same, of a table with tags."""

    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of tags; repeated, or a pattern such as 'is_*', if there are several.",
            show_default="tags",
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between tags, such as | or space; or list, <>, whole.",
            show_default=_FOUND,
        ),
    ] = None
    case: Annotated[
        Literal["keep", "lower"] | None,
        typer.Option(help="lower makes one of Bread and bread.", show_default="keep"),
    ] = None
    noes: Annotated[
        Literal["none", "zeros", "all"] | None,
        typer.Option(
            help="What is a no: nothing, zeros (then blanks are unsaid), or all that is not said.",
            show_default="none",
        ),
    ] = None


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its one parameter of `TableOptions` as options of their own."""
    hints = get_type_hints(command, include_extras=True)
    table = next(name for name, hint in hints.items() if _are_options(hint))
    kind = hints[table]
    types = get_type_hints(kind, include_extras=True)
    options = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=types[f.name]
        )
        for f in fields(kind)
    ]
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        parameters += options if name == table else [own]

    @wraps(command)
    def with_options(**given: Any) -> None:
        said = kind(**{option.name: given.pop(option.name) for option in options})
        command(**given, **{table: said})

    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def _are_options(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, TableOptions)
