"""The laws of a hidden layer under AdaGrad: its slopes, its order of steps, its drawn labels."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import pairwise
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, logit, logsumexp
from scipy.special import softmax as softmax_of
from scipy.stats import multinomial

from tacit.backends.block import Placement, place
from tacit.blocks import Rows
from tacit.engines.descend import Loop
from tacit.engines.network import Network
from tacit.engines.problem import Problem
from tacit.labels import Labels

THETA = ("W", "V", "b")
RATE = 0.1
LOSSES = [("sigmoid", "softmax", False), ("sigmoid", "softmax", True), ("relu", "logistic", False)]
losses = pytest.mark.parametrize(
    ("activation", "loss", "by_count"), LOSSES, ids=["softmax", "by count", "logistic"]
)
maybe_masked = pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])


def problem(n=12, d=8, n_labels=6, rank=3, seed=0, dense=False, density=0.25):
    """X with features that no row has, Y and Ω with empty rows, and a network in mid-training."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    X[:, 2] = 0
    observed, Y = rng.random((n, n_labels)) < 0.7, rng.random((n, n_labels)) < density
    Y[1] = observed[4] = False
    Y[0, 0] = observed[0, 0] = True
    theta = {
        "W": rng.standard_normal((d, rank)),
        "V": rng.standard_normal((n_labels, rank)),
        "b": rng.standard_normal(n_labels),
    }
    squares = {f"{name}²": rng.random(value.shape) for name, value in theta.items()}
    return X if dense else sp.csr_array(X), Y, observed, theta | squares


def labels_of(Y, observed):
    return Labels.complete(Y) if observed is None else Labels.masked(Y & observed, observed)


def block_of(backend, X, Y, observed=None, dtype="float64"):
    return place(Rows(X, labels_of(Y, observed)), Placement(backend, dtype, None, False))


def on(backend, state):
    return {name: backend.asarray(value.copy()) for name, value in state.items()}


def off(backend, state):
    return {name: backend.to_numpy(value).copy() for name, value in state.items()}


def fresh(state):
    """The same θ before any step."""
    return state | {name: np.zeros_like(state[name]) for name in state if name.endswith("²")}


def uniform(n_labels):
    return np.full(n_labels, 1 / n_labels)


def update(backend, network, state, b, frequency=None, seed=0):
    """The state after one batch, and the loss before it."""
    state = on(backend, state)
    frequency = uniform(len(state["b"])) if frequency is None else frequency
    loss = network.update(state, b, frequency, np.random.default_rng(seed))
    return off(backend, state), float(loss)


def slopes(backend, network, state, b, **draw):
    """What one pass stepped along: from S = 0, S is g² and θ moved against the sign of g."""
    state = fresh(state)
    after, _ = update(backend, network, state, b, **draw)
    return {name: np.sqrt(after[f"{name}²"]) * np.sign(state[name] - after[name]) for name in THETA}


def differences(loss, state, step=1e-5):
    """Central differences of a loss in every number of θ."""
    found = {name: np.zeros_like(state[name]) for name in THETA}
    for name in THETA:
        for place_ in np.ndindex(state[name].shape):
            moved = [state[name].copy() for _ in range(2)]
            moved[0][place_] += step
            moved[1][place_] -= step
            up, down = (loss(state | {name: value}) for value in moved)
            found[name][place_] = (up - down) / (2 * step)
    return found


def plain(network, X, Y, observed, theta, labels=slice(None), log_share=0.0):
    """The loss and the gradient of W, V and b in dense NumPy, over some labels."""
    X = X.toarray() if sp.issparse(X) else X
    known = np.ones_like(Y) if observed is None else observed
    known, Y = known[:, labels], (Y & known)[:, labels]
    Z = X @ theta["W"]
    U, slope = (expit(Z), expit(Z) * expit(-Z))
    if network.activation == "relu":
        U, slope = np.maximum(Z, 0), (Z > 0).astype(float)
    H = U @ theta["V"][labels].T + theta["b"][labels] - log_share
    if network.loss == "logistic":
        R = known * (expit(H) - Y)
        loss = -(known * np.where(Y, log_expit(H), log_expit(-H))).sum()
    else:
        count = Y.sum(1)
        some = count > 0
        H, G = H[some], Y[some] / count[some, None]
        weight = count[some] if network.by_count else np.ones(some.sum())
        lowered = np.where(known[some], H, -np.inf)
        R = np.zeros(Y.shape)
        R[some] = weight[:, None] * (softmax_of(lowered, axis=1) - G)
        loss = weight @ (logsumexp(lowered, axis=1) - (G * H).sum(1))
    V = theta["V"][labels]
    return loss, {"W": X.T @ (slope * (R @ V)), "V": R.T @ U, "b": R.sum(0)}


def plain_update(network, X, Y, observed, state, labels=slice(None), log_share=0.0):
    """Algorithm 1: AdaGrad on W, V and b, each at what the last step left, or all at once."""
    state = {name: value.copy() for name, value in state.items()}
    before = dict(state)
    for name in THETA:
        at = state if network.in_turn else before
        g = plain(network, X, Y, observed, at, labels, log_share)[1][name]
        where = slice(None) if name == "W" else labels
        theta, S = state[name].copy(), state[f"{name}²"].copy()
        S[where] += g**2
        theta[where] -= RATE * g / (np.sqrt(S[where]) + 1e-8)
        state |= {name: theta, f"{name}²": S}
    return state


def same(got, wanted, **tolerance):
    for name in wanted:
        assert_allclose(got[name], wanted[name], err_msg=name, **tolerance)


@pairwise(loss_of=LOSSES, masked=[False, True], dense=[False, True])
def test_the_steps_go_along_the_derivatives_of_the_loss(backend, loss_of, masked, dense):
    activation, loss, by_count = loss_of
    X, Y, observed, state = problem(dense=dense)
    b = block_of(backend, X, Y, observed if masked else None)
    network = Network(activation, loss, RATE, by_count=by_count)
    value = lambda state: network.value(b, on(backend, state))
    same(slopes(backend, network, state, b), differences(value, state), atol=1e-7)
    _, told = update(backend, network, state, b)
    assert_allclose(told, float(value(state)), rtol=1e-12)


@pairwise(loss_of=LOSSES, masked=[False, True], log_q=[False, True])
def test_the_steps_go_along_the_derivatives_of_the_loss_of_drawn_labels(
    backend, loss_of, masked, log_q
):
    activation, loss, by_count = loss_of
    X, Y, observed, state = problem(n=5, n_labels=24, rank=2, density=0.06)
    b = block_of(backend, X, Y, observed if masked else None)
    network = Network(activation, loss, RATE, by_count=by_count, beta=1.0, log_q=log_q)
    value = lambda state: update(backend, network, state, b)[1]  # the seed draws the same labels
    got = slopes(backend, network, state, b)
    same(got, differences(value, state), atol=1e-7)
    assert 0 < np.count_nonzero(got["b"]) <= 12


def test_the_steps_go_along_the_derivatives_under_dropout(backend):
    X, Y, _, state = problem()
    b = block_of(backend, X, Y)
    network = Network("relu", "logistic", RATE, dropout=0.4)
    value = lambda state: update(backend, network, state, b)[1]
    same(slopes(backend, network, state, b), differences(value, state), atol=1e-7)
    assert abs(value(state) - network.value(b, on(backend, state))) > 1e-3


def test_dropout_keeps_a_unit_as_often_as_it_should_and_its_mean(backend):
    b = block_of(backend, np.ones((1, 1)), np.array([[True, False]]))
    theta = {"W": np.ones((1, 4000)), "V": np.zeros((2, 4000)), "b": np.zeros(2)}
    state = theta | {f"{name}²": np.zeros_like(value) for name, value in theta.items()}
    after, _ = update(backend, Network("relu", "logistic", RATE, dropout=0.4), state, b)
    hidden = np.sqrt(after["V²"][0] / after["b²"][0])  # ∇V = r u, ∇b = r
    kept = hidden > 0
    assert_allclose(hidden[kept], 1 / 0.6, rtol=1e-10)
    assert_allclose(kept.mean(), 0.6, atol=0.03)


@pairwise(loss_of=LOSSES, masked=[False, True], in_turn=[True, False], dense=[False, True])
def test_a_batch_is_algorithm_1_step_by_step(backend, loss_of, masked, in_turn, dense):
    activation, loss, by_count = loss_of
    X, Y, observed, state = problem(dense=dense)
    observed = observed if masked else None
    network = Network(activation, loss, RATE, in_turn=in_turn, by_count=by_count)
    told, wanted_loss, wanted = 0.0, 0.0, state
    for rows in (slice(0, 7), slice(7, 12)):
        part = X[rows], Y[rows], None if observed is None else observed[rows]
        wanted_loss += plain(network, *part, wanted)[0]
        wanted = plain_update(network, *part, wanted)
        state, added = update(backend, network, state, block_of(backend, *part))
        told += added
    assert_allclose(told, wanted_loss, rtol=1e-12)
    same(state, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("in_turn", [True, False], ids=["gauss-seidel", "one pass"])
@pytest.mark.parametrize("n", [600, 601])
def test_a_batch_large_enough_for_two_threads_is_algorithm_1_too(backend, n, in_turn):
    X, Y, _, state = problem(n=n, n_labels=451, density=0.01)
    network = Network("sigmoid", "softmax", RATE, in_turn=in_turn)
    wanted = plain_update(network, X, Y, None, state)
    got, told = update(backend, network, state, block_of(backend, X, Y))
    assert_allclose(told, plain(network, X, Y, None, state)[0], rtol=1e-12)
    same(got, wanted, rtol=1e-8, atol=1e-11)


@losses
@maybe_masked
def test_value_is_the_dense_loss_however_many_rows_are_laid_out_at_a_time(
    backend, activation, loss, by_count, masked, monkeypatch
):
    X, Y, observed, state = problem()
    observed = observed if masked else None
    network = Network(activation, loss, RATE, by_count=by_count, beta=0.1, dropout=0.5)
    b, wanted = block_of(backend, X, Y, observed), plain(network, X, Y, observed, state)[0]
    for chunk in (1, 3 * Y.shape[1], 2**20):
        monkeypatch.setattr(type(backend), "chunk", chunk)
        assert_allclose(network.value(b, on(backend, state)), wanted, rtol=1e-12)


def test_float32_stays_float32_and_close(backend):
    X, Y, observed, state = problem()
    network = Network("sigmoid", "softmax", RATE, in_turn=True)
    wanted = plain_update(network, X, Y, observed, state)
    small = {name: value.astype(np.float32) for name, value in state.items()}
    got, _ = update(backend, network, small, block_of(backend, X, Y, observed, "float32"))
    assert {value.dtype for value in got.values()} == {np.dtype("float32")}
    same(got, wanted, rtol=1e-4, atol=1e-5)


def test_an_epoch_is_its_batches_one_after_the_other_and_leaves_its_start_alone(backend):
    X, Y, _, state = problem(n_labels=40, density=0.03)
    batches = [block_of(backend, X[rows], Y[rows]) for rows in (slice(0, 7), slice(7, 12))]
    network = Network("sigmoid", "softmax", RATE, in_turn=True, beta=1.0)
    begun, rng = on(backend, state), np.random.default_rng(3)
    wanted = on(backend, state)
    total = sum(network.update(wanted, b, uniform(40), rng) for b in batches)
    got, told = network.epoch(begun, iter(batches), uniform(40), 3)
    assert_allclose(float(told), float(total), rtol=1e-14)
    for name in state:
        assert_array_equal(backend.to_numpy(got[name]), backend.to_numpy(wanted[name]))
        assert_array_equal(backend.to_numpy(begun[name]), state[name])
    again, _ = network.epoch(begun, iter(batches), uniform(40), 4)
    assert not np.array_equal(backend.to_numpy(again["b"]), backend.to_numpy(got["b"]))


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_network_starts_at_the_rates_of_the_labels_with_codes_that_tell_nothing(backend, loss):
    task = Problem(
        None, "complete", 50, 40, 3, backend, np.random.RandomState(0), np.dtype("float64"),
        Loop("test"), rows=None, placement=None, seed=0,
    )  # fmt: skip
    counts = np.array([0, 7, 50])
    network = Network("sigmoid", loss, RATE)
    state = off(backend, network.start(task, 100, backend.asarray(counts.astype(float)), 50))
    rates = (counts + 0.5) / 51
    assert_allclose(state["b"], np.log(rates) if loss == "softmax" else logit(rates), rtol=1e-12)
    assert state["W"].shape == (40, 100)
    assert_allclose([state["W"].mean(), state["W"].std()], [0, 0.1], atol=5e-3)
    assert_array_equal(state["V"], np.zeros((3, 100)))
    for name in THETA:
        assert_array_equal(state[f"{name}²"], np.zeros(state[name].shape))


def test_passes_lower_the_loss(backend):
    X, Y, observed, state = problem(n=60)
    b = block_of(backend, X, Y, observed)
    for in_turn, by_count in itertools.product([True, False], repeat=2):
        network = Network("sigmoid", "softmax", RATE, in_turn=in_turn, by_count=by_count)
        at, values = on(backend, fresh(state)), []
        for epoch in range(15):
            values.append(network.value(b, at))
            at, _ = network.epoch(at, [b], uniform(6), epoch)
        assert (np.diff(values[2:]) < 0).all()  # the first steps are of full length in every entry
        assert values[-1] < 0.9 * values[0]


@maybe_masked
def test_a_constant_added_to_every_offset_changes_no_softmax(backend, masked):
    X, Y, observed, state = problem()
    b = block_of(backend, X, Y, observed if masked else None)
    network = Network("sigmoid", "softmax", RATE)
    value = lambda state: network.value(b, on(backend, state))
    assert_allclose(value(state | {"b": state["b"] + 5}), value(state), rtol=1e-12)


def test_weighting_by_label_count_is_the_multinomial_likelihood(backend):
    X, Y, _, state = problem()
    b, network = block_of(backend, X, Y), Network("sigmoid", "softmax", RATE, by_count=True)
    said, Z = Y.any(1), expit(X @ state["W"])
    shifted = state | {"V": -state["V"], "b": state["b"] ** 2}

    def likelihood(state):
        P = softmax_of(Z @ state["V"].T + state["b"], axis=1)
        return multinomial.logpmf(Y[said].astype(int), Y[said].sum(1), P[said]).sum()

    gained = network.value(b, on(backend, state)) - network.value(b, on(backend, shifted))
    assert_allclose(gained, likelihood(shifted) - likelihood(state), rtol=1e-10)


@pytest.mark.parametrize("beta", [None, 1.0])
@pytest.mark.parametrize("in_turn", [True, False], ids=["gauss-seidel", "one pass"])
def test_rows_without_labels_change_nothing(backend, in_turn, beta):
    X, Y, _, state = problem(n_labels=40, density=0.03)
    assert not Y[1].any()
    network = Network("sigmoid", "softmax", RATE, in_turn=in_turn, beta=beta)
    said = Y.any(1)
    assert 1 < said.sum() < len(Y)
    with_them, loss = update(backend, network, state, block_of(backend, X, Y))
    without, same_loss = update(backend, network, state, block_of(backend, X[said], Y[said]))
    assert_allclose(loss, same_loss, rtol=1e-12)
    same(with_them, without, rtol=1e-10, atol=1e-13)


@losses
@pytest.mark.parametrize("beta", [None, 1.0])
def test_masked_labels_that_are_all_known_are_complete_ones(
    backend, activation, loss, by_count, beta
):
    X, Y, _, state = problem(n_labels=40, density=0.03)
    network = Network(activation, loss, RATE, in_turn=True, by_count=by_count, beta=beta)
    masked, loss = update(backend, network, state, block_of(backend, X, Y, np.ones_like(Y)))
    complete, same_loss = update(backend, network, state, block_of(backend, X, Y))
    assert_allclose(loss, same_loss, rtol=1e-12)
    same(masked, complete, rtol=1e-10, atol=1e-13)


# ---- drawn labels


def rare(n_labels=60, seed=0):
    """A batch of few positives among many labels, and how often each label is said elsewhere."""
    X, Y, observed, state = problem(n=6, n_labels=n_labels, rank=2, seed=seed, density=0.02)
    frequency = 0.05 + np.random.default_rng(seed).random(n_labels) ** 3
    frequency[5:9] = 0
    return X, Y, observed, state, frequency / frequency.sum()


def drawn(before, after):
    """The labels whose offset has a step behind it: a softmax leaves nobody without one."""
    return np.flatnonzero(after["b²"] != before["b²"])


@pairwise(loss_of=LOSSES, masked=[False, True], in_turn=[True, False], log_q=[False, True])
def test_a_batch_of_drawn_labels_is_algorithm_1_over_those(
    backend, loss_of, masked, in_turn, log_q
):
    activation, loss, by_count = loss_of
    X, Y, observed, state, frequency = rare()
    observed = observed if masked else None
    options = dict(in_turn=in_turn, by_count=by_count, beta=2.0, log_q=log_q)
    network = Network(activation, loss, RATE, **options)
    b = block_of(backend, X, Y, observed)
    got, told = update(backend, network, state, b, frequency, 7)
    # Masked labels may be drawn though nobody knows of them: a complete batch tells which were.
    Y = Y if observed is None else Y & observed
    chosen = drawn(state, update(backend, network, state, block_of(backend, X, Y), frequency, 7)[0])
    positive = np.flatnonzero(Y.any(0))
    assert set(positive) < set(chosen)
    assert len(chosen) <= 30
    share = -np.expm1(-2.0 * Y.sum() * frequency)
    share[positive] = 1
    log_share = np.log(share[chosen]) if log_q else 0.0
    wanted = plain_update(network, X, Y, observed, state, chosen, log_share)
    assert_allclose(told, plain(network, X, Y, observed, state, chosen, log_share)[0], rtol=1e-12)
    same(got, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("in_turn", [True, False], ids=["gauss-seidel", "one pass"])
def test_labels_not_drawn_and_features_not_there_keep_every_bit(backend, in_turn):
    X, Y, _, state, frequency = rare()
    network = Network("sigmoid", "softmax", RATE, in_turn=in_turn, beta=2.0)
    after, _ = update(backend, network, state, block_of(backend, X, Y), frequency)
    absent = np.setdiff1d(np.arange(X.shape[1]), X.indices)
    others = np.setdiff1d(np.arange(60), drawn(state, after))
    assert 2 in absent
    assert len(others) >= 30
    for name, rows in (("W", absent), ("V", others), ("b", others)):
        for part in (name, f"{name}²"):
            assert_array_equal(after[part][rows], state[part][rows])
            there = np.setdiff1d(np.arange(len(state[part])), rows)
            assert (after[part][there] != state[part][there]).any()


@losses
@maybe_masked
def test_a_large_beta_is_the_full_objective(backend, activation, loss, by_count, masked):
    X, Y, observed, state, _ = rare()
    b = block_of(backend, X, Y, observed if masked else None)
    options = dict(in_turn=True, by_count=by_count)
    full, value = update(backend, Network(activation, loss, RATE, **options), state, b)
    network = Network(activation, loss, RATE, **options, beta=1e6, log_q=True)
    got, told = update(backend, network, state, b)
    assert told == value
    for name in full:
        assert_array_equal(got[name], full[name])


def test_where_more_than_half_of_the_labels_are_drawn_all_are_used(backend):
    X, Y, _, state, _ = rare()
    b, sizes = block_of(backend, X, Y), []
    for beta, seed in itertools.product([0.5, 2, 4, 5, 6, 7, 8, 12], range(5)):
        network = Network("sigmoid", "softmax", RATE, beta=beta)
        sizes.append(len(drawn(state, update(backend, network, state, b, seed=seed)[0])))
    assert {size for size in sizes if size > 30} == {60}
    assert any(20 < size <= 30 for size in sizes)


@pytest.fixture(scope="module")
def draws():
    """Many draws for one row of two labels: which labels, and Σ exp(h) with and without log_q."""
    from tacit.backends import get_backend

    backend, L, beta = get_backend("cpu"), 60, 6.0
    X, _, _, state, frequency = rare(L)
    X, Y = np.ones((1, X.shape[1])), np.arange(L)[None] < 2
    b = block_of(backend, X, Y)
    H = expit(X @ state["W"]) @ state["V"].T + state["b"]
    rng, sets, sums = np.random.default_rng(0), [], {True: [], False: []}
    for _ in range(4000):
        seed = int(rng.integers(2**31))
        for log_q, found in sums.items():
            network = Network("sigmoid", "softmax", RATE, beta=beta, log_q=log_q)
            after, loss = update(backend, network, state, b, frequency, seed)
            found.append(np.exp(loss + H[Y].mean()))
        sets.append(np.isin(np.arange(L), drawn(state, after)))
    possible = np.exp(H)[0, frequency > 0].sum()  # a label never said is never drawn
    return np.array(sets), sums, possible, -np.expm1(-beta * 2 * frequency), frequency


def test_a_label_is_drawn_as_often_as_its_frequency_says(draws):
    sets, _, _, share, frequency = draws
    assert sets[:, :2].all()  # the positives
    often = sets.mean(0)[2:]
    assert (
        abs(often - share[2:]) < 4.5 * np.sqrt(share * (1 - share) / len(sets))[2:] + 1e-12
    ).all()
    assert_array_equal(often[frequency[2:] == 0], 0)
    # Independent coins: the size of the set varies as a sum of them does.
    assert_allclose(sets.sum(1).var(), (share * (1 - share))[2:].sum(), rtol=0.1)


def test_with_log_q_the_sum_over_drawn_labels_is_unbiased(draws):
    _, sums, total, *_ = draws
    mean, error = np.mean(sums[True]), np.std(sums[True]) / np.sqrt(len(sums[True]))
    assert error < 0.05 * total
    assert abs(mean - total) < 4 * error
    assert np.mean(sums[False]) < 0.8 * total
