"""Usage of a run's services, in total and for each configuration, and the gains of the stages that cause it."""

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
"""Words for each verdict on a stage's gain."""


def usage_rows(results: Results) -> list[Row]:
    """The rows of `usage`, without the common columns; empty if the run is older than the table."""
    return [{name: value for name, value in row.items() if name not in _COMMON} for row in results.rows("usage")]


def usage_of(rows: list[Row], config_id: str | None) -> list[Row]:
    """One configuration's usage, by stage, quota pool and model; empty for a run from an earlier version.

    In the stage "judge", a configuration's calls are those that generate answers, so the stage is "answer" here.

    >>> row = {"stage": "judge", "pool": "p", "model": "m", "configurations": [{"config_id": "c", "calls": 2}]}
    >>> usage_of([row], "c")
    [{'stage': 'answer', 'pool': 'p', 'model': 'm', 'calls': 2}]
    """
    return [
        {name: row[name] for name in _SERVICE}
        | {name: value for name, value in share.items() if name != "config_id"}
        | ({"stage": "answer"} if row["stage"] == JUDGE else {})
        for row in rows
        for share in row["configurations"] or ()
        if share["config_id"] == config_id
    ]


def seconds(number: float | None) -> str:
    """A duration as text.

    >>> seconds(0.0304), seconds(1.5), seconds(None)
    ('30 ms', '1.50 s', '–')
    """
    if number is None:
        return "–"
    return f"{number:.2f} s" if number >= 1 else f"{number * 1000:.0f} ms"


@dataclass(frozen=True)
class StageGain:
    """The gain of a configuration over another one without one of its stages, in one metric over all queries."""

    row: Comparison
    stage: str  # the stage in which the two differ
    name: str  # name of the configuration with the stage
    without: str  # name of the other configuration
    verdict: Verdict  # after the correction over all comparisons
    calls: float  # additional calls per query, also of answers in the ledger
    seconds: float | None  # median latency of the stage's calls; None if there were none
    cost: float | None  # additional cost of 1,000 queries; None if a price is unknown

    @property
    def pays(self) -> str:
        """The verdict as text: does the stage pay?"""
        return PAYS[self.verdict]


def stage_gains(results: Results, metric: str) -> list[StageGain]:
    """The gains of stages in one metric, in the experiment's order; empty for runs from older releases."""
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
    """Cost of a configuration for 1,000 queries, also of answers in the ledger; None if a price is unknown."""
    costs = [row["cost"] for row in (*usage_of(usage, config_id), *_from_ledger(usage, config_id))]
    return None if None in costs else float(sum(costs) * 1000 / queries[config_id])


def latency_of(usage: list[Row], config_id: str) -> float | None:
    """Sum of the median latencies of a configuration's calls; None if the ledger answered all calls of a service.

    >>> row = {"configurations": [{"config_id": "a", "p50_s": 0.5}], "from_ledger": [{"config_id": "b"}]}
    >>> latency_of([row], "a"), latency_of([row], "b"), latency_of([row], "c")
    (0.5, None, 0.0)
    """
    total = 0.0
    for row in usage:
        parts = [*(row["configurations"] or ()), *(row["from_ledger"] or ())]
        if own := [part.get("p50_s") for part in parts if part["config_id"] == config_id]:
            if own[0] is None:
                return None
            total += own[0]
    return total


def lacks_ledger_costs(usage: list[Row]) -> bool:
    """True if a run of an earlier version used answers in the ledger, and did not store what these had cost."""
    return any(row["ledger_hits"] and row["from_ledger"] is None for row in usage)


def queries_of(results: Results) -> dict[str, int]:
    """The number of queries for which each configuration was called, with or without a value; at least 1."""
    numbers = {row["config_id"]: 1 for row in results.configurations}
    for row in results.means.values():
        if row.slice == ALL:
            total = row.queries + row.failed + row.undefined + row.missing
            numbers[row.config_id] = max(numbers[row.config_id], total)
    return numbers


def _calls(usage: list[Row], queries: Mapping[str, int], config_id: str) -> float:
    parts = (*usage_of(usage, config_id), *_from_ledger(usage, config_id))
    return float(sum(part["calls"] for part in parts) / queries[config_id])


def _from_ledger(usage: list[Row], config_id: str) -> list[Row]:
    """A configuration's answers in the ledger; empty for a run from an earlier version."""
    parts = (part for row in usage for part in row["from_ledger"] or () if part["config_id"] == config_id)
    return [{**part, "calls": part["ledger_hits"] if part.get("calls") is None else part["calls"]} for part in parts]


def _seconds(usage: list[dict[str, Any]], row: Comparison) -> float | None:
    """Median latency of the stage's calls; with several services, the slowest service's."""
    stage = row.stage if row.stage in ADDED else "retrieve"
    known = (usages["p50_s"] for usages in usage_of(usage, row.config_id) if usages["stage"] == stage)
    return max((second for second in known if second is not None), default=None)


def _further_cost(usage: list[Row], queries: Mapping[str, int], row: Comparison) -> float | None:
    one, other = (cost_of_1000_queries(usage, queries, name) for name in (row.config_id, row.baseline))
    return None if one is None or other is None else one - other
