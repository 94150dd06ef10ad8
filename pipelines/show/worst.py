"""The queries on which a configuration has the worst values, with its answers."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.results.leaderboard import configuration_named, distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import WHOLE, Screen, printable
from rankbeam.transforms.records.errors import InputError, pluralize, shortened

_LONGEST_TEXT = 400
_ANSWER_COLUMNS = ("config_id", "query_id", "sample", "status", "answer", "reference", "message")


@dataclass(frozen=True)
class Worst:
    """The queries with the worst values."""

    configuration: str
    metric: str
    rows: Sequence[dict[str, Any]]  # id, text, value, answer, reference and message of each query, worst value first
    lower_is_better: bool
    unscored: int  # queries without a value of the metric


def worst_of(results: Results, configuration: str | None, metric: str | None, count: int) -> Worst:
    """The queries on which a configuration, by default the best one, has the worst values of a metric.

    The default metric is the first judged one, or the first one if none is judged.
    """
    row = _configuration(results, configuration)
    default = next(filter(results.is_judged, results.metrics), results.metrics[0])
    name = default if metric is None else results.metric_named(metric)
    unscored = 0

    def scored() -> Iterator[tuple[float, str, str | None]]:
        nonlocal unscored
        for query_id, text, value in _values(results, row["config_id"], name):
            unscored += value is None
            if value is not None:
                yield value, query_id, text

    sign = results.sign_of(name)
    worst = heapq.nsmallest(count, scored(), key=lambda entry: (sign * entry[0], entry[1]))
    answers = _answers(results, row["config_id"], [query_id for _, query_id, _ in worst])
    rows = [
        {"query_id": query_id, "query": text, "value": value, **answers.get(query_id, {})}
        for value, query_id, text in worst
    ]
    return Worst(row["name"], name, rows, results.lower_is_better(name), unscored)


def as_text(worst: Worst, screen: Screen = WHOLE) -> str:
    head = f"{worst.configuration}: {'highest' if worst.lower_is_better else 'lowest'} {worst.metric}"
    head += f"; {pluralize(worst.unscored, 'more query has', 'more queries have')} no value" if worst.unscored else ""
    return "\n\n".join([screen.prose(head), *(_paragraph(row, screen) for row in worst.rows)])


def _paragraph(row: dict[str, Any], screen: Screen) -> str:
    parts = (("answer", row.get("answer") or row.get("message")), ("reference", row.get("reference")))
    lines = [f"{row['value']:.4f}  {': '.join(filter(None, [row['query_id'], _short(row['query'] or '')]))}"]
    lines += [f"  {name:<9}  {_short(text)}" for name, text in parts if text]
    return "\n".join(screen.prose(line, indent=" " * 13) for line in lines)


def _short(text: str) -> str:
    return shortened(printable(text), _LONGEST_TEXT)


def _configuration(results: Results, name: str | None) -> dict[str, Any]:
    match = next((row for row in distinct(results) if name in (None, row["name"])), None)
    return match or configuration_named(results, str(name))


def _values(results: Results, config_id: str, metric: str) -> Iterator[tuple[str, str | None, float | None]]:
    columns = ("config_id", "query_id", "text", "metrics")
    for row in results.stream("query_metrics", columns, [config_id], "config_id"):
        values = (entry["value"] for entry in row["metrics"] if entry["metric"] == metric)
        yield row["query_id"], row["text"], next(values, None)


def _answers(results: Results, config_id: str, query_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Answer, reference answer and message by query; empty for a run without answers."""
    try:
        return {
            row["query_id"]: {key: row[key] for key in ("answer", "reference", "status", "message")}
            for row in results.stream("answers", _ANSWER_COLUMNS, query_ids)
            if row["config_id"] == config_id and row["sample"] == 0
        }
    except InputError:
        return {}  # a release without this table wrote the run
