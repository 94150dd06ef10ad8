"""What a finished run says, read back from its tables."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.result_tables import InBigQuery, InFolder, RunTables
from pipelines.yaml_lines import Located, load
from transforms.clients.bigquery import results as bigquery
from transforms.clients.bigquery.names import DatasetName
from transforms.clients.bigquery.read_source import is_table
from transforms.records.errors import InputError
from transforms.records.slices import ALL, canonical

_MOST_NAMED = 20
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Results:
    """One finished run.

    Attributes:
        output: the folder of all tables, or `bigquery://project.dataset`.
        run_id: which run.
        stored: its tables, where they are not in files below `output`.
    """

    output: str
    run_id: str
    stored: RunTables | None = field(default=None, repr=False, compare=False)

    @cached_property
    def run(self) -> dict[str, Any]:
        """The row of `runs`, with its JSON columns as values."""
        row: dict[str, Any] = self.table("runs").to_pylist()[0]
        return row | {name: json.loads(row[name]) for name in ("dataset", "versions", "statistics")}

    @cached_property
    def configurations(self) -> list[dict[str, Any]]:
        """The rows of `configurations`, in the experiment's order."""
        rows = self.table("configurations").to_pylist()
        return sorted(rows, key=lambda row: row["position"])

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics, in the experiment's order."""
        first = self.configurations[0]["config_id"]
        return list(dict.fromkeys(metric for config_id, _, metric in self.means if config_id == first))

    @cached_property
    def slices(self) -> list[str]:
        """The slices, "all" first."""
        return list(dict.fromkeys(name for _, name, _ in self.means))

    @cached_property
    def means(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """The rows of `configuration_metrics` by config_id, slice and metric."""
        rows = self.table("configuration_metrics").to_pylist()
        return {(row["config_id"], row["slice"], row["metric"]): row for row in rows}

    @cached_property
    def given(self) -> Located:
        """The experiment that the run was made from, as it was given."""
        return load(self.run["experiment_yaml"], self.output)

    @cached_property
    def baseline(self) -> str:
        """The name of the configuration that the others were compared with."""
        names: list[str] = [row["name"] for row in self.configurations]
        named = self.given.value.get("baseline")
        return named if named in names else names[0]

    @cached_property
    def sliced_by(self) -> tuple[str, ...]:
        """The attributes, and crossings of them, that the slices are by."""
        return tuple(map(canonical, self.given.value.get("slices") or ()))

    def leaderboard(self) -> list[dict[str, Any]]:
        """The configurations, the best by the first metric first; failed ones last."""
        metric = self.metrics[0]

        def height(row: dict[str, Any]) -> tuple[float, int]:
            mean = self.means[row["config_id"], ALL, metric]["mean"]
            return (math.inf if mean is None else -mean, row["position"])

        return sorted(self.configurations, key=height)

    def failures(self) -> list[str]:
        """What failed, for people: of each kind how many queries, and what the service said to one of them."""
        rows = sorted(
            self.table("failures", ["kind", "attempts", "message"]).to_pylist(), key=lambda row: -row["attempts"]
        )
        kinds = Counter(row["kind"] for row in rows)
        said = {kind: next(row["message"] for row in rows if row["kind"] == kind) for kind in kinds}
        return [f"{count:,} queries have no answer ({kind}): {said[kind]}" for kind, count in kinds.most_common()]

    def over_failure_rate(self, most: float) -> str:
        """Which configurations have a larger share of failed queries than that, for people; "" when none has."""
        rows = [(row["name"], self.means[row["config_id"], ALL, self.metrics[0]]) for row in self.configurations]
        shares = {name: row["failed"] / max(1, row["queries"] + row["failed"]) for name, row in rows}
        over = [f"{name} ({share:.1%})" for name, share in shares.items() if share > most]
        return f"more than {most:.1%} of the queries failed (max_failure_rate): {', '.join(over)}" if over else ""

    def query_metrics(self, config_id: str) -> Iterator[dict[str, Any]]:
        """The queries of one configuration by id, byte by byte, each with its metrics as a dict.

        Where the reach of ties is known, `ties` is a dict of the lowest and the highest value of each metric.
        """
        table = self.table("query_metrics", ["config_id", "query_id", "status", "metrics"])
        rows = table.filter(pc.equal(table["config_id"], config_id)).sort_by("query_id")
        for row in rows.to_pylist():
            ties = {item["metric"]: (item["tie_lowest"], item["tie_highest"]) for item in row["metrics"]}
            known = {"ties": ties} if any(low is not None for low, _ in ties.values()) else {}
            yield row | {"metrics": {item["metric"]: item["value"] for item in row["metrics"]}} | known

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """One table of the run."""
        return self._tables.table(name, columns)

    def batches(self, name: str, columns: Sequence[str], most: int = _ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """Columns of a table that may have millions of rows.

        Args:
            name: of the table.
            columns: those that are wanted.
            most: rows at once.
        """
        return self._tables.batches(name, columns, most)

    @property
    def _tables(self) -> RunTables:
        return self.stored or InFolder(self.output, self.run_id)


def find_run(output: str, run_id: str | None = None) -> Results:
    """One finished run: the one of that id, by default the one that was started last.

    Args:
        output: the folder of all tables, or `bigquery://project.dataset`.
        run_id: which run; None for the latest.

    Raises:
        InputError: there is no finished run, or none of that id; the message lists those there are.
    """
    return _in_bigquery(output, run_id) if is_table(output) else _in_folder(output, run_id)


def _in_bigquery(output: str, run_id: str | None) -> Results:
    dataset = DatasetName.parse(output)
    place, found = bigquery.place_of(dataset), bigquery.finished_runs(dataset)
    if not found:
        raise InputError("holds no finished run", path=place)
    chosen = [run for run in found if run_id in (None, run.run_id)]
    if not chosen:
        raise _unknown(run_id, [run.run_id for run in found], place)
    return Results(place, chosen[-1].run_id, InBigQuery(chosen[-1]))


def _in_folder(output: str, run_id: str | None) -> Results:
    from transforms.clients import warehouse  # brings DuckDB, and not every command needs that

    found = warehouse.finished_runs(output)
    if run_id is not None and run_id not in found:
        raise _unknown(run_id, found, output)
    runs = [Results(output, each) for each in (found if run_id is None else [run_id])]
    return max(runs, key=lambda each: (each.run["started_at"], each.run_id))


def _unknown(run_id: str | None, found: Sequence[str], place: str) -> InputError:
    named = ", ".join(found[-_MOST_NAMED:])
    more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    return InputError(f"holds no finished run {run_id!r}; there are: {named}{more}", path=place)
