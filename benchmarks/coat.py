"""Who rated what, and why: exposure on coat, scored on ratings of random items.

    python benchmarks/coat.py

290 users rated 24 coats they chose and 16 drawn for them; a rating of 4 or 5 is a yes. Models see
the yeses among the chosen coats (positive-only), P(said) = μσ(ψ), and are asked for σ(ψ) on the
drawn ones, where nobody chose. μ is 1, one a coat, or σ(m_l + xᵀB f_l) of the features of users and
coats; σ(ψ) has the features of coats in all three ("coats" of the table) or in none. Below them, μ
is told: the share of users who rated a coat, or logistic regression of who rated what on the same
features; ψ still sees the yeses alone. The last rows see the noes too.

Every model has the same 16 settings, of which the one with the largest likelihood of what is said
by a fifth of the users, held out, is taken; drawn ratings choose nothing (but the range of the grid
was moved once, after a trial that had also shown figures on them). Figures are means over three
seeds of that split. The seeds share the test, so their spread is not the error of a figure: the
interval of a difference is a bootstrap over users, of the scores averaged over seeds. 366 of the
4,640 drawn ratings are of coats that the user had also chosen; they count.

For rare labels the likelihood hardly knows μ from σ(ψ), and the prior decides: Beta(5, 1) draws μ_l
up, the normal prior of covariates draws μ to ½. Beta(5, 5) is there to tell the shape of μ from its
level, and so is μ that is told, whose level is right both times. The last line is JSON, also
written to `results/coat.json`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from tacit import LEML, GenEML
from tacit.datasets import load
from tacit.engines.exposure import Covariates
from tacit.labels import Labels
from tacit.metrics import auc_per_instance, ndcg_at_k

RESULTS = Path(__file__).with_name("results") / "coat.json"
RANKS = (2, 5)
GENEML = [
    {"rank": rank, "reg_u": u, "reg_v": v, "reg_w": w}
    for rank, u, v, w in product(RANKS, (1.0, 10.0), (3.0, 30.0), (1.0, 10.0))
]
LEML_ = [
    {"rank": rank, "reg": reg}
    for rank, reg in product(RANKS, (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
]
PASSES = 500  # after 50 exposures are still on their way
RESAMPLES = 500

console = Console(stderr=True)


@dataclass(frozen=True)
class Told(Covariates):
    """μ = σ(bias_l + xᵀ beta f_l) that is known, and stays."""

    beta: Any
    bias: Any

    def start(self, like: Any) -> dict[str, Any]:
        return {"beta": self.beta.astype(like.dtype), "bias": self.bias.astype(like.dtype)}

    def stepped(self, state: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return state


class ToldGenEML(GenEML):
    """GenEML that is told who rates what; it takes all that `exposure="covariates"` takes."""

    by: str

    def _exposure(self, problem: Any) -> Told:
        learned = super()._exposure(problem)
        return Told(learned.features, learned.n_features, learned.reg, *who_rated(self.by))


@cache
def who_rated(by: str) -> tuple[np.ndarray, np.ndarray]:
    """beta and bias, learned from who rated what: by "coat" or by "covariates"."""
    data: Any = load("coat")
    rated = known(data.Y)
    users, coats = (with_one(X) for X in (normalize(dense(data.X)), dense(data.extra["X_item"])))
    shape = users.shape[1], coats.shape[1]
    if by == "coat":
        return np.zeros(shape), logit(rated.mean(axis=0).clip(1e-3))
    pairs = np.einsum("ij,kl->ikjl", users, coats).reshape(rated.size, -1)
    found = LogisticRegression(fit_intercept=False, max_iter=500).fit(pairs, rated.ravel())
    return found.coef_.reshape(shape), np.zeros(len(coats))


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def with_one(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


class Method(NamedTuple):
    name: str
    model: Any
    grid: list[dict[str, float]]
    read: Any = Labels.as_positive_only
    coats: bool = False  # whether σ(ψ) has the features of coats


def methods() -> list[Method]:
    geneml = lambda **settings: GenEML(max_iter=PASSES, tol=0.0, **settings)
    masked = lambda Y: Y

    def told(by: str) -> ToldGenEML:
        model = ToldGenEML(max_iter=PASSES, tol=0.0, exposure="covariates")
        model.by = by
        return model

    return [
        Method("no exposure", geneml(exposure=None), GENEML),
        Method("μ by coat", geneml(exposure="labels"), GENEML),
        Method("no exposure", geneml(exposure=None), GENEML, coats=True),
        Method("μ by coat", geneml(exposure="labels"), GENEML, coats=True),
        Method("μ by coat, Beta(5, 5)", geneml(alpha2=5.0), GENEML, coats=True),
        Method("μ by covariates", geneml(exposure="covariates"), GENEML, coats=True),
        Method("μ told, by coat", told("coat"), GENEML, coats=True),
        Method("μ told, by covariates", told("covariates"), GENEML, coats=True),
        Method("noes known", geneml(), GENEML, masked, coats=True),
        Method("noes known, LEML", LEML(loss="logistic", max_iter=PASSES), LEML_, masked),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    data: Any = load("coat")
    results, scores = [], []
    for method in methods():
        runs = [run(method, data, seed) for seed in range(options.seeds)]
        about = {"method": method.name, "coats": "yes" if method.coats else "no"}
        figures = {
            name: round(float(np.mean([run[0][name] for run in runs])), 4) for name in runs[0][0]
        }
        results.append(about | figures | {"settings": [run[1] for run in runs]})
        scores.append(np.mean([run[2] for run in runs], axis=0))
        console.print(results[-1])
    by_coat, flat, covariates, told_by_coat, told = scores[3:8]
    differences = {
        "covariates - by coat": difference(data.Y_test, covariates, by_coat),
        "covariates - Beta(5, 5)": difference(data.Y_test, covariates, flat),
        "covariates - by coat, both told": difference(data.Y_test, told, told_by_coat),
    }
    table = Table(*(name for name in results[0] if name != "settings"))
    for result in results:
        table.add_row(*(str(value) for name, value in result.items() if name != "settings"))
    console.print(table, differences)
    line = json.dumps({"results": results, "differences": differences}, ensure_ascii=False)
    RESULTS.write_text(line + "\n")
    print(line)


def run(method: Method, data: Any, seed: int) -> tuple[dict, dict, np.ndarray]:
    """The figures of the best setting, that setting, and the logits of being true."""
    labels = method.read(data.Y)
    X, X_held, Y, Y_held = train_test_split(data.X, labels, test_size=0.2, random_state=seed)
    given = {"label_features": data.extra["X_item"]} if method.coats else {}
    losses = []
    model = method.model.set_params(random_state=seed)
    for settings in method.grid:
        model.set_params(**settings).fit(X, Y, **given)
        losses.append(loss(Y_held, said(model, X_held)))
    best = method.grid[int(np.argmin(losses))]
    model.set_params(**best).fit(data.X, labels, **given)
    true, logits = model.predict_proba(data.X), model.decision_function(data.X)
    truth, rated = data.Y_test, known(data.Y_test)
    figures = {
        "held out": min(losses),
        "AUC": roc_auc_score(*at(truth, logits)),
        "AUC by user": auc_per_instance(truth, logits),
        "nDCG@5": ndcg_at_k(truth, logits, 5),
        "log-loss": loss(truth, true),
        "log-loss, said": loss(truth, said(model, data.X)),
        "mean P(true)": true[rated].mean(),
        "mean μ": (said(model, data.X) / true).mean(),
        "spread of μ": (said(model, data.X) / true).std(),
    }
    return figures, best, logits


def said(model: Any, X: Any) -> np.ndarray:
    what = {"what": "said"} if isinstance(model, GenEML) else {}
    return model.predict_proba(X, **what)


def known(Y: Labels) -> np.ndarray:
    """Mask of the entries that count: the observed ones, or all."""
    return np.ones(Y.shape, bool) if Y.observed is None else Y.observed.toarray()


def at(Y: Labels, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return Y.positives.toarray()[known(Y)], scores[known(Y)]


def loss(Y: Labels, probability: np.ndarray) -> float:
    truth, probability = at(Y, probability)
    return float(log_loss(truth, probability.astype(np.float64)))


def difference(truth: Labels, ours: np.ndarray, theirs: np.ndarray) -> dict[str, list[float]]:
    """5 % and 95 % quantiles of ours less theirs, over users drawn with replacement."""
    rng = np.random.default_rng(0)
    gains: dict[str, list[float]] = {"AUC": [], "AUC by user": [], "nDCG@5": [], "log-loss": []}
    for _ in range(RESAMPLES):
        users = rng.integers(len(truth), size=len(truth))
        Y, a, b = truth[users], ours[users], theirs[users]
        gains["AUC"].append(roc_auc_score(*at(Y, a)) - roc_auc_score(*at(Y, b)))
        gains["AUC by user"].append(auc_per_instance(Y, a) - auc_per_instance(Y, b))
        gains["nDCG@5"].append(float(ndcg_at_k(Y, a, 5)) - float(ndcg_at_k(Y, b, 5)))
        gains["log-loss"].append(loss(Y, expit(a)) - loss(Y, expit(b)))
    return {name: np.quantile(gain, [0.05, 0.95]).round(4).tolist() for name, gain in gains.items()}


if __name__ == "__main__":
    main()
