"""The laws of GenEML: one objective, two curvatures, three inferences, and who was asked."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit
from sklearn.metrics import roc_auc_score

import tacit
from tacit import LEML, GenEML, Labels
from tacit.backends import block, get_backend
from tacit.basics.files import read_arrays, write_arrays
from tacit.blocks import Rows
from tacit.engines.solvers import cg
from tacit.methods.geneml import em as em_module
from tacit.methods.geneml import online
from tacit.metrics import precision_at_k
from tacit.missing import Exposure, hide

CURVATURES = ["shared", "polya-gamma"]
EMBEDDINGS = ["free", "tied"]
# Masked and complete labels say who was asked, so that only one exposure is left for them.
KINDS = [("positive-only", e) for e in ("labels", "covariates", None)]
KINDS += [("masked", "labels"), ("complete", "labels")]
KINDS += [("reviewed", "labels"), ("reviewed", "covariates")]
PRIORS = dict(reg_u=0.7, reg_v=0.6, reg_w=0.5, alpha1=3.0, alpha2=2.0)
PLAIN = dict(rank=3, normalize=None, tol=0, random_state=0, **PRIORS)
QUICK = dict(rank=2, reg_u=2.0, reg_v=2.0, reg_w=2.0)  # settles in some hundred passes
INTERCEPT_REG = 0.01


def problem(n=40, d=6, n_labels=7, rank=3, seed=0, intercept=-0.5):
    """X, the truth, what was said of it, and who was observed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    psi = X @ rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n_labels)) + intercept
    Y = (rng.random(psi.shape) < expit(psi)).astype(int)
    return X, Y, Y * (rng.random(Y.shape) < 0.6), rng.random(Y.shape) < 0.7


def labels_of(kind, Y, said, observed):
    return {
        "complete": lambda: Labels.complete(Y),
        "masked": lambda: Labels.masked(Y * observed, observed),
        "positive-only": lambda: Labels.positive_only(said),
        "reviewed": lambda: Labels.positive_only(said, no=(1 - Y) * (1 - observed)),
    }[kind]()


def features_of_labels(n_labels=7, seed=5):
    return np.random.default_rng(seed).standard_normal((n_labels, 2))


def em_of(model, X, Y, label_features=None):
    """The EM that `fit` would run, and its start."""
    side = {} if label_features is None else {"label_features": label_features}
    task = model._problem(*model._rows(X, Y), side=side)
    em = model._em(task, model._equations(task), model._exposure(task))
    return em, em.start(model._rank(task))


def with_one(X, model):
    return np.hstack([X, np.ones((len(X), 1))]) if model.fit_intercept else X


def exposures(model, X, state, label_features):
    """μ, dense, of shape (1 or n, L)."""
    if "mu" in state:
        return state["mu"][None, :]
    if "beta" not in state:
        return np.ones((1, len(state["V"])))
    F = np.empty((len(state["V"]), 0)) if label_features is None else label_features
    F = np.hstack([F, np.ones((len(F), 1))])
    return expit(with_one(X, model) @ state["beta"] @ F.T + state["bias"])


def log_likelihood(labels, psi, mu):
    """Of each entry: what is known, and silence that may be a no or a question never asked."""
    y = labels.positives.toarray()
    if labels.kind != "positive-only":
        known = np.ones_like(y) if labels.observed is None else labels.observed.toarray()
        return np.where(known, log_expit(np.where(y, psi, -psi)), 0.0)
    values = np.where(y, np.log(mu) + log_expit(psi), np.log1p(-mu * expit(psi)))
    if labels.noes is None:
        return values
    return np.where(labels.noes.toarray(), np.log(mu) + log_expit(-psi), values)


def minus_log_posterior(model, X, labels, state, label_features=None):
    """Minus the marginal log-posterior of methods' A4, dense, with ξ summed out."""
    X1, W, V = with_one(X, model), state["W"], state["V"]
    U = state.get("U", X1 @ W)
    rank = W.shape[1]
    psi = U @ V[:, :rank].T + V[:, rank:].sum(1)
    mu = exposures(model, X, state, label_features)
    reg = np.array([model.reg_v] * rank + [INTERCEPT_REG] * (V.shape[1] - rank))
    centre = prior = 0.0
    if label_features is not None:  # v_l ~ N(Mᵀf_l, ·) at its best M, which has V's own prior
        F = np.hstack([label_features, np.ones((len(V), 1))])
        M = np.linalg.lstsq(
            np.vstack([F, np.eye(F.shape[1])]), np.vstack([V, np.zeros((F.shape[1], V.shape[1]))])
        )[0]
        centre, prior = F @ M, prior - 0.5 * (reg * M**2).sum()
    prior -= 0.5 * (model.reg_u * ((U - X1 @ W) ** 2).sum() + model.reg_w * (W**2).sum())
    prior -= 0.5 * (reg * (V - centre) ** 2).sum()
    if "mu" in state:
        a1, a2 = model.alpha1, model.alpha2
        prior += ((a1 - 1) * np.log(mu) + (a2 - 1) * np.log1p(-mu)).sum()
    for name in {"beta", "bias"} & set(state):
        prior -= 0.5 * (state[name] ** 2).sum()
    return -(log_likelihood(labels, psi, mu).sum() + prior)


def slope_of(model, X, labels, state, label_features=None):
    """The gradient of the dense objective in every number of the state, by central differences."""
    slopes = {}
    for name, array in state.items():
        slopes[name] = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            values = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[place] += step
                at = state | {name: moved}
                values.append(minus_log_posterior(model, X, labels, at, label_features))
            slopes[name][place] = (values[0] - values[1]) / 2e-5
    return slopes


def never_rises(values):
    return bool((np.diff(values) <= 1e-9 * np.abs(values[:-1])).all())


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize(
    ("kind", "exposure", "with_features"),
    [(*case, False) for case in KINDS] + [(*case, True) for case in KINDS[:2]],
)
def test_a_pass_gives_the_marginal_objective_and_never_raises_it(
    kind, exposure, curvature, embedding, with_features
):
    X, *rest = problem()
    labels, F = labels_of(kind, *rest), features_of_labels() if with_features else None
    model = GenEML(embedding=embedding, exposure=exposure, curvature=curvature, **PLAIN)
    em, state = em_of(model, X, labels, F)
    objective = lambda state: minus_log_posterior(model, X, labels, state, F)
    told, seen = [], [objective(state)]
    for _ in range(8):
        before, (state, value) = state, em.step(state)
        # The exposure's step comes last, after the objective is known.
        asked = {name: before[name] for name in ("mu", "beta", "bias") if name in before}
        assert_allclose(value, objective(state | asked), rtol=1e-8)
        told.append(value)
        seen += [value, objective(state)]
    assert never_rises(seen)
    fitted = GenEML(**model.get_params()).set_params(max_iter=8).fit(X, labels, label_features=F)
    assert_allclose(fitted.history_, told, rtol=1e-8)
    assert told[-1] < told[0] - 0.1


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_the_objective_is_that_of_the_model_on_every_device(device, curvature, intercept):
    pytest.importorskip("torch")
    X, _, said, _ = problem()
    model = GenEML(curvature=curvature, fit_intercept=intercept, **PLAIN).set_params(device=device)
    em, state = em_of(model, X, Labels.positive_only(said))
    for _ in range(3):
        before, (state, value) = state, em.step(state)
    arrays = {name: get_backend(device).to_numpy(a) for name, a in state.items()}
    arrays["mu"] = get_backend(device).to_numpy(before["mu"])
    wanted = minus_log_posterior(model, X, Labels.positive_only(said), arrays)
    assert_allclose(value, wanted, rtol=1e-8)


def settled(model, X, labels, label_features=None, passes=4000):
    em, state = em_of(model, X, labels, label_features)
    for _ in range(passes):
        before, (state, _) = state, em.step(state)
        if max(abs(state[name] - before[name]).max() for name in state) < 1e-6:
            break
    return em, state


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize(("kind", "exposure"), KINDS)
def test_settled_passes_are_stationary_and_the_other_curvature_leaves_them_in_place(
    kind, exposure, curvature, embedding
):
    X, *rest = problem(n=25, d=3, n_labels=4, rank=2)
    labels = labels_of(kind, *rest)
    params = dict(embedding=embedding, exposure=exposure) | PLAIN | QUICK
    model = GenEML(curvature=curvature, **params)
    _, state = settled(model, X, labels)
    for name, slope in slope_of(model, X, labels, state).items():
        assert abs(slope).max() < 1e-4, name
    assert abs(state["V"][:, :2]).max() > 0.1, "0 is stationary too"
    (other,) = set(CURVATURES) - {curvature}
    em, _ = em_of(GenEML(curvature=other, **params), X, labels)
    after, _ = em.step(state)
    for name in state:
        assert_allclose(after[name], state[name], atol=1e-5, err_msg=name)


def test_a_settled_pass_with_label_features_is_stationary():
    X, _, said, _ = problem(n=25, d=3, n_labels=4, rank=2)
    labels, F = Labels.positive_only(said), features_of_labels(4)
    model = GenEML(**PLAIN | QUICK)
    _, state = settled(model, X, labels, F)
    for name, slope in slope_of(model, X, labels, state, F).items():
        assert abs(slope).max() < 1e-4, name


def eta(psi):
    return np.tanh(psi / 2) / (2 * psi)


def e_step(U, V, mu, y, observed):
    """ψ and p, one formula each."""
    psi = np.hstack([U, np.ones((len(U), V.shape[1] - U.shape[1]))]) @ V.T
    if observed is not None:
        return psi, observed.astype(float)
    return psi, np.where(y > 0, 1.0, mu * expit(-psi) / (mu * expit(-psi) + 1 - mu))


def looped_codes(U, XW, V, mu, y, observed, reg_u):
    """The paper's U step, row by row, with the intercepts as an offset."""
    rank = U.shape[1]
    psi, p = e_step(U, V, mu, y, observed)
    basis, b = V[:, :rank], V[:, rank:].sum(1)
    new = np.empty_like(U)
    for n in range(len(U)):
        w = p[n] * eta(psi[n])
        P = sum(w[j] * np.outer(basis[j], basis[j]) for j in range(len(V))) + reg_u * np.eye(rank)
        r = sum((p[n, j] * (y[n, j] - 0.5) - w[j] * b[j]) * basis[j] for j in range(len(V)))
        new[n] = np.linalg.solve(P, r + reg_u * XW[n])
    return new


def looped_labels(U, V, mu, y, observed, reg_v):
    """The paper's V step, label by label, the intercept its last coordinate."""
    rank, width = U.shape[1], V.shape[1]
    psi, p = e_step(U, V, mu, y, observed)
    A = np.hstack([U, np.ones((len(U), width - rank))])
    prior = np.diag([reg_v] * rank + [INTERCEPT_REG] * (width - rank))
    new = np.empty_like(V)
    for j in range(len(V)):
        w = p[:, j] * eta(psi[:, j])
        P = sum(w[n] * np.outer(A[n], A[n]) for n in range(len(U))) + prior
        new[j] = np.linalg.solve(P, sum(p[n, j] * (y[n, j] - 0.5) * A[n] for n in range(len(U))))
    return new, p


def ridge(X1, U, model):
    ratio = model.reg_w / model.reg_u  # the paper prints λ_w
    return np.linalg.solve(X1.T @ X1 + ratio * np.eye(X1.shape[1]), X1.T @ U)


def m_step(p, model):
    return (model.alpha1 - 1 + p.sum(0)) / (model.alpha1 + model.alpha2 - 2 + len(p))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("kind", "exposure"), [k for k in KINDS if k[1] != "covariates"])
def test_a_polya_gamma_pass_is_the_plain_loop_over_rows_and_labels(
    monkeypatch, kind, exposure, intercept
):
    monkeypatch.setattr("tacit.backends.numpy.NumpyBackend.chunk", 7 * 9)  # several blocks of rows
    monkeypatch.setattr("tacit.methods.geneml.em._GRAM_ENTRIES", 30)  # and of labels
    X, *rest = problem()
    labels = labels_of(kind, *rest)
    params = dict(curvature="polya-gamma", fit_intercept=intercept, exposure=exposure)
    model = GenEML(**params, **PLAIN)
    em, state = em_of(model, X, labels)
    y = labels.positives.toarray().astype(float)
    observed = None if labels.observed is None else labels.observed.toarray()
    X1 = with_one(X, model)
    for _ in range(2):
        before, (state, _) = state, em.step(state)
        mu = exposures(model, X, before, None)
        if labels.noes is not None:
            mu = np.where(labels.noes.toarray(), 1.0, mu)  # who said no was asked
        U = looped_codes(before["U"], X1 @ before["W"], before["V"], mu, y, observed, model.reg_u)
        V, _ = looped_labels(U, before["V"], mu, y, observed, model.reg_v)
        wanted = {"U": U, "W": ridge(X1, U, model), "V": V}
        if "mu" in state:
            wanted["mu"] = m_step(e_step(U, V, mu, y, observed)[1], model)
        assert set(wanted) == set(state)
        for name in wanted:
            assert_allclose(state[name], wanted[name], rtol=1e-8, atol=1e-8, err_msg=name)


def test_the_sizes_of_the_blocks_of_scores_and_grams_do_not_matter(monkeypatch):
    X, _, said, _ = problem()
    F = features_of_labels()
    fit = lambda **kw: GenEML(max_iter=3, **kw, **PLAIN).fit(X, said, label_features=F)
    params = [
        dict(embedding=e, curvature=c, exposure=x)
        for e in EMBEDDINGS
        for c in CURVATURES
        for x in ("labels", "covariates")
    ]
    whole = [fit(**kw).decision_function(X) for kw in params]
    monkeypatch.setattr("tacit.backends.numpy.NumpyBackend.chunk", 7 * 9)
    monkeypatch.setattr("tacit.methods.geneml.em._GRAM_ENTRIES", 30)
    for kw, scores in zip(params, whole):
        assert_allclose(fit(**kw).decision_function(X), scores, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_exposure_that_is_certain_is_no_exposure_model(curvature, embedding):
    X, _, said, _ = problem()
    labels = Labels.positive_only(said)
    params = dict(curvature=curvature, embedding=embedding) | PLAIN
    certain, state = em_of(GenEML(**params | dict(alpha1=1e12)), X, labels)
    none, _ = em_of(GenEML(**params, exposure=None), X, labels)
    state, _ = certain.step(state)
    assert_allclose(state["mu"], 1, atol=1e-5)
    plain = {name: state[name] for name in state if name != "mu"}
    for _ in range(3):
        (state, _), (plain, _) = certain.step(state), none.step(plain)
        for name in plain:
            assert_allclose(state[name], plain[name], atol=1e-3, err_msg=name)
    assert_array_equal(GenEML(**params, exposure=None).fit(X, labels).exposures_, 1.0)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_complete_labels_are_positive_only_ones_of_which_all_were_asked(curvature, embedding):
    X, _, said, _ = problem()
    model = GenEML(curvature=curvature, embedding=embedding, max_iter=5, **PLAIN)
    complete = model.fit(X, Labels.complete(said))
    history, scores = complete.history_, complete.decision_function(X)
    positive = model.set_params(exposure=None).fit(X, Labels.positive_only(said))
    assert_allclose(positive.history_, history, rtol=1e-10)
    assert_allclose(positive.decision_function(X), scores, atol=1e-10)
    observed = model.fit(X, Labels.masked(said, np.ones_like(said)))
    assert_allclose(observed.history_, history, rtol=1e-10)
    assert_allclose(observed.decision_function(X), scores, atol=1e-8)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_entries_that_were_not_observed_do_not_count(curvature, embedding):
    """J at any state is that of the observed entries; two truths that agree there give one fit."""
    X, Y, _, observed = problem()
    other = np.where(observed, Y, 1 - Y)
    fit = lambda Y: GenEML(curvature=curvature, embedding=embedding, max_iter=4, **PLAIN).fit(
        X, np.where(observed, Y, np.nan)
    )
    assert_array_equal(fit(Y).decision_function(X), fit(other).decision_function(X))
    em, state = em_of(fit(Y), X, Labels.masked(Y * observed, observed))
    everything, _ = em_of(fit(Y), X, Labels.masked(Y, np.ones_like(Y)))
    assert em.step(state)[1] < everything.step(state)[1] - 1


def leml_objective(X, Y, W, H, reg):
    """LEML's J with logistic loss, dense."""
    risk = np.logaddexp(0, -(2 * Y - 1) * (X @ W @ H.T)).sum()
    return risk + 0.5 * reg * ((W**2).sum() + (H**2).sum())


@pytest.mark.parametrize("curvature", CURVATURES)
def test_tied_codes_without_exposure_are_logistic_leml(curvature):
    X, Y, _, _ = problem()
    reg = 0.8
    shared = dict(rank=3, normalize=None, fit_intercept=False, tol=0, random_state=0)
    gen = GenEML(
        embedding="tied", exposure=None, curvature=curvature, reg_v=reg, reg_w=reg, max_iter=200,
        **shared,
    ).fit(X, Labels.complete(Y))  # fmt: skip
    leml = LEML(loss="logistic", reg=reg, max_iter=60, **shared).fit(X, Labels.complete(Y))
    model = gen.model_
    assert_allclose(gen.history_[-1], leml_objective(X, Y, model.W, model.H, reg), rtol=1e-8)
    assert_allclose(gen.history_[-1], leml.history_[-1], rtol=1e-2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("streamed", [False, True])
def test_online_em_with_one_batch_of_all_rows_is_a_pass_of_the_plain_loop(
    monkeypatch, intercept, streamed
):
    monkeypatch.setattr(online, "CG_STEPS", 30)  # for the exact W
    X, _, said, _ = problem()
    params = dict(curvature="polya-gamma", fit_intercept=intercept, a0=1.0)  # γ = 1
    model = GenEML(inference="online", batch_size=len(X), max_iter=1, **params, **PLAIN)
    _, start = em_of(model, X, said)
    model = model.partial_fit(X, said) if streamed else model.fit(X, said)
    X1, y = with_one(X, model), said.astype(float)
    W, V, mu = start["W"], start["V"], start["mu"][None, :]
    U = X1 @ W
    for _ in range(online._POLYA_GAMMA_STEPS):
        U = looped_codes(U, X1 @ W, V, mu, y, None, model.reg_u)
    V, p = looped_labels(U, V, mu, y, None, model.reg_v)
    assert_allclose(model.exposures_, m_step(p, model), rtol=1e-8)
    got_W, got_V = model.model_.W[:, :3], model.model_.H
    W, basis = ridge(X1, U, model), V[:, :3]  # both known up to the signs of their columns
    assert_allclose(got_V[:, 3:], V[:, 3:], rtol=1e-8)
    assert_allclose(got_V[:, :3] @ got_V[:, :3].T, basis @ basis.T, atol=1e-8)
    wanted = W @ basis.T
    assert_allclose(got_W @ got_V[:, :3].T, wanted, atol=1e-8)


def test_a_row_with_polya_gamma_weights_takes_few_products(monkeypatch):
    """A cost: 7; they are 9 without the shared curvature as preconditioner."""
    X, _, said, _ = problem(n=100, d=40, n_labels=400, rank=30)
    products = []

    def counted(*args, **kwargs):
        found = cg(*args, **kwargs)
        products.append(found.n_products)
        return found

    monkeypatch.setattr(em_module, "cg", counted)
    model = GenEML(curvature="polya-gamma", max_iter=3, **PLAIN | {"rank": 30, "reg_u": 0.03})
    model.fit(X.astype(np.float32), said)
    assert 1 < max(products) <= 8


def test_partial_fit_after_online_em_knows_the_squares_of_all_rows():
    X, _, said, _ = problem()
    model = GenEML(inference="online", batch_size=len(X), max_iter=2, **PLAIN).fit(X, said)
    state, _ = model._stream
    assert_allclose(state["squares"], np.mean(with_one(X, model) ** 2, axis=0), rtol=1e-10)


def test_online_em_with_shared_curvature_and_one_batch_climbs():
    """γ = 1 and all rows: a step of batch EM, which the objective of the batch can tell."""
    X, _, said, _ = problem()
    model = GenEML(inference="online", batch_size=len(X), max_iter=6, a0=1.0, **PLAIN)
    model.fit(X, said)
    assert (np.diff(model.history_) < 0).all()


def test_the_same_seed_gives_the_same_batches():
    X, _, said, _ = problem()
    fit = lambda seed: GenEML(
        inference="online", batch_size=7, max_iter=2, **PLAIN | dict(random_state=seed)
    ).fit(X, said)
    assert_array_equal(fit(0).decision_function(X), fit(0).decision_function(X))
    assert not np.allclose(fit(0).decision_function(X), fit(1).decision_function(X), atol=1e-6)


@pytest.fixture(scope="module")
def held_out():
    """What was said of 800 rows, and the truth of 400 more."""
    X, Y, said, _ = problem(n=1200, d=8, n_labels=12, intercept=-1.0)
    return X[:800], said[:800], X[800:], Labels.complete(Y[800:])


def first(model, X, truth):
    """P@1."""
    return precision_at_k(truth, model.top_k(X, 1), 1)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_a_stream_of_batches_ranks_nearly_as_batch_em_does(curvature, held_out):
    X, said, X_new, truth = held_out
    params = dict(rank=3, curvature=curvature, random_state=0)
    batch = first(GenEML(**params).fit(X, said), X_new, truth)
    epochs = GenEML(inference="online", batch_size=100, max_iter=3, **params).fit(X, said)
    stream = GenEML(inference="online", **params)
    for start in range(0, 800, 100):
        stream.partial_fit(X[start : start + 100], said[start : start + 100])
    guess = np.mean(truth.positives.toarray())
    assert batch > guess + 0.3
    assert first(epochs, X_new, truth) > batch - 0.03
    assert first(stream, X_new, truth) > batch - 0.03
    assert len(stream.history_) == 8


def test_partial_fit_learns_from_every_batch_and_fit_begins_anew(held_out):
    X, said, *_ = held_out
    model = GenEML(rank=3, random_state=0)
    one = model.partial_fit(X[:100], said[:100]).decision_function(X)
    two = model.partial_fit(X[100:200], said[100:200]).decision_function(X)
    assert abs(one - two).max() > 1e-3
    for inference in ("em", "online"):
        before = model.set_params(inference=inference).fit(X, said).decision_function(X)
        after = model.partial_fit(X[100:200], said[100:200]).decision_function(X)
        assert 1e-4 < abs(after - before).max() < abs(before).max()  # it went on, not anew
    model.set_params(inference="gibbs", max_iter=2, n_draws=2).fit(X[:100], said[:100])
    with pytest.raises(ValueError, match="cannot go on with this GenEML, which was loaded"):
        model.partial_fit(X[:100], said[:100])


def test_a_batch_of_another_width_or_kind_is_one_clear_sentence():
    X, _, said, _ = problem()
    model = GenEML(**PLAIN).partial_fit(X, said)
    with pytest.raises(ValueError, match="X has 5 features, but GenEML is expecting 6"):
        model.partial_fit(X[:, :5], said)
    with pytest.raises(ValueError, match="batch has 6 positive-only labels, the first had 7 posi"):
        model.partial_fit(X, said[:, :6])
    with pytest.raises(ValueError, match="7 complete labels, the first had 7 positive-only ones"):
        model.partial_fit(X, Labels.complete(said))
    model.partial_fit(X, said)  # and the stream goes on
    assert model.predict_proba(X).shape == said.shape


@pytest.mark.parametrize("inference", ["online", "gibbs"])
@pytest.mark.parametrize("params", [dict(embedding="tied"), dict(exposure="covariates")])
def test_what_an_inference_cannot_do_is_one_clear_sentence(inference, params):
    X, _, said, _ = problem()
    message = f'inference="{inference}" is for embedding="free".*use inference="em"$'
    with pytest.raises(ValueError, match=message):
        GenEML(inference=inference, **params, **PLAIN).fit(X, said)


def planted_features(n=400, d=6, n_labels=80, seed=0):
    """v_l = M f_l exactly: what the labels' features say is all there is to know of them."""
    rng = np.random.default_rng(seed)
    X, F = rng.standard_normal((n, d)), rng.standard_normal((n_labels, 3))
    psi = X @ rng.standard_normal((d, 3)) @ F.T
    return X, F, (rng.random(psi.shape) < expit(psi)).astype(int)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_labels_never_seen_are_known_by_their_features(embedding):
    X, F, Y = planted_features()
    model = GenEML(rank=3, embedding=embedding, random_state=0)
    model.fit(X[:200], Labels.complete(Y[:200, :60]), label_features=F[:60])
    names = [f"new {j}" for j in range(20)]
    new = model.with_labels(F[60:], classes=names)
    assert list(new.classes_) == names
    scores = new.predict_proba(X[200:])
    assert scores.shape == (200, 20)
    seen = roc_auc_score(Y[200:, :60].ravel(), model.predict_proba(X[200:]).ravel())
    assert roc_auc_score(Y[200:, 60:].ravel(), scores.ravel()) > max(0.75, seen - 0.05)
    again = model.with_labels(F[:60]).decision_function(X)  # labels seen before, by M f alone
    assert np.corrcoef(again.ravel(), model.decision_function(X).ravel())[0, 1] > 0.95
    assert model.decision_function(X).shape == (400, 60), "the model itself has changed"


def test_label_features_pull_rare_labels_towards_what_they_say():
    X, F, Y = planted_features()
    few = Y * (np.random.default_rng(1).random(Y.shape) < 0.1)
    known = Labels.masked(few * Y, (np.random.default_rng(1).random(Y.shape) < 0.1))
    fit = lambda F: GenEML(rank=3, random_state=0, max_iter=20).fit(X, known, label_features=F)
    auc = lambda model: roc_auc_score(Y.ravel(), model.decision_function(X).ravel())
    assert auc(fit(F)) > auc(fit(None)) + 0.005


def test_label_features_that_do_not_fit_are_one_clear_sentence():
    X, _, said, _ = problem()
    F = features_of_labels()
    fit = lambda F: GenEML(**PLAIN, max_iter=1).fit(X, said, label_features=F)
    with pytest.raises(ValueError, match=r"^label_features has 6 rows; give one for each of 7"):
        fit(F[:6])
    for wrong in (F[0], np.where(F > 0, np.nan, F)):
        with pytest.raises(ValueError, match=r"^label_features must be a matrix of finite numbers"):
            fit(wrong)
    with pytest.raises(ValueError, match=r"^label_features has 3 columns; fit was given 2"):
        fit(F).with_labels(np.ones((4, 3)))
    with pytest.raises(ValueError, match="with_labels needs a model fitted with label_features"):
        fit(None).with_labels(F)


def rates_of(model, X, F=None):
    """μ of a fitted model, dense."""
    if model.model_.beta is None:
        return model.exposures_[None, :]
    state = {"V": model.model_.H, "beta": model.model_.beta, "bias": model.model_.bias}
    return exposures(model, X, state, F)


@pytest.mark.parametrize("with_features", [False, True], ids=["plain", "label features"])
@pytest.mark.parametrize("exposure", ["labels", "covariates", None])
def test_the_probability_of_being_said_is_that_of_being_true_times_the_exposure(
    exposure, with_features
):
    X, _, said, _ = problem()
    F = features_of_labels() if with_features else None
    model = GenEML(exposure=exposure, max_iter=5, **PLAIN).fit(X, said, label_features=F)
    mu, true = rates_of(model, X, F), model.predict_proba(X)
    assert_allclose(true, expit(model.decision_function(X)), rtol=1e-10)
    assert_allclose(model.predict_proba(X, what="said"), mu * true, rtol=1e-9)
    assert_allclose(model.exposures_, np.broadcast_to(mu, said.shape).mean(0), rtol=1e-9)
    with pytest.raises(ValueError, match=r"^what must be .true. or .said.; got .both.$"):
        model.predict_proba(X, what="both")


def laid_out(found, shape):
    probability = np.full(shape, np.nan)
    probability[found.row, found.label] = found.probability
    return probability


@pytest.mark.parametrize("exposure", ["labels", "covariates", None])
def test_completions_have_the_probability_of_a_truth_that_was_not_said(exposure):
    X, _, said, observed = problem()
    model = GenEML(exposure=exposure, max_iter=5, **PLAIN).fit(X, said)
    mu, true = rates_of(model, X), model.predict_proba(X)
    found = laid_out(model.complete(X, said, k=7, fold_in=False), said.shape)
    # Where all were asked, silence is a no, and nothing but σ(ψ) could rank them.
    wanted = true if exposure is None else (1 - mu) * true / (1 - mu * true)
    assert_allclose(found, np.where(said, np.nan, wanted), rtol=1e-8)
    masked = Labels.masked(said * observed, observed)  # it is known who was not asked
    found = laid_out(model.complete(X, masked, k=7, fold_in=False), said.shape)
    assert_allclose(found, np.where(observed, np.nan, true), rtol=1e-8)


@pytest.mark.parametrize("kind", ["positive-only", "reviewed", "masked"])
@pytest.mark.parametrize("exposure", ["labels", "covariates", None])
def test_folding_in_raises_the_likelihood_of_what_was_said(kind, exposure):
    X, *rest = problem()
    labels = labels_of(kind, *rest)
    model = GenEML(exposure=exposure, max_iter=5, **PLAIN).fit(X, rest[1])
    (block,) = model._blocks(X, 7, labels)
    mu, V, codes = rates_of(model, X), model.model_.H, model.transform(X)
    folded = model.model_._folded_in(block)
    value = lambda U: log_likelihood(labels, U @ V.T, mu).sum(1)
    assert_array_equal(folded[:, 3], 1.0)
    assert (value(folded) >= value(codes)).all()
    assert value(folded).sum() > value(codes).sum() + 1
    # And they are the best compromise with what the features say.
    joint = lambda U: value(U) - 0.5 * model.reg_u * ((U - codes) ** 2).sum(1)
    assert (joint(folded) >= joint(codes)).all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = folded + np.where(np.arange(4) < 3, 0.2 * rng.standard_normal(folded.shape), 0)
        assert joint(moved).mean() < joint(folded).mean()


def test_folding_in_finds_more_of_what_was_hidden():
    """With features that say little, what was said of a row says the rest."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((600, 2)), rng.standard_normal((15, 2))
    X = U + 3 * rng.standard_normal(U.shape)
    Y = (rng.random((600, 15)) < expit(4 * U @ V.T)).astype(int)
    said = hide(Labels.complete(Y), Exposure(0.5), random_state=0).labels
    model = GenEML(rank=2, reg_u=0.1, random_state=0).fit(X, said)
    silent = ~said.positives.toarray()
    auc = {
        fold_in: roc_auc_score(
            Y[silent], laid_out(model.complete(X, said, k=15, fold_in=fold_in), Y.shape)[silent]
        )
        for fold_in in (False, True)
    }
    assert auc[True] > auc[False] + 0.05


@pytest.fixture(scope="module")
def sampled():
    X, _, said, _ = problem(n=200, d=4, n_labels=6, rank=2, seed=1, intercept=0.0)
    # Codes near Wᵀx, and exposures known beforehand: else the best are far from the mean ones.
    params = dict(rank=2, reg_u=20.0, alpha1=60, alpha2=40, normalize=None, random_state=0)
    gibbs = GenEML(inference="gibbs", max_iter=300, n_draws=150, **params).fit(X, said)
    return X, said, params, gibbs


def test_the_posterior_is_centred_where_em_predicts(sampled):
    X, said, params, gibbs = sampled
    em = GenEML(max_iter=100, tol=0, **params).fit(X, said)
    mean, wanted = gibbs.predict_proba(X), em.predict_proba(X)
    assert np.corrcoef(mean.ravel(), wanted.ravel())[0, 1] > 0.95
    low, high = gibbs.predict_interval(X)
    assert ((low < wanted) & (wanted < high)).mean() > 0.85
    assert ((low < mean) & (mean < high)).mean() > 0.99
    narrow = gibbs.predict_interval(X, level=0.5)
    assert ((low <= narrow[0]) & (narrow[0] <= narrow[1]) & (narrow[1] <= high)).all()
    assert (gibbs.exposure_interval_[0] < gibbs.exposures_).all()
    assert (gibbs.exposures_ < gibbs.exposure_interval_[1]).all()


def test_an_interval_holds_the_share_of_draws_that_its_level_says(sampled):
    X, _, _, gibbs = sampled
    (block,) = gibbs._blocks(X, 6)
    draws = expit(np.array(list(gibbs.model_.draws(block))))
    assert len(draws) == 150
    assert_allclose(gibbs.predict_proba(X), draws.mean(0), rtol=1e-10)
    low, high = gibbs.predict_interval(X, level=0.8)
    assert_allclose(((draws >= low) & (draws <= high)).mean(0), 0.8, atol=0.02)


def test_intervals_need_draws_and_a_level_between_nought_and_one(sampled):
    X, said, params, gibbs = sampled
    em = GenEML(max_iter=1, **params).fit(X, said)
    with pytest.raises(ValueError, match=r"^predict_interval needs inference=.gibbs..*'em'$"):
        em.predict_interval(X)
    for level in (0, 1, 2.0):
        with pytest.raises(ValueError, match=r"^level must be between 0 and 1; got"):
            gibbs.predict_interval(X, level=level)


def test_gibbs_of_complete_and_masked_labels_asks_nobody(sampled):
    X, said, params, _ = sampled
    params = params | dict(inference="gibbs", max_iter=5, n_draws=3)
    observed = np.random.default_rng(0).random(said.shape) < 0.7
    for labels in (Labels.complete(said), Labels.masked(said * observed, observed)):
        assert_array_equal(GenEML(**params).fit(X, labels).exposures_, 1.0)
    complete = GenEML(**params).fit(X, Labels.complete(said)).decision_function(X)
    none = GenEML(**params, exposure=None).fit(X, said).decision_function(X)
    assert_array_equal(none, complete)


def test_gibbs_knows_that_who_said_no_was_asked():
    """Where no entry is left open, nobody's exposure has to be drawn: the truth is known."""
    X, Y, *_ = problem()
    params = dict(inference="gibbs", max_iter=5, n_draws=3, exposure="labels") | PLAIN
    reviewed = Labels.positive_only(Y, no=1 - Y)
    known = GenEML(**params).fit(X, reviewed).exposures_
    guessed = GenEML(**params).fit(X, Y).exposures_
    n, a1, a2 = len(X), PRIORS["alpha1"], PRIORS["alpha2"]
    assert_allclose(known, (n + a1) / (n + a1 + a2), atol=0.05)
    assert (guessed < known - 0.05).all()


SAVED = {
    "plain": dict(),
    "covariates": dict(exposure="covariates"),
    "tied": dict(embedding="tied"),
    "gibbs": dict(inference="gibbs", n_draws=4),
    "online": dict(inference="online"),
    "no intercept": dict(fit_intercept=False),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SAVED)
def test_a_saved_model_predicts_the_same(tmp_path, name, dtype):
    X, _, said, _ = problem()
    X = X.astype(dtype)
    features = features_of_labels() if name in ("plain", "covariates") else None
    model = GenEML(max_iter=3, **PLAIN | SAVED[name]).fit(X, said, label_features=features)
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model")
    for predict in (
        lambda m: m.predict_proba(X),
        lambda m: m.predict_proba(X, what="said"),
        lambda m: m.complete(X, said, k=3),
        lambda m: m.complete(X, said, k=3, fold_in=False),
        lambda m: m.predict_interval(X) if name == "gibbs" else m.decision_function(X),
        lambda m: m.with_labels(np.eye(2)).decision_function(X) if features is not None else 0,
    ):
        assert_array_equal(predict(loaded), predict(model))
    assert loaded.history_ == model.history_


@pytest.mark.parametrize(
    ("name", "shape"), [("exposures", (6,)), ("beta", (3, 1)), ("bias", (7, 1))]
)
def test_a_file_whose_exposures_do_not_fit_is_refused(tmp_path, name, shape):
    X, _, said, _ = problem()
    model = GenEML(exposure="covariates", max_iter=1, **PLAIN).fit(X, said)
    model.save(tmp_path / "model")
    header, arrays = read_arrays(tmp_path / "model")
    write_arrays(tmp_path / "other", header, arrays | {name: np.ones(shape)})
    with pytest.raises(ValueError, match=rf"its {name} has shape"):
        tacit.load(tmp_path / "other")


def planted(seed, n=3000, n_new=1000):
    """The paper's sizes, six exposures and complete test labels; a fifth of the scores above 0."""
    rng = np.random.default_rng(seed)
    X = 3 * rng.standard_normal((n + n_new, 100)) / 10
    psi = 6 * X @ rng.standard_normal((100, 10)) @ rng.standard_normal((10, 20)) / np.sqrt(10)
    Y = (rng.random(psi.shape) < expit(psi - np.quantile(psi, 0.8))).astype(int)
    mu = rng.choice([0.01, 0.05, 0.1, 0.3, 0.5, 0.9], 20)
    said = hide(Labels.complete(Y[:n]), Exposure(mu), random_state=seed).labels
    return X[:n].astype(np.float32), said, X[n:], Labels.complete(Y[n:]), mu


@pytest.mark.slow
@pytest.mark.parametrize(("embedding", "gain"), [("free", 0.0), ("tied", 0.02)])
def test_who_was_asked_is_learned_and_helps_to_rank(embedding, gain):
    gains, correlations = [], []
    for seed in range(3):
        X, said, X_new, truth, mu = planted(seed)
        params = dict(rank=10, embedding=embedding, random_state=0)
        on, off = (GenEML(**params, exposure=e).fit(X, said) for e in ("labels", None))
        gains.append(first(on, X_new, truth) - first(off, X_new, truth))
        correlations.append(np.corrcoef(np.log(on.exposures_), np.log(mu))[0, 1])
    assert np.mean(gains) >= gain
    assert np.mean(correlations) > 0.6


@pytest.mark.parametrize("sparse", [True, False])
def test_squares_are_those_of_the_features_over_the_rows(sparse):
    X = sp.random_array((30, 6), density=0.3, random_state=0, format="csr")
    rows = Rows(X if sparse else X.toarray(), Labels.positive_only(np.ones((30, 2), int)))
    placed = block.place(rows, block.Placement(get_backend("cpu"), "float64", None, True))
    wanted = np.append((X.toarray() ** 2).sum(0), 30)
    assert_allclose(online._squares(placed, np.zeros(1)), wanted)


def test_a_model_with_label_features_does_not_go_on_online():
    X, _, said, _ = problem()
    model = GenEML(**PLAIN).fit(X, said, label_features=features_of_labels())
    with pytest.raises(ValueError, match="partial_fit cannot go on with this GenEML"):
        model.partial_fit(X, said)
    with pytest.raises(ValueError, match='partial_fit is for embedding="free" and exposure'):
        GenEML(embedding="tied", **PLAIN).partial_fit(X, said)
