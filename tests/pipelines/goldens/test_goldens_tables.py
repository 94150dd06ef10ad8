"""The tables of a benchmark hold what its JSON lines hold, in types that BigQuery has."""

import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.cli import rankbeam
from support.goldens import goldens_file, lines

from rankbeam.transforms.clients.bigquery.schemas import columns_of
from rankbeam.transforms.goldens.publishing import TABLES


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    outcome = rankbeam("goldens", goldens_file(folder, items=12, reviews={"pool": 3}))
    assert outcome.status == 0, outcome.stderr
    return folder / "out"


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    table = pq.read_table(out / "tables" / f"{name}.parquet")
    assert table.schema.equals(TABLES[name])
    rows: list[dict[str, Any]] = table.to_pylist()
    assert {row["benchmark"] for row in rows} <= {"made"}
    return rows


def test_tables_hold_the_same_as_the_lines(out: Path) -> None:
    queries = lines(out / "queries.jsonl")
    names = ("type", "topic", "split", "answerable", "bm25_rank", "reviewed")
    assert [(row["query_id"], row["question"], *(row[name] for name in names)) for row in rows(out, "items")] == [
        (row["_id"], row["text"], *(row["metadata"][name] for name in names)) for row in queries
    ]
    pieces = [{**row, "benchmark": "made"} for row in lines(out / "evidence.jsonl")]
    assert rows(out, "evidence") == [{name: row[name] for name in TABLES["evidence"].names} for row in pieces]
    with (out / "qrels" / "test.tsv").open() as file:
        judged = [tuple(row.values()) for row in csv.DictReader(file, delimiter="\t")]
    written = [(row["query_id"], row["doc_id"], str(row["grade"]), row["source"]) for row in rows(out, "judgements")]
    assert written == judged
    rejected = lines(out / "rejected.jsonl")
    assert [(row["query_id"], row["reason"]) for row in rows(out, "rejected")] == [
        (row["item_id"], row["reason"]) for row in rejected
    ]
    votes = sum(len(row["votes"]) for row in lines(out / "provenance.jsonl")) + sum(
        len(row["votes"]) for row in rejected
    )
    assert len(rows(out, "votes")) == votes > 0


def test_every_column_is_one_of_bigquery() -> None:
    for schema in TABLES.values():
        assert [column["name"] for column in columns_of(schema)] == schema.names
