"""Latency and cost of calls in a report, by configuration and by service."""

from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.usage import usage_of, usage_rows


@dataclass(frozen=True)
class Used:
    """The tables of the section."""

    services: list[dict[str, Any]]
    configurations: list[tuple[str, dict[str, Any]]]
    is_shared: bool
    has_latency: bool
    has_cost: bool
    has_tokens: bool


def used(study: Study) -> Used | None:
    """Usage of the run's services; None if it called none."""
    services = usage_rows(study.results)
    if not services:
        return None
    of = [
        (study.titles[place], row)
        for place in study.order(study.metrics[0])
        for row in usage_of(services, study.ids[place])
    ]
    return Used(
        services,
        of,
        is_shared=any(row["shared_calls"] for _, row in of),
        has_latency=any(row["p50_s"] is not None for row in services),
        has_cost=any(row["cost"] is not None for row in services),
        has_tokens=any(row["input_tokens"] or row["output_tokens"] for row in services),
    )
