"""How fast XMLRepo text is read: MB/s, and as a ratio to scikit-learn and to a plain Python loop.

    python benchmarks/readers.py [--repeat 3] [--json]

The file is written from eurlex57k where TACIT_DATA has it, else from random numbers of that size.
All readers read the same bytes in the same run, each the best of its repetitions after a warm-up;
scikit-learn reads them without the first line, as multi-label svmlight.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file

from tacit import Labels
from tacit.datasets import load, names, read_svmlight, read_xmlrepo, write_xmlrepo


def main() -> None:
    """Write the file, time the readers, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    source, X, Y = _data()
    with tempfile.TemporaryDirectory() as folder:
        path, bare = Path(folder) / "set.txt", Path(folder) / "set.svm"
        start = time.perf_counter()
        write_xmlrepo(path, X, Y)
        seconds = {"write_xmlrepo": time.perf_counter() - start}
        bare.write_bytes(path.read_bytes().split(b"\n", 1)[1])
        readers: dict[str, tuple[Callable, Path]] = {
            "read_xmlrepo": (read_xmlrepo, path),
            "read_svmlight": (read_svmlight, bare),
            "scikit-learn": (_scikit_learn, bare),
            "plain Python": (_plain_python, bare),
        }
        for name, (read, file) in readers.items():
            seconds[name] = _best(read, file, options.repeat)
        megabytes = path.stat().st_size / 1e6
    ours = seconds["read_xmlrepo"]
    result = {
        name: {"seconds": s, "MB/s": megabytes / s, "times read_xmlrepo": s / ours}
        for name, s in seconds.items()
    }
    if options.json:
        print(json.dumps({"source": source, "MB": megabytes, "readers": result}, indent=1))
        return
    print(f"{source}: {X.shape[0]:,} rows, {X.nnz:,} features, {megabytes:.1f} MB")
    for name, figures in result.items():
        print(f"{name:<14}" + "".join(f"{v:10.2f} {k}" for k, v in figures.items()))


def _data() -> tuple[str, sp.csr_array, Labels]:
    if "eurlex57k" in names():
        eurlex = load("eurlex57k")
        return "eurlex57k", sp.csr_array(eurlex.X), eurlex.Y
    rng = np.random.default_rng(0)
    X = sp.random_array((45_000, 5_000), density=0.024, rng=rng, dtype=np.float32, format="csr")
    Y = sp.random_array((45_000, 4_271), density=0.0012, rng=rng, format="csr")
    return "random", X, Labels.complete(Y != 0)


def _best(read: Callable, path: Path, repeat: int) -> float:
    read(path)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        read(path)
        times.append(time.perf_counter() - start)
    return min(times)


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


if __name__ == "__main__":
    main()
