"""`tacit bench`: the scoreboard, cell by cell; what is there is not measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson
from tacit.cli.output import note, print_json

if TYPE_CHECKING:
    from tacit_bench.board import Row
    from tacit_bench.study import Study

__all__ = ["bench"]

bench = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Measure papers, missing labels, peers and scale.",
)

Results = Annotated[Path, typer.Option(help="The folder that keeps what was measured.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or torch.")]
Data = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this data set.")]
Methods = Annotated[list[str] | None, typer.Option("--method", metavar="NAME", help="Only this.")]
OwnData = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME|PATH", help="Only this data set, or your own folder or table."),
]
OwnMethods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="NAME|MODULE:CLASS", help="Only this, or your own class."),
]
Rates = Annotated[list[float] | None, typer.Option("--rate", help="Share of positives hidden.")]
Seeds = Annotated[int, typer.Option(help="How often labels are hidden anew.")]
Jobs = Annotated[int, typer.Option(help="Cells measured at a time, each in its own process.")]
Limit = Annotated[float, typer.Option(help="Seconds after which a cell is given up.")]
Quick = Annotated[bool, typer.Option("--quick", help="A part of it, in minutes.")]

FOLDER = Path("bench/results")


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
    from tacit_bench.boards.papers import STUDY

    _tell(STUDY.fill(results, STUDY.cells(paper, table, quick), device), STUDY, as_json)


@bench.command()
def missing(
    data: OwnData = None,
    rate: Rates = None,
    method: OwnMethods = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of text of a table.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column of numbers of a table.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of tags.", show_default="tags"),
    ] = None,
    separator: Annotated[str | None, typer.Option(help="What stands between tags.")] = None,
    seeds: Seeds = 1,
    device: Device = "cpu",
    jobs: Jobs = 1,
    limit: Limit = 3600.0,
    results: Results = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Hide labels, and see who finds them: hidden at four rates, and really missing ones.

    Data and methods of your own go beside ours: a folder or table that tacit fit reads, and a class
    that Python can import, of tacit's kind or scikit-learn's.

    Example: tacit bench missing --data bibtex --rate 0.8

    Example: tacit bench missing --data packages.csv --text description --method mine:CosineKNN
    """
    from tacit.cli.inputs import is_table
    from tacit_bench.boards import missing as hidden
    from tacit_bench.boards import real
    from tacit_bench.contenders import CONTENDERS
    from tacit_bench.own import own_data
    from tacit_bench.work import SETTINGS, check_data

    note(f"Each method chooses among {SETTINGS} settings, on training rows held out.")
    methods, wanted = method or tuple(CONTENDERS), data or (*hidden.DATA, *real.DATA)
    for name in wanted:
        check_data(name, (*hidden.DATA, *real.DATA))
    columns = {"text": text, "features": features, "labels": labels, "separator": separator}
    for name in filter(is_table, wanted):
        own_data(name, columns)  # a column that is not there is told now, not a cell at a time
    how: dict[str, Any] = {"device": device, "jobs": jobs, "limit": limit}
    on_purpose = [name for name in wanted if name not in real.DATA]
    asked = hidden.cells(on_purpose, rate or hidden.RATES, methods, seeds, columns)
    rows = hidden.STUDY.fill(results, asked, **how)
    asked = real.cells([name for name in wanted if name in real.DATA], methods)
    really = real.STUDY.fill(results, asked, **how)
    if as_json:
        print_json({"rows": [*rows, *really]})
        return
    _tell(rows, hidden.STUDY, as_json)
    _tell(really, real.STUDY, as_json)


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
    from tacit_bench.boards import peers as board
    from tacit_bench.work import SETTINGS

    note(
        f"Each peer, as each of ours, chooses among {SETTINGS} settings, on training rows held out."
    )
    asked = board.cells(data or board.DATA, rate or board.RATES, peer or tuple(board.PEERS), seeds)
    _tell(board.STUDY.fill(results, asked, limit=limit), board.STUDY, as_json)


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
    from tacit_bench.boards.scale import STUDY

    _tell(STUDY.fill(results, STUDY.cells(method, quick)), STUDY, as_json)


@bench.command("study")
def run_study(
    name: Annotated[
        str | None, typer.Argument(help="Which; without a name, all are listed.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only cells that have this.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw what was found into this image.")] = None,
    device: Device = "cpu",
    limit: Limit = 3600.0,
    results: Results = FOLDER / "studies",
    as_json: AsJson = False,
) -> None:
    """Answer one question by measuring; without a name, list the questions.

    Example: tacit bench study mpu_epoch --only n=200000
    """
    from tacit_bench.study import studies, study

    if name is None:
        questions = {each.name: each.question for each in studies().values()}
        if as_json:
            print_json({"studies": questions})
            return
        _print_questions(questions)
        return
    asked = study(name)
    if plot is not None and asked.plot is None:
        raise ValueError(f"--plot is not for {name}, which draws nothing; leave it out")
    wanted = [_pair(text) for text in only or ()]
    cells = [c for c in asked.cells() if all(str(c.get(key)) == value for key, value in wanted)]
    if not cells:
        raise ValueError(f"--only {' --only '.join(only or ())} leaves no cell of {name}")
    rows = asked.fill(results, cells, device, limit=limit)
    _tell(rows, asked, as_json)
    if plot is not None and asked.plot is not None:
        asked.plot([row for row in rows if "found" in row], plot)
        note(f"The plot is in {plot}.")


@bench.command()
def report(
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("tacit-bench.html"),
    headline: Annotated[
        Path | None, typer.Option(help="A Markdown page whose headline table to renew.")
    ] = None,
    results: Results = FOLDER,
) -> None:
    """Write one page about all that was measured.

    Example: tacit bench report --output scoreboard.html
    """
    from tacit.basics.files import replacing
    from tacit_bench.report import report as made
    from tacit_bench.report import write_headline

    if not results.is_dir():
        raise ValueError(f"--results {results} is no folder; run tacit bench missing first")
    with replacing(output) as beside:
        beside.write_text(made(results), encoding="utf-8")
    note(f"The report is in {output}.")
    if headline is not None:
        write_headline(headline, results)
        note(f"The headline table of {headline} is renewed.")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ValueError(f"--only must be KEY=VALUE, such as data=bibtex; got {text!r}")
    return key, value


def _print_questions(questions: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, question in questions.items():
        grid.add_row(name, question)
    Console().print(grid)


def _tell(rows: list[Row], study: Study, as_json: bool) -> None:
    """What was found: for people, or for machines."""
    from rich.console import Console

    if as_json:
        print_json({"rows": rows})
    else:
        study.show(rows, Console())
