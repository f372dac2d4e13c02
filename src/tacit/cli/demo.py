"""`tacit demo`: the trial on Debian's tags, told in the terminal and on a page."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tacit.baselines import Popularity, Ridge
from tacit.cli.output import write_page
from tacit.cli.trial import (
    FIRST,
    GUESSES,
    HIDDEN_SHARE,
    PLACES,
    Result,
    Suggestion,
    Trial,
    result,
    suggestions,
    trial,
)
from tacit.datasets.dataset import Dataset
from tacit.datasets.debian import load_debian
from tacit.estimators import MultiLabelEstimator
from tacit.html.page import bar_chart, facts, line_chart, page, table
from tacit.methods import LEML

__all__ = ["demo"]

RANK = 100
# The weights are the best of 3, 10 and 30 for recall@5 with seed 1.
RIDGE_REG, LEML_REG = 3.0, 10.0


def demo(output: Path = Path("tacit-demo.html"), seed: int = 0, as_json: bool = False) -> None:
    """Find hidden tags of Debian packages, and tags that nobody gave; write a page about it.

    Parameters
    ----------
    output : Path, default="tacit-demo.html"
        The page to write.
    seed : int, default=0
        What the split, the hidden tags and the first factors are drawn from.
    as_json : bool, default=False
        Print the figures as JSON rather than as tables.
    """
    output = Path(output)
    if output.is_dir():
        raise ValueError(f"output is the folder {str(output)!r}; give the name of a file in it")
    data = load_debian()
    made = trial(data, seed)
    models: dict[str, MultiLabelEstimator] = {
        "popularity": Popularity(),
        "ridge": Ridge(reg=RIDGE_REG),
        "LEML": LEML(rank=RANK, reg=LEML_REG, solver="cg", random_state=seed),
    }
    console = Console(stderr=True)
    results = []
    for name, model in models.items():
        with _stage(console, f"{name}: learning, then guessing"):
            results.append(result(name, model, made))
    with _stage(console, "LEML on every tag: looking for forgotten ones"):
        missing = suggestions(data, models["LEML"])
    write_page(output, _page(data, made, results, missing, seed))
    if as_json:
        print(json.dumps(_report(made, results, missing, output), indent=2))
    else:
        _print_tables(made, results, missing, output)


@contextmanager
def _stage(console: Console, text: str) -> Iterator[None]:
    start = time.perf_counter()
    with console.status(f"{text} …"):
        yield
    console.print(f"[green]✓[/] {text} [dim]{time.perf_counter() - start:.1f} s[/]")


def _recovery(results: list[Result]) -> tuple[list[str], list[list[str | float]]]:
    rows: list[list[str | float]] = [
        [r.model, r.recall[4], r.recall[9], r.precision_first] for r in results
    ]
    return ["model", "R@5", "R@10", f"first {FIRST:,}"], rows


def _prediction(results: list[Result]) -> tuple[list[str], list[list[str | float]]]:
    rows: list[list[str | float]] = [[r.model, *r.precision] for r in results]
    return ["model", *(f"P@{k}" for k in PLACES)], rows


def _report(made: Trial, results: list[Result], missing: list[Suggestion], output: Path) -> dict:
    return {
        "packages": {"train": len(made.shown), "test": len(made.Y_test)},
        "hidden": int(made.hidden.nnz),
        "results": [asdict(r) for r in results],
        "suggestions": [asdict(s) for s in missing],
        "page": str(output),
    }


def _print_tables(
    made: Trial, results: list[Result], missing: list[Suggestion], output: Path
) -> None:
    (header, found), (more, right) = _recovery(results), _prediction(results)
    compared = Table(
        title=f"R: {made.hidden.nnz:,} hidden tags of {len(made.shown):,} packages\n"
        f"P: {len(made.Y_test):,} new packages"
    )
    for i, name in enumerate([*header, *more[1:]]):
        compared.add_column(name, justify="right" if i else "left")
    for a, b in zip(found, right):
        compared.add_row(*(c if isinstance(c, str) else f"{c:.1%}" for c in [*a, *b[1:]]))
    forgotten = Table(title="Tags that seem to be missing")
    for name in ("package", "missing tag", "because"):
        forgotten.add_column(name)
    for s in missing:
        forgotten.add_row(escape(s.package), escape(s.tag), escape(s.because))
    console = Console()
    console.print(compared, forgotten, f"The page: {escape(str(output))}", sep="\n\n")


def _page(
    data: Dataset, made: Trial, results: list[Result], missing: list[Suggestion], seed: int
) -> str:
    per_package = np.diff(data.Y.positives.indptr)
    per_tag = np.bincount(data.Y.positives.indices, minlength=data.Y.n_labels)
    commonest = np.argsort(-per_tag, kind="stable")
    classes = np.asarray(data.Y.classes)
    n_features, n_tags = data.X.shape[1], data.Y.n_labels
    most = 12
    lengths = np.bincount(np.minimum(per_package, most), minlength=most + 1)[1:]
    places = list(range(1, GUESSES + 1))
    return page(
        "Which tags did nobody write down?",
        [
            (
                "",
                [
                    "Volunteers tag Debian's packages by hand, and many true tags were never "
                    "given. Here tacit learns from the tags that were, finds again those that we "
                    "hide from it, and names some that seem to be missing.",
                    facts(
                        [
                            (len(data.Y), "packages"),
                            (data.Y.n_labels, "tags"),
                            (data.X.shape[1], "features"),
                            (int(data.Y.positives.nnz), "tags given"),
                            (f"{per_package.mean():.1f}", "tags a package"),
                        ]
                    ),
                ],
            ),
            (
                "Tags that seem to be missing",
                [
                    "The unsaid tags that LEML, trained on every tag, holds most probable, where "
                    "a person can check why: of all packages with the feature named, more than "
                    "four in five carry the tag. At most one a source package, and two of a tag.",
                    table(
                        ["package", "missing tag", "because", "tags it has"],
                        [[s.package, s.tag, s.because, ", ".join(s.said)] for s in missing],
                    ),
                ],
            ),
            (
                "Hidden tags found again",
                [
                    f"Of the tags of {len(made.shown):,} training packages {HIDDEN_SHARE:.0%} "
                    f"({made.hidden.nnz:,}) were hidden. Each model then ranks the unsaid tags of "
                    "every package. R@k is the share of a package's hidden tags among its k first. "
                    f"“First {FIRST:,}” is the share of hidden tags among the {FIRST:,} surest "
                    "guesses over all packages; a true tag that nobody ever gave counts as wrong.",
                    table(*_recovery(results), form=".1%"),
                    bar_chart(
                        "Hidden tags found",
                        ["R@5", "R@10", f"first {FIRST:,}"],
                        {r.model: [r.recall[4], r.recall[9], r.precision_first] for r in results},
                    ),
                    line_chart(
                        "R@k: share of hidden tags found in k guesses",
                        places,
                        {r.model: r.recall for r in results},
                        "k, guesses a package",
                    ),
                ],
            ),
            (
                "Packages never seen",
                [
                    "P@k is the share of right ones among the first k tags, here for "
                    f"{len(made.Y_test):,} packages built from other sources than those learnt "
                    "from. A package with fewer than k tags cannot reach 100%.",
                    table(*_prediction(results), form=".1%"),
                    bar_chart(
                        "Right tags among the first k, new packages",
                        [f"P@{k}" for k in PLACES],
                        {r.model: r.precision for r in results},
                    ),
                ],
            ),
            (
                "What volunteers have said",
                [
                    bar_chart(
                        "The commonest tags",
                        classes[commonest[:most]].tolist(),
                        {"packages": per_tag[commonest[:most]].tolist()},
                        form=",d",
                    ),
                    bar_chart(
                        "Tags a package",
                        [*map(str, range(1, most)), f"{most} or more"],
                        {"packages": lengths.tolist()},
                        form=",d",
                    ),
                    line_chart(
                        "Packages a tag, from the commonest to the rarest tag",
                        list(range(1, len(per_tag) + 1)),
                        {"packages": per_tag[commonest].tolist()},
                        "rank of the tag",
                        form=",.0f",
                        log=True,
                    ),
                ],
            ),
            (
                "How this was made",
                [
                    f"By “tacit demo” with seed {seed}. Data: {data.meta['source']}; "
                    f"{data.meta['licence']}. Features: {data.meta['features']}; damped, and "
                    "weighted by idf. Packages of one source are all in training or all in test.",
                    "Every model reads unsaid as no. Popularity offers each package the commonest "
                    f"tags. Ridge keeps a weight for each feature and tag, {n_features * n_tags:,} "
                    f"numbers; LEML, of rank {RANK}, keeps {RANK * (n_features + n_tags):,}. With "
                    f"{n_tags} tags both are possible; with a million tags only the second is.",
                    "To fit took "
                    + ", ".join(f"{r.model} {r.seconds:.1f} s" for r in results)
                    + ", the first including the compilation of kernels.",
                ],
            ),
        ],
    )
