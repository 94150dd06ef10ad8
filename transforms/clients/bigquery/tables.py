"""The tables of a dataset: created if absent, otherwise only extended by nullable columns and relaxed to NULLABLE."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.bigquery.errors import BigQueryError, ErrorKind
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.schemas import Column
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, Patience, Session
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

_DAY_MS = 86_400_000
_STAGING_EXPIRY = timedelta(days=1)  # longer than a load job may wait and run


def destination(name: str, patience: Patience = IMPATIENT) -> DatasetName:
    """Check that runs can be loaded into a dataset: it is readable and its tables fit. Nothing is changed."""
    dataset = DatasetName.parse(name)
    session = Session(dataset, patience)
    try:
        _ = session.location
        problems = [
            problem
            for name in tables.TABLES
            if (table := session.table(name)) is not None
            for problem in _problems(name, table)
        ]
    except BigQueryError as error:
        raise InputError(f"{dataset}: {error.advice(dataset)}") from error
    if problems:
        raise InputError(_not_fitting(dataset, problems))
    return dataset


def ensure(session: Session, name: str) -> list[Column]:
    """Create a table, or extend an existing one for our rows (`schemas.merge_columns`); return its columns."""
    required = schemas.columns_of(tables.TABLES[name])
    for _ in range(session.patience.conflicts):
        table = session.table(name)
        if table is None:
            table = session.create(_new(session, name, required))
        if problems := list(_problems(name, table)):
            raise BigQueryError(ErrorKind.REFUSED, _not_fitting(session.dataset, problems))
        existing = _columns(table)
        columns = schemas.merge_columns(existing, required)
        if columns == existing:
            return columns
        table.schema = columns
        try:
            session.update(table, ["schema"])
        except BigQueryError as error:
            if error.kind is not ErrorKind.CHANGED:
                raise
        else:
            return columns
    raise BigQueryError(ErrorKind.CHANGED, f"table {name} keeps being changed by others")


def partition_ms(days: int) -> int | None:
    """The age in ms at which BigQuery deletes a partition; None for 0 days, which keeps all."""
    return days * _DAY_MS or None


def expire(dataset: DatasetName, days: int, patience: Patience = IMPATIENT) -> None:
    """Set the days after which BigQuery deletes partitions (0: never) in all tables, so that runs expire as a whole."""
    session = Session(dataset, patience)
    try:
        session.expire(partition_ms(days))  # new tables inherit it
        for name in tables.TABLES:
            if (table := session.table(name)) is not None and table.time_partitioning is not None:
                partitioning = table.time_partitioning
                partitioning.expiration_ms = partition_ms(days)  # None is sent as null, which removes the setting
                table.time_partitioning = partitioning
                session.update(table, ["time_partitioning"])
    except BigQueryError as error:
        raise InputError(f"{dataset}: {error.advice(dataset)}") from error


def stage(session: Session, name: str, columns: list[Column]) -> Any:
    """Create a table that expires, for rows that are not published yet."""
    from google.cloud import bigquery

    table = bigquery.Table(str(session.dataset.table(name)), columns)
    table.expires = datetime.now(UTC) + _STAGING_EXPIRY
    return session.create(table)


def _new(session: Session, name: str, columns: list[Column]) -> Any:
    from google.cloud import bigquery

    table = bigquery.Table(str(session.dataset.table(name)), columns)
    table.time_partitioning = bigquery.TimePartitioning(field=schemas.PARTITIONED_BY)
    table.clustering_fields = schemas.clustering_of(tables.TABLES[name])
    return table


def _problems(name: str, table: Any) -> Iterator[str]:
    if table.table_type != "TABLE":
        yield f"{name} is a {table.table_type}, not a table"
        return
    if table.require_partition_filter:
        yield f"{name} requires a partition filter; remove it: bq update --norequire_partition_filter"
    for difference in schemas.differences(_columns(table), schemas.columns_of(tables.TABLES[name])):
        yield f"{name}.{difference}"


def _columns(table: Any) -> list[Column]:
    return [field.to_api_repr() for field in table.schema]


def _not_fitting(dataset: DatasetName, problems: list[str]) -> str:
    return f"the tables of {dataset} do not fit: {'; '.join(problems)}; rename them, or choose another dataset"
