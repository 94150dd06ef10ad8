"""Vertex AI Search: documents and chunks, one page a call, and nothing is cut without a word."""

import asyncio
import math
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud.discoveryengine_v1.types import Chunk, SearchRequest, SearchResponse
from pydantic import ValidationError
from support.connections import call
from support.scripted_grpc import Refusal, Script, scripted
from support.standins import Faults, serve

from rankbeam.transforms.clients.calls import feed as feed_module
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed, Recall
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.retrievers.base import Retrieve, payload_of
from rankbeam.transforms.clients.retrievers.vertex_search import VertexSearch
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import RecalledTasks, SearchDepth, Subject, Task
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Ranking

METHOD = "/google.cloud.discoveryengine.v1.SearchService/Search"
CONFIG = "projects/p/locations/global/collections/default_collection/engines/e/servingConfigs/default_search"
BRANCH = "projects/1/locations/global/collections/c/dataStores/d/branches/0/documents"
Answer = Callable[[bytes], bytes]


def retriever(**parameters: Any) -> VertexSearch:
    return VertexSearch(**{"serving_config": CONFIG, **parameters})


def results(*items: dict[str, Any], next_page_token: str = "") -> bytes:
    """An answer's bytes."""
    response = SearchResponse(results=[SearchResponse.SearchResult(item) for item in items])
    response.next_page_token = next_page_token
    return SearchResponse.serialize(response)


def chunk(document: str, number: str, content: str, **more: Any) -> dict[str, Any]:
    return {"name": f"{BRANCH}/{document}/chunks/{number}", "id": number, "content": content, **more}


def neighbours(previous: list[dict[str, Any]], following: list[dict[str, Any]]) -> Chunk.ChunkMetadata:
    return Chunk.ChunkMetadata(
        previous_chunks=[Chunk(chunk) for chunk in previous], next_chunks=[Chunk(chunk) for chunk in following]
    )


def ask(answer: Answer, depth: SearchDepth = SearchDepth(10), **parameters: Any) -> tuple[str | CallError, Script]:  # noqa: B008  a value
    """The reply of one call, and the request that the server saw."""

    async def run() -> tuple[str | CallError, Script]:
        async with scripted(METHOD, answer) as script:
            asking = retriever(api_endpoint=script.address, **parameters)
            return (await call(asking, payload_of("who?", depth)))[0], script

    return asyncio.run(run())


def failure(answer: Answer, **parameters: Any) -> CallError:
    outcome, _ = ask(answer, **parameters)
    assert isinstance(outcome, CallError)
    return outcome


def ranking(answer: bytes, **parameters: Any) -> Ranking:
    outcome, _ = ask(lambda _: answer, **parameters)
    assert isinstance(outcome, str)
    return retriever(**parameters).read(outcome)


def request_of(depth: SearchDepth = SearchDepth(10), **parameters: Any) -> SearchRequest:  # noqa: B008  a value
    """The request that arrives."""
    _, script = ask(lambda _: results(), depth, **parameters)
    return SearchRequest.deserialize(script.requests[0])


def test_what_is_asked_arrives() -> None:
    assert request_of(SearchDepth(100), filter='lang: ANY("en")', texts="snippets") == SearchRequest(
        serving_config=CONFIG,
        query="who?",
        page_size=100,
        filter='lang: ANY("en")',
        content_search_spec={"search_result_mode": "DOCUMENTS", "snippet_spec": {"return_snippet": True}},
    )


def test_chunks_are_asked_with_their_neighbours() -> None:
    contents = request_of(mode="chunks", previous_chunks=1, next_chunks=3).content_search_spec
    assert contents == SearchRequest.ContentSearchSpec(
        search_result_mode="CHUNKS", chunk_spec={"num_previous_chunks": 1, "num_next_chunks": 3}
    )


def test_one_call_takes_one_page() -> None:
    outcome, script = ask(lambda _: results({"id": "a", "document": {"id": "a"}}, next_page_token="more"))  # noqa: S106  a place in a list
    assert isinstance(outcome, str)
    assert retriever().read(outcome).doc_ids == ("a",)
    assert len(script.requests) == 1


@pytest.mark.parametrize(("more", "warned"), [("more", True), ("", False)])
def test_a_page_smaller_than_top_k_is_a_warning_if_there_are_more_results(more: str, *, warned: bool) -> None:
    page = results({"document": {"id": "a"}}, {"document": {"id": "b"}}, next_page_token=more)

    async def run() -> list[str]:
        async with scripted(METHOD, lambda _: page) as script:
            connection = await retriever(api_endpoint=script.address).connect()
            for depth in (SearchDepth(2), SearchDepth(50), SearchDepth(50)):
                await connection.call(payload_of("who?", depth), 30.0, 1)
            await connection.close()
            return connection.warnings

    problem = "returned only 2 results for top_k: 50, although it has more: it limits the size of a page"
    assert [text.partition(" (")[0] for text in asyncio.run(run())] == ([f"{CONFIG} {problem}"] if warned else [])


@pytest.mark.parametrize(("depth", "more", "warned"), [(50, "more", True), (2, "more", False), (50, "", False)])
def test_a_run_that_takes_such_a_page_from_the_ledger_has_the_same_warning(
    depth: int, more: str, *, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "_ROWS_AT_ONCE", 1)
    work = Retrieve("search", "vertex_search", retriever(), SearchDepth(depth))
    ledger, tasks = Ledger(str(tmp_path)), []
    writer = ledger.writer()
    for (key, text), ids in zip(work.questions(["who?", "what?"]), ["ab", "abc"], strict=True):
        page = results(*({"document": {"id": name}} for name in ids), next_page_token=more)
        answer, _ = ask(lambda _, page=page: page, SearchDepth(50))
        writer.add(LedgerEntry(key, SearchDepth(50), str(answer), 1, 0.1, datetime.now(UTC)))
        tasks += batches_of([Task(key, "search", (key, text), (Subject("retrieval", "q", 0, (0,)),))])
    writer.close()
    recall = Recall({"search": work}, list(map(Reference.to, tasks)))
    services, pools = {"search": retriever()}, {"search": "pool"}
    stage = Stage("retrieve", {"search": work}, services, pools, {"pool": Quota(requests_per_minute=60)}, {})
    with VirtualClock() as clock:
        fan_out = FanOut(stage, ledger, clock)
        fan_out.begin(("pool",), 0, Feed(recall.missed(), recall=recall))
        assert [len(taken.tasks) for taken in fan_out.outcomes() if isinstance(taken, RecalledTasks)] == [1, 1]
    problem = "returned only 2 results for top_k: 50, although it has more: it limits the size of a page"
    assert [text.partition(" (")[0] for text in fan_out.warnings()] == ([f"{CONFIG} {problem}"] if warned else [])


def test_documents_in_the_services_order() -> None:
    documents = ranking(
        results(
            {"document": {"id": "MED-10.txt"}, "model_scores": {"relevance_score": {"values": [0.25]}}},
            {"document": {"id": "v1.2"}, "model_scores": {"relevance_score": {"values": [0.75]}}},
            {"id": "unnamed", "model_scores": {"other": {"values": [1.0]}}},
            {"id": "empty", "model_scores": {"relevance_score": {"values": []}}},
        )
    )
    assert documents.doc_ids == ("MED-10.txt", "v1.2", "unnamed", "empty")
    assert documents.scores[:2] == (0.25, 0.75)
    assert [math.isnan(score) for score in documents.scores[2:]] == [True, True]


@pytest.mark.parametrize(
    ("derived", "text"),
    [
        ({}, ""),
        ({"title": "Title"}, "Title"),
        ({"title": None, "link": None}, ""),
        ({"title": "Title", "snippets": [{"snippet": "One", "snippet_status": "SUCCESS"}]}, "One"),
        (
            {"snippets": [{"snippet": "a <b>UC</b> &lt;b&gt;, here&#39;s&nbsp;...", "snippet_status": "SUCCESS"}]},
            "a UC <b>, here's ...",
        ),
        ({"snippets": [{"snippet": "No snippet is available", "snippet_status": "NO_SNIPPET_AVAILABLE"}]}, ""),
        ({"title": "Title", "extractive_segments": [{"content": "One"}, {"content": "Two"}]}, "One\nTwo"),
    ],
)
def test_texts_of_documents(derived: dict[str, Any], text: str) -> None:
    documents = ranking(results({"document": {"id": "a", "derived_struct_data": derived}}))
    assert documents.texts == (text,)


def test_neighbours_come_in_the_documents_order() -> None:
    nearest_first = neighbours(
        [chunk("D", "c9", "nine"), chunk("D", "c8", "eight")],
        [chunk("D", "c11", "eleven"), chunk("D", "c12", "twelve")],
    )
    furthest_first = neighbours([chunk("D", "c8", "eight"), chunk("D", "c9", "nine")], [])
    documents = ranking(
        results(
            {"chunk": chunk("D", "c10", "ten", relevance_score=0.5, chunk_metadata=nearest_first)},
            {"chunk": chunk("D", "c10", "ten", relevance_score=0.25, chunk_metadata=furthest_first)},
            {"chunk": chunk("E", "x", "alone", chunk_metadata=neighbours([chunk("E", "y", "before")], []))},
        ),
        mode="chunks",
    )
    assert documents.texts == ("eight\nnine\nten\neleven\ntwelve", "eight\nnine\nten", "before\nalone")
    assert (documents.doc_ids, documents.scores[:2]) == (("D", "D", "E"), (0.5, 0.25))
    assert math.isnan(documents.scores[2])


def test_a_chunks_score_may_be_zero() -> None:
    documents = ranking(results({"chunk": chunk("D", "c1", "one", relevance_score=0.0)}), mode="chunks")
    assert documents.scores == (0.0,)


@pytest.mark.parametrize(
    ("rule", "doc_id"),
    [
        ({}, "D.pdf"),
        ({"field": "chunk"}, "D.pdf/c1"),
        ({"field": "uri"}, "file"),
        ({"field": "uri", "prefix": "gs://b/"}, "kb/file"),
        ({"pattern": "^(.+)[.]pdf$"}, "D"),
    ],
)
def test_rules_read_old_answers(rule: dict[str, str], doc_id: str) -> None:
    response = {"chunk": chunk("D.pdf", "c1", "one", document_metadata={"uri": "gs://b/kb/file.pdf"})}
    assert ranking(results(response), mode="chunks", doc_id=rule).doc_ids == (doc_id,)
    one, other = retriever(mode="chunks"), retriever(mode="chunks", doc_id=rule)
    assert one.identity("vertex_search") == other.identity("vertex_search")


@pytest.mark.parametrize(
    "document",
    [
        {"id": "a", "content": {"uri": "gs://b/file.pdf"}},
        {"id": "a", "derived_struct_data": {"link": "gs://b/file.pdf"}},
    ],
)
def test_uris_of_documents(document: dict[str, Any]) -> None:
    assert ranking(results({"document": document}), doc_id={"field": "uri"}).doc_ids == ("file",)


@pytest.mark.parametrize(
    ("answer", "mode"),
    [
        (b"\xff\xff\xff", "documents"),
        (results({"document": {"derived_struct_data": {"title": "of nothing"}}}), "documents"),
        (results({"document": {"id": "a", "derived_struct_data": {"title": 5}}}), "documents"),
        (results({"document": {"id": "a", "derived_struct_data": {"snippets": "none"}}}), "documents"),
        (results({"document": {"id": "a", "derived_struct_data": {"extractive_segments": 3}}}), "documents"),
        (results({"id": "a", "model_scores": {"relevance_score": {"values": [math.nan]}}}), "documents"),
        (results({"document": {"id": "a"}}), "chunks"),
        (results({"chunk": {"name": "nothing", "id": "c1"}}), "chunks"),
    ],
)
def test_answers_that_cannot_be_used_are_malformed(answer: bytes, mode: str) -> None:
    assert failure(lambda _: answer, mode=mode).kind is FailureKind.MALFORMED


def test_no_results_are_an_answer() -> None:
    assert ranking(results()) == Ranking((), (), ())


@pytest.mark.parametrize("depth", [SearchDepth(101), SearchDepth(10, 0.5)])
def test_what_the_service_would_ignore_is_invalid(depth: SearchDepth) -> None:
    outcome, script = ask(lambda _: results(), depth)
    assert isinstance(outcome, CallError)
    assert outcome.kind is FailureKind.INVALID
    assert script.requests == []


def test_errors_have_kinds_and_hints() -> None:
    def refuse(_: bytes) -> bytes:
        raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many", retry_after_s=7.0)

    error = failure(refuse)
    assert (error.kind, error.message, error.retry_after_s) == (
        FailureKind.QUOTA,
        "RESOURCE_EXHAUSTED: too many",
        7.0,
    )


@pytest.mark.parametrize("parameters", [{"relevance_scores": True}, {"mode": "chunks"}, {}])
def test_a_stand_in_is_asked(parameters: dict[str, Any]) -> None:
    answers = {"who?": [{"id": "MED-10", "score": 0.5, "text": "one"}, {"id": "v1-2", "score": 0.25, "text": "two"}]}
    with serve("vertex_search", answers=answers) as server:
        asking = retriever(api_endpoint=server.address, **parameters)
        (answer,) = asyncio.run(call(asking, payload_of("who?", SearchDepth(2))))
        assert isinstance(answer, str)
        ranking = asking.read(answer)
        scores = (0.5, 0.25) if parameters else (math.nan, math.nan)
        assert (ranking.doc_ids, ranking.scores) == (("MED-10", "v1-2"), pytest.approx(scores, nan_ok=True))
        assert server.stats().second_pages == 0


def test_a_hung_call_ends_at_its_timeout() -> None:
    with serve("vertex_search", faults=Faults(rate=1, kinds=("hang",))) as server:
        asking = retriever(api_endpoint=server.address)
        (error,) = asyncio.run(call(asking, payload_of("who?", SearchDepth(1)), timeout_s=1.0))
    assert isinstance(error, CallError)
    assert error.kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"serving_config": "e"}, "give its full name"),
        ({"serving_config": CONFIG.replace("engines", "apps")}, "give its full name"),
        ({"previous_chunks": 1}, "need mode: chunks"),
        ({"mode": "chunks", "next_chunks": 4}, "less than or equal to 3"),
        ({"mode": "chunks", "texts": "snippets"}, "texts is for documents"),
        ({"mode": "chunks", "relevance_scores": True}, "a chunk always comes with its score"),
        ({"doc_id": {"field": "chunk"}}, "needs mode: chunks"),
        ({"mode": "pages"}, "'documents' or 'chunks'"),
        ({"filter": ""}, "at least 1 character"),
        ({"api_endpoint": "http://host/path"}, "is not an address"),
    ],
)
def test_what_cannot_work_is_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as error:
        retriever(**parameters)
    assert problem in str(error.value)


def test_parameters_travel() -> None:
    stores = CONFIG.replace("engines", "dataStores")
    asking = retriever(serving_config=stores, mode="chunks", doc_id={"field": "chunk"})
    assert pickle.loads(pickle.dumps(asking)) == asking  # noqa: S301  our own
    assert (asking.scope(), asking.is_prefix(), asking.most_results) == ("projects/p", True, 100)
