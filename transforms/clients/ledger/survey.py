"""What a ledger holds, for people: its size, its age, its use, its damage. And clearing it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.io.filesystem import BeamIOError

from transforms.clients import files
from transforms.clients.ledger import parts, store
from transforms.clients.ledger.parts import ForeignPart, PartError, PartReader, Vanished
from transforms.clients.ledger.store import Stored
from transforms.records.errors import InputError


@dataclass(frozen=True)
class RunUse:
    """How one run used the ledger.

    Attributes:
        run_id: the run.
        hits: answers that it found.
        calls: that it made.
        last: when it last said so.
    """

    run_id: str
    hits: int
    calls: int
    last: datetime


@dataclass(frozen=True)
class Survey:
    """What a ledger holds.

    Attributes:
        folder: of the ledger.
        entries: different calls.
        answers: of them, counting those that are held more than once.
        bytes: of all parts.
        files: parts.
        oldest, newest: when answers came; None without any.
        seconds: that all calls took.
        runs: that used it, the latest first.
        damaged: paths of parts that cannot be read, wholly or in places, and why.
        foreign: paths of files that are not the ledger's; nobody reads or removes them.
    """

    folder: str
    entries: int
    answers: int
    bytes: int
    files: int
    oldest: datetime | None
    newest: datetime | None
    seconds: float
    runs: tuple[RunUse, ...]
    damaged: tuple[tuple[str, str], ...]
    foreign: tuple[str, ...]

    @property
    def hits(self) -> int:
        """Answers that all runs found."""
        return sum(run.hits for run in self.runs)

    @property
    def calls(self) -> int:
        """Calls that all runs made."""
        return sum(run.calls for run in self.runs)


@dataclass(frozen=True)
class Cleared:
    """What was removed.

    Attributes:
        files: parts.
        answers: that they held, as far as they could be read.
        bytes: of the parts.
    """

    files: int
    answers: int
    bytes: int


def survey(folder: str) -> Survey:
    """Look at everything in a ledger. Every page is read, and its checksum compared.

    Raises:
        InputError: the folder cannot be looked up.
    """
    found = store.parts_in(folder)
    counted = [_Counted.of(part) for part in found]
    moments = [moment for each in counted for moment in (each.oldest, each.newest) if moment is not None]
    runs, unreadable = _runs(folder)
    damaged = [(part.path, each.damage) for part, each in zip(found, counted, strict=True) if each.damage]
    return Survey(
        folder=folder,
        entries=_distinct(keys for each in counted for keys in each.keys),
        answers=sum(each.answers for each in counted),
        bytes=sum(part.bytes for part in found),
        files=len(found),
        oldest=min(moments, default=None),
        newest=max(moments, default=None),
        seconds=sum(each.seconds for each in counted),
        runs=runs,
        damaged=(*damaged, *unreadable),
        foreign=tuple(stranger.path for stranger in store.strangers_in(folder)),
    )


def clear(folder: str, older_than: timedelta | None = None) -> Cleared:
    """Remove what a ledger holds. Files that are not the ledger's stay.

    Args:
        folder: of the ledger.
        older_than: remove only parts whose newest answer is older than that; by default everything.

    Raises:
        InputError: the folder cannot be looked up.
    """
    limit = None if older_than is None else datetime.now(UTC) - older_than
    removed = []
    for part in store.parts_in(folder):
        counted = _Counted.of(part, ["key", "seconds", "finished_at"])
        old = limit is None or (counted.newest is not None and counted.newest < limit)
        if old and not counted.is_foreign and store.delete(part.path):
            removed.append((part, counted))
    _clear_uses(folder, limit)
    return Cleared(len(removed), sum(each.answers for _, each in removed), sum(part.bytes for part, _ in removed))


@dataclass
class _Counted:
    """What one part holds, and what is wrong with it."""

    keys: list[pa.ChunkedArray] = field(default_factory=list)
    answers: int = 0
    seconds: float = 0.0
    oldest: datetime | None = None
    newest: datetime | None = None
    damage: str = ""
    is_foreign: bool = False

    @staticmethod
    def of(part: Stored, columns: list[str] | None = None) -> "_Counted":
        """Read a part, all its columns by default."""
        counted = _Counted()
        try:
            with PartReader(part.path) as reader:
                for group in range(reader.groups):
                    counted._add_group(reader, group, columns)
        except Vanished:
            return counted
        except PartError as error:
            counted.damage, counted.is_foreign = str(error), isinstance(error, ForeignPart)
        return counted

    def _add_group(self, reader: PartReader, group: int, columns: list[str] | None) -> None:
        try:
            rows = reader.rows(group, columns)
        except Vanished:
            raise
        except PartError as error:  # other row groups may be good
            self.damage = str(error)
            return
        possible = rows.filter(parts.are_possible(rows))
        if possible.num_rows < rows.num_rows:
            self.damage = "rows with values that cannot be"
        if possible.num_rows:
            self._add_rows(possible)

    def _add_rows(self, rows: pa.Table) -> None:
        self.keys.append(rows.column("key"))
        self.answers += rows.num_rows
        self.seconds += pc.sum(rows.column("seconds")).as_py()
        moments = pc.min_max(rows.column("finished_at")).as_py()
        self.oldest = min(filter(None, (self.oldest, moments["min"])))
        self.newest = max(filter(None, (self.newest, moments["max"])))


def _distinct(keys: Iterable[pa.ChunkedArray]) -> int:
    chunks = [chunk for each in keys for chunk in each.chunks]
    return int(pc.count_distinct(pa.chunked_array(chunks, pa.string())).as_py())


def _runs(folder: str) -> tuple[tuple[RunUse, ...], list[tuple[str, str]]]:
    """How each run used the ledger, and the records that do not say so."""
    runs: dict[str, RunUse] = {}
    unreadable = []
    for stored in store.uses_in(folder):
        use = _use(stored.path)
        if use is None:
            unreadable.append((stored.path, "no record of how a run used the ledger"))
            continue
        sofar = runs.get(use.run_id, RunUse(use.run_id, 0, 0, use.last))
        last = max(sofar.last, use.last)
        runs[use.run_id] = RunUse(use.run_id, sofar.hits + use.hits, sofar.calls + use.calls, last)
    return tuple(sorted(runs.values(), key=lambda run: (run.last, run.run_id), reverse=True)), unreadable


def _use(path: str) -> RunUse | None:
    try:
        with files.open_raw(path) as handle:
            told = json.loads(handle.read())
        use = RunUse(str(told["run_id"]), int(told["hits"]), int(told["calls"]), datetime.fromisoformat(told["at"]))
    except (InputError, BeamIOError, OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return use if use.last.tzinfo is not None and min(use.hits, use.calls) >= 0 else None


def _clear_uses(folder: str, limit: datetime | None) -> None:
    for stored in store.uses_in(folder):
        use = None if limit is None else _use(stored.path)
        if limit is None or (use is not None and use.last < limit):
            store.delete(stored.path)
    for stored in store.unfinished_in(folder) if limit is None else []:
        store.delete(stored.path)
