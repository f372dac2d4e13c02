"""The options that several commands share, written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "FeatureColumns", "IdColumn", "LabelColumn", "ModelFile", "OutputFile"]
__all__ += ["Separator", "TextColumns"]

_AS_FITTED = "as in the fit"

ModelFile = Annotated[Path, typer.Argument(help="A model file that tacit fit wrote.")]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column of text.", show_default=_AS_FITTED),
]
FeatureColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column of numbers.", show_default=_AS_FITTED),
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of tags.", show_default=_AS_FITTED)
]
Separator = Annotated[
    str | None, typer.Option(help="What stands between tags.", show_default=_AS_FITTED)
]
IdColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column that names rows.", show_default="row numbers"),
]
OutputFile = Annotated[
    Path | None, typer.Option(help="A .csv, .tsv, .jsonl or .parquet file to write.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
