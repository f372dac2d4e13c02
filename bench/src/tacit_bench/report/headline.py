"""The headline of a page of the docs: the best of ours against the best peer."""

from __future__ import annotations

from pathlib import Path

from tacit.basics.files import replacing
from tacit_bench.board import Board
from tacit_bench.report.scores import contests, works
from tacit_bench.report.words import not_measured, number, signed

__all__ = ["headline", "write_headline"]

MARKS = "<!-- headline -->", "<!-- /headline -->"
HEADER = """| data | hidden | best of ours | P@3 | best peer | P@3 | ahead |
| --- | --: | --- | --: | --- | --: | --: |
"""


def headline(results: Path) -> str:
    """The best of ours against the best peer in P@3 (%), as a Markdown table.

    A line a data set and share of positives hidden; one sentence where nothing has been measured.
    """
    missing, peers = (Board(Path(results) / f"{n}.jsonl").rows() for n in ("missing", "peers"))
    found = contests(works(missing, peers), "P@3")
    if not found:
        return not_measured("missing", "peers")
    rows = (
        [*(c.replace("|", r"\|") if isinstance(c, str) else number(c) for c in cells), signed(last)]
        for *cells, last in found
    )
    return HEADER + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_headline(page: Path, results: Path) -> None:
    """Put `headline(results)` between the marks of a page; all else stays as it is."""
    before, begin, rest = Path(page).read_bytes().partition(MARKS[0].encode())
    _, end, after = rest.partition(MARKS[1].encode())
    if not end:
        raise ValueError(
            f"--headline {str(page)!r} has no marks around a headline; write a line {MARKS[0]} "
            f"and, below it, a line {MARKS[1]} where the table is to stand"
        )
    table = f"\n{headline(results)}\n".encode()
    with replacing(page) as beside:
        beside.write_bytes(before + begin + table + end + after)
