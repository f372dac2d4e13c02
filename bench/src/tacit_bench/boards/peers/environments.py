"""Virtual environments: one for each peer, made once, from exact versions.

Peers want different versions of NumPy and SciPy, and none of them is a dependency of tacit. Each is
therefore installed by pip into a virtual environment of its own, under the user's cache. What does
not install is a `Skip` with one sentence, and is not tried again in this run.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from tacit_bench.board import Skip

__all__ = ["Peer", "default_folder", "python_of"]

_failed: dict[Path, str] = {}  # environments that could not be made in this run, and why


@dataclass(frozen=True)
class Peer:
    """A package that people use for this work today.

    Attributes
    ----------
    name : str
        What the board calls it; `worker.py` knows it by the same name.
    requirements : tuple of str
        What pip is given: first the package, with its exact version.
    module : str
        What Python calls the package; peers of one module share an environment.
    grid : tuple of dict
        The settings that are tried, the most likely first, since the time may end.
    notes : str
        What a reader of its figures should know.
    """

    name: str
    requirements: tuple[str, ...]
    module: str
    grid: tuple[dict[str, Any], ...]
    notes: str


def default_folder() -> Path:
    """Where environments are kept unless told otherwise: the user's cache."""
    return Path(platformdirs.user_cache_dir("tacit")) / "peers"


def python_of(peer: Peer, folder: Path) -> Path:
    """The Python that has `peer`, in `folder`; its environment is made the first time.

    Raises
    ------
    Skip
        Where pip cannot install it, or Python cannot import what pip installed.
    """
    home = folder / peer.module
    python = Path(sysconfig.get_path("scripts", "venv", {"base": str(home)}), "python")
    wanted = "\n".join([platform.python_version(), *peer.requirements])
    marker = home / "installed.txt"  # written last, so a run that was killed leaves none
    if marker.exists() and marker.read_text() == wanted:
        return python
    if home in _failed:
        raise Skip(_failed[home])
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", *peer.requirements],
        [str(python), "-I", "-c", f"import {peer.module}"],
    ):
        done = _run(command)
        if done.returncode:
            package = peer.requirements[0].replace("==", " ")
            _failed[home] = f"{package} does not install here: {_reason(done.stderr)}"
            raise Skip(_failed[home])
    marker.write_text(wanted)
    return python


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _reason(stderr: str) -> str:
    """The line that tells most: the last that names an error, for pip ends with good advice."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\w+Error|ERROR): ", line)]
    return (errors or lines or ["no reason was given"])[-1]
