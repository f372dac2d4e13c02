"""Rows dealt into folds by row: no cut into blocks, and no place they lie in, changes a fold."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tacit import Labels, Tacit
from tacit.backends import Sparse
from tacit.backends.block import Block
from tacit.blocks import MemoryBlocks, Rows
from tacit.engines.descend import Loop
from tacit.features.scaling import Scaling
from tacit.methods.tacit.deal import Dealt, SomeRows, together

KINDS = ["complete", "positive-only", "reviewed", "masked"]
FORMS = [np.asarray, sp.csr_array]


def rows(n=53, kind="masked", form=np.asarray):
    """Rows that are told apart by their first feature, their number."""
    rng = np.random.default_rng(0)
    X = np.hstack([np.arange(1, n + 1)[:, None], rng.standard_normal((n, 3))])
    Y, known = (rng.random((n, 5)) < p for p in (0.4, 0.7))
    make = {
        "complete": lambda: Labels.complete(Y),
        "positive-only": lambda: Labels.positive_only(Y),
        "reviewed": lambda: Labels.positive_only(Y, no=~Y & ~known),
        "masked": lambda: Labels.masked(Y & known, known),
    }
    return Rows(form(X), make[kind]())


def dealt(blocks, device="cpu", seed=0):
    model = Tacit(device=device, random_state=seed)
    return Dealt.of(SomeRows.of(model._problem(*model._rows(blocks, None))))


def cut_at(some, ends):
    """The rows in blocks that end at these places."""
    starts = [0, *ends]
    slices = [slice(a, b) for a, b in zip(starts, [*ends, len(some)])]
    return MemoryBlocks(tuple(Rows(some.X[part], some.labels[part]) for part in slices))


def laid_out(b: Block):
    """A list of one: the features, what was said and what is known of a block's rows."""
    host = lambda A: A.scipy().toarray() if isinstance(A, Sparse) else b.backend.to_numpy(A)
    known = np.ones(b.Y.shape) if b.omega is None else host(b.omega)
    said = host(b.Y) if b.noes is None else host(b.Y) - 1.0 * host(b.noes)
    if b.omega is not None:  # and the labels on Ω are those of Y, row by row
        assert_array_equal(b.backend.to_numpy(b.y), said[known.astype(bool)])
    return [(host(b.X), said, known)]


def all_of(some: SomeRows):
    X, said, known = (np.vstack(part) for part in zip(*some.blocks.sum(laid_out)))
    assert some.n_samples == len(X)
    assert some.n_features == X.shape[1]
    return X, said, known


def numbers_of(some: SomeRows):
    return all_of(some)[0][:, 0].astype(int) - 1


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_where_the_rows_lie_changes_no_fold(blocks_of, where, form):
    some = rows(form=form)
    wanted = dealt(MemoryBlocks.from_rows(some))
    got = dealt(blocks_of(some.X, some.labels, where))
    for which in (
        lambda d: d.fold(1, 5, 100),
        lambda d: d.fold(0, 3, 4),
        lambda d: d.rest(2, 5),
        lambda d: d.first(11),
    ):
        for a, b in zip(all_of(which(got)), all_of(which(wanted)), strict=True):
            assert_allclose(a, b)


@given(ends=st.lists(st.integers(0, 53), max_size=6).map(sorted), fold=st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_no_cut_into_blocks_changes_a_fold_even_where_blocks_are_empty(ends, fold):
    some = rows()
    cut, whole = dealt(cut_at(some, ends)), dealt(cut_at(some, []))
    assert_array_equal(numbers_of(cut.fold(fold, 5, 53)), numbers_of(whole.fold(fold, 5, 53)))
    assert_array_equal(numbers_of(cut.rest(fold, 5)), numbers_of(whole.rest(fold, 5)))
    assert_array_equal(numbers_of(cut.first(20)), numbers_of(whole.first(20)))


@given(n=st.integers(1, 60), cv=st.integers(2, 7))
@settings(max_examples=25, deadline=None)
def test_folds_are_disjoint_cover_all_rows_and_differ_by_one_row_at_most(n, cv):
    d = dealt(MemoryBlocks.from_rows(rows(n)))
    folds = [numbers_of(d.fold(k, cv, n)) for k in range(cv)]
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    for k, fold in enumerate(folds):
        assert_array_equal(np.sort([*numbers_of(d.rest(k, cv)), *fold]), np.arange(n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_each_row_keeps_its_own_features_and_labels(kind, form):
    some = rows(kind=kind, form=form)
    d = dealt(MemoryBlocks.from_rows(some, n_blocks=3))
    host = lambda A: A.toarray() if sp.issparse(A) else A
    known = some.labels.observed
    known = np.ones(some.labels.shape) if known is None else known.toarray()
    for part in (d.fold(2, 5, 100), d.rest(2, 5)):
        X, said, told = all_of(part)
        mine = X[:, 0].astype(int) - 1
        assert_allclose(X, np.hstack([host(some.X)[mine], np.ones((len(mine), 1))]))
        noes = 0 if some.labels.noes is None else some.labels.noes.toarray()
        assert_array_equal(said, (some.labels.positives.toarray() - 1.0 * noes)[mine])
        assert_array_equal(told, known[mine])


@pytest.mark.parametrize("most", [1, 4, 11, 100])
def test_of_a_large_fold_so_many_rows_are_taken_all_of_them_its_own(most):
    d = dealt(MemoryBlocks.from_rows(rows()))
    whole, few = numbers_of(d.fold(1, 5, 100)), numbers_of(d.fold(1, 5, most))
    assert len(few) == min(most, len(whole))
    assert set(few) <= set(whole)


def test_more_first_rows_are_the_same_and_others():
    d = dealt(MemoryBlocks.from_rows(rows()))
    first = [set(numbers_of(d.first(n))) for n in (0, 5, 20, 53, 99)]
    assert [len(each) for each in first] == [0, 5, 20, 53, 53]
    assert all(less <= more for less, more in pairwise(first))


def test_rows_that_come_in_an_order_are_dealt_without_regard_to_it():
    """Sorted rows, such as those of one label after the other: all folds have their share."""
    d, n = dealt(MemoryBlocks.from_rows(rows(2000))), 2000
    for k in range(5):
        mine = numbers_of(d.fold(k, 5, n))
        in_each_tenth = np.bincount(mine // (n // 10), minlength=10)
        assert (np.abs(in_each_tenth - 40) < 4 * 40**0.5).all()  # four standard deviations
        repeats = np.bincount(np.diff(mine)).max()
        assert repeats < len(mine) / 2  # and not every fifth row


def test_the_order_depends_on_how_many_rows_there_are_and_on_no_seed():
    one = dealt(MemoryBlocks.from_rows(rows(40, KINDS[0])), seed=0)
    other = dealt(MemoryBlocks.from_rows(rows(40, KINDS[1])), seed=1)
    assert_array_equal(numbers_of(one.fold(1, 5, 40)), numbers_of(other.fold(1, 5, 40)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_together_is_all_rows_in_one_block(kind, form, device):
    some = rows(kind=kind, form=form)
    parts = dealt(MemoryBlocks.from_rows(some, n_blocks=4), device)
    whole = together(parts.all.blocks, parts.all.backend)
    [wanted] = dealt(MemoryBlocks.from_rows(some), device).all.blocks.sum(laid_out)
    for got, each in zip(laid_out(whole)[0], wanted, strict=True):
        assert_allclose(got, each)
    assert whole.backend == parts.all.backend


def test_mini_batches_of_these_rows_are_the_same_however_they_are_cut():
    def met(blocks):
        problem = dealt(blocks).rest(0, 5).as_problem(Loop("any"), seed=7)
        drawn = [laid_out(b)[0][0] for b in problem.batches(8, 3)]
        return np.vstack(drawn), problem.rng.random_sample(3)

    some = rows()
    for got, wanted in zip(met(cut_at(some, [9, 30])), met(cut_at(some, [])), strict=True):
        assert_array_equal(got, wanted)


@given(ends=st.lists(st.integers(0, 53), max_size=4).map(sorted))
@settings(max_examples=15, deadline=None)
def test_no_cut_into_blocks_changes_which_cells_of_masked_labels_are_held_out(ends):
    some = rows()
    cut, whole = dealt(cut_at(some, ends)), dealt(cut_at(some, []))
    for a, b in zip(all_of(cut.without_cells()), all_of(whole.without_cells()), strict=True):
        assert_array_equal(a, b)
    for most in (20, 99):
        assert_array_equal(laid_out(cut.cells(most)[0])[0][0], laid_out(whole.cells(most)[0])[0][0])
        assert_array_equal(cut.cells(most)[1].toarray(), whole.cells(most)[1].toarray())


def test_cells_held_out_are_a_fifth_of_what_is_known_and_the_others_stay_as_they_were(device):
    d = dealt(MemoryBlocks.from_rows(rows(3000), n_blocks=3), device)
    X, said, known = all_of(d.all)
    rest_X, rest_said, rest_known = all_of(d.without_cells())
    block, cells = d.cells(3000)
    [(held_X, *_)], held = laid_out(block), cells.toarray()
    assert_array_equal(rest_X, X)
    assert_array_equal(held_X, X)
    assert_array_equal(rest_known + held, known)  # each known cell on one side, no other on any
    assert_array_equal(rest_said, said * rest_known)
    share = held.sum(axis=0) / known.sum(axis=0)  # of each label: 2,100 cells are known
    assert_allclose(share, 0.2, atol=4 * (0.16 / 2100) ** 0.5)
    in_full_rows = held[known.all(axis=1)].sum(axis=1)
    assert in_full_rows.var() < 5 * 0.2  # drawn cell by cell, and not row by row
    few, _ = d.cells(100)
    assert few.Y.shape == (100, 5)


def test_two_cells_of_a_row_are_held_out_together_as_often_as_chance_would():
    known = np.ones((4000, 8), bool)
    some = Rows(np.zeros((4000, 1)), Labels.masked(known & False, known))
    _, cells = dealt(MemoryBlocks.from_rows(some)).cells(4000)
    held = cells.toarray().astype(float)
    both = (held.T @ held / 4000)[np.triu_indices(8, 1)]
    assert_allclose(both, 0.04, atol=5 * (0.04 / 4000) ** 0.5)


def test_scaled_rows_are_those_of_the_scaling_and_count_their_features():
    d = dealt(MemoryBlocks.from_rows(rows(), n_blocks=2))
    scaling = Scaling.of("fourier", d.all.blocks, np.random.RandomState(0), n_components=20)
    X, *_ = all_of(d.all.scaled(scaling))
    assert X.shape == (53, 21)
    unit, *_ = all_of(d.all.scaled(Scaling("unit")))
    assert_allclose(np.linalg.norm(unit[:, :-1], axis=1), 1)
