"""Public collections by name: fetched once, kept, and refused in words when there is no network, name or split."""

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import ir_datasets
import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.experiments import problems
from support.inputs import write

CORPUS = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(["red apple", "green pear", "old boat"])]
QUERIES = [{"_id": "q0", "text": "apple"}, {"_id": "q1", "text": "boat"}, {"_id": "dev", "text": "pear"}]
TEST = "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td2\t1\n"
DEV = "query-id\tcorpus-id\tscore\ndev\td1\t1\n"


def jsonl(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def archive(name: str) -> bytes:
    """A collection as BEIR's authors pack it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(f"{name}/corpus.jsonl", jsonl(CORPUS))
        file.writestr(f"{name}/queries.jsonl", jsonl(QUERIES))
        file.writestr(f"{name}/qrels/test.tsv", TEST)
        file.writestr(f"{name}/qrels/dev.tsv", DEV)
    return packed.getvalue()


class Mirror(ThreadingHTTPServer):
    """Serves two archives, one of them damaged, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        content = {"/fiqa.zip": archive("fiqa"), "/nq.zip": b"no archive"}.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    monkeypatch.setenv("RANKBEAM_COLLECTIONS", str(tmp_path / "kept"))
    with Mirror() as server:
        monkeypatch.setenv("RANKBEAM_BEIR_URL", f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(folder: Path, dataset: dict[str, str], retriever: dict[str, Any] | None = None) -> Outcome:
    experiment = {
        "name": "public",
        "dataset": dataset,
        "configurations": [{"name": "bm25", "retriever": retriever or {"type": "bm25"}, "top_k": 3}],
        "metrics": ["RR"],
        "output": {"path": str(folder / "out")},
    }
    path = write(folder / "experiment.yaml", yaml.safe_dump(experiment))
    return rankbeam("evaluate", path, "--format", "json")


def mean(outcome: Outcome) -> tuple[float, int]:
    (row,) = json.loads(outcome.stdout)["leaderboard"]
    mean_value = row["slices"]["all"]["RR"]
    return mean_value["mean"], mean_value["queries"]


@pytest.mark.long
def test_a_collection_of_beir_is_fetched_once(mirror: Mirror, tmp_path: Path) -> None:
    outcome = run(tmp_path, {"beir": "fiqa"})
    assert mean(outcome) == (1.0, 2)
    assert "fetching BEIR's fiqa" in outcome.stderr
    again = run(tmp_path, {"beir": "fiqa", "split": "dev"})
    assert mean(again) == (1.0, 1)
    assert "fetching" not in again.stderr
    assert mirror.requests == ["/fiqa.zip"]


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        ({"beir": "fika"}, "BEIR has no collection 'fika'; did you mean 'fiqa'?; a folder of your own would be ./fika"),
        ({"beir": "./own"}, "own/qrels/test.tsv: no such file"),
        ({"beir": "fiqa", "split": "train"}, "BEIR's fiqa has no split 'train'; it has: dev, test"),
        ({"beir": "fiqa/english"}, "has no corpus.jsonl; name a part of it"),
        ({"beir": "nq"}, "/nq.zip cannot be fetched (File is not a zip file); unpack the archive to"),
        ({"beir": "quora"}, "/quora.zip cannot be fetched (Client error '404 Not Found'"),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_what_is_not_there_is_refused(tmp_path: Path, dataset: dict[str, str], problem: str) -> None:
    outcome = run(tmp_path, dataset)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "experiment.yaml:" in outcome.stderr
    assert problem in outcome.stderr
    assert {path.name for path in tmp_path.glob("kept/beir/*")} <= {"fiqa"}


def test_a_split_that_a_folder_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    for name in ("dev", "train"):
        write(tmp_path / "own" / "qrels" / f"{name}.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n")
    assert "./own has no split 'test'; it has: dev, train" in run(tmp_path, {"beir": "./own"}).stderr


def test_without_a_network_the_message_says_what_to_do(mirror: Mirror, tmp_path: Path) -> None:
    mirror.shutdown()
    mirror.server_close()
    outcome = run(tmp_path, {"beir": "fiqa"})
    assert outcome.status == 2
    assert f"unpack the archive to {tmp_path / 'kept' / 'beir' / 'fiqa'} yourself" in outcome.stderr


class Listed(ir_datasets.Dataset):
    """A collection as ir_datasets has it, without a download."""

    def __init__(self, folder: Path) -> None:
        file = ir_datasets.util.LocalDownload
        formats = ir_datasets.formats
        qrels = "".join(f"{line.split()[0]} 0 {line.split()[1]} 1\n" for line in TEST.splitlines()[1:])
        super().__init__(
            formats.TsvDocs(file(write(folder / "d.tsv", "".join(f"{d['_id']}\t{d['text']}\n" for d in CORPUS)))),
            formats.TsvQueries(file(write(folder / "q.tsv", "".join(f"{q['_id']}\t{q['text']}\n" for q in QUERIES)))),
            formats.TrecQrels(file(write(folder / "qrels", qrels)), {1: "relevant"}),
        )


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("RANKBEAM_COLLECTIONS", str(tmp_path / "kept"))
    name = "rankbeam-fruit/test"
    ir_datasets.registry.register(name, Listed(tmp_path))
    yield name
    del ir_datasets.registry._registered[name]


@pytest.mark.long
def test_a_collection_of_ir_datasets_is_written_once(listed: str, tmp_path: Path) -> None:
    outcome = run(tmp_path, {"ir_datasets": listed})
    assert mean(outcome) == (1.0, 2)
    assert outcome.stderr.count("fetching") == 2
    assert "fetching" not in run(tmp_path, {"ir_datasets": listed}).stderr


@pytest.mark.long
def test_documents_are_written_only_where_they_are_read(listed: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run", "q0 Q0 d0 1 2 t\nq1 Q0 d0 1 2 t\nq1 Q0 d2 2 1 t\n")
    assert mean(run(tmp_path, {"ir_datasets": listed}, {"type": "run_file", "path": path})) == (0.75, 2)
    assert not list((tmp_path / "kept").rglob("corpus.jsonl"))


def test_a_collection_that_ir_datasets_lacks(tmp_path: Path) -> None:
    outcome = run(tmp_path, {"ir_datasets": "vasvani"})
    assert outcome.status == 2
    assert "ir_datasets has no collection 'vasvani'" in outcome.stderr


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({"columns": {"question": 0}}, "2: dataset.columns: question must be a key or a JMESPath expression in quotes"),
        ({"columns": {"question": ["q"]}}, "2: dataset.columns: question must be a key or a JMESPath expression"),
        ({"columns": ["q"]}, "2: dataset.columns: must be a mapping of names to keys or JMESPath expressions"),
        ({"groups": "flat"}, "2: dataset.groups: must be 'flatten', or left out"),
    ],
)
def test_wrong_keys_beside_a_file_are_refused(tmp_path: Path, entries: dict[str, Any], problem: str) -> None:
    write(tmp_path / "cases.jsonl", '{"q": "Who pays?", "answer": "Owners."}\n')
    dataset = json.dumps({"file": "cases.jsonl", **entries})
    assert any(line.startswith(problem) for line in problems(tmp_path, f"name: cases\ndataset: {dataset}"))


def test_a_split_that_is_no_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "bench" / "manifest.json", '{"splits": {"test": 3}}')
    (problem,) = problems(tmp_path, "name: split\ndataset: {goldens: bench, split: [test]}")
    assert problem.startswith("2: dataset.split: the benchmark has no split ['test']")


def test_a_corpus_without_a_name_is_refused(tmp_path: Path) -> None:
    assert any(line.startswith("2: dataset.corpus: ") for line in problems(tmp_path, "name: e\ndataset: {corpus: ''}"))
