"""Read the documents that a benchmark is made from: a corpus, a folder of texts, or a table of chunks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rankbeam.transforms.clients.formats import texts
from rankbeam.transforms.clients.formats.documents.files import (
    EVERYTHING,
    READERS,
    FolderSource,
    extract,
    holds_documents,
    list_files,
)
from rankbeam.transforms.clients.formats.syntax import ids
from rankbeam.transforms.clients.formats.syntax.lines import Place, repeated_at
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.kernels.sampling import draw
from rankbeam.transforms.records.errors import InputError

SUFFIXES = (".txt", ".md", ".markdown")  # suffixes of the files that are read from a RAG Engine corpus

_BETWEEN_CHUNKS = "\n\n"
_DOCUMENT = "doc_id"


@dataclass(frozen=True)
class Document:
    """A document that was read."""

    id: str
    title: str
    text: str
    attributes: dict[str, str] = field(default_factory=dict)
    chunks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Sample:
    """A sample of documents: those whose ids have the smallest hashes, in whatever order they are read."""

    documents: int
    seed: int

    def key(self, doc_id: str) -> tuple[int, str]:
        return draw(self.seed, "sample", doc_id), doc_id

    def note(self, whole: int) -> tuple[str, ...]:
        """A warning about a sample from `whole` documents; empty if the sample has all of them."""
        if whole <= self.documents:
            return ()
        scope = "questions and judgements are about these, and corpus.jsonl has no others"
        return (f"a sample of {self.documents:,} of {whole:,} documents is read: {scope}",)


def read_documents(path: str, sample: Sample | None = None) -> tuple[list[Document], tuple[str, ...]]:
    """Read a corpus as `bm25` does, sorted by id; for a sample, memory holds at most twice its documents at a time."""
    entries = (
        (Document(entry.id, entry.title, entry.text, dict(entry.attributes)), (name, entry.line))
        for name, entry in texts.entries_in(path, "corpus")
    )
    if sample is None:
        return _distinct(entries), ()
    chosen, count = _sample_documents(entries, sample)
    return _distinct(iter(chosen)), sample.note(count)


def _sample_documents(
    pairs: Iterator[tuple[Document, Place]], sample: Sample
) -> tuple[list[tuple[Document, Place]], int]:
    """A sample's documents, and the number of all documents; equal ids are all in the sample, or all left out."""
    best: list[tuple[Document, Place]] = []
    bound, count = None, 0
    for document, place in pairs:
        count += 1
        key = sample.key(document.id)
        if bound is None or key <= bound:
            best.append((document, place))
        if len(best) >= 2 * sample.documents:
            best, bound = _least(best, sample)
            if len(best) > sample.documents:  # a repeated id, which `_distinct` refuses
                break
    return _least(best, sample)[0], count


def _least(
    best: list[tuple[Document, Place]], sample: Sample
) -> tuple[list[tuple[Document, Place]], tuple[int, str] | None]:
    """The documents with the smallest hashes, and the largest of these hashes."""
    keys = sorted({sample.key(document.id) for document, _ in best})[: sample.documents]
    return [pair for pair in best if sample.key(pair[0].id) <= keys[-1]], keys[-1] if keys else None


def read_folder(
    folder: str, glob: str = EVERYTHING, sample: Sample | None = None
) -> tuple[list[Document], tuple[str, ...]]:
    """Read a folder's documents, in the order of their paths, with a warning about files that are not read."""
    source = FolderSource(folder, glob)
    names, notes = None, tuple[str, ...]()
    if sample is not None:
        listing = list_files(source)
        keys = sorted(sample.key(file.name) for file in listing if file.is_opened)
        notes = sample.note(len(keys))
        names = {name for _, name in keys[: sample.documents]} | {file.name for file in listing if not file.is_opened}
    extracted = extract(source, names)
    documents = [
        Document(entry.id, entry.title, entry.text, dict(entry.attributes))
        for _, entry in texts.entries_in(extracted.corpus, "corpus")
    ]
    return documents, (*notes, *(() if extracted.note is None else (f"{folder}: {extracted.note}",)))


def lacks_documents(path: str) -> str | None:
    """The problem of a local folder without Parquet files or files that are read as documents; None for others."""
    if not (files.is_local(path) and Path(path).is_dir()) or holds_documents(path) or matching.has_tables(path):
        return None
    return f"{path}: none of its files can be read; {', '.join(READERS)} can"


def read_chunks(path: str) -> list[Document]:
    """Read a table of chunks, each with its document's id as `doc_id`, and return the documents sorted by id.

    The text of a document is its chunks, joined by blank lines.
    """
    chunks: dict[str, list[texts.TextEntry]] = {}
    places: dict[tuple[str, str], Place] = {}
    for name, entry in texts.entries_in(path, "corpus"):
        doc_id = entry.attributes.get(_DOCUMENT, "")
        if (fault := ids.fault(doc_id)) is not None or not doc_id:
            problem = f"the chunk {entry.id!r} has no doc_id" if not doc_id else f"the doc_id {fault}"
            raise InputError(f"{problem}; name the document that it is part of", path=name, line=entry.line)
        place = name, entry.line
        if (first := places.setdefault((doc_id, entry.id), place)) != place:
            raise repeated_at(f"chunk {entry.id!r} of {doc_id!r} is given twice", [first, place], "ids must differ")
        chunks.setdefault(doc_id, []).append(entry)
    return [_of_entries(doc_id, chunks[doc_id]) for doc_id in sorted(chunks)]


def text_document(doc_id: str, text: str, path: str) -> Document:
    """The document of a text or Markdown file; its title is its first heading, or the file's name.

    >>> text_document("a.md", "# Cats\\n\\nThey purr.", "kb/a.md").title
    'Cats'
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Document(doc_id, first.lstrip("#").strip() if first.startswith("#") else PurePosixPath(path).stem, text)


def join_chunks(doc_id: str, title: str, chunks: Sequence[str], attributes: Mapping[str, str]) -> Document:
    """The document whose text is its chunks, joined by blank lines."""
    text, spans = "", []
    for chunk in chunks:
        text += _BETWEEN_CHUNKS if text else ""
        spans.append((len(text), len(text) + len(chunk)))
        text += chunk
    return Document(doc_id, title, text, dict(attributes), tuple(spans))


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
    return join_chunks(doc_id, title, [chunk.text for chunk in chunks], attributes)
