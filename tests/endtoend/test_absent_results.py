"""Services that leave an empty list of results out of their answers, as JSON made of protobuf does."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.json_server import responding
from support.remote import answers, dataset, failure_rows, write_experiment
from support.runs import query_values

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.queries import Ranking

QUERIES = 30
EMPTY = Ranking((), (), ())


def leaving_out(empty: Any) -> AbstractContextManager[tuple[str, list[str]]]:
    """A service that has nothing for question 3, and says so in its own way."""
    rankings = answers(QUERIES)

    def respond(query: str) -> tuple[int, bytes]:
        answer = empty if query == "question 3" else {"hits": {"hits": rankings[query]}}
        return 200, json.dumps(answer).encode()

    return responding(respond)


def experiment(folder: Path, url: str, **parameters: Any) -> str:
    retriever = {"type": "http", "url": url, "results": "hits.hits", "id": "id", "score": "score", **parameters}
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": {"requests_per_minute": 60_000}}}
    base["configurations"] = [{"name": "remote", "retriever": retriever, "top_k": 20}]
    return write_experiment(folder, base)


@pytest.mark.long
@pytest.mark.parametrize("empty", [{"hits": None}, *in_campaigns({}, {"hits": {"total": 0}})])
def test_an_absent_list_is_an_empty_ranking(empty: Any, tmp_path: Path) -> None:
    with leaving_out(empty) as (url, queries):
        outcome = rankbeam("evaluate", experiment(tmp_path, url), "--run-id", "r1")
    assert outcome.status == 0, outcome.stderr
    assert len(queries) == QUERIES
    values = query_values(Results(str(tmp_path / "out"), "r1"))["remote"]
    assert values["q3"] == {"nDCG@10": 0.0, "P@5": 0.0, "R@20": 0.0}
    assert all(any(values[query].values()) for query in values if query != "q3")


@pytest.mark.long
@pytest.mark.parametrize(
    ("empty", "parameters", "message"),
    [
        ({}, {"results_required": True}, "results: hits.hits is not a list, found null; the answer is {}"),
        ({"error": {"code": 13}}, {}, 'the answer holds an error: {"code": 13}'),
        *in_campaigns(
            ({}, {"results": "hits.hits[]"}, "write results: hits.hits[] || `[]`"),
            (None, {}, "the answer is not an object, found null"),
            ({"hits": []}, {}, "results_required: false is for omitted lists"),
            ({"data": None, "errors": ["busy"]}, {}, 'the answer holds an error: ["busy"]'),
        ),
    ],
)
def test_what_is_malformed_is_said_with_what_to_do_and_not_asked_nine_times(
    empty: Any, parameters: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with leaving_out(empty) as (url, queries):
        outcome = rankbeam("evaluate", experiment(tmp_path, url, **parameters), "--run-id", "r1")
    assert outcome.status == 0, outcome.stderr
    (row,) = failure_rows(tmp_path / "out", "r1")
    assert (row["query_id"], row["kind"]) == ("q3", "malformed")
    assert row["attempts"] >= 3  # a connection that breaks on a busy machine is an attempt, too
    assert "results: hits" in row["message"]
    assert message in row["message"]
    assert len(queries) == QUERIES + 2


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("hits", {"hits": None}),
        ("a.b.c", {"a": {"b": {}}}),
        ('"my-hits"', {}),
        ('a."b c"', {"a": {"b c": None}}),
        ("hits || `[]`", {}),
    ],
)
def test_plain_paths_may_be_absent(path: str, answer: Any) -> None:
    assert _read(path, answer) == EMPTY


@pytest.mark.parametrize(
    ("path", "answer"), [("a.b", {"a": 1}), ("a.b", {"a": [{}]}), ("a", []), ("a", {"a": {}}), ("a", {"a": ""})]
)
def test_something_else_in_its_place_is_malformed(path: str, answer: Any) -> None:
    with pytest.raises(CallError, match="is not a list"):
        _read(path, answer)


def _read(path: str, answer: Any) -> Ranking:
    return Http(url="http://none.invalid/", results=path, id="id", text="text").read(json.dumps(answer))
