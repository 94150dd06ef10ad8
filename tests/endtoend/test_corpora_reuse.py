"""Corpora that are used again, and deleted: messages name missing documents each time, and no document is left over."""

import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import rag_corpora as rag
from support.cli import rankbeam, rankbeam_process
from support.flink_rest import job
from support.job_server import job_server
from support.killing import Step, killed_at
from support.runs import evaluated
from support.standins import Standin

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.run import corpora
from rankbeam.pipelines.run.build import build
from rankbeam.pipelines.run.evaluate import new_run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.corpora.rag_engine import corpus_client
from rankbeam.transforms.clients.corpora.rag_engine import objects as objects_of_bucket

DOCUMENTS = 25


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with rag.rag_engine(tmp_path, monkeypatch, broken="broken") as server:
        yield server


def objects(server: Standin) -> list[str]:
    names: list[str] = server.stats().extra["objects"]
    return names


def experiment(folder: Path, server: Standin, documents: int = DOCUMENTS, **more: Any) -> str:
    return rag.experiment(folder, server, rag.dataset(folder, documents), **more)


def imports(server: Standin) -> dict[str, int]:
    """The number of imports that the service received, and the most imports of one file."""
    stats = server.stats()
    times = {number for files in stats.extra["imports"].values() for number in files.values()}
    return {"asked": stats.queries["ImportRagFiles"], "most": max(times)}


def lacking(folder: Path) -> set[tuple[str, str, str, str]]:
    rows = find_run(str(folder / "out")).table("failures").to_pylist()
    return {(row["kind"], row["corpus"], row["doc_id"], row["message"]) for row in rows if row["stage"] == "import"}


@pytest.mark.campaign
def test_documents_that_a_corpus_lacks_are_failures_of_every_run_that_uses_it(tmp_path: Path, server: Standin) -> None:
    files = rag.dataset(tmp_path, DOCUMENTS)
    with Path(files["corpus"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "a broken one", "text": "never imported"}) + "\n")
        file.write(json.dumps({"_id": "an empty one", "text": ""}) + "\n")
    path = rag.experiment(tmp_path, server, files, corpus={"max_import_failures": 2})
    assert rankbeam("evaluate", path).status == 0
    first, before = lacking(tmp_path), imports(server)
    again = rankbeam("evaluate", path)
    reused, row = lacking(tmp_path), find_run(str(tmp_path / "out")).table("corpora").to_pylist()[0]
    assert again.status == 0, again.stderr
    assert imports(server) == before
    assert {(kind, doc_id) for kind, _, doc_id, _ in first} == {
        ("unavailable", "a broken one"),
        ("invalid", "an empty one"),
    }
    assert "the file is broken" in {message for *_, message in first}
    assert reused == first
    assert (row["state"], row["files"], row["failed_files"]) == ("reused", 25, 2)

    strict = rag.experiment(tmp_path, server, files, corpus={"max_import_failures": 1})
    planned, refused = rankbeam("plan", strict), rankbeam("evaluate", strict)
    assert "imports what is missing" in planned.stdout
    assert refused.status == 1
    assert "corpus kb: 2 documents could not be imported, and max_import_failures is 1" in refused.stderr
    assert imports(server)["asked"] > before["asked"]
    assert imports(server)["most"] == 1


@pytest.mark.long
def test_documents_are_deleted_with_the_last_corpus_that_needs_them(tmp_path: Path, server: Standin) -> None:
    path = experiment(tmp_path, server, grid={"chunk_size": [12, 16]})
    assert evaluated(path).run["state"] == "done"
    first, second = (
        corpus["resource"] for corpus in json.loads(rankbeam("corpora", "list", path, "--format=json").stdout)
    )
    staged = [name for name in objects(server) if "/documents/" in name]

    one = rankbeam("corpora", "delete", path, first, "--yes")
    assert "with 0 staged documents that no other corpus needs" in one.stdout
    assert [name for name in objects(server) if "/documents/" in name] == staged
    tried = rankbeam("corpora", "delete", path, second, "--dry-run")
    assert f"with {DOCUMENTS} staged documents that no other corpus needs" in tried.stdout
    assert [name for name in objects(server) if "/documents/" in name] == staged
    other = rankbeam("corpora", "delete", path, second, "--yes")
    assert f"deleted: {DOCUMENTS} staged documents that no corpus needs" in other.stdout
    assert objects(server) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "step",
    [Step(objects_of_bucket, "Objects.delete"), Step(corpus_client, "CorpusClient.delete")],
    ids=["after the documents", "after the corpora"],
)
def test_a_deletion_that_was_killed_is_completed_when_it_is_repeated(
    tmp_path: Path, server: Standin, step: Step
) -> None:
    path = experiment(tmp_path, server)
    evaluated(path)
    deletion = ["corpora", "delete", path, server.stats().extra["corpora"][0]["name"], "--yes"]
    assert killed_at(step, deletion, tmp_path).returncode == -signal.SIGKILL
    rankbeam(*deletion)
    assert (server.stats().extra["corpora"], objects(server)) == ([], [])


@pytest.mark.campaign
def test_staged_documents_may_be_kept_and_are_not_uploaded_again(tmp_path: Path, server: Standin) -> None:
    path = experiment(tmp_path, server)
    assert rankbeam("evaluate", path).status == 0
    name = server.stats().extra["corpora"][0]["name"]
    assert rankbeam("corpora", "delete", path, name, "--yes", "--keep-staged").status == 0
    assert len(objects(server)) == DOCUMENTS
    again = rankbeam("evaluate", path)
    assert again.status == 0
    assert "0 documents uploaded" in again.stderr


@pytest.mark.campaign
def test_what_is_kept_for_the_run_is_deleted_by_the_process_that_follows_its_job(
    tmp_path: Path, server: Standin
) -> None:
    path = experiment(tmp_path, server, corpus={"keep": "run"})
    with job_server(tmp_path) as address:
        followed = rankbeam("evaluate", path, "--runner", "PortableRunner", "--job_endpoint", address)
    assert followed.status == 0, followed.stderr
    assert server.stats().extra["created"] == 1
    assert (server.stats().extra["corpora"], objects(server)) == ([], [])
    left = rankbeam("evaluate", path, "--runner", "DataflowRunner", "--project", "p", "--region", "r")
    assert left.status == 2
    assert (
        "corpora.kb.keep: run deletes the corpus when the run has ended, but this process does not wait" in left.stderr
    )
    assert server.stats().extra["created"] == 1


@pytest.mark.campaign
def test_what_is_kept_for_the_run_is_deleted_by_the_first_report_where_nobody_waited(
    tmp_path: Path, server: Standin
) -> None:
    """As after a kill of the command that followed the job: its engine has gone, and the tables are there."""
    path = experiment(tmp_path, server, corpus={"keep": "run"})
    loaded = load_experiment(path)
    execution = new_run(loaded, "r1")
    record = RunRecord.of(loaded, execution)
    build(corpora.prepare_corpora(loaded, execution), execution, pipeline_options([])).run().wait_until_finish()
    job(Path(loaded.output), "http://127.0.0.1:1", record).save()
    assert len(server.stats().extra["corpora"]) == 1
    first, second = rankbeam("report", loaded.output), rankbeam("report", loaded.output)
    assert (first.status, second.status) == (0, 0), first.stderr
    assert "run r1: ended the use of the corpora that exist until the end of the run" in first.stderr
    assert second.stderr == ""
    assert (server.stats().extra["corpora"], objects(server)) == ([], [])


@pytest.mark.long
def test_a_corpus_that_others_delete_during_its_import_is_built_anew_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, endless_imports=1) as server, ThreadPoolExecutor(1) as beside:
        path = experiment(tmp_path, server)
        run = beside.submit(rankbeam_process, "evaluate", path)
        while not server.stats().queries.get("ImportRagFiles") and not run.done():
            time.sleep(0.05)
        name = server.stats().extra["corpora"][0]["name"]
        place = (rag.LOCATION, "--api-endpoint", server.url)
        assert rankbeam("corpora", "delete", *place, name, "--yes").status == 0
        ended, again = run.result(), rankbeam("evaluate", path)
        (there,) = server.stats().extra["corpora"]
    assert ended.status == 1, ended.stderr
    assert f"corpus kb: {name} was deleted in the meantime; run again to rebuild it" in ended.stderr
    assert again.status == 0, again.stderr
    assert (there["name"] != name, there["files"]) == (True, DOCUMENTS)


@pytest.mark.campaign
def test_several_regions_are_listed_at_once(tmp_path: Path, server: Standin) -> None:
    elsewhere = {"location": "projects/p/locations/europe-west4"}
    assert rankbeam("evaluate", experiment(tmp_path, server)).status == 0
    assert rankbeam("evaluate", experiment(tmp_path, server, corpus=elsewhere)).status == 0
    both = rankbeam(
        "corpora", "list", "projects/p/locations/us-central1,europe-west4", "--api-endpoint", server.url
    ).stdout.splitlines()[2:]
    assert [line.split("/")[3] for line in both] == ["us-central1", "europe-west4"]
    names = [line.split()[0] for line in both]
    place = ("projects/p/locations/us-central1,europe-west4", "--api-endpoint", server.url)
    deleted = rankbeam("corpora", "delete", *place, names[1], "--yes")
    assert deleted.status == 0, deleted.stderr
    assert "with 0 staged documents" in deleted.stdout  # the corpus of the other region needs them
    assert [corpus["name"] for corpus in server.stats().extra["corpora"]] == [names[0]]


@pytest.mark.campaign
def test_two_runs_with_ledgers_of_their_own_share_a_corpus_that_is_kept_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rag.rag_engine(tmp_path, monkeypatch, seconds_per_file=0.2) as server, ThreadPoolExecutor(2) as beside:
        quotas = {"rag_engine": {"requests_per_minute": 60}, "rag_engine_data": {"requests_per_minute": rag.FAST}}
        files = rag.dataset(tmp_path, DOCUMENTS, 8)
        paths = [rag.experiment(tmp_path / name, server, files, corpus={"keep": "run"}, quotas=quotas) for name in "ab"]
        done = list(beside.map(partial(rankbeam_process, "evaluate"), paths))
        stats = server.stats()
    assert [outcome.status for outcome in done] == [0, 0], "\n".join(outcome.stderr for outcome in done)
    assert {times for files in stats.extra["imports"].values() for times in files.values()} == {1}
    assert stats.queries["ImportRagFiles"] == 1
    assert (stats.extra["corpora"], stats.extra["objects"]) == ([], [])
