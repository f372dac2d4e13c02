"""The site that `make docs` builds: complete, strict, and nothing in it comes from outside."""

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from inspect import ismodule
from pathlib import Path
from pydoc import locate

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
METHODS = sorted((ROOT / "docs" / "methods").glob("*.md"))
MODULES = ["tacit", "tacit.baselines", "tacit.datasets", "tacit.labels", "tacit.methods"]
MODULES += ["tacit.metrics", "tacit.missing"]

pytestmark = pytest.mark.slow


class _Page(HTMLParser):
    """What a page is made of: the links of its navigation, what it loads, and its anchors."""

    def __init__(self, path: Path):
        super().__init__()
        self.navigation, self.loads, self.ids = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag != "a":
            self.loads.add(found.get("href") or found.get("src") or "")
        elif "md-nav__link" in found.get("class", ""):
            self.navigation.add(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_navigation(site):
    shown = _Page(site / "index.html").navigation
    assert {str(page.with_suffix(".html")) for page in PAGES} - shown == set()


def test_the_site_has_the_report_and_links_it(site):
    assert "The scoreboard of tacit" in (site / "report.html").read_text(encoding="utf-8")
    for page in ("index.html", "scoreboard.html"):
        assert 'href="report.html"' in (site / page).read_text(encoding="utf-8")


def test_search_works_in_a_folder(site):
    """The index is a script, and so is what stands in for the worker that a folder cannot start."""
    assert (
        (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index")
    )
    for path in site.rglob("*.html"):
        if path.name != "report.html":
            [shim] = [load for load in _Page(path).loads if "iframe-worker" in load]
            # What is served for a page that is not there knows its place by the server's root.
            assert (path.parent / shim.lstrip("/")).resolve().is_file(), path


def test_nothing_is_loaded_from_outside(site):
    for path in site.rglob("*.html"):
        assert [load for load in _Page(path).loads if re.match(r"(https?:)?//", load)] == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text()) == [], path


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_api(site, module):
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [
        name for name, value in vars(found).items() if not (name[0] == "_" or ismodule(value))
    ]
    ids = set().union(*(_Page(path).ids for path in (site / "api").glob("*.html")))
    # LEML is tacit.LEML and tacit.methods.LEML, and may be written as either.
    written = {id(locate(name)) for name in ids if name and name.startswith("tacit.")}

    def is_written(name):
        value = getattr(found, name)
        # Python's tacit.missing.hide is the function, which hides the module that it is from.
        return id(value) in written or f"{value.__module__}.{name}" in ids

    assert [name for name in names if not is_written(name)] == []


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_the_page_of_a_method_has_an_example_and_what_it_costs(page):
    text = page.read_text(encoding="utf-8")
    assert text.index("```python\n") < text.index("## What it costs\n")
