"""What `Tacit` tried, what it kept, what that brought and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["LOG_LOSS", "RANKED", "Report", "Step"]

RANKED = "of 100 labels that were said of rows not seen, so many are among the first five:"
LOG_LOSS = "minus 100 times the log-loss of what is known, and was not seen:"


@dataclass(frozen=True)
class Step:
    """A part: its figure on rows not seen, that without it, and whether it was kept.

    The figure of labels that are complete or positive-only is how many of 100 labels that were said
    stand among the first five of their row; of masked labels, minus the log-loss of a known entry,
    times 100.
    """

    level: str
    choice: str
    gain: float
    before: float
    kept: bool
    seconds: float

    def __str__(self) -> str:
        choice = f", {self.choice}" if self.choice else ""
        if not self.kept:
            return f"{self.level}: left out, it brings {self.gain - self.before:+.2f}{choice}"
        brought = f"{self.gain:.1f}" if self.before == 0 else f"{self.gain - self.before:+.2f}"
        return f"{self.level}: {brought}{choice}"


@dataclass
class Report:
    """The parts of a fit and what each brought; `print` it.

    `measure` says in words what the figures of the steps count.
    """

    measure: str = ""
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        took = [f"{what}: {seconds:.1f} s" for what, seconds in self.seconds.items()]
        measure = [self.measure] if self.measure else []
        return "\n".join([*measure, *(str(step) for step in self.steps), *self.notes, *took])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Report:
        steps, seconds = [Step(**step) for step in told["steps"]], told.get("seconds", {})
        return cls(told.get("measure", ""), steps, list(told["notes"]), dict(seconds))
