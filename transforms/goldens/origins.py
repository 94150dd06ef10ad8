"""Read the documents of a benchmark from files, a corpus of RAG Engine, or Vertex AI Search."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from rankbeam.transforms.clients.calls.fanout import SingleService
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import DataApi
from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.corpora.vertex_search import (
    CHUNKS,
    DOCUMENTS,
    DOCUMENTS_QUOTA,
    SERVICE,
    DocumentsApi,
    ListedDocument,
    list_pages,
)
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.documents.files import EVERYTHING, holds_documents
from rankbeam.transforms.clients.formats.syntax import ids
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.retrievers.document_ids import DocumentIds
from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.goldens.documents import (
    SUFFIXES,
    Document,
    Sample,
    join_chunks,
    read_chunks,
    read_documents,
    read_folder,
    text_document,
)
from rankbeam.transforms.records.errors import CallError, InputError

_THREADS = 16
_TITLE = "title"


@dataclass(frozen=True)
class GatheredDocuments:
    """Documents that were read, and warnings about them."""

    documents: Sequence[Document]  # sorted by id
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFiles:
    """A corpus, a folder of texts (local or in a bucket), or a table of chunks."""

    place: str
    is_chunks: bool = False
    sample: Sample | None = None
    glob: str | None = None  # pattern of documents if the place is a folder

    def gather(self, ledger: Ledger) -> GatheredDocuments:  # noqa: ARG002  no service is called
        if self.glob is not None or (not self.is_chunks and holds_documents(self.place)):
            return GatheredDocuments(*read_folder(self.place, self.glob or EVERYTHING, self.sample))
        warnings = tuple(sources.part_warnings(sources.expand(self.place)))
        if self.is_chunks:
            return GatheredDocuments(read_chunks(self.place), warnings)
        documents, notes = read_documents(self.place, self.sample)
        return GatheredDocuments(documents, (*notes, *warnings))


@dataclass(frozen=True)
class RagFiles:
    """The files from which a corpus of RAG Engine was imported: the service itself returns no text."""

    place: str
    doc_id: DocumentIds = DocumentIds()  # noqa: RUF009  it is immutable
    api_endpoint: str | None = None  # address of the service; None for the public one

    def gather(self, ledger: Ledger) -> GatheredDocuments:
        client = CorpusClient(DataApi(self.place.partition("/ragCorpora/")[0], self.api_endpoint), ledger)
        with _as_input_errors(self.place):
            listed = client.files(self.place)
            named = {file.uri or file.name: self.doc_id.of(file.uri, file.name, "") for file in listed}
        texts = _texts_of(named)
        documents = (text_document(named[uri], text, uri) for uri, text in texts.items())
        return GatheredDocuments(
            _distinct(self.place, documents), _unreadable_warnings(self.place, named, texts, "convert them")
        )


@dataclass(frozen=True)
class DataStore:
    """The documents of a data store of Vertex AI Search, or their chunks."""

    place: str
    is_chunks: bool = False
    fields: tuple[str, ...] = ()
    api_endpoint: str | None = None  # address of the service; None for the public one

    def gather(self, ledger: Ledger) -> GatheredDocuments:
        location = self.place.partition("/locations/")[2].partition("/")[0]
        api = DocumentsApi(location, self.api_endpoint)
        service = SingleService(api, f"{SERVICE} {self.place.partition('/locations/')[0]}", DOCUMENTS_QUOTA, ledger)
        with _as_input_errors(self.place):
            listed: tuple[ListedDocument, ...] = service.one(list_pages(api, DOCUMENTS), self.place)
            documents = self._from_chunks(service, api, listed) if self.is_chunks else self._whole(listed)
        advice = "the data store has no chunks of them" if self.is_chunks else "take its chunks: unit: chunk"
        unread = _unreadable_warnings(
            self.place, [file.id for file in listed], {document.id for document in documents}, advice
        )
        return GatheredDocuments(_distinct(self.place, documents), (*service.warnings, *unread))

    def _from_chunks(
        self, service: SingleService, api: DocumentsApi, listed: Sequence[ListedDocument]
    ) -> list[Document]:
        documents = []
        for file, chunks in zip(
            listed, service.done(list_pages(api, CHUNKS), [file.name for file in listed]), strict=True
        ):
            if isinstance(chunks, CallError):
                raise chunks
            if chunks:
                title = next((chunk.title for chunk in chunks if chunk.title), "")
                documents.append(join_chunks(file.id, title, [chunk.text for chunk in chunks], self._attributes(file)))
        return documents

    def _whole(self, listed: Sequence[ListedDocument]) -> list[Document]:
        texts = _texts_of([file.uri for file in listed if not self._text(file)])
        documents = []
        for file in listed:
            title = str(file.values.get(_TITLE, ""))
            if text := self._text(file):
                documents.append(Document(file.id, title, text, self._attributes(file)))
            elif file.uri in texts:
                read = text_document(file.id, texts[file.uri], file.uri)
                documents.append(Document(file.id, title or read.title, read.text, self._attributes(file)))
        return documents

    def _text(self, listed: ListedDocument) -> str:
        values = [listed.values.get(name) for name in self.fields]
        return listed.text or "\n\n".join(value for value in values if isinstance(value, str) and value)

    def _attributes(self, listed: ListedDocument) -> dict[str, str]:
        used = {*self.fields, _TITLE}
        return {name: value for name, value in listed.values.items() if isinstance(value, str) and name not in used}


Origin = SourceFiles | RagFiles | DataStore


def _texts_of(uris: Iterable[str]) -> dict[str, str]:
    """The texts, by URI, of the existing text files in Cloud Storage."""
    staged = [uri for uri in dict.fromkeys(uris) if uri.startswith(gcs.SCHEME) and uri.lower().endswith(SUFFIXES)]
    buckets = {name: Objects(name) for name in {_bucket(uri) for uri in staged}}

    with ThreadPoolExecutor(_THREADS) as threads:
        contents = zip(staged, threads.map(lambda uri: buckets[_bucket(uri)].read(uri), staged), strict=True)
        return {uri: _decoded(uri, content) for uri, content in contents if content is not None}


def _bucket(uri: str) -> str:
    return "/".join(uri.split("/")[:3])


def _decoded(uri: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8; convert it", path=uri) from error


def _distinct(place: str, documents: Iterable[Document]) -> list[Document]:
    by_id: dict[str, Document] = {}
    for document in documents:
        if (fault := ids.fault(document.id)) is not None:
            raise InputError(f"the id {document.id!r} {fault}", path=place)
        if document.id in by_id:
            raise InputError(f"two documents have the id {document.id!r}; set doc_id.prefix", path=place)
        by_id[document.id] = document
    return [by_id[name] for name in sorted(by_id)]


def _unreadable_warnings(place: str, names: Iterable[str], texts: Iterable[str], advice: str) -> tuple[str, ...]:
    missing = sorted({*names} - {*texts})
    if not missing:
        return ()
    kinds = ", ".join(SUFFIXES)
    problem = f"{len(missing):,} of {len({*names}):,} documents of {place} have no text that can be read"
    return (f"{problem} ({kinds} can), such as {missing[0]}: {advice}",)


@contextmanager
def _as_input_errors(place: str) -> Iterator[None]:
    """Raise errors of the service as errors of the input."""
    try:
        yield
    except CallError as error:
        raise InputError(f"cannot be read: {error.kind}: {error.message}", path=place) from error
