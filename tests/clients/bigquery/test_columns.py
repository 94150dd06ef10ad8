"""Columns of BigQuery: their names in upper and lower case, and types that Parquet files have too."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from support.bigquery_tables import Tables, new_dataset
from support.cli import rankbeam
from support.emulators import Cloud
from support.inputs import trec_qrels, trec_run, write, write_table
from support.readers import read_corpus

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.bigquery.names import TableSource
from rankbeam.transforms.clients.formats.rows import read_qrels
from rankbeam.transforms.clients.formats.syntax import tables
from rankbeam.transforms.clients.formats.texts import read_queries

pytest_plugins = ["support.emulators.fixtures"]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ATTRIBUTES = {"at": "2026-01-02 03:04:05+00:00", "day": "2026-01-02", "weight": "1.5"}


@pytest.fixture
def dataset(cloud: Cloud) -> Iterator[Tables]:
    client = new_dataset(cloud)
    yield client
    client.client.delete_dataset(client.dataset, delete_contents=True)


def test_names_of_columns_are_the_same_in_upper_and_lower_case(dataset: Tables) -> None:
    qrels = dataset.add("qrels", {"Query_ID": ["q1"], "DOC_ID": ["d1"], "Grade": [1.0]})
    (batch,) = read_qrels(qrels)
    assert batch.drop_columns(["line"]).to_pylist() == [{"query_id": "q1", "doc_id": "d1", "grade": 1.0}]
    corpus = dataset.add("corpus", {"_ID": ["d1"], "Title": ["a title"], "Text": ["a text"]})
    assert [(entry.id, entry.title, entry.text) for entry in read_corpus(corpus)] == [("d1", "a title", "a text")]


def test_dates_and_decimal_numbers_of_a_query_are_written_without_quotes(dataset: Tables) -> None:
    query = (
        "SELECT 'q1' AS _id, 'a' AS text, DATE '2026-01-02' AS day, NUMERIC '1.5' AS weight, "
        "TIMESTAMP '2026-01-02 03:04:05+00' AS at"
    )
    (batch,) = read_queries(TableSource(project=dataset.client.project, query=query).path)
    assert {pair["name"]: pair["value"] for pair in batch.to_pylist()[0]["attributes"]} == ATTRIBUTES


def evaluated(folder: Path, queries: pa.Table) -> tuple[int, str]:
    """Evaluate a run by slices of these queries, which are in a Parquet file."""
    write_table(folder / "queries.parquet", {name: queries[name] for name in queries.column_names})
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    write(folder / "a.run", trec_run([("q1", "d1", 2.0)]))
    content = {
        "name": "typed",
        "dataset": {"qrels": "qrels", "queries": "queries.parquet"},
        "configurations": [{"name": "a", "retriever": {"type": "run_file", "path": "a.run"}}],
        "metrics": ["P@1"],
        "slices": sorted(ATTRIBUTES) if queries.num_rows else [],
        "output": {"path": "out"},
    }
    path = write(folder / "experiment.yaml", yaml.safe_dump(content))
    outcome = rankbeam("evaluate", path, "--run-id", "r", "--format", "json")
    return outcome.status, outcome.stderr


@pytest.mark.long
def test_slices_by_dates_and_decimal_numbers_have_plain_names(tmp_path: Path) -> None:
    values = {"_id": ["q1"], "text": ["t"], "at": [AT], "day": [date(2026, 1, 2)], "weight": [Decimal("1.500000000")]}
    assert evaluated(tmp_path, pa.table(values))[0] == 0
    slices = Results(str(tmp_path / "out"), "r").slices
    assert sorted(slices) == ["all", *(f"{name}={value}" for name, value in sorted(ATTRIBUTES.items()))]


def test_queries_without_rows_are_what_is_refused(tmp_path: Path) -> None:
    status, output = evaluated(
        tmp_path, pa.table({"_id": pa.array([], pa.string()), "text": pa.array([], pa.string())})
    )
    assert status == 2
    assert f"{tmp_path / 'queries.parquet'}: the file is empty; queries were expected" in output


def test_a_json_column_is_no_text() -> None:
    field = pa.field("metadata", pa.string(), metadata={"ARROW:extension:name": "google:sqlType:json"})
    batch = pa.RecordBatch.from_arrays([pa.array(['{"intent": "x"}', None])], schema=pa.schema([field]))
    assert tables.plain(batch) == [{"metadata": {"intent": "x"}}, {"metadata": None}]
    values = pa.array(['"a\\nb"', '{"intent": "x"}', "1", None, "null", '"null"'])
    texts = pa.RecordBatch.from_arrays([values], schema=pa.schema([field]))
    expected = ["a\nb", '{"intent": "x"}', "1", None, None, "null"]
    assert tables.with_plain_json(texts, ["metadata"])["metadata"].to_pylist() == expected


def test_other_columns_of_type_json_are_parsed_once() -> None:
    fields = [pa.field(name, pa.string(), metadata={"ARROW:extension:name": "google:sqlType:json"}) for name in "ab"]
    batch = pa.RecordBatch.from_arrays([pa.array(['"q1"']), pa.array(['"en"'])], schema=pa.schema(fields))
    batch = tables.with_plain_json(batch, ["a"])
    assert batch["a"].to_pylist() == ["q1"]
    assert tables.plain(batch.drop_columns(["a"])) == [{"b": "en"}]
