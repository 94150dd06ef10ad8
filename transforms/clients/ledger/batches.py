"""Calls that batch jobs make, as a ledger keeps them beside its finished calls.

batches/round-RUN/pending-….jsonl   calls that a round of a run left to batch jobs
batches/round-RUN/decided.json      calls of the run that no later round leaves to them
batches/part-HASH.jsonl             the calls of one job, named by the hash of their sorted keys; it never changes
batches/job-HASH.json               what is known of that job, rewritten by the process that waits for it
"""

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rankbeam.transforms.clients.storage import files, whole
from rankbeam.transforms.records.errors import InputError

_FOLDER, _DECIDED = "batches", "decided.json"
_DIGITS = 16
_WHAT = "the ledger's batch jobs"


@dataclass(frozen=True)
class BatchRound:
    """One round of a run whose calls may wait for batch jobs.

    Attributes:
        folder: folder of the run's rounds.
        parks: true if calls that the ledger lacks are left to batch jobs; false in the last round, which makes them.
        spent: cost of the calls that earlier rounds and jobs of the run have made, by stage.
    """

    folder: str
    parks: bool
    spent: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: str, run_id: str, started: str) -> "BatchRound":
        """The first round of a run; what an earlier execution of the same run decided is deleted."""
        name = hashlib.sha256(f"{run_id} {started}".encode()).hexdigest()[:_DIGITS]
        return cls(files.join(ledger, _FOLDER, f"round-{name}"), parks=True)

    def delete(self) -> None:
        """Delete the folder."""
        with suppress(*files.errors(self.folder)):
            files.delete(self.folder)

    def write_pending(self, calls: Iterable["PendingCall"]) -> None:
        """Add calls that wait."""
        path = files.join(self.folder, f"pending-{uuid.uuid4().hex}.jsonl")
        whole.put(path, b"".join(call.line() for call in calls))

    def take_pending(self) -> list["PendingCall"]:
        """The calls that lanes of the last round left, each once, sorted by key; they wait no longer."""
        calls: dict[str, PendingCall] = {}
        parts = [file for file in whole.listed(self.folder, _WHAT) if file.name.startswith("pending-")]
        for call in (call for file in parts for call in _read(file.path)):
            known = calls.get(call.key, call)
            calls[call.key] = replace(call, positions=tuple(sorted({*known.positions, *call.positions})))
        for file in parts:
            whole.delete(file.path)
        return [calls[key] for key in sorted(calls)]

    def decided(self) -> dict[str, str]:
        """Calls that are left to no job any more: the reason why a call fails, "" where a lane makes it."""
        path = files.join(self.folder, _DECIDED)
        decided: dict[str, str] = json.loads(files.read_all(path)) if files.exists(path) else {}
        return decided

    def decide(self, decisions: Mapping[str, str]) -> None:
        """Add such calls."""
        whole.put(files.join(self.folder, _DECIDED), json.dumps({**self.decided(), **decisions}).encode())


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a batch job."""

    key: str
    service: str
    stage: str
    step: str
    positions: tuple[int, ...]  # of the sources or configurations that need it
    payload: str

    def line(self) -> bytes:
        """As a line of a file."""
        return json.dumps(asdict(self), separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class BatchJobRecord:
    """Record of the job of a part.

    Attributes:
        hash: names the part.
        service: the service's name in the experiment that made the job.
        kind: the service's type.
        parameters: the service's parameters; secrets are references.
        stage: stage of the calls.
        step: step of the calls.
        calls: number of calls.
        created: when the part was written, in UTC.
        job: the service's id of the job; None until it is known.
        state: the last state of the job, in the service's words.
        ended: ids of jobs of this part whose answers were collected.
        answered: answers that were recorded.
        refused: by reason, the calls whose answers could not be used.
    """

    hash: str
    service: str
    kind: str
    parameters: dict[str, Any]
    stage: str
    step: str
    calls: int
    created: str
    job: str | None = None
    state: str = "new"
    ended: tuple[str, ...] = ()
    answered: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name by which the service knows the job."""
        return f"rankbeam-v1-{self.hash[:_DIGITS]}"

    @property
    def is_open(self) -> bool:
        """True while answers of the job may be collected."""
        return self.state not in (COLLECTED, GIVEN_UP)


COLLECTED, GIVEN_UP = "collected", "given up"
"""States of jobs that nothing waits for: their answers are in the ledger, or the service never made them."""


def hash_of(calls: Collection[PendingCall]) -> str:
    """The name of a part: the hash of its sorted keys."""
    return hashlib.sha256("\n".join(sorted(call.key for call in calls)).encode()).hexdigest()


class BatchFolder:
    """The batch jobs of a ledger."""

    def __init__(self, ledger: str) -> None:
        self._folder = files.join(ledger, _FOLDER)

    def records(self) -> list[BatchJobRecord]:
        """All jobs, by their names."""
        listed = [file for file in whole.listed(self._folder, _WHAT) if file.name.startswith("job-")]
        return [self._record(file.path) for file in listed]

    def record(self, part: str) -> BatchJobRecord | None:
        """The job of a part; None if there is none."""
        path = self._path("job", part, "json")
        return self._record(path) if files.exists(path) else None

    def save(self, record: BatchJobRecord) -> None:
        """Write what is known of a job."""
        whole.put(self._path("job", record.hash, "json"), json.dumps(asdict(record)).encode())

    def save_part(self, part: str, calls: Iterable[PendingCall]) -> None:
        """Write the calls of a job."""
        path = self._path("part", part, "jsonl")
        if not files.exists(path):
            whole.put(path, b"".join(call.line() for call in calls))

    def calls(self, part: str) -> list[PendingCall]:
        """The calls of a job."""
        return list(_read(self._path("part", part, "jsonl")))

    def delete_part(self, part: str) -> None:
        """Delete the calls of a job whose answers are recorded; its record stays."""
        whole.delete(self._path("part", part, "jsonl"))

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


def _read(path: str) -> Iterator[PendingCall]:
    try:
        for line in files.read_all(path).splitlines():
            values = json.loads(line)
            yield PendingCall(**{**values, "positions": tuple(values["positions"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"is not a list of calls: {error}; delete it, and the calls are made again", path=path
        ) from error
