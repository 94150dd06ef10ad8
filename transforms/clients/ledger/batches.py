"""Calls that batch jobs make, as a ledger keeps them beside its finished calls.

batches/part-HASH.jsonl   the calls of one job, named by the hash of their sorted keys; it never changes
batches/job-HASH.json     what is known of that job, rewritten by the process that waits for it
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from rankbeam.transforms.clients.ledger.waiting import BATCHES, PendingCall, calls_in
from rankbeam.transforms.clients.storage import files, whole
from rankbeam.transforms.records.errors import InputError

_DIGITS = 16
_WHAT = "the ledger's batch jobs"


@dataclass(frozen=True)
class BatchJobRecord:
    """Record of the job of a part."""

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
    refused: dict[str, int] = field(default_factory=dict)  # by reason, the calls whose answers could not be used

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
        self._folder = files.join(ledger, BATCHES)

    def records(self) -> list[BatchJobRecord]:
        listed = [file for file in whole.listed(self._folder, _WHAT) if file.name.startswith("job-")]
        return [self._record(file.path) for file in listed]

    def record(self, part: str) -> BatchJobRecord | None:
        """The job of a part; None if there is none."""
        path = self._path("job", part, "json")
        return self._record(path) if files.exists(path) else None

    def save(self, record: BatchJobRecord) -> None:
        whole.put(self._path("job", record.hash, "json"), json.dumps(asdict(record)).encode())

    def save_part(self, part: str, calls: Iterable[PendingCall]) -> None:
        path = self._path("part", part, "jsonl")
        if not files.exists(path):
            whole.put(path, b"".join(call.line() for call in calls))

    def calls(self, part: str) -> list[PendingCall]:
        return list(calls_in(self._path("part", part, "jsonl")))

    def delete_part(self, part: str) -> None:
        """Delete the calls of a job whose answers are recorded; its record stays."""
        whole.delete(self._path("part", part, "jsonl"))

    def delete_unused_parts(self) -> None:
        """Delete the calls of jobs that killed runs left: no job was made of them, or their answers are recorded."""
        needed = {f"part-{record.hash}.jsonl" for record in self.records() if record.is_open}
        for file in whole.listed(self._folder, _WHAT):
            if file.name.startswith("part-") and file.name not in needed:
                whole.delete(file.path)

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
