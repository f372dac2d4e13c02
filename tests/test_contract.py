"""Every method against the contract of `tacit.testing`, and against scikit-learn's own checks."""

from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

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
from tacit.testing import CHECKS, check_permuting_labels_permutes_scores, expected_failures

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


# Elkan08 holds rows out at random, of which there are ten in some checks.
DEFAULTS = [Elkan08(random_state=0) if m is Elkan08 else m() for m in METHODS.values()]
OTHERS = [
    MPU(1, c=0.5),
    LabelSpaceReduction("bmad"),  # one whose scores a decoder makes
    BinaryRelevance(loss="logistic"),
    Elkan08(holdout=0.5),
]


@pytest.mark.parametrize("estimator", [*DEFAULTS, *OTHERS], ids=str)
def test_scikit_learns_own_checks_pass_but_for_those_that_are_named(estimator):
    """As a user runs them; and none is named that would pass."""
    named = expected_failures(estimator)
    found = check_estimator(estimator, expected_failed_checks=named, on_skip=None, on_fail=None)
    assert not [
        (each["check_name"], each["exception"]) for each in found if each["status"] == "failed"
    ]
    assert {each["check_name"] for each in found if each["status"] == "xfail"} == {*named}
    assert sum(each["status"] == "passed" for each in found) >= 38
