"""tacit: multi-label learning when most true labels were never written down."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.basics import moved

if TYPE_CHECKING:
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
_HOMES = {
    "FaIE": "tacit.methods",
    "GenEML": "tacit.methods",
    "KernelFeatures": "tacit.features.kernel_features",
    "LEML": "tacit.methods",
    "MPU": "tacit.methods",
    "SEM": "tacit.methods",
    "Tacit": "tacit.methods",
    "Labels": "tacit.labels",
    "TopK": "tacit.labels",
    "load": "tacit.saved",
    "save": "tacit.saved",
}
__all__ = [
    "LEML",
    "MPU",
    "SEM",
    "FaIE",
    "GenEML",
    "KernelFeatures",
    "Labels",
    "Tacit",
    "TopK",
    "load",
    "save",
]


moved.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
