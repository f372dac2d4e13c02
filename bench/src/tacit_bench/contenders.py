"""Our methods as they enter the boards: what each makes of silence, and its settings.

The defaults of a method are the one of its settings that does best over all cells of the committed
board `missing` (`missing.best_single`), so that whoever chooses nothing has the best single choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tacit.baselines import (
    EASE,
    NNML,
    BinaryRelevance,
    Elkan08,
    LabelSpaceReduction,
    Neighbours,
    Popularity,
    Ridge,
)
from tacit.labels import Labels
from tacit.methods import LEML, MPU, SEM, FaIE, GenEML, Tacit
from tacit_bench.board import Skip
from tacit_bench.own import imported

__all__ = ["CONTENDERS", "Contender", "check_contenders", "contender"]


@dataclass(frozen=True)
class Contender:
    """A method, how it reads what nobody said, and the settings it may choose from."""

    make: Callable[[], Any]
    settings: tuple[dict[str, Any], ...] = ({},)
    most_entries: float = float("inf")
    """Of n_samples × n_labels: beyond, a fit takes longer than a scoreboard is worth."""
    silence_is_no: bool = False

    def model(self, settings: dict[str, Any], device: str) -> Any:
        model = self.make().set_params(**settings)
        seeded = {"device": device, "random_state": 0}
        own = model.get_params()
        return model.set_params(**{name: value for name, value in seeded.items() if name in own})

    def check(self, labels: Labels) -> None:
        """Skip a cell whose fits would take too long."""
        if np.prod(labels.shape, dtype=float) > self.most_entries:
            raise Skip(f"more than {self.most_entries:.0e} entries: a fit would take too long")

    def choose(self, judge: Callable[[dict[str, Any]], float]) -> dict[str, Any]:
        """The settings of the largest figure, the first of equals, and the figures of all."""
        tried = [judge(each) for each in self.settings] if len(self.settings) > 1 else []
        return {"settings": self.settings[np.argmax(tried) if tried else 0], "tried": tried}

    def read(self, labels: Labels) -> Labels:
        """The labels as they are where the method takes such; else silence is no."""
        takes = getattr(self.make(), "label_kinds", ("complete",))
        as_they_are = labels.kind in takes and not self.silence_is_no
        return labels if as_they_are else labels.as_complete()


def _grid(**choices: Any) -> tuple[dict[str, Any], ...]:
    """Every combination: a tuple is a choice, anything else is fixed."""
    each = [value if isinstance(value, tuple) else (value,) for value in choices.values()]
    return tuple(dict(zip(choices, values)) for values in product(*each))


CONTENDERS = {
    "Tacit": Contender(Tacit),  # chooses its settings itself, on the rows it is given
    "Popularity": Contender(Popularity),
    "Neighbours": Contender(Neighbours, _grid(n_neighbors=(10, 20, 50, 100))),
    # Rows that are held out have no labels to go by, so that all λ are equal: the first is taken.
    "EASE": Contender(EASE, _grid(reg=(100.0, 10.0, 30.0, 300.0))),
    "Ridge": Contender(Ridge, _grid(reg=(0.3, 1.0, 3.0, 10.0))),
    "BR, logistic": Contender(
        BinaryRelevance, _grid(loss="logistic", reg=(0.1, 0.3, 1.0, 3.0)), most_entries=3e8
    ),
    "LEML": Contender(
        LEML,
        _grid(rank=200, reg=(0.3, 1.0), max_iter=5)
        + _grid(rank=200, reg=0.3, max_iter=20)
        + _grid(rank=100, reg=1.0, max_iter=20),
    ),
    "LEML, silence is no": Contender(
        LEML, _grid(rank=200, reg=(0.3, 1.0, 3.0, 10.0), max_iter=20), silence_is_no=True
    ),
    "FaIE": Contender(FaIE, _grid(rank=200, alpha=10.0, reg=(0.3, 1.0, 3.0, 10.0))),
    "MPU": Contender(
        MPU,
        _grid(rate=0.3, max_iter=10, reg=0.1)
        + _grid(rate=1.0, max_iter=(10, 30), reg=0.1)
        + _grid(rate=1.0, max_iter=30, reg=0.03),
        most_entries=1e10,
    ),
    "GenEML": Contender(
        GenEML,
        _grid(rank=(100, 200), reg_u=1.0, reg_v=1.0, reg_w=1.0, max_iter=10)
        + _grid(rank=200, reg_u=1.0, reg_v=3.0, reg_w=3.0, max_iter=10)
        + _grid(rank=200, reg_u=10.0, reg_v=1.0, reg_w=1.0, max_iter=5),
        most_entries=1e10,
    ),
    "SEM": Contender(
        SEM,
        _grid(rank=(100, 200), instance_weight="label_count", max_iter=30, updates="one-pass")
        + _grid(rank=100, instance_weight="uniform", max_iter=30, updates="one-pass")
        + _grid(rank=100, instance_weight="label_count", max_iter=60, updates="one-pass"),
        most_entries=1e10,
    ),
    "NNML": Contender(
        NNML,
        _grid(rate=(0.003, 0.01, 0.03), max_iter=30) + _grid(rate=0.03, max_iter=10),
        most_entries=1e10,
    ),
    "Elkan08": Contender(Elkan08, _grid(reg=(0.1, 0.3, 1.0, 3.0)), most_entries=3e8),
    "CPLST": Contender(
        LabelSpaceReduction, _grid(codec="cplst", rank=200, reg=(0.3, 1.0, 3.0, 10.0))
    ),
}


def contender(name: str) -> Contender:
    """One of `CONTENDERS`, or whatever `package.module:Class` names."""
    if ":" not in name:
        check_contenders([name])
        return CONTENDERS[name]
    found = imported(name)
    return found if isinstance(found, Contender) else Contender(found)


def check_contenders(names: Iterable[str]) -> None:
    """Say at once, in one sentence, which of the names is no method."""
    for name in names:
        if ":" in name:
            imported(name)
        elif name not in CONTENDERS:
            raise ValueError(
                f"no method {name!r} on this board; there are {', '.join(CONTENDERS)}, and your "
                "own as package.module:Class"
            )
