"""The sections on hidden labels: in short, against the share hidden, and against time."""

from __future__ import annotations

from collections import defaultdict

from tacit.html.page import Html, details, figure, scatter_chart, subheading, table, trend_chart
from tacit_bench.report.scores import Condition, Conditions, Contest, Score, contests
from tacit_bench.report.words import not_measured, toned

__all__ = ["in_short", "missing", "time"]

ACCURACY = ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "R@20 hidden")
COSTS = ("calibration", "fit s", "tuning s", "peak GiB")
EACH = 3  # of ours and of the peers in colour, of which a chart has six
TIMED_RATES = (0.0, 0.8)
FLOOR = 0.75  # of the best P@3: what stays below would squeeze the others together


def in_short(works: Conditions) -> list[str]:
    """The best of ours beside the best peer."""
    found = contests(works, "P@3")
    if not found:
        return [not_measured("missing", "peers")]
    return [
        "The best of ours beside the best peer, by the share (%) of the first three labels that "
        "are right. Every method chose among equally many settings on held-out training rows; "
        "which of them is best is read off the test rows, on both sides.",
        _contests(found, "P@3"),
        details(
            "The same for the first label (P@1) and the first five (P@5)",
            [_contests(contests(works, name), name) for name in ("P@1", "P@5")],
        ),
    ]


def _contests(found: list[Contest], name: str) -> Html:
    # The difference comes early: it is what a narrow screen must show.
    header = ["data", "hidden", "difference", "best of ours", name, "best peer", name]
    rows = [[c.data, c.hidden, toned(c.difference), *c[2:6]] for c in found]
    return table(header, rows, form=".2f")


def missing(works: Conditions) -> list[str]:
    """Charts of P@3 against the share hidden, and tables of all figures."""
    if not works:
        return [not_measured("missing", "peers")]
    hidden = {work: scores for work, scores in works.items() if work.mechanism == "positives"}
    entries = {work: scores for work, scores in works.items() if work not in hidden}
    names = _prominent(hidden)
    parts: list[str] = []
    if hidden:
        parts += [
            "P@3 (%) on complete test labels, with a share of the positive training labels hidden "
            f"at random. In colour, of ours and (dashed) of the peers, the {EACH} that are most "
            "often the best of their side; in grey the others, which a pointer names. "
            f"What never reaches {FLOOR:.0%} of the best is in the tables alone.",
            *(_trend(data, hidden, names) for data in _at_several_rates(hidden)),
            "All figures, in %, seconds and GiB: mean ± deviation where there are several seeds, "
            "the best of a column in bold. R@20 hidden is the share of a row's hidden labels among "
            "its 20 best completions; calibration is the error of the probabilities of the five "
            "best labels, the less the better.",
            *(_full_table(work, scores) for work, scores in hidden.items()),
        ]
    if entries:
        parts += [
            subheading("Entries observed at random"),
            "Here few entries are known, yes or no alike, and it is known which.",
            *(_full_table(work, scores) for work, scores in entries.items()),
        ]
    return parts


def _prominent(works: Conditions) -> list[str]:
    """Of ours, then of the peers, who is most often the best; among equals, who is near it."""
    names: list[str] = []
    for is_peer in (False, True):
        # Wins first: a sum of shares alone would favour who was measured on more works.
        merit: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for scores in works.values():
            for place, score in enumerate(s for s in scores if s.is_peer == is_peer):
                wins, shares = merit[score.method]
                merit[score.method] = wins + (place == 0), shares + _share(score, scores)
        names += sorted(merit, key=lambda name: merit[name], reverse=True)[:EACH]
    return names


def _at_several_rates(works: Conditions) -> list[str]:
    """The data sets that a line can be drawn for."""
    rates: dict[str, set[float]] = {}
    for work in works:
        rates.setdefault(work.data, set()).add(work.rate)
    return [data for data, measured in rates.items() if len(measured) > 1]


def _share(score: Score, scores: list[Score]) -> float:
    """P@3 as a share of the best on the same work."""
    return (score.mean("P@3") or 0) / (scores[0].mean("P@3") or 1)


def _trend(data: str, works: Conditions, names: list[str]) -> Html:
    here = {work.rate: scores for work, scores in works.items() if work.data == data}
    every = [(s, _share(s, scores) >= FLOOR) for scores in here.values() for s in scores]
    others = dict.fromkeys(s.method for s, shown in every if shown and s.method not in names)
    p3 = {rate: {s.method: s.mean("P@3") for s in scores} for rate, scores in here.items()}
    return trend_chart(
        f"{data}: P@3 (%)",
        [100 * rate for rate in here],
        {name: [p3[rate].get(name) for rate in here] for name in [*names, *others]},
        "positives hidden (%)",
        form=".4g",
        dashed={s.method for s, _ in every if s.is_peer},
        faint=others,
    )


def _full_table(work: Condition, scores: list[Score]) -> Html:
    best = {name: max((m for s in scores if (m := s.mean(name))), default=0) for name in ACCURACY}
    names = [*ACCURACY, *COSTS]
    rows = [
        [
            score.method,
            "peer" if score.is_peer else "ours",
            *(
                figure(score.written(name), "best" if score.mean(name) == best.get(name) else None)
                for name in names
            ),
        ]
        for score in scores
    ]
    return details(str(work), [table(["method", "", *names], rows)])


def time(works: Conditions) -> list[str]:
    """Charts of P@3 against the seconds of a fit."""
    charts = [
        _scatter(work, scores)
        for work, scores in works.items()
        if work.mechanism == "positives" and work.rate in TIMED_RATES
    ]
    if not charts:
        return [not_measured("missing", "peers")]
    return [
        "P@3 (%) against the seconds of one fit, with the settings that were chosen. The dotted "
        f"line is the most to be had in so much time. What stays below {FLOOR:.0%} of the best P@3 "
        "is in the tables above alone.",
        *charts,
    ]


def _scatter(work: Condition, scores: list[Score]) -> Html:
    groups: dict[str, dict[str, tuple[float, float]]] = {"ours": {}, "peers": {}}
    for score in scores:
        seconds, p3 = score.mean("fit s"), score.mean("P@3")
        if seconds is not None and p3 is not None and _share(score, scores) >= FLOOR:
            devices = {found.get("device", "cpu") for found in score.found} - {"cpu"}
            name = " on ".join([score.method, *sorted(devices)])
            # Seconds are kept with two digits, and a logarithmic axis has no zero.
            groups["peers" if score.is_peer else "ours"][name] = max(seconds, 0.01), p3
    title = f"{work.data}, {work.rate:.0%} hidden: P@3 (%)"
    return scatter_chart(title, groups, "seconds of a fit", ".4g")
