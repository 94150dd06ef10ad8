"""The documents in a data store of Vertex AI Search as a service, and works that list them page by page.

Only version v1alpha of the API lists chunks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from rankbeam.transforms.clients.corpora.lists import AnswerForms, DataWork, Page, all_pages
from rankbeam.transforms.clients.google.channels import Channels, Endpoint, open_channels
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

SERVICE = "vertex_search_documents"
DOCUMENTS_QUOTA = Quota(requests_per_minute=300, timeout_s=60.0)
"""The documented quota of searches; the quota of lists is not documented."""
_PAGE = 1000
DOCUMENTS, CHUNKS = "documents", "chunks"
Id = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class ListedDocument:
    """A document as the service lists it."""

    id: Id
    name: str
    uri: str = ""
    mime_type: str = ""
    text: str = ""
    values: Mapping[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class ListedChunk:
    """A chunk of a document; `title` is the document's."""

    id: Id
    text: str
    title: str = ""
    uri: str = ""


ANSWERS = AnswerForms(
    "Vertex AI Search's documents",
    {DOCUMENTS: TypeAdapter(Page[ListedDocument]), CHUNKS: TypeAdapter(Page[ListedChunk])},
)  # the answer to each request


@dataclass(frozen=True)
class DocumentsApi:
    """The documents in the data stores of one location."""

    location: str  # such as "global"
    api_endpoint: Endpoint | None = None

    async def connect(self) -> "DocumentsConnection":
        prefix = "" if self.location == "global" else f"{self.location}-"
        endpoint = self.api_endpoint or f"{prefix}discoveryengine.googleapis.com"
        documents = await open_channels(endpoint, "google.cloud.discoveryengine_v1", "DocumentService")
        chunks = await open_channels(endpoint, "google.cloud.discoveryengine_v1alpha", "ChunkService")
        return DocumentsConnection(documents, chunks)

    def read(self, answer: str) -> Any:
        return ANSWERS.read(answer)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  lists cost nothing
        return NO_TOKENS


@dataclass(frozen=True)
class DocumentsConnection:
    """Open connections to the service."""

    documents: Channels
    chunks: Channels

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        request = json.loads(payload)
        place = {"parent": request["parent"], "page_token": request["page_token"], "page_size": _PAGE}
        if request["request"] == DOCUMENTS:
            return await self._list_documents(place, timeout_s)
        return await self._list_chunks(place, timeout_s)

    async def close(self) -> None:
        await self.documents.close()
        await self.chunks.close()

    async def _list_documents(self, place: dict[str, Any], timeout_s: float) -> Reply:
        from google.cloud.discoveryengine_v1.types import Document, ListDocumentsRequest

        page = await self.documents.call("list_documents", lambda: ListDocumentsRequest(place), timeout_s)
        documents = [_document(Document.pb(document)) for document in page.documents]
        return Reply(ANSWERS.stored(DOCUMENTS, {"items": documents, "next": page.next_page_token}))

    async def _list_chunks(self, place: dict[str, Any], timeout_s: float) -> Reply:
        from google.cloud.discoveryengine_v1alpha.types import ListChunksRequest

        page = await self.chunks.call("list_chunks", lambda: ListChunksRequest(place), timeout_s)
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


def list_pages(api: DocumentsApi, request: str) -> DataWork[str]:
    """List the `DOCUMENTS` of a branch, or the `CHUNKS` of a document in the service's order; the item is its name."""

    def steps(parent: str) -> Steps[tuple[Any, ...]]:
        fields = {"request": request, "parent": parent}
        return all_pages(lambda token: Call(SERVICE, None, json.dumps({**fields, "page_token": token})))

    return DataWork(api, SERVICE, "documents", steps)


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
