"""Folders of matrices, and finding them by name."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse as sp

from tacit import Labels
from tacit.datasets import load, names, read_npz, store, write_npz

RNG = np.random.default_rng(0)
X = sp.random_array((8, 5), density=0.3, rng=RNG, dtype=np.float32, format="csr")
A = RNG.choice([0.0, 1.0, np.nan], size=(8, 3))
Y = Labels.from_array(A, classes=["a", "b", "c"])


REVIEWED = Labels.positive_only(Y, no=(A == 0).astype(int))


@pytest.mark.parametrize(
    "labels",
    [Y, Y.as_complete(), Y.as_positive_only(), REVIEWED],
    ids=["masked", "complete", "positive-only", "reviewed"],
)
@pytest.mark.parametrize("split", [False, True])
def test_a_folder_reads_back_exactly_what_was_written(labels, split, tmp_path):
    test = {"X_test": X[:4], "Y_test": labels[:4]} if split else {}
    write_npz(tmp_path / "set", X, labels, **test, feature_names=list("vwxyz"), meta={"by": "us"})
    back = read_npz(tmp_path / "set")
    assert (back.X != X).nnz == 0
    assert back.X.dtype == np.float32
    assert labels == back.Y
    assert (back.X_test is None) == (not split)
    if split:
        assert (back.X_test != X[:4]).nnz == 0
        assert back.Y_test == labels[:4]
    assert back.feature_names.tolist() == list("vwxyz")
    assert back.meta == {"labels_kind": labels.kind, "by": "us"}
    assert back.name == "set"
    assert os.listdir(tmp_path) == ["set"]


@settings(max_examples=40, deadline=None)
@given(dense=st.floats(0, 1))
def test_x_comes_dense_where_more_than_half_of_it_is_not_zero(dense, tmp_path_factory):
    M = (np.arange(20) < dense * 20).astype(np.float32).reshape(4, 5)
    folder = tmp_path_factory.mktemp("x") / "set"
    write_npz(folder, M, np.eye(4, dtype=int))
    back = read_npz(folder).X
    assert isinstance(back, np.ndarray) == (np.count_nonzero(M) > 10)
    assert_array_equal(back if isinstance(back, np.ndarray) else back.toarray(), M)


def test_writing_onto_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "notes").touch()
    with pytest.raises(ValueError, match="exists and is not empty"):
        write_npz(tmp_path, X, Y)
    with pytest.raises(ValueError, match="X has 8 rows but Y has 7"):
        write_npz(tmp_path / "set", X, Y[:7])
    assert os.listdir(tmp_path) == ["notes"]


def test_a_name_that_occurs_twice_is_numbered(tmp_path):
    write_npz(tmp_path / "set", X, np.ones((8, 4)))
    (tmp_path / "set" / "label_names.txt").write_text("bank\nbank\nbank (2)\nbank\n")
    classes = read_npz(tmp_path / "set").Y.classes.tolist()
    assert classes == ["bank", "bank (3)", "bank (2)", "bank (4)"]


def test_whatever_else_a_folder_holds_comes_by_its_stem(tmp_path):
    folder = tmp_path / "set"
    write_npz(folder, X, Y.as_complete())
    sp.save_npz(folder / "X_dev.npz", X[:2])
    sp.save_npz(folder / "Y_later.npz", sp.csr_array(np.eye(8, 3)))
    (folder / "instance_names.txt").write_text("\n".join(f"row {i}\x85" for i in range(8)))
    (folder / "smiles.txt").write_text("C\nCC\n")
    (folder / "texts.txt.gz").write_bytes(gzip.compress("é\nb".encode()))
    read = read_npz(folder)
    assert (read.extra["X_dev"] != X[:2]).nnz == 0
    assert read.extra["Y_later"] == Labels.complete(np.eye(8, 3), classes=["a", "b", "c"])
    assert read.extra["smiles"].tolist() == ["C", "CC"]
    assert read.extra["texts"].tolist() == ["é", "b"]
    assert read.row_names.tolist() == [f"row {i}\x85" for i in range(8)]
    assert "8 rows × 5 sparse features; also X_dev, Y_later, smiles, texts" in repr(read)


def damage(path, how):
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_bytes(b"not a matrix")
    elif how == "pickle":
        np.savez(path, data=np.array([{}], dtype=object), format=b"csr")
    elif how == "array":
        with open(path, "wb") as file:
            np.save(file, np.eye(3))
    elif how == "indices":
        M = sp.load_npz(path)
        M.indices[0] = 1000
        sp.save_npz(path, M)
    elif how == "flip":
        middle = len(content) // 3
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])


@pytest.mark.parametrize("how", ["cut", "empty", "text", "pickle", "array", "indices", "flip"])
@pytest.mark.parametrize("file", ["X.npz", "Y.npz"])
def test_a_damaged_matrix_is_one_sentence_with_its_name(file, how, tmp_path):
    write_npz(tmp_path / "set", X, Y)
    damage(tmp_path / "set" / file, how)
    with pytest.raises(ValueError, match=rf"{file}(: | is not a whole sparse matrix)"):
        read_npz(tmp_path / "set")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("meta.json", b"{", r"meta.json is not JSON"),
        ("meta.json", b"[]", r"meta.json must hold one JSON object; got a list"),
        ("meta.json", b'{"labels_kind": "odd"}', r"Y.npz: labels_kind .* got 'odd'"),
        ("label_names.txt", b"a\nb\n", r"Y.npz: "),
        ("label_names.txt", b"\xff\n", r"label_names.txt is not whole text in UTF-8"),
        ("feature_names.txt", b"a\n", r"has 1 feature_names; X needs 5"),
        ("instance_names.txt", b"a\n", r"has 1 row_names; X needs 8"),
    ],
)
def test_a_damaged_side_file_is_one_sentence(file, content, message, tmp_path):
    write_npz(tmp_path / "set", X, Y.as_complete())
    (tmp_path / "set" / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_npz(tmp_path / "set")


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(store, "_cache", lambda: tmp_path / "cache")
    return tmp_path / "data", tmp_path / "cache"


def test_the_given_folder_comes_before_the_cache_and_the_cache_before_what_is_embedded(places):
    data, cache = places
    write_npz(cache / "debian", X, Y)
    write_npz(cache / "mine", X[:2], Y[:2])
    write_npz(data / "mine", X, Y)
    (data / "empty").mkdir()
    assert names() == {"debian": str(cache / "debian"), "mine": str(data / "mine")}
    assert load("mine").X.shape == (8, 5)
    assert load("debian").X.shape == (8, 5)


@pytest.mark.parametrize("name", ["unknown", "", ".", "../data/mine", "empty"])
def test_an_unknown_name_is_one_sentence_that_lists_what_there_is(name, places):
    write_npz(places[0] / "mine", X, Y)
    with pytest.raises(ValueError, match=r"load can find debian, mine, .* can fetch bibtex, "):
        load(name)


def test_importing_the_package_brings_in_nothing_heavy():
    # A bare package stands in for tacit, whose own imports are not ours to judge here.
    code = """
import importlib.util, sys, types
tacit = types.ModuleType("tacit")
tacit.__path__ = list(importlib.util.find_spec("tacit").submodule_search_locations)
sys.modules["tacit"] = tacit
import tacit.datasets
print([name for name in ("numba", "pyarrow", "pandas", "rich", "sklearn") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


DATA = os.environ.get("TACIT_DATA")
SETS = sorted(path.parent.name for path in Path(DATA).glob("*/meta.json")) if DATA else []


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="TACIT_DATA is not set")
@pytest.mark.parametrize("name", SETS)
def test_every_real_set_loads_with_the_shapes_its_meta_tells(name):
    read = load(name)
    meta = json.loads((Path(DATA) / name / "meta.json").read_text())
    assert read.meta == meta
    n = meta.get("n_train", meta.get("n"))
    d = meta.get("d", meta.get("d_user"))
    assert read.X.shape == (n, d)
    assert read.X.dtype == np.float32
    assert read.Y.shape == (n, meta["L"])
    assert read.Y.kind == ("masked" if any((Path(DATA) / name).glob("O*.npz")) else "complete")
    if "n_test" in meta:
        assert read.X_test.shape == (meta["n_test"], d)
        assert read.Y_test.shape == (meta["n_test"], meta["L"])
    part = next(iter(meta["stats"].values()))
    if isinstance(part, dict):
        assert read.Y.positives.nnz == part["nnz_Y"]
        nonzero = read.X.nnz if sp.issparse(read.X) else np.count_nonzero(read.X)
        assert nonzero == part["nnz_X"]
