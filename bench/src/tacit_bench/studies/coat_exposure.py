"""Who rated what, and why: exposure on coat, scored on ratings of random items.

290 users rated 24 coats they chose and 16 drawn for them; a rating of 4 or 5 is a yes. Models see
the yeses among the chosen coats, P(said) = μσ(ψ), and are asked for σ(ψ) on the drawn ones, where
nobody chose (366 of these 4,640 are of coats that the user had also chosen; they count). μ is 1,
one a coat, or σ(m_l + xᵀB f_l) of the features of users and coats; σ(ψ) has the features of coats
where `coats`. Where μ is told it is known: the share of users who rated a coat, or logistic
regression of who rated what on the same features; ψ still sees the yeses alone. "noes known" sees
the noes too.

Every model has the same 16 settings, of which the one with the largest likelihood of what is said
by a fifth of the users, held out, is taken; drawn ratings choose nothing (but the range of the grid
was moved once, after a split that had also shown figures on them). Figures are means over seeds of
that split. The seeds share the test, so their spread is not the error of a figure: a cell with
"less" has the 5 % and 95 % quantiles of the difference of two models, over users drawn with
replacement, of the scores averaged over seeds.

For rare labels the likelihood hardly knows μ from σ(ψ), and the prior decides: Beta(5, 1) draws μ_l
up, the normal prior of covariates draws μ to ½. Beta(5, 5) is there to tell the shape of μ from its
level, and so is μ that is told, whose level is right both times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.preprocessing import normalize

from tacit import LEML, GenEML
from tacit.datasets import Dataset
from tacit.engines.exposure import CovariateExposure
from tacit.labels import Labels
from tacit.metrics import auc_per_instance, ndcg_at_k
from tacit_bench.board import Cell, Row
from tacit_bench.study import Study, tabulate
from tacit_bench.work import loaded

__all__ = ["STUDY"]


@dataclass(frozen=True)
class Told(CovariateExposure):
    """μ = σ(bias_l + xᵀ beta f_l) that is known, and stays."""

    beta: Any
    bias: Any

    def start(self, like: Any) -> dict[str, Any]:
        return {"beta": self.beta.astype(like.dtype), "bias": self.bias.astype(like.dtype)}

    def stepped(self, state: dict[str, Any], *rest: Any) -> dict[str, Any]:
        return state


class ToldGenEML(GenEML):
    """GenEML that is told who rates what; it takes all that `exposure="covariates"` takes."""

    told: tuple[np.ndarray, np.ndarray]

    def _exposure(self, problem: Any) -> Told:
        learned: Any = super()._exposure(problem)
        return Told(learned.features, learned.n_features, learned.reg, *self.told)


METHODS: dict[str, Any] = {
    "no exposure": GenEML(exposure=None, tol=0.0),
    "μ by coat": GenEML(tol=0.0),
    "μ by coat, Beta(5, 5)": GenEML(alpha2=5.0, tol=0.0),
    "μ by covariates": GenEML(exposure="covariates", tol=0.0),
    "μ told, by coat": ToldGenEML(exposure="covariates", tol=0.0),
    "μ told, by covariates": ToldGenEML(exposure="covariates", tol=0.0),
    "noes known": GenEML(tol=0.0),
    "noes known, LEML": LEML(loss="logistic"),
}
WITHOUT_COATS = ("no exposure", "μ by coat", "noes known, LEML")
PAIRS = (
    ("μ by covariates", "μ by coat"),
    ("μ by covariates", "μ by coat, Beta(5, 5)"),
    ("μ told, by covariates", "μ told, by coat"),
)
RANKS, STEPS = (2, 5), (1.0, 10.0)
GENEML = ParameterGrid({"rank": RANKS, "reg_u": STEPS, "reg_v": (3.0, 30.0), "reg_w": STEPS})
LOGISTIC = ParameterGrid({"rank": RANKS, "reg": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)})


def cells() -> list[Cell]:
    # After 50 passes exposures are still on their way.
    about = {"data": "coat", "passes": 500, "settings": 16, "seeds": 3}
    coats = about | {"coats": True}
    return [
        *(about | {"coats": False, "method": name} for name in WITHOUT_COATS),
        *(coats | {"method": name} for name in METHODS if name != "noes known, LEML"),
        *(coats | {"method": name, "less": other, "resamples": 500} for name, other in PAIRS),
    ]


def measure(cell: Cell) -> dict[str, Any]:
    """The figures of a method, or what it has more than another."""
    data: Any = _random() if cell["data"] == "random" else loaded(cell["data"])
    figures, logits = _averaged(data, cell["method"], cell)
    if "less" in cell:
        _, theirs = _averaged(data, cell["less"], cell)
        return _difference(data.Y_test, logits, theirs, cell["resamples"])
    return figures


def _averaged(data: Any, name: str, cell: Cell) -> tuple[dict[str, Any], np.ndarray]:
    """The means over the seeds: of the figures, and of the logits of being true."""
    figures, settings, logits = zip(*(_run(data, name, cell, s) for s in range(cell["seeds"])))
    means = {name: round(float(np.mean([f[name] for f in figures])), 4) for name in figures[0]}
    return means | {"settings": list(settings)}, np.mean(logits, axis=0)


def _run(data: Any, name: str, cell: Cell, seed: int) -> tuple[dict, dict, np.ndarray]:
    """The figures of the best setting, that setting, and the logits of being true."""
    model = clone(METHODS[name]).set_params(max_iter=cell["passes"], random_state=seed)
    if isinstance(model, ToldGenEML):
        model.told = _who_rated(data, by_coat=name == "μ told, by coat")
    grid = list(LOGISTIC if isinstance(model, LEML) else GENEML)[: cell["settings"]]
    labels = data.Y if name.startswith("noes known") else data.Y.as_positive_only()
    X, X_held, Y, Y_held = train_test_split(data.X, labels, test_size=0.2, random_state=seed)
    given = {"label_features": data.extra["X_item"]} if cell["coats"] else {}
    losses = []
    for settings in grid:
        model.set_params(**settings).fit(X, Y, **given)
        losses.append(_loss(Y_held, model.predict_proba(X_held, what="said")))
    best = grid[int(np.argmin(losses))]
    model.set_params(**best).fit(data.X, labels, **given)
    true, said = (model.predict_proba(data.X, what=what) for what in ("true", "said"))
    logits, truth = model.decision_function(data.X), data.Y_test
    figures = {
        "held out": min(losses),
        **_figures(truth, logits),
        "log-loss, said": _loss(truth, said),
        "mean P(true)": true[_known(truth)].mean(),
        "mean μ": (said / true).mean(),
        "spread of μ": (said / true).std(),
    }
    return figures, best, logits


def _who_rated(data: Any, by_coat: bool) -> tuple[np.ndarray, np.ndarray]:
    """beta and bias, learned from who rated what: by coat, or by the features of both."""
    rated = _known(data.Y)
    with_one = lambda X: np.hstack([X.toarray(), np.ones((X.shape[0], 1))]).astype(float)
    users, coats = with_one(normalize(data.X)), with_one(data.extra["X_item"])
    shape = users.shape[1], coats.shape[1]
    if by_coat:
        return np.zeros(shape), logit(rated.mean(axis=0).clip(1e-3))
    pairs = np.einsum("ij,kl->ikjl", users, coats).reshape(rated.size, -1)
    found = LogisticRegression(fit_intercept=False, max_iter=500).fit(pairs, rated.ravel())
    return found.coef_.reshape(shape), np.zeros(len(coats))


def _known(Y: Labels) -> np.ndarray:
    """Mask of the entries that count: the observed ones, or all."""
    return np.ones(Y.shape, bool) if Y.observed is None else Y.observed.toarray()


def _at(Y: Labels, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return Y.positives.toarray()[_known(Y)], scores[_known(Y)].astype(np.float64)


def _loss(Y: Labels, probability: np.ndarray) -> float:
    return float(log_loss(*_at(Y, probability)))


def _figures(Y: Labels, logits: np.ndarray) -> dict[str, float]:
    return {
        "AUC": float(roc_auc_score(*_at(Y, logits))),
        "AUC by user": float(auc_per_instance(Y, logits)),
        "nDCG@5": float(np.asarray(ndcg_at_k(Y, logits, 5))),
        "log-loss": _loss(Y, expit(logits)),
    }


def _difference(
    truth: Labels, ours: np.ndarray, theirs: np.ndarray, resamples: int
) -> dict[str, list[float]]:
    """5 % and 95 % quantiles of ours less theirs, over users drawn with replacement."""
    rng, gains = np.random.default_rng(0), []
    for _ in range(resamples):
        users = rng.integers(len(truth), size=len(truth))
        mine, other = (_figures(truth[users], logits[users]) for logits in (ours, theirs))
        gains.append([mine[name] - other[name] for name in mine])
    return dict(zip(mine, np.quantile(gains, [0.05, 0.95], axis=0).round(4).T.tolist()))


def _random() -> Dataset:
    """80 users who rated some of 12 coats by their features, and were asked about others."""
    rng = np.random.default_rng(0)
    users, coats = (rng.standard_normal((size, 4)).astype(np.float32) for size in (80, 12))
    liked, chosen = (users @ rng.standard_normal((4, 4)) @ coats.T > least for least in (0, 1))
    drawn = rng.random(liked.shape) < 0.5
    Y, Y_test = (Labels.masked(liked & rated, rated) for rated in (chosen, drawn))
    X, X_item = sp.csr_array(users), sp.csr_array(coats)
    return Dataset("random", X, Y, X, Y_test, extra={"X_item": X_item})


def show(rows: Sequence[Row], console: Console) -> None:
    """All but the settings that were chosen."""
    told = lambda found: {name: value for name, value in found.items() if name != "settings"}
    short = [row | {"found": told(row["found"])} if "found" in row else row for row in rows]
    tabulate(short, console)


LITTLE = {"data": "random", "passes": 3, "settings": 2, "seeds": 1, "coats": True}

STUDY = Study(
    "coat_exposure",
    "Does it help to know, or to learn from features, who rated what?",
    cells,
    measure,
    tiny=[
        LITTLE | {"method": "μ told, by covariates"},
        LITTLE | {"method": "μ by covariates", "less": "μ by coat", "resamples": 20},
    ],
    show=show,
)
