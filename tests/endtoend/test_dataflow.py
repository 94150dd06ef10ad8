"""A job on Dataflow, from the command that submits it to the tables: the real runner, what it stages, what runs."""

import json
import signal
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.portability.api import beam_runner_api_pb2 as protos
from google.cloud import bigquery
from google.cloud.dataflow import JobType
from support import remote
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.dataflow import Dataflow, dataflow, execution
from support.dataflow.server import metric
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.inputs import trec_qrels, trec_run, write
from support.processes import COMMAND, Process
from support.runs import rankbeam, without_run
from support.standins import serve

from rankbeam.pipelines.dataflow import flex_template
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records import tables

HELPDESK = REPOSITORY / "examples" / "helpdesk"
FILES = ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv")
TABLES = [name for name in tables.TABLES if name != "runs"]
QUERIES = 20
STEP = {"namespace": "rankbeam", "step": "s1"}
REFUSAL = """Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1498, in process
rankbeam.transforms.records.errors.InputError: gs://b/qrels:3: the grade 'x' is no number [while running 'ReadDataset']
"""
NOT_LOADED = REFUSAL.partition("rankbeam")[0]
NOT_LOADED += "rankbeam.transforms.clients.bigquery.errors.LoadFailed: run r1 was not loaded into p.d: refused\n"


@pytest.fixture
def google(cloud: Cloud) -> Cloud:  # noqa: F811  the fixture
    """Google's storage and warehouse."""
    return cloud


@pytest.fixture
def bucket(google: Cloud) -> str:
    """A new bucket, as gs://…."""
    return f"gs://{google.gcs.bucket()}"


@pytest.fixture
def service(google: Cloud) -> Iterator[Dataflow]:
    """Dataflow."""
    with dataflow(google.environment) as running:
        yield running


def put(path: str, content: bytes) -> None:
    with FileSystems.create(path) as file:
        file.write(content)


def on_dataflow(bucket: str, service: Dataflow) -> list[str]:
    """The options of a job."""
    place = ["--project=p", "--region=r", f"--temp_location={bucket}/temp", f"--output={bucket}/out"]
    return ["--run-id=r1", "--runner=DataflowRunner", *place, f"--dataflow_endpoint={service.endpoint}"]


def small(bucket: str, folder: Path, more: str = "") -> str:
    """A small experiment: its file is on this machine, and what it reads is not."""
    put(f"{bucket}/qrels", trec_qrels([("q1", "d", 1.0), ("q2", "d", 1.0)]).encode())
    put(f"{bucket}/a.run", trec_run([("q1", "d", 1.0), ("q2", "e", 1.0)]).encode())
    text = f"name: small\ndataset: {{qrels: '{bucket}/qrels'}}\nconfigurations:\n"
    text += f"  - {{name: a, retriever: {{type: run_file, path: '{bucket}/a.run'}}}}\nmetrics: [RR]\n"
    return write(folder / "small.yaml", f"{text}output: {{path: out}}\n{more}")


def rows_of(dataset: str, name: str, schema: pa.Schema) -> pa.Table:
    """A table of BigQuery, as the Arrow table that it was loaded from."""
    client = bigquery.Client(project=dataset.partition(".")[0])
    rows = [dict(row) for row in client.query_and_wait(f"SELECT * FROM `{dataset}.{name}`")]
    return pa.Table.from_pylist(rows, schema)


@pytest.mark.campaign
def test_the_demo_runs_from_what_was_staged(bucket: str, service: Dataflow, google: Cloud, tmp_path: Path) -> None:
    dataset = f"{google.bigquery.project}.dataflow"
    bigquery.Client(project=google.bigquery.project).create_dataset(dataset)
    for name in FILES:
        put(f"{bucket}/helpdesk/{name}", (HELPDESK / name).read_bytes())
    text = (HELPDESK / "experiment.yaml").read_text()
    put(f"{bucket}/helpdesk/experiment.yaml", f"{text}  bigquery: {dataset}\n".encode())
    experiment = f"{bucket}/helpdesk/experiment.yaml"
    there = rankbeam("evaluate", experiment, "--wait", *on_dataflow(bucket, service))
    assert there.exit_code == 0, there.stderr

    here = rankbeam("evaluate", HELPDESK / "experiment.yaml", "--run-id", "r1", "--output", tmp_path)
    assert there.stdout.partition("\nrun ")[0] == here.stdout.partition("\nrun ")[0]
    remote, local = Results(f"{bucket}/out", "r1"), Results(str(tmp_path), "r1")
    for name in TABLES:
        expected = without_run(local.table(name))
        assert without_run(remote.table(name)) == expected, name
        assert without_run(rows_of(dataset, name, tables.TABLES[name])) == expected, name

    # What ran is what was staged, and nothing of this checkout.
    modules = service.last.answer["modules"]
    assert {
        "rankbeam.transforms.read",
        "rankbeam.transforms.score",
        "rankbeam.transforms.write.tables",
    } <= modules.keys()
    assert [path for path in modules.values() if "/worker/lib/" not in path] == []
    unused = {"duckdb", "jinja2", "rich", "click"}
    assert unused & set(service.last.answer["packages"]) == set()

    shown = rankbeam("status", f"{bucket}/out", "--format", "json")
    assert shown.exit_code == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert (document["state"], document["run_id"], document["problems"]) == ("done", "r1", [])
    assert (document["counters"]["judged_queries"], document["counters"]["queries_scored"]) == (64, 3 * 64)


def check_what_dataflow_is_asked_for(body: dict[str, Any]) -> None:
    assert (body["name"], body["type"]) == ("rankbeam-small-r1", JobType.JOB_TYPE_BATCH)
    assert body["labels"] == {"rankbeam-run-id": "r1", "rankbeam-experiment": "small", "team": "search"}
    (pool,) = body["environment"]["workerPools"]
    assert (pool["numWorkers"], pool["autoscalingSettings"]["maxNumWorkers"], pool["numThreadsPerWorker"]) == (1, 4, 12)
    experiments = body["environment"]["experiments"]
    assert {"use_runner_v2", "no_use_multiple_sdk_containers"} <= set(experiments)
    assert "use_multiple_sdk_containers" not in experiments
    options = body["environment"]["sdkPipelineOptions"]["options"]
    assert options["save_main_session"] is False
    staged = [package["name"] for package in pool["packages"]]
    assert "rankbeam-0.1.0-py3-none-any.whl" in staged
    assert "pickled_main_session" not in staged


@pytest.mark.long
def test_a_dry_run_sends_nothing(bucket: str, service: Dataflow, google: Cloud, tmp_path: Path) -> None:
    experiment, own = small(bucket, tmp_path), write(tmp_path / "own-1.0.tar.gz", "a package of the user")
    arguments = [experiment, *on_dataflow(bucket, service), "--dry-run", f"--extra_package={own}", "--num_workers=2"]
    before = stored(google)
    dry = rankbeam("evaluate", *arguments, "--format=json")
    assert (stored(google), service.requests) == (before, [])
    assert dry.exit_code == 0, dry.stderr
    document = json.loads(dry.stdout)
    assert (document["run_id"], document["workers"], document["seconds"]) == ("r1", [2, 4], 0.0)
    staged = {file["name"]: file["bytes"] for file in document["staged"]}
    assert staged["own-1.0.tar.gz"] == Path(own).stat().st_size
    assert staged["rankbeam-0.1.0-py3-none-any.whl"] > 1_000_000
    assert document["options"]["max_num_workers"] == 4

    # It describes the job that is submitted.
    service.holds = True
    assert rankbeam("evaluate", *(word for word in arguments if word != "--dry-run")).exit_code == 0
    (pool,) = service.last.body["environment"]["workerPools"]
    assert {package["name"] for package in pool["packages"]} == staged.keys() - {"pipeline.pb"}
    url = service.last.body["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]
    pipeline = protos.Pipeline.FromString(execution.download(url, google.environment))
    transforms = pipeline.components.transforms
    assert sum(document["steps"].values()) == sum(not one.subtransforms for one in transforms.values())
    assert {"ReadDataset", "ScoreRankings", "FinishRun"} <= document["steps"].keys()


def stored(google: Cloud) -> list[tuple[str, int]]:
    """Every object of the storage, with the time of its change."""
    files = (path for path in google.gcs.folder.rglob("*") if path.is_file())
    return sorted((str(path), path.stat().st_mtime_ns) for path in files)


def test_a_dry_run_is_of_dataflow(tmp_path: Path) -> None:
    outcome = rankbeam("evaluate", HELPDESK / "experiment.yaml", "--output", tmp_path / "out", "--dry-run")
    assert outcome.exit_code == 2
    assert "--dry-run describes a job on Dataflow; `rankbeam plan` shows what a run would cost" in outcome.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_job_that_nobody_waits_for(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    service.holds = True
    experiment, options = small(bucket, tmp_path), [*on_dataflow(bucket, service), "--labels=team=search"]
    outcome = rankbeam("evaluate", experiment, *options)
    assert outcome.exit_code == 0, outcome.stderr
    job_id, job = next(iter(service.jobs)), service.last
    check_what_dataflow_is_asked_for(job.body)
    assert outcome.stdout.splitlines()[1].startswith(f"job      {job_id}, submitted 2")
    assert [line for line in outcome.stdout.splitlines() if not line.startswith("job ")] == [
        "run      r1 of small",
        f"console  https://console.cloud.google.com/dataflow/jobs/r/{job_id}?project=p",
        f"status   rankbeam status {bucket}/out --run-id r1",
        f"cancel   gcloud dataflow jobs cancel {job_id} --project p --region r",
    ]
    record = json.loads(files.read_all(f"{bucket}/out/jobs/r1.json"))
    assert (record["job_id"], record["project"], record["region"]) == (job_id, "p", "r")
    assert record["options"]["max_num_workers"] == 4

    # A second job would take the rows of the first away.
    second = rankbeam("evaluate", experiment, *options)
    assert (second.exit_code, len(service.jobs)) == (2, 1)
    assert f"the job {job_id} is still writing the run r1; wait for it, cancel it" in second.stderr
    elsewhere = rankbeam("evaluate", experiment, "--run-id=r1", f"--output={bucket}/out", "--runner=PrismRunner")
    assert (elsewhere.exit_code, elsewhere.stderr) == (2, second.stderr)

    # What bundles at work have counted is more than what bundles that are done have.
    job.enter("JOB_STATE_RUNNING")
    job.metrics = [
        metric("calls_made", 0, STEP),
        metric("calls_made", 40, STEP, tentative=True),
        metric("queries_scored", 3, STEP),
        metric("queries_scored", 4, {**STEP, "step": "s2"}),
        metric("calls_made", 9, {**STEP, "namespace": "another"}),
        metric("unknown_here", 9, STEP),
    ]
    shown = rankbeam("status", f"{bucket}/out", "--run-id", "r1")
    assert shown.exit_code == 4, shown.stderr
    lines = [line for line in shown.stdout.splitlines()[3:] if not line.startswith(("rate ", "cancel "))]
    assert lines == ["state    running", "progress 7 queries", "", "40  calls made", " 7  queries scored"]

    by_id = ["status", job_id, "--project", "p", f"--dataflow_endpoint={service.endpoint}"]
    status = json.loads(rankbeam(*by_id, "--region", "r", "--format", "json").stdout)
    assert (status["state"], status["counters"]["calls_made"], status["counters"]["failures"]) == ("running", 40, 0)
    unknown = rankbeam(*by_id, "--region", "elsewhere")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "Dataflow has no such job in region elsewhere of p: " in unknown.stderr

    done = rankbeam("cancel", f"{bucket}/out", "--run-id", "r1")
    assert (done.exit_code, job.state) == (0, "JOB_STATE_CANCELLED"), done.stderr
    again = rankbeam("cancel", f"{bucket}/out", "--run-id", "r1")
    assert again.exit_code == 2
    assert "has ended (cancelled); there is nothing to cancel" in again.stderr
    cancelled = rankbeam("status", f"{bucket}/out")
    assert cancelled.exit_code == 1
    assert "state    cancelled" in cancelled.stdout.splitlines()


@pytest.mark.campaign
def test_a_job_of_a_template_is_found_by_its_name_and_its_run(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    """The launcher writes the job to a file, and Dataflow starts the job from it, every night under one name."""
    service.holds = True
    options = [word for word in on_dataflow(bucket, service) if not word.startswith(("--run-id", "--output"))]
    options += [f"--template_location={bucket}/template", "--job_name=rankbeam-nightly"]
    put(f"{bucket}/e.yaml", Path(small(bucket, tmp_path)).read_bytes())
    template = [f"--experiment={bucket}/e.yaml", f"--output={bucket}/out"]
    for run_id in ("r1", "r2"):
        flex_template.main([*template, f"--run_id={run_id}", *options])
        early = rankbeam("status", f"{bucket}/out")
        assert early.exit_code == 2
        assert f"rankbeam-nightly: Dataflow has no job of this name for run {run_id} in region r of p" in early.stderr
        service.create("p", "r", json.loads(files.read_all(f"{bucket}/template")))
        service.last.enter("JOB_STATE_RUNNING" if run_id == "r2" else "JOB_STATE_DONE")
    first, second = service.jobs
    for run_id, job_id, status in (("r1", first, 0), ("r2", second, 4)):
        shown = rankbeam("status", f"{bucket}/out", "--run-id", run_id)
        assert shown.exit_code == status, shown.stderr
        assert f"job      {job_id}, submitted " in shown.stdout
    cancelled = rankbeam("cancel", f"{bucket}/out")
    assert (cancelled.exit_code, service.last.state) == (0, "JOB_STATE_CANCELLED"), cancelled.stderr


@pytest.mark.campaign
def test_a_run_that_its_job_could_not_load_is_loaded_by_its_report(
    bucket: str, service: Dataflow, google: Cloud, tmp_path: Path
) -> None:
    dataset = f"{google.bigquery.project}.later"
    warehouse = bigquery.Client(project=google.bigquery.project)
    warehouse.create_dataset(dataset)
    experiment = Path(small(bucket, tmp_path))
    text = experiment.read_text().replace("{path: out}", f"{{path: out, bigquery: {dataset}}}")
    experiment.write_text(text)
    service.holds = True
    assert rankbeam("evaluate", experiment, *on_dataflow(bucket, service)).exit_code == 0
    warehouse.delete_dataset(dataset)
    service.last.may_run.set()
    assert service.last.ended.wait(120)
    warehouse.create_dataset(dataset)
    assert rankbeam("status", f"{bucket}/out").exit_code == 1
    first, second = rankbeam("report", f"{bucket}/out"), rankbeam("report", f"{bucket}/out")
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr
    assert f"run r1: loaded the run into {dataset}" in first.stderr
    assert second.stderr == ""
    assert [row["run_id"] for row in rows_of(dataset, "runs", tables.TABLES["runs"]).to_pylist()] == ["r1"]


@pytest.mark.campaign
def test_a_job_as_json(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    service.holds = True
    outcome = rankbeam("evaluate", small(bucket, tmp_path), *on_dataflow(bucket, service), "--format=json")
    document = json.loads(outcome.stdout)
    assert (outcome.exit_code, document["job_id"], document["run_id"]) == (0, next(iter(service.jobs)), "r1")


@pytest.mark.long
@pytest.mark.parametrize(
    ("report", "status", "message", "remaining"),
    [
        (REFUSAL, 2, "rankbeam: gs://b/qrels:3: the grade 'x' is no number\n", 0),
        *in_campaigns(
            (
                "Workflow failed. Causes: disk",
                1,
                "rankbeam: the job ended in state failed: Workflow failed. Causes: disk\n",
                0,
            ),
            (NOT_LOADED, 1, "LoadFailed: run r1 was not loaded into p.d", 1),
        ),
    ],
)
def test_a_job_that_fails(
    bucket: str, service: Dataflow, tmp_path: Path, report: str, status: int, message: str, remaining: int
) -> None:
    def write_rows(_: object) -> str:
        put(f"{bucket}/out/query_metrics/r1/part.parquet", b"of a worker that is no more")
        return report

    service.refuses = write_rows
    outcome = rankbeam("evaluate", small(bucket, tmp_path), "--wait", *on_dataflow(bucket, service))
    assert (outcome.exit_code, outcome.stdout) == (status, "")
    assert message in outcome.stderr
    assert FileSystems.exists(f"{bucket}/out/query_metrics/r1/part.parquet") is bool(remaining)
    again = rankbeam("status", f"{bucket}/out")
    assert again.exit_code == 1
    assert again.stdout.endswith(f"\nstate    failed\n\n{report.strip().splitlines()[-1]}\n")


@pytest.mark.long
def test_a_job_that_dataflow_does_not_take(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    service.denies = "nobody@p.example lacks dataflow.jobs.create"
    outcome = rankbeam("evaluate", small(bucket, tmp_path), *on_dataflow(bucket, service))
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("rankbeam: rankbeam-small-r1: a request to Google Cloud failed: POST http")
    assert outcome.stderr.endswith(": nobody@p.example lacks dataflow.jobs.create\n")


@pytest.mark.campaign
def test_calls_are_made_once_whatever_job_wants_them(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    for name, path in remote.dataset(tmp_path, QUERIES).items():
        put(f"{bucket}/{name}.jsonl" if name == "queries" else f"{bucket}/{name}", Path(path).read_bytes())
    with serve("http", answers=remote.answers(QUERIES)) as server:
        experiment = {
            "dataset": {"queries": f"{bucket}/queries.jsonl", "qrels": f"{bucket}/qrels"},
            "configurations": [{"name": "asked", "retriever": remote.http(server), "top_k": 20}],
            "quotas": {"http": {"requests_per_minute": 60_000}},
        }
        path = remote.write_experiment(tmp_path, experiment)
        for run_id, counters in (("r1", (QUERIES, 0)), ("r2", (0, QUERIES))):
            options = [*on_dataflow(bucket, service), "--run-id", run_id]
            outcome = rankbeam("evaluate", path, "--wait", *options)
            assert outcome.exit_code == 0, outcome.stderr
            shown = json.loads(rankbeam("status", f"{bucket}/out", "--format", "json").stdout)
            assert shown["run_id"] == run_id
            assert (shown["counters"]["calls_made"], shown["counters"]["ledger_hits"]) == counters
        assert server.stats().calls == QUERIES
    first, second = (Results(f"{bucket}/out", run_id) for run_id in ("r1", "r2"))
    assert without_run(first.table("query_metrics")) == without_run(second.table("query_metrics"))
    ledger = [path.path for path in FileSystems.match([f"{bucket}/out/ledger/**"])[0].metadata_list]
    assert ledger != []


@pytest.mark.campaign
def test_a_gate_that_a_job_misses(bucket: str, service: Dataflow, tmp_path: Path) -> None:
    experiment = small(bucket, tmp_path, "gates: [{metric: RR, at_least: 0.6}]\n")
    outcome = rankbeam("evaluate", experiment, "--wait", *on_dataflow(bucket, service))
    assert outcome.exit_code == 3, outcome.stderr
    assert "0.5000" in outcome.stdout
    again = rankbeam("report", f"{bucket}/out")
    assert (again.exit_code, again.stderr) == (0, "")  # the command that waited has finished the run


@pytest.mark.parametrize("number", [signal.SIGINT, *in_campaigns(signal.SIGTERM)])
def test_ctrl_c_leaves_the_job_alone(bucket: str, service: Dataflow, tmp_path: Path, number: signal.Signals) -> None:
    service.holds = True
    arguments = ["evaluate", small(bucket, tmp_path), "--wait", *on_dataflow(bucket, service)]
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": REPOSITORY}
    with Process(COMMAND, *arguments, **piped) as process:
        assert process.stderr is not None
        before = list(takewhile(lambda line: not line.startswith("pending"), process.stderr))
        assert process.poll() is None, before
        process.send_signal(number)
        printed, messages = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert "rankbeam: interrupted; the job goes on; `rankbeam status " in messages
    assert f"`gcloud dataflow jobs cancel {next(iter(service.jobs))} --project p --region r` cancels it" in messages
    assert service.last.state == "JOB_STATE_PENDING"
