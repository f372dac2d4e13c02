"""Seconds for the metrics, beside a loop over rows and scikit-learn, in one run.

    python benchmarks/metrics.py

The first table has the size of a tagging problem (63,509 × 21,374, 153,000 positives, Zipf labels)
with a top 5 of which some are right; the second a dense score array of 2,000 × 4,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import metrics as sk

from tacit import Labels, TopK, metrics

N, L, POSITIVES, K = 63_509, 21_374, 153_000, 5


def main() -> None:
    truth, top = tagging_problem(np.random.default_rng(0))
    p = metrics.propensities(truth)
    at_k = {
        "precision_at_k": lambda: metrics.precision_at_k(truth, top, K),
        "ndcg_at_k": lambda: metrics.ndcg_at_k(truth, top, K),
        "psp_at_k": lambda: metrics.psp_at_k(truth, top, p, K),
    }
    print(f"{N:,} × {L:,}, {truth.positives.nnz:,} positives, top {K}")
    ours = [seconds(f) for f in at_k.values()]
    theirs = seconds(lambda: loop_over_rows(truth, top, p), repeat=1)
    figures: Any = [f() for f in at_k.values()]
    np.testing.assert_allclose(figures, loop_over_rows(truth, top, p))
    for name, s in zip(at_k, ours):
        print(f"  {name:<18}{s:8.3f} s")
    print(f"  all three         {sum(ours):8.3f} s;  loop over rows {theirs:.3f} s", end="")
    print(f"  ({theirs / sum(ours):.1f} times ours)")
    indicator = sp.csr_array(
        (np.ones(N * K), top.indices.ravel(), np.arange(0, N * K + 1, K)), shape=(N, L)
    )
    Y = truth.to_sparse()
    compare(
        "micro_f1",
        lambda: metrics.micro_f1(truth, indicator),
        lambda: sk.f1_score(Y, indicator, average="micro"),
    )

    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2000, 4000))
    Y = (rng.random(scores.shape) < 0.002).astype(int)
    Y[:, 0] = 1  # scikit-learn's nDCG counts rows without labels, ours does not
    print("2,000 × 4,000 dense scores")
    compare(
        "ndcg_at_k",
        lambda: metrics.ndcg_at_k(Y, scores, K),
        lambda: sk.ndcg_score(Y, scores, k=K, ignore_ties=True),
    )
    compare(
        "auc_per_instance",
        lambda: metrics.auc_per_instance(Y, scores),
        lambda: np.mean([sk.roc_auc_score(y, s) for y, s in zip(Y, scores)]),
    )
    compare(
        "label_ranking_ap",
        lambda: metrics.label_ranking_ap(Y, scores),
        lambda: sk.label_ranking_average_precision_score(Y, scores),
    )
    compare(
        "ranking_loss",
        lambda: metrics.ranking_loss(Y, scores),
        lambda: sk.label_ranking_loss(Y, scores),
    )


def tagging_problem(rng: np.random.Generator) -> tuple[Labels, TopK]:
    popularity = 1 / np.arange(1, L + 1)
    popularity /= popularity.sum()
    cells = rng.integers(0, N, 2 * POSITIVES) * L + rng.choice(L, 2 * POSITIVES, p=popularity)
    cells = rng.permutation(np.unique(cells))[:POSITIVES]
    positives = sp.csr_array((np.ones(POSITIVES), np.divmod(cells, L)), shape=(N, L))
    truth = Labels.complete(positives)
    # A random label of each fifth of the catalogue, one of them right in a row that has any.
    listed = rng.integers(0, L // K, (N, K)) + np.arange(K) * (L // K)
    some = np.flatnonzero(np.diff(truth.positives.indptr))
    right = truth.positives.indices[truth.positives.indptr[some]]
    listed[some, right * K // L % K] = right
    return truth, TopK(listed, np.tile(np.arange(K, 0, -1.0), (N, 1)))


def loop_over_rows(truth: Labels, top: TopK, p: np.ndarray) -> Any:
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
    return [precision / N, float(np.mean(ndcg)), got / best]


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    np.testing.assert_allclose(ours(), theirs())
    a, b = seconds(ours), seconds(theirs)
    print(f"  {name:<18}{a:8.3f} s;  scikit-learn {b:.3f} s  ({b / a:.1f} times ours)")


def seconds(f: Callable[[], Any], repeat: int = 3) -> float:
    """The best of a few runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
