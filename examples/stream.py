"""Learn from rows as they come, and forget them: one `partial_fit` a day.

python examples/stream.py
"""

from collections.abc import Iterator

import numpy as np

from tacit import GenEML, Labels
from tacit.metrics import precision_at_k

DAYS, ROWS, FEATURES, LABELS, RANK = 3, 2_000, 30, 40, 5


def days() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The features of a day's rows, and the labels that are true of them."""
    rng = np.random.default_rng(0)
    tastes = rng.standard_normal((FEATURES, RANK)) @ rng.standard_normal((RANK, LABELS))
    while True:
        X = rng.standard_normal((ROWS, FEATURES))
        yield X, X @ tastes > 15


def main() -> None:
    """Three days of learning from half of what is true, each tested on the rows of one more."""
    stream = days()
    X_test, Y_test = next(stream)
    rng = np.random.default_rng(1)
    model = GenEML(rank=RANK, normalize=None, random_state=0)
    precisions = []
    for day in range(1, DAYS + 1):
        X, true = next(stream)
        said = true & (rng.random(true.shape) < 0.5)  # half of it is never written down
        model.partial_fit(X, Labels.positive_only(said))
        precisions.append(precision_at_k(Y_test, model.top_k(X_test, 3), k=3))
        print(f"day {day}: P@3 {precisions[-1]:.3f} after {day * ROWS:,} rows, none of them kept")
    print("better after each:", precisions == sorted(precisions))


if __name__ == "__main__":
    main()
