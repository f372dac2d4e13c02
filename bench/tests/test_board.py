"""The board: cells are measured once, whatever happens to the run."""

import json
import os
import time

import pytest
from tacit_bench.board import Board, Skip


def double(cell):
    return {"double": 2 * cell["a"]}


def fail_or_double(cell):
    if cell["a"] == 1:
        raise ZeroDivisionError("by nought")
    if cell["a"] == 2:
        os._exit(3)
    if cell["a"] == 3:
        time.sleep(60)
    if cell["a"] == 4:
        raise Skip("four is skipped")
    return double(cell)


@pytest.fixture
def board(tmp_path):
    return Board(tmp_path / "results" / "board.jsonl")


def test_what_is_there_is_not_measured_again(board):
    asked = []
    measure = lambda cell: asked.append(cell["a"]) or double(cell)
    board.fill([{"a": 1}, {"a": 2}], measure, show=False)
    rows = board.fill([{"a": 2}, {"a": 3}], measure, show=False)
    assert asked == [1, 2, 3]
    assert [row["found"]["double"] for row in rows] == [4, 6]


def test_the_order_of_a_cells_fields_does_not_matter(board):
    board.fill([{"a": 1, "b": 2}], double, show=False)
    assert board.fill([{"b": 2, "a": 1}], lambda cell: 1 / 0, show=False)[0]["found"] == {
        "double": 2
    }


def test_a_run_that_is_stopped_keeps_what_it_measured(board):
    def stop_at_three(cell):
        if cell["a"] == 3:
            raise KeyboardInterrupt
        return double(cell)

    cells = [{"a": a} for a in range(1, 5)]
    with pytest.raises(KeyboardInterrupt):
        board.fill(cells, stop_at_three, show=False)
    assert [row["cell"]["a"] for row in board.rows()] == [1, 2]
    board.fill(cells, double, show=False)
    assert [row["cell"]["a"] for row in board.rows()] == [1, 2, 3, 4]


def test_a_line_cut_off_by_a_kill_is_measured_again(board):
    board.fill([{"a": 1}, {"a": 2}], double, show=False)
    whole = board.path.read_text()
    board.path.write_text(whole[:-20])
    assert len(board.rows()) == 1
    board.fill([{"a": 2}], double, show=False)
    assert [row["found"]["double"] for row in board.rows()] == [2, 4]


def test_a_skipped_cell_says_why_and_is_tried_again(board):
    def skip(cell):
        raise Skip("not today")

    (row,) = board.fill([{"a": 1}], skip, show=False)
    assert row["skipped"] == "not today"
    (row,) = board.fill([{"a": 1}], double, show=False)
    assert row["found"] == {"double": 2}
    assert len(board.rows()) == 1


@pytest.mark.slow
def test_faults_of_a_process_cost_its_own_cell_only(board, capfd):
    rows = board.fill([{"a": a} for a in range(6)], fail_or_double, jobs=3, limit=10, show=False)
    told = [row.get("skipped", row.get("found", {}).get("double")) for row in rows]
    assert told == [
        0,
        "failed with ZeroDivisionError: by nought",
        "its process died with status 3",
        "stopped after 10 s",
        "four is skipped",
        10,
    ]
    assert rows[0]["found"]["peak GiB"] > 0
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_rows_carry_versions_and_the_file_is_plain_json(board):
    board.fill([{"a": 1}], double, show=False)
    (line,) = board.path.read_text().splitlines()
    assert {"numpy", "scipy", "date", "cores"} <= set(json.loads(line)["about"])
