"""`tacit datasets`: which data sets are here, and which can be fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from zipfile import BadZipFile

import typer

from tacit.cli.options import AsJson
from tacit.cli.output import cell, note, print_json

__all__ = ["datasets"]


def datasets(
    download: Annotated[
        str | None, typer.Option(metavar="NAME", help="Fetch this data set into the cache.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the data sets that are here, or download one.

    Example: tacit datasets --download bibtex
    """
    from tacit import datasets as library

    if download is not None:
        folder = library.download(download, progress=True)
        if as_json:
            print_json({"name": download, "where": str(folder)})
        else:
            note(f"{download} is in {folder}; next: tacit fit {download}")
        return
    here = [{"name": name, **_size(name, where)} for name, where in library.names().items()]
    away = {
        name: url for name, url in library.downloadable().items() if name not in library.names()
    }
    if as_json:
        print_json({"datasets": here, "downloadable": away})
    else:
        _print_table(here, away)


def _size(name: str, where: str) -> dict[str, Any]:
    """The shapes of a set, without reading its matrices where they are on disk."""
    if where == "embedded":
        from tacit.datasets import load

        data = load(name)
        (n, d), n_test = data.X.shape, 0
        n_labels = data.Y.n_labels
    else:
        n, d = _shape(where, "X_train.npz", "X.npz", "X*.npz")
        n_test, _ = _shape(where, "Y_test.npz")
        _, n_labels = _shape(where, "Y_train.npz", "Y.npz", "Y*.npz")
    return {"rows": n, "test_rows": n_test, "features": d, "labels": n_labels, "where": where}


def _shape(folder: str, *patterns: str) -> tuple[int, int]:
    """The shape of the first matrix there, in the order in which `load` looks for it.

    (0, 0) where there is none, or one that cannot be read: one bad set should not hide the others.
    """
    import numpy as np

    for path in (path for pattern in patterns for path in sorted(Path(folder).glob(pattern))):
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                n, width = archive["shape"].tolist()
                return n, width
        except (OSError, ValueError, KeyError, TypeError, BadZipFile):
            return 0, 0
    return 0, 0


def _print_table(here: list[dict[str, Any]], away: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("name")
    for name in ("rows", "test rows", "features", "labels"):
        table.add_column(name, justify="right")
    table.add_column("where", overflow="fold")
    for data in here:
        sizes = [data[key] for key in ("rows", "test_rows", "features", "labels")]
        shown = [f"{size:,}" if size else "–" for size in sizes]
        table.add_row(cell(data["name"]), *shown, cell(data["where"]))
    Console().print(table)
    if away:
        note(f"tacit datasets --download NAME fetches {', '.join(away)}")
