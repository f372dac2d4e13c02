"""The contract of every method, as checks that any method can be held to.

    from tacit.testing import CHECKS
    @pytest.mark.parametrize("check", CHECKS)
    def test_contract(check):
        check(MyMethod(rank=3, tol=0, random_state=0), "complete")

Give an estimator whose fit is tight: checks that compare two fits do so to 1e-4 of the scores'
scale, because inner solvers may stop a step apart. Checks that need no second fit are exact.

scikit-learn's own checks run as for any estimator, and those that must fail are named:

    from sklearn.utils.estimator_checks import check_estimator
    check_estimator(MyMethod(), expected_failed_checks=expected_failures(MyMethod()))

`check_noes_help` is for methods that learn from noes among silence: give it an estimator as a user
would set it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone

import tacit.saved
from tacit.baselines import Ridge
from tacit.blocks import MemoryBlocks, Rows, write_shards
from tacit.datasets import Dataset
from tacit.estimators import Completion
from tacit.labels import Labels
from tacit.metrics import ndcg_at_k
from tacit.missing import Positives, hide

__all__ = [
    "CHECKS",
    "BesideRidge",
    "beside_tuned_ridge",
    "check_beside_tuned_ridge",
    "check_noes_help",
    "expected_failures",
    "problem",
]

_SURER = 0.3  # points of nDCG@5 that noes at random may cost by chance

POINTS, TIMES = 2.0, 20.0
"""How far below tuned ridge a method may be with its defaults, and how much longer it may take.

For sets of some thousand rows or more: of a few hundred, λ decides, and no default can know it.
"""

RIDGE_REGS = (0.3, 1.0, 3.0, 10.0, 30.0)
_A_MOMENT = 1.0  # seconds: nobody minds twenty times what takes less


def problem(kind: str, seed: int = 0) -> tuple[sp.csr_array, Labels]:
    """A small problem with a planted low-rank structure, an empty row and an empty feature.

    Of kind "reviewed" its labels are positive-only, and somebody said no to some of the silence.
    """
    rng = np.random.default_rng(seed)
    n, d, n_labels, rank = 60, 15, 8, 3
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    X[7], X[:, 2] = 0, 0
    Z = X @ rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n_labels))
    Y = (Z > 0.2).astype(np.int8)
    names = [f"label {j}" for j in range(n_labels)]
    if kind == "masked":
        observed = rng.random(Y.shape) < 0.7
        return sp.csr_array(X), Labels.masked(Y * observed, observed, classes=names)
    if kind == "complete":
        return sp.csr_array(X), Labels.complete(Y, classes=names)
    noes = (rng.random(Y.shape) < 0.2) * (1 - Y) if kind == "reviewed" else None
    return sp.csr_array(X), Labels.positive_only(Y, no=noes, classes=names)


def check_rows_in_blocks_or_on_disk_give_the_same_model(estimator: Any, kind: str) -> None:
    """Where blocks decide which rows meet in a batch or fold, where they lie is all one."""
    X, Y = problem(kind)
    rows = Rows(X, Y)
    cut = lambda n_blocks: (
        clone(estimator).fit(MemoryBlocks.from_rows(rows, n_blocks)).decision_function(X)
    )
    dealt = estimator.deals_rows
    whole = cut(3) if dealt else _scores(estimator, X, Y, X)
    for n_blocks in () if dealt else (2, 5):
        _close(cut(n_blocks), whole)
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder, ((part.X, part.labels) for part in rows.cut(3)))
        _close(clone(estimator).fit(shards).decision_function(X), whole)


def check_every_device_gives_the_same_model(estimator: Any, kind: str) -> None:
    if "device" not in estimator.get_params():
        return
    X, Y = problem(kind)
    # In a row without features labels of equal frequency tie. Devices round differently, which
    # breaks such ties, and who chooses by what ranks best then chooses otherwise.
    some = np.diff(X.indptr) > 0
    X, Y = X[some], Y[some]
    for device in _other_devices():
        other = clone(estimator).set_params(device=device)
        _close(_scores(other, X, Y, X), _scores(estimator, X, Y, X))


def check_sparse_and_dense_features_give_the_same_model(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    _close(_scores(estimator, X.toarray(), Y, X.toarray()), _scores(estimator, X, Y, X))


def check_the_order_of_rows_does_not_matter(estimator: Any, kind: str) -> None:
    """Where rows are dealt into folds it does: by which, a row's own labels stay out of its way."""
    if estimator.deals_rows == "folds":
        return
    X, Y = problem(kind)
    order = np.random.default_rng(1).permutation(X.shape[0])
    _close(_scores(estimator, X[order], Y[order], X), _scores(estimator, X, Y, X))


def check_permuting_labels_permutes_scores(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    order = np.random.default_rng(1).permutation(Y.n_labels)
    permuted = _with_columns(Y, lambda pattern: pattern[:, order])
    _close(_scores(estimator, X, permuted, X), _scores(estimator, X, Y, X)[:, order])


def check_the_same_seed_gives_the_identical_model(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    assert_array_equal(_scores(estimator, X, Y, X), _scores(estimator, X, Y, X))


def check_fit_changes_neither_data_nor_parameters(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    before, params = (X.copy(), Y[:]), dict(estimator.get_params())
    fitted = clone(estimator).fit(X, Y)
    assert_array_equal(X.toarray(), before[0].toarray())
    assert before[1] == Y, "fit changed the labels"
    assert fitted.get_params() == params, "fit changed a parameter"


def check_top_k_agrees_with_the_scores(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X, Y)
    scores, top = fitted.decision_function(X), fitted.top_k(X, 4)
    assert_array_equal(top.indices, np.argsort(-scores, axis=1, kind="stable")[:, :4])
    assert_allclose(top.scores, np.take_along_axis(scores, top.indices, 1), rtol=1e-12)


def check_predict_is_where_the_probability_passes_the_threshold(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X, Y)
    probability = fitted.predict_proba(X)
    assert ((probability >= 0) & (probability <= 1)).all(), "a probability outside [0, 1]"
    assert_array_equal(fitted.predict(X).toarray(), probability > fitted.threshold)
    best = fitted.set_params(k=2).predict(X)
    assert_array_equal(np.diff(best.indptr), 2)
    assert_array_equal(best.toarray().nonzero()[1].reshape(-1, 2), np.sort(fitted.top_k(X, 2)[0]))


def check_complete_offers_only_what_was_not_said_best_first(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X, Y)
    known = Y.said()
    said = (Y.positives if known is None else known).toarray()
    found = fitted.complete(X, Y, k=3)
    assert (np.diff(found.probability) <= 0).all(), "completions are not sorted"
    assert ((found.probability >= 0) & (found.probability <= 1)).all(), "not a probability"
    best, every = _laid_out(found, Y), _laid_out(fitted.complete(X, Y, k=Y.n_labels), Y)
    assert_array_equal(np.isfinite(every), ~said, "candidates are not what was not said")
    assert (np.isfinite(best).sum(axis=1) <= 3).all(), "more than k completions of one row"
    assert_allclose(np.sort(best)[:, -3:], np.sort(every)[:, -3:], err_msg="not the best of a row")
    every = _laid_out(fitted.complete(X, Y, k=Y.n_labels, fold_in=False), Y)  # by features alone
    wanted = fitted.predict_proba(X)
    if fitted.said_rates_ is not None and Y.observed is None:
        heard = fitted.predict_proba(X, what="said")
        if (heard < wanted).any():  # not all were asked: P(true | silence) by Bayes' rule
            wanted = (wanted - heard) / (1 - heard)
    assert_allclose(every, np.where(said, -np.inf, wanted), rtol=1e-9, atol=1e-12)


def check_a_said_no_is_never_proposed_and_travels_with_the_rows(estimator: Any, kind: str) -> None:
    if kind == "positive-only":
        check_complete_offers_only_what_was_not_said_best_first(estimator, "reviewed")
        check_rows_in_blocks_or_on_disk_give_the_same_model(estimator, "reviewed")
        check_every_device_gives_the_same_model(estimator, "reviewed")


def check_float32_stays_float32(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X.astype(np.float32), Y)
    assert fitted.decision_function(X.astype(np.float32)).dtype == np.float32
    scale = np.abs(_scores(estimator, X, Y, X)).max()
    assert_allclose(
        fitted.decision_function(X), _scores(estimator, X, Y, X), atol=1e-2 * max(scale, 1e-3)
    )


def check_an_empty_row_and_a_silent_label_do_no_harm(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    others = (np.arange(Y.n_labels) != 3).astype(np.int8)
    fitted = clone(estimator).fit(X, _with_columns(Y, lambda pattern: pattern * others))
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.decision_function(X[7:8] * 0)).all()


def check_labels_without_a_yes_are_learned_or_refused(estimator: Any, kind: str) -> None:
    """Where silence means nothing there is nothing to learn; elsewhere everything is a no."""
    X, Y = problem(kind)
    silent = Labels(Y.kind, sp.csr_array(Y.shape, dtype=bool), Y.observed, Y.classes, Y.noes)
    if kind == "positive-only":
        assert "says yes to no entry" in _refusal(lambda: clone(estimator).fit(X, silent))
        return
    fitted = clone(estimator).fit(X, silent)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert (fitted.predict_proba(X) <= 0.5).all(), "probable without one example"


def check_save_and_load_give_the_identical_model(estimator: Any, kind: str) -> None:
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        fitted.save(path)
        loaded = tacit.saved.load(path)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert_array_equal(loaded.classes_, Y.classes)


def check_what_explains_a_score_adds_up_to_it(estimator: Any, kind: str) -> None:
    """Of every entry, though few reasons are listed; or a sentence says that none can be named."""
    X, Y = problem(kind)
    fitted = clone(estimator).fit(X, Y)
    scores = fitted.decision_function(X)
    rows, labels = np.indices(scores.shape).reshape(2, -1)
    said = _refusal(lambda: fitted.explain(X, rows, labels))
    if said:
        assert said.endswith("can say why")
        return
    for k in (1, 100):
        found = fitted.explain(X, rows, labels, k)
        _close(np.array([each.score for each in found]).reshape(scores.shape), scores)
        for each in found:
            total = sum(reason.amount for reason in each.reasons) + each.rest
            assert_allclose(total, each.score, atol=1e-12 * np.abs(scores).max())
            amounts = [abs(reason.amount) for reason in each.reasons]
            assert amounts == sorted(amounts, reverse=True)


CHECKS: list[Callable[[Any, str], None]] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_")
]
"""Every check: call it with an estimator and a kind of labels that the estimator takes."""


def expected_failures(estimator: Any) -> dict[str, str]:
    """Those of scikit-learn's checks that ask for what no labels can have, each with the reason.

    They are for scikit-learn's `check_estimator` and `parametrize_with_checks`, under the name
    `expected_failed_checks`. Give an Elkan08 a `random_state`: else the rows that it holds out, of
    the ten that some checks have, may by chance say no label.
    """
    two = "gives a column of the numbers 1 and 2; labels are 0 and 1"
    shape = "wants predict_proba to have one column a class; ours has one a label"
    found = {
        "check_estimators_dtypes": two,
        "check_fit2d_1feature": two,
        "check_estimator_sparse_array": shape,
        "check_estimator_sparse_matrix": shape,
    }
    if getattr(estimator, "levels", 1) != 1:
        base = "calls partial_fit, which is for one level: a stream has no folds"
        for name in ("check_fit_score_takes_y", "check_n_features_in_after_fitting"):
            found[name] = base
    return found


def check_noes_help(estimator: Any) -> None:
    """Noes at random make no ranking worse beyond noise; those that a review leaves make it better.

    On made-up data, of which 70 % of the labels are hidden, by nDCG@5 on other rows. In the review
    somebody looks at the proposals that the model is surest of, as many as labels were said. True
    ones are said in either case; the others are taken for silence, or for the noes that they are.
    """
    gains = np.array([_gains_by_noes(estimator, seed) for seed in range(6)])
    at_random, of_review = gains.mean(axis=0)
    assert at_random > -_SURER, f"noes at random cost {-at_random:.2f} points of nDCG@5"
    assert of_review > 0, f"the noes of a review cost {-of_review:.2f} points of nDCG@5"


def _gains_by_noes(estimator: Any, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    n, d, n_labels, rank = 1000, 20, 30, 5
    X = rng.standard_normal((2 * n, d))
    Z = X @ rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n_labels))
    true = rng.random(Z.shape) < expit(1.5 * Z / Z.std() + rng.standard_normal(n_labels) - 2.5)
    said, true, new = true[:n] & (rng.random((n, n_labels)) < 0.3), true[:n], true[n:]

    def figure(yes: np.ndarray, no: np.ndarray | None = None) -> float:
        fitted = clone(estimator).fit(X[:n], Labels.positive_only(yes, no=no))
        return 100 * float(ndcg_at_k(new, fitted.top_k(X[n:], 5), 5))

    labels = Labels.positive_only(said)
    found = clone(estimator).fit(X[:n], labels).complete(X[:n], labels, k=5)
    looked_at = np.zeros_like(said)
    surest = slice(0, said.sum())
    looked_at[found.row[surest], found.label[surest]] = True
    confirmed, denied = said | (looked_at & true), looked_at & ~true
    any_no = ~true & (rng.random(true.shape) < 0.1)
    return figure(said, any_no) - figure(said), figure(confirmed, denied) - figure(confirmed)


# Beside ridge


@dataclass(frozen=True)
class BesideRidge:
    """How a method with its defaults stands beside tuned ridge.

    Attributes
    ----------
    points, error : float
        Its P@3 on the test rows less that of ridge, in points of a hundred, and the standard error
        of this difference.
    times : float
        Its seconds as a multiple of those that ridge took with its five λ.
    """

    points: float
    error: float
    times: float


def beside_tuned_ridge(estimator: Any, data: Dataset, hidden: float) -> BesideRidge:
    """The estimator, fitted on the training rows with a share of the labels hidden, beside ridge.

    Ridge reads silence as no, and is tuned over `RIDGE_REGS` on a fifth of the rows by P@3 on what
    is said there. The estimator is given positive-only labels where labels are hidden, if it can
    use them.
    """
    assert data.Y_test is not None, f"{data.name} has no test rows"
    said = hide(data.Y, Positives(hidden), random_state=0).labels if hidden else data.Y
    start = time.perf_counter()
    ridge = _tuned_ridge(data.X, said.as_complete())
    tuned = time.perf_counter()
    kinds = type(estimator).label_kinds
    silent = "positive-only" in kinds and (hidden > 0 or "complete" not in kinds)
    labels = said.as_positive_only() if silent else said.as_complete()
    model = clone(estimator).fit(data.X, labels)
    fitted = time.perf_counter()
    more = _hits(model, data.X_test, data.Y_test) - _hits(ridge, data.X_test, data.Y_test)
    error = float(np.std(more) / len(more) ** 0.5)
    times = (fitted - tuned) / max(tuned - start, _A_MOMENT)
    return BesideRidge(100 * float(np.mean(more)), 100 * error, times)


def check_beside_tuned_ridge(estimator: Any, data: Dataset, hidden: float) -> None:
    """Within `POINTS` of its P@3 but for two standard errors, in at most `TIMES` its time.

    A class that says in `behind_ridge` why it cannot is not held to it.
    """
    if type(estimator).behind_ridge:
        return
    found = beside_tuned_ridge(estimator, data, hidden)
    told = f"{data.name}, {hidden:.0%} hidden: {type(estimator).__name__} with its defaults"
    assert found.points >= -POINTS - 2 * found.error, (
        f"{told} is {-found.points:.1f} ± {found.error:.1f} points of P@3 below tuned ridge"
    )
    assert found.times <= TIMES, f"{told} takes {found.times:.0f} times as long as tuned ridge"


def _tuned_ridge(X: Any, Y: Labels) -> Ridge:
    held = np.random.default_rng(0).random(len(Y)) < 0.2
    tried = {reg: Ridge(reg=reg).fit(X[~held], Y[~held]) for reg in RIDGE_REGS}
    best = max(tried, key=lambda reg: float(_hits(tried[reg], X[held], Y[held]).mean()))
    return Ridge(reg=best).fit(X, Y)


def _hits(model: Any, X: Any, Y: Labels) -> np.ndarray:
    """The precision of the three best labels of each row."""
    best = model.top_k(X, 3).indices
    row = np.repeat(np.arange(len(best)), best.shape[1])
    return Y.to_sparse()[row, best.ravel()].reshape(best.shape).mean(axis=1)


def _scores(estimator: Any, X: Any, Y: Labels, X_new: Any) -> np.ndarray:
    return clone(estimator).fit(X, Y).decision_function(X_new)


def _refusal(f: Callable[[], Any]) -> str:
    """The sentence of the ValueError that f raises; empty if it raises none."""
    try:
        f()
    except ValueError as error:
        return str(error)
    return ""


def _laid_out(found: Completion, Y: Labels) -> np.ndarray:
    """The probabilities in the shape of Y; -inf is no candidate."""
    laid_out = np.full(Y.shape, -np.inf)
    laid_out[found.row, found.label] = found.probability
    return laid_out


def _close(got: np.ndarray, wanted: np.ndarray) -> None:
    assert_allclose(got, wanted, atol=1e-4 * max(np.abs(wanted).max(), 1e-3))


def _other_devices() -> list[str]:
    try:
        import torch
    except ModuleNotFoundError:
        return []
    return ["torch", "cuda"] if torch.cuda.is_available() else ["torch"]


def _with_columns(Y: Labels, change: Callable[[np.ndarray], np.ndarray]) -> Labels:
    """Y with its patterns changed column by column."""
    changed = lambda pattern: change(pattern.toarray().astype(np.int8))
    positives = changed(Y.positives)
    if Y.observed is not None:
        return Labels.masked(positives, changed(Y.observed))
    if Y.kind == "complete":
        return Labels.complete(positives)
    return Labels.positive_only(positives, no=None if Y.noes is None else changed(Y.noes))
