"""Train from shards on disk, one open at a time, and go on where a fit was stopped.

python examples/larger_than_memory.py
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from tacit import LEML, Labels
from tacit.blocks import write_shards

N_SHARDS, ROWS, FEATURES, LABELS = 4, 2_000, 500, 40


def parts() -> Iterator[tuple[sp.csr_array, Labels]]:
    """One shard at a time: nothing here ever holds the whole."""
    tastes = np.random.default_rng(0).standard_normal((FEATURES, LABELS))
    for seed in range(N_SHARDS):
        rng = np.random.default_rng(seed)
        X = sp.random_array((ROWS, FEATURES), density=0.05, rng=rng, format="csr")
        yield X, Labels.complete((X @ tastes > 4).astype(np.int8))


def main() -> None:
    """Fit from disk, stopped half-way and resumed; compare with a fit in memory."""
    model = LEML(rank=20, solver="cg", tol=0, max_iter=2, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(Path(folder) / "shards", parts())
        print(f"{len(shards.folders)} shards of {ROWS:,} rows are on disk")

        checkpoint = Path(folder) / "fit.checkpoint"
        model.fit(shards, checkpoint=checkpoint)
        print(f"stopped after {model.n_iter_} passes, objective {model.history_[-1]:.1f}")
        model.set_params(max_iter=4).fit(shards, checkpoint=checkpoint)
        print(f"resumed, now {model.n_iter_} passes, objective {model.history_[-1]:.1f}")

    features, labels = zip(*parts())
    X = sp.vstack(features, format="csr")
    Y = Labels.complete(sp.vstack([part.positives for part in labels]))
    in_memory = LEML(rank=20, solver="cg", tol=0, max_iter=4, random_state=0).fit(X, Y)
    scores = model.decision_function(X), in_memory.decision_function(X)
    # Sums in another order may let an inner solver stop one step apart.
    print("the same scores as in memory:", np.allclose(*scores, atol=1e-3))


if __name__ == "__main__":
    main()
