"""Clients of the stand-ins."""

import asyncio
import ssl
from typing import Any

import grpc
import httpx
from google.api_core import exceptions
from google.cloud import aiplatform_v1, discoveryengine_v1
from support.standins import Standin

TRUST = ssl.create_default_context()  # httpx would make one for every request
RAG = aiplatform_v1.VertexRagServiceAsyncClient
SEARCH = discoveryengine_v1.SearchServiceAsyncClient
ANSWERS = {"who": [{"id": "a", "score": 0.1, "text": "A"}, {"id": "b", "score": 0.2}, {"id": "c", "score": 0.4}]}
CONFIG = "projects/p/locations/global/collections/default_collection/engines/e/servingConfigs/default_search"


def rag(server: Standin, *queries: dict[str, Any], timeout_s: float = 10) -> list[Any]:
    """The answers of the RAG Engine, in the order asked; errors as values."""

    async def ask() -> list[Any]:
        channel = grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        client = RAG(transport=RAG.get_transport_class("grpc_asyncio")(channel=channel))
        requests = [{"parent": "projects/p/locations/l", "query": query} for query in queries]
        async with channel:
            return [await _outcome(client.retrieve_contexts(request, timeout=timeout_s)) for request in requests]

    return asyncio.run(ask())


def question(text: str = "who", **config: Any) -> dict[str, Any]:
    """A query of the RAG Engine."""
    return {"text": text, "rag_retrieval_config": config}


def scored_documents(answer: Any) -> list[tuple[str, float]]:
    """URIs and scores of the RAG Engine's answer."""
    return [(context.source_uri, context.score) for context in answer.contexts.contexts]


def search(server: Standin, **parameters: Any) -> Any:
    """The first page of Vertex AI Search, or the error."""

    async def ask() -> Any:
        channel = grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        client = SEARCH(transport=SEARCH.get_transport_class("grpc_asyncio")(channel=channel))
        async with channel:
            return await _outcome(client.search({"serving_config": CONFIG, **parameters}, timeout=10, retry=None))

    return asyncio.run(ask())


def post(server: Standin, query: str = "who", top_k: int = 10, timeout_s: float = 10) -> httpx.Response:
    return httpx.post(f"{server.url}/search", json={"query": query, "top_k": top_k}, timeout=timeout_s, verify=TRUST)


def hits(response: httpx.Response) -> list[tuple[str, float]]:
    return [(hit["_id"], hit["_score"]) for hit in response.json()["hits"]["hits"]]


async def _outcome(call: Any) -> Any:
    try:
        return await call
    except exceptions.GoogleAPICallError as error:
        return error
