"""The command line: one file a command. What takes long to import is imported when it is needed."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tacit.cli import complete, datasets, evaluate, fit, look, missing, predict
from tacit.cli.options import AsJson, Force
from tacit.cli.output import check_new, note

__all__ = ["app", "main"]


_BENCH = 'pip install "tacit[bench]"'


class _Commands(TyperGroup):
    """Our commands, and those of other installed packages; one line for whatever is wrong."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_others()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported when it is asked for: `tacit bench` comes with `tacit[bench]`."""
        others = {} if cmd_name in self.commands else _others()
        if cmd_name in others:
            command = typer.main.get_command(others[cmd_name].load())
            command.name = cmd_name
            return command
        if cmd_name == "bench":
            raise ImportError(f"tacit bench is not installed; try: {_BENCH}")
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has left, as in `tacit datasets | head`
            raise
        except (ValueError, OSError, ImportError) as error:
            note(f"tacit: {error}")
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda asked: _print_version(asked),
            help="Print the version and leave.",
        ),
    ] = False,
) -> None:
    """Learn multi-label models when most true labels were never written down.

    Example: tacit fit packages.csv --text description --labels tags
    """


@app.command("demo")
def run_demo(
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("tacit-demo.html"),
    seed: Annotated[int, typer.Option(help="What the split and hidden tags are drawn from.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find hidden and forgotten tags of Debian packages, and write a page about it.

    Example: tacit demo --output demo.html
    """
    from tacit.cli.demo import demo

    check_new(output, force)
    demo(output=output, seed=seed, as_json=as_json)


for _command in (
    look.look,
    fit.fit,
    predict.predict,
    complete.complete,
    evaluate.evaluate,
    missing.missing,
    datasets.datasets,
):
    app.command()(_command)


def main() -> None:
    """Run the command that the command line names."""
    app(prog_name="tacit")


def _others() -> dict[str, EntryPoint]:
    """What installed packages have written down as commands of ours, by name."""
    return {command.name: command for command in entry_points(group="tacit.commands")}


def _print_version(asked: bool) -> None:
    if asked:
        from tacit import __version__

        print(f"tacit {__version__}")
        raise typer.Exit
