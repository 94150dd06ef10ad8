"""Print what a run says: as a table, as JSON or CSV, or line by line as trec_eval does."""

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.results import Results
from transforms.records import tables
from transforms.records.metrics import Metric, parse_metric
from transforms.records.scored import ALL
from transforms.records.trec_names import trec_name, trec_order

_MOST_SLICES = 12


def print_table(results: Results) -> None:
    """Print the leaderboard, and the first metric by slice."""
    # A table that is cut or folded to the width of a terminal is of no use, least of all in a log or a pipe.
    console = Console(width=10_000, highlight=False)
    metrics = results.metrics
    rows = results.leaderboard()
    table = _new_table(["configuration", *metrics, *_count_columns(results)])
    best = {metric: _best(results, ALL, metric) for metric in metrics}
    for row in rows:
        cells = [_cell(results.means[row["config_id"], ALL, metric], best[metric]) for metric in metrics]
        table.add_row(_plain(row["name"]), *cells, *_counts(results, row["config_id"]))
    console.print(table)
    _print_failures(results, console, rows)
    _print_ties(results, console, rows)
    for name in dict.fromkeys(each.partition("=")[0] for each in results.slices if each != ALL):
        _print_slices(results, console, name, metrics[0], rows)


def _print_failures(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """What every mean could be if the failed queries had been answered."""
    failed = [row for row in rows if any(mean["failed"] for mean in _rows_of(results, row["config_id"]))]
    if not failed:
        return
    table = _new_table(["had failed queries been answered", *results.metrics])
    for row in failed:
        bounds = [(mean["lowest"], mean["highest"]) for mean in _rows_of(results, row["config_id"])]
        cells = [f"{low:.4f} or more" if high is None else f"{low:.4f} to {high:.4f}" for low, high in bounds]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _print_ties(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """How far the order of tied documents moves every mean, where that was asked for."""
    known = [row for row in rows if any(mean["tie_lowest"] is not None for mean in _rows_of(results, row["config_id"]))]
    if not known:
        return
    table = _new_table(["if ties fell otherwise", *results.metrics])
    for row in known:
        bounds = [(mean["tie_lowest"], mean["tie_highest"]) for mean in _rows_of(results, row["config_id"])]
        cells = ["no matter" if low == high else f"{low:.4f} to {high:.4f}" for low, high in bounds]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _print_slices(results: Results, console: Console, name: str, metric: str, rows: list[dict[str, Any]]) -> None:
    slices = [each for each in results.slices if each.partition("=")[0] == name and each != ALL]
    if len(slices) > _MOST_SLICES:
        console.print(f"\n{name} has {len(slices):,} values; see the table configuration_metrics")
        return
    sizes = {each: results.means[rows[0]["config_id"], each, metric] for each in slices}
    heads = [f"{each.partition('=')[2]} ({sizes[each]['queries'] + sizes[each]['failed']})" for each in slices]
    table = _new_table([f"{metric} by {name}", *heads])
    best = {each: _best(results, each, metric) for each in slices}
    for row in rows:
        cells = [_cell(results.means[row["config_id"], each, metric], best[each]) for each in slices]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _new_table(columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(_plain(column), justify="left" if position == 0 else "right", no_wrap=True)
    return table


def _plain(name: str) -> Text:
    """A name without what would move the cursor or colour the terminal."""
    return Text("".join(letter if letter.isprintable() else " " for letter in name))


def _cell(row: dict[str, Any], best: float | None) -> Text:
    if row["mean"] is None:
        return Text("failed")
    reach = "" if row["ci_high"] is None else f" ±{row['ci_high'] - row['mean']:.3f}"
    text = f"{row['mean']:.4f}{reach}"
    return Text(text, style="bold" if row["mean"] == best else "")


def _best(results: Results, name: str, metric: str) -> float | None:
    means = [results.means[row["config_id"], name, metric]["mean"] for row in results.configurations]
    return max((mean for mean in means if mean is not None), default=None)


def _count_columns(results: Results) -> list[str]:
    first = [next(iter(_rows_of(results, row["config_id"]))) for row in results.configurations]
    return ["queries"] + [name for name in ("empty", "failed", "missing") if any(row[name] for row in first)]


def _counts(results: Results, config_id: str) -> list[str]:
    row = next(iter(_rows_of(results, config_id)))
    return [f"{row[name]:,}" for name in _count_columns(results)]


def _rows_of(results: Results, config_id: str) -> Iterator[dict[str, Any]]:
    return (results.means[config_id, ALL, metric] for metric in results.metrics)


def as_json(results: Results, *, per_query: bool = False, temporary: bool = False) -> str:
    """One JSON document: the run, the leaderboard with slices, comparisons, and queries when asked for.

    Args:
        results: the run.
        per_query: also every query.
        temporary: the tables will be gone, and their folder is not named.
    """
    names = {row["config_id"]: row["name"] for row in results.configurations}
    common = {field.name for field in tables.COMMON} | {"config_id", "slice", "metric"}
    numbers = [name for name in tables.CONFIGURATION_METRICS.names if name not in common]
    document: dict[str, Any] = {
        "run_id": results.run_id,
        "experiment": results.run["experiment"],
        "output": None if temporary else results.output,
        "dataset": results.run["dataset"],
        "dataset_fingerprint": results.run["dataset_fingerprint"],
        "failures": results.run["failures"],
        "warnings": results.run["warnings"],
        "leaderboard": [
            {
                "configuration": row["name"],
                "config_id": row["config_id"],
                "slices": {
                    name: {
                        metric: {each: results.means[row["config_id"], name, metric][each] for each in numbers}
                        for metric in results.metrics
                    }
                    for name in results.slices
                },
            }
            for row in results.leaderboard()
        ],
        "comparisons": [
            {
                "configuration": names[row["config_id"]],
                "baseline": names[row["baseline"]],
                **{name: value for name, value in row.items() if name not in _NOT_SHOWN},
            }
            for row in results.table("comparisons").to_pylist()
        ],
    }
    if per_query:
        document["per_query"] = [
            {"configuration": names[config_id], **{name: value for name, value in row.items() if name != "config_id"}}
            for config_id in names
            for row in results.query_metrics(config_id)
        ]
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


_NOT_SHOWN = ("run_id", "experiment", "started_at", "config_id", "baseline")


def as_csv(results: Results, *, per_query: bool = False) -> str:
    """Lines of configuration, query_id, metric and value; the query_id of a mean is "all"."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(["configuration", "query_id", "metric", "value"])
    for row in results.leaderboard():
        for query in results.query_metrics(row["config_id"]) if per_query else ():
            for metric, value in query["metrics"].items():
                writer.writerow([row["name"], query["query_id"], metric, repr(value)])
        for metric in results.metrics:
            mean = results.means[row["config_id"], ALL, metric]["mean"]
            writer.writerow([row["name"], ALL, metric, "" if mean is None else repr(mean)])
    return sink.getvalue()


def as_trec(results: Results, tags: dict[str, str], *, per_query: bool = False) -> Iterator[str]:
    """The lines that trec_eval prints, for the metrics that both have, one run after the other.

    Args:
        results: the run.
        tags: what trec_eval would print as `runid`, by configuration name.
        per_query: also every query's lines (trec_eval -q).
    """
    metrics = trec_order(map(parse_metric, results.metrics))
    for row in results.configurations:
        queries = [query for query in results.query_metrics(row["config_id"]) if query["metrics"]]
        for query in queries if per_query else ():
            for metric in metrics:
                yield _trec_line(metric, query["query_id"], query["metrics"][str(metric)])
        yield f"{'runid':<22}\t{ALL}\t{tags.get(row['name'], row['name'])}"
        yield f"{'num_q':<22}\t{ALL}\t{len(queries)}"
        for metric in metrics:
            mean = results.means[row["config_id"], ALL, str(metric)]["mean"]
            total = math.fsum(query["metrics"][str(metric)] for query in queries)
            yield _trec_line(metric, ALL, total if metric.definition.summed else mean)


def _trec_line(metric: Metric, query_id: str, value: float) -> str:
    written = f"{value:.0f}" if metric.definition.summed else f"{value:6.4f}"
    return f"{trec_name(metric) or metric!s:<22}\t{query_id}\t{written}"
