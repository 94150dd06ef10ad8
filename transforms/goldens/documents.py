"""Read the documents that a benchmark is made from: a corpus, a folder of texts, or a table of chunks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rankbeam.transforms.clients.formats import ids, sources, texts
from rankbeam.transforms.clients.formats.places import Place, repeated_at
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

SUFFIXES = (".txt", ".md", ".markdown")
"""Of the files of a folder that are read."""

_BETWEEN_CHUNKS = "\n\n"
_MOST_NAMED = 3
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
    """Read a corpus as `bm25` reads it, or a folder with text and Markdown files; sorted by id."""
    if holds_texts(path):
        return [_from_file(Path(path), file) for file in _texts_below(Path(path))]
    given = (
        (Document(each.id, each.title, each.text, dict(each.attributes)), (name, each.line))
        for name, each in _entries(path)
    )
    return _distinct(given)


def holds_texts(path: str) -> bool:
    """Return whether a path is a folder of this machine with text or Markdown files."""
    return files.is_local(path) and Path(path).is_dir() and bool(_texts_below(Path(path)))


def unread(path: str) -> str | None:
    """A message that names the files of a folder that `read_documents` skips; None where it skips none.

    Files that `read_documents` reads where a folder has no texts are no such files.
    """
    if not (files.is_local(path) and Path(path).is_dir()):
        return None
    skipped = [file for file in _files_below(Path(path)) if file.suffix.lower() not in SUFFIXES]
    if not skipped or (not holds_texts(path) and any(file.suffix == ".parquet" for file in skipped)):
        return None
    counts = Counter(file.suffix.lower() or "no suffix" for file in skipped)
    kinds = ", ".join(f"{count:,} with {suffix}" for suffix, count in counts.most_common(_MOST_NAMED))
    some = ", ".join(file.relative_to(path).as_posix() for file in skipped[:_MOST_NAMED])
    files_are = "1 file is" if len(skipped) == 1 else f"{len(skipped):,} files are"
    return f"{path}: {files_are} not read ({kinds}), such as {some}; convert them to {' or '.join(SUFFIXES[:2])}"


def read_chunks(path: str) -> list[Document]:
    """Read a table of chunks, each with the id of its document as `doc_id`, in the order of the documents.

    The text of a document is its chunks one after the other, with a blank line between two of them.
    """
    chunks: dict[str, list[texts.Entry]] = {}
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


def _entries(path: str) -> Iterator[tuple[str, texts.Entry]]:
    for name in sources.expand(path):
        for entry in texts.read_entries(name, "corpus"):
            yield name, entry


def _distinct(given: Iterator[tuple[Document, Place]]) -> list[Document]:
    documents: dict[str, tuple[Document, Place]] = {}
    for document, place in given:
        if document.id in documents:
            places = [documents[document.id][1], place]
            raise repeated_at(f"document {document.id!r} is given twice", places, "ids must differ")
        documents[document.id] = document, place
    return [documents[name][0] for name in sorted(documents)]


def _texts_below(folder: Path) -> list[Path]:
    return [path for path in _files_below(folder) if path.suffix.lower() in SUFFIXES]


def _files_below(folder: Path) -> list[Path]:
    hidden = lambda path: any(part.startswith(".") for part in path.relative_to(folder).parts)  # noqa: E731
    return sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))


def _from_file(folder: Path, path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8; convert it", path=str(path)) from error
    name = path.relative_to(folder).as_posix()
    if (fault := ids.fault(name)) is not None:
        raise InputError(f"as an id, its path {fault}; rename it", path=str(path))
    return text_document(name, text, path.name)


def _of_entries(doc_id: str, chunks: list[texts.Entry]) -> Document:
    title = next((chunk.title for chunk in chunks if chunk.title), "")
    attributes = {
        name: value for name, value in chunks[0].attributes.items() if name not in (_DOCUMENT, "start", "end")
    }
    return joined(doc_id, title, [chunk.text for chunk in chunks], attributes)
