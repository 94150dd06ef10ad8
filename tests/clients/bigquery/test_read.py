"""Reading from BigQuery: the same rows as from Parquet, in streams, of tables, views and queries; and refusals."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pydantic import BaseModel, ValidationError
from support.bigquery_tables import Tables, new_dataset
from support.emulators import Cloud
from support.inputs import write_table
from support.readers import read_corpus

from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.locations import Location
from rankbeam.transforms.clients.bigquery.names import TableName, TableSource, pinned_path
from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax import tables
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.records.errors import InputError

pytest_plugins = ["support.emulators.fixtures"]

QRELS = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"], "grade": [1.0, 0.0, 2.0]}


@pytest.fixture
def dataset(cloud: Cloud) -> Iterator[Tables]:
    client = new_dataset(cloud)
    yield client
    client.client.delete_dataset(client.dataset, delete_contents=True)


class Scripted(ThreadingHTTPServer):
    """BigQuery's REST interface, with answers written beforehand: for what the emulator never says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ScriptedHandler)
        self.answers: list[tuple[int, Any]] = []
        self.request_log: list[tuple[str, str]] = []


class ScriptedHandler(BaseHTTPRequestHandler):
    server: Scripted

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.request_log.append((self.command, self.path))
        status, text = self.server.answers.pop(0)
        reason = {403: "accessDenied", 409: "duplicate"}.get(status)
        body = text if reason is None else {"error": {"message": text, "errors": [{"reason": reason}]}}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer  # noqa: N815  names of http.server

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def scripted(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    assert cloud.environment  # whose credentials are used
    with Scripted() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def query(dataset: Tables, text: str, **parameters: Any) -> str:
    source = TableSource(
        project=dataset.client.project, query=text.replace("%s", dataset.dataset), parameters=parameters
    )
    return source.path


# The text that stands for a source


@pytest.mark.parametrize(
    "source",
    [
        TableSource(table="my-project.search.qrels"),
        TableSource(table="my-project.search.qrels", stream="projects/p/streams/0", number=1),
        TableSource(table="my-project.search.qrels", stream="", number=1),
        TableSource(project="my-project", query="SELECT 'é # {' -- x\nFROM t", parameters={"a": [1, 2], "b": True}),
        TableSource(project="my-project", query="SELECT 1", run="r 2026", stream="s", number=7),
    ],
)
def test_a_source_survives_being_a_path(source: TableSource) -> None:
    assert TableSource.parse(source.path) == source


def test_a_query_has_one_job_in_a_run_and_another_in_the_next() -> None:
    path = TableSource(project="my-project", query="SELECT 1").path
    jobs = [TableSource.parse(pinned_path(path, run)).job_id for run in ("a", "a", "b")]
    assert (jobs[0] == jobs[1], jobs[0] == jobs[2], TableSource.parse(path).job_id) == (True, False, None)


class Holder(BaseModel):
    at: Location


def test_a_location_is_given_back_as_it_was_given() -> None:
    parameters = {"query": "SELECT 1", "project": "my-project", "parameters": {"split": "test", "least": 1}}
    for value in (
        parameters,
        {**parameters, "parameters": {"langs": ["de", "fr"]}},
        "a/b.tsv",
        "bigquery://my-project.a.b",
    ):
        assert Holder(at=value).model_dump(mode="json") == {"at": value}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"projct": "x"}, "a query has no 'projct'; did you mean 'project'?"),
        ({"query": None}, "query: must be a text"),
        ({"project": "no project`"}, "'no project`' is not a Google Cloud project"),
        ({"parameters": {"a": [1, "x"]}}, "values of one type"),
        ({"parameters": {"a": []}}, "at least one"),
        ({"parameters": {"a": {"b": 1}}}, "parameters.a: must be a text"),
    ],
)
def test_a_bad_query_is_refused_in_words(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Holder(at={"query": "SELECT 1", "project": "my-project", **change})
    assert words in str(caught.value)


def test_a_query_without_project_is_refused() -> None:
    with pytest.raises(ValidationError, match="a query needs 'project'"):
        Holder(at={"query": "SELECT 1"})


def test_partitions_and_wildcards_need_a_query() -> None:
    for name in ("my-project.search.events_*", "my-project.search.events$20260101"):
        with pytest.raises(InputError, match="for a partition or several tables"):
            TableName.parse(name)


@pytest.mark.parametrize(
    "name", ["a.b", "my-project.search.t`; DROP", "my-project.se`arch.t", "my-project.search.t WHERE"]
)
def test_what_is_no_table_never_reaches_bigquery(name: str) -> None:
    with pytest.raises(InputError, match="is not a BigQuery table"):
        tables.find_columns(f"bigquery://{name}'", "qrels")


# Rows


def test_qrels_are_those_of_a_parquet_file(dataset: Tables, tmp_path: Path) -> None:
    path = dataset.add("qrels", QRELS)
    assert rows(read_qrels(path)) == rows(read_qrels(write_table(tmp_path / "qrels.parquet", QRELS)))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("relevance", pa.array([1, 0, 2], pa.int64())),
        ("score", pa.array(["1", "0", "2.0"])),
        ("label", pa.array([1, 0, 2], pa.float32())),
    ],
)
def test_columns_go_by_other_names_and_types_too(dataset: Tables, name: str, values: pa.Array) -> None:
    path = dataset.add("qrels", pa.table({name: values, "docid": QRELS["doc_id"], "qid": [1, 1, 2], "more": [0, 0, 0]}))
    judgements = [(row["query_id"], row["doc_id"], row["grade"]) for row in rows(read_qrels(path))]
    assert judgements == [("1", "d1", 1.0), ("1", "d2", 0.0), ("2", "d1", 2.0)]


def test_other_columns_and_nested_ones_are_attributes(dataset: Tables, tmp_path: Path) -> None:
    content = pa.table(
        {
            "_id": ["q1", "q2"],
            "text": ["a", None],
            "language": ["de", None],
            "turns": [3, 4],
            "metadata": [{"intent": "x", "tags": ["s", "t"]}, {"intent": None, "tags": []}],
        }
    )
    path, file = dataset.add("queries", content), tmp_path / "queries.parquet"
    expected = rows(read_queries(write_table(file, {name: content[name] for name in content.column_names})))
    assert rows(read_queries(path)) == expected
    assert [attribute["value"] for attribute in expected[0]["attributes"]] == ["x", "de", '["s", "t"]', "3"]


def test_a_corpus_has_titles(dataset: Tables) -> None:
    path = dataset.add("corpus", {"doc_id": ["a", "b"], "title": ["A", None], "contents": ["x", "y"]})
    assert [(document.id, document.title, document.text) for document in read_corpus(path)] == [
        ("a", "A", "x"),
        ("b", "", "y"),
    ]


def test_the_streams_of_a_large_table_hold_its_rows_once(dataset: Tables) -> None:
    numbers = range(150_000)
    content = {"query_id": [f"q{i % 7}" for i in numbers], "doc_id": [f"d{i}" for i in numbers]}
    path = dataset.add("run", {**content, "score": [i / 7 for i in numbers]})
    streams = list(tables.streams(path, "run"))
    parts = [pa.Table.from_batches(read_run(stream)) for stream in streams]
    assert len(streams) > 1
    assert all(pc.max(part["line"]).as_py() == part.num_rows for part in parts)
    whole = pa.concat_tables(parts).drop_columns("line").sort_by("score")
    assert whole == pa.Table.from_batches(read_run(path)).drop_columns("line").sort_by("score")
    assert pc.count_distinct(whole["doc_id"]).as_py() == whole.num_rows == len(numbers)


def test_a_stream_can_be_read_again(dataset: Tables) -> None:
    [stream] = tables.streams(dataset.add("qrels", QRELS), "qrels")
    assert rows(read_qrels(stream)) == rows(read_qrels(stream)) != []


def test_only_the_wanted_columns_are_sent(dataset: Tables) -> None:
    path = dataset.add("qrels", {**QRELS, "text": ["a", "b", "c"]})
    source = TableSource.parse(next(tables.streams(path, "qrels")))
    assert [set(batch.schema.names) for batch in read.batches(source, [])] == [{*QRELS}]


def test_a_table_without_rows_has_one_stream_without_any(dataset: Tables) -> None:
    dataset.run("CREATE TABLE `%s.qrels` (query_id STRING, doc_id STRING, grade FLOAT64)")
    path = f"bigquery://{dataset.dataset}.qrels"
    streams = list(tables.streams(path, "qrels"))
    assert [rows(read_qrels(source)) for source in (*streams, path)] == [[], []]


def test_a_view_is_read(dataset: Tables) -> None:
    dataset.add("qrels", QRELS)
    dataset.run(
        "CREATE VIEW `%s.judged` AS SELECT query_id AS qid, doc_id, grade * 2 AS grade, 1 AS more FROM `%s.qrels`"
    )
    path = f"bigquery://{dataset.dataset}.judged"
    tables.find_columns(path, "qrels")
    assert [row["grade"] for row in rows(read_qrels(path))] == [2.0, 0.0, 4.0]


def test_parameters_of_a_query_have_types(dataset: Tables) -> None:
    dataset.add("qrels", {**QRELS, "split": ["test", "test", "train"], "used": [True, True, True]})
    text = """
        SELECT query_id, doc_id, grade FROM `%s.qrels`
        WHERE split IN UNNEST(@splits) AND used = @used AND grade >= @least AND doc_id != @other AND LENGTH(doc_id) = @n
    """
    hostile = "d9' OR '1' = '1"
    path = query(dataset, text, splits=["test"], used=True, least=0.5, other=hostile, n=2)
    assert [(row["query_id"], row["doc_id"]) for row in rows(read_qrels(path))] == [("q1", "d1")]


def test_the_volume_of_a_query_is_that_of_its_dry_run(scripted: Scripted) -> None:
    view = {"type": "VIEW", "tableReference": {"projectId": "my-project", "datasetId": "search", "tableId": "v"}}
    statistics = {"query": {"statementType": "SELECT", "totalBytesProcessed": "12345678901"}}
    scripted.answers += [(200, {"jobReference": {"projectId": "p"}, "statistics": statistics})]
    source = TableSource(project="my-project", query="SELECT 1")
    assert read.volume(source) == (12_345_678_901, True)  # of a result, at most 8 GB are expected
    scripted.answers += [(200, {**view, "type": "TABLE", "numBytes": "42"})]  # no dry run
    assert read.volume(TableSource(table="my-project.search.qrels")) == (42, False)
    scripted.answers += [(200, view), (200, {"jobReference": {"projectId": "p"}, "statistics": statistics})]
    assert read.volume(TableSource(table="my-project.search.v")) == (12_345_678_901, True)


def test_a_table_that_requires_a_filter_is_refused_before_a_session_is(scripted: Scripted) -> None:
    place = {"projectId": "my-project", "datasetId": "search", "tableId": "clicks"}
    scripted.answers += [(200, {"tableReference": place, "requirePartitionFilter": True})] * 2
    source = TableSource(table="my-project.search.clicks")
    with pytest.raises(InputError, match=r"search.clicks: requires a filter .*: read it by a query"):
        read.describe(source)
    assert read.columns_of(source) == ()  # queries of a run's results have a filter


def test_a_query_of_another_worker_is_waited_for_and_run_again_if_it_failed_in_passing(scripted: Scripted) -> None:
    source = TableSource(project="my-project", query="SELECT 1", run="r")
    begun: Any = {
        "jobReference": {"projectId": "my-project", "jobId": source.job_id, "location": "EU"},
        "configuration": {"query": {"destinationTable": {"projectId": "p", "datasetId": "_d", "tableId": "anon"}}},
        "status": {"state": "DONE"},
    }
    dry = {**begun, "statistics": {"query": {"statementType": "SELECT"}}}
    rows_ = {"jobComplete": True, "totalRows": "0", "schema": {"fields": []}, "jobReference": begun["jobReference"]}
    failed = {**begun, "status": {"state": "DONE", "errorResult": {"reason": "backendError", "message": "no"}}}
    scripted.answers += [(200, dry), (409, "no"), (200, failed), (409, "no"), (200, begun), (200, rows_), (200, rows_)]
    assert read.stored_table(source, [])[0] == "projects/p/datasets/_d/tables/anon"
    gets = [path.rpartition("/")[2].split("?") for method, path in scripted.request_log if method == "GET"][:2]
    assert [name for name, query in gets if "location=EU" in query] == [source.job_id, f"{source.job_id}_1"]


# Refusals


def test_a_table_that_lacks_columns_says_which_it_has(dataset: Tables) -> None:
    path = dataset.add("qrels", {"query": ["a"], "docs": ["b"], "value": [1]})
    with pytest.raises(InputError) as caught:
        tables.find_columns(path, "qrels")
    message = str(caught.value)
    assert message.startswith(f"{path}: no column for doc_id (one of doc_id, corpus-id, ")
    assert "no column for grade (one of grade, relevance, " in message
    assert message.endswith("the table has: query, docs, value")


def test_a_query_that_lacks_columns_says_which_it_has_without_running(dataset: Tables) -> None:
    dataset.add("qrels", QRELS)
    path = query(dataset, "SELECT query_id, doc_id AS dokid, grade FROM `%s.qrels`")
    with pytest.raises(InputError, match=r"did you mean 'dokid'.*the table has: query_id, dokid, grade"):
        tables.find_columns(path, "qrels")


def test_a_missing_table_has_a_neighbour(dataset: Tables) -> None:
    dataset.add("qrels", QRELS)
    with pytest.raises(InputError, match=r"not found: .*did you mean 'qrels'\?"):
        tables.find_columns(f"bigquery://{dataset.dataset}.qrel", "qrels")
    with pytest.raises(InputError, match="not found: "):
        tables.find_columns(f"bigquery://{dataset.dataset}x.qrels", "qrels")


@pytest.mark.parametrize(("name", "words"), [("query_id", "query_id is null"), ("grade", "grade is null")])
def test_a_null_is_refused_with_its_row(dataset: Tables, name: str, words: str) -> None:
    path = dataset.add("qrels", {**QRELS, name: [QRELS[name][0], None, QRELS[name][2]]})
    with pytest.raises(InputError, match=words) as caught:
        rows(read_qrels(path))
    assert (caught.value.path, caught.value.line) == (path, 2)
    with pytest.raises(InputError, match=words) as caught:
        rows(read_qrels(next(tables.streams(path, "qrels"))))
    assert (caught.value.path, caught.value.line) == (f"{path} (stream 1)", 2)


def test_a_text_that_is_none_is_refused(dataset: Tables) -> None:
    path = dataset.add("queries", {"_id": ["a"], "text": [["x"]]})
    with pytest.raises(InputError, match=r"column text holds list<.*cannot be read as string"):
        rows(read_queries(path))


def test_a_number_that_is_not_finite_is_refused(dataset: Tables) -> None:
    path = dataset.add("run", {"query_id": ["q"], "doc_id": ["d"], "score": [float("nan")]})
    with pytest.raises(InputError, match="score is not a finite number"):
        rows(read_run(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT nothing FROM `%s.qrels`", "refused: .*nothing"),
        ("SELEC 1", "refused: "),
        ("DELETE FROM `%s.qrels` WHERE TRUE", "the query is a DELETE; only SELECT can be read"),
        ("SELECT * FROM `%s.other`", "other"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused_and_not_run(dataset: Tables, text: str, words: str) -> None:
    left = dataset.add("qrels", QRELS)
    path = query(dataset, text)
    for attempt in (lambda: tables.find_columns(path, "qrels"), lambda: rows(read_qrels(path))):
        with pytest.raises(InputError, match=words) as caught:
            attempt()
        assert str(caught.value).startswith(shown(path))
    assert len(rows(read_qrels(left))) == 3


@pytest.mark.parametrize(
    ("source", "role"),
    [
        (
            TableSource(table="my-project.a.b"),
            "it needs roles/bigquery.dataViewer on the data and roles/bigquery.readSe",
        ),
        (TableSource(project="my-project", query="SELECT 1"), "it needs roles/bigquery.jobUser on the project, and "),
    ],
)
def test_without_permission_it_names_the_roles(scripted: Scripted, source: TableSource, role: str) -> None:
    scripted.answers.append((403, "Access Denied: Table my-project:a.b"))
    with pytest.raises(InputError) as caught:
        tables.find_columns(source.path, "qrels")
    assert str(caught.value).startswith(f"{source}: permission denied: Access Denied: Table my-project:a.b; {role}")


@pytest.mark.usefixtures("cloud")
def test_without_a_network_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"BigQuery does not answer: .*is there a network\?"):
        tables.find_columns("bigquery://my-project.a.b", "qrels")


def test_without_credentials_it_says_how_to_sign_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(
        InputError, match=r"bigquery://my-project\.a\.b: no credentials.*gcloud auth application-default"
    ):
        tables.find_columns("bigquery://my-project.a.b", "qrels")
