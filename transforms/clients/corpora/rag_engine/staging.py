"""Documents as files on Cloud Storage: with names for any document id, in folders named after their content.

    STAGING/documents/0123456789abcdef/a%2Fb.txt

A folder's name is a hash of its content: existing folders need not be uploaded again, and a change of one document
leaves all other folders as they are. Files that the service parses itself are imported as they are, and from a bucket
without an upload: names, sizes and checksums identify them, so that no object is read. rankbeam never writes to such a
bucket's folder, nor deletes from it: it is not in `StagedDocuments.uploaded_folders`.
"""

import base64
import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePosixPath
from urllib.parse import quote

import numpy as np

from rankbeam.transforms.clients.corpora.rag_engine.data_api import ListedFile
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.formats.documents.files import EVERYTHING, File, FolderSource, is_selected, list_files
from rankbeam.transforms.clients.formats.syntax import ids
from rankbeam.transforms.clients.formats.texts import TextEntry, entries_in, refuse_repeated
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.corpora import AS_STAGED, DocumentsFingerprint, document_of, file_name
from rankbeam.transforms.records.errors import InputError, pluralize, shortened

_FILES_OF_A_FOLDER = 1000  # on average; far below the 10,000 that an import takes
_CHARACTERS_OF_A_TOKEN = 4
_LONGEST_NAME = 800  # bytes; an object's full name may have 1,024
_PARSED = frozenset({".docx", ".htm", ".html", ".json", ".jsonl", ".md", ".ndjson", ".pdf", ".pptx", ".txt"})
_PLAIN = frozenset({".md", ".txt"})
_BYTES_OF_A_TOKEN = 4
_MOST_NAMED = 3


@dataclass(frozen=True)
class StagedFolder:
    """A folder of staged files."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class StagedFiles:
    """Files of documents."""

    staging: str  # the staging folder, such as gs://bucket/rankbeam
    folders: tuple[StagedFolder, ...]
    root: str | None = None  # as in `document_of`

    @cached_property
    def files(self) -> int:
        return sum(len(folder.names) for folder in self.folders)

    def names(self) -> frozenset[str]:
        """The names of all files; no two are equal."""
        return frozenset(name for folder in self.folders for name in folder.names)

    def uri(self, folder: StagedFolder) -> str:
        return self.root or f"{self.staging}/documents/{folder.name}"

    def names_of(self, file: ListedFile) -> set[str]:
        """The names of staged files that a file in a corpus may be."""
        if self.root:
            return {document_of(file.uri, self.root)} if file.uri.startswith(f"{self.root}/") else set()
        return {file.uri.rpartition("/")[2], file.name}

    def results(self, resource: str) -> str:
        """The folder to which the service writes the results for each file of a corpus."""
        return f"{self.staging}/results/{resource.rpartition('/')[2]}"

    def result(self, run: str, resource: str, number: int) -> str:
        """The object for the results of an import; it must not exist yet."""
        return f"{self.results(resource)}/{run}-{number}.ndjson"


@dataclass(frozen=True)
class StagedDocuments:
    """The documents of a dataset, or the files of a folder."""

    path: str  # the corpus, or the folder
    titled: bool  # True if titles are imported
    with_title: int  # number of documents with a title
    fingerprint: DocumentsFingerprint  # identity of the documents
    folders: tuple[StagedFolder, ...]  # names of the files that are imported
    without_text: tuple[str, ...]  # ids of documents that the service would refuse
    tokens: Sequence[int]  # estimated tokens of each file
    original: FolderSource | None = None  # the folder; None for the documents of a dataset
    checksums: Mapping[str, str] = field(default_factory=dict)  # CRC32C of files that are uploaded as they are, by name
    left_out: str = ""  # warning about files that are not imported; "" if there are none

    @property
    def root(self) -> str | None:
        return None if self.original is None else AS_STAGED if files.is_local(self.path) else self.path

    def chunks(self, size: int, overlap: int) -> tuple[int, int]:
        """The approximate number of chunks, and of their tokens."""
        tokens = np.asarray(self.tokens)
        more = np.maximum(0, -(-(tokens - size) // (size - overlap)))
        return int((1 + more).sum()), int((tokens + more * overlap).sum())

    def ids(self) -> Iterator[str]:
        yield from (self.id_of(name) for folder in self.folders for name in folder.names)
        yield from self.without_text

    def staged(self, staging: str) -> StagedFiles:
        return StagedFiles(staging.rstrip("/"), self.folders, self.root)

    def id_of(self, name: str) -> str:
        return document_of(name, self.root)

    @property
    def uploaded_folders(self) -> tuple[str, ...]:
        """The names of the folders that rankbeam writes, and may delete."""
        return () if self.root else tuple(folder.name for folder in self.folders)


def read_documents(path: str, *, titled: bool = False) -> StagedDocuments:
    """Read the ids of all documents, and hash their texts."""
    fingerprint, without_text = DocumentsFingerprint(), list[str]()
    hashes: dict[str, bytes] = {}
    with_title = 0
    tokens = array("q")
    for file, entry in refuse_repeated(entries_in(path, "corpus")):
        with_title += bool(entry.title)
        text = _text(entry, titled)
        fingerprint = fingerprint.merge(DocumentsFingerprint.of(entry.id, text))
        if text.strip():  # the service refuses files without text
            hashes[checked_name(file_name(entry.id), entry.id, file, entry.line)] = hashlib.sha256(
                text.encode()
            ).digest()
            tokens.append(-(-len(text) // _CHARACTERS_OF_A_TOKEN))
        else:
            without_text.append(entry.id)
    if not hashes:
        raise InputError("has no document with text", path=path)
    folders = tuple(folders_of(hashes))
    return StagedDocuments(path, titled, with_title, fingerprint, folders, tuple(without_text), tokens)


def contents(documents: StagedDocuments) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if documents.original is not None:
        return ((name, partial(_read_unchanged, documents, name)) for name in documents.checksums)
    texts = ((entry.id, _text(entry, documents.titled)) for _, entry in entries_in(documents.path, "corpus"))
    return ((file_name(doc_id), text.encode) for doc_id, text in texts if text.strip())


def upload(documents: StagedDocuments, folder: str) -> int:
    """Upload missing documents; returns their number. Files that are imported in place are not uploaded."""
    staged, objects = documents.staged(folder), Objects(folder)
    if staged.root:
        return 0
    uris = {name: staged.uri(part) for part in staged.folders for name in part.names}
    present = {uri for part in staged.folders for uri in objects.names(staged.uri(part))}
    if len(present) >= staged.files:
        return 0
    missing = ((f"{uris[name]}/{name}", content) for name, content in contents(documents))
    return objects.upload((uri, content) for uri, content in missing if uri not in present)


def _read_unchanged(documents: StagedDocuments, name: str) -> bytes:
    """The content of a file; refuses one that has changed since it was listed."""
    path = files.join(documents.path, documents.id_of(name))
    content = files.read_raw(path)
    if checksum(content) != documents.checksums[name]:
        raise InputError("has changed since this run began; run again", path=path)
    return content


def checksum(content: bytes) -> str:
    """CRC32C, as Cloud Storage writes it."""
    import google_crc32c

    return base64.b64encode(google_crc32c.Checksum(content).digest()).decode()


def _text(entry: TextEntry, titled: bool) -> str:
    """The text of a document's file; title and text are joined as by local retrievers."""
    return entry.titled_text if titled else entry.text


def checked_name(name: str, doc_id: str, path: str, line: int | None = None) -> str:
    """The name of a document's file; refuses one that is too long for an object."""
    if len(name) > _LONGEST_NAME:
        problem = f"the id {shortened(repr(doc_id))} makes a file name of {len(name)} bytes"
        raise InputError(f"{problem}, and the maximum is {_LONGEST_NAME}; shorten it", path=path, line=line)
    return name


def folders_of(hashes: dict[str, bytes]) -> Iterator[StagedFolder]:
    """Divide files among folders, by a hash of the name and the number of folders."""
    number = 1
    while number * _FILES_OF_A_FOLDER < len(hashes):
        number *= 2
    names: list[list[str]] = [[] for _ in range(number)]
    for name in sorted(hashes):
        names[int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % number].append(name)
    for part in filter(None, names):
        content = hashlib.sha256()
        for name in part:
            content.update(f"{name}\n".encode() + hashes[name])
        yield StagedFolder(content.hexdigest()[:16], tuple(part))


def read_originals(source: FolderSource) -> StagedDocuments:
    listing = sorted(_listing(source), key=lambda file: file.name)
    chosen = [file for file in listing if source.glob or file.suffix in _PARSED]
    if not chosen:
        problem = (
            f"matches {source.glob!r}"
            if source.glob
            else f"is of a type that is imported: {', '.join(sorted(_PARSED))}"
        )
        raise InputError(f"no file in the folder {problem}", path=source.folder)
    wrong = next((file.name for file in chosen if ids.fault(file.name) is not None), None)
    if wrong is not None:
        raise InputError(f"the path {wrong!r} cannot be an id: it {ids.fault(wrong)}", path=source.folder)
    fingerprint = DocumentsFingerprint()
    for file in chosen:
        fingerprint = fingerprint.merge(DocumentsFingerprint.of(file.name, f" {file.bytes} {file.checksum}"))
    filled = [file for file in chosen if file.bytes]
    if not filled:
        raise InputError("all files of the folder are empty", path=source.folder)
    empty = tuple(file.name for file in chosen if not file.bytes)
    tokens = array("q", (math.ceil(file.bytes / _BYTES_OF_A_TOKEN) for file in filled))
    others = [] if source.glob else [file for file in listing if file.suffix not in _PARSED]
    documents = StagedDocuments(
        source.folder, False, 0, fingerprint, (), empty, tokens, source, left_out=_note(source, listing, others)
    )
    if documents.root:
        names = [file.name for file in filled]
        parts = (names[start : start + _FILES_OF_A_FOLDER] for start in range(0, len(names), _FILES_OF_A_FOLDER))
        return replace(documents, folders=tuple(StagedFolder("", tuple(part)) for part in parts))
    encoded = {checked_name(quote(file.name, safe=""), file.name, source.folder): file.checksum for file in filled}
    folders = folders_of({name: value.encode() for name, value in encoded.items()})
    return replace(documents, folders=tuple(folders), checksums=encoded)


def has_changed(documents: StagedDocuments) -> bool:
    """Return whether files that were imported in place have changed since."""
    if documents.original is None or not documents.root:
        return False  # uploads are checked when they are read
    try:
        return read_originals(documents.original).fingerprint != documents.fingerprint
    except InputError:
        return True


def refuse_parsed(documents: StagedDocuments) -> None:
    """Refuse files whose text the service extracts, as evidence is located by characters of the text."""
    parsed = [name for name in documents.ids() if PurePosixPath(name).suffix.lower() not in _PLAIN]
    if parsed:
        problem = (
            f"the service extracts the text of {pluralize(len(parsed), 'file')} "
            f"itself, such as {parsed[0]}, so evidence cannot "
            "be located in its chunks; use unit: document, or take `folder` out of the corpus to import texts"
        )
        raise InputError(problem, path=documents.path)


def _listing(source: FolderSource) -> Iterator[File]:
    glob = source.glob or EVERYTHING
    if not files.is_local(source.folder):
        return (file for file in Objects(source.folder).originals() if is_selected(file.name, glob))
    local = list_files(FolderSource(source.folder, glob))
    return (replace(file, checksum=checksum(files.read_raw(file.path))) for file in local if file.bytes >= 0)


def _note(source: FolderSource, listing: Sequence[File], others: Sequence[File]) -> str:
    if not others:
        return ""
    counts = Counter(file.suffix for file in others).most_common()
    suffixes = ", ".join(f"{count:,} {suffix or '(no suffix)'}" for suffix, count in counts)
    names = ", ".join(file.name for file in others[:_MOST_NAMED]) + (", …" if len(others) > _MOST_NAMED else "")
    advice = "`glob` names the files that are"
    return (
        f"{source.folder}: {len(others):,} of {pluralize(len(listing), 'file is', 'files are')} "
        f"not imported: {suffixes} ({names}); {advice}"
    )
