"""RAG Engine: what is asked arrives, what is answered is read, and what goes wrong has a kind."""

import asyncio
import math
import socket
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.cloud.aiplatform_v1.types import RagContexts, RetrieveContextsRequest, RetrieveContextsResponse
from support.connections import call
from support.rag_engine_calls import CORPUS, retriever
from support.scripted_grpc import Refusal, Script, scripted
from support.standins import Faults, serve

from rankbeam.transforms.clients.google import channels
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Ranking

METHOD = "/google.cloud.aiplatform.v1.VertexRagService/RetrieveContexts"
Answer = Callable[[bytes], bytes]


def contexts(*items: dict[str, Any]) -> bytes:
    """An answer's bytes."""
    response = RetrieveContextsResponse(contexts=RagContexts(contexts=[RagContexts.Context(item) for item in items]))
    return RetrieveContextsResponse.serialize(response)


def ask(answer: Answer, depth: SearchDepth = SearchDepth(10), **parameters: Any) -> tuple[str | CallError, Script]:  # noqa: B008  a value
    """The reply of one call, and the request that the server saw."""

    async def run() -> tuple[str | CallError, Script]:
        async with scripted(METHOD, answer) as script:
            client = retriever(api_endpoint=script.address, **parameters)
            return (await call(client, payload_of("who?", depth)))[0], script

    return asyncio.run(run())


def failure(answer: Answer, **parameters: Any) -> CallError:
    outcome, _ = ask(answer, **parameters)
    assert isinstance(outcome, CallError)
    return outcome


def ranking(answer: bytes, **parameters: Any) -> Ranking:
    outcome, _ = ask(lambda _: answer)
    assert isinstance(outcome, str)
    return retriever(**parameters).read(outcome)


def refusing(code: grpc.StatusCode, message: str = "no", retry_after_s: float | None = None) -> Answer:
    def refuse(_: bytes) -> bytes:
        raise Refusal(code, message, retry_after_s)

    return refuse


def request_of(depth: SearchDepth = SearchDepth(10), **parameters: Any) -> RetrieveContextsRequest:  # noqa: B008  a value
    """The request that arrives."""
    _, script = ask(lambda _: contexts(), depth, **parameters)
    return RetrieveContextsRequest.deserialize(script.requests[0])


def test_what_is_asked_arrives() -> None:
    request = request_of(
        SearchDepth(7, 0.25),
        rag_file_ids=("f1", "f2"),
        metadata_filter='lang = "en"',
        rank_service="semantic-ranker-default@latest",
    )
    assert request == RetrieveContextsRequest(
        parent="projects/p/locations/us-central1",
        vertex_rag_store={"rag_resources": [{"rag_corpus": CORPUS, "rag_file_ids": ["f1", "f2"]}]},
        query={
            "text": "who?",
            "rag_retrieval_config": {
                "top_k": 7,
                "filter": {"vector_distance_threshold": 0.25, "metadata_filter": 'lang = "en"'},
                "ranking": {"rank_service": {"model_name": "semantic-ranker-default@latest"}},
            },
        },
    )


def test_calls_are_routed_by_their_region_and_carry_no_credentials_without_tls() -> None:
    _, script = ask(lambda _: contexts())
    (metadata,) = script.metadata
    assert metadata["x-goog-request-params"] == "parent=projects/p/locations/us-central1"
    assert "authorization" not in metadata


def test_what_is_not_asked_does_not_arrive() -> None:
    config = request_of().query.rag_retrieval_config
    assert (config.top_k, "filter" in config, "ranking" in config) == (10, False, False)


@pytest.mark.parametrize("threshold", [0.0, 0.7])
def test_similarity_thresholds_arrive(threshold: float) -> None:
    config = request_of(vector_similarity_threshold=threshold).query.rag_retrieval_config
    assert "vector_similarity_threshold" in config.filter
    assert config.filter.vector_similarity_threshold == threshold


def test_a_distance_of_zero_arrives() -> None:
    config = request_of(SearchDepth(10, 0.0)).query.rag_retrieval_config
    assert "vector_distance_threshold" in config.filter


def test_language_models_arrive_as_rankers() -> None:
    ranker = request_of(llm_ranker="gemini-x").query.rag_retrieval_config.ranking
    assert (ranker.llm_ranker.model_name, "rank_service" in ranker) == ("gemini-x", False)


def test_the_order_is_the_services() -> None:
    documents = ranking(
        contexts(
            {"source_uri": "gs://b/far.txt", "text": "far away", "score": 0.9},
            {"source_uri": "gs://b/near.txt", "text": "near", "score": 0.0},
            {"source_uri": "gs://b/near.txt", "text": "near too", "score": 0.4},
        )
    )
    assert documents == Ranking(("far", "near", "near"), (0.9, 0.0, 0.4), ("far away", "near", "near too"))


def test_missing_scores_stay_missing() -> None:
    documents = ranking(contexts({"source_uri": "gs://b/a.txt"}, {"source_uri": "gs://b/b.txt", "score": 0.0}))
    assert [math.isnan(score) for score in documents.scores] == [True, False]


def test_no_contexts_are_an_answer() -> None:
    assert ranking(contexts()) == Ranking((), (), ())


def test_another_rule_reads_an_old_answer() -> None:
    response = contexts({"source_uri": "gs://b/kb/a/b.txt", "source_display_name": "B.pdf", "text": "x", "score": 0.1})
    assert ranking(response).doc_ids == ("b",)
    assert ranking(response, doc_id={"prefix": "gs://b/kb/"}).doc_ids == ("a/b",)
    assert ranking(response, doc_id={"field": "source_display_name"}).doc_ids == ("B",)
    assert len(ranking(response, doc_id={"field": "chunk"}).doc_ids[0]) == 32


def test_equal_chunks_of_a_file_count_as_one_chunk() -> None:
    chunk = {"source_uri": "gs://b/a.txt", "text": "See the next page.", "score": 0.1}
    first, other, again = ranking(contexts(chunk, {**chunk, "text": "x"}, chunk), doc_id={"field": "chunk"}).doc_ids
    assert first == again != other
    assert not retriever(doc_id={"field": "chunk"}).refuses_repeats("chunk")
    assert retriever().refuses_repeats("chunk")  # whose ids are those of documents, and cannot tell chunks apart


def test_a_rule_is_no_part_of_what_is_asked() -> None:
    one, other = retriever(), retriever(doc_id={"field": "chunk"})
    assert one.identity("rag_engine") == other.identity("rag_engine")
    assert one.identity("rag_engine") != retriever(metadata_filter="x").identity("rag_engine")


def test_a_rule_that_does_not_fit_is_no_id() -> None:
    with pytest.raises(CallError, match="does not match") as error:
        ranking(contexts({"source_uri": "gs://b/MED-A.txt"}), doc_id={"pattern": r"\d+\.txt"})
    assert error.value.kind is FailureKind.INVALID


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, FailureKind.QUOTA),
        (grpc.StatusCode.DEADLINE_EXCEEDED, FailureKind.TIMEOUT),
        (grpc.StatusCode.UNAVAILABLE, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.INTERNAL, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.ABORTED, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.DATA_LOSS, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.CANCELLED, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.UNKNOWN, FailureKind.UNAVAILABLE),
        (grpc.StatusCode.PERMISSION_DENIED, FailureKind.PERMISSION),
        (grpc.StatusCode.UNAUTHENTICATED, FailureKind.PERMISSION),
        (grpc.StatusCode.NOT_FOUND, FailureKind.NOT_FOUND),
        (grpc.StatusCode.INVALID_ARGUMENT, FailureKind.INVALID),
        (grpc.StatusCode.FAILED_PRECONDITION, FailureKind.INVALID),
        (grpc.StatusCode.OUT_OF_RANGE, FailureKind.INVALID),
        (grpc.StatusCode.UNIMPLEMENTED, FailureKind.INVALID),
        (grpc.StatusCode.ALREADY_EXISTS, FailureKind.INVALID),
    ],
)
def test_every_status_has_a_kind(code: grpc.StatusCode, kind: FailureKind) -> None:
    error = failure(refusing(code, "what the\nservice says"))
    assert (error.kind, error.message) == (kind, f"{code.name}: what the service says")
    assert error.retry_after_s is None


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE])
def test_the_service_says_when_to_come_back(code: grpc.StatusCode) -> None:
    assert failure(refusing(code, retry_after_s=2.5)).retry_after_s == 2.5


def test_refused_credentials_are_no_outage() -> None:
    message = "Getting metadata from plugin failed with error: ('invalid_grant: Token has been revoked.', {})"
    assert failure(refusing(grpc.StatusCode.UNAVAILABLE, message)).kind is FailureKind.PERMISSION


def test_messages_are_short_and_hold_no_tokens() -> None:
    message = failure(refusing(grpc.StatusCode.INTERNAL, "Bearer abc.def ya29.secret " + "x" * 1000)).message
    assert ("abc" in message, "secret" in message, len(message)) == (False, False, 300)


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xff\xff",
        contexts({"text": "of nothing", "score": 0.5}),
        contexts({"source_uri": "gs://b/a.txt", "score": math.nan}),
        contexts({"source_uri": "gs://b/a.txt", "score": math.inf}),
    ],
)
def test_answers_that_cannot_be_used_are_malformed(answer: bytes) -> None:
    assert failure(lambda _: answer).kind is FailureKind.MALFORMED


@pytest.mark.parametrize(
    "answer", ["", "[", "{}", '[{"uri": "a"}]', '[{"uri": 1, "name": "", "text": "", "score": 0}]']
)
def test_a_ledger_that_holds_something_else_is_malformed(answer: str) -> None:
    with pytest.raises(CallError) as error:
        retriever().read(answer)
    assert error.value.kind is FailureKind.MALFORMED


def test_a_distance_beside_a_similarity_is_invalid() -> None:
    error = failure(lambda _: contexts(), depth=SearchDepth(10, 0.5), vector_similarity_threshold=0.5)
    assert (error.kind, "exclude each other" in error.message) == (FailureKind.INVALID, True)


def test_what_does_not_fit_a_request_is_invalid() -> None:
    assert failure(lambda _: contexts(), depth=SearchDepth(2**40)).kind is FailureKind.INVALID


def test_a_server_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_CONNECT_S", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = retriever(api_endpoint=f"127.0.0.1:{taken.getsockname()[1]}")
        (error,) = asyncio.run(call(nowhere, payload_of("who?", SearchDepth(1))))
    assert isinstance(error, CallError)
    assert error.kind is FailureKind.UNAVAILABLE


def test_a_call_that_is_cancelled_is_cancelled() -> None:
    async def run(address: str) -> None:
        connection = await retriever(api_endpoint=address).connect()
        try:
            await asyncio.wait_for(connection.call(payload_of("who?", SearchDepth(1)), 60.0, 1), timeout=0.5)
        finally:
            await connection.close()

    with serve("rag_engine", faults=Faults(rate=1, kinds=("hang",))) as server, pytest.raises(TimeoutError):
        asyncio.run(run(server.address))


def test_a_hung_call_ends_at_its_timeout() -> None:
    with serve("rag_engine", faults=Faults(rate=1, kinds=("hang",))) as server:
        (error,) = asyncio.run(
            call(retriever(api_endpoint=server.address), payload_of("who?", SearchDepth(1)), timeout_s=0.5)
        )
    assert isinstance(error, CallError)
    assert error.kind is FailureKind.TIMEOUT


def test_the_time_limit_of_a_call_is_the_one_it_is_given() -> None:
    """The server says what is left of it: an hour less the way there, however busy the machine is."""

    async def run() -> float:
        async with scripted(METHOD, lambda _: contexts()) as script:
            await call(retriever(api_endpoint=script.address), payload_of("who?", SearchDepth(1)), timeout_s=3600.0)
        return script.left_s[0]

    assert 1800.0 < asyncio.run(run()) < 3700.0  # gRPC rounds what it sends up
