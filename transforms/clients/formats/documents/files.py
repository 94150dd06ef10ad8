"""The files of a local folder or a bucket's, and their text, extracted once into a corpus that all readers use.

    CACHE/documents/FOLDER/FILES/corpus.jsonl     _id (the path in the folder), title, text, metadata
                                 source.txt       the folder's name
                                 unread.jsonl     path, reason
                                 partly.jsonl     path, pages, without_text: PDF files some of whose pages have no text

FOLDER is a hash of the folder's name and pattern, FILES one of its files' names, sizes and times: another state of the
folder is extracted anew, and the previous one deleted on another day.
"""

import glob
import importlib.metadata
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from rankbeam.transforms.clients.extras import DOCUMENTS, missing_extra
from rankbeam.transforms.clients.formats.documents.readers import (
    NO_TEXT,
    NOT_UTF8,
    TOO_LARGE,
    FileContent,
    UnreadableError,
    read_page,
    read_pdf,
)
from rankbeam.transforms.clients.formats.documents.word import read_word
from rankbeam.transforms.clients.formats.syntax import ids
from rankbeam.transforms.clients.local_folders import SOURCE, extracted
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.clients.workers import Workers
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, pluralize

EVERYTHING = "**/*"
PDF = ".pdf"
_MOST_BYTES = 1 << 28
_SUFFIX = "suffix {} is not read"
_THREADS = 8
_MOST_NAMED, _MOST_REASONS = 3, 10
_CORPUS, _UNREAD, _PARTLY = "corpus.jsonl", "unread.jsonl", "partly.jsonl"


@dataclass(frozen=True)
class FolderSource:
    """A folder, and a pattern that selects its documents."""

    folder: str
    glob: str = EVERYTHING


@dataclass(frozen=True)
class File:
    """A file of a folder, local or in a bucket."""

    path: str
    name: str  # path in the folder
    bytes: int  # -1 for a link to no file, or a file that this user may not read
    modified: float
    checksum: str = ""  # CRC32C, if it is needed

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_opened(self) -> bool:
        """True for a file that is opened to read its text; others are counted as unread."""
        return self.bytes >= 0 and self.suffix in READERS


def _plain(content: bytes) -> FileContent:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(NOT_UTF8) from error
    if "\0" in text:  # UTF-16 of ASCII is valid UTF-8
        raise UnreadableError(NOT_UTF8)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return FileContent(first.lstrip("#").strip() if first.startswith("#") else "", text)


READERS: Mapping[str, Callable[[bytes], FileContent]] = {
    ".txt": _plain,
    ".md": _plain,
    ".markdown": _plain,
    ".html": read_page,
    ".htm": read_page,
    ".xhtml": read_page,
    ".docx": read_word,
    PDF: read_pdf,
}  # readers by suffix


def versions() -> list[str]:
    """Versions of the readers: a file's text depends on them as well as on its bytes."""
    try:
        return ["3", importlib.metadata.version("pypdf")]
    except importlib.metadata.PackageNotFoundError:
        return ["3", ""]


def list_files(source: FolderSource) -> list[File]:
    """The files of a folder that its pattern names, sorted by path; hidden ones are left out."""
    with files.translate_errors(source.folder, "cannot be looked up", ValueError):
        listing = _local(source.folder) if files.is_local(source.folder) else _remote(source.folder)
        matches = [file for file in listing if is_selected(file.name, source.glob)]
    if not matches:
        raise InputError(f"no file in the folder matches {source.glob!r}", path=source.folder)
    matches.sort(key=lambda file: file.name.split("/"))
    return matches


def is_selected(name: str, glob: str) -> bool:
    """Return whether the path of a file in a folder matches a pattern, and is not hidden."""
    return _pattern(glob).fullmatch(name) is not None and not _is_hidden(name)


def holds_documents(path: str) -> bool:
    """Return whether a path is a local folder with files that rankbeam reads."""
    return (
        files.is_local(path)
        and Path(path).is_dir()
        and any(file.suffix in READERS and not _is_hidden(file.name) for file in _local(path))
    )


def refuse_unreadable(source: FolderSource, listing: Sequence[File]) -> None:
    """Refuse a folder without readable files, or with PDF files if their reader is not installed."""
    if not any(file.suffix in READERS for file in listing):
        problem = f"none of its {len(listing):,} files can be read, such as {listing[0].name}; {', '.join(READERS)} can"
        raise InputError(problem, path=source.folder)
    if any(file.suffix == PDF for file in listing):
        lacking = missing_extra("pypdf", DOCUMENTS, "PDF files")
        if lacking is not None:
            raise InputError(lacking, path=source.folder)


def refuse_output(source: FolderSource, output: str) -> None:
    """Refuse an output in a folder of documents: the next run would read this run's report as a document."""
    report = files.join(output, "report.html")
    folder, path = (Path(one).resolve().as_posix() if files.is_local(one) else one for one in (source.folder, report))
    root = folder.rstrip("/") + "/"
    if path.startswith(root) and is_selected(path.removeprefix(root), source.glob):
        problem = f"contains the output {output}, whose pages would be documents of the next run"
        raise InputError(f"{problem}; choose another output, or a glob without it", path=source.folder)


def read(file: File) -> FileContent:
    """The content of a file; without a title of its own, its title is the file's name."""
    reader = READERS.get(file.suffix)
    if file.bytes < 0:
        raise UnreadableError(
            "no permission to read it" if Path(file.path).is_file() else "link to a folder or to nothing"
        )
    if reader is None:
        raise UnreadableError(_SUFFIX.format(file.suffix or "(none)"))
    if (fault := ids.fault(file.name)) is not None:
        raise UnreadableError(f"its path cannot be an id: it {fault}")
    if file.bytes > _MOST_BYTES:
        raise UnreadableError(TOO_LARGE)
    with files.translate_errors(file.path, "cannot be read"), files.open_raw(file.path) as handle:
        stored = handle.read()
    content = reader(stored)
    if not content.text.strip():
        raise UnreadableError(NO_TEXT)
    return replace(content, title=content.title or PurePosixPath(file.name).stem)


def _local(folder: str) -> Iterator[File]:
    for place, folders, names in os.walk(folder, onerror=_raise_error):
        folders[:] = [child for child in folders if not _is_hidden(child)]
        for name in [*names, *(child for child in folders if Path(place, child).is_symlink())]:
            path = Path(place, name)
            stat = path.stat() if path.is_file() and os.access(path, os.R_OK) else None
            state = (-1, 0.0) if stat is None else (stat.st_size, stat.st_mtime)
            relative = os.fsencode(path.relative_to(folder).as_posix())
            yield File(str(path), relative.decode("utf-8", "backslashreplace"), *state)


def _raise_error(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed; `os.walk` would skip the folder."""
    raise error


def _remote(folder: str) -> Iterator[File]:
    root = folder.rstrip("/") + "/"
    for path, size, modified in matching.remote_versions([f"{glob.escape(root)}**"]):
        if not path.endswith("/"):
            yield File(path, path.removeprefix(root), size, modified)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


_PARTS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(_PARTS.get(piece, re.escape(piece)) for piece in pieces))


@dataclass(frozen=True)
class ExtractedFolder:
    """The text of a folder: a corpus, its number of files, and a note on files and pages that could not be read."""

    corpus: str
    documents: int
    note: str | None


def extract(source: FolderSource, names: AbstractSet[str] | None = None) -> ExtractedFolder:
    """The corpus made of a folder's files, or of those with some names; extracted once for each state of the folder."""
    listing = [file for file in list_files(source) if names is None or file.name in names]
    refuse_unreadable(source, listing)
    place = str(Path(source.folder).resolve()) if files.is_local(source.folder) else source.folder
    state = [*versions(), *((file.name, file.bytes, file.modified) for file in listing)]

    def fill(part: Path) -> None:
        _write(part, listing)
        (part / SOURCE).write_bytes(os.fsencode(place))

    what = f"the text of {pluralize(len(listing), 'file')} in {source.folder}"
    folder = extracted("documents", [place, source.glob], state, what, fill)
    unread, partly = (
        [json.loads(line) for line in (folder / name).read_bytes().splitlines()] for name in (_UNREAD, _PARTLY)
    )
    if len(unread) == len(listing):
        raise InputError(_note(listing, unread), path=source.folder)
    notes = [_note(listing, unread) + f"; {folder / _UNREAD} lists them"] if unread else []
    notes += [_note_on_pages(partly) + f"; {folder / _PARTLY} lists them"] if partly else []
    return ExtractedFolder(str(folder / _CORPUS), len(listing) - len(unread), "; ".join(notes) or None)


def _write(folder: Path, listing: Sequence[File]) -> None:
    with (
        (folder / _CORPUS).open("wb") as corpus,
        (folder / _UNREAD).open("w", encoding="utf-8") as unread,
        (folder / _PARTLY).open("w", encoding="utf-8") as partly,
    ):
        for file, result in _contents(listing):
            row = _row(file, result) if isinstance(result, FileContent) else b""
            if len(row) > files.LONGEST_LINE:
                result = UnreadableError(TOO_LARGE)
            if isinstance(result, FileContent):
                corpus.write(row)
                if result.pages_without_text:
                    pages = {"pages": result.pages, "without_text": result.pages_without_text}
                    partly.write(json.dumps({"path": file.name, **pages}, ensure_ascii=False) + "\n")
            else:
                unread.write(json.dumps({"path": file.name, "reason": str(result)}, ensure_ascii=False) + "\n")


def _row(file: File, content: FileContent) -> bytes:
    row: dict[str, object] = {"_id": file.name, "title": content.title, "text": content.text}
    row |= {"metadata": dict(content.attributes)} if content.attributes else {}
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _contents(listing: Sequence[File]) -> Iterator[tuple[File, FileContent | UnreadableError]]:
    """Files in their order, each with its content or the reason why there is none; a few are read ahead."""
    workers: Workers[tuple[File, FileContent | UnreadableError]] = Workers(_THREADS)
    for file in listing:
        yield from workers.submit(_content_or_error, file)
    yield from workers.finish()


def _content_or_error(file: File) -> tuple[File, FileContent | UnreadableError]:
    try:
        return file, read(file)
    except UnreadableError as error:
        return file, error


def _note(listing: Sequence[File], unread: Sequence[dict[str, str]]) -> str:
    by_reason = grouped((row["reason"], row["path"]) for row in unread)
    parts = []
    order = sorted(by_reason.items(), key=lambda entry: -len(entry[1]))
    for reason, names in order[:_MOST_REASONS]:
        more = ", …" if len(names) > _MOST_NAMED else ""
        parts.append(f"{len(names):,} {reason} ({', '.join(names[:_MOST_NAMED])}{more})")
    if rest := order[_MOST_REASONS:]:
        parts.append(f"{sum(len(names) for _, names in rest):,} for {len(rest):,} other reasons")
    verb = "file is" if len(listing) == 1 else "files are"
    return f"{len(unread):,} of {len(listing):,} {verb} not read: {'; '.join(parts)}"


def _note_on_pages(partly: Sequence[dict[str, Any]]) -> str:
    shown = [f"{row['without_text']:,} of {row['pages']:,} in {row['path']}" for row in partly[:_MOST_NAMED]]
    more = ", …" if len(partly) > _MOST_NAMED else ""
    count = sum(row["without_text"] for row in partly)
    pages = pluralize(count, "page of a PDF file has", "pages of PDF files have")
    return f"{pages} no text (scanned pages need OCR): {', '.join(shown)}{more}"
