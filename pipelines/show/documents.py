"""A run's results for programs: JSON, CSV, and lines like those of trec_eval."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.pipelines.results.advice import advice
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import usage_of, usage_rows
from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.kernels.ranking.geometric import geometric_mean
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.columns import COMMON
from rankbeam.transforms.records.errors import json_text
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.trec_names import trec_names
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.scores.scored import Status
from rankbeam.transforms.records.slices import ALL


def as_json(results: Results, *, per_query: bool = False, temporary: bool = False) -> Iterator[str]:
    """Parts of one JSON document: the run, the leaderboard with slices, comparisons, and optionally queries."""
    names = {row["config_id"]: row["name"] for row in results.configurations}
    common = {field.name for field in COMMON} | {"config_id", "slice", "metric"}
    numbers = [name for name in tables.CONFIGURATION_METRICS.names if name not in common]
    usage = usage_rows(results)
    document: dict[str, Any] = {
        "run_id": results.run_id,
        "experiment": results.run["experiment"],
        "output": None if temporary else results.output,
        "dataset": results.run["dataset"],
        "dataset_fingerprint": results.run["dataset_fingerprint"],
        "state": results.run["state"],
        "failures": results.run["failures"],
        "warnings": results.run["warnings"],
        "leaderboard": [
            {
                "configuration": row["name"],
                "config_id": row["config_id"],
                "usage": usage_of(usage, row["config_id"]),
                "cut_short": [name for name in results.metrics if (row["config_id"], name) in results.cut_short],
                "slices": {
                    name: {
                        metric: _numbers(results.means[row["config_id"], name, metric], numbers)
                        for metric in results.metrics
                    }
                    for name in results.slices
                },
            }
            for row in results.leaderboard()
        ],
        "comparisons": [
            {
                "configuration": names[row.config_id],
                "baseline": names[row.baseline],
                **{name: getattr(row, name) for name in tables.COMPARISONS.names if name not in _NOT_SHOWN},
            }
            for row in results.comparisons
        ],
        "advice": [
            {
                "configuration": item.configuration,
                "rule": item.rule.name,
                "suggestion": item.rule.suggestion,
                "because": item.because,
                "metrics": {row.metric: [row.mean, row.ci_low, row.ci_high] for row in item.rows},
            }
            for item in advice(results)
        ],
    }
    text = _dumps(document)
    if not per_query:
        yield text
        return
    yield text.removesuffix("\n}") + ',\n  "per_query": ['
    separator = ""
    for config_id, name in names.items():
        for row in results.query_metrics(config_id):
            query = {"configuration": name, **{key: value for key, value in row.items() if key != "config_id"}}
            yield separator + "\n    " + _dumps(query).replace("\n", "\n    ")
            separator = ","
    yield "\n  ]\n}"


def _dumps(document: Mapping[str, Any]) -> str:
    return json_text(document, allow_nan=False)


def _numbers(row: ConfigurationMetric, names: Sequence[str]) -> dict[str, Any]:
    return {**{name: getattr(row, name) for name in names}, "few_queries": row.is_unreliable}


_SCORED = (Status.OK.label, Status.EMPTY.label)
_NOT_SHOWN = ("run_id", "experiment", "started_at", "config_id", "baseline")


def as_csv(results: Results, *, per_query: bool = False) -> Iterator[str]:
    """Lines of configuration, query_id, metric and value, for each configuration; the query_id of a mean is "all"."""
    yield "configuration,query_id,metric,value\n"
    for row in results.leaderboard():
        for query in results.query_metrics(row["config_id"]) if per_query else ():
            yield _csv_lines(row["name"], query["query_id"], query["metrics"])
        yield _csv_lines(
            row["name"], ALL, {name: results.means[row["config_id"], ALL, name].mean for name in results.metrics}
        )


def _csv_lines(name: str, query_id: str, values: Mapping[str, float | None]) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerows([name, query_id, metric, "" if value is None else repr(value)] for metric, value in values.items())
    return sink.getvalue()


def as_trec(results: Results, tags: Mapping[str, str], *, per_query: bool = False) -> Iterator[str]:
    """The lines that trec_eval prints, one run after the other; metrics unknown to it have their own names.

    The means in the tables are rounded once, after an exact sum. That is better, but their last printed digit may
    differ from trec_eval's, which adds one query after the other, in the order of their ids.
    """
    names = trec_names(known for known in parse_all(results.metrics) if isinstance(known, Metric))
    for row in results.configurations:
        totals, count = dict.fromkeys(names, 0.0), 0
        for query in results.query_metrics(row["config_id"]):
            if query["status"] not in _SCORED:
                continue
            count += 1
            for metric, name in names.items():
                value = query["metrics"][str(metric)]
                totals[metric] += value
                if per_query and not metric.definition.geometric:  # trec_eval prints only the mean
                    yield _trec_line(metric, name, query["query_id"], value)
        yield f"{'runid':<22}\t{ALL}\t{tags.get(row['name'], row['name'])}"
        yield f"{'num_q':<22}\t{ALL}\t{count}"
        for metric, name in names.items():
            yield _trec_line(metric, name, ALL, _mean_or_total(metric, totals[metric], max(1, count)))


def _mean_or_total(metric: Metric, total: float, queries: int) -> float:
    if metric.definition.summed:
        return total
    return geometric_mean(total / queries) if metric.definition.geometric else total / queries


def _trec_line(metric: Metric, name: str, query_id: str, value: float) -> str:
    written = f"{value:.0f}" if metric.definition.summed else f"{value:6.4f}"
    return f"{name:<22}\t{query_id}\t{written}"
