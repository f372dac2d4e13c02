"""docs/command-line.md: every command on the page gives what the page shows."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from tacit.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_every_command_on_the_page_prints_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    page = PAGE.read_text(encoding="utf-8")
    for name, text in re.findall(r"```csv (\S+)\n(.*?)```", page, re.DOTALL):
        Path(name).write_text(text, encoding="utf-8")
    ran = 0
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for command, shown in re.findall(r"^\$ tacit (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
            done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, done.output
            assert done.stdout == shown
            ran += 1
    assert ran == page.count("$ tacit ")
    assert Path("missing.csv").exists()
