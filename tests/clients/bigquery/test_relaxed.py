"""Tables that are too strict for our rows, or less strict than ours: on the strict stub and on both emulators."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from support.campaigns import in_campaigns
from support.emulators import Cloud, googlesql
from support.strict_bigquery import serve
from support.strict_bigquery.runs import finished

from rankbeam.transforms.clients.bigquery import publish, schemas
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import Patience, Session
from rankbeam.transforms.clients.bigquery.tables import destination, ensure
from rankbeam.transforms.records import tables

pytest_plugins = ["support.emulators.fixtures"]

QUICK = Patience(conflicts=1, first_s=0.0, poll_s=0.005)
Column = dict[str, Any]


@pytest.fixture(params=["strict", "duckdb", *in_campaigns("googlesql")])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bigquery.Client]:
    """A client of a server that has the empty dataset `relaxed`."""
    with ExitStack() as stack:
        if request.param == "duckdb":
            cloud: Cloud = request.getfixturevalue("cloud")
            client = bigquery.Client(cloud.bigquery.project, credentials=AnonymousCredentials())
            stack.callback(client.delete_dataset, "relaxed", delete_contents=True)
            client.create_dataset("relaxed")
        elif request.param == "googlesql":
            googlesql.require()
            monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", stack.enter_context(googlesql.serve("relaxed")))
            client = bigquery.Client(googlesql.PROJECT, credentials=AnonymousCredentials())
        else:
            server = stack.enter_context(serve())
            monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
            server.dataset("relaxed")
            client = bigquery.Client("test-project", credentials=AnonymousCredentials())
        yield client


def with_modes(columns: list[Column], mode: str) -> list[Column]:
    """Columns of one mode at every depth, but for those that are REPEATED."""
    return [
        {**column, "mode": "REPEATED" if column["mode"] == "REPEATED" else mode}
        | ({"fields": with_modes(column["fields"], mode)} if "fields" in column else {})
        for column in columns
    ]


def paths(columns: list[Column], prefix: str = "") -> Iterator[tuple[str, str]]:
    for column in columns:
        yield f"{prefix}{column['name']}", str(column.get("mode") or "NULLABLE")
        yield from paths(column.get("fields", []), f"{prefix}{column['name']}.")


def modes(client: bigquery.Client, name: str) -> dict[str, str]:
    return dict(paths([field.to_api_repr() for field in client.get_table(f"relaxed.{name}").schema]))


def make(client: bigquery.Client, change: Callable[[list[Column]], list[Column]], *names: str) -> None:
    for name in names:
        fields = [
            bigquery.SchemaField.from_api_repr(column) for column in change(schemas.columns_of(tables.TABLES[name]))
        ]
        client.create_table(bigquery.Table(f"{client.project}.relaxed.{name}", fields))


@pytest.mark.long
def test_what_is_required_there_and_nullable_here_is_relaxed_at_every_depth(
    client: bigquery.Client, tmp_path: Path
) -> None:
    dataset, names = DatasetName(client.project, "relaxed"), ("rankings", "failures")
    make(client, lambda columns: with_modes(columns, "REQUIRED"), *names)
    assert modes(client, "rankings")["documents.score"] == "REQUIRED"
    destination(str(dataset), QUICK)
    publish.load_run(dataset, "run", finished(tmp_path, parts=1, rows=2), QUICK)
    for name in names:
        assert modes(client, name) == dict(paths(schemas.columns_of(tables.TABLES[name]))), name


def test_what_is_nullable_there_stays_so(client: bigquery.Client) -> None:
    make(client, lambda columns: with_modes(columns, "NULLABLE"), "rankings")
    before = client.get_table("relaxed.rankings")
    ensure(Session(DatasetName(client.project, "relaxed"), QUICK), "rankings")
    assert set(modes(client, "rankings").values()) == {"NULLABLE", "REPEATED"}
    assert client.get_table("relaxed.rankings").etag == before.etag
