"""The embedded Debian set: what the builder writes, the loader gives back; the facts are right."""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import TfidfTransformer

from tacit.datasets.debian import _read, load_debian

INDEX = """\
Package: zed-gtk
Source: zed (1.0)
Depends: libgtk-3-0 (>= 3.0), libc6:any | libc6.1, libc6
Pre-Depends: dpkg
Description: The text editor of the GTK editor family
Tag: role::program, uitoolkit::gtk,
 works-with::text
Section: editors

Package: zed-data
Source: zed
Description: editor data
Tag: role::app-data, suite::TODO

Package: alone
Depends: libc6
Description: text without a friend
Tag: role::program

Package: untagged
Description: text

Package: todo
Tag: suite::TODO
"""


@pytest.fixture(scope="module")
def debian():
    return load_debian()


@pytest.fixture
def builder(monkeypatch):
    path = Path(__file__).parents[2] / "scripts" / "build_debian.py"
    spec = importlib.util.spec_from_file_location("build_debian", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "MIN_PACKAGES_PER_TAG", 1)
    monkeypatch.setattr(module, "MIN_PACKAGES_PER_FEATURE", 1)
    return module


def named(matrix, row, names):
    entries = matrix[[row]]
    return dict(zip(names[entries.indices].tolist(), entries.data.tolist()))


def test_the_loader_gives_back_what_the_builder_read(builder, tmp_path):
    builder.write(tmp_path / "tiny.npz", builder.arrays(INDEX, "by hand"))
    with open(tmp_path / "tiny.npz", "rb") as file:
        tiny = _read(file)
    assert tiny.row_names.tolist() == ["alone", "zed-data", "zed-gtk"]
    assert tiny.Y.classes.tolist() == [
        "role::app-data",
        "role::program",
        "uitoolkit::gtk",
        "works-with::text",
    ]
    assert_array_equal(tiny.Y.to_sparse().toarray(), [[0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]])
    features = [named(tiny.X, row, tiny.feature_names) for row in range(3)]
    words = dict.fromkeys(["text", "without", "friend"], 1)
    assert features[0] == {"name:alone": 1, "dep:libc6": 1, **words}
    assert features[1] == {"name:zed": 1, "name:data": 1, "editor": 1, "data": 1}
    assert features[2] == {
        **dict.fromkeys(["name:zed", "name:gtk", "section:editors"], 1),
        **dict.fromkeys(["dep:libgtk-3-0", "dep:libc6", "dep:dpkg"], 1),
        **{"text": 1, "editor": 2, "gtk": 1, "family": 1},
    }
    assert_array_equal(tiny.extra["source"], [0, 1, 1])
    assert (tiny.meta["n_packages"], tiny.meta["n_tagged"]) == (5, 4)


def test_the_same_index_gives_the_same_bytes(builder, tmp_path):
    for name, text in [("a", INDEX), ("b", "\n\n".join(reversed(INDEX.strip().split("\n\n"))))]:
        builder.write(tmp_path / name, builder.arrays(text, "by hand"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_package_and_tag_says_something(debian):
    X, Y = debian.X, debian.Y.positives
    assert debian.Y.kind == "positive-only"
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert (X.data >= 1).all()
    assert_array_equal(X.data, np.rint(X.data))
    assert np.diff(X.indptr).min() >= 1
    assert np.diff(Y.indptr).min() >= 1
    assert np.bincount(X.indices, minlength=X.shape[1]).min() >= 12
    assert np.bincount(Y.indices, minlength=Y.shape[1]).min() >= 20
    assert not [tag for tag in debian.Y.classes if "TODO" in tag or tag.startswith("special")]


def test_known_packages_have_their_known_tags_and_dependencies(debian):
    rows = {name: i for i, name in enumerate(debian.row_names)}
    gimp, mutt = rows["gimp"], rows["mutt"]
    assert {"uitoolkit::gtk", "works-with::image:raster"} <= named(
        debian.Y.positives, gimp, debian.Y.classes
    ).keys()
    assert {"dep:libgtk2.0-0", "image", "section:graphics"} <= named(
        debian.X, gimp, debian.feature_names
    ).keys()
    assert {"mail::user-agent", "uitoolkit::ncurses"} <= named(
        debian.Y.positives, mutt, debian.Y.classes
    ).keys()
    source = debian.extra["source"]
    assert source[rows["gimp"]] == source[rows["gimp-data"]] != source[mutt]


def test_the_nearest_package_of_another_source_knows_twice_what_popularity_does(debian):
    X = TfidfTransformer(sublinear_tf=True).fit_transform(debian.X)
    Y = debian.Y.positives.astype(np.float64)
    source, some = debian.extra["source"], np.arange(0, len(debian.Y), 100)
    likeness = (X[some] @ X.T).toarray()
    likeness[source[some][:, None] == source] = -1
    neighbours = np.argsort(-likeness, axis=1)[:, :5]
    votes = sum(Y[neighbours[:, j]].toarray() for j in range(5))
    truth = Y[some].toarray().astype(bool)
    hit = truth[np.arange(len(some)), votes.argmax(axis=1)].mean()
    popular = truth[:, Y.sum(axis=0).argmax()].mean()
    assert hit > 2 * popular
