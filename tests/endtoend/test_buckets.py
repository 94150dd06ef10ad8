"""Buckets that are missing or closed to us: one message with what to do; and how local files are brought to one."""

import gc
import json
import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
import yaml
from google.cloud.storage.exceptions import InvalidResponse
from support.cli import Outcome, rankbeam
from support.emulators import Cloud
from support.inputs import json_texts, run_table, trec_qrels, trec_run, write, write_table

from rankbeam.pipelines.dataflow.launch import submit
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.run.evaluate import new_run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.parquet import Part
from rankbeam.transforms.records.errors import InputError

pytest_plugins = ["support.emulators.fixtures"]

ROWS = [("q1", "d1", 1.0), ("q2", "d2", 1.0)]
ON_DATAFLOW = ("--runner=DataflowRunner", "--project=p", "--region=r")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment whose files lie in several folders; two have the same name, one is a folder, one a pattern."""
    write(tmp_path / "data" / "qrels" / "test", trec_qrels(ROWS))
    write(tmp_path / "data" / "queries.jsonl", json_texts([("q1", "alpha"), ("q2", "beta")]))
    write(tmp_path / "data" / "runs" / "test", trec_run(ROWS))
    write_table(tmp_path / "data" / "table" / "part" / "a.parquet", run_table(ROWS))
    write(tmp_path / "data" / "days" / "1" / "a.run", trec_run(ROWS[:1]))
    write(tmp_path / "data" / "days" / "2" / "a.run", trec_run(ROWS[1:]))
    paths = {"file": "data/runs/test", "folder": "data/table", "pattern": "data/days/*/a.run", "flat": "data/runs/*"}
    content = {
        "name": "e",
        "dataset": {"qrels": "data/qrels/test", "queries": "data/queries.jsonl"},
        "configurations": [{"name": n, "retriever": {"type": "run_file", "path": p}} for n, p in paths.items()],
        "metrics": ["RR"],
        "output": {"path": "out"},
    }
    return Path(write(tmp_path / "e.yaml", yaml.safe_dump(content, sort_keys=False)))


class Closed(BaseHTTPRequestHandler):
    """Cloud Storage whose every bucket is closed to us."""

    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"error": {"code": 403, "message": "nobody does not have storage.objects.create"}}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  the base class has these names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def closed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:  # noqa: ARG001  its credentials
    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        Closed.requests.clear()
        yield "gs://closed"
        server.shutdown()


def message(outcome: Outcome) -> str:
    """The one line that says why."""
    assert (outcome.status, outcome.stdout) == (2, "")
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("rankbeam: ")]
    assert outcome.stderr.endswith(f"{line}\n")
    return line.removeprefix("rankbeam: ")


@pytest.mark.usefixtures("cloud")
def test_an_output_in_a_bucket_that_is_not_there(experiment: Path) -> None:
    refusal = message(rankbeam("evaluate", str(experiment), "--output", "gs://not-there/out"))
    assert refusal.startswith("gs://not-there/out")
    assert refusal.endswith("Not Found; does the bucket not-there exist? create it, or name another one")


@pytest.mark.parametrize("role", ["queries", "qrels", "corpus"])
def test_an_object_that_is_replaced_while_it_is_read(role: str, cloud: Cloud, tmp_path: Path) -> None:
    bucket = cloud.gcs.bucket()
    texts, judgements = json_texts([("q1", "who pays?")]), trec_qrels([("q1", "q1", 1)])
    dataset = {name: f"gs://{bucket}/{name}" for name in ("queries", "qrels", "corpus")}
    for name, path in dataset.items():
        files.write(path, (judgements if name == "qrels" else texts).encode())
    (content,) = cloud.gcs.folder.rglob(f"{bucket}/{role}")
    content.unlink()  # the emulator still lists it
    bm25 = {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 5}
    values = {"name": "x", "dataset": dataset, "configurations": [bm25], "metrics": ["R@5"], "output": {"path": "out"}}
    refusal = message(rankbeam("evaluate", write(tmp_path / "e.yaml", yaml.safe_dump(values))))
    problem = "reading failed: Not Found; it was replaced or deleted while it was read; run again"
    assert refusal.endswith(f"{dataset[role]}: {problem}")


def test_an_output_in_a_bucket_that_is_closed(experiment: Path, closed: str) -> None:
    refusal = message(rankbeam("evaluate", str(experiment), "--output", f"{closed}/out"))
    assert refusal.startswith(f"{closed}/out")
    assert refusal.endswith("Forbidden; grant the requesting account the role Storage Object User on the bucket closed")


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_part_that_was_not_completed_is_not_sent_when_it_is_collected(closed: str, is_closed: bool) -> None:
    rows = pa.table({"number": [1, 2]})
    part = Part(closed, rows.schema)
    part.write(rows)
    if is_closed:
        with pytest.raises(InvalidResponse):
            part.close()
    sent = len(Closed.requests)
    del part
    gc.collect()
    assert (sent, len(Closed.requests)) == (int(is_closed), int(is_closed))


def test_a_file_that_cannot_be_written_is_not_sent_again_when_it_is_collected(closed: str) -> None:
    with pytest.raises(InputError, match="Forbidden"):
        files.write(f"{closed}/a.json", b"{}")
    gc.collect()
    assert len([path for path in Closed.requests if "/upload/" in path]) == 1


@pytest.mark.usefixtures("cloud")
def test_an_input_in_a_bucket_that_is_not_there(experiment: Path) -> None:
    refusal = message(rankbeam("score", "gs://not-there/qrels", str(experiment.parent / "data" / "runs" / "test")))
    assert "gs://not-there/qrels: cannot be looked up: Not Found; does the bucket not-there exist?" in refusal


def test_an_input_in_a_bucket_that_is_closed(closed: str) -> None:
    refusal = message(rankbeam("validate", f"{closed}/e.yaml"))
    assert refusal.startswith(f"{closed}/e.yaml: cannot be looked up: Forbidden; grant the requesting account")


@pytest.mark.usefixtures("cloud")
def test_a_temp_location_is_tried_before_the_job_is_made(experiment: Path) -> None:
    loaded = load_experiment(str(experiment))
    execution = new_run(loaded)
    options = pipeline_options([*ON_DATAFLOW, "--temp_location=gs://not-there/temp"])
    with pytest.raises(InputError, match=r"^--temp_location: gs://not-there/temp.*does the bucket not-there exist\?"):
        submit(loaded, execution, options, RunRecord.of(loaded, execution), waits=True)


def gcloud(words: list[str], root: Path) -> None:
    """The effect of `gcloud storage`, with a folder a bucket: `cp` flattens, `rsync --recursive` does not."""
    assert words[:2] == ["gcloud", "storage"]
    command, *paths, target = words[2:]
    place = root / target.removeprefix("gs://")
    if command == "rsync":
        recursive, source = paths
        assert recursive == "--recursive"
        shutil.copytree(source, place, dirs_exist_ok=True)
        return
    assert command == "cp"
    assert target.endswith("/")
    place.mkdir(parents=True, exist_ok=True)
    for pattern in paths:
        for source in Path("/").glob(pattern.lstrip("/")):
            assert source.is_file()
            shutil.copy(source, place)


@pytest.mark.long
def test_what_is_printed_brings_every_file_to_the_place_that_is_printed(experiment: Path, tmp_path: Path) -> None:
    refused = rankbeam("evaluate", str(experiment), *ON_DATAFLOW, "--temp_location=gs://bucket/temp")
    lines = [line.strip() for line in refused.stderr.splitlines()]
    for line in lines:
        if line.startswith("gcloud "):
            gcloud(shlex.split(line), tmp_path / "cloud")
    places = dict(line.split(": gs://", 1) for line in lines if ": gs://" in line)
    content = yaml.safe_load(experiment.read_text())
    for role in content["dataset"]:
        content["dataset"][role] = f"{tmp_path}/cloud/{places[f'dataset.{role}']}"
    for configuration in content["configurations"]:
        configuration["retriever"]["path"] = f"{tmp_path}/cloud/{places[configuration['name'] + ', retriever.path']}"
    for name in ("data", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    experiment.write_text(yaml.safe_dump(content))
    done = rankbeam("evaluate", str(experiment), "--format", "csv")
    assert done.status == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [f"{name},all,RR,1.0" for name in ("file", "folder", "pattern", "flat")]
    assert os.listdir(tmp_path / "cloud") == ["bucket"]  # noqa: PTH208  names alone
