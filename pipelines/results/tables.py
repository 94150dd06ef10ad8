"""A run's tables: in Parquet files below a folder, in BigQuery, or in memory before the run is finished."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.transforms.clients.bigquery import results as bigquery
from rankbeam.transforms.clients.bigquery.results import StoredRun
from rankbeam.transforms.clients.storage import matching, parquet
from rankbeam.transforms.clients.storage.parquet import run_folder
from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import DEFAULT_METRICS

_CACHED = ("runs", "configurations", "configuration_metrics", "comparisons")  # small tables that are read several times
_ORDERED_BY = {
    "configurations": ("position",),
    "configuration_metrics": ("config_id", "slice", "metric"),
    "comparisons": ("config_id", "baseline", "slice", "metric"),
    "failures": ("config_id", "query_id"),
    "gates": ("position", "config_id", "slice"),
    "usage": ("stage", "pool", "model"),
    "corpora": ("name", "identity"),
    "monitor": ("config_id", "metric"),
}


@dataclass(frozen=True)
class InFolder:
    """Parquet files."""

    output: str
    run_id: str
    most_bytes: int | None = None

    def partial_reads(self) -> list[str]:
        """Texts about large tables that are read only in part."""
        if self.most_bytes is None:
            return []
        return [words for name in tables.LARGE if (words := self._partial_read(name))]

    def _partial_read(self, name: str) -> str:
        sizes = sizes_of(self.output, name, self.run_id)
        read, total = sum(sizes[path] for path in self._paths(name)), sum(sizes.values())
        return "" if read == total else f"{name}: {read / total:.1%} of {total / 1e9:,.2f} GB"

    def table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """One table, with rows as they were written; tables that an older run lacks are empty, and columns null."""
        parts = [_read_part(path, name, columns) for path in self._paths(name)] or [tables.TABLES[name].empty_table()]
        rows = _complete(pa.concat_tables(parts), name, columns)
        if not rows.num_rows and name in tables.NEVER_EMPTY:
            problem = f"the table {name} has no rows, which rankbeam did not write; evaluate again"
            raise InputError(problem, path=run_folder(self.output, name, self.run_id))
        return rows.select(columns) if columns else rows

    def batches(self, name: str, columns: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
        for path in self._paths(name):
            with parquet.open_file(path) as file:
                _check(file.schema_arrow, name, path)
                for group in range(file.num_row_groups):  # bounded by bytes, and texts may be long
                    for batch in file.iter_batches(most, [group], columns):
                        yield from _complete(pa.Table.from_batches([batch]), name, columns).to_batches()

    def _paths(self, name: str) -> list[str]:
        sizes = sizes_of(self.output, name, self.run_id)
        if self.most_bytes is None or name not in tables.LARGE:
            return list(sizes)
        paths, ends = list(sizes), list(accumulate(sizes.values()))
        return paths[: max(1, sum(end <= self.most_bytes for end in ends))]


def sizes_of(output: str, name: str, run_id: str) -> dict[str, int]:
    """The files of a run's table, with their bytes; empty if the run is older than the table."""
    try:
        sizes = {path: size for path, size, _ in matching.versions_in(run_folder(output, name, run_id))}
    except InputError:
        if name in tables.ADDED:
            return {}
        raise
    parquet.refuse_incomplete(list(sizes))
    return sizes


def _complete(rows: pa.Table, name: str, columns: Sequence[str] | None) -> pa.Table:
    """The rows, with null for columns that an older run lacks."""
    for column in columns or tables.TABLES[name].names:
        if column not in rows.column_names:
            field = tables.TABLES[name].field(column)
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows


def _read_part(path: str, name: str, columns: Sequence[str] | None) -> pa.Table:
    with parquet.open_file(path) as file:
        _check(file.schema_arrow, name, path)
        return file.read(columns)


def _check(schema: pa.Schema, name: str, path: str) -> None:
    """Refuse columns of another type, which means that another program wrote or changed the table."""
    for column in tables.TABLES[name]:
        if column.name in schema.names and not _is_like(schema.field(column.name).type, column.type):
            types = f"the column {column.name} is {schema.field(column.name).type}, not {column.type}"
            raise InputError(f"{types}: rankbeam did not write this table; evaluate again", path=path)


def _is_like(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether values can be read as a type; structs of earlier versions have fewer fields."""
    if pa.types.is_null(stored):
        return True
    if pa.types.is_struct(stored) and pa.types.is_struct(expected):
        shared = set(stored.names) & set(expected.names)
        return all(_is_like(stored.field(name).type, expected.field(name).type) for name in shared)
    if pa.types.is_list(stored) and pa.types.is_list(expected):
        return _is_like(stored.value_type, expected.value_type)
    return _kind(stored) == _kind(expected)


def _kind(dtype: pa.DataType) -> object:
    if pa.types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
        return "number"
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "text"
    return "time" if pa.types.is_timestamp(dtype) else dtype.id


@dataclass(frozen=True)
class InMemory:
    """Tables of a run that is not finished yet."""

    tables: Mapping[str, pa.Table]

    def table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        return self.tables[name] if columns is None else self.tables[name].select(columns)

    def batches(self, name: str, columns: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
        yield from self.table(name, columns).to_batches(most)


@dataclass(frozen=True)
class InBigQuery:
    """Rows of a BigQuery dataset, which has no order; they are sorted as in files."""

    run: StoredRun
    _cached: dict[str, pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)

    def table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """One table; small ones are read once."""
        schema = tables.TABLES[name]
        selected = list(columns or schema.names)
        if name not in _CACHED:
            needed = list(dict.fromkeys([*selected, *_ORDERED_BY.get(name, ())]))
            return self._sort_rows(name, self._read(name, needed)).select(selected)
        if name not in self._cached:
            self._cached[name] = self._sort_rows(name, self._read(name, schema.names))
        return self._cached[name].select(selected)

    def batches(self, name: str, columns: Sequence[str], most: int) -> Iterator[pa.RecordBatch]:
        for batch in bigquery.batches(self.run, name, columns):
            for first in range(0, batch.num_rows, most):
                yield batch.slice(first, most)

    def _read(self, name: str, columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([tables.TABLES[name].field(column) for column in columns])
        return pa.Table.from_batches(bigquery.batches(self.run, name, columns), schema)

    def _sort_rows(self, name: str, table: pa.Table) -> pa.Table:
        keys = {key: self._places(key, table[key]) for key in _ORDERED_BY.get(name, ())}
        if not keys:
            return table
        return table.take(pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]))

    def _places(self, key: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The sort key of rows: configurations and metrics are in the experiment's order."""
        if key in ("config_id", "baseline"):
            return pc.index_in(column, value_set=self.table("configurations", None)["config_id"].combine_chunks())
        return pc.index_in(column, value_set=self._metrics(column)) if key == "metric" else column

    def _metrics(self, column: pa.ChunkedArray) -> pa.Array:
        """The metrics of a column, in the experiment's order; metrics that the experiment does not name come last."""
        text = self.table("runs", ["experiment_yaml"])["experiment_yaml"][0].as_py()
        entries = load(text, bigquery.place_of(self.run.dataset)).value.get("metrics") or DEFAULT_METRICS
        try:
            known = [str(metric) for metric in parse_all(entries)]
        except InputError:  # another version may have more metrics
            known = []
        return pa.array([*known, *sorted(set(column.to_pylist()) - set(known))], pa.string())


RunTables = InFolder | InMemory | InBigQuery  # the tables of one run
