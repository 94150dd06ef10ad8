"""Vertex AI Search: `SearchService.Search`, which finds documents, or chunks of them with their neighbours."""

from typing import Any

from support.standins import grpc_server, messages
from support.standins.ranking import Rankings, Result, turned_around
from support.standins.reception import Reception

DEFAULT_PAGE_SIZE, MOST_PAGE_SIZE, MOST_NEIGHBOURS = 10, 100, 5
FOUND_CHUNK, CHUNKS_OF_A_DOCUMENT = 3, 8
MESSAGES = messages.module("google.cloud.discoveryengine_v1", "search_service")
REQUEST = MESSAGES.SearchRequest.pb()
RESPONSE = MESSAGES.SearchResponse.pb()
CHUNKS = MESSAGES.SearchRequest.ContentSearchSpec.SearchResultMode.CHUNKS


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    settings = reception.settings
    rankings = Rankings(settings.answers, settings.documents, distances=False)

    def answer(request: Any, fault: str | None) -> Any:
        _check(request)
        reception.second_pages += bool(request.page_token)
        return _response(rankings, request, fault)

    return await grpc_server.start(
        reception,
        grpc_server.Method(
            service="google.cloud.discoveryengine.v1.SearchService",
            name="Search",
            request=REQUEST,
            query=lambda request: request.query,
            answer=answer,
        ),
    )


def _check(request: Any) -> None:
    spec = request.content_search_spec.chunk_spec
    if request.page_size < 0 or request.offset < 0:
        raise ValueError("page_size and offset are not negative")
    if max(spec.num_previous_chunks, spec.num_next_chunks) > MOST_NEIGHBOURS:
        raise ValueError(f"a chunk has at most {MOST_NEIGHBOURS} neighbours on each side")
    if request.page_token and not request.page_token.isdecimal():
        raise ValueError("the page token is none of this service's")


def _response(rankings: Rankings, request: Any, fault: str | None) -> Any:
    if fault == "empty":
        return RESPONSE()
    start = int(request.page_token or request.offset)
    end = start + min(request.page_size or DEFAULT_PAGE_SIZE, MOST_PAGE_SIZE)
    results, count = rankings.results(request.query, start, end - start), rankings.count(request.query)
    if fault == "wrong_order":
        results = turned_around(results)
    return RESPONSE(
        results=[{}] if fault == "malformed" else [_result(result, request) for result in results],
        total_size=count,
        next_page_token=str(end) if end < count else "",
    )


def _result(result: Result, request: Any) -> dict[str, Any]:
    if request.content_search_spec.search_result_mode == CHUNKS:
        return {"chunk": _found_chunk(result, request)}
    has_scores = request.relevance_score_spec.return_relevance_score
    return {
        "id": result.id,
        "document": {"name": _name(result, request), "id": result.id, "derived_struct_data": _derived(result, request)},
        **({"model_scores": {"relevance_score": {"values": [result.score]}}} if has_scores else {}),
    }


def _name(result: Result, request: Any) -> str:
    """A document's full name, below the data store or engine that was asked."""
    return f"{request.serving_config.partition('/servingConfigs/')[0]}/branches/0/documents/{result.id}"


def _derived(result: Result, request: Any) -> dict[str, Any]:
    """Data of a document; passages only if the request asks for them."""
    spec = request.content_search_spec
    fields: dict[str, Any] = {"title": result.title, "link": result.uri}
    if spec.snippet_spec.return_snippet:
        fields["snippets"] = [{"snippet": result.text, "snippet_status": "SUCCESS"}]
    if spec.extractive_content_spec.max_extractive_answer_count:
        fields["extractive_answers"] = [{"content": result.text, "pageNumber": "1"}]
    if spec.extractive_content_spec.max_extractive_segment_count:
        fields["extractive_segments"] = [{"content": result.text, "pageNumber": "1"}]
    return fields


def _found_chunk(result: Result, request: Any) -> dict[str, Any]:
    spec = request.content_search_spec.chunk_spec
    before = range(max(FOUND_CHUNK - spec.num_previous_chunks, 0), FOUND_CHUNK)
    after = range(FOUND_CHUNK + 1, min(FOUND_CHUNK + 1 + spec.num_next_chunks, CHUNKS_OF_A_DOCUMENT))
    return {
        **_chunk(result, request, FOUND_CHUNK, result.text),
        "relevance_score": result.score,
        "document_metadata": {"uri": result.uri, "title": result.title},
        "chunk_metadata": {
            "previous_chunks": [_neighbour(result, request, number) for number in before],
            "next_chunks": [_neighbour(result, request, number) for number in after],
        },
    }


def _neighbour(result: Result, request: Any, number: int) -> dict[str, Any]:
    return _chunk(result, request, number, f"Passage {number} of {result.id}.")


def _chunk(result: Result, request: Any, number: int, text: str) -> dict[str, Any]:
    return {"name": f"{_name(result, request)}/chunks/c{number}", "id": f"c{number}", "content": text}
