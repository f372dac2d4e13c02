"""What `import tacit` offers: the public names, no others, and nothing that takes long to load."""

import subprocess
import sys

import tacit
from tacit import NNML, BinaryRelevance, Ridge, baselines
from tacit.saved import METHODS


def test_every_method_and_baseline_is_to_be_had_of_the_package():
    assert (Ridge, BinaryRelevance, NNML) == (
        baselines.Ridge,
        baselines.BinaryRelevance,
        baselines.NNML,
    )
    others = {"KernelFeatures", "Labels", "TopK", "load", "save"}
    assert set(tacit.__all__) == {*METHODS} | others
    for name, method in METHODS.items():
        assert getattr(tacit, name) is method


def test_dir_shows_the_public_names_alone():
    assert dir(tacit) == sorted([*tacit.__all__, "__version__"])


def test_a_name_that_is_not_there_is_no_name_of_the_package():
    assert not hasattr(tacit, "Rigde")


def test_names_are_fetched_when_first_used():
    code = (
        "import sys, tacit\n"
        "heavy = {'sklearn', 'scipy', 'numba', 'torch', 'numpy', 'pandas'}\n"
        "dir(tacit), tacit.__version__\n"
        "assert not heavy & {*sys.modules}, heavy & {*sys.modules}\n"
        "from tacit import *\n"
        "assert Ridge is tacit.baselines.Ridge and Labels is tacit.Labels\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
