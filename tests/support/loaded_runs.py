"""Runs that tests load into the strict stand-in of BigQuery, and what it holds afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.strict_bigquery import StrictBigQuery, serve

from rankbeam.transforms.clients.bigquery import publish
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import Patience, Session
from rankbeam.transforms.records import tables

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
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def assert_holds(bigquery: StrictBigQuery, folders: dict[str, str]) -> None:
    """Exactly the rows of these files are there, and nothing that was only needed on the way."""
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name), name
    assert bigquery.names() == set(tables.TABLES)


def columns(*lines: str) -> list[dict[str, Any]]:
    """Columns from "name TYPE MODE"."""
    return [dict(zip(("name", "type", "mode"), line.split(), strict=True)) for line in lines]


# Tables that exist


def existing(bigquery: StrictBigQuery, name: str, columns: list[dict[str, Any]], **more: Any) -> None:
    """Make a table as somebody else might have."""
    from google.cloud import bigquery as library

    table = library.Table(str(DATASET.table(name)), columns)
    Session(DATASET, QUICK).create(table)
    bigquery.table("warehouse", name).resource |= more
