"""The metrics beside what one would use instead: scikit-learn, or a loop over the rows.

Both are given the same labels and must find the same figure. The problem of a top 5 has the size
of tagging (labels follow Zipf, and some of the five are right); that of dense scores is smaller,
since scikit-learn lays out all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import metrics as sk

from tacit import Labels, TopK, metrics
from tacit_bench.board import Cell
from tacit_bench.study import Study
from tacit_bench.timing import quickest

__all__ = ["STUDY"]

K = 5
TAGGING = {"rows": 63_509, "labels": 21_374, "positives": 153_000}
DENSE = {"rows": 2_000, "labels": 4_000}

Pair = tuple[Callable[[], Any], Callable[[], Any], str]
"""Ours, theirs, and who they are."""


def cells() -> list[Cell]:
    return [
        {"metric": name} | (TAGGING if name in OF_TOP_K else DENSE) for name in OF_TOP_K | OF_SCORES
    ]


def measure(cell: Cell) -> dict[str, Any]:
    """Seconds of ours and of theirs, once both have found the same."""
    rng, n, n_labels, name = np.random.default_rng(0), cell["rows"], cell["labels"], cell["metric"]
    if name in OF_TOP_K:
        ours, theirs, who = OF_TOP_K[name](*_tagging(rng, n, n_labels, cell["positives"]))
    else:
        Y = (rng.random((n, n_labels)) < 0.002).astype(int)
        Y[:, 0] = 1  # scikit-learn's nDCG counts rows without labels, ours does not
        ours, theirs, who = OF_SCORES[name](Y, rng.normal(size=Y.shape))
    np.testing.assert_allclose(ours(), theirs())
    seconds, others = quickest(ours), quickest(theirs)
    return {
        "beside": who,
        "ours s": round(seconds, 4),
        "theirs s": round(others, 4),
        "theirs / ours": round(others / seconds, 1),
    }


def _at_k(truth: Labels, top: TopK) -> Pair:
    p = metrics.propensities(truth)
    ours = lambda: [
        metrics.precision_at_k(truth, top, K),
        metrics.ndcg_at_k(truth, top, K),
        metrics.psp_at_k(truth, top, p, K),
    ]
    return ours, lambda: _loop_over_rows(truth, top, p), "a loop over rows"


def _micro_f1(truth: Labels, top: TopK) -> Pair:
    shape, pointer = truth.shape, np.arange(0, top.indices.size + 1, K)
    said = sp.csr_array((np.ones(top.indices.size), top.indices.ravel(), pointer), shape=shape)
    Y = truth.to_sparse()
    return (
        lambda: metrics.micro_f1(truth, said),
        lambda: sk.f1_score(Y, said, average="micro"),
        "scikit-learn",
    )


def _beside(
    ours: Callable[..., Any], theirs: Callable[..., Any]
) -> Callable[[np.ndarray, np.ndarray], Pair]:
    return lambda Y, F: (lambda: ours(Y, F), lambda: theirs(Y, F), "scikit-learn")


OF_TOP_K: dict[str, Callable[[Labels, TopK], Pair]] = {
    "P@5, nDCG@5 and PSP@5": _at_k,
    "micro_f1": _micro_f1,
}
OF_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], Pair]] = {
    "ndcg_at_k": _beside(
        lambda Y, F: metrics.ndcg_at_k(Y, F, K),
        lambda Y, F: sk.ndcg_score(Y, F, k=K, ignore_ties=True),
    ),
    "auc_per_instance": _beside(
        metrics.auc_per_instance,
        lambda Y, F: np.mean([sk.roc_auc_score(y, f) for y, f in zip(Y, F)]),
    ),
    "label_ranking_ap": _beside(metrics.label_ranking_ap, sk.label_ranking_average_precision_score),
    "ranking_loss": _beside(metrics.ranking_loss, sk.label_ranking_loss),
}


def _tagging(rng: np.random.Generator, n: int, n_labels: int, size: int) -> tuple[Labels, TopK]:
    popularity = 1 / np.arange(1, n_labels + 1)
    drawn = rng.choice(n_labels, 2 * size, p=popularity / popularity.sum())
    entries = rng.permutation(np.unique(rng.integers(0, n, 2 * size) * n_labels + drawn))[:size]
    where = np.divmod(entries, n_labels)
    truth = Labels.complete(sp.csr_array((np.ones(len(entries)), where), shape=(n, n_labels)))
    # A random label of each fifth of the catalogue, one of them right in a row that has any.
    fifth = n_labels // K
    listed = rng.integers(0, fifth, (n, K)) + np.arange(K) * fifth
    some = np.flatnonzero(np.diff(truth.positives.indptr))
    right = truth.positives.indices[truth.positives.indptr[some]]
    listed[some, np.minimum(right // fifth, K - 1)] = right
    return truth, TopK(listed, np.tile(np.arange(K, 0, -1.0), (n, 1)))


def _loop_over_rows(truth: Labels, top: TopK, p: np.ndarray) -> list[float]:
    """P@k, nDCG@k and PSP@k as one would write them first."""
    precision, ndcg, got, best = 0.0, [], 0.0, 0.0
    gains = 1 / np.log2(np.arange(2, K + 2))
    pattern = truth.positives
    for i, listed in enumerate(top.indices.tolist()):
        relevant = set(pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].tolist())
        hits = [j in relevant for j in listed]
        precision += sum(hits) / K
        got += sum(1 / p[j] for j in listed if j in relevant)
        best += sum(sorted((1 / p[j] for j in relevant), reverse=True)[:K])
        if relevant:
            ndcg.append(sum(gains[hits]) / gains[: len(relevant)].sum())
    return [precision / len(top.indices), float(np.mean(ndcg)), got / best]


STUDY = Study(
    "metrics",
    "How fast are the metrics, beside scikit-learn and beside a loop over rows?",
    cells,
    measure,
    tiny=[
        {"metric": "P@5, nDCG@5 and PSP@5", "rows": 500, "labels": 300, "positives": 1_200},
        {"metric": "micro_f1", "rows": 500, "labels": 300, "positives": 1_200},
        {"metric": "auc_per_instance", "rows": 100, "labels": 300},
    ],
)
