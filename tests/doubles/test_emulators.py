# ruff: noqa: F811  fixtures are named as what they give
"""The emulators, through Google's own clients: what rankbeam asks of Cloud Storage and BigQuery is possible there."""

import contextlib
import io
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystems import FileSystems
from google.api_core.exceptions import BadRequest, Conflict, NotFound
from google.cloud import bigquery
from google.cloud.bigquery_storage_v1 import BigQueryReadClient, types
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport
from support.emulators import STORAGE_READ_HOST, Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name

from rankbeam.transforms.records.tables import RANKINGS

STARTED_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TYPES = {
    pa.string(): "STRING",
    pa.int32(): "INTEGER",
    pa.float64(): "FLOAT",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


@pytest.fixture
def client(cloud: Cloud) -> Iterator[bigquery.Client]:
    """Google's client of the warehouse."""
    with contextlib.closing(bigquery.Client(cloud.bigquery.project)) as opened:
        yield opened


@pytest.fixture
def dataset(client: bigquery.Client) -> Iterator[str]:
    """A dataset without tables."""
    name = f"{client.project}.test_{time.time_ns()}"
    client.create_dataset(name)
    yield name
    client.delete_dataset(name, delete_contents=True)


@pytest.fixture
def rankings(client: bigquery.Client, cloud: Cloud, dataset: str) -> str:
    """A table of rankings with the runs "a", of two queries, and "b", of one."""
    name = new_table(client, f"{dataset}.rankings")
    uri = stored(cloud, rows("a", 2), rows("b", 1))
    load(client, name, uri)
    return name


def rows(run_id: str, queries: int) -> pa.Table:
    """Rankings of one run."""
    documents = [
        {"rank": 1, "doc_id": "d1", "score": 0.5, "grade": None, "text": "ü"},
        {"rank": 2, "doc_id": "d2", "score": 0.25, "grade": 1.0, "text": None},
    ]
    return pa.Table.from_pylist(
        [
            {"run_id": run_id, "experiment": "e", "started_at": STARTED_AT, "config_id": "c", "query_id": f"q{number}"}
            | {"documents": documents if number else []}
            for number in range(queries)
        ],
        RANKINGS,
    )


def stored(cloud: Cloud, *parts: pa.Table) -> str:
    """Put tables into a new bucket as Parquet; returns the pattern of their paths."""
    folder = f"gs://{cloud.gcs.bucket()}/rankings"
    for number, part in enumerate(parts):
        content = io.BytesIO()
        pq.write_table(part, content)
        write(f"{folder}/part-{number}.parquet", content.getvalue())
    return f"{folder}/part-*.parquet"


def write(path: str, content: bytes) -> None:
    with FileSystems.create(path) as file:
        file.write(content)


def new_table(client: bigquery.Client, name: str) -> str:
    """Make an empty table of rankings, by days and runs; returns its name."""
    table = bigquery.Table(name, schema=[column(field) for field in RANKINGS])
    table.time_partitioning = bigquery.TimePartitioning(field="started_at")
    table.clustering_fields = ["run_id", "config_id"]
    client.create_table(table)
    return name


def column(field: pa.Field) -> bigquery.SchemaField:
    """BigQuery's column for one of ours."""
    if pa.types.is_list(field.type):
        fields = [column(subfield) for subfield in field.type.value_type]
        return bigquery.SchemaField(field.name, "RECORD", "REPEATED", fields=fields)
    return bigquery.SchemaField(field.name, TYPES[field.type], "NULLABLE" if field.nullable else "REQUIRED")


def load(client: bigquery.Client, name: str, uri: str, disposition: str = "WRITE_APPEND") -> None:
    """Load Parquet files into a table, in one job."""
    parquet = bigquery.ParquetOptions()
    parquet.enable_list_inference = True
    config = bigquery.LoadJobConfig(source_format="PARQUET", write_disposition=disposition)
    config.parquet_options = parquet
    client.load_table_from_uri(uri, name, job_config=config).result(timeout=60)


def query_rows(client: bigquery.Client, query: str, **parameters: str | list[str]) -> list[tuple[Any, ...]]:
    """The rows of a query with text parameters."""
    query_parameters = [
        bigquery.ArrayQueryParameter(name, "STRING", value)
        if isinstance(value, list)
        else bigquery.ScalarQueryParameter(name, "STRING", value)
        for name, value in parameters.items()
    ]
    job = client.query(query, job_config=bigquery.QueryJobConfig(query_parameters=query_parameters))
    return [tuple(row.values()) for row in job.result(timeout=60)]


def reader() -> BigQueryReadClient:
    """Google's client of the Storage Read API."""
    channel = grpc.insecure_channel(os.environ[STORAGE_READ_HOST])
    return BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))


def session(client: BigQueryReadClient, table: str, streams: int, **options: Any) -> types.ReadSession:
    """A session that reads a table in Arrow."""
    project, dataset, name = table.split(".")
    session = types.ReadSession(
        table=f"projects/{project}/datasets/{dataset}/tables/{name}",
        data_format=types.DataFormat.ARROW,
        read_options=options,
    )
    return client.create_read_session(parent=f"projects/{project}", read_session=session, max_stream_count=streams)


def by_query(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: (row["run_id"], row["query_id"]))


# --- Cloud Storage, through Beam ------------------------------------------------------------------


def test_files_are_written_read_found_renamed_and_deleted(cloud: Cloud) -> None:
    folder = f"gs://{cloud.gcs.bucket()}"
    for name in ("a/1.txt", "a/2.txt", "b/1.txt"):
        write(f"{folder}/{name}", name.encode())

    def listing(pattern: str) -> list[str]:
        [matched] = FileSystems.match([f"{folder}/{pattern}"])
        return sorted(file.path.removeprefix(f"{folder}/") for file in matched.metadata_list)

    assert listing("a/*") == ["a/1.txt", "a/2.txt"]
    assert listing("*/1.txt") == ["a/1.txt", "b/1.txt"]
    FileSystems.rename([f"{folder}/a/1.txt"], [f"{folder}/c/new.txt"])
    FileSystems.delete([f"{folder}/b/1.txt"])
    assert listing("**") == ["a/2.txt", "c/new.txt"]
    with FileSystems.open(f"{folder}/c/new.txt") as file:
        assert file.read() == b"a/1.txt"
    assert not FileSystems.exists(f"{folder}/a/1.txt")


def test_objects_are_files_below_the_folder(cloud: Cloud) -> None:
    bucket = cloud.gcs.bucket()
    write(f"gs://{bucket}/a/b.txt", b"hello")
    assert (cloud.gcs.folder / bucket / "a" / "b.txt").read_bytes() == b"hello"


def test_many_threads_write_at_once(cloud: Cloud) -> None:
    folder, content = f"gs://{cloud.gcs.bucket()}", os.urandom(3_000_000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write(f"{folder}/{number}", content), range(8)))
    [matched] = FileSystems.match([f"{folder}/*"])
    assert [file.size_in_bytes for file in matched.metadata_list] == [len(content)] * 8


# --- BigQuery ---------------------------------------------------------------------------------------


def test_datasets_are_made_by_the_api_and_in_sql(client: bigquery.Client, dataset: str) -> None:
    with pytest.raises(Conflict):
        client.create_dataset(dataset)
    query_rows(client, f"CREATE SCHEMA IF NOT EXISTS `{dataset}_too` OPTIONS (location = 'EU')")
    assert {dataset.split(".")[1], f"{dataset.split('.')[1]}_too"} <= {
        listed.dataset_id for listed in client.list_datasets()
    }
    client.delete_dataset(f"{dataset}_too")
    with pytest.raises(NotFound):
        client.get_dataset(f"{dataset}_too")


def test_a_table_has_our_columns_days_and_clusters(client: bigquery.Client, dataset: str) -> None:
    table = client.get_table(new_table(client, f"{dataset}.rankings"))
    assert table.schema == [column(field) for field in RANKINGS]
    assert (table.time_partitioning.field, table.time_partitioning.type_) == ("started_at", "DAY")
    assert table.clustering_fields == ["run_id", "config_id"]


def test_parquet_is_loaded_from_the_bucket(client: bigquery.Client, cloud: Cloud, rankings: str) -> None:
    expected = pa.concat_tables([rows("a", 2), rows("b", 1)])
    loaded = client.query(f"SELECT * FROM `{rankings}`").to_arrow(create_bqstorage_client=False)
    assert by_query(loaded) == by_query(expected)
    load(client, rankings, stored(cloud, rows("c", 3)))
    assert client.get_table(rankings).num_rows == 6
    load(client, rankings, stored(cloud, rows("d", 1)), "WRITE_TRUNCATE")
    assert query_rows(client, f"SELECT run_id, query_id FROM `{rankings}`") == [("d", "q0")]
    assert client.get_table(rankings).clustering_fields == ["run_id", "config_id"]


def test_a_load_of_nothing_fails(client: bigquery.Client, cloud: Cloud, rankings: str) -> None:
    with pytest.raises(BadRequest):
        load(client, rankings, f"gs://{cloud.gcs.bucket()}/nothing/*")


def test_queries_take_parameters(client: bigquery.Client, rankings: str) -> None:
    nested = f"""
        SELECT r.query_id, d.doc_id, d.score, r.started_at FROM `{rankings}` AS r, UNNEST(r.documents) AS d
        WHERE r.run_id = @run ORDER BY d.rank
    """
    assert query_rows(client, nested, run="a") == [("q1", "d1", 0.5, STARTED_AT), ("q1", "d2", 0.25, STARTED_AT)]
    some = f"SELECT count(*) FROM `{rankings}` WHERE run_id IN UNNEST(@runs)"
    assert query_rows(client, some, runs=["a", "b"]) == [(3,)]


def test_rows_are_deleted(client: bigquery.Client, rankings: str) -> None:
    query_rows(client, f"DELETE FROM `{rankings}` WHERE run_id = @run", run="a")
    assert query_rows(client, f"SELECT run_id FROM `{rankings}`") == [("b",)]


def test_rows_are_merged(client: bigquery.Client, dataset: str) -> None:
    query_rows(client, f"CREATE TABLE `{dataset}.old` AS SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, 'b'")
    query_rows(
        client,
        f"""
        MERGE `{dataset}.old` AS old USING (SELECT 2 AS id, @name AS name UNION ALL SELECT 3, @name) AS new
        ON old.id = new.id
        WHEN MATCHED THEN UPDATE SET name = new.name
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (new.id, new.name)
        """,
        name="c",
    )
    assert query_rows(client, f"SELECT id, name FROM `{dataset}.old` ORDER BY id") == [(1, "a"), (2, "c"), (3, "c")]


def test_a_transaction_commits_all_of_a_script(client: bigquery.Client, cloud: Cloud, rankings: str) -> None:
    staged = new_table(client, f"{rankings}_staged")
    load(client, staged, stored(cloud, rows("a", 5), rows("z", 1)))
    query_rows(
        client,
        f"""
        BEGIN TRANSACTION;
        DELETE FROM `{rankings}` WHERE run_id = @run;
        INSERT INTO `{rankings}` SELECT * FROM `{staged}` WHERE run_id = @run;
        COMMIT TRANSACTION;
        """,
        run="a",
    )
    counts = f"SELECT run_id, count(*) FROM `{rankings}` GROUP BY run_id ORDER BY run_id"
    assert query_rows(client, counts) == [("a", 5), ("b", 1)]


@pytest.mark.parametrize(
    ("statement", "error"), [("SELECT 1 / 0", BadRequest), ("INSERT INTO `nowhere.t` SELECT 1", NotFound)]
)
def test_a_transaction_that_fails_changes_nothing(
    client: bigquery.Client, rankings: str, statement: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        query_rows(client, f"BEGIN TRANSACTION; DELETE FROM `{rankings}` WHERE TRUE; {statement}; COMMIT TRANSACTION;")
    query_rows(client, f"BEGIN TRANSACTION; DELETE FROM `{rankings}` WHERE TRUE; ROLLBACK TRANSACTION;")
    assert query_rows(client, f"SELECT count(*) FROM `{rankings}`") == [(3,)]


def test_scripts_declare_and_decide(client: bigquery.Client) -> None:
    script = "DECLARE n INT64 DEFAULT 3; SET n = n + 1; IF n > 3 THEN SELECT n, @word; ELSE SELECT 0, ''; END IF;"
    assert query_rows(client, script, word="yes") == [(4, "yes")]


def test_views_are_replaced_and_read(client: bigquery.Client, dataset: str, rankings: str) -> None:
    view = f"{dataset}.best"
    query_rows(client, f"CREATE OR REPLACE VIEW `{view}` AS SELECT 1 AS other")
    query_rows(
        client,
        f"""
        CREATE OR REPLACE VIEW `{view}` OPTIONS (description = 'The best') AS
        SELECT r.run_id, d.doc_id, ROW_NUMBER() OVER (PARTITION BY r.run_id, r.query_id ORDER BY d.score DESC) AS place
        FROM `{rankings}` AS r, UNNEST(r.documents) AS d
        """,
    )
    assert query_rows(client, f"SELECT doc_id FROM `{view}` WHERE run_id = @run AND place = 1", run="a") == [("d1",)]
    table = client.get_table(view)
    assert (table.table_type, [field.name for field in table.schema]) == ("VIEW", ["run_id", "doc_id", "place"])


def test_the_schema_of_a_dataset_is_told(client: bigquery.Client, dataset: str, rankings: str) -> None:
    columns = f"SELECT column_name, data_type FROM `{dataset}`.INFORMATION_SCHEMA.COLUMNS WHERE table_name = @table"
    types = dict(query_rows(client, columns, table=rankings.split(".")[2]))
    assert list(types) == RANKINGS.names
    assert types["documents"].startswith("ARRAY<STRUCT<rank INT64, doc_id STRING, score FLOAT64")
    assert [listed.table_id for listed in client.list_tables(dataset)] == ["rankings"]


# --- The Storage Read API ---------------------------------------------------------------------------


def test_a_table_is_read_in_several_streams(client: bigquery.Client, dataset: str) -> None:
    table = f"{dataset}.long"
    numbers = "UNNEST(GENERATE_ARRAY(1, 3000)) AS hundreds, UNNEST(GENERATE_ARRAY(0, 99)) AS ones"
    query_rows(
        client, f"CREATE TABLE `{table}` AS SELECT hundreds * 100 + ones AS id, MOD(ones, 2) AS odd FROM {numbers}"
    )
    storage = reader()
    opened = session(storage, table, streams=3, row_restriction="odd = 1", selected_fields=["id"])
    query_rows(client, f"DELETE FROM `{table}` WHERE TRUE")
    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(lambda stream: storage.read_rows(stream.name).to_arrow(opened), opened.streams))
    assert [part.column_names for part in parts] == [["id"]] * 3
    assert all(part.num_rows for part in parts)
    ids = pa.concat_tables(parts)["id"].to_pylist()
    assert sorted(ids) == [hundreds * 100 + ones for hundreds in range(1, 3001) for ones in range(1, 100, 2)]


def test_nested_rows_are_read_in_arrow(rankings: str) -> None:
    storage = reader()
    opened = session(storage, rankings, streams=3)
    nested = pa.concat_tables(storage.read_rows(stream.name).to_arrow(opened) for stream in opened.streams)
    assert by_query(nested) == by_query(pa.concat_tables([rows("a", 2), rows("b", 1)]))


def test_a_table_that_is_not_there_is_not_read(dataset: str) -> None:
    with pytest.raises(NotFound):
        session(reader(), f"{dataset}.nothing", streams=1)
