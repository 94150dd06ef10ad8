"""The results of a finished run, read from its tables."""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.config.yaml_lines import YamlDocument, load
from rankbeam.pipelines.results.tables import InBigQuery, InFolder, RunTables
from rankbeam.transforms.judge.metrics import NOT_INSTALLED, JudgedMetric, named_in, parse_defined, same_spelling
from rankbeam.transforms.judge.quality import mixed_versions
from rankbeam.transforms.records import answer_tables
from rankbeam.transforms.records.calls.steps import OVER_BUDGET
from rankbeam.transforms.records.errors import InputError, did_you_mean, pluralize
from rankbeam.transforms.records.judging.criteria import criteria_in, full_metric_name
from rankbeam.transforms.records.metrics.dialects import RANKBEAM
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.panels import RETRIEVAL, sign_of
from rankbeam.transforms.records.race import ALPHA
from rankbeam.transforms.records.scores.aggregates import UNMET
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL, canonical, in_order

_FAILED = re.compile(r"[\d,]+ (quer(y has|ies have) no answer|judged values? (is|are) missing) \(")
_ROWS_AT_ONCE, _OBJECTS_AT_ONCE = 1 << 16, 1 << 9
_ROWS_AS_OBJECTS = 1 << 12


@dataclass(frozen=True)
class Results:
    """One finished run."""

    output: str
    run_id: str
    stored: RunTables | None = field(default=None, repr=False, compare=False)
    is_overall: bool = field(default=False, repr=False, compare=False)  # True to read no means of other slices

    @cached_property
    def run(self) -> dict[str, Any]:
        """The row of `runs`, with its JSON columns as values."""
        row = self._row | {name: json.loads(self._row[name]) for name in ("dataset", "versions", "statistics")}
        if isinstance(self.stored, InFolder) and (unread := self.stored.partial_reads()):
            sample = f"large tables are read only for a random sample of the queries: {'; '.join(unread)}"
            row["warnings"] = [*row["warnings"], sample]
        return row

    @property
    def experiment(self) -> str:
        return self.stored.run.experiment if isinstance(self.stored, InBigQuery) else str(self._row["experiment"])

    @property
    def execution(self) -> tuple[str, datetime]:
        """The run's id and start time, which identify it wherever its tables are."""
        started_at = self.stored.run.started_at if isinstance(self.stored, InBigQuery) else self._row["started_at"]
        return self.run_id, started_at

    @property
    def named(self) -> str:
        return f"run {self.run_id} of {self.experiment}, started {self.execution[1]:%Y-%m-%d %H:%M:%S} UTC"

    def identity(self) -> dict[str, str]:
        """The run as JSON values, for programs."""
        return {
            "output": self.output,
            "run_id": self.run_id,
            "experiment": self.experiment,
            "started_at": self.execution[1].isoformat(),
            "dataset_fingerprint": self.run["dataset_fingerprint"],
        }

    @cached_property
    def configurations(self) -> list[dict[str, Any]]:
        """The rows of `configurations`, in the experiment's order."""
        return sorted(self.rows("configurations"), key=lambda row: row["position"])

    @cached_property
    def dialects(self) -> list[str]:
        """The dialect of each configuration, in the experiment's order."""
        return [
            row.get("dialect") or json.loads(row["parameters"]).get("dialect", RANKBEAM.name)  # older runs lack it
            for row in self.configurations
        ]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics, in the experiment's order."""
        first = self.configurations[0]["config_id"]
        return list(dict.fromkeys(metric for config_id, _, metric in self.means if config_id == first))

    @cached_property
    def slices(self) -> list[str]:
        """The slices, "all" first."""
        return in_order(dict.fromkeys(name for _, name, _ in self.means))

    @cached_property
    def means(self) -> dict[tuple[str, str, str], ConfigurationMetric]:
        """The rows of `configuration_metrics` by config_id, slice and metric."""
        table = self.table("configuration_metrics")
        if self.is_overall:
            table = table.filter(pc.equal(table["slice"], ALL))
        rows = map(ConfigurationMetric.of, table.to_pylist())
        return {(row.config_id, row.slice, row.metric): row for row in rows}

    def overall(self) -> "Results":
        """A copy of the run that reads no means of slices; its rows are freed with it."""
        return replace(self, is_overall=True)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        batches = self.table("comparisons").to_batches(_ROWS_AS_OBJECTS)  # rows take ten times the memory of a table
        return [Comparison.of(row) for batch in batches for row in batch.to_pylist()]

    @property
    def queries_in_words(self) -> str:
        """The number of queries, and of the judged ones, which are all that metrics of rankings cover."""
        means = (row for row in self.means.values() if row.slice == ALL)
        count = max(row.requested + row.missing + row.not_asked for row in means)
        judged = self.run["dataset"].get("judged", 0)
        if judged >= count:
            return pluralize(count, "judged query", "judged queries")
        return pluralize(count, "query", "queries") + (f", {judged:,} of them judged" if judged else "")

    def metric_named(self, name: str) -> str:
        """The run's metric with a name, which may leave out the judge."""
        metric = self.metric_spelled(name) or named_in(name, parse_defined(self.metrics))
        if metric is None:
            raise InputError(f"the run has no metric {name}; {did_you_mean(name, self.metrics)}")
        return str(metric)

    def metric_spelled(self, name: str) -> str | None:
        """The one metric of the run with this spelling, but for its judge; it need not be defined here."""
        name = full_metric_name(name, criteria_in(self.metrics))
        if name in self.metrics:
            return name
        same = same_spelling(name, self.metrics)
        return same[0] if len(same) == 1 else None

    def defined_metrics(self, names: Sequence[str]) -> list[Metric | JudgedMetric]:
        """Metrics of the run with their definitions; a metric that no installed package defines is refused."""
        metrics = parse_defined(names)
        if missing := [name for name in names if name not in map(str, metrics)]:
            raise InputError(NOT_INSTALLED.format(", ".join(missing)), path=self.output)
        return metrics

    def is_judged(self, metric: str) -> bool:
        """Return whether a metric has a status of its own."""
        return self.means[self.configurations[0]["config_id"], ALL, metric].panel != RETRIEVAL

    def lower_is_better(self, metric: str) -> bool:
        """Return whether lower values of a metric are better, as when the run was made."""
        return self.means[self.configurations[0]["config_id"], ALL, metric].lower_is_better

    def sign_of(self, metric: str) -> float:
        """-1 for a metric of which lower values are better, else 1."""
        return sign_of(lower_is_better=self.lower_is_better(metric))

    def failure_rate(self, config_id: str, name: str = ALL) -> float | None:
        """The share of a configuration's queries that failed, by the metric with the most failures."""
        rows = (self.means.get((config_id, name, metric)) for metric in self.metrics)
        return max((row.failure_rate for row in rows if row is not None), default=None)

    @cached_property
    def experiment_file(self) -> YamlDocument:
        """The run's experiment file, as it was written."""
        return load(self.run["experiment_yaml"], self.output)

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """The labels of parameters' values: by the parameter's name without its component, then by the value as JSON.

        Labels are only decoration: a run whose experiment cannot be read has none.
        """
        try:
            grid = self.experiment_file.value.get("grid") or {}
        except (InputError, AttributeError):
            return {}
        return {
            name.rpartition(".")[2]: {json.dumps(value): str(label) for label, value in values.items()}
            for name, values in grid.items()
            if isinstance(values, dict)
        }

    @cached_property
    def baseline(self) -> str:
        """The name of the configuration that the others were compared with."""
        names: list[str] = [row["name"] for row in self.configurations]
        named = self.experiment_file.value.get("baseline")
        return named if named in names else names[0]

    @cached_property
    def sliced_by(self) -> tuple[str, ...]:
        """The attributes, and crossed attributes, by which there are slices."""
        return tuple(map(canonical, self.experiment_file.value.get("slices") or ()))

    @cached_property
    def cut_short(self) -> frozenset[tuple[str, str]]:
        """config_id and metric of means whose cutoff exceeds `top_k`: R@100 of ten documents is R@10."""
        top_k = {row["config_id"]: json.loads(row["parameters"]).get("top_k") for row in self.configurations}
        cutoffs = {name: name.rpartition("@")[2] for name in self.metrics}
        return frozenset(
            (config_id, name)
            for config_id, most in top_k.items()
            for name, cutoff in cutoffs.items()
            if most is not None and cutoff.isdecimal() and int(cutoff) > most
        )

    @cached_property
    def judge_quality(self) -> list[dict[str, Any]]:
        """The rows of `judge_quality`, sorted by step; empty if nothing was judged."""
        return sorted(self.rows("judge_quality"), key=lambda row: row["step"])

    @property
    def judge_settings(self) -> Mapping[str, Any]:
        """The experiment's `judge:`; empty if it is only a list of services."""
        settings = self.experiment_file.value["judge"]
        return settings if isinstance(settings, Mapping) else {}

    def mixed_versions(self) -> str:
        """A warning that several versions of the judge judged; "" if only one did, or the experiment allows several."""
        mixture = mixed_versions(self.judge_quality)
        is_strict = bool(mixture) and self.judge_settings.get("strict_version", False)
        return f"{mixture} (judge.strict_version)" if is_strict else ""

    def confidence_of_best(self, number: int) -> str:
        """The confidence that the best configuration is among this number, also after a race; for example 95%."""
        wrong = 1.0 - self.run["statistics"]["confidence"]
        if any(row.get("dropped_at") is not None for row in self.configurations):
            lost = float(self.experiment_file.value["race"].get("alpha", ALPHA))
            wrong = lost if number == 1 else lost + wrong
        return f"{100.0 * (1.0 - wrong):g}%"

    def leaderboard(self, metric: str | None = None) -> list[dict[str, Any]]:
        """The configurations, best first by a metric, by default the first one; failed ones last."""
        metric = metric or self.metrics[0]
        sign = self.sign_of(metric)

        def height(row: dict[str, Any]) -> tuple[float, int]:
            mean = self.means[row["config_id"], ALL, metric].mean
            return (math.inf if mean is None else -sign * mean, row["position"])

        return sorted(self.configurations, key=height)

    def over_failure_rate(self, most: float, unanswered: Mapping[str, float] | None = None) -> str:
        """A text about configurations with a larger share of failed queries or answers; "" if there are none."""
        lacking = self._unanswered_shares if unanswered is None else unanswered
        queries = {row["name"]: self.failure_rate(row["config_id"]) or 0.0 for row in self.configurations}
        answers = {row["name"]: lacking.get(row["config_id"], 0.0) for row in self.configurations}
        over = {
            "queries": [f"{name} ({share:.1%})" for name, share in queries.items() if share > most],
            "answers": [f"{name} ({share:.1%})" for name, share in answers.items() if share > most >= queries[name]],
        }
        return "; ".join(
            f"more than {most:.1%} of the {what} failed (max_failure_rate): {', '.join(names)}"
            for what, names in over.items()
            if names
        )

    @cached_property
    def _unanswered_shares(self) -> dict[str, float]:
        """The share of answers that failed, by config_id."""
        try:
            return answer_tables.unanswered_shares(self.batches("answers", ["config_id", "status"]))
        except InputError:  # an earlier version wrote the run
            return {}

    def most_failures(self) -> str:
        """The run's warning about the most frequent failure; "" if nothing failed."""
        return next((warning for warning in self.run["warnings"] if _FAILED.match(warning)), "")

    def unmet(self) -> str:
        """A warning about services without any judged result; "" if there are none."""
        names = [warning.partition(": no document")[0] for warning in self.run["warnings"] if warning.endswith(UNMET)]
        return f"none of the retrieved documents is judged: {', '.join(names)}" if names else ""

    def over_budget(self) -> str:
        """A warning that calls were not made because of their cost; "" if all were made."""
        return "; ".join(warning for warning in self.run["warnings"] if warning.startswith(OVER_BUDGET))

    def query_metrics(self, config_id: str) -> Iterator[dict[str, Any]]:
        """One configuration's queries, sorted by the bytes of their ids, each with its metrics as a dict.

        If metrics are judged, `statuses` has each metric's status, and `reasons` the reason for a missing value. If
        bounds under ties are known, `ties` has each metric's lowest and highest value.
        """
        table = self._query_metrics
        own = pc.indices_nonzero(pc.equal(table["config_id"], config_id))
        order = own.take(pc.sort_indices(table["query_id"].take(own)))
        for first in range(0, len(order), _ROWS_AS_OBJECTS):
            yield from map(_with_metrics, table.take(order.slice(first, _ROWS_AS_OBJECTS)).to_pylist())

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        return self._tables.table(name, columns)

    def stream(
        self,
        name: str,
        columns: Sequence[str],
        keys: Collection[str | None] | pa.Array | None = None,
        by: str = "query_id",
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table, read in batches; with `keys`, only rows whose column `by` has one of them."""
        if keys is not None and not isinstance(keys, pa.Array):
            keys = pa.array([key for key in keys if key], pa.string())
        for batch in self.batches(name, columns):
            rows = batch if keys is None else batch.filter(pc.is_in(batch[by], value_set=keys))
            for start in range(0, rows.num_rows, _OBJECTS_AT_ONCE):
                yield from rows.slice(start, _OBJECTS_AT_ONCE).to_pylist()

    def rows(self, name: str, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The rows of a table; empty if the run is from an earlier version without this table."""
        rows: list[dict[str, Any]] = self.table(name, columns).to_pylist()
        return rows

    def batches(self, name: str, columns: Sequence[str], most: int = _ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """Columns of a table that may have millions of rows."""
        return self._tables.batches(name, columns, most)

    @cached_property
    def _query_metrics(self) -> pa.Table:
        return self.table("query_metrics", ["config_id", "query_id", "status", "metrics"]).combine_chunks()  # for take

    @cached_property
    def _row(self) -> dict[str, Any]:
        return self.rows("runs")[0]

    @property
    def _tables(self) -> RunTables:
        return self.stored or InFolder(self.output, self.run_id)


def _with_metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    ties = {item["metric"]: (item["tie_lowest"], item["tie_highest"]) for item in row["metrics"]}
    known = {"ties": ties} if any(low is not None for low, _ in ties.values()) else {}
    for name, column in (("statuses", "status"), ("reasons", "reason")):
        values = {item["metric"]: item[column] for item in row["metrics"] if item.get(column) is not None}
        known |= {name: values} if values else {}
    return {**row, "metrics": {item["metric"]: item["value"] for item in row["metrics"]}, **known}
