# ruff: noqa: F811  fixtures are named as what they give
"""Experiments whose results go to BigQuery: through the command line, against the strict stub and the emulators."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml
from support.campaigns import in_campaigns
from support.cli import Outcome, rankbeam
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.inputs import json_texts, trec_qrels, trec_run, write
from support.processes import COMMAND, Process
from support.strict_bigquery import Fault, StrictBigQuery, serve
from support.strict_bigquery.runs import finished

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.records import tables

DATASET = "test-project.warehouse"


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictBigQuery]:
    with serve() as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        server.dataset("warehouse")
        yield server


def experiment(folder: Path, dataset: str = DATASET, output: str = "out", **more: Any) -> str:
    """An experiment of two runs and two queries; returns its path."""
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0), ("q1", "d2", 0.0), ("q2", "d2", 1.0)]))
    write(folder / "queries.jsonl", json_texts([("q1", "first"), ("q2", "second")]))
    write(folder / "a.run", trec_run([("q1", "d1", 2.0), ("q1", "d2", 1.0), ("q2", "d1", 3.0), ("q2", "d2", 1.0)]))
    write(folder / "b.run", trec_run([("q1", "d2", 2.0), ("q2", "d2", 1.0)]))
    content = {
        "name": "to-bigquery",
        "dataset": {"qrels": "qrels", "queries": "queries.jsonl"},
        "configurations": [
            {"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}} for name in ("a", "b")
        ],
        "metrics": ["AP", "P@1"],
        "output": {"path": output, "rankings": True, "bigquery": dataset},
        **more,
    }
    return write(folder / "experiment.yaml", yaml.safe_dump(content, sort_keys=False))


def evaluate(path: str, *arguments: str) -> Outcome:
    return rankbeam("evaluate", path, "--run-id", "r1", *arguments)


def exact(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def in_files(output: Path, name: str, run_id: str = "r1") -> list[str]:
    return exact(ds.dataset(output / name / run_id, format="parquet").to_table().to_pylist())


def assert_loaded(bigquery: StrictBigQuery, output: Path) -> None:
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(output, name), name
    assert bigquery.names() == set(tables.TABLES)


@pytest.mark.long
def test_a_run_is_in_bigquery_when_the_command_ends_and_replaced_by_the_next(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    path = experiment(tmp_path)
    first = evaluate(path)
    assert (first.status, bigquery.rows("runs")[0]["experiment"]) == (0, "to-bigquery"), first.stderr
    assert f"\nBigQuery {DATASET}\n" in first.stdout
    assert_loaded(bigquery, tmp_path / "out")
    assert len(bigquery.rows("query_metrics")) == 4
    assert {document["doc_id"] for record in bigquery.rows("rankings") for document in record["documents"]} == {
        "d1",
        "d2",
    }
    begun = bigquery.rows("runs")[0]["started_at"]
    assert evaluate(path).status == 0
    assert_loaded(bigquery, tmp_path / "out")
    assert bigquery.rows("runs")[0]["started_at"] > begun
    rows = bigquery.rows("runs")
    assert rankbeam("evaluate", path, "--run-id", "r2").status == 0
    assert [row["run_id"] for row in bigquery.rows("runs")] == ["r1", "r2"]
    assert bigquery.rows("runs")[:1] == rows


@pytest.mark.campaign
def test_worker_processes_load_too(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    bigquery.faults.append(Fault("load", "accessDenied"))
    failed = evaluate(experiment(tmp_path), *options)
    assert failed.status == 1
    assert "permission denied: loading" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert evaluate(str(tmp_path / "experiment.yaml"), *options).status == 0
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(tmp_path / "out", name)


# Refused before anything is done


@pytest.mark.parametrize(
    ("dataset", "fault", "message"),
    [
        ("warehouse", None, "'warehouse' is not a BigQuery dataset; write project.dataset"),
        (
            "test-project.elsewhere",
            None,
            "make the dataset: bq --location=LOCATION mk --dataset test-project:elsewhere",
        ),
        (DATASET, Fault("datasets.get", "accessDenied"), "permission denied: as the script says; grant the account"),
        (DATASET, Fault("tables.get", "accessDenied"), "permission denied"),
        (DATASET, Fault("datasets.get", "drop", times=9), "is there a network?"),
    ],
    ids=["name", "missing", "permission", "table", "network"],
)
@pytest.mark.parametrize("command", ["evaluate", "validate"])
def test_what_cannot_be_loaded_is_refused_at_its_line(
    bigquery: StrictBigQuery, tmp_path: Path, dataset: str, fault: Fault | None, message: str, command: str
) -> None:
    bigquery.faults += [] if fault is None else [replace(fault)]
    path = experiment(tmp_path, dataset, metrics=["nDCG@ten"])
    refused = rankbeam(command, path)
    assert refused.status == 2
    line = next(number for number, text in enumerate(Path(path).read_text().splitlines(), 1) if "bigquery:" in text)
    assert f"{path}:{line}: output.bigquery: " in refused.stderr
    assert message in refused.stderr
    assert "nDCG@ten" in refused.stderr  # with all other problems
    assert not (tmp_path / "out").exists()
    assert bigquery.jobs == {}


def test_a_table_that_does_not_fit_is_refused_before_anything_is_done(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    finished(tmp_path / "out", "r1", parts=1, rows=1, experiment="to-bigquery")
    assert rankbeam("warehouse", "load", str(tmp_path / "out"), "--dataset", DATASET).status == 0
    bigquery.table("warehouse", "runs").resource["schema"]["fields"][3]["type"] = "INTEGER"
    begun = bigquery.rows("runs")
    refused = evaluate(experiment(tmp_path))
    assert refused.status == 2
    assert "runs.state is INTEGER there, and STRING here" in refused.stderr
    assert bigquery.rows("runs") == begun
    assert in_files(tmp_path / "out", "runs")


@pytest.mark.campaign
def test_a_bucket_elsewhere_than_the_dataset_is_refused(
    cloud: Cloud, bigquery: StrictBigQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulator has all buckets in the United States; datasets there take files of any bucket."""
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", bigquery.url)
    bucket = cloud.gcs.bucket()
    path = experiment(tmp_path, output=f"gs://{bucket}/out")
    refused = evaluate(path)
    assert refused.status == 2
    assert f"the bucket {bucket} is in US, and the dataset {DATASET} in europe-west1" in refused.stderr
    assert (list(cloud.gcs.folder.glob(f"{bucket}/*")), bigquery.jobs) == ([], {})
    bigquery.datasets["warehouse"] = "us-central1"
    bigquery.root = cloud.gcs.folder
    assert evaluate(path).status == 0


# A run id that another experiment has


@pytest.mark.campaign
def test_a_run_of_another_experiment_with_the_same_id_is_left_alone(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    """As in a matrix of CI jobs that are all called after the pull request."""
    assert evaluate(experiment(tmp_path / "a", name="ads")).status == 0
    path = experiment(tmp_path / "b", name="search")
    refused = evaluate(path)
    assert refused.status == 2
    problem = "the run id is in use there by the experiment ads, so 'search' cannot be loaded; choose another --run-id"
    assert f"{DATASET}: {problem}" in refused.stderr
    assert not (tmp_path / "b" / "out" / "runs").exists()
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(tmp_path / "a" / "out", name)
    before = in_files(tmp_path / "a" / "out", "runs")
    refused = evaluate(path, "--output", str(tmp_path / "a" / "out"))
    assert refused.status == 2
    assert (
        "run 'r1' belongs to the experiment 'ads', and 'search' would replace it; choose another --run-id"
        in refused.stderr
    )
    assert in_files(tmp_path / "a" / "out", "runs") == before


# A load that fails


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault("load", "invalid", text="rankings"), "refused: loading rankings: as the script says"),
        *in_campaigns(
            (Fault("script", "quotaExceeded"), "a quota is used up: as the script says"),
            (Fault("script", "invalidQuery"), "refused: as the script says"),
        ),
    ],
    ids=lambda value: value.on if isinstance(value, Fault) else "",
)
def test_a_load_that_fails_keeps_the_files_and_says_how_to_go_on(
    bigquery: StrictBigQuery, tmp_path: Path, fault: Fault, message: str
) -> None:
    bigquery.faults.append(replace(fault))
    failed = evaluate(experiment(tmp_path))
    output = tmp_path / "out"
    command = f"rankbeam warehouse load {output} --dataset {DATASET} --run-id r1"
    assert failed.status == 1
    assert f"run r1 was not loaded into {DATASET}: {message}" in failed.stderr
    assert f"The Parquet files in {output} are complete; load them with: {command}" in failed.stderr
    assert bigquery.seen("r1") == {}
    done = rankbeam(*command.split()[1:])
    assert (done.status, done.stdout) == (0, f"run r1 is in {DATASET}\n")
    assert_loaded(bigquery, output)


def test_a_run_without_a_failed_load_fails_as_before(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    path = experiment(tmp_path)
    write(tmp_path / "b.run", "q1 Q0 d1 1 one tag\n")
    refused = evaluate(path)
    assert refused.status == 2
    assert "b.run" in refused.stderr
    assert bigquery.jobs == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--dataset", DATASET], "holds no finished run"),
        (["out", "--dataset", DATASET, "--run-id", "r2"], "there are: r1"),
        (["out", "--dataset", "test-project.elsewhere"], "bq --location=LOCATION mk"),
        (["out", "--dataset", "p"], "write project.dataset"),
        (["out"], "Missing option '--dataset'"),
    ],
)
def test_what_cannot_be_loaded_by_hand(
    bigquery: StrictBigQuery, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(tmp_path / "out", "r1")
    monkeypatch.chdir(tmp_path)
    refused = rankbeam("warehouse", "load", *arguments)
    assert refused.status == 2
    assert message in refused.stderr
    assert bigquery.jobs == {}


# A run that is killed


@pytest.mark.campaign
@pytest.mark.parametrize("seen", ["rankbeam_load", "rankbeam_publish"])
def test_a_run_that_is_killed_while_it_loads_can_be_repeated(
    bigquery: StrictBigQuery, tmp_path: Path, seen: str
) -> None:
    bigquery.faults += [Fault("load", "slow", times=2, seconds=1.0), Fault("script", "slow", seconds=0.1)]
    path = experiment(tmp_path)
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with Process(COMMAND, "evaluate", path, "--run-id", "r1", **silent) as process:
        deadline = time.monotonic() + 90
        while not bigquery.began(seen):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert set(bigquery.seen("r1")) in ({*()}, set(tables.TABLES))
    loaded = rankbeam("warehouse", "load", str(tmp_path / "out"), "--dataset", DATASET)
    assert loaded.status == 0, loaded.stderr
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(tmp_path / "out", name)
    assert evaluate(path).status == 0
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(tmp_path / "out", name)


# Against the emulators


@pytest.fixture
def dataset(cloud: Cloud) -> str:
    """A new dataset there."""
    from google.cloud import bigquery as library

    name = f"{cloud.bigquery.project}.d{time.time_ns()}"
    library.Client(project=cloud.bigquery.project).create_dataset(name)
    return name


def counted(dataset: str) -> dict[str, tuple[int, int]]:
    """The rows of every table, and their executions."""
    from google.cloud import bigquery as library

    client = library.Client(project=dataset.partition(".")[0])
    counts = "SELECT '{1}', count(*), count(DISTINCT started_at) FROM `{0}.{1}`"
    query = " UNION ALL ".join(counts.format(dataset, name) for name in tables.TABLES)
    return {name: (count, executions) for name, count, executions in client.query(query).result()}


@pytest.mark.long
@pytest.mark.parametrize("place", ["local", *in_campaigns("cloud")])
def test_the_emulator_holds_a_run_once_however_often_it_is_made(
    cloud: Cloud, dataset: str, tmp_path: Path, place: str
) -> None:
    from google.cloud import bigquery as library

    output = str(tmp_path / "out") if place == "local" else f"gs://{cloud.gcs.bucket()}/out"
    path = experiment(tmp_path, dataset, output)
    for _ in range(2):
        done = evaluate(path)
        assert done.status == 0, done.stderr
    rows = {"runs": 1, "configurations": 2, "rankings": 4, "query_metrics": 4, "configuration_metrics": 4}
    counts = counted(dataset)
    assert counts == {name: (rows.get(name, counts[name][0]), min(1, counts[name][0])) for name in tables.TABLES}
    client = library.Client(project=dataset.partition(".")[0])
    assert {listed.table_id for listed in client.list_tables(dataset)} == set(tables.TABLES)
    best = f"SELECT d.doc_id FROM `{dataset}.rankings`, UNNEST(documents) AS d WHERE d.rank = 1 ORDER BY d.doc_id"
    assert [row.doc_id for row in client.query(best).result()] == ["d1", "d1", "d2", "d2"]
    for name, schema in tables.TABLES.items():
        columns = [field.to_api_repr() for field in client.get_table(f"{dataset}.{name}").schema]
        assert list(schemas.differences(columns, schemas.columns_of(schema))) == []


@pytest.mark.campaign
def test_the_emulator_shows_nothing_of_files_of_two_executions(cloud: Cloud, dataset: str, tmp_path: Path) -> None:
    assert cloud.bigquery.rest_url == os.environ["BIGQUERY_EMULATOR_HOST"]
    path = experiment(tmp_path, dataset)
    assert evaluate(path).status == 0
    (tmp_path / "out" / "rankings" / "r1").rename(tmp_path / "old")
    assert evaluate(path).status == 0
    before = counted(dataset)
    place = tmp_path / "out" / "rankings" / "r1"
    place.rename(tmp_path / "new")
    (tmp_path / "old").rename(place)
    refused = rankbeam("warehouse", "load", str(tmp_path / "out"), "--dataset", dataset)
    assert refused.status == 1
    assert "the files are of several executions; run the experiment again" in refused.stderr
    assert counted(dataset) == before


def test_the_command_has_help() -> None:
    shown = rankbeam("warehouse", "load", "--help")
    assert shown.status == 0
    assert "rankbeam warehouse load out/helpdesk --dataset my-project.search" in shown.stdout
    assert shown.stderr == ""
