"""Count what nobody said: how many true labels are missing, and of which.

python examples/how_much_is_missing.py
"""

import numpy as np

from tacit import MPU, Labels
from tacit.missing import estimate

ROWS, FEATURES = 5_000, 10
SAID = np.array([0.3, 0.3, 0.3, 0.8, 0.8, 0.8])  # the share of each label that people write down


def main() -> None:
    """Learn the rates from what was said alone, and compare with what is true."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES))
    scores = 3 * X @ rng.standard_normal((FEATURES, len(SAID)))
    true = rng.random(scores.shape) < 1 / (1 + np.exp(-scores))
    said = Labels.positive_only(true & (rng.random(true.shape) < SAID))
    print(said, "\n")

    model = MPU(levels=1, c="learned", solver="newton", normalize=None, random_state=0)
    found = estimate(model.fit(X, said), X, said)
    for label, rate in enumerate(found.rates.c):
        print(f"label {label}: said in {rate:.0%} of the rows where it is true ({SAID[label]:.0%})")

    # Labels have rates of their own here, so what is missing in all is the sum of theirs.
    missing, low, high = (counts.sum() for counts in (found.missing, found.low, found.high))
    truth = true.sum() - found.total_said
    print(f"\nmissing in all: {missing:,.0f}, between {low:,.0f} and {high:,.0f}; truly {truth:,}")
    print("the truth lies within:", bool(low < truth < high))


if __name__ == "__main__":
    main()
