"""What `Tacit` tried, what it kept, what that brought and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Report", "Step"]


@dataclass(frozen=True)
class Step:
    """A level: the choice that did best, its gain on held-out rows, and the gain without it."""

    level: str
    choice: str
    gain: float
    before: float
    kept: bool
    seconds: float

    def __str__(self) -> str:
        if not self.kept:
            above = "not above" if self.gain <= self.before else "too little above"
            best = f"{self.choice} has gain {self.gain:.2f}, {above} {self.before:.2f}"
            return f"{self.level}: left out, since {best} ({self.seconds:.1f} s)"
        brought = "" if self.before == 0 else f", {self.gain - self.before:+.2f}"
        return f"{self.level}: {self.choice}; gain {self.gain:.2f}{brought} ({self.seconds:.1f} s)"


@dataclass
class Report:
    """The steps of a fit; `print` it.

    The gain of a choice is 100 times (1) of `tacit.methods.tacit.levels`: how well rows that it has
    not seen were ranked, by what was said of them.
    """

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([*(str(step) for step in self.steps), *self.notes])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Report:
        return cls([Step(**step) for step in told["steps"]], list(told["notes"]))
