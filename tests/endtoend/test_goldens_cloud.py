"""A benchmark from a table of BigQuery, whose folder is on Cloud Storage, on the emulators."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from support.bigquery_tables import new_dataset
from support.cli import rankbeam
from support.emulators import Cloud
from support.goldens import documents, goldens_file, lines

from rankbeam.transforms.clients.storage import files

pytest_plugins = ["support.emulators.fixtures"]


@pytest.mark.campaign
def test_documents_of_bigquery_and_a_folder_on_cloud_storage(cloud: Cloud, tmp_path: Path) -> None:
    rows = documents(12)
    tables = new_dataset(cloud)
    tables.add("articles", pa.Table.from_pylist(rows))
    bucket = f"gs://{cloud.gcs.bucket()}"
    small = {"items": 4, "types": ["lookup"], "reviews": {"pool": 2}}
    query = {"project": tables.client.project, "query": f"SELECT _id, title, text FROM `{tables.dataset}.articles`"}
    path = goldens_file(
        tmp_path, documents=f"bigquery://{tables.dataset}.articles", output=f"{bucket}/goldens", **small
    )
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    written = files.read_all(f"{bucket}/goldens/corpus.jsonl").decode().splitlines()
    assert [(row["_id"], row["text"]) for row in map(json.loads, written)] == [(r["_id"], r["text"]) for r in rows]
    queried = goldens_file(tmp_path, "asked", documents={"path": query}, **small)
    assert rankbeam("goldens", queried).status == 0
    here = {row["_id"]: row["text"] for row in lines(tmp_path / "out" / "queries.jsonl")}
    there = files.read_all(f"{bucket}/goldens/queries.jsonl").decode().splitlines()
    assert here == {row["_id"]: row["text"] for row in map(json.loads, there)}
    tables.client.delete_dataset(tables.dataset, delete_contents=True)
