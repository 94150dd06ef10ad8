"""Records of how runs used a ledger: one file for each lane of a run, rewritten while its calls are made.

If a worker is lost, the records of its lanes stay. When a lane is repeated, its answers are in the ledger, and their
cost is in the record.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pydantic import AwareDatetime, NonNegativeInt, TypeAdapter

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.whole_files import StoredFile
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.steps import CallUsage
from rankbeam.transforms.records.errors import InputError

_SHORTEST_PAUSE_S = 1.0  # object stores allow one write per second to an object


@dataclass(frozen=True)
class LaneCounts:
    """The counts of a lane so far; records of earlier versions lack those that have a default."""

    hits: NonNegativeInt
    calls: NonNegativeInt
    answered: NonNegativeInt = 0
    usages: tuple[tuple[str, str, CallUsage], ...] = ()
    planned: int = 0  # including calls that the ledger answers, as far as they are known
    stage: str = ""  # the stage whose calls are counted
    stored: tuple[tuple[str, str, CallUsage], ...] = ()  # the part of `usages` whose answers the ledger has


@dataclass(frozen=True, kw_only=True)
class LedgerUse(LaneCounts):
    """A record of one lane."""

    name: str
    run_id: str
    run_started: str = ""
    pool: str = ""
    lane: int = 0
    at: AwareDatetime

    @property
    def attempted(self) -> tuple[str, str, str, str, int]:
        """The lane's identity. If it has several records, it was attempted again, and all but the last were lost."""
        return self.run_id, self.run_started, self.stage, self.pool, self.lane


class UseRecord:
    """The record of one lane. Any thread may write it."""

    def __init__(
        self,
        folder: str,
        run_id: str,
        run_started: str,
        lane: tuple[str, int],
        counted: Callable[[], LaneCounts],
        clock: Callable[[], float],
    ) -> None:
        self._folder, self._counted, self._clock = folder, counted, clock
        self._about = {"run_id": run_id, "run_started": run_started, "pool": lane[0], "lane": lane[1]}
        self.name = f"use-{_prefix(run_id, run_started)}{uuid.uuid4().hex[:16]}.json"
        self._pause_s = 0.0 if files.is_local(folder) else _SHORTEST_PAUSE_S
        self._lock = threading.Lock()
        self._written: LaneCounts | None = None
        self._written_at = -_SHORTEST_PAUSE_S

    def write(self, *, at_once: bool = False) -> None:
        """Write the counts if they have changed; after a failed write, the next call tries again."""
        with self._lock:
            counted = self._counted()
            paused = self._clock() - self._written_at >= self._pause_s
            if counted == (self._written or LaneCounts(0, 0, 0, stage=counted.stage)) or not (paused or at_once):
                return
            content = {**self._about, **asdict(replace(counted, usages=(), stored=()))}
            del content["usages"]  # stored as `took`, the name of earlier versions
            content |= {"took": _usage_rows(counted.usages), "stored": _usage_rows(counted.stored)}
            content["at"] = datetime.now(UTC).isoformat()
            with suppress(InputError):
                store.put_use(self._folder, self.name, json.dumps(content).encode())
                self._written, self._written_at = counted, self._clock()


def _usage_rows(usages: Iterable[tuple[str, str, CallUsage]]) -> list[dict[str, Any]]:
    return [{"stage": stage, "model": model, **asdict(usage)} for stage, model, usage in usages]


_FORM = TypeAdapter(LedgerUse)


def read(stored: StoredFile) -> LedgerUse | None:
    try:
        values = json.loads(files.read_all(stored.path))
        usages, answered = (
            [(row["stage"], row["model"], row) for row in values.get(name, ())] for name in ("took", "stored")
        )
        return _FORM.validate_python({**values, "name": stored.name, "usages": usages, "stored": answered})
    except (InputError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def of_run(folder: str, run_id: str, run_started: str) -> list[LedgerUse]:
    prefix = f"use-{_prefix(run_id, run_started)}"
    uses = [read(stored) for stored in store.uses_in(folder) if stored.name.startswith(prefix)]
    return [use for use in uses if use is not None and (use.run_id, use.run_started) == (run_id, run_started)]


def count_saved(records: Iterable[LedgerUse]) -> int:
    """Number of ledger answers that lanes used, without answers that an earlier attempt at the same lane paid for."""
    count = 0
    for lane_uses in grouped((use.attempted, use) for use in records).values():
        *lost, last = sorted(lane_uses, key=lambda use: use.at)
        paid = sum(use.answered for use in lost)
        count += max(0, last.hits - paid) if last.run_started else sum(use.hits for use in lane_uses)
    return count


def _prefix(run_id: str, run_started: str) -> str:
    return sha256(f"{run_id} {run_started}".encode()).hexdigest()[:16]
