"""Rerankers over HTTP, against a stand-in: their requests, and every answer that cannot be used."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.campaigns import examples
from support.connections import call
from support.odd_server import saying, served
from support.standins import Faults, Standin, serve
from support.standins.rerankers import relevance

from rankbeam.transforms.clients.retrievers.rerankers import Reranker
from rankbeam.transforms.clients.retrievers.rerankers.http import Cohere, HttpReranker
from rankbeam.transforms.clients.retrievers.rerankers.vertex import VertexRanking
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.stages import by_score

TEXTS = ("owners pay invoices", "it snows", "owners stay home", "who pays whom")
QUERY = "do owners pay invoices"


def vertex(server: Standin, **more: Any) -> Reranker:
    return VertexRanking(project="p", api_endpoint=server.url, **more)


def cohere(server: Standin, **more: Any) -> Reranker:
    return Cohere(model="m", url=f"{server.url}/v2/rerank", headers={}, **more)


KINDS = {"vertex_ranking": vertex, "cohere": cohere}


def scores(reranker: Reranker, texts: tuple[str, ...] = TEXTS, query: str = QUERY) -> Any:
    """The scores of texts, or why there are none."""
    (outcome,) = asyncio.run(call(reranker, reranker.payload((query, texts))))
    if isinstance(outcome, CallError):
        return outcome
    try:
        return reranker.scores(outcome, len(texts))
    except CallError as error:
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_has_the_score_of_the_service(kind: str) -> None:
    with serve("rerankers") as server:
        assert scores(KINDS[kind](server)) == tuple(relevance(QUERY, text) for text in TEXTS)


def test_vertex_is_sent_googles_own_form() -> None:
    with serve("rerankers") as server:
        scores(vertex(server, location="eu", ranking_config="mine"))
        (request,) = server.stats().requests
    assert request["target"] == "/v1/projects/p/locations/eu/rankingConfigs/mine:rank"
    assert "authorization" not in request["headers"]  # credentials go to servers with TLS alone
    assert json.loads(request["body"]) == {
        "model": "semantic-ranker-default-004",
        "query": QUERY,
        "records": [{"id": str(place), "content": text} for place, text in enumerate(TEXTS)],
        "ignoreRecordDetailsInResponse": True,
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "kind_of_failure", "message"),
    [
        ("quota", FailureKind.QUOTA, "429"),
        ("unavailable", FailureKind.UNAVAILABLE, "503"),
        ("timeout", FailureKind.TIMEOUT, "504"),
        ("permission", FailureKind.PERMISSION, "403"),
        ("not_found", FailureKind.NOT_FOUND, "404"),
        ("invalid", FailureKind.INVALID, "400"),
        ("reset", FailureKind.UNAVAILABLE, ""),
        ("partial", FailureKind.UNAVAILABLE, ""),
        ("malformed", FailureKind.MALFORMED, "not JSON"),
        ("no_number", FailureKind.MALFORMED, "NaN"),
        ("no_score", FailureKind.MALFORMED, "no finite score"),
        ("other_id", FailureKind.MALFORMED, "999"),
        ("odd_id", FailureKind.MALFORMED, "'first'"),
        ("twice", FailureKind.MALFORMED, "twice"),
        ("empty", FailureKind.MALFORMED, "no scores"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    kind: str, fault: str, kind_of_failure: FailureKind, message: str
) -> None:
    with serve("rerankers", faults=Faults(first=1, kinds=(fault,))) as server:
        error = scores(KINDS[kind](server))
        again = scores(KINDS[kind](server))
    assert isinstance(error, CallError)
    assert error.kind == kind_of_failure
    assert message in error.message
    assert again == tuple(relevance(QUERY, text) for text in TEXTS)


def test_google_says_how_long_to_wait() -> None:
    with serve("rerankers", faults=Faults(first=1, kinds=("quota_info",), hint_s=7.5)) as server:
        error = scores(vertex(server))
    assert (error.kind, error.retry_after_s) == (FailureKind.QUOTA, 7.5)
    assert error.message == "HTTP 429 RESOURCE_EXHAUSTED: slow down"


def test_a_spent_quota_of_the_day_stops_the_pool() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RankPerDay"}]}
    body = {"error": {"message": "spent", "status": "RESOURCE_EXHAUSTED", "details": [detail]}}

    async def ask() -> Any:
        async with served(saying(json.dumps(body).encode(), "429 Spent")) as server:
            ranking = VertexRanking(project="p", api_endpoint=server.url)
            return await call(ranking, ranking.payload((QUERY, TEXTS)))

    (error,) = asyncio.run(ask())
    assert (error.kind, error.stops_pool) == (FailureKind.QUOTA, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_the_answer_leaves_out_has_no_score(kind: str) -> None:
    expected: list[float | None] = [relevance(QUERY, text) for text in TEXTS]
    expected[expected.index(max(filter(None, expected)))] = None
    with serve("rerankers", faults=Faults(first=1, kinds=("fewer",))) as server:
        assert scores(KINDS[kind](server)) == tuple(expected)


def test_more_than_200_records_are_refused_by_the_service_and_never_sent() -> None:
    with serve("rerankers") as server:
        error = scores(vertex(server), ("text",) * 201)
    assert error.kind == FailureKind.INVALID
    assert VertexRanking.most_texts == 200


@settings(max_examples=examples(50))
@given(st.lists(st.none() | st.floats(-3, 3), max_size=12))
def test_order_by_score_keeps_the_retrievers_order(values: list[float | None]) -> None:
    known = [(-value, place) for place, value in enumerate(values) if value is not None]
    assert by_score(values) == [
        *(place for _, place in sorted(known)),
        *(place for place, value in enumerate(values) if value is None),
    ]


def test_keys_depend_on_all_that_decides_scores_and_on_nothing_else() -> None:
    item = ("who?", ("a", "b"))
    ranking = VertexRanking(project="p")
    key = ranking.key("vertex_ranking", item)
    same = [
        VertexRanking(project="other"),
        VertexRanking(project="p", depth=7),
        VertexRanking(project="p", quota="x"),
        VertexRanking(project="p", api_endpoint="localhost:1"),
    ]
    others = [VertexRanking(project="p", model="semantic-ranker-fast-004"), VertexRanking(project="p", version="2")]
    assert {one.key("vertex_ranking", item) for one in same} == {key}
    assert key not in {one.key("vertex_ranking", item) for one in others}
    assert key not in {ranking.key("vertex_ranking", one) for one in [("who?", ("b", "a")), ("who", ("a", "b"))]}


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"body": {"query": "{query}"}}, "lacks"),
        ({"body": {"documents": "{documents}"}}, "{query}"),
        ({"depth": 0}, "greater than or equal to 1"),
        ({"derive": False}, "Extra inputs"),
        ({"headers": {"Authorization": "Bearer abc"}}, "Authorization"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        HttpReranker(url="http://none.invalid/rerank", **parameters)


def test_an_alias_of_a_model_is_refused() -> None:
    with pytest.raises(ValidationError, match="another model tomorrow"):
        VertexRanking(project="p", model="semantic-ranker-default@latest")


def test_coheres_key_comes_from_the_environment_and_is_in_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "s3cret-key")
    with serve("rerankers") as server:
        reranker = Cohere(model="rerank-v3.5", url=f"{server.url}/v2/rerank")
        assert scores(reranker) == tuple(relevance(QUERY, text) for text in TEXTS)
        (request,) = server.stats().requests
    assert request["headers"]["authorization"] == "Bearer s3cret-key"
    assert json.loads(request["body"]) == {"model": "rerank-v3.5", "query": QUERY, "documents": list(TEXTS)}
    assert "${env:COHERE_API_KEY}" in reranker.secret_places()
    before = reranker.key("cohere", ("who?", ("a",)))
    monkeypatch.setenv("COHERE_API_KEY", "another")
    assert reranker.key("cohere", ("who?", ("a",))) == before


def test_an_error_instead_of_scores_is_shown_without_advice_that_rerankers_do_not_take() -> None:
    with pytest.raises(CallError, match="busy") as malformed:
        HttpReranker(url="http://h/").scores('{"error": {"message": "busy"}}', 1)
    assert "results_required" not in malformed.value.message
