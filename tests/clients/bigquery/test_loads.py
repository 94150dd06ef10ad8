"""Loading a run into BigQuery: all of it or nothing, once, whatever goes wrong on the way."""

import dataclasses
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.processes import Process
from support.strict_bigquery import Fault, StrictBigQuery, serve
from support.strict_bigquery.runs import BEGAN, finished, row, written

from rankbeam.transforms import load as stage
from rankbeam.transforms.clients.bigquery import loads, publish, schemas
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import Patience, Session
from rankbeam.transforms.clients.bigquery.tables import destination, ensure
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

QUICK = Patience(conflicts=4, first_s=0.0, poll_s=0.005)
DATASET = DatasetName("test-project", "warehouse")


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StrictBigQuery]:
    with serve(root=tmp_path / "cloud") as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        server.dataset("warehouse")
        yield server


def load(folders: dict[str, str], run_id: str = "run") -> None:
    publish.load_run(DATASET, run_id, folders, QUICK)


def refused(folders: dict[str, str], run_id: str = "run") -> str:
    with pytest.raises(LoadFailed) as caught:
        load(folders, run_id)
    return str(caught.value)


def in_files(folders: dict[str, str], name: str) -> list[str]:
    return exact(pq.read_table(folders[name]).to_pylist())


def exact(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True, default=str) for each in rows)


def assert_holds(bigquery: StrictBigQuery, folders: dict[str, str]) -> None:
    """Exactly the rows of these files are there, and nothing that was only needed on the way."""
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name), name
    assert bigquery.names() == set(tables.TABLES)


def columns(*lines: str) -> list[dict[str, Any]]:
    """Columns from "name TYPE MODE"."""
    return [dict(zip(("name", "type", "mode"), line.split(), strict=True)) for line in lines]


def nested(name: str, fields: list[dict[str, Any]], mode: str = "REPEATED") -> dict[str, Any]:
    return {"name": name, "type": "RECORD", "mode": mode, "fields": fields}


# Schemas


def test_columns_of_rankings_with_their_nested_documents() -> None:
    found = schemas.columns_of(tables.RANKINGS)
    assert [(each["name"], each["type"], each["mode"]) for each in found] == [
        ("run_id", "STRING", "REQUIRED"),
        ("experiment", "STRING", "REQUIRED"),
        ("started_at", "TIMESTAMP", "REQUIRED"),
        ("config_id", "STRING", "REQUIRED"),
        ("query_id", "STRING", "REQUIRED"),
        ("documents", "RECORD", "REPEATED"),
    ]
    wanted = ["rank INTEGER REQUIRED", "doc_id STRING REQUIRED", "score FLOAT NULLABLE", "grade FLOAT NULLABLE"]
    assert found[-1]["fields"] == columns(*wanted, "text STRING NULLABLE")


@pytest.mark.parametrize(
    ("there", "difference"),
    [
        ("n STRING NULLABLE", "n is STRING there, and INTEGER here"),
        ("n INTEGER REPEATED", "n is REPEATED there, and REQUIRED here"),
        ("other INTEGER NULLABLE", "n is missing there, and cannot be added because it is REQUIRED here"),
    ],
)
def test_differences_of_a_column(there: str, difference: str) -> None:
    assert list(schemas.differences(columns(there), columns("n INTEGER REQUIRED"))) == [difference]


def test_differences_of_nested_columns_and_of_required_ones_that_are_unknown_here() -> None:
    there = [nested("a", columns("b STRING NULLABLE", "c STRING REQUIRED")), *columns("d STRING REQUIRED")]
    assert list(schemas.differences(there, [nested("a", columns("B FLOAT NULLABLE"))])) == [
        "a.B is STRING there, and FLOAT here",
        "a.c is REQUIRED there, and unknown here",
        "d is REQUIRED there, and unknown here",
    ]


def test_what_is_null_here_and_required_there_is_relaxed_and_never_the_reverse() -> None:
    there = [nested("a", columns("b FLOAT REQUIRED", "c FLOAT NULLABLE"), "REQUIRED")]
    here = [nested("A", columns("b FLOAT NULLABLE", "c FLOAT REQUIRED"), "NULLABLE")]
    assert list(schemas.differences(there, here)) == []
    assert schemas.merged(there, here) == [nested("a", columns("b FLOAT NULLABLE", "c FLOAT NULLABLE"), "NULLABLE")]


def test_a_record_that_is_added_requires_nothing() -> None:
    record = nested("r", [*columns("b FLOAT REQUIRED"), nested("c", columns("d STRING REQUIRED"), "REQUIRED")])
    relaxed = nested("r", [*columns("b FLOAT NULLABLE"), nested("c", columns("d STRING NULLABLE"), "NULLABLE")])
    there = columns("n FLOAT REQUIRED")
    assert schemas.merged(there, [*there, record]) == [*there, relaxed]


@given(st.data())
def test_a_table_that_lacks_columns_is_completed_at_every_depth(data: st.DataObject) -> None:
    wanted = schemas.columns_of(tables.TABLES[data.draw(st.sampled_from(sorted(tables.TABLES)))])

    def thinned(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [each for each in given if each["mode"] == "REQUIRED" or data.draw(st.booleans())]
        return [{**each, "fields": thinned(each["fields"])} if "fields" in each else each for each in kept]

    own = columns("of_others STRING NULLABLE")
    existing = [*own, *data.draw(st.permutations(thinned(wanted)))]
    assert list(schemas.differences(existing, wanted)) == []
    merged = schemas.merged(existing, wanted)
    assert [each["name"] for each in merged[: len(existing)]] == [each["name"] for each in existing]
    assert schemas.merged(merged, wanted) == merged

    def names(given: list[dict[str, Any]], prefix: str = "") -> set[str]:
        below = [names(each["fields"], f"{prefix}{each['name']}.") for each in given if "fields" in each]
        return {f"{prefix}{each['name']}" for each in given}.union(*below)

    assert names(merged) == names(wanted) | {"of_others"}


# A load without trouble


def test_every_table_is_made_partitioned_and_clustered_and_holds_the_rows_of_its_files(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out", parts=3)
    load(folders)
    assert_holds(bigquery, folders)
    for name, schema in tables.TABLES.items():
        resource = bigquery.table("warehouse", name).resource
        assert resource["timePartitioning"] == {"type": "DAY", "field": "started_at"}
        cluster = [each for each in ("run_id", "experiment", "config_id") if each in schema.names]
        assert resource["clustering"] == {"fields": cluster}
        assert resource["schema"]["fields"] == schemas.columns_of(schema)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES)
    assert len(bigquery.began("rankbeam_publish")) == 1


def test_files_in_cloud_storage_are_loaded_by_name(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "cloud" / "bucket" / "out", parts=3)
    session = Session(DATASET, QUICK)
    local = loads.find_run("run", folders)
    uris = {
        name: tuple((f"gs://{Path(path).relative_to(tmp_path / 'cloud')}", size) for path, size in parts)
        for name, parts in local.parts.items()
    }
    run = dataclasses.replace(local, parts=uris)
    wanted = {name: ensure(session, name) for name in tables.TABLES}
    loads.load(session, run, "key", wanted)
    for name in tables.TABLES:
        assert exact(bigquery.rows(loads.staging_name("key", name))) == in_files(folders, name)
        (job,) = bigquery.began(f"rankbeam_load_key_{name}_")
        assert job.configuration["load"]["sourceUris"] == [path for path, _ in uris[name]]


def test_a_pattern_stands_for_more_files_than_a_job_may_name(bigquery: StrictBigQuery) -> None:
    paths = [f"gs://b/t/part-{number:05}-of-10001.parquet" for number in range(10_001)]
    assert loads.uris_of(paths) == ["gs://b/t/part-*-of-10001.parquet"]
    assert bigquery.jobs == {}


def test_a_large_file_is_uploaded_in_pieces(
    bigquery: StrictBigQuery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.cloud.bigquery.client._DEFAULT_CHUNKSIZE", 256 << 10)  # otherwise 100 MB
    folders = finished(tmp_path / "out", parts=1, rows=4)
    run = Run("run", "experiment", BEGAN, "")
    texts = [random.Random(seed).randbytes(256 << 10).hex() for seed in range(5)]
    large = written(folders["failures"], tables.FAILURES, run, [row(tables.FAILURES, text) for text in texts])
    place = Path(folders["failures"], "part-00000-of-00001.parquet")
    Path(large).replace(place)
    assert place.stat().st_size > 4 * (256 << 10)
    load(folders)
    assert_holds(bigquery, folders)
    assert bigquery.methods().count("upload") >= len(tables.TABLES) + 4


def test_running_the_same_id_again_replaces_its_rows_and_no_others(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    other = finished(tmp_path / "other", "other")
    load(other, "other")
    load(finished(tmp_path / "first", parts=3))
    again = finished(tmp_path / "again", minute=60 * 24, parts=1)
    load(again)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == sorted(in_files(other, name) + in_files(again, name)), name


def test_beam_may_execute_the_step_again(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    for _ in range(2):
        assert stage.load("path", DATASET, "run", str(tmp_path / "out"), folders) == "run"
    assert_holds(bigquery, folders)


def test_a_run_that_was_deleted_in_bigquery_can_be_loaded_again(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    load(folders)
    for name in tables.TABLES:
        bigquery.table("warehouse", name).rows = []
    load(folders)
    assert_holds(bigquery, folders)


def test_staging_tables_vanish_by_themselves(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults += [Fault("tables.delete", "accessDenied", times=99)]
    load(folders)
    staging = [name for name in bigquery.names() if name.startswith("_")]
    assert len(staging) == len(tables.TABLES)
    for name in staging:
        left_s = int(bigquery.table("warehouse", name).resource["expirationTime"]) / 1000 - time.time()
        assert 0 < left_s <= timedelta(days=1).total_seconds()


# Tables that exist


def existing(bigquery: StrictBigQuery, name: str, wanted: list[dict[str, Any]], **more: Any) -> None:
    """Make a table as somebody else might have."""
    from google.cloud import bigquery as library

    table = library.Table(str(DATASET.table(name)), wanted)
    Session(DATASET, QUICK).create(table)
    bigquery.table("warehouse", name).resource |= more


def thin() -> list[dict[str, Any]]:
    """The columns of `query_metrics` as an older version had them, and one of somebody else in front."""
    wanted = [each for each in schemas.columns_of(tables.QUERY_METRICS) if each["name"] != "text"]
    *rest, metrics = wanted
    metrics = {**metrics, "fields": [each for each in metrics["fields"] if not each["name"].startswith("tie_")]}
    return [*columns("note STRING NULLABLE"), metrics, *rest]


@pytest.mark.parametrize("fault", [None, "conditionNotMet", *in_campaigns("lost", "drop")])
def test_nullable_columns_are_added_to_a_table_that_exists(
    bigquery: StrictBigQuery, tmp_path: Path, fault: str | None
) -> None:
    existing(bigquery, "query_metrics", thin())
    bigquery.faults += [Fault("tables.patch", fault)] if fault else []
    folders = finished(tmp_path / "out")
    load(folders)
    names = [each["name"] for each in bigquery.table("warehouse", "query_metrics").columns]
    assert names == [*(each["name"] for each in thin()), "text"]
    rows = bigquery.rows("query_metrics")
    assert {each.pop("note") for each in rows} == {None}
    assert exact(rows) == in_files(folders, "query_metrics")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"type": "FLOAT"}, "runs.calls is FLOAT there, and INTEGER here"),
        ({"mode": "REPEATED"}, "runs.calls is REPEATED there, and REQUIRED here"),
        ({"name": "more"}, "runs.calls is missing there, and cannot be added because it is REQUIRED here"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_the_difference(
    bigquery: StrictBigQuery, tmp_path: Path, change: dict[str, str], difference: str
) -> None:
    wanted = schemas.columns_of(tables.RUNS)
    existing(bigquery, "runs", [{**each, **change} if each["name"] == "calls" else each for each in wanted])
    before = bigquery.table("warehouse", "runs").columns
    assert difference in refused(finished(tmp_path / "out"))
    with pytest.raises(InputError, match=difference):
        destination(str(DATASET), QUICK)
    assert bigquery.table("warehouse", "runs").columns == before
    assert bigquery.jobs == {}


def test_what_requires_a_partition_filter_is_refused(bigquery: StrictBigQuery) -> None:
    existing(bigquery, "runs", schemas.columns_of(tables.RUNS), requirePartitionFilter=True)
    with pytest.raises(InputError, match="norequire_partition_filter"):
        destination(str(DATASET), QUICK)


# Before the work begins


def test_a_destination_is_looked_at_and_not_touched(bigquery: StrictBigQuery) -> None:
    existing(bigquery, "query_metrics", thin())
    assert destination("test-project.warehouse", QUICK) == DATASET
    assert set(bigquery.methods()[1:]) == {"datasets.get", "tables.get"}


def test_a_missing_dataset_and_a_missing_permission_are_told_apart(bigquery: StrictBigQuery) -> None:
    with pytest.raises(InputError) as missing:
        destination("test-project.elsewhere", QUICK)
    assert "Not found: Dataset test-project:elsewhere" in str(missing.value)
    assert "bq --location=LOCATION mk --dataset test-project:elsewhere" in str(missing.value)
    bigquery.faults.append(Fault("datasets.get", "accessDenied", message="Access Denied: Dataset"))
    with pytest.raises(InputError) as denied:
        destination(str(DATASET), QUICK)
    assert "permission denied: Access Denied: Dataset" in str(denied.value)
    assert "roles/bigquery.dataEditor" in str(denied.value)
    assert "bq --location" not in str(denied.value)


def test_without_a_network_there_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"test-project\.warehouse: BigQuery does not answer: .*is there a network\?"):
        destination(str(DATASET), QUICK)


@pytest.mark.parametrize("name", ["warehouse", "p.d", "my-project.a-b", "my-project.d`; DROP TABLE x; --"])
def test_what_is_no_name_of_a_dataset_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is not a BigQuery dataset; write project"):
        destination(name, QUICK)


# Answers that are lost, and servers that have a bad moment

METHODS = ["datasets.get", "tables.get", "tables.insert", "jobs.insert", "upload", "jobs.get", "tables.delete"]


@pytest.mark.parametrize(
    ("method", "what"),
    [
        *((method, "lost") for method in METHODS),
        *in_campaigns(*((method, "backendError") for method in METHODS)),
        *in_campaigns(*(("jobs.insert", what) for what in ("drop", "internalError", "rateLimitExceeded"))),
    ],
)
def test_a_bad_moment_passes(bigquery: StrictBigQuery, tmp_path: Path, method: str, what: str) -> None:
    bigquery.faults.append(Fault(method, what, times=3))
    folders = finished(tmp_path / "out")
    load(folders)
    assert bigquery.faults[0].times == 0
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES)
    assert len(bigquery.began("rankbeam_publish")) == 1


def test_a_server_that_has_only_bad_moments_is_given_up(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults.append(Fault("jobs.insert", "backendError", times=99))
    assert "BigQuery does not answer: as the script says" in refused(finished(tmp_path / "out"))
    assert bigquery.faults[0].times == 99 - QUICK.attempts


def test_who_loses_sight_of_the_last_job_says_that_it_may_still_succeed(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("script", "slow", seconds=0.03))

    def go_blind() -> None:
        while not bigquery.began("publish"):
            time.sleep(0.002)
        bigquery.faults.append(Fault("jobs.get", "backendError", times=99))

    blind = threading.Thread(target=go_blind)
    blind.start()
    message = refused(folders)
    blind.join()
    (job,) = bigquery.began("publish")
    assert f"the job {job.resource['jobReference']['jobId']} may still be at work" in message
    bigquery.faults.clear()
    assert job.ended.wait(5)
    load(folders)
    assert_holds(bigquery, folders)


@pytest.mark.parametrize("kind", ["load", "script"])
def test_a_job_that_ends_in_a_passing_error_is_begun_again_under_the_next_id(
    bigquery: StrictBigQuery, tmp_path: Path, kind: str
) -> None:
    bigquery.faults.append(Fault(kind, "backendError", times=2))
    folders = finished(tmp_path / "out")
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.jobs) == len(tables.TABLES) + 1 + 2
    assert {job_id.rpartition("_")[2] for _, job_id in bigquery.jobs} >= {"0", "1"}


def test_slow_jobs_are_waited_for(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults += [Fault("load", "slow", times=3, seconds=0.2), Fault("script", "slow", seconds=0.02)]
    folders = finished(tmp_path / "out")
    load(folders)
    assert_holds(bigquery, folders)
    assert bigquery.methods().count("jobs.get") > 20


# Errors that stay: nothing is half there, and once they are gone a repeat succeeds


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("load", "invalid", text="comparisons"), "refused: loading comparisons: as the script says"),
        (Fault("tables.insert", "accessDenied", text="/tables"), "roles/bigquery.dataEditor"),
        (Fault("jobs.insert", "quotaExceeded"), "a quota is used up: as the script says; wait until it is renewed"),
        (Fault("script", "accessDenied"), "permission denied"),
        *in_campaigns(
            (Fault("load", "accessDenied"), "permission denied: loading"),
            (Fault("load", "quotaExceeded", text="rankings"), "a quota is used up: loading rankings"),
            (Fault("tables.insert", "accessDenied", text="_rankbeam"), "roles/bigquery.dataEditor"),
            (Fault("jobs.insert", "accessDenied"), "roles/bigquery.jobUser"),
            (Fault("jobs.insert", "accessDenied", text="publish"), "permission denied"),
            (Fault("script", "quotaExceeded"), "a quota is used up"),
            (Fault("script", "invalidQuery"), "refused: as the script says"),
            (Fault("datasets.get", "notFound", message="Not found: Dataset a:b"), "bq --location=LOCATION mk"),
            (Fault("datasets.get", "accessDenied"), "permission denied"),
        ),
    ],
    ids=lambda value: f"{value.on}-{value.what}-{value.text}" if isinstance(value, Fault) else "",
)
def test_what_fails_leaves_nothing_half_visible_and_a_repeat_succeeds(
    bigquery: StrictBigQuery, tmp_path: Path, fault: Fault, said: str
) -> None:
    before = finished(tmp_path / "before")
    load(before)
    bigquery.faults.append(dataclasses.replace(fault))
    folders = finished(tmp_path / "out", minute=5, parts=3)
    again = fault.on == "tables.insert" and not fault.text.startswith("_")
    for name in tables.TABLES if again else ():
        del bigquery.tables["warehouse", name]  # so that it has to be made
    message = refused(folders)
    assert message.startswith("run run was not loaded into test-project.warehouse: ")
    assert said in message
    for name in () if again else tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(before, name)
    load(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name)


@pytest.mark.parametrize("after", [2, 18, *in_campaigns(1, 3, 5, 9, 13, 17, 19)])
def test_a_script_that_dies_leaves_nothing_half_visible(bigquery: StrictBigQuery, tmp_path: Path, after: int) -> None:
    """Wherever it dies, readers see the old run, and then, when it was begun again, the new one."""
    before = finished(tmp_path / "before")
    load(before)
    bigquery.faults.append(Fault("script", "dies", times=1 + QUICK.conflicts, after=after))
    folders = finished(tmp_path / "out", minute=5, parts=3)
    assert "the script died" in refused(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(before, name)
    load(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name)


def test_a_repeat_loads_only_what_is_missing(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("load", "invalid", text="comparisons"))
    refused(folders)
    assert all(not bigquery.rows(name) for name in tables.TABLES)
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES) + 1


def test_what_a_job_loaded_into_a_table_that_was_made_anew_is_loaded_again(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("jobs.insert", "accessDenied", text="publish"))
    refused(folders)
    staging = next(name for name in bigquery.names() if name.endswith("_rankings") and name.startswith("_"))
    time.sleep(0.002)  # times of creation are told in milliseconds
    del bigquery.tables["warehouse", staging]
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankings")) == 2


def test_a_staging_table_that_vanishes_is_loaded_again(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("script", "slow", seconds=0.05))
    gone = threading.Thread(target=take_away, args=(bigquery,))
    gone.start()
    load(folders)
    gone.join()
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankings")) == 2


def take_away(bigquery: StrictBigQuery) -> None:
    """What another attempt at the same load does when it has ended."""
    while not bigquery.began("publish"):
        time.sleep(0.002)
    with bigquery.lock:
        staging = next(name for name in bigquery.names() if name.endswith("_rankings") and name.startswith("_"))
        time.sleep(0.002)
        del bigquery.tables["warehouse", staging]


@pytest.mark.parametrize("table", ["rankings", "runs"])
def test_files_that_are_missing_are_not_loaded(bigquery: StrictBigQuery, tmp_path: Path, table: str) -> None:
    folders = finished(tmp_path / "out")
    next(Path(folders[table]).iterdir()).unlink()
    assert folders[table] in refused(folders)
    assert bigquery.asked == []


def test_files_of_two_executions_are_no_run(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    other = finished(tmp_path / "other", minute=1)
    assert "files are of several executions" in refused({**folders, "rankings": other["rankings"]})
    assert bigquery.seen("run") == {}


# Several at once


def test_readers_see_all_of_a_run_or_nothing(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults.append(Fault("script", "slow", times=2, seconds=0.01))
    looks: list[dict[str, set[Any]]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            looks.append(bigquery.seen("run"))
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    load(finished(tmp_path / "first"))
    load(finished(tmp_path / "second", minute=1))
    ended.set()
    reader.join()
    kinds = {(len(look), frozenset().union(*look.values())) for look in looks}
    all_of_them = len(tables.TABLES)
    assert kinds == {
        (0, frozenset()),
        (all_of_them, frozenset({BEGAN})),
        (all_of_them, frozenset({BEGAN + timedelta(minutes=1)})),
    }


@pytest.mark.parametrize("first", [True, *in_campaigns(False)], ids=["new run", "run that is there"])
def test_two_runs_of_one_id_at_once_do_not_double_it(bigquery: StrictBigQuery, tmp_path: Path, *, first: bool) -> None:
    """Also when nothing is there to be deleted, and BigQuery would let both transactions pass."""
    if not first:
        load(finished(tmp_path / "before"))
    bigquery.faults.append(Fault("script", "slow", times=9, seconds=0.01))
    both = [finished(tmp_path / name, minute=minute) for minute, name in enumerate(("a", "b"), 1)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(load, both))
    (begun,) = set().union(*bigquery.seen("run").values())
    winner = both[0] if begun == BEGAN + timedelta(minutes=1) else both[1]
    assert_holds(bigquery, winner)


def test_the_same_load_twice_at_once(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    """As when Beam believes that a worker is dead, and it is not."""
    bigquery.faults.append(Fault("script", "slow", times=9, seconds=0.005))
    folders = finished(tmp_path / "out")
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(load, [folders] * 3))
    assert_holds(bigquery, folders)


@pytest.mark.campaign
def test_runs_that_end_at_the_same_time_wait_for_each_other(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    for run_id in ids:
        load(finished(tmp_path / "before" / run_id, run_id), run_id)
    bigquery.faults.append(Fault("script", "slow", times=99, seconds=0.002))
    folders = {run_id: finished(tmp_path / "after" / run_id, run_id, minute=1, parts=1) for run_id in ids}
    patience = Patience(first_s=0.05, longest_s=0.2, poll_s=0.005)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda run_id: publish.load_run(DATASET, run_id, folders[run_id], patience), ids))
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == sorted(line for each in folders.values() for line in in_files(each, name))
    ended = [job.error.message for job in bigquery.began("publish") if job.error is not None]
    assert all("concurrent update" in message for message in ended)


def test_a_table_that_others_write_to_all_the_time_is_a_clear_error(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    message = "Transaction is aborted due to concurrent update against table runs."
    bigquery.faults.append(Fault("script", "invalidQuery", times=99, message=message))
    assert f"another job wrote at the same time: {message}" in refused(finished(tmp_path / "out"))
    assert len(bigquery.began("publish")) == 1 + QUICK.conflicts


@pytest.mark.parametrize("seen", ["rankbeam_publish", *in_campaigns("rankbeam_load")])
def test_whoever_is_killed_leaves_nothing_half_visible(bigquery: StrictBigQuery, tmp_path: Path, seen: str) -> None:
    before = finished(tmp_path / "before")
    load(before)
    bigquery.faults += [Fault("load", "slow", times=3, seconds=0.5), Fault("script", "slow", times=1, seconds=0.1)]
    folders = finished(tmp_path / "out", minute=1)
    code = (
        "import sys, json\nfrom rankbeam.transforms.clients.bigquery.names import DatasetName\n"
        "from rankbeam.transforms.clients.bigquery.publish import load_run\n"
        "load_run(DatasetName('test-project', 'warehouse'), 'run', json.loads(sys.argv[1]))"
    )
    already = len(bigquery.began(seen))
    with Process(code, json.dumps(folders), cwd=REPOSITORY) as process:
        while len(bigquery.began(seen)) == already:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(before, name)
    load(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name)


# What may stand in SQL


def test_values_are_parameters_and_names_are_checked(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    hostile = "run.-_` WHERE TRUE; --"
    folders = finished(tmp_path / "out", hostile)
    load(finished(tmp_path / "other"))
    load(folders, hostile)
    for name in tables.TABLES:
        assert {each["run_id"] for each in bigquery.rows(name)} == {"run", hostile}
    text = publish.statements(DATASET, "0a", tables.TABLES)
    assert "WHERE TRUE" not in text
    assert text.index("BEGIN TRANSACTION") < text.index("DELETE") < text.index("INSERT")
    assert text.rindex("INSERT INTO `test-project.warehouse.runs`") == text.rindex("INSERT")
    assert text.endswith("COMMIT TRANSACTION;")
    assert bigquery.began("publish")[-1].configuration["query"]["queryParameters"][0] == {
        "name": "run_id",
        "parameterType": {"type": "STRING"},
        "parameterValue": {"value": hostile},
    }


@pytest.mark.usefixtures("bigquery")
def test_the_stub_is_strict(tmp_path: Path) -> None:
    """What it lets pass says something: each of these is refused."""
    folders = finished(tmp_path / "out")
    session = Session(DATASET, QUICK)
    run = loads.find_run("run", folders)
    wanted = {name: ensure(session, name) for name in tables.TABLES}
    unknown = [each for each in wanted["failures"] if each["name"] != "kind"]
    more = [*wanted["failures"], *columns("more STRING REQUIRED")]
    other = [{**each, "type": "FLOAT"} if each["name"] == "kind" else each for each in wanted["failures"]]
    for key, given_columns, said in (("a", unknown, "no such field"), ("b", more, "missing"), ("c", other, "FLOAT")):
        with pytest.raises(Exception, match=said):
            loads.load(session, run, key, {"failures": given_columns})
    from google.api_core.exceptions import Conflict
    from google.cloud.bigquery import QueryJobConfig

    config = QueryJobConfig(use_legacy_sql=False, query_parameters=[])
    assert session.wait(session.query("literal", "DELETE FROM `a.b.c` WHERE run_id = 'x'", config)).error_result
    with pytest.raises(Conflict):
        session.client.query("SELECT", config, "literal", location="europe-west1", retry=None, job_retry=None)
    assert session.job("literal") is not None
    session.location = "US"
    assert session.job("literal") is None  # jobs are found where they ran


def test_a_type_that_bigquery_lacks_is_a_bug() -> None:
    with pytest.raises(TypeError, match="BigQuery has no type for"):
        schemas.columns_of(pa.schema([pa.field("n", pa.duration("s"))]))
