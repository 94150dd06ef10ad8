"""Slices, failures and coverage, and how the numbers were computed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.leaderboard import half_width
from rankbeam.pipelines.report.plots import Curve, LinePlot, Point, line_plot
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.leaderboard import best_mean
from rankbeam.transforms.judge.work import STAGE as JUDGE
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.scores.scored import ranking_metric
from rankbeam.transforms.records.slices import ALL, first_rank, grouping_of, ranked_by, value_of

MOST_VALUES, MOST_CONFIGURATIONS, MOST_FAILURES = 24, 20, 200
_FAILURE_COLUMNS = ("query_id", "stage", "kind", "attempts", "message")


def slice_tables(study: Study, metric: str) -> list[dict[str, Any]]:
    """The metric by the values of each attribute, or of crossed attributes, for the page."""
    names = [name for name in study.results.slices if name != ALL]
    return [
        _slice_table(study, metric, grouping, [name for name in names if grouping_of(name) == grouping])
        for grouping in dict.fromkeys(map(grouping_of, names))
    ]


def _slice_table(study: Study, metric: str, attribute: str, names: list[str]) -> dict[str, Any]:
    order = study.order(metric)
    shown = [
        config_id for place, config_id in enumerate(order) if place < MOST_CONFIGURATIONS or config_id == study.baseline
    ]
    sizes = {name: max(study.mean(config_id, metric, name).requested for config_id in order) for name in names}
    largest = set(sorted(names, key=lambda name: -sizes[name])[:MOST_VALUES])
    shown_names = [name for name in names if name in largest]
    means = {(config_id, name): study.mean(config_id, metric, name) for config_id in shown for name in shown_names}
    defined = [row.mean for row in means.values() if row.mean is not None]
    low, high = min(defined, default=0.0), max(defined, default=1.0)
    best = {name: best_mean(study.results, name, metric) for name in shown_names}
    return {
        "metric": metric,
        "attribute": attribute,
        "names": [(value_of(name), None if ranked_by(attribute) else sizes[name]) for name in shown_names],
        "rows": [
            (
                study.titles[config_id],
                [_slice_cell(means[config_id, name], low, high, best[name]) for name in shown_names],
            )
            for config_id in shown
        ],
        "left_out": (len(names) - len(shown_names), len(order) - len(shown)),
        "plot": along_ranks(study, metric, attribute, names),
    }


def _slice_cell(row: ConfigurationMetric, low: float, high: float, best: float | None) -> dict[str, Any]:
    mean = row.mean
    return {
        "mean": words.value(mean),
        "half_width": half_width(row),
        "level": None if mean is None else words.level(mean, low, high),
        "is_best": mean is not None and mean == best,
        "may_be_best": bool(row.may_be_best),
        "size": row.requested if ranked_by(row.slice) else None,  # if each configuration has its own queries
    }


def failures(study: Study) -> dict[str, Any]:
    """Failed calls, by kind and by message, for the page."""
    names = dict(zip(study.ids, study.names, strict=True))
    table = study.results.table("failures", ["config_id", *_FAILURE_COLUMNS])
    table = table.filter(table["query_id"].is_valid())  # documents that were not imported belong to no query
    columns = (table[name].to_pylist() for name in ("config_id", "stage", "kind"))
    by_kind = Counter(zip(*columns, strict=True))
    messages = Counter(zip(table["kind"].to_pylist(), table["message"].to_pylist(), strict=True))
    kinds = [kind for kind, _ in Counter(table["kind"].to_pylist()).most_common()]
    first = table.sort_by([("config_id", "ascending"), ("query_id", "ascending")]).slice(0, MOST_FAILURES).to_pylist()
    counts = [(row["name"], _counts(row, kinds, by_kind)) for row in study.results.configurations]
    return {
        "kinds": kinds,
        "counts": [(name, numbers) for name, numbers in counts if any(numbers)],
        "messages": [(kind, message, number) for (kind, message), number in messages.most_common(20)],
        "rows": [
            (names.get(row["config_id"], row["config_id"]), *(row[name] for name in _FAILURE_COLUMNS)) for row in first
        ],
        "total": table.num_rows,
    }


def _counts(configuration: dict[str, Any], kinds: list[str], by_kind: Counter[tuple[str, str, str]]) -> list[int]:
    """The number of failures of each kind: a configuration's own, and those of rankings that it fuses or reranks."""
    owner, parts = configuration["config_id"], [] if configuration["derived_from"] else configuration.get("parts") or []
    numbers = Counter[str]()
    for (caller, stage, kind), number in by_kind.items():
        if caller == owner or (caller in parts and stage != JUDGE):
            numbers[kind] += number
    return [numbers[kind] for kind in kinds]


def coverage(study: Study) -> dict[str, Any]:
    """Status of each configuration's queries, for every panel."""
    firsts = {study.mean(0, metric).panel: metric for metric in reversed(study.metrics)}
    panels = {panel: firsts[panel] for panel in dict.fromkeys(study.mean(0, metric).panel for metric in study.metrics)}
    means = [
        (name, panel, study.mean(position, metric))
        for position, name in enumerate(study.names)
        for panel, metric in panels.items()
    ]
    columns = ["queries", "empty", "failed", "missing"]
    columns += [name for name in ("undefined", "not_asked") if any(getattr(row, name) for _, _, row in means)]
    rows = [(name, panel, [int(getattr(row, column)) for column in columns]) for name, panel, row in means]
    first = rows[0][2]
    is_whole = first[0] > 0 and not any(first[1:]) and all(numbers == first for _, _, numbers in rows)
    scored = first[0] if is_whole else None  # number of queries, if every configuration has scored all of them
    return {"has_panels": len(panels) > 1, "columns": columns, "rows": rows, "scored": scored}


def dataset_facts(study: Study) -> list[tuple[str, str]]:
    dataset: dict[str, Any] = study.results.run["dataset"]
    asks_all = any(map(study.results.is_judged, study.metrics))
    labels = {
        "queries": "queries in the file",
        "judged": f"judged queries{'' if asks_all else ' (these are asked and scored)'}",
        "judgements": "judgements",
        "unjudged": f"queries without judgements ({'in judged metrics only' if asks_all else 'not asked'})",
        "unknown": "judged ids that are not among the queries (left out)",
        "repeated": "judgements given twice",
        "without_text": "judged queries without text",
    }
    if asks_all and not dataset.get("judged"):
        del labels["unjudged"]  # there are no judgements at all
    return [(label, f"{dataset[name]:,}") for name, label in labels.items() if dataset.get(name)]


def method(study: Study) -> list[str]:
    statistics: dict[str, Any] = study.results.run["statistics"]
    replicates, seed = statistics.get("replicates", 0), statistics.get("seed", 0)
    intervals = (
        f"Intervals hold with {study.confidence} confidence, "
        "treating the queries as a sample of all queries that could be asked. "
    )
    means = (
        "The interval of a mean is Student's, of the values and one more at each end of the metric's range, because "
        "few queries cannot rule out rare values that none of them shows; if all values are 0 or 1, it is the exact "
        "interval of a proportion (Clopper and Pearson). "
    )
    if replicates:
        bootstrap = (
            f"Intervals of differences, and intervals for all configurations at once, rest on {replicates:,} "
            "bootstrap replicates; a query's weight in a replicate is a hash of its id, the replicate's number and the "
            f"seed ({seed}), so that the same input gives the same numbers everywhere."
        )
    else:
        bootstrap = "Intervals of differences are Student's, because the run has no bootstrap replicates."
    rare = " If fewer than ten queries differ, they allow for differences that no query shows."
    pairs = "every pair of configurations" if statistics.get("all_pairs") else "every configuration and the baseline"
    tests = (
        f"Comparisons are paired, query by query, between {pairs}; p-values come from a randomisation test, and are "
        "adjusted over all comparisons of a metric if a column says so (Holm for the risk of any false "
        "discovery, Benjamini and Hochberg for their share)."
    )
    small = f"Slices with fewer than {statistics.get('min_slice', 0)} queries have means only."
    return [intervals + means + bootstrap + rare, tests, small, *_clusters(study)]


def _clusters(study: Study) -> list[str]:
    """The rules for clusters of queries; empty without clusters."""
    cluster = study.results.run["statistics"].get("cluster")
    counts = [row.clusters for row in study.results.means.values() if row.slice == ALL and row.clusters is not None]
    if cluster is None or not counts:
        return []
    sentence = (
        f"Queries with the same {cluster} are one cluster: standard errors are computed over clusters, the bootstrap "
        "draws clusters, and the randomisation test flips the signs of clusters. The effective number of clusters "
        f"({min(counts):.3g} here) replaces the number of queries. Values of 0 and 1 have no exact interval."
    )
    return [sentence]


def along_ranks(study: Study, metric: str, attribute: str, names: Sequence[str]) -> LinePlot | None:
    """A curve for each configuration over slices by rank; None for other slices, and for the metric of the rank."""
    if ranked_by(attribute) is None or ranking_metric(attribute, study.metrics) == metric:
        return None
    curves = [
        Curve(study.titles[place], list(_points(study, place, metric, names)))
        for place in study.order(study.metrics[0])
    ]
    return line_plot(f"{metric} by {attribute}, where there are enough queries for an interval", "first rank", curves)


def _points(study: Study, configuration: int, metric: str, names: Sequence[str]) -> Iterator[Point]:
    for name in names:
        row, label = study.mean(configuration, metric, name), value_of(name)
        rank = first_rank(label)
        if rank is not None and row.mean is not None and row.interval is not None:
            yield rank, row.mean, *row.interval, f"rank {label.lstrip('0')}, n = {row.requested:,}"
