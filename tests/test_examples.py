"""The examples run as they are, from anywhere, and say what they promise to say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SAYS = {
    "complete_tags.py": "of the hidden tags",
    "how_much_is_missing.py": "the truth lies within: True",
    "larger_than_memory.py": "the same scores as in memory: True",
    "stream.py": "better after each: True",
}


def test_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_and_says_what_it_promises(name, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "TACIT_DATA"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"
