"""Find tags that nobody gave: hide a third of Debian's tags, learn from the rest, look for them.

python examples/complete_tags.py
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from tacit import LEML
from tacit.baselines import Popularity
from tacit.datasets import load
from tacit.missing import Positives, hide


def main() -> None:
    """Count how many hidden tags come back among five guesses for each package."""
    debian = load("debian")
    X = TfidfTransformer(sublinear_tf=True).fit_transform(debian.X)
    shown, hidden = hide(debian.Y, Positives(1 / 3, keep_one=True), random_state=0)
    print(f"{hidden.nnz:,} tags are hidden; what is left is {shown!r}\n")

    leml = LEML(rank=30, reg=3.0, max_iter=3, random_state=0)
    for model in (Popularity(), leml):
        # Most of what was not said is indeed a no, so reading it as one is a fair start.
        model.fit(X, shown.as_complete())
        guessed = model.complete(X, shown, k=5)
        found = np.sum(hidden[guessed.row, guessed.label]) / hidden.nnz
        print(f"{type(model).__name__:<12}finds {found:.0%} of the hidden tags")

    print("\nLEML's surest guesses that were not hidden: nobody gave these tags.")
    names, tags = np.asarray(debian.row_names), np.asarray(debian.Y.classes)
    new = hidden[guessed.row, guessed.label] == 0
    for row, label in list(zip(guessed.row[new], guessed.label[new]))[:10]:
        print(f"  {names[row]:<38}{tags[label]}")


if __name__ == "__main__":
    main()
