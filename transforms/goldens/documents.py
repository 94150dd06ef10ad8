"""Read the documents that a benchmark is made from: a corpus, a folder of texts, or a table of chunks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rankbeam.transforms.clients.formats import ids, sources, texts
from rankbeam.transforms.clients.formats.documents.extract import extract
from rankbeam.transforms.clients.formats.documents.files import EVERYTHING, READERS, FolderSource, holds_documents
from rankbeam.transforms.clients.formats.places import Place, repeated_at
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError

SUFFIXES = (".txt", ".md", ".markdown")
"""Of the files of a corpus of RAG Engine that are read."""

_BETWEEN_CHUNKS = "\n\n"
_DOCUMENT = "doc_id"


@dataclass(frozen=True)
class Document:
    """A document as it was read."""

    id: str
    title: str
    text: str
    attributes: dict[str, str] = field(default_factory=dict)
    chunks: tuple[tuple[int, int], ...] = ()


def read_documents(path: str) -> list[Document]:
    """Read a corpus as `bm25` reads it; sorted by id."""
    entries = (
        (Document(entry.id, entry.title, entry.text, dict(entry.attributes)), (name, entry.line))
        for name, entry in _entries(path)
    )
    return _distinct(entries)


def read_folder(folder: str, glob: str = EVERYTHING) -> tuple[list[Document], tuple[str, ...]]:
    """Read the documents in a folder, in the order of their paths, with a warning about files that are not read."""
    extracted = extract(FolderSource(folder, glob))
    documents = [
        Document(entry.id, entry.title, entry.text, dict(entry.attributes)) for _, entry in _entries(extracted.corpus)
    ]
    return documents, () if extracted.note is None else (f"{folder}: {extracted.note}",)


def lacks_documents(path: str) -> str | None:
    """The problem of a folder of this machine without Parquet files or files that are read as documents."""
    if not (files.is_local(path) and Path(path).is_dir()) or holds_documents(path) or matching.has_parquet(path):
        return None
    return f"{path}: none of its files is read; {', '.join(READERS)} are"


def read_chunks(path: str) -> list[Document]:
    """Read a table of chunks, each with the id of its document as `doc_id`, in the order of the documents.

    The text of a document is its chunks one after the other, with a blank line between two of them.
    """
    chunks: dict[str, list[texts.TextEntry]] = {}
    for name, entry in _entries(path):
        doc_id = entry.attributes.get(_DOCUMENT, "")
        if (fault := ids.fault(doc_id)) is not None or not doc_id:
            problem = f"the chunk {entry.id!r} has no doc_id" if not doc_id else f"the doc_id {fault}"
            raise InputError(f"{problem}; name the document that it is part of", path=name, line=entry.line)
        chunks.setdefault(doc_id, []).append(entry)
    return [_of_entries(doc_id, chunks[doc_id]) for doc_id in sorted(chunks)]


def text_document(doc_id: str, text: str, path: str) -> Document:
    """The document of a text or Markdown file; its title is its first heading, or the file's name.

    >>> text_document("a.md", "# Cats\\n\\nThey purr.", "kb/a.md").title
    'Cats'
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Document(doc_id, first.lstrip("#").strip() if first.startswith("#") else PurePosixPath(path).stem, text)


def joined(doc_id: str, title: str, chunks: Sequence[str], attributes: Mapping[str, str]) -> Document:
    """The document whose text is its chunks one after the other, with a blank line between two of them."""
    text, spans = "", []
    for chunk in chunks:
        text += _BETWEEN_CHUNKS if text else ""
        spans.append((len(text), len(text) + len(chunk)))
        text += chunk
    return Document(doc_id, title, text, dict(attributes), tuple(spans))


def _entries(path: str) -> Iterator[tuple[str, texts.TextEntry]]:
    for name in sources.expand(path):
        for entry in texts.read_entries(name, "corpus"):
            yield name, entry


def _distinct(pairs: Iterator[tuple[Document, Place]]) -> list[Document]:
    documents: dict[str, tuple[Document, Place]] = {}
    for document, place in pairs:
        if document.id in documents:
            places = [documents[document.id][1], place]
            raise repeated_at(f"document {document.id!r} is given twice", places, "ids must differ")
        documents[document.id] = document, place
    return [documents[name][0] for name in sorted(documents)]


def _of_entries(doc_id: str, chunks: list[texts.TextEntry]) -> Document:
    title = next((chunk.title for chunk in chunks if chunk.title), "")
    attributes = {
        name: value for name, value in chunks[0].attributes.items() if name not in (_DOCUMENT, "start", "end")
    }
    return joined(doc_id, title, [chunk.text for chunk in chunks], attributes)
