"""Report sections on the gains of stages, the trade-off between cost and quality, and calls' latency and cost."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rankbeam.pipelines.report import plots, svg, words
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.usage import (
    cost_of_1000_queries,
    lacks_ledger_costs,
    latency_of,
    queries_of,
    stage_gains,
    usage_of,
    usage_rows,
)
from rankbeam.transforms.kernels.statistics.selection import pareto_front
from rankbeam.transforms.records.stages import RETRIEVER

MOST_POINTS = 60
_LEAST_LATENCY_S = 0.01
"""Lower latencies come from models that compare words in this process, which tell nothing about services."""
Usage = list[dict[str, Any]]
COST, LATENCY = "cost of 1,000 queries", "sum of the median latencies of its calls, in seconds"


def stages(study: Study, metric: str) -> dict[str, Any] | None:
    """Gains of stages and the plot of cost and quality; None if there is neither."""
    gains, trade_off = stage_gains(study.results, metric), _trade_off(study, metric)
    if all(gain.stage == RETRIEVER for gain in gains):  # the comparisons with the baseline show them
        gains = []
    if not gains and trade_off is None:
        return None
    has_calls, has_cost = any(gain.calls for gain in gains), any(gain.cost for gain in gains)
    return {
        "gains": gains,
        "trade_off": trade_off,
        "has_calls": has_calls,
        "has_cost": has_cost,
        "lacks_ledger_costs": lacks_ledger_costs(usage_rows(study.results)),
        "paying": "negative" if study.results.lower_is_better(metric) else "positive",
    }


def _trade_off(study: Study, metric: str) -> dict[str, Any] | None:
    """Cost, or else latency, and quality of every configuration; None if costs and latencies do not differ."""
    usage = usage_rows(study.results)
    known = [place for place in study.order(metric) if study.mean(place, metric).mean is not None]
    queries = queries_of(study.results)
    axis, prices = COST, {place: _cost(study, usage, queries, place) for place in known}
    if not any(prices.values()):
        axis, prices = LATENCY, {place: _latency(study, usage, place) for place in known}
    all_priced = [(place, price) for place, price in prices.items() if price is not None]
    priced = all_priced[:MOST_POINTS]
    if len({price for _, price in priced}) < 2 or (
        axis == LATENCY and max(price for _, price in priced) < _LEAST_LATENCY_S
    ):
        return None
    ledger = {
        "has_costs": axis == COST,
        "ledger_hits": sum(row["ledger_hits"] for row in usage),
        "has_ledger_costs": axis == COST and any(row["from_ledger"] for row in usage),
    }
    numbers = {"priced": len(all_priced), "unpriced": len(known) - len(all_priced)}
    return _plot(study, metric, axis, priced) | ledger | numbers


def _cost(study: Study, usage: Usage, queries: Mapping[str, int], place: int) -> float | None:
    """Cost of 1,000 queries for the cheapest of the configurations with equal values."""
    costs = (cost_of_1000_queries(usage, queries, study.ids[member]) for member in study.members[place])
    return min((cost for cost in costs if cost is not None), default=None)


def _latency(study: Study, usage: Usage, place: int) -> float | None:
    latencies = (latency_of(usage, study.ids[member]) for member in study.members[place])
    known = [latency for latency in latencies if latency is not None]
    return float(f"{min(known):.3g}") if known else None  # percentiles are accurate to 1%


def _plot(study: Study, metric: str, axis: str, priced: list[tuple[int, float]]) -> dict[str, Any]:
    rows = [(place, price, study.mean(place, metric)) for place, price in priced]
    points = [(price, row.mean or 0.0, *row.ends) for _, price, row in rows]
    quality = study.results.sign_of(metric) * np.array([mean for _, mean, *_ in points])
    front = pareto_front(np.array([x for x, *_ in points]), quality).tolist()
    across, up = plots.inner_scales([x for x, *_ in points], [end for point in points for end in point[1:]])
    parts = plots.axes(across, up, [x for x, *_ in points], axis)
    best = sorted(point[:2] for point, is_best in zip(points, front, strict=True) if is_best)
    path = " ".join(f"{across(x):.1f},{up(mean):.1f}" for x, mean in best)
    parts.append(svg.element("polyline", {"points": path, "class": "front"}))
    for number, ((place, *_), (x, mean, low, high), is_best) in enumerate(
        zip(rows, points, front, strict=True), start=1
    ):
        hint = f"{study.titles[place]}: {words.plain_number(x)}, {words.value(mean)} ({words.interval(low, high)})"
        bar = svg.line(across(x), up(low), across(x), up(high), "bar")
        dot: dict[str, str | float] = {"cx": across(x), "cy": up(mean), "r": 4.5, "class": "mark"}
        mark = svg.element("circle", dot, svg.element("title", {}, hint))
        label = svg.text(across(x) + 7, up(mean) - 6, str(number), "tick", "start")
        parts.append(svg.element("g", {"class": "series-0" if is_best else "series-1"}, bar, mark, label))
    names = [study.titles[place] for place, _ in priced]
    story = "; ".join(name for name, is_best in zip(names, front, strict=True) if is_best)
    picture = svg.picture(
        plots.WIDTH, plots.HEIGHT, "plot trade", f"{metric} by {axis}", f"Not beaten in both: {story}", *parts
    )
    table = [
        (name, words.plain_number(x), words.value(mean), words.interval(low, high), is_best)
        for name, (x, mean, low, high), is_best in zip(names, points, front, strict=True)
    ]
    return {"axis": axis, "picture": picture, "table": table}


def service_usage(study: Study) -> dict[str, Any] | None:
    """Usage of the run's services; None if it called none."""
    services = usage_rows(study.results)
    if not services:
        return None
    usages = [pair for place in study.order(study.metrics[0]) for pair in _usage(study, services, place)]
    return {
        "services": services,
        "configurations": usages,
        "is_shared": any(row["shared_calls"] for _, row in usages),
        "has_latency": any(row["p50_s"] is not None for row in services),
        "has_cost": any(row["cost"] is not None for row in services),
        "has_tokens": any(row["input_tokens"] or row["output_tokens"] for row in services),
    }


def _usage(study: Study, services: Usage, place: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The usage of configurations with equal values, under their common title if usage is equal, too."""
    rows = {member: usage_of(services, study.ids[member]) for member in study.members[place]}
    if all(used == rows[place] for used in rows.values()):
        yield from ((study.titles[place], row) for row in rows[place])
    else:
        yield from ((study.names[member], row) for member, used in rows.items() for row in used)
