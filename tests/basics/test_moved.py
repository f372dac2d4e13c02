"""Old import paths: code written for an earlier version goes on, and is told the new path."""

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from tacit.basics.moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_path_is_the_very_module_of_the_new_one(old):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MOVED[old]}; "):
        assert import_module(old) is import_module(MOVED[old])


def test_what_stands_below_an_old_path_is_the_very_module_too():
    today = import_module("tacit.engines.solvers.cg")

    for name in [name for name in sys.modules if name.startswith("tacit.solvers")]:
        del sys.modules[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one for each part of the path
        assert import_module("tacit.solvers.cg") is today


def test_names_come_through_an_old_path():
    code = (
        "from tacit.base import MultiLabelEstimator, Problem, Completion, shared_checks\n"
        "from tacit.kernels import KernelFeatures\n"
        "import tacit.losses\n"
        "assert tacit.losses.LOSSES\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"tacit\.nowhere"):
        import_module("tacit.nowhere")
