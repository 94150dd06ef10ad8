"""Read tables of BigQuery: their metadata, and their rows through the Storage API, in parallel streams.

A query's rows are in a table that BigQuery keeps for a day. Views and external tables cannot be read as tables are: a
query of the selected columns is run instead. A stream can be read again from its start, also by another worker, during
the six hours of its session. All streams of a session show the table as it was when the session was opened.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.bigquery.errors import BigQueryError, ErrorKind, advice_of, bigquery_error, of_job
from rankbeam.transforms.clients.bigquery.names import Scalar, TableName, TableSource
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, PATIENCE, Patience
from rankbeam.transforms.clients.storage.remedies import reason
from rankbeam.transforms.records.errors import InputError, did_you_mean

EMULATOR = "RANKBEAM_BIGQUERY_STORAGE_EMULATOR_HOST"
"""An environment variable with host:port of a server to read instead of BigQuery, without TLS; for tests."""

_MOST_STREAMS = 256  # the most streams of a session; BigQuery makes fewer for a small table
_MESSAGE_BYTES = 128 << 20


_STORED = ("TABLE", "SNAPSHOT", "CLONE")
_AROUND = re.compile(r"^(?:GET|POST) \S*: |(?:; reason: .*)? Location: \S+ Job ID: .*$")
"""Text that the client adds to BigQuery's message: the request, and the job."""
_TIMEOUT_S = 60.0
_MOST_LISTED = 1000
_LARGEST_RESULT = 8 << 30
"""The largest estimate of a query's result, which is taken to be as large as the data that it reads."""
_LABELS = {"tool": "rankbeam"}
_TYPES = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING"}
_READ_ROLES = "roles/bigquery.dataViewer on the data and roles/bigquery.readSessionUser on the project that pays"
_QUERY_ROLES = "roles/bigquery.jobUser on the project, and " + _READ_ROLES


@dataclass(frozen=True)
class Description:
    """The metadata of a source."""

    columns: tuple[str, ...]  # names of the columns, in order
    stored_bytes: int
    modified: float  # when it was last changed, in seconds since 1970; 0 for a query


def describe(source: TableSource) -> Description:
    """Look up the columns and the size; no query is run."""
    with refusals(source):
        if source.table is None:
            job = _dry_run(source, source.query)
            return Description(tuple(field.name for field in job.schema or ()), _result_bytes(job), 0.0)
        table = _table(source, IMPATIENT)
        if table.require_partition_filter:
            problem = "requires a filter on its partitions: read it by a query, {query: SELECT … WHERE …, project: …}"
            raise InputError(problem, path=str(source))
        is_stored = table.table_type in _STORED
        size = table.num_bytes or 0 if is_stored else _result_bytes(_dry_run(source, _select(source, ())))
        modified = table.modified.timestamp() if table.modified else 0.0
        return Description(tuple(field.name for field in table.schema), size, modified)


def columns_of(source: TableSource) -> tuple[str, ...]:
    with refusals(source):
        return tuple(field.name for field in _table(source, IMPATIENT).schema)


def exists(source: TableSource) -> bool:
    with refusals(source):
        try:
            _table(source, IMPATIENT)
        except BigQueryError as error:
            if error.kind is not ErrorKind.MISSING:
                raise
            return False
        return True


def volume(source: TableSource) -> tuple[int, bool]:
    """The most bytes that reading a source takes, by a dry run, and whether a query (also of a view) is charged."""
    with refusals(source):
        if source.table is not None:
            table = _table(source, IMPATIENT)
            if table.table_type in _STORED:
                return table.num_bytes or 0, False
        query = source.query if source.table is None else _select(source, ())
        return _dry_run(source, query).total_bytes_processed or 0, True


def stored_table(source: TableSource, columns: Sequence[str]) -> tuple[str, str]:
    """The table that holds the rows of a source, and who pays; a query may have begun on another worker."""
    with refusals(source):
        if source.table is None:
            return _run_query(source, source.query, _dry_run(source, source.query).location)
        table = _table(source, PATIENCE)
        if table.table_type in _STORED:
            return table.reference.to_bqstorage(), _client(source).project
        return _run_query(source, _select(source, columns), table.location)


@contextmanager
def refusals(source: TableSource) -> Iterator[None]:
    """Translate errors of Google's clients into errors that say what to do."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # `bigquery_error` raises again what is not Google's
        refusal = error if isinstance(error, BigQueryError) else bigquery_error(error)
        problem = f"{refusal.kind.value}: {_AROUND.sub('', refusal.message)}{_advice(refusal, source)}"
        raise InputError(problem, path=str(source)) from error


def _advice(refusal: BigQueryError, source: TableSource) -> str:
    if refusal.kind is ErrorKind.PERMISSION:
        return f"; it needs {_READ_ROLES if source.table else _QUERY_ROLES}"
    if refusal.kind is ErrorKind.MISSING:
        return _near(source)
    return advice_of(refusal, source.project)


def _near(source: TableSource) -> str:
    """Tables of the same dataset with similar names, if the dataset can be listed."""
    if source.table is None:
        return ""
    name = TableName.parse(source.table)
    dataset, client = str(name.dataset), _client(source)
    try:
        there = IMPATIENT.call(lambda: list(client.list_tables(dataset, max_results=_MOST_LISTED, retry=None)))
    except BigQueryError:
        return ""
    return f"; {did_you_mean(name.table, [table.table_id for table in there])}" if there else ""


def _select(source: TableSource, columns: Sequence[str]) -> str:
    """A query of a view; it contains only checked names."""
    names = ", ".join(f"`{name}`" for name in columns) if columns else "*"
    return f"SELECT {names} FROM {TableName.parse(source.table or '').quoted}"  # noqa: S608  as said


def _table(source: TableSource, patience: Patience) -> Any:
    name, client = str(TableName.parse(source.table or "")), _client(source)
    return patience.call(lambda: client.get_table(name, retry=None, timeout=_TIMEOUT_S))


def _run_query(source: TableSource, query: str, location: str | None) -> tuple[str, str]:
    """The table that holds the result of a query; the query runs where its tables are."""
    from google.api_core.exceptions import Conflict

    client = _client(source)
    where = {"location": location, "retry": None, "timeout": _TIMEOUT_S}

    def run() -> Any:
        number = 0
        while True:
            job_id = f"{source.job_id}_{number}" if source.job_id and number else source.job_id
            try:
                job = client.query(query, job_config=_config(source), job_id=job_id, job_retry=None, **where)
            except Conflict:  # another worker began it, or this one
                job = client.get_job(job_id, **where)
                if (error := of_job(job)) is not None and error.kind is ErrorKind.PASSING:
                    number += 1
                    continue
            job.result(page_size=1)
            return job

    return PATIENCE.call(run).destination.to_bqstorage(), client.project


def _dry_run(source: TableSource, query: str) -> Any:
    client, config = _client(source), _config(source, dry_run=True, use_query_cache=False)
    job = IMPATIENT.call(lambda: client.query(query, job_config=config, retry=None, timeout=_TIMEOUT_S))
    if job.statement_type not in (None, "SELECT"):
        raise InputError(f"the query is a {job.statement_type}; only SELECT can be read", path=str(source))
    return job


def _result_bytes(job: Any) -> int:
    return min(job.total_bytes_processed or 0, _LARGEST_RESULT)


def _config(source: TableSource, **options: bool) -> Any:
    from google.cloud import bigquery

    def typed(name: str, value: Scalar | list[Scalar]) -> Any:
        if isinstance(value, list):
            return bigquery.ArrayQueryParameter(name, _TYPES[type(value[0])], value)
        return bigquery.ScalarQueryParameter(name, _TYPES[type(value)], value)

    parameters = [typed(name, value) for name, value in source.parameters.items()]
    return bigquery.QueryJobConfig(query_parameters=parameters, labels=_LABELS, **options)


def _client(source: TableSource) -> Any:
    from google.cloud import bigquery

    credentials, own = _sign_in()
    project = source.project or own or TableName.parse(source.table or "").dataset.project
    return bigquery.Client(project=project, credentials=credentials)


def _sign_in() -> tuple[Any, str | None]:
    credentials = _sign_in_once(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
    if isinstance(credentials, str):
        raise BigQueryError(ErrorKind.CREDENTIALS, credentials)
    return credentials


@cache
def _sign_in_once(_file: str | None) -> tuple[Any, str | None] | str:
    """The credentials and their project, or the error; cached, as the search may take seconds."""
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        credentials: tuple[Any, str | None] = google.auth.default(["https://www.googleapis.com/auth/cloud-platform"])
    except GoogleAuthError as error:
        return reason(error)
    return credentials


def streams(source: TableSource, columns: Sequence[str]) -> list[TableSource]:
    """Open a session, and divide the rows into streams."""
    names = _open_streams(source, columns, _MOST_STREAMS) or [""]
    return [replace(source, stream=name, number=i) for i, name in enumerate(names, 1)]


def batches(source: TableSource, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read a stream, or all rows in one."""
    names = [source.stream] if source.stream is not None else _open_streams(source, columns, 1)
    with refusals(source), _storage_client() as client:
        for name in filter(None, names):
            schema = None
            for message in client.read_rows(name):
                if schema is None:
                    schema = pa.ipc.read_schema(pa.py_buffer(message.arrow_schema.serialized_schema))
                yield pa.ipc.read_record_batch(pa.py_buffer(message.arrow_record_batch.serialized_record_batch), schema)


def _open_streams(source: TableSource, columns: Sequence[str], most: int) -> list[str]:
    from google.cloud.bigquery_storage_v1 import types

    resource, project = stored_table(source, columns)
    request = types.ReadSession(
        table=resource,
        data_format=types.DataFormat.ARROW,
        read_options=types.ReadSession.TableReadOptions(
            selected_fields=columns,
            arrow_serialization_options=types.ArrowSerializationOptions(
                buffer_compression=types.ArrowSerializationOptions.CompressionCodec.LZ4_FRAME
            ),
        ),
    )
    with refusals(source), _storage_client() as client:
        session = client.create_read_session(parent=f"projects/{project}", read_session=request, max_stream_count=most)
    return [stream.name for stream in session.streams]


@contextmanager
def _storage_client() -> Iterator[Any]:
    import grpc
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

    if host := os.environ.get(EMULATOR):
        channel = grpc.insecure_channel(host, [("grpc.max_receive_message_length", _MESSAGE_BYTES)])
        client = BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
    else:
        client = BigQueryReadClient(credentials=_sign_in()[0])
    try:
        yield client
    finally:
        client.transport.close()
