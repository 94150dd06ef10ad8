"""Corpora that rankbeam builds: what identifies them, and what is known of one that is built."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from rankbeam.transforms.records.calls.call import content_key
from rankbeam.transforms.records.failures import Failure

_MODULUS = 1 << 128
_SUFFIX = ".txt"


@dataclass(frozen=True)
class DocumentsFingerprint:
    """Identifies a set of documents, in whatever order they come; associative and commutative, with a neutral element.

    Attributes:
        documents: how many there are.
        total: the sum, modulo 2^128, of the hashes of all documents.
    """

    documents: int = 0
    total: int = 0

    @classmethod
    def of(cls, doc_id: str, text: str) -> "DocumentsFingerprint":
        """The fingerprint of one document."""
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


def fingerprint_of(documents: Iterable[tuple[str, str]]) -> DocumentsFingerprint:
    """The fingerprint of documents.

    Args:
        documents: ids and texts.
    """
    whole = DocumentsFingerprint()
    for doc_id, text in documents:
        whole = whole.merge(DocumentsFingerprint.of(doc_id, text))
    return whole


def corpus_identity(specification: Mapping[str, Any], documents: DocumentsFingerprint) -> str:
    """What identifies a corpus: its specification and its documents, never the name of a resource.

    Args:
        specification: all that decides its content besides the documents, as JSON values, with its type.
        documents: their fingerprint.
    """
    return content_key({"stage": "corpus", "specification": dict(specification), "documents": str(documents)})


def file_name(doc_id: str) -> str:
    """The name of the file that holds a document: its id, percent-encoded.

    >>> file_name("kb/a b.txt"), file_name("ü")
    ('kb%2Fa%20b.txt.txt', '%C3%BC.txt')
    """
    return quote(doc_id, safe="") + _SUFFIX


def document_of(name: str) -> str:
    """The id of the document that a file holds.

    Args:
        name: of the file, or a path or URI of it.

    >>> document_of("gs://bucket/kb/a%2Fb.txt"), document_of("a.txt.txt")
    ('a/b', 'a.txt')
    """
    return unquote(name.rpartition("/")[2].removesuffix(_SUFFIX))


@dataclass(frozen=True)
class Searched:
    """A corpus of a service that a retriever searches, as an experiment describes it under `corpora:`.

    Attributes:
        identity: `corpus_identity`, or a hash of the specification as long as the documents were not read.
        scope: the part of the service that it belongs to, such as a project and region.
        endpoint: address of the service; None for the public one.
        resource: its name at the service; "" as long as it is not built.
    """

    identity: str
    scope: str
    endpoint: str | None = None
    resource: str = ""


@dataclass(frozen=True)
class BuiltCorpus:
    """A corpus that exists, with all documents that could be imported.

    Attributes:
        name: what the experiment that built it calls it.
        kind: its type.
        identity: `corpus_identity`.
        specification: all that decides its content besides the documents, as JSON values.
        documents: their fingerprint.
        resource: its name at the service.
        state: "built" where this run imported files, "reused" where it did not.
        files: documents that it holds.
        failed: documents that it lacks.
        imported: files that this run imported.
        failures: one for each document that this run could not import; `query_id` holds the document's id.
        keep: as the experiment says: "run", "always", or a number of days such as "14d".
        expires: after which `rankbeam corpora delete --expired` deletes it; None for never.
    """

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
    expires: datetime | None = None
