"""Long texts, each stored once under the hash of its content, in part files that any number of writers may add to.

A part never changes, and every row is verified by its hash. A part that is cut short is left out; one with a damaged
row is replaced by a part without that row, so that the next `put` stores the text again. Memory holds an index of 24
bytes a text, and a cache of bounded size. Put many texts at once: each `put` with new texts adds a file.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from rankbeam.transforms.clients.storage import text_parts, whole
from rankbeam.transforms.clients.storage.text_index import Places, TextIndex
from rankbeam.transforms.clients.storage.text_parts import Damaged, Row, digest_of
from rankbeam.transforms.clients.storage.whole import Stored
from rankbeam.transforms.records.errors import InputError

CACHE_BYTES = 64 << 20
_ROUNDS = 3
_BATCH = 256  # texts that `put` holds while it checks which of them are new


@dataclass(frozen=True)
class Removed:
    """The amounts that `TextStore.keep` or `TextStore.clear` removed.

    Attributes:
        files: parts that were deleted, or rewritten with the remaining texts.
        texts: texts that were removed.
        bytes: bytes by which the parts shrank.
    """

    files: int
    texts: int
    bytes: int


class TextStore:
    """The texts of a folder. Any thread may use it; it travels to workers.

    Args:
        folder: on any of Beam's filesystems; it is made with the first text.
        cache_bytes: the most bytes of cached texts; those of the row group read last are cached in any case.

    Attributes:
        damage: for each part that cannot be read, wholly or in places, the first reason.
    """

    def __init__(self, folder: str, cache_bytes: int = CACHE_BYTES) -> None:
        self._folder, self._cache_bytes = folder, cache_bytes
        self._lock = threading.RLock()
        self._index = TextIndex()
        self._seen: set[str] = set()
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._cached_bytes = 0
        self.damage: dict[str, str] = {}

    def __reduce__(self) -> tuple[type["TextStore"], tuple[str, int]]:
        return TextStore, (self._folder, self._cache_bytes)

    def put(self, texts: Iterable[str]) -> list[str]:
        """Store texts; returns their hashes, in the same order. Texts that are already stored are not written again.

        Raises:
            InputError: they cannot be stored.
        """
        hashes: list[str] = []
        with self._lock:
            self._refresh()
            for stored in text_parts.write(self._folder, self._new(iter(texts), hashes)):
                self._take_up(stored.path)
        return hashes

    def get(self, name: str) -> str:
        """The text of a hash.

        Raises:
            InputError: the text was deleted or is damaged.
        """
        [(_, text)] = self.read([name])
        return text

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Hashes and their texts, each hash once, in the order in which they are stored: each row group is read once.

        Raises:
            InputError: one of them was deleted or is damaged.
        """
        wanted = sorted({bytes.fromhex(name) for name in names})
        with self._lock:
            cached = [(digest, self._cache[digest]) for digest in wanted if digest in self._cache]
            for digest, _ in cached:
                self._cache.move_to_end(digest)
        yield from ((digest.hex(), _text(content)) for digest, content in cached)
        left = set(wanted) - {digest for digest, _ in cached}
        for _ in range(_ROUNDS):  # again when parts were added, replaced or damaged
            for group in self._groups(sorted(left)):
                with self._lock:
                    rows = [(digest, content) for digest, content in self._group(*group) if digest in left]
                left -= {digest for digest, _ in rows}
                yield from ((digest.hex(), _text(content)) for digest, content in rows)
            if not left:
                return
            with self._lock:
                self._refresh()
        raise InputError(f"holds no text {min(left).hex()}: it was cleared or damaged; run it again", path=self._folder)

    def keep(self, used: Collection[str], stored_before: datetime) -> Removed:
        """Delete unused texts that were stored before a moment.

        Raises:
            InputError: the folder cannot be listed, or the remaining texts cannot be written.
        """
        stays = {bytes.fromhex(name) for name in used}

        def is_kept(row: Row) -> bool:
            return row.stored_at >= stored_before or row.digest in stays

        removed = []
        for stored in text_parts.parts_in(self._folder):
            with suppress(Damaged):  # it stays as it is
                removed.append(_rewritten(self._folder, stored, is_kept))
        return _sum(removed)

    def clear(self) -> Removed:
        """Delete all texts, and parts that cannot be read.

        Raises:
            InputError: the folder cannot be looked up.
        """
        removed = []
        for stored in text_parts.unfinished_in(self._folder):
            whole.delete(stored.path)
        for stored in text_parts.parts_in(self._folder):
            texts = 0
            with suppress(Damaged), text_parts.reading(stored.path) as part:
                texts = sum(len(part.digests(group)) for group in range(part.groups))
            if whole.delete(stored.path):
                removed.append((1, texts, stored.bytes))
        return _sum(removed)

    def _new(self, texts: Iterator[str], hashes: list[str]) -> Iterator[Row]:
        """The texts that are not stored yet, without repetitions; adds the hashes of all."""
        now, added = datetime.now(UTC), set[bytes]()
        while batch := [text.encode("utf-8", "surrogatepass") for text in islice(texts, _BATCH)]:
            digests = [digest_of(text) for text in batch]
            hashes += [digest.hex() for digest in digests]
            missing = self._index.find(digests)["part"] == len(self._index.paths)
            for digest, text, is_missing in zip(digests, batch, missing, strict=True):
                if is_missing and digest not in added:
                    added.add(digest)
                    yield Row(digest, now, text)

    def _refresh(self) -> None:
        """Add new parts to the index, and drop deleted ones."""
        paths = [stored.path for stored in text_parts.parts_in(self._folder)]
        for gone in self._seen - set(paths):
            self._seen.discard(gone)
            self._index.drop(gone)
        self._take_up(*(path for path in paths if path not in self._seen))

    def _take_up(self, *paths: str) -> None:
        parts: list[tuple[str, Sequence[Sequence[bytes]]]] = []
        for path in paths:
            self._seen.add(path)
            try:
                with text_parts.reading(path) as part:
                    parts.append((path, [part.digests(group) for group in range(part.groups)]))
            except Damaged as error:
                self.damage.setdefault(path, str(error))
        self._index.add(parts)

    def _groups(self, digests: list[bytes]) -> list[tuple[str, int]]:
        """The row groups that hold some hashes, in the order of files."""
        with self._lock:
            places: Places = self._index.find(digests)
            places = np.unique(places[places["part"] < len(self._index.paths)][["part", "group"]])
            return [(self._index.paths[part], int(group)) for part, group in places.tolist()]

    def _group(self, path: str, group: int) -> list[tuple[bytes, bytes]]:
        """The hashes and texts of a row group, which are cached from now on; none where it cannot be read."""
        try:
            with text_parts.reading(path) as part:
                rows = part.rows(group)
        except Damaged as error:
            self._mend(path, str(error))
            return []
        if not all(row.is_whole() for row in rows):
            self._mend(path, "a text is not as it was stored")
        intact = [(row.digest, row.text) for row in rows if row.is_whole()]
        for digest, text in intact:
            self._cached_bytes += len(text) - len(self._cache.pop(digest, b""))
            self._cache[digest] = text
        while self._cached_bytes > self._cache_bytes and len(self._cache) > len(intact):
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])
        return intact

    def _mend(self, path: str, reason: str) -> None:
        """Leave a damaged part out, and replace it by a part of its undamaged texts, if that is possible."""
        self._index.drop(path)
        if text_parts.is_gone(path):
            return
        self.damage.setdefault(path, reason)
        with suppress(InputError, Damaged):
            rows = text_parts.salvaged(path)
            for made in text_parts.write(self._folder, rows):
                self._take_up(made.path)
            whole.delete(path)


def _rewritten(folder: str, stored: Stored, is_kept: Callable[[Row], bool]) -> tuple[int, int, int]:
    """Rewrite a part with the rows that are kept; returns the files, texts and bytes removed.

    Raises:
        Damaged: it cannot be read.
        InputError: the kept rows cannot be written.
    """
    kept: list[Row] = []
    count = 0
    with text_parts.reading(stored.path) as part:
        for group in range(part.groups):
            rows = part.rows(group)
            count += len(rows)
            kept += filter(is_kept, rows)
    if len(kept) == count:
        return 0, 0, 0
    made = list(text_parts.write(folder, kept))
    if whole.delete(stored.path):
        return 1, count - len(kept), stored.bytes - sum(new.bytes for new in made)
    for new in made:  # another process has replaced it
        whole.delete(new.path)
    return 0, 0, 0


def _sum(amounts: Iterable[tuple[int, int, int]]) -> Removed:
    return Removed(*(map(sum, zip((0, 0, 0), *amounts, strict=True))))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
