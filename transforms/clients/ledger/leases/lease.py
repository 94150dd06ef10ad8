"""A lease: the right to make the calls of one lane of a quota pool, for all runs that share a ledger.

    claim ──► free, or its holder has ended ──► held ── beat, beat, … ──► release
      └─────► held by another process             └──► taken over: begin no further call

A holder on this machine has ended when its process has. A holder on another machine is known by its heartbeat alone: it
has ended when the heartbeat has not changed for a minute on the observer's clock, or is 12 hours old (clocks jump).
"""

import hashlib
import json
import os
import socket
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.records.errors import InputError


class ReadFile(NamedTuple):
    """A file as it was read."""

    content: bytes
    version: object


class LeasePlace(Protocol):
    """Files that several processes compete for, on one kind of filesystem.

    Every method raises InputError if the filesystem refuses.
    """

    def read(self, name: str) -> ReadFile | None:
        """The file; None if there is none."""

    def create(self, name: str, content: bytes) -> bool:
        """Create a file; returns False if another process was faster."""

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        """Replace a file if it has not changed since it was read; returns whether it was replaced."""

    def delete(self, name: str, seen: ReadFile) -> None:
        """Delete a file if it has not changed since it was read."""


BEAT_S = 10.0
EXPIRY_S = 60.0
_ABANDONED = timedelta(hours=12)


@dataclass(frozen=True)
class Holder:
    """The holder of a lease."""

    run_id: str
    run_started: str
    host: str
    machine: str
    pid: int
    pid_started: str
    since: str  # when the lease was claimed, in UTC
    beat: str  # the time of the last heartbeat, in UTC
    token: str

    @classmethod
    def here(cls, run_id: str, run_started: str) -> "Holder":
        """This process, without a claim."""
        host, machine = socket.gethostname(), process.machine()
        return cls(run_id, run_started, host, machine, os.getpid(), process.own_start_time(), "", "", "")

    def claiming(self, now: datetime) -> "Holder":
        """The same process, with a claim made now."""
        moment = now.isoformat(timespec="seconds")
        return replace(self, since=moment, beat=moment, token=uuid.uuid4().hex)

    @classmethod
    def read(cls, content: bytes) -> "Holder | None":
        """Parse a lease's file; None for an incomplete file."""
        try:
            values = json.loads(content)
            return cls(**{name: kind(values[name]) for name, kind in cls.__annotations__.items()})
        except (ValueError, TypeError, KeyError):
            return None

    def content(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def __str__(self) -> str:
        if not self.token:
            return "a process whose lease cannot be read, and will be ignored in a minute,"
        run = f"run {self.run_id} " if self.run_id else ""
        return f"{run}(host {self.host}, process {self.pid}, since {self.since.replace('+00:00', ' UTC')})"


class LeaseLost(InputError):
    """Another run has taken over a lease."""


class Lease:
    """The lease with one name. Its methods block on the filesystem."""

    def __init__(self, place: LeasePlace, name: str, me: Holder, clock: Clock = SYSTEM_CLOCK) -> None:
        self._place, self.name = place, name
        self._file = f"lease-{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
        self._me, self._clock = me, clock
        self._held: Holder | None = None
        self._watched: tuple[ReadFile, float] | None = None
        self._beaten = 0.0

    def claim(self) -> Holder | None:
        """Try to take the lease; returns its holder, or None if this caller has it now."""
        mine = self._me.claiming(self._clock.now())
        while True:
            seen = self._place.read(self._file)
            if seen is None:
                won = self._place.create(self._file, mine.content())
            elif self._is_abandoned(seen):
                won = self._place.replace(self._file, mine.content(), seen)
            else:
                return Holder.read(seen.content) or replace(mine, token="")
            if won:
                self._held, self._beaten = mine, self._clock.monotonic()
                return None  # if not, another process was faster

    def beat(self) -> None:
        """Write a heartbeat unless the last one is recent."""
        if self._held is None or self._clock.monotonic() - self._beaten < BEAT_S:
            return
        try:
            self._beat(self._held)
        except LeaseLost:
            raise
        except InputError as error:  # retried with the next beat, unless other runs may have taken over by now
            if self._clock.monotonic() - self._beaten > EXPIRY_S - BEAT_S:
                raise LeaseLost(f"the lease of {self.name} cannot be renewed: {error}") from error

    def release(self) -> None:
        """Release the lease if this process still has it."""
        holder, self._held = self._held, None
        if holder is not None:
            with suppress(InputError):  # then it expires
                seen = self._place.read(self._file)
                if seen is not None and _is_of(seen, holder):
                    self._place.delete(self._file, seen)

    def _beat(self, holder: Holder) -> None:
        began = self._clock.monotonic()
        seen = self._place.read(self._file)
        renewed = replace(holder, beat=self._clock.now().isoformat(timespec="seconds"))
        mine = seen is not None and _is_of(seen, holder) and self._place.replace(self._file, renewed.content(), seen)
        if not mine:
            other = None if seen is None else Holder.read(seen.content)
            self._held = None
            raise LeaseLost(
                f"the lease of {self.name} on the ledger was taken over by {other or 'another run'}, because this "
                "process wrote no heartbeat; no answer is lost, run it again"
            )
        self._beaten = began

    def _is_abandoned(self, seen: ReadFile) -> bool:
        holder = Holder.read(seen.content)
        if holder is not None and holder.machine == self._me.machine:
            return process.start_time(holder.pid) != holder.pid_started
        if self._watched is None or self._watched[0] != seen:
            self._watched = (seen, self._clock.monotonic())
        stood_still = self._clock.monotonic() - self._watched[1] >= EXPIRY_S
        return stood_still or (holder is not None and _is_old(holder, self._clock.now()))


def _is_of(seen: ReadFile, current: Holder) -> bool:
    holder = Holder.read(seen.content)
    return holder is not None and holder.token == current.token


def _is_old(holder: Holder, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(holder.beat) > _ABANDONED
    except (ValueError, TypeError):
        return False
