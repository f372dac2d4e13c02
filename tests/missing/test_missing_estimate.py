"""Laws of how much is missing: counts from rates, and what GenEML knows of its exposures."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from tacit import GenEML, Labels, Tacit
from tacit.baselines import Ridge
from tacit.estimators import estimator as base
from tacit.missing import Positives, Rates, estimate, hide

SAID = np.array([8, 20, 0, 3])
Y = (np.arange(20)[:, None] < SAID).astype(int)


def model_with(c, low, high, overall=(0.5, 0.4, 0.8), names=("a", "b", "c", "d")):
    """A fitted model that has these rates."""
    rates = lambda X, Y: Rates.of(c, low, high, overall, "It was said.", SAID)
    return SimpleNamespace(said_rates_=np.array(c), rates=rates, classes_=np.array(names))


def sharp():
    return model_with([0.5, 0.8, 0.5, 0.3], [0.4, 0.7, 0.4, 0.2], [0.6, 1.0, 0.6, 0.4])


def quietly(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimate(model, X, Y)


def planted(n=600, slope=8.0, shift=0.0, seed=0):
    """Labels that depend on a feature each, with 0.4 of what is true hidden."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = rng.random(X.shape) < expit(slope * X - shift)
    return X, *hide(Y, Positives(0.4), random_state=seed)


def geneml(**params):
    params = dict(embedding="tied", reg_w=0.1, normalize=None, tol=0, max_iter=100) | params
    return GenEML(rank=3, random_state=0, **params)


# ---- from rates to counts


def test_what_is_missing_is_what_is_true_less_what_was_said():
    found = quietly(sharp(), None, Y)
    assert_array_equal(found.said, SAID)
    assert_allclose(found.missing, SAID / [0.5, 0.8, 0.5, 0.3] - SAID)
    assert_allclose(found.high, SAID / [0.4, 0.7, 0.4, 0.2] - SAID)
    assert_allclose(found.low, SAID / [0.6, 1.0, 0.6, 0.4] - SAID, atol=1e-12)
    assert found.total_said == 31
    assert_allclose(found.total_missing, [31 / 0.5 - 31, 31 / 0.8 - 31, 31 / 0.4 - 31])
    assert_allclose(found.share, [0.5, 0.2, 0.6])


def test_labels_that_cannot_be_told_are_named_in_a_warning_that_says_what_to_do():
    flat = model_with([0.5] * 4, [0.4, 0.01, 0.4, 0.01], [0.6, 1.0, 0.6, 1.0])
    with pytest.warns(UserWarning, match=r"3 of 4 labels \(b, c, d\); give more rows, a known c"):
        found = estimate(flat, None, Y)
    assert found.warning in str(found)
    known = SAID > 0
    rates = Rates.of(0.5, 0.4, 0.6, (0.5, 0.4, 0.6), "", SAID[known])
    sure = SimpleNamespace(said_rates_=rates.c, rates=lambda X, Y: rates, classes_=np.arange(3))
    assert estimate(sure, None, Y[:, known]).warning is None


def test_a_summary_lists_all_labels_and_those_with_most_missing_first():
    found = quietly(sharp(), None, Y)
    lines = found.summary().splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["label", "all", "a", "d", "b"]
    assert lines[1].split() == ["all", "labels", "?", "31", "31", "8", "–", "46", "50%"]
    assert lines[2].split() == ["a", "8", "8", "5", "–", "12", "50%"]
    assert lines[5] == "It was said."
    assert len({len(line) for line in lines[:5]}) == 1


def test_an_estimate_without_an_interval_says_so_in_its_table():
    nothing = [np.nan] * 4
    found = quietly(model_with([0.5] * 4, nothing, nothing, (0.5, np.nan, np.nan)), None, Y)
    assert found.summary().splitlines()[1].split() == ["all", "labels", "31", "31", "–", "50%"]


def test_names_are_escaped_in_a_notebook():
    found = quietly(sharp(), None, Labels.positive_only(Y, classes=["<b>", "b", "c", "d"]))
    html = found._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 5


def test_a_plot_has_each_said_label_at_its_share_with_its_interval():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    found = quietly(sharp(), None, Y)
    axes = found.plot()
    pyplot.close(axes.figure)
    (points,) = [line for line in axes.lines if len(line.get_xdata()) == 3]
    order = np.array([0, 1, 3])  # c was never said
    assert_array_equal(points.get_xdata(), SAID[order])
    assert_allclose(points.get_ydata(), 100 * (1 - found.rates.c[order]))
    (bars,) = axes.collections
    ends = np.array([bar[:, 1] for bar in bars.get_segments()])
    assert_allclose(ends, 100 * (1 - np.stack([found.rates.high, found.rates.low], 1)[order]))
    assert found.plot(axes) is axes


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (Labels.complete(Y), "Y is complete, .*give Labels.positive_only"),
        (Labels.masked(Y, np.ones_like(Y)), "Y is masked, so its mask says what is missing"),
        (np.where(Y, 1, np.nan), "Y is masked"),
        (np.zeros_like(Y), "Y says yes to nothing"),
        (Y[:, :2], "Y has 2 labels but model has 4"),
    ],
)
def test_labels_that_nothing_is_missing_from_are_refused_in_one_sentence(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        estimate(sharp(), None, labels)


def test_a_model_without_rates_is_refused_and_told_who_has_them():
    with pytest.raises(ValueError, match=r"model is Ridge, .*fit MPU, GenEML"):
        estimate(Ridge().fit(np.ones((20, 1)), Y), np.ones((20, 1)), Y)


def test_without_a_model_a_tacit_is_fitted_and_finds_how_much_was_hidden():
    X = np.random.default_rng(0).normal(size=(1000, 6))
    true = np.random.default_rng(1).random(X.shape) < expit(8 * X)
    said, hidden = hide(true, Positives(0.4), random_state=0)
    found = estimate(X=X, Y=said)
    model = Tacit(random_state=0).fit(X, said)
    assert found.total_missing == estimate(model, X, said).total_missing
    missing, low, high = found.total_missing
    assert low < hidden.nnz < high < 1.6 * low
    assert_allclose(missing, hidden.nnz, rtol=0.1)
    assert found.rates.total_known
    assert "with ends of 90 %" in str(found)
    assert found.warning is None


@pytest.mark.parametrize(
    ("overall", "told"),
    [((0.5, 0.4, 0.7), True), ((0.5, 0.4, 0.63), False), ((0.5, np.nan, np.nan), False)],
)
def test_a_total_that_is_not_known_to_a_quarter_either_way_is_marked_and_says_why(overall, told):
    """Where there is an interval: what comes without one is told as it came."""
    found = quietly(model_with([0.5] * 4, [0.4] * 4, [0.6] * 4, overall), None, Y)
    assert found.summary().splitlines()[1].startswith("all labels ?" if told else "all labels  ")
    sentence = "in all is not identifiable, since too few rows are sure enough"
    assert (sentence in found.warning) == told
    assert ("between 30% and 60% of what is true" in found.warning) == told


# ---- GenEML


def test_geneml_finds_how_much_was_hidden_where_scores_saturate():
    X, said, hidden = planted(n=2000)
    found = estimate(geneml(reg_v=0.1, max_iter=200).fit(X, said), X, said)
    missing, low, high = found.total_missing
    assert low < hidden.nnz < high
    assert 0 < low < missing < high < 1.3 * low
    assert 0 < found.share[0] < 1
    assert found.rates.identifiable.all()


def test_geneml_knows_that_it_cannot_tell_for_rare_labels():
    X, said, _ = planted(slope=1.0, shift=4.0)
    with pytest.warns(UserWarning, match="cannot be told for 3 of 3 labels"):
        found = estimate(geneml(max_iter=10).fit(X, said), X, said)
    missing, low, high = found.total_missing
    assert 0 <= low < missing < high < np.inf


def test_gen_emls_interval_is_the_curvature_in_mu_with_an_intercept_free():
    X, said, _ = planted()
    model = geneml().fit(X, said)
    rates = model.rates(X, said)
    assert_allclose(rates.c, model.exposures_, rtol=1e-5)
    for j in range(3):
        mu, psi = float(model.exposures_[j]), model.decision_function(X)[:, j].astype(float)
        expected = mu * expit(psi)

        def likelihood(at, mu=mu, psi=psi, expected=expected):
            p = (mu + at[0]) * expit(psi + at[1])
            return (expected * np.log(p) + (1 - expected) * np.log1p(-p)).sum()

        error = np.sqrt(np.linalg.inv(-hessian(likelihood, 1e-3))[0, 0])
        assert_allclose(rates.high[j] - rates.c[j], 1.96 * error, rtol=1e-3)
        assert_allclose(rates.c[j] - rates.low[j], 1.96 * error, rtol=1e-3)


def hessian(f, h):
    """Central differences at (0, 0)."""
    steps = h * np.eye(2)
    mixed = lambda a, b: f(a + b) - f(a - b) - f(b - a) + f(-a - b)
    return np.array([[mixed(a, b) for b in steps] for a in steps]) / (4 * h * h)


def test_gen_emls_rates_do_not_depend_on_how_many_rows_are_scored_at_a_time(monkeypatch):
    X, said, _ = planted()
    model = geneml(max_iter=5).fit(X, said)
    whole = model.rates(X, said)
    monkeypatch.setattr(base, "_BLOCK_ENTRIES", 3 * 7)
    parts = model.rates(X, said)
    for name in ("c", "low", "high", "overall"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-5)


def test_with_covariates_the_rate_of_a_label_is_its_share_said_of_what_is_true():
    X, said, _ = planted()
    model = geneml(exposure="covariates", max_iter=10).fit(X, said)
    shares = model.predict_proba(X, what="said").sum(axis=0) / model.predict_proba(X).sum(axis=0)
    assert_allclose(model.rates(X, said).c, shares, rtol=1e-5)


def test_with_gibbs_the_interval_is_that_of_its_draws():
    X, said, _ = planted(n=100)
    model = GenEML(rank=2, inference="gibbs", max_iter=5, n_draws=20, random_state=0).fit(X, said)
    rates = model.rates(X, said)
    assert_allclose(rates.c, model.exposures_)
    assert_allclose([rates.low, rates.high], model.exposure_interval_)


def test_geneml_without_exposures_is_refused():
    X, said, _ = planted(n=50)
    with pytest.raises(NotFittedError):
        estimate(GenEML(), X, said)
    model = geneml(exposure=None, max_iter=2).fit(X, said)
    with pytest.raises(ValueError, match="model has learned no exposure"):
        estimate(model, X, said)
