"""Extract the text of a folder's files once, into a corpus of JSON lines that every reader of documents reads.

    CACHE/documents/FOLDER/FILES/corpus.jsonl     _id (the path in the folder), title, text, metadata
                                 unread.jsonl     path, reason

FOLDER is a hash of the folder's name and pattern, FILES one of its files' names, sizes and times: another state of the
folder is extracted anew, and the previous one deleted on another day.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rankbeam.transforms.clients.formats.documents.content import Content, UnreadableError
from rankbeam.transforms.clients.formats.documents.files import (
    File,
    FolderSource,
    listed,
    read,
    refuse_unreadable,
    versions,
)
from rankbeam.transforms.clients.public import filling, forget_earlier, kept_in
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_THREADS = 8
_AHEAD = 32
_MOST_NAMED, _MOST_REASONS = 3, 10
_CORPUS, _UNREAD = "corpus.jsonl", "unread.jsonl"


@dataclass(frozen=True)
class Extracted:
    """The text of a folder: a corpus, how many files it has, and a note on those that could not be read."""

    corpus: str
    documents: int
    note: str | None


def extract(source: FolderSource, names: AbstractSet[str] | None = None) -> Extracted:
    """The corpus that a folder's files make, or those with some names; extracted once for each state of the folder."""
    listing = [file for file in listed(source) if names is None or file.name in names]
    refuse_unreadable(source, listing)
    place = str(Path(source.folder).resolve()) if files.is_local(source.folder) else source.folder
    state = [*versions(), *((file.name, file.bytes, file.modified) for file in listing)]
    own = kept_in("documents", _hash([place, source.glob]))
    folder = own / _hash(state)
    if not folder.is_dir():
        kept_in("documents").mkdir(parents=True, exist_ok=True, mode=0o700)
        with filling(folder, f"the text of {len(listing):,} files in {source.folder}") as part:
            _write(part, listing)
        forget_earlier(own, folder)
    unread = [json.loads(line) for line in (folder / _UNREAD).read_text(encoding="utf-8").splitlines()]
    if len(unread) == len(listing):
        raise InputError(_note(listing, unread), path=source.folder)
    note = _note(listing, unread) + f"; {folder / _UNREAD} lists them" if unread else None
    return Extracted(str(folder / _CORPUS), len(listing) - len(unread), note)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _write(folder: Path, listing: Sequence[File]) -> None:
    with (
        (folder / _CORPUS).open("w", encoding="utf-8") as corpus,
        (folder / _UNREAD).open("w", encoding="utf-8") as unread,
    ):
        for file, result in _contents(listing):
            if isinstance(result, Content):
                row: dict[str, object] = {"_id": file.name, "title": result.title, "text": result.text}
                row |= {"metadata": dict(result.attributes)} if result.attributes else {}
                corpus.write(json.dumps(row, ensure_ascii=False) + "\n")
            else:
                unread.write(json.dumps({"path": file.name, "reason": str(result)}, ensure_ascii=False) + "\n")


def _contents(listing: Sequence[File]) -> Iterator[tuple[File, Content | UnreadableError]]:
    """Files in their order with their contents, or why they have none; a few are read ahead."""
    rest = iter(listing)
    with ThreadPoolExecutor(_THREADS) as threads:
        pending: list[tuple[File, Future[Content | UnreadableError]]] = []
        while True:
            pending += [(file, threads.submit(_tried, file)) for file in islice(rest, _AHEAD - len(pending))]
            if not pending:
                return
            file, result = pending.pop(0)
            yield file, result.result()


def _tried(file: File) -> Content | UnreadableError:
    try:
        return read(file)
    except UnreadableError as error:
        return error


def _note(listing: Sequence[File], unread: Sequence[dict[str, str]]) -> str:
    by_reason = defaultdict[str, list[str]](list)
    for row in unread:
        by_reason[row["reason"]].append(row["path"])
    parts = []
    order = sorted(by_reason.items(), key=lambda entry: -len(entry[1]))
    for reason, names in order[:_MOST_REASONS]:
        more = ", …" if len(names) > _MOST_NAMED else ""
        parts.append(f"{len(names):,} {reason} ({', '.join(names[:_MOST_NAMED])}{more})")
    if rest := order[_MOST_REASONS:]:
        parts.append(f"{sum(len(names) for _, names in rest):,} for {len(rest):,} other reasons")
    verb = "file is" if len(listing) == 1 else "files are"
    return f"{len(unread):,} of {len(listing):,} {verb} not read: {'; '.join(parts)}"
