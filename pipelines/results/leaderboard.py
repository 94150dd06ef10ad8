"""The rows of a leaderboard, and notes on them and on metrics.

Configurations with equal values, such as two values of `top_k` above every cutoff, share one row. Judges and embeddings
without a language model, and geometric means beside logarithmic ones, have a note.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.ranking.geometric import geometric_mean
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

Row = dict[str, Any]

_MOST_NAMED, _MOST_IN_SENTENCE = 3, 8
_DECISIVE = ("empty", "failed", "missing", "undefined", "tie_lowest", "tie_highest")


def deciding_metric(results: Results) -> str:
    """The metric that `decide_by:` names, else the first one."""
    try:
        name = results.experiment_file.value.get("decide_by")
        return results.metrics[0] if name is None else results.metric_named(name)
    except InputError:  # tables whose experiment is not YAML
        return results.metrics[0]


def configuration_named(results: Results, name: str) -> Row:
    """The row of the configuration that `--configuration` names."""
    row = next((row for row in results.configurations if row["name"] == name), None)
    if row is None:
        hint = did_you_mean(name, [row["name"] for row in results.configurations])
        raise InputError(f"--configuration {name!r}: no configuration has this name; {hint}")
    return row


def distinct(results: Results, first: str | None = None) -> list[Row]:
    """The leaderboard by the first metric, with one row for configurations with equal values.

    Configurations in different dialects keep separate rows, to be compared side by side.
    """
    groups = grouped(
        ((dialect, *_decisive(results, row["config_id"])), row)
        for row, dialect in zip(results.configurations, results.dialects, strict=True)
    )
    shared = {}
    for rows in groups.values():
        ids = [row["config_id"] for row in rows]
        shared[first if first in ids else ids[0]] = {
            "name": merged_name([row["name"] for row in rows]),
            "config_ids": ids,
        }
    return [row | shared[row["config_id"]] for row in results.leaderboard() if row["config_id"] in shared]


def _decisive(results: Results, config_id: str) -> Iterator[tuple[object, ...]]:
    """The values that equal configurations share, for each metric."""
    for metric in results.metrics:
        mean = results.means[config_id, ALL, metric]
        is_cut_short = (config_id, metric) in results.cut_short
        yield mean.equal_to or config_id, is_cut_short, *(getattr(mean, name) for name in _DECISIVE)


def best_mean(results: Results, name: str, metric: str) -> float | None:
    """The best mean of a metric over a slice; None if all configurations failed."""
    means = [results.means[row["config_id"], name, metric].mean for row in results.configurations]
    known, sign = (mean for mean in means if mean is not None), results.sign_of(metric)
    return max(known, key=lambda mean: sign * mean, default=None)


def distinct_means(results: Results, metric: str) -> dict[str, ConfigurationMetric]:
    """The means over all queries, by the name of each configuration of `distinct`."""
    return {row["name"]: results.means[row["config_id"], ALL, metric] for row in distinct(results)}


def without_value(results: Results, metric: str) -> str:
    """A sentence that names the configurations without a value of a metric; "" if all have one."""
    rows = distinct_means(results, metric)
    missing = [name for name, row in rows.items() if row.mean is None]
    verb = "has" if len(missing) == 1 else "have"
    return f"{len(missing)} of {len(rows)} {verb} no value: {list_names(missing)}." if missing else ""


def list_names(names: Sequence[str]) -> str:
    """Names in a sentence; only the first ones if there are many.

    >>> list_names([*"abcdefghij"])
    'a, b, c, d, e, f, g, h, 2 more'
    """
    more = [f"{len(names) - _MOST_IN_SENTENCE} more"] if len(names) > _MOST_IN_SENTENCE else []
    return ", ".join([*names[:_MOST_IN_SENTENCE], *more])


def merged_name(names: Sequence[str]) -> str:
    """One name for several cells of a grid.

    >>> merged_name(["bm25:top_k=10,b=0.4", "bm25:top_k=100,b=0.4"])
    'bm25:b=0.4 (top_k 10, 100)'
    >>> merged_name(["bm25", "yesterday"])
    'bm25 = yesterday'
    """
    if len(names) == 1:
        return names[0]
    stems, labels = zip(*(_split(name) for name in names), strict=True)
    keys = {tuple(label) for label in labels}
    if len(set(stems)) > 1 or len(keys) > 1:
        return _equal_names(names)
    values = {key: list(dict.fromkeys(label[key] for label in labels)) for key in labels[0]}
    differing = {key: chosen for key, chosen in values.items() if len(chosen) > 1}
    if len(differing) != 1:
        return _equal_names(names)
    common = ",".join(f"{key}={chosen[0]}" for key, chosen in values.items() if key not in differing)
    ((key, chosen),) = differing.items()
    return f"{stems[0]}{f':{common}' if common else ''} ({key} {', '.join(chosen)})"


def _split(name: str) -> tuple[str, dict[str, str]]:
    """The name under `configurations:`, and the grid's values."""
    stem, _, label = name.partition(":")
    pairs = [part.partition("=") for part in label.split(",")]
    return (stem, {key: value for key, _, value in pairs}) if all(sign for _, sign, _ in pairs) else (name, {})


def _equal_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return " = ".join(names[:_MOST_NAMED]) + more


_WHO = re.compile(r"[(,](judge|embeddings)=([\w.-]+)[,)]")  # in a damaged table, an invalid name has none
_MOST = 8


def doubt(row: ConfigurationMetric | Comparison) -> str:
    """The mark after an interval over few queries; "" after others."""
    return "‡" if row.is_unreliable else ""


def offline_words(metric: str) -> str:
    """Name of the offline model that judged or embedded for a metric; "" for others.

    >>> offline_words("Faithfulness(judge=lexical)")
    'judge=lexical: word overlap, no language model'
    >>> offline_words("nDCG(gain=exp)@10"), offline_words("AnswerSimilarity(embeddings=e5)")
    ('', '')
    """
    models = [
        (option, name, MODELS.load(name).offline) for option, name in _WHO.findall(metric) if name in MODELS.types
    ]
    return "; ".join(f"{option}={name}: {offline}" for option, name, offline in models if offline)


def geometric_words(results: Results, metric: str) -> str:
    """The first configurations' geometric means with their intervals; "" for metrics that are not geometric."""
    name, *_ = re.split("[(@]", metric)
    if name not in METRICS or not METRICS[name].geometric:
        return ""
    rows = distinct(results)
    means = [f"{row['name']} {_mean_text(results.means[row['config_id'], ALL, metric])}" for row in rows[:_MOST]]
    known = "; ".join(means) + ("; …" if len(rows) > _MOST else "")
    return f"{metric} is on a logarithmic scale, where 0.0602 more is twice the geometric mean: {known}"


def _mean_text(row: ConfigurationMetric) -> str:
    if row.mean is None:
        return row.absent
    interval = ""
    if row.ci_low is not None and row.ci_high is not None:
        interval = f" [{geometric_mean(row.ci_low):.3f}, {geometric_mean(row.ci_high):.3f}]"
    return f"{geometric_mean(row.mean):.4f}{interval}"


def flat_parameters(value: Any, name: str = "") -> dict[str, Any]:
    """Parameters by path; lists are values."""
    if not isinstance(value, dict):
        return {name: value}
    return {
        key: leaf
        for part, inner in value.items()
        for key, leaf in flat_parameters(inner, f"{name}.{part}" if name else part).items()
    }
