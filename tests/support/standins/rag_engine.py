"""Vertex AI RAG Engine: `VertexRagService.RetrieveContexts`. Its scores are distances: lower is better."""

from typing import Any

from support.standins import grpc_server, messages
from support.standins.ranking import Rankings, Result, turned_around
from support.standins.reception import Reception

DEFAULT_TOP_K = 10
MESSAGES = messages.module("google.cloud.aiplatform_v1", "vertex_rag_service")
REQUEST = MESSAGES.RetrieveContextsRequest.pb()
RESPONSE = MESSAGES.RetrieveContextsResponse.pb()


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    settings = reception.settings
    rankings = Rankings(settings.answers, settings.documents, distances=True)
    return await grpc_server.start(
        reception,
        grpc_server.Method(
            service="google.cloud.aiplatform.v1.VertexRagService",
            name="RetrieveContexts",
            request=REQUEST,
            query=lambda request: request.query.text,
            answer=lambda request, fault: _response(_results_of(rankings, request), fault),
        ),
    )


def _results_of(rankings: Rankings, request: Any) -> list[Result]:
    config = request.query.rag_retrieval_config
    results = rankings.results(request.query.text, 0, config.top_k or DEFAULT_TOP_K)
    near = [result for result in results if _is_near(result.score, config.filter)]
    return _reranked(near) if config.HasField("ranking") else near


def _is_near(distance: float | None, bounds: Any) -> bool:
    if distance is None:
        return True
    if bounds.HasField("vector_similarity_threshold"):
        return 1 - distance > float(bounds.vector_similarity_threshold)
    return not bounds.HasField("vector_distance_threshold") or distance < float(bounds.vector_distance_threshold)


def _reranked(results: list[Result]) -> list[Result]:
    """The results the other way round, each with its distance, as a reranker leaves it."""
    return results[::-1]


def _response(results: list[Result], fault: str | None) -> Any:
    if fault == "empty":
        return RESPONSE()
    contexts = [_context(result) for result in (turned_around(results) if fault == "wrong_order" else results)]
    if fault == "malformed":
        contexts = [{**context, "source_uri": "", "source_display_name": ""} for context in contexts] or [{"text": "?"}]
    return RESPONSE(contexts={"contexts": contexts})


def _context(result: Result) -> dict[str, Any]:
    return {
        "source_uri": result.uri,
        "source_display_name": result.display_name,
        "text": result.text,
        "score": result.score,
    }
