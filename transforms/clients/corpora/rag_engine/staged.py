"""Documents as files on Cloud Storage: names that any document id fits, in folders named after their content.

    STAGING/documents/0123456789abcdef/a%2Fb.txt

A folder's name is a hash of its content: what lies there already need not be uploaded again, and a change of one
document leaves all other folders as they are.
"""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.places import Place, repeated_at
from rankbeam.transforms.clients.formats.texts import TextEntry, read_entries
from rankbeam.transforms.records.corpora import DocumentsFingerprint, document_of, file_name
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import shortened

_FILES_OF_A_FOLDER = 1000  # on average; far from the 10,000 that an import takes
_CHARACTERS_OF_A_TOKEN = 4
_LONGEST_NAME = 800  # bytes; an object's whole name may have 1,024


@dataclass(frozen=True)
class StagedFolder:
    """A folder of staged files."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Staged:
    """Files of documents."""

    staging: str  # the folder of all staging, such as gs://bucket/rankbeam
    folders: tuple[StagedFolder, ...]

    @cached_property
    def files(self) -> int:
        """The number of files."""
        return sum(len(folder.names) for folder in self.folders)

    def names(self) -> frozenset[str]:
        """The names of all files; no two are equal."""
        return frozenset(name for folder in self.folders for name in folder.names)

    def objects(self) -> list[str]:
        """The URIs of all files."""
        return [f"{self.uri(folder)}/{name}" for folder in self.folders for name in folder.names]

    def uri(self, folder: StagedFolder) -> str:
        """The place of a folder."""
        return f"{self.staging}/documents/{folder.name}"

    def results(self, resource: str) -> str:
        """The folder to which the service writes what came of each file of a corpus."""
        return f"{self.staging}/results/{resource.rpartition('/')[2]}"

    def result(self, run: str, resource: str, number: int) -> str:
        """The object for the results of an import; it must not exist yet."""
        return f"{self.results(resource)}/{run}-{number}.ndjson"


@dataclass(frozen=True)
class StagedDocuments:
    """The documents of a dataset."""

    path: str
    titled: bool
    with_title: int
    fingerprint: DocumentsFingerprint
    folders: tuple[StagedFolder, ...]
    without_text: tuple[str, ...]
    tokens: Sequence[int]

    def chunks(self, size: int, overlap: int) -> tuple[int, int]:
        """About how many chunks they are cut into, and how many tokens these hold."""
        tokens = np.asarray(self.tokens)
        more = np.maximum(0, -(-(tokens - size) // (size - overlap)))
        return int((1 + more).sum()), int((tokens + more * overlap).sum())

    def ids(self) -> Iterator[str]:
        """The ids of all documents."""
        yield from (document_of(name) for folder in self.folders for name in folder.names)
        yield from self.without_text

    def staged(self, staging: str) -> Staged:
        """Their files below a folder."""
        return Staged(staging.rstrip("/"), self.folders)


def read_documents(path: str, *, titled: bool = False) -> StagedDocuments:
    """Read the ids of all documents, and hash their texts."""
    fingerprint, places, without_text = DocumentsFingerprint(), dict[str, Place](), list[str]()
    hashes: dict[str, bytes] = {}
    with_title = 0
    tokens = array("q")
    for file, entry in _entries(path):
        place = (file, entry.line)
        if places.setdefault(entry.id, place) != place:
            problem = f"document {shortened(repr(entry.id))} is given twice"
            raise repeated_at(problem, [places[entry.id], place], "ids must differ")
        with_title += bool(entry.title)
        text = _text(entry, titled)
        fingerprint = fingerprint.merge(DocumentsFingerprint.of(entry.id, text))
        if text.strip():  # the service refuses files without text
            hashes[_checked_name(file, entry)] = hashlib.sha256(text.encode()).digest()
            tokens.append(-(-len(text) // _CHARACTERS_OF_A_TOKEN))
        else:
            without_text.append(entry.id)
    if not hashes:
        raise InputError("holds no document with a text", path=path)
    folders = tuple(_folders(hashes))
    return StagedDocuments(path, titled, with_title, fingerprint, folders, tuple(without_text), tokens)


def texts(documents: StagedDocuments) -> Iterator[tuple[str, str]]:
    """The names of files and the texts of all documents that have one."""
    both = ((entry.id, _text(entry, documents.titled)) for _, entry in _entries(documents.path))
    return ((file_name(doc_id), text) for doc_id, text in both if text.strip())


def _text(entry: TextEntry, titled: bool) -> str:
    """The text of a document's file, as local retrievers join title and text."""
    return "\n".join(filter(None, (entry.title, entry.text))) if titled else entry.text


def _entries(path: str) -> Iterator[tuple[str, TextEntry]]:
    return ((file, entry) for file in sources.expand(path) for entry in read_entries(file, "corpus"))


def _checked_name(path: str, entry: TextEntry) -> str:
    name = file_name(entry.id)
    if len(name) > _LONGEST_NAME:
        problem = f"the id {shortened(repr(entry.id))} makes a file name of {len(name)} bytes"
        raise InputError(f"{problem}, and {_LONGEST_NAME} are the most; shorten it", path=path, line=entry.line)
    return name


def _folders(hashes: dict[str, bytes]) -> Iterator[StagedFolder]:
    """Files in folders: which one a file is in depends on its name, and on how many folders there are."""
    number = 1
    while number * _FILES_OF_A_FOLDER < len(hashes):
        number *= 2
    names: list[list[str]] = [[] for _ in range(number)]
    for name in sorted(hashes):
        names[_place(name, number)].append(name)
    for part in filter(None, names):
        content = hashlib.sha256()
        for name in part:
            content.update(f"{name}\n".encode() + hashes[name])
        yield StagedFolder(content.hexdigest()[:16], tuple(part))


def _place(name: str, number: int) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % number
