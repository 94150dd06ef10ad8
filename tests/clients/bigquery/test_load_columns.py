"""Columns of an existing table and of ours: what differs, and what is added."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loaded_runs import columns

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.records import tables


def nested(name: str, fields: list[dict[str, Any]], mode: str = "REPEATED") -> dict[str, Any]:
    return {"name": name, "type": "RECORD", "mode": mode, "fields": fields}


# Schemas


def test_columns_of_rankings_with_their_nested_documents() -> None:
    schema = schemas.columns_of(tables.RANKINGS)
    assert [(column["name"], column["type"], column["mode"]) for column in schema] == [
        ("run_id", "STRING", "REQUIRED"),
        ("experiment", "STRING", "REQUIRED"),
        ("started_at", "TIMESTAMP", "REQUIRED"),
        ("config_id", "STRING", "REQUIRED"),
        ("query_id", "STRING", "REQUIRED"),
        ("documents", "RECORD", "REPEATED"),
    ]
    expected = ["rank INTEGER REQUIRED", "doc_id STRING REQUIRED", "score FLOAT NULLABLE", "grade FLOAT NULLABLE"]
    assert schema[-1]["fields"] == columns(*expected, "text STRING NULLABLE", "grade_source STRING NULLABLE")


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
    assert schemas.merge_columns(there, here) == [
        nested("a", columns("b FLOAT NULLABLE", "c FLOAT NULLABLE"), "NULLABLE")
    ]


def test_a_record_that_is_added_requires_nothing() -> None:
    record = nested("r", [*columns("b FLOAT REQUIRED"), nested("c", columns("d STRING REQUIRED"), "REQUIRED")])
    relaxed = nested("r", [*columns("b FLOAT NULLABLE"), nested("c", columns("d STRING NULLABLE"), "NULLABLE")])
    there = columns("n FLOAT REQUIRED")
    assert schemas.merge_columns(there, [*there, record]) == [*there, relaxed]


@given(st.data())
def test_a_table_that_lacks_columns_is_completed_at_every_depth(data: st.DataObject) -> None:
    expected = schemas.columns_of(tables.TABLES[data.draw(st.sampled_from(sorted(tables.TABLES)))])

    def thinned(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        chosen = [column for column in columns if column["mode"] == "REQUIRED" or data.draw(st.booleans())]
        return [{**column, "fields": thinned(column["fields"])} if "fields" in column else column for column in chosen]

    own = columns("of_others STRING NULLABLE")
    existing = [*own, *data.draw(st.permutations(thinned(expected)))]
    assert list(schemas.differences(existing, expected)) == []
    merged = schemas.merge_columns(existing, expected)
    assert [column["name"] for column in merged[: len(existing)]] == [column["name"] for column in existing]
    assert schemas.merge_columns(merged, expected) == merged

    def names(columns: list[dict[str, Any]], prefix: str = "") -> set[str]:
        below = [names(column["fields"], f"{prefix}{column['name']}.") for column in columns if "fields" in column]
        return {f"{prefix}{column['name']}" for column in columns}.union(*below)

    assert names(merged) == names(expected) | {"of_others"}
