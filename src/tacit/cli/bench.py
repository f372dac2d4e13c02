"""`tacit bench`: the scoreboard, cell by cell; what is there is not measured again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson
from tacit.cli.output import note, print_json

if TYPE_CHECKING:
    from tacit.bench.board import Board, Row

__all__ = ["bench"]

bench = typer.Typer(no_args_is_help=True, help="Measure papers, missing labels, peers and scale.")

Results = Annotated[Path, typer.Option(help="The folder that keeps what was measured.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or torch.")]
Data = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this data set.")]
Methods = Annotated[list[str] | None, typer.Option("--method", metavar="NAME", help="Only this.")]
Rates = Annotated[list[float] | None, typer.Option("--rate", help="Share of positives hidden.")]
Seeds = Annotated[int, typer.Option(help="How often labels are hidden anew.")]
Jobs = Annotated[int, typer.Option(help="Cells measured at a time, each in its own process.")]
Limit = Annotated[float, typer.Option(help="Seconds after which a cell is given up.")]
Quick = Annotated[bool, typer.Option("--quick", help="A part of it, in minutes.")]

FOLDER = Path("benchmarks/results")


@bench.command()
def papers(
    paper: Annotated[str | None, typer.Option(help="LEML, FaIE, MPU, GenEML or SEM.")] = None,
    table: Annotated[str | None, typer.Option(help="The number of a table or figure.")] = None,
    quick: Quick = False,
    device: Device = "cpu",
    results: Results = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Reproduce the published tables: ours beside theirs.

    Example: tacit bench papers --paper LEML --table 2
    """
    from tacit.bench import papers as board

    asked = board.cells(paper, table, quick)
    _tell(
        _board(results, "papers").fill(asked, partial(board.measure, device=device)), board, as_json
    )


@bench.command()
def missing(
    data: Data = None,
    rate: Rates = None,
    method: Methods = None,
    seeds: Seeds = 1,
    device: Device = "cpu",
    jobs: Jobs = 1,
    limit: Limit = 3600.0,
    results: Results = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Hide labels, and see who finds them: hidden at four rates, and really missing ones.

    Example: tacit bench missing --data bibtex --rate 0.8
    """
    from tacit.bench import missing as hidden
    from tacit.bench import real
    from tacit.bench.contenders import CONTENDERS
    from tacit.bench.work import SETTINGS

    note(f"Each method chooses among {SETTINGS} settings, on training rows held out.")
    methods, wanted = method or tuple(CONTENDERS), data or (*hidden.DATA, *real.DATA)
    if unknown := [name for name in wanted if name not in (*hidden.DATA, *real.DATA)]:
        there = ", ".join((*hidden.DATA, *real.DATA))
        raise ValueError(f"--data {unknown[0]} is not on this board; there are {there}")
    how: dict[str, Any] = {"jobs": jobs, "limit": limit}
    asked = hidden.cells(
        [d for d in wanted if d in hidden.DATA], rate or hidden.RATES, methods, seeds
    )
    rows = _board(results, "missing").fill(asked, partial(hidden.measure, device=device), **how)
    asked = real.cells([d for d in wanted if d in real.DATA], methods)
    really = _board(results, "real").fill(asked, partial(real.measure, device=device), **how)
    if as_json:
        print_json({"rows": [*rows, *really]})
        return
    _tell(rows, hidden, as_json)
    _tell(really, real, as_json)


@bench.command()
def peers(
    data: Data = None,
    rate: Rates = None,
    peer: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this.")] = None,
    seeds: Seeds = 1,
    limit: Limit = 3600.0,
    results: Results = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Give the same work to other packages, each installed into an environment of its own.

    Example: tacit bench peers --data bibtex --peer Omikuji
    """
    from tacit.bench import peers as board
    from tacit.bench.work import SETTINGS

    note(
        f"Each peer, as each of ours, chooses among {SETTINGS} settings, on training rows held out."
    )
    asked = board.cells(data or board.DATA, rate or board.RATES, peer or tuple(board.PEERS), seeds)
    _tell(_board(results, "peers").fill(asked, partial(board.measure, limit=limit)), board, as_json)


@bench.command()
def scale(
    method: Methods = None,
    quick: Quick = False,
    results: Results = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Time and memory against rows, entries, labels and rank; kernels against the machine.

    Example: tacit bench scale --quick
    """
    from tacit.bench import scale as board

    asked = board.cells(method, quick)
    _tell(_board(results, "scale").fill(asked, board.measure, jobs=1), board, as_json)


@bench.command()
def report(
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("tacit-bench.html"),
    readme: Annotated[
        Path | None, typer.Option(help="A Markdown file whose headline table to renew.")
    ] = None,
    results: Results = FOLDER,
) -> None:
    """Write one page about all that was measured.

    Example: tacit bench report --output scoreboard.html
    """
    from tacit.basics.files import replacing
    from tacit.bench.report import report as made
    from tacit.bench.report import write_headline

    if not results.is_dir():
        raise ValueError(f"--results {results} is no folder; run tacit bench missing first")
    with replacing(output) as beside:
        beside.write_text(made(results), encoding="utf-8")
    note(f"The report is in {output}.")
    if readme is not None:
        write_headline(readme, results)
        note(f"The headline table of {readme} is renewed.")


def _board(results: Path, name: str) -> Board:
    from tacit.bench.board import Board

    return Board(results / f"{name}.jsonl")


def _tell(rows: list[Row], board: Any, as_json: bool) -> None:
    """What was found: for people, or for machines."""
    from rich.console import Console

    if as_json:
        print_json({"rows": rows})
    else:
        board.show(rows, Console())
