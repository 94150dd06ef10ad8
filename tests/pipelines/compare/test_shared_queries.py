"""The queries that two runs share if their datasets differ: by id, by text, and by their judgements."""

import pyarrow as pa
import pytest

from rankbeam.pipelines.compare.shared_queries import SharedQueries, shared_queries
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory

OLD = {"a": "x", "b": "y", "c": "z"}
COUNTS = "the datasets differ: differences are over the {} queries that both runs have; "


def run_of(fingerprint: str, texts: dict[str, str | None]) -> Results:
    rows = [{"query_id": query, "text": text} for query, text in texts.items()] * 2  # of two configurations
    schema = pa.schema([("query_id", pa.string()), ("text", pa.string())])
    run = {"dataset_fingerprint": fingerprint, "statistics": "{}", "dataset": "{}", "versions": "{}"}
    tables = {"runs": pa.Table.from_pylist([run]), "query_metrics": pa.Table.from_pylist(rows, schema)}
    return Results("", "run", InMemory(tables))


@pytest.mark.parametrize(
    ("fingerprint", "texts", "shared", "ending"),
    [
        ("q-u", {"a": "x", "d": "w"}, SharedQueries(1, 1, 2, 0, ""), "1 only in this run, 2 only in the baseline's"),
        (
            "q-u",
            {"a": "1", "b": "2"},
            SharedQueries(2, 0, 1, 2, ""),
            "1 only in the baseline's; 2 of both have another text",
        ),
        ("q-u", {"a": None, "b": "y"}, SharedQueries(2, 0, 1, 0, ""), "1 only in the baseline's"),
        (
            "r-t",
            OLD,
            SharedQueries(3, 0, 0, 0, "judgements"),
            "their judgements differ, so differences may not be due to the",
        ),
        ("q-t-s", OLD, SharedQueries(3, 0, 0, 0, "reference answers"), "their reference answers differ"),
        (
            "r-t-s",
            OLD,
            SharedQueries(3, 0, 0, 0, "judgements and reference answers"),
            "their judgements and reference answ",
        ),
    ],
)
def test_the_sentence_names_what_differs(
    fingerprint: str, texts: dict[str, str | None], shared: SharedQueries, ending: str
) -> None:
    measured = shared_queries(run_of(fingerprint, texts), run_of("q-t", dict(OLD)))
    assert measured == shared
    assert shared.sentence.startswith(COUNTS.format(shared.both))
    assert ending in shared.sentence


def test_runs_of_one_dataset_have_nothing_to_tell() -> None:
    assert shared_queries(run_of("q-t", dict(OLD)), run_of("q-t", dict(OLD))) is None


@pytest.mark.parametrize(
    ("shared", "is_most"),
    [
        (SharedQueries(20, 20, 999, 0, ""), True),
        (SharedQueries(20, 21, 0, 0, ""), False),
        (SharedQueries(40, 0, 0, 40, ""), False),  # numbers as ids, of other queries each night
    ],
)
def test_half_of_the_queries_with_their_texts_are_most(shared: SharedQueries, is_most: bool) -> None:
    assert shared.is_most is is_most
