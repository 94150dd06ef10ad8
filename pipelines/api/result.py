"""The result of a run in Python: Arrow tables, and a leaderboard for notebooks."""

import os
import shutil
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.gates import checks as gate_checks
from rankbeam.pipelines.gates.gates import located_gates, read_gates
from rankbeam.pipelines.gates.show import as_text, summary
from rankbeam.pipelines.results.advice import advice
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import UNRELIABLE, has_doubt, overall
from rankbeam.transforms.records.columns import COMMON
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.tables import TABLES

Gates = Sequence[Mapping[str, Any]] | str | os.PathLike[str]


class Result:
    """A finished run. Its tables are Arrow tables, whose `to_pandas()` returns DataFrames if pandas is installed.

    The tables are in the folder `output`. By default that is a temporary folder, which is removed with this object;
    tables that were already read remain valid.

    Attributes:
        output: folder of all tables, which `rankbeam compare`, `gate` and `report` read.
        run_id: ID of the run.
        experiment: name of the experiment.
    """

    def __init__(self, results: Results, temporary: str | None = None) -> None:
        """Take over the folder of a run.

        Args:
            results: the run's results.
            temporary: folder to remove with this object, if any.
        """
        self._results = results
        self.output, self.run_id, self.experiment = results.output, results.run_id, results.experiment
        if temporary is not None:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)

    @property
    def results(self) -> Results:
        """The run's rows as typed objects, as rankbeam's own commands read them.

        Raises:
            InputError: a later run with the same id has replaced the rows.
        """
        if Results(self.output, self.run_id).execution != self._results.execution:
            problem = f"a later run has replaced the run {self.run_id}; give every run its own run_id, or none"
            raise InputError(problem, path=self.output)
        return self._results

    @property
    def state(self) -> str:
        """`done`, or `missed` if the run misses a gate, `max_failure_rate` or `max_cost`."""
        return str(self._results.run["state"])

    @property
    def warnings(self) -> list[str]:
        """Warnings, as the command line prints them."""
        return list(self._results.run["warnings"])

    def leaderboard(self) -> pa.Table:
        """One row for each configuration, the best by the first metric first.

        Columns: `configuration`; for every metric its mean, `METRIC low` and `METRIC high`, the ends of the interval;
        the numbers of `queries` scored by the first metric and of `failed` ones; `few_queries`: an interval
        is unreliable because it rests on fewer than 20 queries.
        """
        results = self.results
        rows = results.leaderboard()
        means = {row["config_id"]: overall(results, row["config_id"]) for row in rows}
        columns: dict[str, pa.Array] = {"configuration": pa.array([row["name"] for row in rows], pa.string())}
        for position, metric in enumerate(results.metrics):
            for suffix, field in (("", "mean"), (" low", "ci_low"), (" high", "ci_high")):
                values = [getattr(means[row["config_id"]][position], field) for row in rows]
                columns[f"{metric}{suffix}"] = pa.array(values, pa.float64())
        for name in ("queries", "failed"):
            columns[name] = pa.array([getattr(means[row["config_id"]][0], name) for row in rows], pa.int64())
        few = [any(mean.is_unreliable for mean in means[row["config_id"]]) for row in rows]
        return pa.table(columns | {"few_queries": pa.array(few, pa.bool_())})

    def per_query(self) -> pa.Table:
        """One row for each configuration, query and metric.

        Columns: `configuration`, `query_id`, `metric`, `value`, `status`, `reason`, and `text` of the query. A query
        whose call failed has rows, too, with null values.
        """
        results = self.results
        rows: dict[str, list[pa.Table]] = {row["config_id"]: [] for row in results.configurations}
        for batch in results.batches("query_metrics", ["config_id", "query_id", "text", "status", "metrics"]):
            for config_id in batch["config_id"].unique().to_pylist():
                of_config = batch.filter(pc.equal(batch["config_id"], config_id))
                rows[config_id].append(_one_item_per_metric(of_config, results.metrics))
        tables = [_PER_QUERY.empty_table()]
        for row in results.leaderboard():
            if not rows[row["config_id"]]:
                continue
            queries = pa.concat_tables(rows.pop(row["config_id"])).sort_by("query_id")
            items = queries["items"].combine_chunks().flatten()
            query, metric = np.divmod(np.arange(len(items)), len(results.metrics))
            columns = {
                "configuration": pa.repeat(row["name"], len(items)),
                "query_id": queries["query_id"].take(query),
                "metric": pa.array(results.metrics, pa.string()).take(metric),
            }
            columns |= {"text": queries["text"].combine_chunks().dictionary_encode().take(pa.array(query))}
            columns |= {name: items.field(name) for name in ("value", "status", "reason")}
            tables.append(pa.table(columns, schema=_PER_QUERY))
        return pa.concat_tables(tables)

    def comparisons(self) -> pa.Table:
        """One row for each configuration, baseline, slice and metric, with the columns of the table `comparisons`."""
        return self._table("comparisons")

    def advice(self) -> pa.Table:
        """Suggestions: one row for each configuration and rule that holds for it; no rows if no rule holds.

        Columns: `configuration`, `rule`, `suggestion`, and `because`, which names the low or high metrics.
        """
        suggestions = advice(self.results)
        return pa.table(
            {
                "configuration": pa.array([suggestion.configuration for suggestion in suggestions], pa.string()),
                "rule": pa.array([suggestion.rule.name for suggestion in suggestions], pa.string()),
                "suggestion": pa.array([suggestion.rule.suggestion for suggestion in suggestions], pa.string()),
                "because": pa.array([suggestion.because for suggestion in suggestions], pa.string()),
            }
        )

    def answers(self) -> pa.Table:
        """One row for each configuration, query and answer sample; no rows if no configuration answered."""
        return self._table("answers")

    def verdicts(self) -> pa.Table:
        """One row for each verdict of the judge; no rows if nothing was judged."""
        return self._table("verdicts")

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the report as an HTML file; return its path.

        Args:
            path: path of the file; by default `report.html` in the output folder.

        Raises:
            InputError: the file cannot be written.
        """
        from rankbeam.pipelines import report  # most results are not reported

        return report.write(self.results, None if path is None else os.fspath(path))

    def _table(self, name: str) -> pa.Table:
        """A table of the run without columns that are equal in every row, and with configurations' names."""
        results = self.results
        common = {field.name for field in COMMON}
        table = results.table(name, [column for column in TABLES[name].names if column not in common])
        ids, names = (pa.array([row[key] for row in results.configurations]) for key in ("config_id", "name"))
        if "baseline" in table.column_names:
            baselines = names.take(pc.index_in(table["baseline"], ids))
            table = table.set_column(table.column_names.index("baseline"), "baseline", baselines)
        if "config_id" in table.column_names:
            table = table.add_column(0, "configuration", names.take(pc.index_in(table["config_id"], ids)))
        return table

    def __repr__(self) -> str:
        return f"<rankbeam.Result: {self._results.named}, in {self.output}>"

    def _repr_html_(self) -> str:
        """The decision, the leaderboard and the comparisons, which notebooks show."""
        from rankbeam.pipelines.report.page import in_notebook  # only notebooks need it

        results = self.results
        return in_notebook(results, self.warnings + ([UNRELIABLE] if has_doubt(results) else []))


_PER_QUERY = pa.schema(
    [
        *(
            pa.field(name, pa.float64() if name == "value" else pa.string())
            for name in ("configuration", "query_id", "metric", "value", "status", "reason")
        ),
        pa.field("text", pa.dictionary(pa.int32(), pa.string())),  # once for all metrics of a query
    ]
)


def _one_item_per_metric(rows: pa.RecordBatch, metrics: Sequence[str]) -> pa.Table:
    """Ids of queries, each with as many `items` as there are metrics; a metric that a row lacks has no value."""
    flat, row = rows["metrics"].flatten(), pc.list_parent_indices(rows["metrics"]).to_numpy()
    column = pc.fill_null(pc.index_in(flat.field("metric"), pa.array(metrics, pa.string())), -1).to_numpy()
    is_known = column >= 0
    place = np.full(rows.num_rows * len(metrics), -1)
    place[row[is_known] * len(metrics) + column[is_known]] = np.flatnonzero(is_known)
    items = flat.take(pa.array(place, mask=place < 0))
    of_item = {field.name: items.field(field.name) for field in items.type}
    status = rows["status"].take(np.arange(len(items)) // len(metrics))
    columns = {
        "value": of_item["value"],
        "status": pc.coalesce(of_item["status"], status) if "status" in of_item else status,
        "reason": of_item.get("reason", pa.nulls(len(items), pa.string())),
    }
    structs = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    per_query = {"query_id": rows["query_id"], "text": rows["text"]}
    return pa.table(per_query | {"items": pa.FixedSizeListArray.from_arrays(structs, len(metrics))})


def assert_gates(result: Result, gates: Gates | None = None, *, baseline: Result | None = None) -> None:
    """See `rankbeam.testing.assert_gates`."""
    other = None if baseline is None else baseline.results
    if gates is None:
        located = result.results.experiment_file
    elif isinstance(gates, str | os.PathLike):
        located = read_gates(os.fspath(gates))
    else:
        rules = gates if isinstance(gates, Mapping) else [dict(gate) for gate in gates]
        located = YamlDocument("gates", {"gates": rules}, {}, ())
    known = gate_checks.known_of(result.results, other)
    checks = gate_checks.check(result.results, located_gates(located, known), other)
    if not all(check.is_met for check in checks):
        raise AssertionError(f"{summary(checks)}\n{as_text(checks)}")
