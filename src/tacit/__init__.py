"""tacit: multi-label learning when most true labels were never written down."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from tacit.basics import moved as _moved

if TYPE_CHECKING:
    from tacit.baselines import EASE as EASE
    from tacit.baselines import M3L as M3L
    from tacit.baselines import NNML as NNML
    from tacit.baselines import WELL as WELL
    from tacit.baselines import BinaryRelevance as BinaryRelevance
    from tacit.baselines import Elkan08 as Elkan08
    from tacit.baselines import LabelSpaceReduction as LabelSpaceReduction
    from tacit.baselines import Neighbours as Neighbours
    from tacit.baselines import Popularity as Popularity
    from tacit.baselines import Ridge as Ridge
    from tacit.features.kernel_features import KernelFeatures as KernelFeatures
    from tacit.labels import Labels as Labels
    from tacit.labels import TopK as TopK
    from tacit.methods import LEML as LEML
    from tacit.methods import MPU as MPU
    from tacit.methods import SEM as SEM
    from tacit.methods import FaIE as FaIE
    from tacit.methods import GenEML as GenEML
    from tacit.methods import Tacit as Tacit
    from tacit.saved import load as load
    from tacit.saved import save as save

__version__ = "0.1.0"

# Names are fetched when first used, so that `tacit --help` does not wait for scikit-learn.
_NAMES = {
    "tacit.methods": ("FaIE", "GenEML", "LEML", "MPU", "SEM", "Tacit"),
    "tacit.baselines": (
        "BinaryRelevance",
        "EASE",
        "Elkan08",
        "LabelSpaceReduction",
        "M3L",
        "NNML",
        "Neighbours",
        "Popularity",
        "Ridge",
        "WELL",
    ),
    "tacit.features.kernel_features": ("KernelFeatures",),
    "tacit.labels": ("Labels", "TopK"),
    "tacit.saved": ("load", "save"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


_moved.install()


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(_import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names alone."""
    return [*__all__, "__version__"]
