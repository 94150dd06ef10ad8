"""What a finished run says, read back from its tables."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.yaml_lines import Located, load
from transforms.clients import files
from transforms.clients.formats import parquet
from transforms.records.errors import InputError
from transforms.records.slices import ALL, canonical
from transforms.write import run_folder

_MOST_NAMED = 20


@dataclass(frozen=True)
class Results:
    """One finished run.

    Attributes:
        output: the folder of all tables.
        run_id: which run.
    """

    output: str
    run_id: str

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

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """One table of the run."""
        folder = run_folder(self.output, name, self.run_id)
        parts = [parquet.open_file(path).read(columns) for path in files.expand(folder)]
        return pa.concat_tables(parts)


def find_run(output: str, run_id: str | None = None) -> Results:
    """One finished run of a folder: the one of that id, by default the one that was started last.

    Args:
        output: the folder of all tables.
        run_id: which run; None for the latest.

    Raises:
        InputError: there is no finished run, or none of that id; the message lists those there are.
    """
    from transforms.clients import warehouse  # brings DuckDB, and not every command needs that

    if output.startswith("bigquery://"):
        raise InputError("runs in BigQuery cannot be read yet; name the folder of their results", path=output)
    found = warehouse.finished_runs(output)
    if run_id is not None and run_id not in found:
        named = ", ".join(found[-_MOST_NAMED:])
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        raise InputError(f"holds no finished run {run_id!r}; there are: {named}{more}", path=output)
    runs = [Results(output, each) for each in (found if run_id is None else [run_id])]
    return max(runs, key=lambda each: (each.run["started_at"], each.run_id))
