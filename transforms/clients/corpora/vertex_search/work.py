"""Works that list what a data store holds: pages of documents, and pages of the chunks of a document."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rankbeam.transforms.clients.corpora.vertex_search.answers import CHUNKS, DOCUMENTS, ListedChunk, ListedDocument
from rankbeam.transforms.clients.corpora.vertex_search.documents_api import SERVICE, DocumentsApi
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.reply import Reply


@dataclass(frozen=True)
class _Listing:
    """Base of both works."""

    api: DocumentsApi
    stage: ClassVar[str] = "documents"
    services: ClassVar[Sequence[str]] = (SERVICE,)

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  the Protocol's
        """As `Work`."""
        return self.api.read(reply.answer)

    def calls(self, item: str) -> range:  # noqa: ARG002  the Protocol's
        """As `Work`; how many pages there are is not known before."""
        return range(1, 1 << 31)


class ListDocuments(_Listing):
    """Lists the documents of a branch, by its name."""

    def steps(self, item: str) -> Steps[tuple[ListedDocument, ...]]:
        """All pages."""
        documents: list[ListedDocument] = []
        token = ""
        while True:
            (page,) = accepted((yield [_page(DOCUMENTS, item, token)]))
            documents += page.documents
            if not (token := page.next):
                return tuple(documents)


class ListChunks(_Listing):
    """Lists the chunks of a document, by its name, in the order of the service."""

    def steps(self, item: str) -> Steps[tuple[ListedChunk, ...]]:
        """All pages."""
        chunks: list[ListedChunk] = []
        token = ""
        while True:
            (page,) = accepted((yield [_page(CHUNKS, item, token)]))
            chunks += page.chunks
            if not (token := page.next):
                return tuple(chunks)


def _page(request: str, parent: str, token: str) -> Call:
    return Call(SERVICE, None, json.dumps({"request": request, "parent": parent, "page_token": token}))
