"""Every method against the contract of `tacit.testing`, and against scikit-learn's own checks."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit import LEML, MPU, SEM, FaIE, GenEML, Tacit
from tacit.baselines import (
    EASE,
    M3L,
    NNML,
    WELL,
    BinaryRelevance,
    Elkan08,
    LabelSpaceReduction,
    Neighbours,
    Popularity,
    Ridge,
)
from tacit.saved import METHODS
from tacit.testing import CHECKS, check_permuting_labels_permutes_scores

TIGHT = [
    LEML(rank=3, reg=0.3, tol=0, max_iter=4, cg_tol=1e-11, cg_max_iter=60, random_state=0),
    LEML(rank=3, reg=0.3, tol=0, max_iter=4, cg_tol=1e-11, random_state=0, solver="cg"),
    LEML(rank=3, loss="logistic", reg=0.3, tol=0, max_iter=4, cg_tol=1e-11, random_state=0),
    LEML(rank=3, loss="squared_hinge", reg=0.3, tol=0, max_iter=4, cg_tol=1e-11, random_state=0),
    LEML(rank=3, reg=0.3, solver="closed_form"),
    GenEML(rank=3, tol=0, max_iter=4, random_state=0),
    GenEML(rank=3, tol=0, max_iter=4, random_state=0, curvature="polya-gamma"),
    GenEML(rank=3, tol=0, max_iter=4, random_state=0, embedding="tied", exposure="covariates"),
    SEM(rank=3, tol=0, max_iter=4, batch_size=100, random_state=0),
    SEM(rank=3, tol=0, max_iter=4, batch_size=100, random_state=0, beta=0.1, updates="one-pass"),
    SEM(rank=3, tol=0, max_iter=4, batch_size=100, random_state=0, head="kernel", n_components=30),
    MPU(1, c=0.5, reg=0.3, solver="newton", tol=1e-12, max_iter=50, random_state=0),
    MPU(1, c=0.5, reg=0.3, rate=0.3, batch_size=100, max_iter=5, random_state=0),
    MPU(2, cv=2, reg=0.3, solver="newton", tol=1e-10, max_iter=50, random_state=0),
    MPU(2, c="labels", top=4, rate=0.3, batch_size=9, max_iter=4, random_state=0),
    FaIE(rank=3, alpha=2.0, reg=0.3),
    FaIE(rank=3, alpha=2.0, reg=0.3, variant="linear"),
    FaIE(rank=3, reg=0.3, variant="p-linear"),
    FaIE(rank=3, reg=0.3, variant="op"),
    *(
        LabelSpaceReduction(codec, rank=3, reg=0.3, random_state=0)
        for codec in ("plst", "cplst", "cs", "cssp", "bmad", "rembed")
    ),
    BinaryRelevance(reg=0.3, tol=1e-12),
    BinaryRelevance(loss="logistic", reg=0.3, tol=1e-12),
    BinaryRelevance(loss="squared_hinge", reg=0.3, tol=1e-12),
    NNML(rank=5, dropout=0, tol=0, max_iter=4, batch_size=100, random_state=0),
    Elkan08(reg=0.3, holdout=0.3, tol=1e-12, random_state=0),
    Elkan08(variant="weighted", reg=0.3, holdout=0.3, tol=1e-12, random_state=0),
    M3L(tol=1e-12, max_iter=5000, random_state=0),
    WELL(n_neighbors=4, tol=1e-13),
    Popularity(),
    Neighbours(4),
    EASE(reg=3.0),
    Ridge(reg=0.3),
    Ridge(reg=0.3, power=2.0),
    Tacit(cv=3, scaling="unit", random_state=0),
]


def applies(check, estimator, kind):
    """Who draws by label draws other labels, cells or numbers for another order of them."""
    by_label = getattr(estimator, "codec", "") in ("cs", "cssp")
    by_label |= isinstance(estimator, Tacit) and kind == "masked"  # the cells that it holds out
    return not (by_label and check is check_permuting_labels_permutes_scores)


CASES = [
    pytest.param(check, e, kind, id=f"{type(e).__name__}{i}-{kind}-{check.__name__}")
    for i, e in enumerate(TIGHT)
    for kind in (("complete",) if getattr(e, "solver", "") == "closed_form" else e.label_kinds)
    for check in CHECKS
    if applies(check, e, kind)
]


@pytest.mark.parametrize(("check", "estimator", "kind"), CASES)
def test_contract(check, estimator, kind):
    check(estimator, kind)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_is_held_to_the_contract_and_has_its_tests_and_page(method):
    assert any(type(estimator) is method for estimator in TIGHT), "not held to the contract"
    _, folder, *rest = method.__module__.split(".")
    name = folder if folder == "label_space" else rest[0]  # of its file or folder
    root = Path(__file__).parent
    assert list(root.rglob(f"test_{name}.py")), "no test file"
    assert (root.parent / "docs" / "methods" / f"{name}.md").exists(), "no docs page"


class OnDigits:
    """scikit-learn's checks give a column of class numbers or of real numbers; labels are 0/1.

    So `y` becomes two labels, y > 0 and y > 1, on the way in, and all else is the estimator's own.
    """

    def fit(self, X, y=None):
        return super().fit(X, None if y is None else _as_labels(y))

    def score(self, X, y):
        return super().score(X, _as_labels(y))


def _as_labels(y):
    y = np.asarray(y)
    y = y.reshape(len(y), -1)[:, :1]
    return np.hstack([y > 0, y > 1])


class LEMLOnDigits(OnDigits, LEML):
    pass


class GenEMLOnDigits(OnDigits, GenEML):
    def partial_fit(self, X, y):
        return super().partial_fit(X, _as_labels(y))


class SEMOnDigits(OnDigits, SEM):
    def partial_fit(self, X, y):
        return super().partial_fit(X, _as_labels(y))


class MPUOnDigits(OnDigits, MPU):
    def partial_fit(self, X, y):
        return super().partial_fit(X, _as_labels(y))


class FaIEOnDigits(OnDigits, FaIE):
    pass


class LabelSpaceReductionOnDigits(OnDigits, LabelSpaceReduction):
    pass


class RidgeOnDigits(OnDigits, Ridge):
    pass


class BinaryRelevanceOnDigits(OnDigits, BinaryRelevance):
    pass


class NNMLOnDigits(OnDigits, NNML):
    pass


class Elkan08OnDigits(OnDigits, Elkan08):
    pass


class M3LOnDigits(OnDigits, M3L):
    pass


class WELLOnDigits(OnDigits, WELL):
    pass


class PopularityOnDigits(OnDigits, Popularity):
    pass


class NeighboursOnDigits(OnDigits, Neighbours):
    pass


class EASEOnDigits(OnDigits, EASE):
    pass


class TacitOnDigits(OnDigits, Tacit):
    pass


def expected_failures(estimator):
    shape = "wants predict_proba to have one column a class; ours has one a label"
    base = "calls partial_fit, which is for one level: a stream has no folds"
    is_stacked = isinstance(estimator, MPU) and estimator.levels > 1
    stacked = ("check_fit_score_takes_y", "check_n_features_in_after_fitting")
    return {
        "check_estimator_sparse_array": shape,
        "check_estimator_sparse_matrix": shape,
        **(dict.fromkeys(stacked, base) if is_stacked else {}),
    }


@parametrize_with_checks(
    [
        LEMLOnDigits(rank=2, max_iter=5),
        GenEMLOnDigits(rank=2, max_iter=3),
        SEMOnDigits(rank=2, max_iter=3),
        MPUOnDigits(max_iter=3),
        MPUOnDigits(1, c=0.5, max_iter=3),
        FaIEOnDigits(rank=2),
        LabelSpaceReductionOnDigits(rank=2),
        LabelSpaceReductionOnDigits("bmad", rank=2),  # one whose scores a decoder makes
        RidgeOnDigits(),
        BinaryRelevanceOnDigits(),
        BinaryRelevanceOnDigits(loss="logistic"),
        NNMLOnDigits(rank=20, max_iter=3),
        Elkan08OnDigits(holdout=0.5),  # of ten rows, for some checks
        M3LOnDigits(max_iter=5),
        WELLOnDigits(),
        PopularityOnDigits(),
        NeighboursOnDigits(),
        EASEOnDigits(),
        TacitOnDigits(cv=2, scaling="unit"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
