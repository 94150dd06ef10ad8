"""Corpora that rankbeam builds: their identity, and the facts about a built one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import Failure

_MODULUS = 1 << 128
_SUFFIX = ".txt"
AS_STAGED = ""  # root of files that were uploaded unchanged: the name of each is its whole path, percent-encoded


@dataclass(frozen=True)
class DocumentsFingerprint:
    """Order-independent digest of a set of documents: associative and commutative, with a neutral element."""

    documents: int = 0
    total: int = 0

    @classmethod
    def of(cls, doc_id: str, text: str) -> "DocumentsFingerprint":
        content = hashlib.sha256(f"{len(doc_id)} {doc_id}{text}".encode()).digest()
        return cls(1, int.from_bytes(content[:16], "big"))

    def merge(self, other: "DocumentsFingerprint") -> "DocumentsFingerprint":
        """The fingerprint of both sets.

        >>> a, b = DocumentsFingerprint.of("a", "x"), DocumentsFingerprint.of("b", "y")
        >>> a.merge(b) == b.merge(a), a.merge(DocumentsFingerprint()) == a
        (True, True)
        """
        return DocumentsFingerprint(self.documents + other.documents, (self.total + other.total) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.documents}-{self.total:032x}"


def corpus_identity(specification: Mapping[str, Any], documents: DocumentsFingerprint) -> str:
    """The identity of a corpus: its specification and its documents, never the name of a resource."""
    return content_key({"stage": "corpus", "specification": dict(specification), "documents": str(documents)})


def file_name(doc_id: str) -> str:
    """The name of the file that holds a document: its id, percent-encoded.

    >>> file_name("kb/a b.txt"), file_name("ü")
    ('kb%2Fa%20b.txt.txt', '%C3%BC.txt')
    """
    return quote(doc_id, safe="") + _SUFFIX


def document_of(name: str, root: str | None = None) -> str:
    """The id of the document that a file holds.

    Args:
        name: URI or name of the file.
        root: None for uploaded texts, `AS_STAGED` for uploaded files, else the imported folder.

    >>> document_of("gs://bucket/kb/a%2Fb.txt"), document_of("a.txt.txt")
    ('a/b', 'a.txt')
    >>> document_of("gs://b/documents/0f/a%2Fb.txt", AS_STAGED), document_of("gs://b/kb/a/b%2F.txt", "gs://b/kb")
    ('a/b.txt', 'a/b%2F.txt')
    """
    if root:
        return name.removeprefix(f"{root}/")
    encoded = name.rpartition("/")[2]
    return unquote(encoded if root == AS_STAGED else encoded.removesuffix(_SUFFIX))


@dataclass(frozen=True)
class SearchedCorpus:
    """A corpus of a service that a retriever searches, as an experiment describes it under `corpora:`."""

    identity: str
    scope: str  # the part of the service that it belongs to, such as a project and region
    endpoint: str | None = None  # address of the service; None for the public one
    resource: str = ""
    root: str | None = None  # as in `document_of`


@dataclass(frozen=True)
class BuiltCorpus:
    """A corpus that exists, with all documents that could be imported."""

    name: str
    kind: str
    identity: str
    specification: Mapping[str, Any]
    documents: str
    resource: str
    state: str
    files: int
    failed: int = 0
    imported: int = 0
    failures: tuple[Failure, ...] = ()
    keep: str = "always"
    expires: datetime | None = None  # after which `rankbeam corpora delete --expired` deletes it; None for never


@dataclass(frozen=True)
class TemporaryCorpora:
    """The corpora of one project and region that are deleted at the end of a run, by their identities."""

    location: str
    api_endpoint: str | None
    identities: tuple[str, ...]
