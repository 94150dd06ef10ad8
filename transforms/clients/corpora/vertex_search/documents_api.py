"""The documents of a data store as a service of calls: one page an attempt.

Chunks are listed by version v1alpha of the API only.
"""

import json
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.clients.corpora.vertex_search.answers import ANSWERS, CHUNKS, DOCUMENTS
from rankbeam.transforms.clients.google.addresses import Endpoint
from rankbeam.transforms.clients.google.channels import Channels, open_channels
from rankbeam.transforms.clients.google.errors import requested
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

SERVICE = "vertex_search_documents"
DOCUMENTS_QUOTA = Quota(requests_per_minute=300, timeout_s=60.0)
"""The pace of searches, which is documented; that of lists is not."""
_PAGE = 1000


@dataclass(frozen=True)
class DocumentsApi:
    """The documents of the data stores of one location."""

    location: str  # such as "global"
    api_endpoint: Endpoint | None = None

    async def connect(self) -> "DocumentsConnection":
        """Connect; see `services.Service.connect`."""
        prefix = "" if self.location == "global" else f"{self.location}-"
        endpoint = self.api_endpoint or f"{prefix}discoveryengine.googleapis.com"
        return DocumentsConnection(await open_channels(endpoint, _documents), await open_channels(endpoint, _chunks))

    def read(self, answer: str) -> Any:
        """The value of an answer; see `services.Service.read`."""
        return ANSWERS.read(answer)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  lists cost nothing
        """None."""
        return NO_TOKENS


@dataclass(frozen=True)
class DocumentsConnection:
    """Open connections to the service."""

    documents: Channels
    chunks: Channels

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        """Make one attempt; see `services.Connection.call`."""
        request = json.loads(payload)
        place = {"parent": request["parent"], "page_token": request["page_token"], "page_size": _PAGE}
        if request["request"] == DOCUMENTS:
            return await self._list_documents(place, timeout_s)
        return await self._list_chunks(place, timeout_s)

    async def close(self) -> None:
        """Close the connections."""
        await self.documents.close()
        await self.chunks.close()

    async def _list_documents(self, place: dict[str, Any], timeout_s: float) -> Reply:
        from google.cloud.discoveryengine_v1.types import Document, ListDocumentsRequest

        request = requested(lambda: ListDocumentsRequest(place))
        page = await self.documents.attempt(
            lambda client: client.list_documents(request, retry=None, timeout=timeout_s)
        )
        documents = [_document(Document.pb(document)) for document in page.documents]
        return Reply(ANSWERS.stored(DOCUMENTS, {"items": documents, "next": page.next_page_token}))

    async def _list_chunks(self, place: dict[str, Any], timeout_s: float) -> Reply:
        from google.cloud.discoveryengine_v1alpha.types import ListChunksRequest

        request = requested(lambda: ListChunksRequest(place))
        page = await self.chunks.attempt(lambda client: client.list_chunks(request, retry=None, timeout=timeout_s))
        chunks = [
            {
                "id": chunk.id,
                "text": chunk.content,
                "title": chunk.document_metadata.title,
                "uri": chunk.document_metadata.uri,
            }
            for chunk in page.chunks
        ]
        return Reply(ANSWERS.stored(CHUNKS, {"items": chunks, "next": page.next_page_token}))


def _document(document: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    is_text = document.content.mime_type.startswith("text/")
    return {
        "id": document.id or document.name.rpartition("/")[2],
        "name": document.name,
        "uri": document.content.uri,
        "mime_type": document.content.mime_type,
        "text": document.content.raw_bytes.decode("utf-8", "replace") if is_text else "",
        "values": json.loads(document.json_data) if document.json_data else MessageToDict(document.struct_data),
    }


def _documents() -> tuple[Any, Any]:
    from google.cloud.discoveryengine_v1 import DocumentServiceAsyncClient
    from google.cloud.discoveryengine_v1.services.document_service.transports import (
        DocumentServiceGrpcAsyncIOTransport,
    )

    return DocumentServiceAsyncClient, DocumentServiceGrpcAsyncIOTransport


def _chunks() -> tuple[Any, Any]:
    from google.cloud.discoveryengine_v1alpha import ChunkServiceAsyncClient
    from google.cloud.discoveryengine_v1alpha.services.chunk_service.transports import ChunkServiceGrpcAsyncIOTransport

    return ChunkServiceAsyncClient, ChunkServiceGrpcAsyncIOTransport
