"""Files of finished runs, as `rankbeam evaluate` leaves them, without running anything."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.storage.parquet import Part, put_in_place
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.write.tables import run_folder

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN: Mapping[Any, Any] = {pa.string(): "x", pa.int64(): 3, pa.int32(): 1, pa.float64(): 0.5, pa.bool_(): True}


def finished(
    output: Path | str,
    run_id: str = "run",
    minute: int = 0,
    parts: int = 2,
    rows: int = 3,
    text: str = "x",
    experiment: str = "experiment",
) -> dict[str, str]:
    """Write the files of a run; returns where those of each table lie.

    Args:
        output: the folder of all tables.
        run_id: id of the run.
        minute: after BEGAN, when the run began.
        parts: number of parts of every table but `runs`.
        rows: number of rows of every part.
        text: in its columns.
        experiment: its name.
    """
    run = Run(run_id, experiment, BEGAN + timedelta(minutes=minute), "name: experiment")
    folders = {name: run_folder(str(output), name, run_id) for name in tables.TABLES}
    for name, schema in tables.TABLES.items():
        counts = [1] if name == "runs" else [rows] * parts
        paths = [written(folders[name], schema, run, [row(schema, text)] * count) for count in counts]
        put_in_place(folders[name], paths, schema)
    return folders


def written(folder: str, schema: pa.Schema, run: Run, rows: list[dict[str, Any]]) -> str:
    """Write one part; returns its path."""
    own = pa.schema([field for field in schema if field.name not in ("run_id", "experiment", "started_at")])
    part = Part(folder, schema)
    part.write(run.stamp(pa.Table.from_pylist(rows, own), schema))
    return part.close()


def row(schema: pa.Schema, text: str) -> dict[str, Any]:
    """A row; every second nullable column is null, but no list, since BigQuery stores empty ones instead."""
    return {
        field.name: None
        if field.nullable and number % 2 and not pa.types.is_list(field.type)
        else value_of(field.type, text)
        for number, field in enumerate(schema)
    }


def value_of(kind: pa.DataType, text: str) -> Any:
    """A value of a type."""
    if pa.types.is_list(kind):
        return [value_of(kind.value_type, text)] * 2
    if pa.types.is_struct(kind):
        return row(kind, text)
    if pa.types.is_timestamp(kind):
        return BEGAN
    return text if pa.types.is_string(kind) else PLAIN[kind]
