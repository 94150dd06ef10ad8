"""Pages of documents and chunks of Vertex AI Search, in the form that a fan-out passes on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from rankbeam.transforms.clients.corpora.lists import Answers, Page

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


DOCUMENTS, CHUNKS = "documents", "chunks"
ANSWERS = Answers(
    "Vertex AI Search's documents",
    {DOCUMENTS: TypeAdapter(Page[ListedDocument]), CHUNKS: TypeAdapter(Page[ListedChunk])},
)
"""The answer to each request."""
