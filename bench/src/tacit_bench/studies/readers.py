"""XMLRepo text: how fast it is written, and read by ours, by scikit-learn and by plain Python.

All read the same bytes, once to warm up and then for the clock, in the same process as
`read_xmlrepo`; scikit-learn reads them without the first line, as multi-label svmlight.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from tacit.datasets import read_svmlight, read_xmlrepo, write_xmlrepo
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import quickest
from tacit_bench.work import loaded

__all__ = ["STUDY"]

ROUNDS = 3


def cells() -> list[Cell]:
    names = ("write_xmlrepo", "read_xmlrepo", *READERS)
    return [{"data": "eurlex57k", "with": name} for name in names]


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds and MB/s, and seconds as a ratio to those of `read_xmlrepo`."""
    data: Any = loaded(cell["data"])
    with tempfile.TemporaryDirectory() as folder:
        path, bare = Path(folder) / "set.txt", Path(folder) / "set.svm"
        write = partial(write_xmlrepo, path, data.X, data.Y)
        write()
        bare.write_bytes(path.read_bytes().split(b"\n", 1)[1])
        runs: dict[str, Callable[[], Any]] = {
            "write_xmlrepo": write,
            "read_xmlrepo": partial(read_xmlrepo, path),
            **{name: partial(read, bare) for name, read in READERS.items()},
        }
        seconds = {}
        for name in dict.fromkeys(("read_xmlrepo", cell["with"])):
            runs[name]()
            seconds[name] = min(quickest(runs[name], least=0) for _ in range(ROUNDS))
        megabytes = path.stat().st_size / 1e6
    own = seconds[cell["with"]]
    return {
        "MB": round(megabytes, 1),
        "seconds": round(own, 4),
        "MB/s": round(megabytes / own, 1),
        "times read_xmlrepo": round(own / seconds["read_xmlrepo"], 2),
    }


def _scikit_learn(path: Path) -> tuple:
    return load_svmlight_file(str(path), multilabel=True, dtype=np.float32, zero_based=True)


def _plain_python(path: Path) -> tuple[list, list, list, list]:
    labels, lengths, indices, data = [], [], [], []
    with open(path) as file:
        for line in file:
            given, *pairs = line.rstrip("\n").split(" ")
            labels.append([int(label) for label in given.split(",") if label])
            lengths.append(len(pairs))
            for pair in pairs:
                index, value = pair.split(":")
                indices.append(int(index))
                data.append(float(value))
    return labels, lengths, indices, data


READERS: dict[str, Callable[[Path], Any]] = {
    "read_svmlight": read_svmlight,
    "scikit-learn": _scikit_learn,
    "plain Python": _plain_python,
}
STUDY = Study(
    "readers",
    "How fast is XMLRepo text read, beside scikit-learn and plain Python?",
    cells,
    measure,
    tiny=[{"data": "debian", "with": name} for name in ("write_xmlrepo", "plain Python")],
)
