"""Read tables through the BigQuery Storage API: Arrow, selected columns, in streams that are read in parallel.

A stream can be read again from its start, also by another worker, during the six hours of its session. All streams of a
session show the table as it was when the session was opened.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.bigquery.read_source import TableSource
from rankbeam.transforms.clients.bigquery.read_tables import credentials, refusals, stored

EMULATOR = "RANKBEAM_BIGQUERY_STORAGE_EMULATOR_HOST"
"""An environment variable with host:port of a server to read instead of BigQuery, without TLS; for tests."""

_MOST_STREAMS = 256
"""The most streams of a session; BigQuery makes fewer for a small table."""
_MESSAGE_BYTES = 128 << 20


def streams(source: TableSource, columns: Sequence[str]) -> list[TableSource]:
    """Open a session, and divide the rows into streams."""
    names = _open(source, columns, _MOST_STREAMS) or [""]
    return [replace(source, stream=name, number=i) for i, name in enumerate(names, 1)]


def batches(source: TableSource, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read a stream, or all rows in one."""
    names = [source.stream] if source.stream is not None else _open(source, columns, 1)
    with refusals(source), _client() as client:
        for name in filter(None, names):
            schema = None
            for message in client.read_rows(name):
                if schema is None:
                    schema = pa.ipc.read_schema(pa.py_buffer(message.arrow_schema.serialized_schema))
                yield pa.ipc.read_record_batch(pa.py_buffer(message.arrow_record_batch.serialized_record_batch), schema)


def _open(source: TableSource, columns: Sequence[str], most: int) -> list[str]:
    """The names of the streams of a new session."""
    from google.cloud.bigquery_storage_v1 import types

    table = stored(source, columns)
    request = types.ReadSession(
        table=table.resource,
        data_format=types.DataFormat.ARROW,
        read_options=types.ReadSession.TableReadOptions(
            selected_fields=columns,
            arrow_serialization_options=types.ArrowSerializationOptions(
                buffer_compression=types.ArrowSerializationOptions.CompressionCodec.LZ4_FRAME
            ),
        ),
    )
    with refusals(source), _client() as client:
        session = client.create_read_session(
            parent=f"projects/{table.project}", read_session=request, max_stream_count=most
        )
    return [stream.name for stream in session.streams]


@contextmanager
def _client() -> Iterator[Any]:
    import grpc
    from google.cloud.bigquery_storage_v1 import BigQueryReadClient
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

    if host := os.environ.get(EMULATOR):
        channel = grpc.insecure_channel(host, [("grpc.max_receive_message_length", _MESSAGE_BYTES)])
        client = BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
    else:
        client = BigQueryReadClient(credentials=credentials())
    try:
        yield client
    finally:
        client.transport.close()
