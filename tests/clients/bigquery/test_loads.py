# ruff: noqa: F811  fixtures are named as what they give
"""Loading a run into BigQuery: all of it or nothing, once, whatever goes wrong on the way."""

import dataclasses
import random
import time
from datetime import timedelta
from pathlib import Path

import pytest
from support.loaded_runs import (
    DATASET,
    QUICK,
    assert_holds,
    bigquery,  # noqa: F401  pytest finds it by name
    exact,
    in_files,
    load,
)
from support.strict_bigquery import Fault, StrictBigQuery
from support.strict_bigquery.runs import BEGAN, finished, row, written

from rankbeam.transforms.clients.bigquery import loads, schemas
from rankbeam.transforms.clients.bigquery.session import Session
from rankbeam.transforms.clients.bigquery.tables import ensure
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.write import tables as stage

# A load without trouble


@pytest.mark.long
def test_every_table_is_made_partitioned_and_clustered_and_holds_the_rows_of_its_files(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out", parts=3)
    load(folders)
    assert_holds(bigquery, folders)
    for name, schema in tables.TABLES.items():
        resource = bigquery.table("warehouse", name).resource
        assert resource["timePartitioning"] == {"type": "DAY", "field": "started_at"}
        cluster = [column for column in ("run_id", "experiment", "config_id") if column in schema.names]
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
    schemas_by_table = {name: ensure(session, name) for name in tables.TABLES}
    loads.load(session, run, "key", schemas_by_table)
    for name in tables.TABLES:
        assert exact(bigquery.rows(loads.staging_name("key", name))) == in_files(folders, name)
        (job,) = bigquery.began(f"rankbeam_load_key_{name}_")
        assert job.configuration["load"]["sourceUris"] == [path for path, _ in uris[name]]


def test_a_pattern_stands_for_more_files_than_a_job_may_name(bigquery: StrictBigQuery) -> None:
    paths = [f"gs://b/t/part-{number:05}-of-10001.parquet" for number in range(10_001)]
    assert loads.uris_of(paths) == ["gs://b/t/part-*-of-10001.parquet"]
    assert bigquery.jobs == {}


@pytest.mark.long
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


@pytest.mark.long
def test_running_the_same_id_again_replaces_its_rows_and_no_others(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    other = finished(tmp_path / "other", "other")
    load(other, "other")
    load(finished(tmp_path / "first", parts=3))
    again = finished(tmp_path / "again", minute=60 * 24, parts=1)
    load(again)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == sorted(in_files(other, name) + in_files(again, name)), name


@pytest.mark.long
def test_beam_may_execute_the_step_again(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    for _ in range(2):
        assert stage.load_run("path", DATASET, "run", str(tmp_path / "out"), folders) == "run"
    assert_holds(bigquery, folders)


@pytest.mark.long
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
