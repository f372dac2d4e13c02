"""The pages: what they show runs and prints what they say, and their links lead somewhere."""

import contextlib
import io
import re
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")


def _blocks(page):
    """(language, source, line of the source) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield found[1], found[2], text.count("\n", 0, found.start(2))


def _name(page):
    return str(page.relative_to(ROOT))


RUNNABLE = [page for page in PAGES if any(lang == "python" for lang, _, _ in _blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=_name)
def test_every_python_block_runs_and_prints_the_output_block_after_it(page, tmp_path, monkeypatch):
    blocks = list(_blocks(page))
    for module in ("distributed", "pandas", "torch"):
        if any(lang == "python" and module in source for lang, source, _ in blocks):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", _no_network)
    namespace = {"__name__": "__main__"}
    for i, (lang, source, line) in enumerate(blocks):
        if lang != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Blank lines in front, so that a traceback gives the line of the page.
            exec(compile("\n" * line + source, page, "exec"), namespace)
        after, wanted, _ = blocks[i + 1] if i + 1 < len(blocks) else ("", "", 0)
        if after == "output":
            assert printed.getvalue() == wanted


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_to_a_file(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def _no_network(*args, **kwargs):
    raise AssertionError("a page must run offline")
