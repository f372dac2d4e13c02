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
    "tacit.backends.kernels": "tacit.backends.compiled",
    "tacit.base": "tacit.estimators",
    "tacit.baselines.m3l_kernels": "tacit.baselines.m3l_ascent",
    "tacit.bench": "tacit_bench",  # comes with the extra `bench`
    "tacit.bench.machine": "tacit_bench.timing",
    "tacit.bench.missing": "tacit_bench.boards.missing",
    "tacit.bench.papers": "tacit_bench.boards.papers",
    "tacit.bench.peers": "tacit_bench.boards.peers",
    "tacit.bench.real": "tacit_bench.boards.real",
    "tacit.bench.scale": "tacit_bench.boards.scale",
    "tacit.by_feature": "tacit.methods.tacit.first.by_feature",
    "tacit.charts": "tacit.html.charts",
    "tacit.codecs.training": "tacit.codecs.codec_data",
    "tacit.exposure": "tacit.engines.exposure",
    "tacit.files": "tacit.basics.files",
    "tacit.fitting": "tacit.engines.descend",
    "tacit.kernels": "tacit.features.kernel_features",
    "tacit.logistic": "tacit.engines.logistic",
    "tacit.losses": "tacit.engines.losses",
    "tacit.methods.mpu.levels": "tacit.methods.mpu.stacking",
    "tacit.models.columns": "tacit.engines.labelwise",
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
"""From the old name to the new one; what stands below an old name stands below the new one."""


class _OldPaths(MetaPathFinder, Loader):
    """Finds the modules of `MOVED`, and puts the module of today in their place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if _today(name) else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = _today(old)
        assert new is not None
        warnings.warn(f"{old} is now {new}; import that instead", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def _today(name: str) -> str | None:
    """The path of today of an old one; None of any other."""
    below = ""
    while name.startswith("tacit.") and name not in MOVED:
        name, _, last = name.rpartition(".")
        below = f".{last}{below}"
    return MOVED[name] + below if name in MOVED else None


def install() -> None:
    """Make the old paths importable; asked once, when `tacit` is first imported."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        # Before Python's own finders: they would load a module anew below a name that has moved.
        sys.meta_path.insert(0, _OldPaths())
