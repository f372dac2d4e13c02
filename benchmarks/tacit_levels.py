"""What each level of `Tacit` brings: P@1, P@3, P@5 with what comes after it switched off.

    python benchmarks/tacit_levels.py --data bibtex delicious mediamill --rates 0 0.5 0.8
    python benchmarks/tacit_levels.py --plot docs/images/tacit_reliability.png --rates 0.8

Labels are hidden as on the board (`tacit bench missing`), and test labels are complete; beside it
the calibration error of the five best labels, of raw scores (clipped; those of a second look are no
shares, and left out) and of probabilities. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from unittest.mock import patch

import numpy as np

import tacit.methods.tacit
from tacit import Tacit
from tacit.bench.work import Work, percent, prepared
from tacit.labels import TopK
from tacit.metrics import calibration_error, precision_at_k, reliability

STAGES = {  # the highest level, and whether products are tried
    "ridge": (0, False),
    "and labels for each other": (1, False),
    "and products": (1, True),
    "and imputation": (2, True),
    "and a second look": (3, True),
}


def measured(work: Work, levels: int, products: bool) -> dict:
    start = time.perf_counter()
    tried = tacit.methods.tacit._PRODUCTS if products else 0
    with patch("tacit.methods.tacit._PRODUCTS", tried):
        model = Tacit(levels=levels, random_state=0).fit(work.X, work.said)
    seconds = time.perf_counter() - start
    top = model.top_k(work.X_test, 5)
    chances = model._loss.probability(top.scores)
    error = lambda values: percent(calibration_error(work.Y_test, TopK(top.indices, values)))
    looked = model.look_weights_ is not None
    errors = [None if looked else error(np.clip(top.scores, 0, 1)), error(chances)]
    return {
        "P@1/3/5": [percent(p) for p in precision_at_k(work.Y_test, top, (1, 3, 5))],
        "calibration before, after": errors,
        "fit s": round(seconds, 1),
        "report": str(model.report_).splitlines(),
    }


def drawn(names: list[str], rate: float, path: str) -> None:
    """Reliability of the five best labels of test rows: scores as they come, and probabilities."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.6), sharey=True)
    for ax, name in zip(np.atleast_1d(axes), names):
        work = prepared({"data": name, "mechanism": "positives", "rate": rate, "seed": 0})
        models = [Tacit(levels=m, random_state=0).fit(work.X, work.said) for m in (2, 3)]
        tops = [model.top_k(work.X_test, 5) for model in models]
        scores = tops[0]._replace(scores=np.clip(tops[0].scores, 0, 1))
        chances = tops[1]._replace(scores=models[1]._loss.probability(tops[1].scores))
        both = {"scores, clipped": scores, "probabilities": chances}
        ax.plot([0, 1], [0, 1], color="0.8", lw=1)
        for (label, top), colour in zip(both.items(), ("#b0622f", "#2f6fb0")):
            told = reliability(work.Y_test, top)
            some = told.entries > 0
            size = 4 + 40 * np.sqrt(told.entries[some] / told.entries.sum())
            ax.plot(told.probability[some], told.true[some], color=colour, lw=1.2, label=label)
            ax.scatter(told.probability[some], told.true[some], s=size, color=colour)
        ax.set(title=f"{name}, {rate:.0%} hidden", xlabel="told", xlim=(0, 1), ylim=(0, 1))
        print(name, "drawn", flush=True)
    np.atleast_1d(axes)[0].set_ylabel("true")
    np.atleast_1d(axes)[0].legend(frameon=False, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["bibtex", "delicious", "mediamill"])
    parser.add_argument("--rates", nargs="*", type=float, default=[0.0, 0.5, 0.8])
    parser.add_argument("--stages", nargs="*", type=int, default=list(range(len(STAGES))))
    parser.add_argument("--plot", metavar="PNG", help="draw reliability instead")
    options = parser.parse_args()
    if options.plot:
        drawn(options.data, options.rates[-1], options.plot)
        return
    found = {}
    for name in options.data:
        for rate in options.rates:
            cell = {"data": name, "mechanism": "positives", "rate": rate, "seed": 0}
            work = prepared(cell)
            for stage in (list(STAGES)[i] for i in options.stages):
                row = measured(work, *STAGES[stage])
                found[f"{name} {rate:.0%} {stage}"] = row
                print(name, f"{rate:.0%}", stage, row, flush=True)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
