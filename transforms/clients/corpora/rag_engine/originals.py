"""Files of a folder that a service parses itself: they are imported as they are, from a bucket without an upload.

Names, sizes and checksums identify them, so that no object is read. rankbeam never writes to the folder, nor deletes
from it: none of its objects is in the folders that `StagedDocuments.uploaded` names.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import quote

from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects
from rankbeam.transforms.clients.corpora.rag_engine.staged import (
    StagedDocuments,
    StagedFolder,
    checked_name,
    checksum,
    folders_of,
    raw,
)
from rankbeam.transforms.clients.formats import ids
from rankbeam.transforms.clients.formats.documents.files import EVERYTHING, FolderSource, is_selected, listed
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.corpora import DocumentsFingerprint
from rankbeam.transforms.records.errors import InputError

_PARSED = frozenset({".docx", ".htm", ".html", ".json", ".jsonl", ".md", ".ndjson", ".pdf", ".pptx", ".txt"})
_PLAIN = frozenset({".md", ".txt"})
_BYTES_OF_A_TOKEN = 4
_OF_A_FOLDER = 1000
_MOST_NAMED = 3


@dataclass(frozen=True)
class _Original:
    name: str
    bytes: int
    checksum: str

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()


def read_originals(source: FolderSource) -> StagedDocuments:
    """List the files of a folder."""
    listing = sorted(_listing(source), key=lambda file: file.name)
    chosen = [file for file in listing if source.glob or file.suffix in _PARSED]
    if not chosen:
        what = (
            f"matches {source.glob!r}"
            if source.glob
            else f"is of a type that is imported: {', '.join(sorted(_PARSED))}"
        )
        raise InputError(f"no file in the folder {what}", path=source.folder)
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
        parts = (names[start : start + _OF_A_FOLDER] for start in range(0, len(names), _OF_A_FOLDER))
        return replace(documents, folders=tuple(StagedFolder("", tuple(part)) for part in parts))
    encoded = {checked_name(quote(file.name, safe=""), file.name, source.folder): file.checksum for file in filled}
    folders = folders_of({name: of.encode() for name, of in encoded.items()})
    return replace(documents, folders=tuple(folders), checksums=encoded)


def has_changed(documents: StagedDocuments) -> bool:
    """Return whether files that were imported in place are others by now."""
    if documents.original is None or not documents.root:
        return False  # what is uploaded is checked on its way
    try:
        return read_originals(documents.original).fingerprint != documents.fingerprint
    except InputError:
        return True


def refuse_parsed(documents: StagedDocuments) -> None:
    """Refuse files whose text the service extracts, where evidence counts the characters of texts."""
    parsed = [name for name in documents.ids() if PurePosixPath(name).suffix.lower() not in _PLAIN]
    if parsed:
        problem = (
            f"the service extracts the text of {len(parsed):,} files itself, such as {parsed[0]}, so evidence cannot "
            "be located in its chunks; use unit: document, or take `folder` out of the corpus to import texts"
        )
        raise InputError(problem, path=documents.path)


def _listing(source: FolderSource) -> Iterator[_Original]:
    glob = source.glob or EVERYTHING
    if not files.is_local(source.folder):
        objects = Objects(source.folder).originals()
        return (_Original(*values) for values in objects if is_selected(values[0], glob))
    local = listed(FolderSource(source.folder, glob))
    return (_Original(file.name, file.bytes, checksum(raw(file.path))) for file in local if file.bytes >= 0)


def _note(source: FolderSource, listing: Sequence[_Original], others: Sequence[_Original]) -> str:
    """A note on files that are of no type that the service parses."""
    if not others:
        return ""
    suffixes = ", ".join(f"{count:,} {suffix or '(no suffix)'}" for suffix, count in _counted(others))
    names = ", ".join(file.name for file in others[:_MOST_NAMED]) + (", …" if len(others) > _MOST_NAMED else "")
    advice = "`glob` names the files that are"
    return (
        f"{source.folder}: {len(others):,} of {len(listing):,} files are not imported: {suffixes} ({names}); {advice}"
    )


def _counted(others: Sequence[_Original]) -> list[tuple[str, int]]:
    return Counter(file.suffix for file in others).most_common()
