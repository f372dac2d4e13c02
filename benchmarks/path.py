"""Ten λs with five-fold cross-validation, in units of one cold fit.

    python benchmarks/path.py delicious --rank 100

Both in one process, on the same data: `LEML(...).fit` at one λ, from the start to convergence, and
`choose`, which is what `reg="auto"` runs before its own fit: ten λs on five folds. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import json
import time

from tacit import LEML
from tacit.datasets import load
from tacit.methods.leml.path import choose
from tacit.metrics import precision_at_k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--solver", default="auto")
    options = parser.parse_args()
    data = load(options.data)
    X, Y = data.X, data.Y.as_complete()
    settings = dict(rank=options.rank, solver=options.solver, max_iter=20, random_state=0)
    LEML(**settings | dict(max_iter=1)).fit(X[:500], Y[:500])  # compiles

    colds = []
    for reg in (0.3, 3.0, 10.0):
        start = time.perf_counter()
        LEML(reg=reg, **settings).fit(X, Y)
        colds.append(time.perf_counter() - start)
    start = time.perf_counter()
    rank, reg = choose(LEML(reg="auto", **settings), X, Y)
    choosing = time.perf_counter() - start
    result = {
        "data": options.data,
        "rank": rank,
        "solver": options.solver,
        "cold fits s": [round(s, 2) for s in colds],
        "ten λs, five folds s": round(choosing, 2),
        "in cold fits": round(choosing / (sum(colds) / len(colds)), 2),
        "chosen λ": reg,
    }
    if data.X_test is not None:
        model = LEML(reg=reg, **settings).fit(X, Y)
        top = model.top_k(data.X_test, 5)
        figures = precision_at_k(data.Y_test, top, (1, 3, 5))
        result["P@1/3/5 there"] = [round(100 * float(p), 1) for p in figures]
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
