"""The contract of Tacit as a whole: what is in and why, what is said of it, and what is kept."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from tacit import Labels, Tacit, load
from tacit.baselines import Ridge
from tacit.basics.files import read_arrays, write_arrays
from tacit.labels import DENSE_LIMIT
from tacit.methods.tacit import LIMITS, held_out
from tacit.methods.tacit.ceiling import Ceiling
from tacit.methods.tacit.held_out import Held, chosen
from tacit.methods.tacit.plan import LINKS, LOOK
from tacit.methods.tacit.report import Report

KINDS = ["positive-only", "complete", "masked"]
COMPLETED = f"{LINKS}, for completions"
UNPLANNED = {"rarity", "all together", "network again"}  # in every fit, or with another


def planted(n=500, share=0.7, seed=2):
    """Features, labels by rules of three sorts, and the share of these labels that is said.

    Eight follow a steep rule, four are there where one of two features is without the other, and
    sixteen come in pairs of which the features say nothing.
    """
    rng = np.random.default_rng(seed)
    A = rng.random((n, 20)) * (rng.random((n, 20)) < 0.3)
    steep = rng.random((n, 8)) < 1 / (1 + np.exp(-6 * (A @ rng.standard_normal((20, 8)) - 0.7)))
    B = (rng.random((n, 8)) < 0.5) * 1.0
    either = (B[:, ::2] != B[:, 1::2]) & (rng.random((n, 4)) < 0.9)
    twins = np.repeat(rng.random((n, 8)) < 0.25, 2, axis=1)
    true = np.hstack([steep, either, twins])
    return sp.csr_array(np.hstack([A, B])), true, true & (rng.random(true.shape) < share)


@cache
def fitted(kind):
    """A model of each kind of labels, with its rows, for tests that only ask it."""
    X, true, said = planted(120 if kind == "masked" else 500)
    known = np.random.default_rng(1).random(true.shape) < 0.6
    labels = {
        "positive-only": lambda: Labels.positive_only(said),
        "complete": lambda: Labels.complete(true),
        "masked": lambda: Labels.masked(true & known, known),
    }[kind]()
    return fit(X, labels), X, labels


def fit(X, labels, **params):
    return Tacit(**{"scaling": "unit", "random_state": 0} | params).fit(X, labels)


def kept(model):
    return {step.level for step in model.report_.steps if step.kept}


def test_parts_that_rank_rows_not_seen_better_are_in_the_model_each_with_what_it_brings():
    """Each sort of labels wants a part of its own: the report and the model both have it."""
    model, X, _ = fitted("positive-only")
    assert kept(model) >= {"nearest rows", LOOK, COMPLETED}
    assert not any(part is None for part in (model.model_.look, model.model_.links))
    assert re.search(rf"^{COMPLETED}: \+\d", str(model.report_), re.M)
    either = planted()[1][:, 8:12]  # which no linear model can tell
    model = fit(X, Labels.complete(either))
    assert "network" in kept(model) & {voice.name for voice in model.model_.voices}


def test_links_that_cannot_help_are_left_out_of_the_model_and_the_report_says_so():
    """Of labels by a linear rule the lead knows all that there is to know."""
    X, true, _ = planted()
    model = fit(X[:, :20], Labels.complete(true[:, :8]))
    assert COMPLETED not in kept(model)
    assert re.search(rf"^{COMPLETED}: left out, it brings [+-]\d", str(model.report_), re.M)
    assert model.model_.links is None


@pytest.mark.parametrize(("noise", "sign"), [(0.0, 1), (1.0, 1), (0.0, -1)])
def test_a_part_that_harms_the_ranks_of_rows_or_says_the_opposite_is_left_out(noise, sign):
    """A part that knows how much is true of a row fits well, but its noise disorders the row."""
    rng = np.random.default_rng(0)
    lead, row = rng.standard_normal((1000, 20)), 4 * rng.standard_normal((1000, 1)) - 2
    said = rng.random(lead.shape) < expit(lead + row)
    told = sign * (row + noise * rng.standard_normal(lead.shape))
    features = np.stack([lead, told], axis=-1)
    held = SimpleNamespace(
        parts=SimpleNamespace(names=lambda: ("ridge", "network"), n_labels=20),
        features=features,
        said=said,
        counts=np.ones_like(said),
        top=SimpleNamespace(indices=np.tile(np.arange(20), (1000, 1))),
        n_said=said.sum(),
    )
    blend = chosen([held], "complete", Ceiling.none(20), report := Report(), {})
    assert blend.names == (("ridge",) if noise or sign < 0 else ("ridge", "network"))
    assert ("the opposite of what it says" in str(report)) == (sign < 0)


@pytest.mark.parametrize("kind", KINDS)
def test_plan_report_and_model_name_the_same_parts(kind):
    """All that is planned is judged, and all that is kept is blended; the report names each."""
    model, X, labels = fitted(kind)
    plan = model.plan(X, labels)
    told = {step.level for step in model.report_.steps}
    assert {name.removesuffix(", for completions") for name in told - UNPLANNED} == set(plan.names)
    assert kept(model) - {"all together", COMPLETED} == set(model.model_.blend.names)
    completed = model.model_.completion_blend
    assert (COMPLETED in kept(model)) == (completed is not None and LINKS in completed.names)
    for name in plan.names:
        assert re.search(rf"^{name}: about .* s and .* GiB$", str(plan), re.M)
        assert re.search(rf"^{name}", str(model.report_), re.M)


def test_completions_go_a_quarter_of_the_way_to_what_labels_hidden_at_random_teach(monkeypatch):
    model, X, labels = fitted("positive-only")
    monkeypatch.setattr(held_out, "_BELIEVED", 1.0)
    taught = fit(X, labels).model_.completion_blend
    own = dict(zip(model.model_.blend.names, model.model_.blend.weights))
    wanted = [0.75 * own.get(name, 0) + 0.25 * w for name, w in zip(taught.names, taught.weights)]
    assert_allclose(model.model_.completion_blend.weights, wanted, rtol=1e-5)


LEFT_OUT = [
    (dict(link_labels=27), LINKS, "there are more than 27 labels"),
    (dict(look_numbers=10), LOOK, "it would read too many numbers"),
    (dict(gathered=10), "nearest rows", "the rows are too many to bring together"),
    (dict(nearest_rows=10), "nearest rows", "each prediction would look through too many rows"),
    (dict(auto_seconds=1e-9), LOOK, "it would take about 0.0 s, more than the budget leaves"),
]


@pytest.mark.parametrize(("limits", "part", "why"), LEFT_OUT)
def test_a_part_beyond_a_limit_is_not_tried_and_plan_and_report_say_why(limits, part, why):
    """The plan says beforehand what the report says afterwards, in the same words."""
    X, true, _ = planted(60)
    model = Tacit(scaling="unit", limits=replace(LIMITS, **limits), random_state=0)
    plan = model.plan(X, Labels.complete(true))
    model.fit(X, Labels.complete(true))
    assert part not in plan.names
    assert not any(step.level.startswith(part) for step in model.report_.steps)
    for told in (plan, model.report_):
        assert f"{part}: not tried, since {why}" in str(told)


def test_the_second_look_reads_few_features_that_are_mostly_not_0_sparse_matrix_or_not():
    X, true, _ = planted(60)
    model = Tacit(limits=replace(LIMITS, look_dense=10))
    assert LOOK in model.plan(X, true).names  # most of these are 0
    for form in (np.asarray, sp.csr_array):
        assert LOOK not in model.plan(form(X.toarray() + 1.0), true).names


ROUTES = {
    "features, not rows": (dict(exact_rows=0), "ridge", 0.999),
    "no eigenvectors": (dict(spectrum_features=1, exact_rows=0), "ridge", 0.9),
    "conjugate gradients": (dict(exact_features=0, directions=0), "ridge by products", 0.9),
}


@pytest.mark.parametrize("route", ROUTES)
def test_limits_choose_another_way_to_scores_that_are_close(route):
    """Of fewer rows than features, where every way of the lead may be had."""
    limits, name, near = ROUTES[route]
    X, true, _ = planted(140)
    X, labels = sp.csr_array(sp.hstack([X.power(p) for p in range(1, 7)])), Labels.complete(true)
    lead = dict(link_labels=0, look_numbers=0, gathered=0)
    few, other = (fit(X, labels, limits=replace(LIMITS, **lead, **o)) for o in ({}, limits))
    assert other.model_.voices[0].name == name
    ranks = (np.argsort(np.argsort(m.decision_function(X))).ravel() for m in (few, other))
    assert np.corrcoef(*ranks)[0, 1] > near


def test_where_weights_have_no_room_each_feature_stands_by_itself_and_the_look_mends_it(tmp_path):
    """The lead is rough there, and what a second look brings is large."""
    (X, true, _), n_labels = planted(200), 2800
    spread = lambda M, d: sp.csr_array((M.data, M.indices * (d // 28), M.indptr), shape=(200, d))
    X = spread(X, DENSE_LIMIT // n_labels + 28)
    labels = Labels.positive_only(spread(sp.csr_array(true), n_labels))
    model = fit(X, labels, limits=replace(LIMITS, gathered=0, link_labels=0))
    lead, look, *_ = model.report_.steps
    assert (lead.level, look.level) == ("features by themselves", LOOK)
    assert look.gain > look.before + 2
    model.save(tmp_path / "model.tacit")
    assert_array_equal(load(tmp_path / "model.tacit").top_k(X, 5)[0], model.top_k(X, 5)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_rank_a_row_as_scores_do_and_the_map_makes_no_ties(kind):
    """Rising wherever scores rise, where P is above 10⁻⁹; and where a no was said, all was."""
    model, X, _ = fitted(kind)
    scores, p = model.decision_function(X), model.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all()
    assert (model.exposure_ == 1) == (kind != "positive-only")
    order = np.argsort(scores, axis=1)
    scores, p = (np.take_along_axis(a, order, axis=1) for a in (scores, p))
    assert (np.diff(p) >= 0).all()
    apart = (np.diff(scores) > 1e-6) & (np.abs(scores[:, 1:]) < 20)
    assert apart.mean() > 0.5
    assert (np.diff(p)[apart] > 0).all()


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_of_positive_only_labels_the_share_that_was_said_is_found(share):
    """Where the features tell for certain what is true, so that the ceiling is in sight."""
    rng = np.random.default_rng(1)
    X = (rng.random((2000, 12)) < 0.5) * 1.0
    true = np.tile(X[:, :8:2] != X[:, 1:8:2], 2) & (X[:, 8:9] > 0)
    said = true & (rng.random(true.shape) < share)
    model = fit(sp.csr_array(X), Labels.positive_only(said))
    assert abs(model.exposure_ - share) < 0.15
    assert f"about {model.exposure_:.0%} of the true labels were said" in str(model.report_)
    p = model.predict_proba(X)
    assert abs(p.sum() - true.sum()) < 0.3 * true.sum()
    assert_allclose(model.predict_proba(X, what="said"), model.exposure_ * p)


@pytest.mark.parametrize("kind", KINDS)
def test_completions_are_all_that_was_not_said_and_nothing_else(kind):
    """Of positive-only labels what was not said, of masked ones what is not known."""
    model, X, labels = fitted(kind)
    known = (labels.positives if labels.observed is None else labels.observed).toarray() > 0
    for fold_in in (True, False) if kind != "masked" else (False,):
        found = model.complete(X, labels, k=28, fold_in=fold_in)
        left = np.ones(known.shape, bool)
        left[found.row, found.label] = False
        assert_array_equal(left, known)


def test_what_was_denied_is_not_asked_for_where_completions_are_judged():
    model, X, labels = fitted("positive-only")
    silent = ~(labels.positives.toarray() > 0)
    noes = silent & (np.random.default_rng(0).random(labels.shape) < 0.5)
    (block,) = model._blocks(X, 1, Labels.positive_only(labels, no=noes))
    nothing = np.empty(0)
    held = Held(model.model_, block, model.model_.listed(block), *(nothing,) * 3, 0)
    _, _, label, _ = held.asked(10**6)
    asked = np.zeros((len(labels), labels.n_labels + 1), bool)
    np.put_along_axis(asked, label, True, axis=1)
    asked = asked[:, :-1]  # the last is for -1: no label
    assert asked.any()
    assert not (asked & noes).any()


def test_completions_find_hidden_labels_by_what_else_was_said_where_ridge_finds_none():
    """Labels that come in pairs, of which the features say nothing."""
    X, true, said = planted()
    twins, hidden = Labels.positive_only(said[:, 12:]), (true & ~said)[:, 12:]
    model, ridge = fit(X, twins), Ridge().fit(X, twins.as_complete())
    assert COMPLETED in kept(model)
    hits = lambda found: hidden[found.row, found.label].mean()
    by_ridge = hits(ridge.complete(X, twins.as_complete(), k=1))
    by_features, by_both = (hits(model.complete(X, twins, k=1, fold_in=b)) for b in (False, True))
    assert by_both > 3 * hidden.sum() / (~said[:, 12:]).sum()
    assert by_both > 1.5 * max(by_ridge, by_features)


def test_a_tiny_budget_still_answers_and_says_what_was_left_out():
    """The first model is always there."""
    X, _, said = planted(100)
    model = fit(X, Labels.positive_only(said), budget=1e-9)
    assert {step.level for step in model.report_.steps} == {"ridge", *UNPLANNED} - {"network again"}
    for part in (LOOK, "nearest rows", "network", LINKS):
        assert f"{part}: not tried, since it would take about" in str(model.report_)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("hour", [3600, np.int64(3600), "3600s", "60 min", "1h", "1.0h"])
def test_an_hour_in_any_words_has_room_for_what_half_an_hour_has_not(hour):
    """Here a network that would take some fifty minutes."""
    X, _, said = planted(100)
    slow = replace(LIMITS, flops=1.8 * 15 * 6 * 300 * (100 * 28 + X.nnz) / 3000)
    names = lambda b: Tacit(budget=b, limits=slow).plan(X, Labels.positive_only(said)).names
    assert set(names(hour)) == set(names(None)) == {*names("30min"), "network"}
    assert "network" not in names("30min")


@pytest.mark.parametrize("budget", ["soon", -1, 0, "0s", True, float("nan"), "5", [60]])
def test_a_bad_budget_is_one_clear_sentence_that_names_it(budget):
    """With what it may be, and what came."""
    X, _, said = planted(20)
    wanted = 'Tacit: budget must be None, "auto", seconds, or such as "60s" or "5min"; got '
    with pytest.raises(ValueError, match=f"^{re.escape(wanted + repr(budget))}"):
        Tacit(budget=budget).fit(X, Labels.positive_only(said))


BAD = [
    (dict(limits=3), "Tacit: limits must be None or Limits; got 3"),
    (dict(cv=1), "Tacit: cv must be .*; got 1"),
    (dict(), "Tacit: cv=5 folds need at least 10 rows; got n_samples = 9; give more rows, or"),
]


@pytest.mark.parametrize(("params", "told"), BAD)
def test_what_cannot_be_fitted_is_one_clear_sentence(params, told):
    """That names the parameter, or both numbers that do not go together."""
    X, _, said = planted(9)
    with pytest.raises(ValueError, match=f"^{told}"):
        Tacit(**params).fit(X, Labels.positive_only(said))
    Tacit(cv=4, scaling="unit").fit(X, Labels.positive_only(said))


@pytest.mark.slow
@pytest.mark.parametrize("where", PLACES[1:])
@pytest.mark.parametrize("kind", ["positive-only", "masked"])
def test_where_the_rows_lie_and_how_they_are_cut_changes_no_part(blocks_of, kind, where):
    """Neither what is kept, nor any score of it."""
    model, X, labels = fitted(kind)
    other = Tacit(scaling="unit", random_state=0).fit(blocks_of(X, labels, where))
    assert kept(other) == kept(model)
    assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_comes_near_to_float64(kind):
    """With every part that is kept, in probabilities of the same float type."""
    model, X, labels = fitted(kind)
    other = fit(X.astype(np.float32), labels)
    p = other.predict_proba(X.astype(np.float32))
    assert p.dtype == other.model_.dtype == np.float32
    assert_allclose(p, model.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_predicts_completes_and_reports_the_same(kind, tmp_path):
    """To the last bit."""
    model, X, labels = fitted(kind)
    model.save(tmp_path / "model.tacit")
    loaded = load(tmp_path / "model.tacit")
    assert loaded.report_ == model.report_
    assert loaded.exposure_ == model.exposure_
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    for got, wanted in zip(loaded.complete(X, labels), model.complete(X, labels), strict=True):
        assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_any_array_lost_or_cut_is_refused(kind, tmp_path):
    """When it is loaded, and not when it is asked."""
    fitted(kind)[0].save(tmp_path / "model.tacit")
    header, arrays = read_arrays(tmp_path / "model.tacit")
    for name in arrays:
        for damaged in ({}, {name: arrays[name][:-1]}):
            rest = {k: a for k, a in arrays.items() if k != name}
            write_arrays(tmp_path / "damaged.tacit", header, rest | damaged)
            with pytest.raises(ValueError, match="does not hold a model of this tacit"):
                load(tmp_path / "damaged.tacit")
