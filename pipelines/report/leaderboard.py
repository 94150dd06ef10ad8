"""The leaderboard of every metric: means, intervals as bars, and the configurations that may be the best."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.plots import BAR_HEIGHT, BAR_WIDTH, bar_axis
from rankbeam.pipelines.report.study import MOST_SHOWN, Study
from rankbeam.pipelines.report.svg import PlotScale, ticks, values_scale
from rankbeam.pipelines.results.leaderboard import doubt, without_value
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import COUNTS, ConfigurationMetric

_MARGIN = 14.0
_MOST_NAMED = 3  # in a sentence; the table marks all of them


def board(study: Study, metric: str) -> dict[str, Any]:
    order = study.order(metric)
    rows = [study.mean(position, metric) for position in order]
    scale, ranks = _scale(rows), _ranks(study, metric, order)
    places = list(zip(order, rows, ranks, strict=True))
    shown = [*places[:MOST_SHOWN], *(place for place in places[MOST_SHOWN:] if place[0] == study.baseline)]
    return {
        "metric": metric,
        "places": [_place(study, *place, scale) for place in shown],
        "left_out": len(places) - len(shown),
        "axis": None if scale is None else bar_axis(scale, "bar axis", "Axis"),
        "has_joint": any(row.joint_low is not None for row in rows),
        "has_bounds": any(row.failed for row in rows),
        "has_ties": any(_ties_matter(row) for row in rows),
        "has_unjudged": any(row.unjudged_lowest is not None for row in rows),
        "has_cut_short": any(map(study.is_cut_short, rows)),
        "counts": [name for name in COUNTS if any(getattr(row, name) for row in rows)],
        "verdict": _verdict(study, metric, order),
    }


def half_width(row: ConfigurationMetric) -> str:
    """Distance from the mean to the farther end of its interval."""
    return "" if row.half_width is None else f"±{row.half_width:.3f}{doubt(row)}"


def _place(
    study: Study, configuration: int, row: ConfigurationMetric, rank: int | None, scale: PlotScale | None
) -> dict[str, Any]:
    return {
        "rank": rank,
        "name": study.titles[configuration],
        "is_baseline": configuration == study.baseline and len(study.titles) > 1,
        "may_be_best": row.may_be_best,  # True without a significant difference from the best; None if not known
        "row": row,
        "is_cut_short": study.is_cut_short(row),
        "mean": words.value(row.mean),
        "interval": words.interval(row.ci_low, row.ci_high) + doubt(row),
        "joint": words.interval(row.joint_low, row.joint_high),
        "bounds": words.interval(row.lowest, row.highest) if row.failed else "exact",
        "ties": words.interval(row.tie_lowest, row.tie_highest) if _ties_matter(row) else "no matter",
        "unjudged": words.interval(row.unjudged_lowest, row.unjudged_highest),
        "bar": Markup("") if scale is None or row.mean is None else _bar(study, configuration, row, row.mean, scale),
    }


def _ranks(study: Study, metric: str, order: Sequence[int]) -> Iterator[int | None]:
    """1 for the best of its dialect; equal means share a rank; None for a failed configuration. Best first."""
    places = Counter[object]()
    firsts: dict[tuple[object, float], int] = {}
    for position in order:
        dialect, mean = study.results.dialects[position], study.mean(position, metric).mean
        places[dialect] += 1
        yield None if mean is None else firsts.setdefault((dialect, mean), places[dialect])


def _ties_matter(row: ConfigurationMetric) -> bool:
    return row.tie_lowest is not None and row.tie_lowest != row.tie_highest


def _scale(rows: list[ConfigurationMetric]) -> PlotScale | None:
    names = ("mean", "ci_low", "ci_high", "joint_low", "joint_high")
    ends = [getattr(row, name) for row in rows for name in names]
    known = [end for end in ends if end is not None]
    return values_scale(known, _MARGIN, BAR_WIDTH - _MARGIN) if known else None


def _bar(study: Study, configuration: int, row: ConfigurationMetric, mean: float, scale: PlotScale) -> Markup:
    middle = BAR_HEIGHT / 2
    kind = {True: "best", False: "worse", None: ""}[row.may_be_best]
    parts = [svg.line(scale(tick), 0, scale(tick), BAR_HEIGHT, "grid") for tick in ticks(scale)]
    if row.joint_low is not None and row.joint_high is not None:
        parts.append(svg.line(scale(row.joint_low), middle, scale(row.joint_high), middle, f"joint {kind}"))
    if row.interval is not None:
        left, right = map(scale, row.interval)
        place: dict[str, str | float] = {"x": left, "y": middle - 4, "width": max(1.0, right - left), "height": 8.0}
        parts.append(svg.element("rect", place | {"rx": 2.0, "class": f"interval {kind}"}))
    parts.append(svg.element("circle", {"cx": scale(mean), "cy": middle, "r": 4.0, "class": f"point {kind}"}))
    title = f"{study.titles[configuration]}: {words.value(mean)}"
    interval = f"{study.confidence} interval {words.interval(row.ci_low, row.ci_high)}"
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "bar", title, interval, *parts)


def _verdict(study: Study, metric: str, order: list[int]) -> list[str]:
    """Sentences about findings that the leaderboard itself does not show."""
    best = study.mean(order[0], metric)
    if best.mean is None:
        return [f"No configuration has a value of {metric}: every query failed."]
    if len(order) == 1:
        return []
    return [*_group(study, metric, order), *filter(None, [without_value(study.results, metric)])]


def _group(study: Study, metric: str, order: list[int]) -> list[str]:
    rows = [study.mean(position, metric) for position in order]
    verdicts = [row.may_be_best for row in rows]
    if len(set(study.results.dialects)) > 1 or all(verdict is None for verdict in verdicts):
        return []  # values by different tools' rules cannot be ranked against each other
    if any(row.is_unreliable for row in rows):
        return []  # the page begins with this warning
    others = [study.titles[position] for position, verdict in zip(order[1:], verdicts[1:], strict=True) if verdict]
    confidence = study.results.confidence_of_best(1 + len(others))
    if not others:
        compared = "every other configuration" + (" with a value" if None in verdicts else "")
        best = study.titles[order[0]]
        return [f"{best} differs significantly from {compared} at {confidence} confidence."]
    worse = sum(1 for verdict in verdicts[1:] if verdict is False)
    rest = (
        f" The other {pluralize(worse, 'configuration differs', 'configurations differ')} significantly from it."
        if worse
        else ""
    )
    names = words.series(others, _MOST_NAMED)
    verb = "shows" if len(others) == 1 else "show"
    return [f"{names} {verb} no significant difference from the best at {confidence} confidence.{rest}"]
