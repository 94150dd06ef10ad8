"""Changes for readers and as rows of the table `monitor`."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from rankbeam.pipelines.monitor.changes import FIXED, Change, MonitorResult, Tolerances
from rankbeam.pipelines.show.tabular import NO_VALUE, WHOLE, Screen, Table, interval, number
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import answer_tables, tables
from rankbeam.transforms.records.errors import json_text
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.write.tables import write_alone


def as_text(result: MonitorResult, tolerances: Tolerances, screen: Screen = WHOLE) -> str:
    """The changes as a table, with a sentence about the baseline."""
    baseline = f"baseline: {result.baseline.named}"
    if not result.changes:
        return f"{baseline}; it has no later run to compare"
    columns = ["configuration", "metric", "state", "baseline", "change", "interval", "nights", "since", "queries"]
    rows = [
        [
            change.configuration,
            change.metric,
            tolerances.state(change),
            number(change.baseline_mean),
            number(change.change, "+.4f"),
            interval(change.low, change.high),
            f"{change.nights:,}",
            NO_VALUE if change.since is None else f"{change.since:%Y-%m-%d}",
            f"{change.queries:,}",
        ]
        for change in result.changes
    ]
    table = Table(columns, rows, 3, drop=["baseline", "queries", "since", "nights"])
    return f"{screen.table(table)}\n\n{screen.prose(f'{_method(result)} {baseline}.')}"


def as_json(result: MonitorResult, tolerances: Tolerances) -> str:
    document = {
        "run": result.run.identity(),
        "baseline_run": result.baseline.identity(),
        "changes": [{**asdict(change), **_verdict(change, tolerances)} for change in result.changes],
        "warnings": list(result.warnings),
    }
    return json_text(document, default=str)


def as_rows(changes: Sequence[Change], tolerances: Tolerances) -> pa.Table:
    """Rows of `answer_tables.MONITOR`, without the common columns."""
    names = [column.name for column in fields(Change) if column.name != "configuration"]
    rows: list[dict[str, Any]] = [
        {name: getattr(change, name) for name in names} | _verdict(change, tolerances) for change in changes
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(answer_tables.MONITOR))


def _verdict(change: Change, tolerances: Tolerances) -> dict[str, Any]:
    state, alarm = tolerances.state(change), tolerances.is_alarming(change)
    return {"tolerance": tolerances.of_change(change).size, "state": state, "alarm": alarm}


def summary(result: MonitorResult, tolerances: Tolerances) -> str:
    """The alarms and the metrics without a value tonight, in words; "" if there are none."""
    missing = [f"{change.metric} of {change.configuration}" for change in result.changes if not change.queries]
    alarms = [
        f"{change.metric} of {change.configuration} {tolerances.state(change)}"
        for change in result.changes
        if tolerances.is_alarming(change)
    ]
    problems = [f"{', '.join(alarms)} since {result.baseline.named}"] if alarms else []
    return "; ".join([*problems, *([f"{result.run.named} has no value of {', '.join(missing)}"] if missing else [])])


def _method(result: MonitorResult) -> str:
    if result.changes[0].mode == FIXED:
        return "Paired differences, over the same queries;"
    return "Confidence sequences over nights of fresh queries, which hold at every night at once;"


def store(result: MonitorResult, tolerances: Tolerances) -> None:
    run, output = result.run, result.run.output
    execution = Run(run.run_id, run.experiment, run.execution[1], run.run["experiment_yaml"])
    write_alone("monitor", output, execution, as_rows(result.changes, tolerances))


def rebuild(output: str) -> None:
    """Rebuild the DuckDB file where there is one."""
    if files.exists(files.join(output, warehouse.FILE_NAME)):
        warehouse.refuse_foreign(output)
        warehouse.build(output)
