"""What a command understood of a table, told before anything is learnt from it."""

from __future__ import annotations

import shlex

from rich.console import Console

from tacit.cli.output import facts_table
from tacit.datasets import Doubt, Reading
from tacit.methods.tacit.plan import Plan

__all__ = ["in_words", "option", "refuse_doubts", "tell"]

_MINUTE = 60
_GIB = 2**30


def tell(reading: Reading) -> None:
    """Say it on stderr."""
    Console(stderr=True).print(facts_table(reading.facts()))


def refuse_doubts(reading: Reading | None) -> None:
    """Stop at the first doubt, with the option that settles it."""
    if reading is not None and reading.doubts:
        doubt = reading.doubts[0]
        raise ValueError(
            f"{reading.name}: {doubt.what}; {option(doubt)} settles it, and --yes goes on as it is"
        )


def option(doubt: Doubt) -> str:
    """What to type."""
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in doubt.options.items())


def in_words(plan: Plan) -> str:
    """What a fit of Tacit will take, in a line."""
    seconds, most = max(plan.seconds, 1), max(part.bytes for part in plan.parts)
    time = f"{seconds / _MINUTE:.0f} min" if seconds > 2 * _MINUTE else f"{seconds:.0f} s"
    room = f" and {most / _GIB:.1f} GiB" if most > _GIB / 2 else ""
    return f"about {time}{room}: {', '.join(plan.names)}"
