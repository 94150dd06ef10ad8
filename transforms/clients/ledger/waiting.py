"""Calls that wait for batch jobs, from the lanes of a round to the parts of jobs.

LEDGER/batches/round-RUN/pending-….jsonl   calls that a lane of the round left, sorted
LEDGER/batches/round-RUN/decided.json      calls of the run that no later round leaves to jobs

The calls of a round may not fit into memory. They are merged on disk; only a few blocks of files are in memory.
"""

import hashlib
import heapq
import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.storage import files, spill, whole_files
from rankbeam.transforms.records.errors import InputError

BATCHES = "batches"  # the folder in a ledger for everything about batch jobs

_DECIDED, _PENDING = "decided.json", "pending-"
_READ_AT_ONCE, _BLOCK_BYTES = 32, 1 << 18


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a batch job."""

    key: str
    service: str
    stage: str
    step: str
    positions: tuple[int, ...]  # of the sources or configurations that need it
    payload: str

    @property
    def order(self) -> tuple[str, str, str]:
        """Sort key: calls that one job may make are next to each other."""
        return self.service, self.step, self.key

    def line(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class PendingCalls:
    """The calls that a round left, without repeats, sorted by service, step and key; they can be read repeatedly."""

    path: str | None
    sizes: Mapping[tuple[str, str], int]  # number of calls by service and step

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def steps(self) -> Iterator[tuple[str, int, Iterator[PendingCall]]]:
        """The service of each step, the number of its calls, and the calls, to be read before the next step's."""
        calls = () if self.path is None else calls_in(self.path)
        for step, step_calls in groupby(calls, key=lambda call: (call.service, call.step)):
            yield step[0], self.sizes[step], step_calls


@dataclass(frozen=True)
class BatchRound:
    """One round of a run whose calls may wait for batch jobs."""

    folder: str
    # True if calls that the ledger lacks are left to batch jobs; false in the last round, which makes them.
    parks: bool = True
    # Cost of the calls that earlier rounds and jobs of the run made, by stage.
    spent: Mapping[str, float] = field(default_factory=dict)

    def write_pending(self, calls: Iterable[PendingCall]) -> None:
        path = files.join(self.folder, f"{_PENDING}{uuid.uuid4().hex}.jsonl")
        whole_files.put(path, b"".join(call.line() for call in sorted(calls, key=lambda call: call.order)))

    @contextmanager
    def pending(self) -> Iterator[PendingCalls]:
        """The calls that lanes of the last round left; after the block, they no longer wait."""
        listed = whole_files.list_files(self.folder, "the ledger's batch jobs")
        parts = [file.path for file in listed if file.name.startswith(_PENDING)]
        with tempfile.TemporaryDirectory(prefix="rankbeam-pending-", dir=spill.folder()) as folder:
            path = _merge_files(parts, Path(folder))
            sizes = Counter((call.service, call.step) for call in (() if path is None else calls_in(path)))
            yield PendingCalls(path, sizes)
        for part in parts:
            whole_files.delete(part)

    def decided(self) -> dict[str, str]:
        """Calls that are no longer left to jobs, with the reason why a call fails, or "" if a lane makes it."""
        path = files.join(self.folder, _DECIDED)
        decided: dict[str, str] = json.loads(files.read_all(path)) if files.exists(path) else {}
        return decided

    def decide(self, decisions: Mapping[str, str]) -> None:
        whole_files.put(files.join(self.folder, _DECIDED), json.dumps({**self.decided(), **decisions}).encode())


def calls_in(path: str) -> Iterator[PendingCall]:
    try:
        for block in files.read_blocks(path, _BLOCK_BYTES):
            for line in block.splitlines():
                values = json.loads(line)
                yield PendingCall(**{**values, "positions": tuple(values["positions"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"is not a list of calls: {error}; delete it, and the calls are made again", path=path
        ) from error


def _merge_files(parts: Sequence[str], folder: Path) -> str | None:
    """Merge sorted files into one, without repeated calls; None if there are no calls."""
    while parts:
        groups = [parts[start : start + _READ_AT_ONCE] for start in range(0, len(parts), _READ_AT_ONCE)]
        merged = [_merged_file(group, folder) for group in groups]
        for path in (Path(part) for part in parts if Path(part).parent == folder):
            path.unlink()
        if len(merged) == 1:
            return merged[0]
        parts = merged
    return None


def _merged_file(parts: Sequence[str], folder: Path) -> str:
    path = folder / f"{uuid.uuid4().hex}.jsonl"
    merged = heapq.merge(*map(calls_in, parts), key=lambda call: call.order)
    with path.open("wb") as file:
        for _, repeats in groupby(merged, key=lambda call: call.order):
            first, *others = repeats
            positions = {position for call in (first, *others) for position in call.positions}
            file.write(replace(first, positions=tuple(sorted(positions))).line())
    return str(path)


_DIGITS = 16
_WHAT = "the ledger's batch jobs"


@dataclass(frozen=True)
class BatchJobRecord:
    """The record of a part's job."""

    hash: str  # names the part
    service: str
    kind: str  # the service's type
    parameters: dict[str, Any]
    stage: str
    step: str
    calls: int
    created: str  # when the part was written, in UTC
    job: str | None = None
    state: str = "new"
    ended: tuple[str, ...] = ()  # ids of jobs of this part whose answers were collected
    answered: int = 0  # answers that were recorded
    refused: dict[str, int] = field(default_factory=dict)  # number of calls whose answers could not be used, by reason
    input_tokens: int = 0
    output_tokens: int = 0
    unread_since: str = ""  # when its files lacked answers for the first time, in UTC

    @property
    def name(self) -> str:
        """The name by which the service knows the job."""
        return f"rankbeam-v1-{self.hash[:_DIGITS]}"

    @property
    def is_open(self) -> bool:
        """True while answers of the job may be collected."""
        return self.state not in (COLLECTED, GIVEN_UP)

    def closed(self, state: str) -> "BatchJobRecord":
        """The record once nothing waits for the job; for calls without an answer, the next run creates another job."""
        ended = (*self.ended, *filter(None, [self.job]))
        return replace(self, job=None, state=state, ended=ended)


COLLECTED, GIVEN_UP = "collected", "given up"
"""States of jobs that nothing waits for: their answers are in the ledger, or the service gave none."""


def hash_of(calls: Collection[PendingCall]) -> str:
    """The name of a part: the hash of its sorted keys."""
    return hashlib.sha256("\n".join(sorted(call.key for call in calls)).encode()).hexdigest()


class BatchFolder:
    """The batch jobs of a ledger."""

    def __init__(self, ledger: str) -> None:
        self._folder = files.join(ledger, BATCHES)

    def records(self) -> list[BatchJobRecord]:
        listed = [file for file in whole_files.list_files(self._folder, _WHAT) if file.name.startswith("job-")]
        return [self._record(file.path) for file in listed]

    def record(self, part: str) -> BatchJobRecord | None:
        path = self._path("job", part, "json")
        return self._record(path) if files.exists(path) else None

    def save(self, record: BatchJobRecord) -> None:
        whole_files.put(self._path("job", record.hash, "json"), json.dumps(asdict(record)).encode())

    def save_part(self, part: str, calls: Iterable[PendingCall]) -> None:
        path = self._path("part", part, "jsonl")
        if not files.exists(path):
            whole_files.put(path, b"".join(call.line() for call in calls))

    def calls(self, part: str) -> list[PendingCall]:
        return list(calls_in(self._path("part", part, "jsonl")))

    def current(self, part: str) -> BatchJobRecord | None:
        """The record of an open job; None if a run has collected its answers. Call it while you hold the lease."""
        record = self.record(part)
        if record is not None and record.is_open and not files.exists(self._path("part", part, "jsonl")):
            record = record.closed(COLLECTED)  # an earlier version opened it again
            self.save(record)
        return record if record is not None and record.is_open else None

    def delete_part(self, part: str) -> None:
        """Delete the file with a job's calls once its answers are recorded; the job's record stays."""
        whole_files.delete(self._path("part", part, "jsonl"))

    def delete_unused_parts(self) -> None:
        """Delete parts that killed runs left: no job was created for them, or their answers are recorded."""
        needed = {f"part-{record.hash}.jsonl" for record in self.records() if record.is_open}
        for file in whole_files.list_files(self._folder, _WHAT):
            if file.name.startswith("part-") and file.name not in needed:
                whole_files.delete(file.path)

    def _path(self, kind: str, part: str, ending: str) -> str:
        return files.join(self._folder, f"{kind}-{part}.{ending}")

    @staticmethod
    def _record(path: str) -> BatchJobRecord:
        try:
            values = json.loads(files.read_all(path))
            names = BatchJobRecord.__dataclass_fields__
            known = {name: value for name, value in values.items() if name in names}  # later versions may add some
            return BatchJobRecord(**{**known, "ended": tuple(known["ended"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"is not a record of a batch job: {error}", path=path) from error
