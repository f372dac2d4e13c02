"""The section on scaling: time and memory against sizes, and kernels against the machine."""

from __future__ import annotations

from tacit.html.page import COLOURS, Html, subheading, table, trend_chart
from tacit_bench.board import Row
from tacit_bench.boards.scale import exponents
from tacit_bench.report.words import not_measured

__all__ = ["growth"]

AXES = {"n": "rows (n)", "nnz": "features a row (nnz)", "L": "labels (L)", "k": "rank (k)"}
AMOUNTS = {
    "seconds": ("Seconds of a fit", "exponent"),
    "peak GiB": ("Peak memory (GiB)", "memory exponent"),
}


def growth(rows: list[Row]) -> list[str]:
    """Charts of fits by size, and a table of kernels."""
    fits = [row for row in rows if "found" in row and row["cell"]["what"] == "fit"]
    kernels = [row for row in rows if "found" in row and row["cell"]["what"] == "kernel"]
    parts: list[str] = []
    if fits:
        parts += [
            "Seconds and memory of a fit on synthetic data as one size grows and the others stay. "
            "Beside each name is the exponent, which is how steep the line is over the larger "
            "sizes; that of memory is of what a fit holds beyond an empty process.",
            *(chart for axis in AXES for name in AMOUNTS for chart in _chart(fits, axis, name)),
        ]
    if kernels:
        parts += [
            subheading("Kernels against the machine's limit"),
            "The limit is measured in the same run: the rate of a large copy, or of a product of "
            "dense matrices.",
            _kernels(kernels),
        ]
    return parts or [not_measured("scale")]


def _chart(fits: list[Row], axis: str, name: str) -> list[Html]:
    """Lines of one amount along one axis; none where there are not two sizes."""
    # Every method has its place, and so its colour, even where it does not depend on the axis.
    lines: dict[str, dict[float, float]] = {row["cell"]["method"]: {} for row in fits}
    here = [row for row in fits if row["cell"]["axis"] == axis and row["found"].get(name)]
    for row in here:
        lines[row["cell"]["method"]][row["cell"]["value"]] = row["found"][name]
    places = sorted({row["cell"]["value"] for row in here})
    if len(places) < 2:
        return []
    words, exponent = AMOUNTS[name]
    slopes = {row["cell"]["method"]: row["found"].get(exponent) for row in exponents(here)}
    named = {m: f"{m} {slopes[m]:.2f}" if slopes.get(m) is not None else m for m in lines}
    return [
        trend_chart(
            f"{words} against {AXES[axis]}",
            places,
            {named[method]: [*map(line.get, places)] for method, line in lines.items()},
            AXES[axis],
            form="g",
            log=True,
            dashed=[named[method] for method in list(lines)[COLOURS:]],
        )
    ]


def _kernels(rows: list[Row]) -> Html:
    columns = {
        "GB/s": "GB/s",
        "GFLOP/s": "GFLOP/s",
        "limit": "limit",
        "share of limit": "share of limit (%)",
        "peer / ours": "time of NumPy or SciPy / ours",
    }
    return table(
        ["kernel", *columns.values()],
        [[row["cell"]["name"], *map(row["found"].get, columns)] for row in rows],
        form=".1f",
    )
