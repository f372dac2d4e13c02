"""Build the embedded data set `debian` from a Debian `Packages` index.

    python scripts/build_debian.py Packages.xz [out.npz] [--source "Debian 12.15 (bookworm) ..."]

The index may be plain, .xz, .gz or .lz4 (the last through the `lz4` command). The rows are the
packages that volunteers have tagged (debtags), the labels their tags, and the features counts of

    gtk            words of the one-line synopsis (the prose itself is not kept)
    name:gtk       the parts of the package's name
    dep:libc6      the packages it depends on: the first of alternatives, without versions
    section:python its section of the archive

The same index gives the same bytes: everything is sorted and the archive carries no time.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import lzma
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from tacit.basics.files import replacing

OUT = Path(__file__).parents[1] / "src" / "tacit" / "datasets" / "debian.npz"

MIN_PACKAGES_PER_TAG = 20
MIN_PACKAGES_PER_FEATURE = 12  # 5 gives 2.3 times the features, and ridge 0.006 more P@1

# Tags that are notes from one volunteer to the next, and say nothing about the package.
BOOKKEEPING = re.compile(r"^special::|::TODO$|::not-yet-tagged")

WORDS_THAT_SAY_NOTHING = """
a an and are as at be but by can etc for from has have in into is it its like no not of on or other
so such than that the their them then these this to using via was which with you your
"""
STOP_WORDS = frozenset(WORDS_THAT_SAY_NOTHING.split())


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the embedded data set debian.")
    parser.add_argument("index", type=Path, help="a Packages index: plain, .xz, .gz or .lz4")
    parser.add_argument("out", type=Path, nargs="?", default=OUT)
    parser.add_argument("--source", default="Debian main, amd64", help="suite, point and date")
    arguments = parser.parse_args()
    write(arguments.out, arrays(read_text(arguments.index), arguments.source))
    print(f"{arguments.out}: {arguments.out.stat().st_size:,} bytes")


def read_text(path: Path) -> str:
    data = path.read_bytes()
    match path.suffix:
        case ".xz":
            data = lzma.decompress(data)
        case ".gz":
            data = gzip.decompress(data)
        case ".lz4":
            data = subprocess.run(["lz4", "-dc", path], check=True, capture_output=True).stdout
    return data.decode()


def arrays(text: str, source: str) -> dict[str, np.ndarray]:
    """What the archive holds, from the text of the index."""
    everything = {p["Package"]: p for p in paragraphs(text)}
    packages = {name: p for name, p in everything.items() if "Tag" in p}
    tags = {name: package_tags(p) for name, p in packages.items()}
    classes = frequent(tags.values(), MIN_PACKAGES_PER_TAG)
    known = set(classes)
    names = sorted(name for name in packages if tags[name] & known)
    features = {name: Counter(package_features(packages[name])) for name in names}
    vocabulary = frequent(features.values(), MIN_PACKAGES_PER_FEATURE)
    sources = [source_name(packages[name]) for name in names]

    x_column = {feature: j for j, feature in enumerate(vocabulary)}
    y_column = {tag: j for j, tag in enumerate(classes)}
    counts = [
        sorted((x_column[f], count) for f, count in features[name].items() if f in x_column)
        for name in names
    ]
    x_rows = [[j for j, _ in row] for row in counts]
    y_rows = [sorted(y_column[tag] for tag in tags[name] & known) for name in names]
    meta = {"source": source, "n_packages": len(everything), "n_tagged": len(packages)}
    return {
        "row_names": lines(names),
        "feature_names": lines(vocabulary),
        "classes": lines(classes),
        "source": np.unique(sources, return_inverse=True)[1].astype(np.uint16),
        "x_lengths": np.array([len(row) for row in x_rows], np.uint16),
        "x_columns": deltas(x_rows),
        "x_counts": np.array([min(c, 255) for row in counts for _, c in row], np.uint8),
        "y_lengths": np.array([len(row) for row in y_rows], np.uint16),
        "y_columns": deltas(y_rows),
        "meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8),
    }


def paragraphs(text: str) -> Iterator[dict[str, str]]:
    """The fields of each package; a line that starts with a space continues the one before."""
    for paragraph in text.split("\n\n"):
        fields = (line.partition(":") for line in paragraph.replace("\n ", " ").splitlines())
        package = {name: value.strip() for name, _, value in fields}
        if "Package" in package:
            yield package


def package_tags(package: dict[str, str]) -> set[str]:
    tags = {tag.strip() for tag in package["Tag"].split(",")}
    return {tag for tag in tags if tag and not BOOKKEEPING.search(tag)}


def package_features(package: dict[str, str]) -> Iterator[str]:
    for word in re.findall(r"[a-z][a-z0-9]*(?:\+\+|#)?", package.get("Description", "").lower()):
        if word not in STOP_WORDS:
            yield word
    for part in re.findall(r"[a-z]+(?:\+\+)?", package["Package"]):
        yield f"name:{part}"
    depends = {
        re.split(r"[\s|(:]", item.strip())[0]
        for field in ("Depends", "Pre-Depends")
        for item in package.get(field, "").split(",")
        if item.strip()
    }
    for name in depends:
        yield f"dep:{name}"
    if "Section" in package:
        yield f"section:{package['Section']}"


def source_name(package: dict[str, str]) -> str:
    return package.get("Source", package["Package"]).split()[0]


def frequent(rows: Iterable[Iterable[str]], least: int) -> list[str]:
    """The names that occur in at least `least` rows, sorted."""
    counts = Counter(name for row in rows for name in set(row))
    return sorted(name for name, count in counts.items() if count >= least)


def deltas(rows: Iterable[list[int]]) -> np.ndarray:
    """Each row's sorted columns as differences, the first from zero: small numbers pack well."""
    return np.concatenate([np.diff(row, prepend=0) for row in rows]).astype(np.uint16)


def lines(names: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(names).encode(), np.uint8)


def write(path: Path, members: dict[str, np.ndarray]) -> None:
    with replacing(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in members.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, buffer.getvalue())


if __name__ == "__main__":
    main()
