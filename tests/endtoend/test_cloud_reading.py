"""Datasets and runs in BigQuery and on gs://, through the command: the tables are those that local files give."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests
import yaml
from support import memory_filesystem
from support.bigquery_tables import Tables, new_dataset
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.emulators import Cloud
from support.inputs import beir_qrels, tab_texts, trec_qrels, trec_run
from support.readers import queries
from support.runs import evaluated, rankbeam, without_run

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import sizes_of
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError

pytest_plugins = ["support.emulators.fixtures"]

HELPDESK = REPOSITORY / "examples" / "helpdesk"
TABLES = ("query_metrics", "configuration_metrics", "rankings", "comparisons")
Dataset = dict[str, Any]


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HELPDESK / name).read_text().splitlines()]


def judgements() -> list[tuple[str, str, float]]:
    rows = (line.split("\t") for line in (HELPDESK / "qrels" / "test.tsv").read_text().splitlines()[1:])
    return [(query, doc, float(grade)) for query, doc, grade in rows]


def a_run() -> list[tuple[str, str, float]]:
    draw = random.Random(1)
    docs = [row["_id"] for row in lines("corpus.jsonl")]
    return [(q["_id"], d, draw.random()) for q in lines("queries.jsonl") for d in draw.sample(docs, 20)]


def columns(rows: list[tuple[str, str, float]], number: str) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(("query_id", "doc_id", number))}


LOCAL: Dataset = {
    "queries": str(HELPDESK / "queries.jsonl"),
    "qrels": str(HELPDESK / "qrels" / "test.tsv"),
    "corpus": str(HELPDESK / "corpus.jsonl"),
}


def experiment(folder: Path, dataset: Dataset, run: Any, **more: Any) -> Path:
    content = {
        "name": "cloud",
        "dataset": dataset,
        "configurations": [
            {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 20},
            {"name": "run", "retriever": {"type": "run_file", "path": run}},
        ],
        "metrics": ["nDCG@10", "AP", "RR@10"],
        "slices": ["intent"],
        "statistics": {"replicates": 20},
        "output": {"path": str(folder / "out"), "rankings": True},
        **more,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def tables_of(path: Path) -> dict[str, list[str]]:
    """Every table of an evaluation; ids of configurations aside, which depend on the path of a run."""
    assert evaluated(path, run_id="r").run["state"] == "done"
    results = Results(str(path.parent / "out"), "r")
    tables = {}
    for name in TABLES:
        table = results.table(name)
        columns = [column for column in table.column_names if "config" not in column and "baseline" not in column]
        tables[name] = without_run(table.select(columns))
    tables["dataset"] = [results.run["dataset"]["fingerprint"]] if "fingerprint" in results.run["dataset"] else []
    return tables


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("local")
    (folder / "run.trec").write_text(trec_run(a_run()))
    values = tables_of(experiment(folder, LOCAL, str(folder / "run.trec")))
    assert len(values["query_metrics"]) == 2 * len(lines("queries.jsonl"))
    return values


@pytest.fixture
def tables(cloud: Cloud) -> Iterator[Tables]:
    """The example in BigQuery."""
    dataset = new_dataset(cloud)
    dataset.add("queries", pa.Table.from_pylist(lines("queries.jsonl")))
    dataset.add("corpus", pa.Table.from_pylist(lines("corpus.jsonl")))
    dataset.add("qrels", columns(judgements(), "grade"))
    dataset.add("run", columns(a_run(), "score"))
    yield dataset
    dataset.client.delete_dataset(dataset.dataset, delete_contents=True)


def in_bigquery(tables: Tables) -> Dataset:
    return {role: f"bigquery://{tables.dataset}.{role}" for role in ("queries", "qrels", "corpus")}


def test_a_dataset_and_a_run_in_bigquery(tables: Tables, expected: dict[str, list[str]], tmp_path: Path) -> None:
    assert tables_of(experiment(tmp_path, in_bigquery(tables), f"bigquery://{tables.dataset}.run")) == expected


def test_runs_in_bigquery_beside_runs_in_files(tables: Tables, tmp_path: Path) -> None:
    runs = [a_run(), a_run()[::2], a_run()[1::3], a_run()[:99]]
    values = []
    for place in ("files", "mixed"):
        paths = [tmp_path / f"{number}.trec" for number in range(len(runs))]
        for path, rows in zip(paths, runs, strict=True):
            path.write_text(trec_run(rows))
        if place == "mixed":
            for number in (0, 2):
                tables.add(f"run{number}", columns(runs[number], "score"))
                paths[number] = f"bigquery://{tables.dataset}.run{number}"
        retrievers = [{"type": "run_file", "path": str(path)} for path in paths]
        configurations = [{"name": f"c{number}", "retriever": one} for number, one in enumerate(retrievers)]
        path = experiment(tmp_path / place, LOCAL, "", configurations=configurations)
        assert evaluated(path, run_id="r").run["state"] == "done"
        results = Results(str(tmp_path / place / "out"), "r")
        ids = {row["name"]: row["config_id"] for row in results.configurations}
        values.append({name: [row["metrics"] for row in results.query_metrics(ids[name])] for name in ids})
    assert values[0] == values[1]
    assert len({str(rows) for rows in values[0].values()}) == len(runs)


def test_queries_to_bigquery_with_parameters(tables: Tables, expected: dict[str, list[str]], tmp_path: Path) -> None:
    others = {**columns(judgements()[:9], "grade"), "split": ["train"] * 9}
    mine = {**columns(judgements(), "grade"), "split": ["test"] * len(judgements())}
    tables.add("all_qrels", {name: others[name] + mine[name] for name in mine})
    tables.add("all_runs", {**columns(a_run(), "score"), "run": [7] * len(a_run())})
    project = tables.client.project

    def query(text: str, **parameters: Any) -> Dataset:
        return {"query": text.replace("%s", tables.dataset), "project": project, "parameters": parameters}

    dataset = {
        "queries": query("SELECT _id AS query_id, text, metadata FROM `%s.queries`"),
        "qrels": query("SELECT query_id, doc_id, grade FROM `%s.all_qrels` WHERE split = @split", split="test"),
        "corpus": query("SELECT * FROM `%s.corpus` WHERE LENGTH(_id) >= @least", least=1),
    }
    run = query("SELECT query_id AS qid, doc_id, score FROM `%s.all_runs` WHERE run = @run", run=7)
    path = experiment(tmp_path, dataset, run)
    assert tables_of(path) == expected
    planned = json.loads(rankbeam("plan", path, "--format", "json").stdout)["tables"]
    assert [(plan["source"].partition(" (SELECT ")[0], plan["is_query"]) for plan in planned] == [
        (f"bigquery://{project}", True)
    ] * 4
    [_, configuration] = Results(str(tmp_path / "out"), "r").configurations
    assert json.loads(configuration["parameters"])["retriever"]["path"] == run


FORMATS = {
    "beir": {"queries.jsonl": "queries", "qrels.tsv": "qrels", "corpus.jsonl": "corpus", "run.trec": "run"},
    "packed": {"queries.jsonl.gz": "queries", "qrels.txt.gz": "qrels", "corpus.jsonl.gz": "corpus", "run.gz": "run"},
    "parquet": {name: name.partition(".")[0] for name in ("queries.pq", "qrels.pq", "corpus.pq", "run.pq")},
}


def content_of(name: str, role: str) -> bytes:
    """A file of the example in the format that its name says."""
    if name.endswith(".pq"):
        sink = pa.BufferOutputStream()
        tables = {"qrels": (judgements, "grade"), "run": (a_run, "score")}
        rows, number = tables.get(role, (None, ""))
        table = pa.Table.from_pylist(lines(f"{role}.jsonl")) if rows is None else pa.table(columns(rows(), number))
        pq.write_table(table, sink, row_group_size=100)
        return sink.getvalue().to_pybytes()
    if role in ("queries", "corpus"):
        plain = (HELPDESK / f"{role}.jsonl").read_bytes()
    else:
        write = {"run": trec_run, "qrels": beir_qrels if name.endswith(".tsv") else trec_qrels}[role]
        plain = write(a_run() if role == "run" else judgements()).encode()
    return gzip.compress(plain) if name.endswith(".gz") else plain


def put(cloud: Cloud, names: dict[str, bytes]) -> str:
    """Put files into a new bucket; returns its path."""
    bucket = f"gs://{cloud.gcs.bucket()}"
    for name, content in names.items():
        files.write(f"{bucket}/{name}", content)
    return bucket


@pytest.mark.parametrize("form", ["packed", *in_campaigns("beir", "parquet")])
def test_a_dataset_and_a_run_on_cloud_storage(
    cloud: Cloud, expected: dict[str, list[str]], tmp_path: Path, form: str
) -> None:
    bucket = put(cloud, {f"data/{name}": content_of(name, role) for name, role in FORMATS[form].items()})
    at = {role: f"{bucket}/data/{name}" for name, role in FORMATS[form].items()}
    run = at.pop("run")
    assert tables_of(experiment(tmp_path, at, run)) == expected


def parts(rows: list[Any], count: int) -> Iterator[tuple[int, list[Any]]]:
    for part in range(count):
        yield part, rows[part::count]


@pytest.mark.campaign
def test_folders_and_patterns_on_cloud_storage(cloud: Cloud, expected: dict[str, list[str]], tmp_path: Path) -> None:
    names = {"queries.jsonl": content_of("queries.jsonl", "queries"), "corpus.jsonl": content_of("c.jsonl", "corpus")}
    for part, rows in parts(judgements(), 30):
        names[f"qrels/part[{part}].txt.gz"] = gzip.compress(trec_qrels(rows).encode())
    for part, rows in parts(a_run(), 12):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns(rows, "score")), sink)
        names[f"runs/day={part % 3}/part-{part}.parquet"] = sink.getvalue().to_pybytes()
        names[f"runs/_tmp/part-{part}.parquet"] = b"unfinished"
    bucket = put(cloud, names)
    at = {"queries": f"{bucket}/queries.jsonl", "corpus": f"{bucket}/c*.jsonl", "qrels": f"{bucket}/qrels/*"}
    assert tables_of(experiment(tmp_path, at, f"{bucket}/runs")) == expected
    assert sources.size(at["qrels"]) == sum(len(names[name]) for name in names if name.startswith("qrels/"))


def test_what_a_console_leaves_in_the_place_of_a_folder_is_no_file() -> None:
    there = {"mem://bucket/qrels/": b"", "mem://bucket/qrels/a": b"q 0 d 1\n", "mem://bucket/runs/": b""}
    there["mem://bucket/runs/a.parquet"] = b""
    memory_filesystem.FILES.update(there)
    try:
        assert matching.expand("mem://bucket/qrels/*") == ["mem://bucket/qrels/a"]
        assert matching.expand("mem://bucket/runs/") == ["mem://bucket/runs/a.parquet"]
    finally:
        for name in there:
            del memory_filesystem.FILES[name]


def test_topics_with_tabs_on_cloud_storage(cloud: Cloud) -> None:
    bucket = put(cloud, {"topics.tsv": tab_texts([("q1", "first"), ("q2", "second")]).encode()})
    assert queries(f"{bucket}/topics.tsv") == [("q1", "first", 1), ("q2", "second", 2)]


# Refusals come before any work does, each with its line


def test_what_cannot_be_read_is_refused_at_once(tables: Tables, tmp_path: Path) -> None:
    tables.add("odd", {"queryid": ["a"], "document": ["b"], "grade": [1]})
    dataset = {
        "queries": f"bigquery://{tables.dataset}.querys",
        "qrels": f"bigquery://{tables.dataset}.odd",
        "corpus": {"query": "SELECT 1 AS one", "project": tables.client.project},
    }
    path = experiment(tmp_path, dataset, f"{tables.dataset}.run")
    done = rankbeam("validate", path)
    assert done.exit_code == 2
    messages = "\n".join(line.removeprefix(f"{path}:") for line in done.stderr.splitlines())
    for words in (
        "dataset.queries: bigquery://", "did you mean 'queries'?", "dataset.qrels: bigquery://",
        "no column for query_id (one of query_id, query-id, q_id, qid, query; did you mean 'queryid'?)",
        "; no column for doc_id",
        "the table has: queryid, document, grade", "(SELECT 1 AS one): no column for id", "the table has: one",
    ):  # fmt: skip
        assert words in messages
    assert not (tmp_path / "out").exists()


def test_slices_by_no_column_of_the_queries_are_refused(tables: Tables, tmp_path: Path) -> None:
    rows = [{"_id": row["_id"], "text": row["text"], "Title": "t", "language": "en"} for row in lines("queries.jsonl")]
    dataset = {**in_bigquery(tables), "queries": tables.add("flat", pa.Table.from_pylist(rows))}

    def validated(slices: list[str], queries: Any = dataset["queries"]) -> str:
        run = f"bigquery://{tables.dataset}.run"
        done = rankbeam("validate", experiment(tmp_path, {**dataset, "queries": queries}, run, slices=slices))
        assert done.exit_code == 2 * bool(done.stderr), done.stderr
        return done.stderr

    query = {"query": f"SELECT * FROM `{tables.dataset}.flat`", "project": tables.dataset.partition(".")[0]}
    problem = "slices[0]: no query has the attribute 'langage'; did you mean 'language'?"
    assert validated(["language"]) == validated(["language"], query) == ""
    assert problem in validated(["langage"])
    assert problem in validated(["langage"], query)
    assert "no query has the attribute 'title'" in validated(["title"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"query": "SELECT 1", "projct": "p"}, "dataset.qrels: a query needs 'project'; a query has no 'projct'"),
        ("bigquery://my-project.qrels", "dataset.qrels: 'my-project.qrels' is not a BigQuery table"),
        (["a"], "dataset.qrels: must be a text"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(tmp_path: Path, source: Any, words: str) -> None:
    done = rankbeam("validate", experiment(tmp_path, {**LOCAL, "qrels": source}, str(HELPDESK / "qrels" / "test.tsv")))
    assert (done.exit_code, words in done.stderr) == (2, True), done.stderr


def test_two_grades_in_bigquery_are_refused_with_their_rows(tables: Tables, tmp_path: Path) -> None:
    query, doc, grade = judgements()[0]
    twice = columns([*judgements(), (query, doc, grade + 1)], "grade")
    dataset = {**in_bigquery(tables), "qrels": tables.add("twice", twice)}
    done = rankbeam("evaluate", experiment(tmp_path, dataset, f"bigquery://{tables.dataset}.run"))
    assert done.exit_code == 2
    place = f"bigquery://{tables.dataset}.twice:{len(judgements()) + 1}: document {doc!r} has two grades"
    assert place in done.stderr
    assert "(also at line 1)" in done.stderr


def test_a_document_twice_in_a_run_in_bigquery_is_refused(tables: Tables, tmp_path: Path) -> None:
    query, doc, score = a_run()[0]
    path = tables.add("again", columns([*a_run(), (query, doc, score)], "score"))
    done = rankbeam("evaluate", experiment(tmp_path, in_bigquery(tables), path))
    assert done.exit_code == 2
    assert f"{path}:{len(a_run()) + 1}: document {doc!r} occurs more than once" in done.stderr


def test_a_missing_object_on_cloud_storage_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    bucket = put(cloud, {"other": b"x"})
    done = rankbeam("validate", experiment(tmp_path, {**LOCAL, "qrels": f"{bucket}/qrels.tsv"}, f"{bucket}x/run"))
    assert done.exit_code == 2
    assert f"dataset.qrels: {bucket}/qrels.tsv: no such file" in done.stderr
    assert f"configurations[1].retriever.path: {bucket}x/run: " in done.stderr


def test_score_reads_both_from_bigquery(tables: Tables) -> None:
    at = f"bigquery://{tables.dataset}"
    done = rankbeam("score", f"{at}.qrels", f"{at}.run", "-m", "AP", "--format", "csv")
    assert (done.exit_code, "AP" in done.stdout) == (0, True), done.stderr


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of all requests to Cloud Storage."""
    urls: list[str] = []
    send = requests.Session.send

    def recorded(*arguments: Any, **more: Any) -> requests.Response:
        urls.append(arguments[1].url)
        return send(*arguments, **more)

    monkeypatch.setattr(requests.Session, "send", recorded)
    return urls


@pytest.mark.parametrize("packed", [False, True])
def test_a_small_object_is_recognised_and_read_with_two_requests_each(
    cloud: Cloud, packed: bool, requested: list[str]
) -> None:
    text = trec_run([("q1", "d1", 1.0)]).encode()
    path = put(cloud, {"some.run": gzip.compress(text) if packed else text}) + "/some.run"
    requested.clear()
    assert (recognise(path, "run"), files.read_all(path)) == (Format.TREC_RUN, text)
    assert len([url for url in requested if "some.run" in url]) == 4  # size and bytes, twice


def test_the_files_of_a_table_are_listed_by_one_request(cloud: Cloud, requested: list[str]) -> None:
    parts = [f"runs/r1/part-{number:05}-of-00002.parquet" for number in range(2)]
    output = put(cloud, {**dict.fromkeys(parts, b"PAR1"), "runs/r1/_part.parquet": b"", "runs/r1/_t/a.parquet": b""})
    requested.clear()
    assert sizes_of(output, "runs", "r1") == {f"{output}/{part}": 4 for part in parts}
    assert len([url for url in requested if "/o?" in url]) == 1


def test_parquet_is_recognised_by_its_first_bytes_but_not_within_gzip(tmp_path: Path) -> None:
    without_lines = b"PAR1" + bytes(1 << 20)
    for name, content in {"plain": without_lines, "packed": gzip.compress(without_lines)}.items():
        (tmp_path / name).write_bytes(content)
    assert recognise(str(tmp_path / "plain"), "run") is Format.PARQUET
    with pytest.raises(InputError):
        recognise(str(tmp_path / "packed"), "run")
