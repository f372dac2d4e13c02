"""Old import paths: where each module of an earlier version stands today.

`import tacit.base` gives the very module `tacit.estimators.estimator`, with a `DeprecationWarning`
that names the new path. A line here is kept for a year of releases (`CONTRIBUTING.md`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "install"]

MOVED = {
    "tacit.base": "tacit.estimators",
    "tacit.by_feature": "tacit.methods.tacit.by_feature",
    "tacit.calibration": "tacit.methods.tacit.calibration",
    "tacit.charts": "tacit.html.charts",
    "tacit.exposure": "tacit.engines.exposure",
    "tacit.files": "tacit.basics.files",
    "tacit.fitting": "tacit.engines.descend",
    "tacit.kernels": "tacit.features.kernel_features",
    "tacit.logistic": "tacit.engines.logistic",
    "tacit.losses": "tacit.engines.losses",
    "tacit.moments": "tacit.engines.moments",
    "tacit.networks": "tacit.engines.network",
    "tacit.numerics": "tacit.basics.numerics",
    "tacit.page": "tacit.html.page",
    "tacit.params": "tacit.basics.params",
    "tacit.risk": "tacit.engines.risk",
    "tacit.scaling": "tacit.features.scaling",
    "tacit.search": "tacit.engines.index",
    "tacit.second_look": "tacit.methods.tacit.second_look",
    "tacit.solvers": "tacit.engines.solvers",
}
"""From the old name to the new one."""


class _OldPaths(MetaPathFinder, Loader):
    """Finds the modules of `MOVED`, and puts the module of today in their place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(
            f"{module.__name__} is now {new}; import that instead", DeprecationWarning, stacklevel=2
        )
        sys.modules[module.__name__] = import_module(new)


def install() -> None:
    """Make the old paths importable; asked once, when `tacit` is first imported."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(_OldPaths())
