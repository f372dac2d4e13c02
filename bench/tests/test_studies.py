"""Every study on its tiny cells: it measures, keeps what it found, and shows and draws it."""

import json

import pytest
from rich.console import Console
from tacit_bench.study import boards, studies

STUDIES = boards() | studies()
STANDING_IN = ("real", "peers")  # measured in tests of their own, on made data and packages


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in STANDING_IN])
def test_a_study_measures_its_tiny_cells_and_shows_and_draws_them(name, tmp_path):
    study = STUDIES[name]
    assert study.question.endswith("?")
    assert study.tiny
    rows = [{"cell": cell, "found": study.measure(cell)} for cell in study.tiny]
    assert all(row["found"] for row in rows)
    json.dumps(rows, allow_nan=False)
    console = Console(record=True, width=200)
    study.show(rows, console)
    assert console.export_text().strip()
    if study.plot is not None:
        study.plot(rows, tmp_path / "plot.png")
        assert (tmp_path / "plot.png").stat().st_size > 1000


@pytest.mark.parametrize("name", STUDIES)
def test_the_cells_of_a_study_are_plain_and_differ(name):
    cells = STUDIES[name].cells()
    keys = [json.dumps(cell, sort_keys=True) for cell in cells]
    assert len(set(keys)) == len(keys) > 0
