"""Data sets by name: where they are looked for, and which can be downloaded.

`load(name)` looks in the folder that the environment variable TACIT_DATA names, then in the user's
cache, then among the embedded sets. Each set is a folder as `tacit.datasets.npz` describes it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tacit.datasets.arff import read_arff
from tacit.datasets.dataset import Dataset
from tacit.datasets.fetch import fetch
from tacit.datasets.npz import is_npz_folder, read_npz, write_npz

__all__ = ["download", "downloadable", "load", "names"]


def load(name: str) -> Dataset:
    """Load a data set by name; `names()` lists those that are there.

    Examples
    --------
    >>> load("debian").Y.n_labels
    366
    """
    for root in _roots():
        if _is_plain(name) and is_npz_folder(root / name):
            return read_npz(root / name)
    if name == "debian":
        from tacit.datasets.debian import load_debian

        return load_debian()
    raise ValueError(
        f"there is no data set {name!r} here; load can find {', '.join(names())}, and download can "
        f"fetch {', '.join(downloadable())}; set TACIT_DATA to a folder that holds yours"
    )


def names() -> dict[str, str]:
    """The data sets that `load` can find now, and where each of them is."""
    found = {"debian": "embedded"}
    for root in reversed(_roots()):  # the first root is looked in first, so it is written last
        if root.is_dir():
            for folder in sorted(root.iterdir()):
                if _is_plain(folder.name) and is_npz_folder(folder):
                    found[folder.name] = str(folder)
    return dict(sorted(found.items()))


def downloadable() -> dict[str, str]:
    """The data sets that `download` knows, and the address of each one's first file."""
    return {name: home.url(home.arff[0]) for name, home in _HOMES.items()}


def download(name: str, *, progress: bool = True) -> Path:
    """Fetch a public data set into the user's cache, where `load` finds it; gives its folder.

    The files come from a fixed commit of their public repository. Nobody publishes their checksums,
    so the first download is trusted and its SHA-256 kept in the cache, which any later
    download must match; and the shapes of what was read must be those published.
    """
    if name not in _HOMES:
        raise ValueError(
            f"download does not know {name!r}; it can fetch {', '.join(_HOMES)}. "
            "Put other sets in a folder and set TACIT_DATA to where it is"
        )
    folder = _cache() / name
    if is_npz_folder(folder):
        return folder
    home = _HOMES[name]
    raw = _cache() / "downloads" / name
    paths = {}
    for file in (*home.arff, home.xml):
        paths[file] = raw / Path(file).name
        fetch(home.url(file), paths[file], progress=progress)
    parts = [read_arff(paths[file], paths[home.xml]) for file in home.arff]
    found = [(*part.X.shape, part.Y.n_labels) for part in parts]
    if found != list(home.shapes):
        raise ValueError(
            f"{name} was read with rows, features and labels {found}, not {list(home.shapes)} as "
            f"published; see the files in {raw}"
        )
    train, test = parts[0], parts[1] if len(parts) == 2 else None
    write_npz(
        folder,
        train.X,
        train.Y,
        X_test=None if test is None else test.X,
        Y_test=None if test is None else test.Y,
        feature_names=train.feature_names,
        meta={
            "name": name,
            "source_repo": home.repository,
            "source_paths": list(home.arff),
            "commit": home.commit,
        },
    )
    for path in paths.values():  # the folder now has it all; the .sha256 records stay
        path.unlink()
    return folder


@dataclass(frozen=True)
class _Home:
    """Where a set is published, and the (rows, features, labels) of each of its ARFF files."""

    arff: tuple[str, ...]
    xml: str
    shapes: tuple[tuple[int, int, int], ...]
    repository: str = "github.com/tsoumakas/mulan"
    commit: str = "43f6389095ad71984264db4387a8074b22bc7d4a"

    def url(self, path: str) -> str:
        repository = self.repository.removeprefix("github.com/")
        return f"https://raw.githubusercontent.com/{repository}/{self.commit}/{path}"


_MULAN = "data/multi-label/"

_HOMES = {
    "bibtex": _Home(
        (_MULAN + "bibtex/bibtex-train.arff", _MULAN + "bibtex/bibtex-test.arff"),
        _MULAN + "bibtex/bibtex.xml",
        ((4880, 1836, 159), (2515, 1836, 159)),
    ),
    "cal500": _Home(
        (_MULAN + "cal500/cal500.arff",), _MULAN + "cal500/cal500.xml", ((502, 68, 174),)
    ),
    "corel5k": _Home(
        (
            _MULAN + "corel5k/Corel5k-train-sparse.arff",
            _MULAN + "corel5k/Corel5k-test-sparse.arff",
        ),
        _MULAN + "corel5k/Corel5k.xml",
        ((4500, 499, 374), (500, 499, 374)),
    ),
    "delicious": _Home(
        (_MULAN + "delicious/delicious-train.arff", _MULAN + "delicious/delicious-test.arff"),
        _MULAN + "delicious/delicious.xml",
        ((12920, 500, 983), (3185, 500, 983)),
    ),
}


def _cache() -> Path:
    return Path(platformdirs.user_cache_dir("tacit"))


def _roots() -> list[Path]:
    given = os.environ.get("TACIT_DATA")
    return [Path(given), _cache()] if given else [_cache()]


def _is_plain(name: str) -> bool:
    """Whether a name is a folder's own, not a path to somewhere else."""
    return name not in ("", ".", "..") and Path(name).name == name and not name.startswith(".")
