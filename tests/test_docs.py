"""The pages: what they show runs and prints what they say, and their links lead somewhere."""

import contextlib
import io
import re
import shlex
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = [*PAGES, ROOT / "bench" / "README.md"]
FENCE = re.compile(r"^```(\w*)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ tacit (.*)\n((?:[^$].*\n)*)", re.MULTILINE)
FIGURE = re.compile(r"\d+\.\d+")
MADE = {"report.html"}  # with the site; tests/test_site.py sees that it is there
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")


def _blocks(page):
    """(language, what follows it, source, line of the source) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield found[1], found[2], found[3], text.count("\n", 0, found.start(3))


def _name(page):
    return str(page.relative_to(ROOT))


RUNNABLE = [page for page in PAGES if {lang for lang, *_ in _blocks(page)} & {"python", "console"}]


@pytest.mark.parametrize("page", RUNNABLE, ids=_name)
def test_every_block_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    blocks = list(_blocks(page))
    for module in ("distributed", "pandas", "torch"):
        if any(lang == "python" and module in source for lang, _, source, _ in blocks):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(urllib.request, "urlopen", _no_network)
    namespace = {"__name__": "__main__"}
    for i, (lang, name, source, line) in enumerate(blocks):
        if lang == "csv" and name:
            Path(name).write_text(source, encoding="utf-8")
        elif lang == "console":
            _run_commands(source)
        elif lang == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                # Blank lines in front, so that a traceback gives the line of the page.
                exec(compile("\n" * line + source, page, "exec"), namespace)
            after, _, wanted, _ = blocks[i + 1] if i + 1 < len(blocks) else ("", "", "", 0)
            if after == "output":
                assert _rounded(printed.getvalue(), wanted) == wanted


def _rounded(printed, shown):
    """What was printed, with the figures shown where they differ by one in the last place.

    Processors and libraries round sums differently, and the third digit shows it now and then.
    """
    ours, theirs = FIGURE.findall(printed), iter(FIGURE.findall(shown))
    if len(ours) != len(FIGURE.findall(shown)):
        return printed
    near = lambda a, b: (
        len(a) == len(b) and abs(float(a) - float(b)) < 1.5 * 0.1 ** len(b.split(".")[1])
    )
    return FIGURE.sub(lambda m: b if near(m[0], b := next(theirs)) else m[0], printed)


@pytest.mark.parametrize(
    ("printed", "alike"), [("p 0.117, 3", True), ("p 0.119, 3", False), ("p 0.117, 4", False)]
)
def test_figures_of_a_page_may_differ_by_one_in_the_last_place_and_by_no_more(printed, alike):
    assert (_rounded(printed, "p 0.116, 3") == "p 0.116, 3") == alike


def _run_commands(console):
    commands = COMMAND.findall(console)
    assert len(commands) == len(re.findall(r"^\$", console, re.MULTILINE)), "not a tacit command"
    for command, shown in commands:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
        assert _rounded(done.stdout, shown) == shown


@pytest.mark.parametrize("page", LINKING, ids=_name)
def test_every_link_leads_to_a_file(page):
    links = set(LINK.findall(page.read_text(encoding="utf-8"))) - MADE
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_figures_of_the_first_page_are_those_of_the_scoreboard():
    shown, board = (
        (ROOT / "docs" / name).read_text("utf-8") for name in ("index.md", "scoreboard.md")
    )
    measured = {
        data: (f"{float(ours):.1f}", f"{float(peer):.1f}")
        for data, ours, peer in re.findall(
            r"^\| (\w+) \| 50% \| Tacit \| (\S+) \| [^|]+ \| (\S+) \|", board, re.MULTILINE
        )
    }
    rows = re.findall(r"\((\w+)\) \| (\S+) \| (\S+) \(", shown)
    assert {data: tuple(figures) for data, *figures in rows} == measured


def _no_network(*args, **kwargs):
    raise AssertionError("a page must run offline")
