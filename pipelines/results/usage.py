"""Usage of a run's services, in total and for each configuration, and the gains of stages that it pays for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.work import STAGE as JUDGE
from rankbeam.transforms.records.columns import COMMON
from rankbeam.transforms.records.scores.rows import Comparison, Verdict
from rankbeam.transforms.records.slices import ALL
from rankbeam.transforms.records.stages import ADDED

Row = dict[str, Any]
_COMMON = {field.name for field in COMMON}
_SERVICE = ("stage", "pool", "model")
PAYS = {
    Verdict.BETTER: "yes",
    Verdict.WORSE: "no, worse",
    Verdict.EQUAL: "no, equal",
    Verdict.UNDECIDED: "not shown",
    Verdict.UNKNOWN: "–",
}
"""Words for each verdict on the gain of a stage."""


def usage_rows(results: Results) -> list[Row]:
    """The rows of `usage`, without the common columns; none of a run that is older than the table."""
    return [{name: value for name, value in row.items() if name not in _COMMON} for row in results.rows("usage")]


def usage_of(rows: list[Row], config_id: str | None) -> list[Row]:
    """The usage of one configuration, by stage, quota pool and model; empty for a run of an earlier version.

    Of the stage "judge" these are the calls that generate answers, so it is "answer" here.

    >>> row = {"stage": "judge", "pool": "p", "model": "m", "configurations": [{"config_id": "c", "calls": 2}]}
    >>> usage_of([row], "c")
    [{'stage': 'answer', 'pool': 'p', 'model': 'm', 'calls': 2}]
    """
    return [
        {name: row[name] for name in _SERVICE}
        | {name: value for name, value in of.items() if name != "config_id"}
        | ({"stage": "answer"} if row["stage"] == JUDGE else {})
        for row in rows
        for of in row["configurations"] or ()
        if of["config_id"] == config_id
    ]


def seconds(number: float | None) -> str:
    """A duration, as people read it.

    >>> seconds(0.0304), seconds(1.5), seconds(None)
    ('30 ms', '1.50 s', '–')
    """
    if number is None:
        return "–"
    return f"{number:.2f} s" if number >= 1 else f"{number * 1000:.0f} ms"


@dataclass(frozen=True)
class StageGain:
    """The gain of a configuration over one that differs from it by one stage only, in one metric over all queries."""

    row: Comparison
    stage: str  # the one in which they differ
    name: str  # of the configuration with the stage
    without: str  # name of the other one
    verdict: Verdict  # after the correction over all comparisons
    calls: float  # further calls for each query
    seconds: float | None  # median latency of a call of the stage; None if there was none
    cost: float | None  # further cost of 1,000 queries; None if a price is unknown

    @property
    def pays(self) -> str:
        """The verdict in words: does the stage pay?"""
        return PAYS[self.verdict]


def stage_gains(results: Results, metric: str) -> list[StageGain]:
    """The gains of stages in one metric, in the experiment's order; none in runs of older releases."""
    names = {row["config_id"]: row["name"] for row in results.configurations}
    usage, queries = usage_rows(results), queries_of(results)
    confidence = float(results.run["statistics"].get("confidence", 0.95))
    rows = [row for row in results.comparisons if row.stage is not None and row.slice == ALL and row.metric == metric]
    order = list(names)
    rows.sort(key=lambda row: (order.index(row.config_id), order.index(row.baseline)))
    return [
        StageGain(
            row,
            row.stage or "",
            names[row.config_id],
            names[row.baseline],
            row.verdict(confidence),
            _calls(usage, queries, row.config_id) - _calls(usage, queries, row.baseline),
            _seconds(usage, row),
            _further_cost(usage, queries, row),
        )
        for row in rows
    ]


def cost_of_1000_queries(usage: list[Row], queries: Mapping[str, int], config_id: str) -> float | None:
    """Cost of a configuration for 1,000 queries; None if a price is unknown."""
    costs = [row["cost"] for row in usage_of(usage, config_id) if row["calls"]]
    return None if None in costs else float(sum(costs) * 1000 / queries[config_id])


def queries_of(results: Results) -> dict[str, int]:
    """The number of queries that each configuration was called for, whether they have a value or not; at least 1."""
    numbers = {row["config_id"]: 1 for row in results.configurations}
    for row in results.means.values():
        if row.slice == ALL:
            total = row.queries + row.failed + row.undefined + row.missing
            numbers[row.config_id] = max(numbers[row.config_id], total)
    return numbers


def _calls(usage: list[Row], queries: Mapping[str, int], config_id: str) -> float:
    return float(sum(row["calls"] for row in usage_of(usage, config_id)) / queries[config_id])


def _seconds(usage: list[dict[str, Any]], row: Comparison) -> float | None:
    """Median latency of a call of the stage; with several services, that of the slowest."""
    stage = row.stage if row.stage in ADDED else "retrieve"
    known = (of["p50_s"] for of in usage_of(usage, row.config_id) if of["stage"] == stage)
    return max((second for second in known if second is not None), default=None)


def _further_cost(usage: list[Row], queries: Mapping[str, int], row: Comparison) -> float | None:
    one, other = (cost_of_1000_queries(usage, queries, name) for name in (row.config_id, row.baseline))
    return None if one is None or other is None else one - other
