"""A fit killed with SIGKILL and resumed ends in the very model of a fit that was never stopped.

    python benchmarks/resume.py [--rows 20000] [--passes 8]

A child process fits LEML to random data with a checkpoint. Once it has taken a few passes it is
killed, with no chance to clean up; a second child goes on from the file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from tacit import LEML, Labels, load
from tacit.basics.files import read_arrays


def main() -> None:
    """Kill, resume, compare; exit code 1 if the models differ in any bit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--passes", type=int, default=8)
    options = parser.parse_args()
    size = (options.rows, options.passes)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, target = Path(folder) / "fit.checkpoint", Path(folder) / "model.tacit"
        first = _start(*size, checkpoint, target)
        while first.is_alive() and _passes(checkpoint) < min(2, options.passes):
            time.sleep(0.005)
        first.kill()
        first.join()
        print(f"killed (exit code {first.exitcode}) after {_passes(checkpoint)} passes")
        second = _start(*size, checkpoint, target)
        second.join()
        resumed = load(target)
    print(f"resumed, and finished after {resumed.n_iter_} passes")
    whole = _fit(*size)
    same = resumed.history_ == whole.history_ and all(
        np.array_equal(getattr(resumed.model_, name), getattr(whole.model_, name)) for name in "WH"
    )
    print(f"the two models are {'identical, bit for bit' if same else 'NOT identical'}")
    raise SystemExit(not same)


def _start(*arguments: object) -> multiprocessing.process.BaseProcess:
    child = multiprocessing.get_context("spawn").Process(target=_fit, args=arguments)
    child.start()
    return child


def _passes(checkpoint: Path) -> int:
    return len(read_arrays(checkpoint)[0]["history"]) if checkpoint.exists() else 0


def _fit(
    rows: int, passes: int, checkpoint: Path | None = None, target: Path | None = None
) -> LEML:
    rng = np.random.default_rng(0)
    X = sp.random_array((rows, 1000), density=0.02, rng=rng, format="csr")
    Y = X @ rng.standard_normal((1000, 20)) @ rng.standard_normal((20, 200)) > 4
    observed = rng.random(Y.shape) < 0.2
    model = LEML(rank=30, tol=0, max_iter=passes, random_state=0)
    model.fit(X, Labels.masked(Y & observed, observed), checkpoint=checkpoint)
    if target is not None:
        model.save(target)
    return model


if __name__ == "__main__":
    main()
