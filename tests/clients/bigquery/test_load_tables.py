# ruff: noqa: F811  fixtures are named as what they give
"""Loading a run into tables and datasets that exist, or cannot be used."""

from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.loaded_runs import (
    DATASET,
    QUICK,
    bigquery,  # noqa: F401  pytest finds it by name
    columns,
    exact,
    existing,
    in_files,
    load,
    refused,
)
from support.strict_bigquery import Fault, StrictBigQuery
from support.strict_bigquery.runs import finished

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.bigquery.tables import destination
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError


def thin() -> list[dict[str, Any]]:
    """The columns of `query_metrics` as an older version had them, and one of somebody else in front."""
    fields = [column for column in schemas.columns_of(tables.QUERY_METRICS) if column["name"] != "text"]
    *rest, metrics = fields
    metrics = {**metrics, "fields": [column for column in metrics["fields"] if not column["name"].startswith("tie_")]}
    return [*columns("note STRING NULLABLE"), metrics, *rest]


@pytest.mark.long
@pytest.mark.parametrize("fault", [None, "conditionNotMet", *in_campaigns("lost", "drop")])
def test_nullable_columns_are_added_to_a_table_that_exists(
    bigquery: StrictBigQuery, tmp_path: Path, fault: str | None
) -> None:
    existing(bigquery, "query_metrics", thin())
    bigquery.faults += [Fault("tables.patch", fault)] if fault else []
    folders = finished(tmp_path / "out")
    load(folders)
    names = [column["name"] for column in bigquery.table("warehouse", "query_metrics").columns]
    assert names == [*(column["name"] for column in thin()), "text"]
    rows = bigquery.rows("query_metrics")
    assert {row.pop("note") for row in rows} == {None}
    assert exact(rows) == in_files(folders, "query_metrics")


@pytest.mark.long
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
    columns = schemas.columns_of(tables.RUNS)
    existing(bigquery, "runs", [{**column, **change} if column["name"] == "calls" else column for column in columns])
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
