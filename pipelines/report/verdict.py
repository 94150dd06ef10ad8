"""The decision in one sentence: the better configuration, its gain and cost, and whether to ship it."""

from collections.abc import Iterator

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.leaderboard import deciding_metric
from rankbeam.pipelines.results.usage import cost_of_1000_queries, lacks_ledger_costs, queries_of, usage_rows
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import FEW_QUERIES, Comparison, Verdict


def verdict(study: Study) -> str:
    """The decision by the metric that the experiment names under `decide_by:`, else by its first metric."""
    metric = deciding_metric(study.results)
    if reason := _undecided_reason(study, metric):
        return f"No decision is possible yet: {reason}."
    one, other, row = _best_pair(study, metric)
    parts = [_difference(study, metric, one, other, row), *_cost(study, one, other), *_gates(study, one, row)]
    return f"{'; '.join(parts)}."


def states_difference(study: Study) -> bool:
    """Return whether the decision states the difference in the first metric, so that it need not be repeated."""
    metric = deciding_metric(study.results)
    return metric == study.metrics[0] and not _undecided_reason(study, metric)


def _undecided_reason(study: Study, metric: str) -> str:
    """The reason why configurations cannot be compared by a metric; "" if they can."""
    order = study.order(metric)
    if len(study.names) < 2:
        return f"nothing is compared with {study.names[0]}"
    if len(order) < 2:
        return f"all {len(study.names)} configurations have equal values for every query"
    if missing := [study.titles[name] for name in order if study.mean(name, metric).mean is None]:
        return f"{metric} has no value for {', '.join(missing)}"
    *_, row = _best_pair(study, metric)
    if row is None or row.difference is None:
        return f"the best configurations by {metric} were not compared query by query"
    if row.is_unreliable:
        return f"{metric} has fewer than {FEW_QUERIES} queries or clusters to compare"
    return ""


def _best_pair(study: Study, metric: str) -> tuple[int, int, Comparison | None]:
    """The best configuration, the baseline or else the next best one, and their comparison."""
    order = study.order(metric)
    best = order[0]
    other = study.baseline if best != study.baseline and study.baseline in study.titles else order[1]
    return best, other, study.compared(best, other, metric)[0]


def _difference(study: Study, metric: str, one: int, other: int, row: Comparison | None) -> str:
    assert row is not None  # noqa: S101  checked by _undecided
    best, second = study.titles[one], study.titles.get(other, study.names[other])
    if row.verdict(study.level) is Verdict.EQUAL:
        return f"{best} and {second} have the same {metric} at every query (decide_by: METRIC decides by another one)"
    sign = 1 if row.config_id == study.ids[one] else -1
    ends = sorted(sign * end for end in (row.ci_low, row.ci_high) if end is not None)
    holm = ", Holm" if row.p_adjusted is not None else ""
    interval = f" ({words.interval(*ends, sign=True)}{holm})" if len(ends) == 2 else ""
    size = f"{metric} {words.signed(sign * (row.difference or 0.0))}{interval}"
    if study.is_significant(row):
        return f"{best} is better than {second}: {size}"
    is_known = row.detectable is not None and row.shows_spread
    limit = f"; these queries can detect a difference of {words.value(row.detectable)}" if is_known else ""
    return f"No significant difference between {best} and {second}: {size}{limit}"


def _cost(study: Study, one: int, other: int) -> Iterator[str]:
    """The relative cost of a configuration, if both have a price."""
    rows, queries = usage_rows(study.results), queries_of(study.results)
    if lacks_ledger_costs(rows):
        return
    costs = [cost_of_1000_queries(rows, queries, study.ids[name]) for name in (one, other)]
    if costs[0] and costs[1]:
        ratio = costs[0] / costs[1] - 1.0
        yield "equal cost" if round(ratio, 3) == 0 else f"cost {words.signed(100 * ratio, 0)}%"


def _gates(study: Study, one: int, row: Comparison | None) -> Iterator[str]:
    """Advice to ship or not, if there are gates."""
    missed = [gate for gate in study.gates if not gate["met"]]
    is_baseline = one == study.baseline
    if missed:
        advice = "keep the baseline" if is_baseline else "do not ship yet"
        names = ", ".join(dict.fromkeys(f"{gate['metric'] or gate['value']} {gate['value']}" for gate in missed))
        count = pluralize(len(study.gates), "gate check")
        yield f"{advice}: {len(missed):,} of {count} {'is' if len(missed) == 1 else 'are'} missed ({names})"
    elif study.results.run["state"] != "done":
        yield "do not ship yet: the run missed a limit of failures or cost"
    elif study.gates and is_baseline:
        yield "keep the baseline; every gate is met"
    elif study.gates and row is not None and study.is_significant(row):
        yield f"ship {study.titles[one]}: every gate is met"
    elif study.gates:
        yield "every gate is met"
