"""Blocks: wherever the rows live, the sums are the same."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PLACES
from numpy.testing import assert_allclose, assert_array_equal

from tacit.blocks import MemoryBlocks, Rows, open_shards, write_shards
from tacit.blocks.disk import read_shard
from tacit.blocks.facts import facts
from tacit.labels import Labels


def _weighted(rows, weight):
    return rows.X.sum() * weight, float(rows.labels.positives.nnz)


def _doubled(rows):
    return Rows(rows.X * 2, rows.labels)


@pytest.mark.parametrize("where", PLACES)
def test_a_sum_does_not_depend_on_where_the_rows_are(blocks_of, masked, where):
    X, labels = masked
    total, positives = blocks_of(X, labels, where).map(_doubled).sum(_weighted, 3.0)
    assert_allclose(total, X.sum() * 6)
    assert positives == labels.positives.nnz


def _counted(rows):
    return [len(rows)]


def _paired(pair, factor):
    rows, value = pair
    return [(len(rows), float(value.sum()) * factor)]


def _shifted(pair):
    rows, value = pair
    return Rows(rows.X + value.sum(), rows.labels)


@pytest.mark.parametrize("where", PLACES)
def test_zip_gives_every_block_its_own_value_in_order(blocks_of, masked, where):
    X, labels = masked
    blocks = blocks_of(X.toarray(), labels, where)
    counts = blocks.sum(_counted)
    values = [np.full(n, 10.0**i) for i, n in enumerate(counts)]
    wanted = [(n, 2 * n * 10.0**i) for i, n in enumerate(counts)]
    assert blocks.zip(values).sum(_paired, 2) == wanted
    total, _ = blocks.map(_doubled).zip(values).map(_shifted).sum(_weighted, 1.0)
    shift = sum(n * X.shape[1] * value.sum() for n, value in zip(counts, values))
    assert_allclose(total, 2 * X.sum() + shift)
    assert blocks.sum(_counted) == counts, "the blocks themselves have changed"


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("change", [-1, 1])
def test_zip_wants_as_many_values_as_blocks(blocks_of, masked, where, change):
    blocks = blocks_of(*masked, where)
    n_blocks = len(blocks.sum(_counted))
    with pytest.raises(ValueError, match=r"argument 2 is|values for"):
        blocks.zip([1] * (n_blocks + change))


@pytest.mark.parametrize("where", PLACES)
def test_batches_give_every_row_once_and_follow_the_seed(blocks_of, masked, where):
    X, labels = masked
    X = X.toarray() + np.arange(X.shape[0])[:, None] * 100  # rows that tell who they are
    blocks = blocks_of(X, labels, where)
    run = lambda seed: [b.X[:, 0] for b in blocks.batches(7, np.random.default_rng(seed))]
    assert max(map(len, run(0))) == 7
    assert_array_equal(np.sort(np.concatenate(run(0))), np.sort(X[:, 0]))
    assert_array_equal(np.concatenate(run(0)), np.concatenate(run(0)))
    assert not np.array_equal(np.concatenate(run(0)), np.concatenate(run(1)))


@pytest.mark.parametrize("where", PLACES)
def test_facts_do_not_depend_on_where_the_rows_are(blocks_of, masked, where):
    X, labels = masked
    known = blocks_of(X, labels, where).sum(facts)
    sizes = (known.n_samples, known.n_features, known.n_labels, known.kind, known.dtype)
    assert sizes == (*X.shape, labels.n_labels, "masked", "float64")


def test_the_checksum_notices_one_changed_label(masked):
    X, labels = masked
    flipped = labels.observed.toarray() & ~labels.positives.toarray()
    flipped[:-1] = False
    other = Labels.masked((labels.positives.toarray() | flipped).astype(int), labels.observed)
    assert facts(Rows(X, labels)).checksum != facts(Rows(X, other)).checksum


def test_the_checksum_notices_a_change_in_any_block(masked):
    X, labels = masked
    changed = X.copy()
    changed.data[-1] += 1
    checksum = lambda X: MemoryBlocks.from_rows(Rows(X, labels), 3).sum(facts).checksum
    assert checksum(X) != checksum(changed)


def test_the_checksum_and_the_counts_notice_one_no(toy):
    X, Y, observed = toy
    noes = sp.csr_array(observed.astype(int) - Y * observed)
    facts_of = lambda no: facts(Rows(X, Labels.positive_only(Y * observed, no=no)))
    fewer = noes.copy()
    fewer.data[0] = 0
    assert facts_of(noes).checksum != facts_of(fewer).checksum
    assert facts_of(noes).n_entries == facts_of(fewer).n_entries + 1
    assert facts_of(noes).n_yes == facts_of(None).n_yes == (Y * observed).nnz


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("reviewed", [False, True])
def test_shards_bring_back_what_was_written(tmp_path, toy, masked, dense, reviewed):
    X, labels = masked
    if reviewed:
        labels = Labels.positive_only(labels, no=sp.csr_array(labels.observed > labels.positives))
    X = X.toarray() if dense else X
    write_shards(tmp_path, [(X[:10], labels[:10]), (X[10:], labels[10:])])
    shards = open_shards(tmp_path)
    parts = [read_shard(folder, shards.classes) for folder in shards.folders]
    together = (np.concatenate if dense else sp.vstack)([part.X for part in parts])
    assert_array_equal(
        np.asarray(together if dense else together.toarray()),
        np.asarray(X if dense else X.toarray()),
    )
    assert parts[1].labels == labels[10:]
    if not dense:
        assert_array_equal(parts[0].X_t.toarray(), X[:10].T.toarray())


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (None, "holds no tacit-shards.json"),
        ("{", "is damaged"),
        ('{"format": 99, "shards": 1, "classes": null}', "shard format 99"),
    ],
)
def test_shards_that_cannot_be_opened_say_why(tmp_path, manifest, message):
    if manifest:
        (tmp_path / "tacit-shards.json").write_text(manifest)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_shards(tmp_path)


def test_shards_half_written_are_not_shards(tmp_path, masked):
    X, labels = masked

    def parts():
        yield X[:10], labels[:10]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(tmp_path, parts())
    with pytest.raises(FileNotFoundError):
        open_shards(tmp_path)


def test_parts_that_do_not_fit_together_are_one_clear_sentence(tmp_path, masked):
    X, labels = masked
    with pytest.raises(ValueError, match="part 1 has 5 features"):
        write_shards(tmp_path / "a", [(X, labels), (X[:, :5], labels)])
    with pytest.raises(ValueError, match="part 0 has 3 rows of X but labels of 40"):
        write_shards(tmp_path / "b", [(X[:3], labels)])
    blocks = MemoryBlocks((Rows(X, labels), Rows(X[:, :5], labels)))
    with pytest.raises(ValueError, match="the blocks disagree on n_features"):
        blocks.sum(facts)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="needs setrlimit")
def test_a_set_larger_than_the_memory_cap_trains_from_disk_and_not_from_memory(tmp_path):
    """A real limit: RLIMIT_AS is 300 MB above what Python needs; the data is 480 MB."""
    script = textwrap.dedent(f"""
        import os, resource, sys
        os.environ["NUMBA_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy as np, scipy.sparse as sp
        from tacit import LEML, Labels
        from tacit.blocks import MemoryBlocks, Rows, open_shards, write_shards
        from tacit.blocks.disk import read_shard

        def part(seed, n=20_000, d=300, per_row=50):
            rng = np.random.default_rng(seed)
            indices = rng.integers(0, d, (n, per_row)).ravel()
            indptr = np.arange(0, n * per_row + 1, per_row)
            X = sp.csr_array((rng.random(n * per_row), indices, indptr), shape=(n, d))
            X.sum_duplicates()
            return X, Labels.complete((X[:, :5] > 0.5).astype(np.int8))

        path = {str(tmp_path / "big")!r}
        if sys.argv[1] == "write":
            write_shards(path, (part(seed) for seed in range(20)))
            sys.exit()
        model = LEML(rank=3, solver="cg", max_iter=2, normalize=None, random_state=0)
        model.fit(*part(0, n=500))  # compile, and touch every library, before the cap
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
        shards = open_shards(path)
        if sys.argv[1] == "disk":
            print(model.fit(shards).history_)
        else:
            rows = [read_shard(folder) for folder in shards.folders]
            X = sp.vstack([r.X for r in rows], format="csr")
            print(model.fit(X, Labels.complete(sp.vstack([r.labels.positives for r in rows]))))
    """)
    run = lambda mode: subprocess.run(
        [sys.executable, "-c", script, mode], capture_output=True, text=True
    )
    assert run("write").returncode == 0
    size = sum(f.stat().st_size for f in (tmp_path / "big").rglob("*.npy"))
    assert size > 450 * 2**20
    on_disk, in_memory = run("disk"), run("memory")
    assert on_disk.returncode == 0, on_disk.stderr
    assert in_memory.returncode != 0
    assert "MemoryError" in in_memory.stderr or "annot allocate" in in_memory.stderr
