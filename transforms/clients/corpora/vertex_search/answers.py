"""Pages of documents and chunks of Vertex AI Search, in the form that a fan-out passes on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from rankbeam.transforms.clients.calls.answers import parsed, written
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

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


@dataclass(frozen=True)
class DocumentPage:
    """A page of documents; `next` is the token of the next one."""

    documents: tuple[ListedDocument, ...]
    next: str = ""


@dataclass(frozen=True)
class ChunkPage:
    """A page of chunks; `next` is the token of the next one."""

    chunks: tuple[ListedChunk, ...]
    next: str = ""


DOCUMENTS, CHUNKS = "documents", "chunks"
FORMS: Mapping[str, TypeAdapter[Any]] = {DOCUMENTS: TypeAdapter(DocumentPage), CHUNKS: TypeAdapter(ChunkPage)}
"""The form of the answer to each request."""


def stored(request: str, values: Mapping[str, Any]) -> str:
    """An answer as text."""
    return json.dumps({"request": request, "answer": json.loads(written(FORMS[request], dict(values)))})


def read(answer: str) -> Any:
    """The page that an answer holds.

    >>> read(stored("chunks", {"chunks": [{"id": "c1", "text": "words"}]})).chunks[0].text
    'words'
    """
    try:
        values = json.loads(answer)
        form, content = FORMS[values["request"]], json.dumps(values["answer"])
    except (ValueError, KeyError, TypeError) as error:
        raise CallError(FailureKind.MALFORMED, "the answer is not of Vertex AI Search's documents") from error
    return parsed(form, content)
