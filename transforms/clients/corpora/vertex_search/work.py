"""Works that list what a data store holds: pages of documents, and pages of the chunks of a document."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rankbeam.transforms.clients.corpora.lists import all_pages
from rankbeam.transforms.clients.corpora.vertex_search.answers import CHUNKS, DOCUMENTS, ListedChunk, ListedDocument
from rankbeam.transforms.clients.corpora.vertex_search.documents_api import SERVICE, DocumentsApi
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.reply import Reply

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Listing(Generic[Item]):
    """Base of both works."""

    api: DocumentsApi
    stage: ClassVar[str] = "documents"
    services: ClassVar[Sequence[str]] = (SERVICE,)
    request: ClassVar[str]

    def steps(self, item: str) -> Steps[tuple[Item, ...]]:
        """All pages."""

        def page(token: str) -> Call:
            return Call(SERVICE, None, json.dumps({"request": self.request, "parent": item, "page_token": token}))

        return (yield from all_pages(page))

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  the Protocol's
        """As `Work`."""
        return self.api.read(reply.answer)

    def calls(self, item: str) -> range:  # noqa: ARG002  the Protocol's
        """As `Work`; the number of pages is not known before."""
        return range(1, 1 << 31)


class ListDocuments(_Listing[ListedDocument]):
    """Lists the documents of a branch, by its name."""

    request = DOCUMENTS


class ListChunks(_Listing[ListedChunk]):
    """Lists the chunks of a document, by its name, in the order of the service."""

    request = CHUNKS
