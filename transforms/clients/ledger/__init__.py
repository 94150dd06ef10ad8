"""The ledger of finished calls: part files in a folder, so that no answered call is paid for again.

Any number of runs and processes may share a ledger. Its parts need no lock: a part never changes, and a part that was
merged is deleted only after the merged part exists. Leases decide which run makes the calls of a quota pool.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger import store, uses
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.clients.ledger.leases.places import lease_place
from rankbeam.transforms.clients.ledger.lookup import Lookup
from rankbeam.transforms.clients.ledger.rows import LedgerEntry
from rankbeam.transforms.clients.ledger.uses import LaneCounts, LedgerUse, UseRecord
from rankbeam.transforms.clients.ledger.writer import LedgerWriter
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError

__all__ = [
    "LaneCounts",
    "Lease",
    "Ledger",
    "LedgerEntry",
    "LedgerUse",
    "LedgerWriter",
    "Lookup",
    "Owner",
    "UseRecord",
]


@dataclass(frozen=True)
class Owner:
    """The run that uses a ledger."""

    run_id: str = ""
    started: str = ""
    wait_s: float | None = None  # None to wait as long as it takes
    leases: str | None = None


_NO_OWNER = Owner()
_STOP = b"stop"
_MOST_TRIED = 10_000


class Ledger:
    """The finished calls in a folder."""

    def __init__(self, folder: str, owner: Owner = _NO_OWNER, patience_s: float = 10.0) -> None:
        self.folder, self.owner, self.patience_s = folder, owner, patience_s

    def find(self, depths: Mapping[str, SearchDepth | None]) -> Iterator[LedgerEntry]:
        lookup = self.lookup()
        lookup.refresh()
        yield from lookup.read(depths)

    def lookup(self) -> Lookup:
        """A lookup for a stream of calls; it knows no parts until it is refreshed."""
        return Lookup(self.folder)

    def writer(self, before_part: Callable[[], None] = lambda: None, clock: Clock = SYSTEM_CLOCK) -> LedgerWriter:
        return LedgerWriter(self.folder, before_part=before_part, clock=clock)

    def probe(self) -> None:
        """Check that finished calls can be added."""
        try:
            store.probe(self.folder)
        except InputError as error:
            advice = "free disk space or grant write access: no call was made"
            raise InputError(f"the ledger of finished calls {error.problem}; {advice}", path=self.folder) from error

    def lease(self, name: str, clock: Clock = SYSTEM_CLOCK) -> Lease:
        place = lease_place(self.folder if self.owner.leases is None else self.owner.leases)
        return Lease(place, name, Holder.here(self.owner.run_id, self.owner.started), clock)

    def record(self, pool: str, lane: int, counted: Callable[[], LaneCounts], clock: Clock = SYSTEM_CLOCK) -> UseRecord:
        owner = self.owner
        return UseRecord(self.folder, owner.run_id, owner.started, (pool, lane), counted, clock.monotonic)

    def tried_keys(self, pool: str, lane: int) -> frozenset[str]:
        """The keys of calls that failed in an earlier run, which gave up their service before making all calls.

        Made first, they would fail first in every run, and the calls behind them would never be made. Empty if the keys
        cannot be read, as they only decide the order of calls.
        """
        try:
            with files.open_raw(files.join(self.folder, store.USES, store.tried_name(pool, lane))) as handle:
                keys = json.loads(handle.read())
        except (InputError, OSError, ValueError):
            return frozenset()
        return frozenset(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else frozenset()

    def keep_tried(self, pool: str, lane: int, keys: Collection[str]) -> None:
        """Store the keys of such calls for the next run. If they cannot be written, only its order of calls changes."""
        content = json.dumps(sorted(keys)[:_MOST_TRIED]).encode()
        with suppress(InputError):
            store.put_use(self.folder, store.tried_name(pool, lane), content)

    def keep_log(self, name: str, text: str) -> str:
        return store.put_use(self.folder, name, text.encode("utf-8", "backslashreplace"))

    def request_stop(self) -> None:
        """Ask all lanes of the run, in any process, to begin no further call.

        An engine that cancels a job may let a lane's bundle finish, which may mean hours of calls. So the process that
        cancels writes a file to the ledger, and every lane of the run looks for it. The file stays: lanes may outlive
        their job, and a later run with the same id has another file.
        """
        lease_place(self.folder).create(self._stop_name, _STOP)

    def is_stop_requested(self) -> bool:
        """Return whether the run's lanes should begin no further call; False while the ledger cannot be read."""
        try:
            return lease_place(self.folder).read(self._stop_name) is not None
        except InputError:  # the next heartbeat reports it
            return False

    @property
    def _stop_name(self) -> str:
        # A run may be repeated with the same id: id and start together identify one execution.
        run = f"{self.owner.run_id} {self.owner.started}"
        return f"stop-{hashlib.sha256(run.encode()).hexdigest()[:32]}.json"

    def uses(self) -> list[LedgerUse]:
        """The records of the run, including those of lanes that ended with their workers."""
        return uses.of_run(self.folder, self.owner.run_id, self.owner.started)
