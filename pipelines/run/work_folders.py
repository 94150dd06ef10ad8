"""The folders in which the rounds of a run leave what the next round needs, and those of runs that were killed.

    OUTPUT/race-RUNID/owner              the process that runs a race
    OUTPUT/race-RUNID/…                  what a round says
    LEDGER/batches/round-RUN/owner, …    the same for rounds that leave calls to batch jobs

A folder is deleted when its run has ended. A killed run leaves it: the next such run of the same output or ledger
deletes it, or `rankbeam runs --prune` for races. Whether a process of another machine still runs cannot be seen from
here: its folder is deleted after 30 days.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError

RACE, ROUND = "race-", "round-"
_OWNER = "owner"
_RETENTION = timedelta(days=30)


@contextmanager
def work_folder(parent: str, kind: str, name: str) -> Iterator[str]:
    """A folder for the rounds of a run; it is deleted at the end, as those are that killed runs left."""
    delete_abandoned(parent, kind)
    folder = files.join(parent, f"{kind}{name}")
    files.delete(folder)
    owner = {"machine": process.machine(), "pid": os.getpid(), "started": process.this_started()}
    files.make_folder(folder)
    try:
        files.write(files.join(folder, _OWNER), json.dumps({**owner, "at": datetime.now(UTC).isoformat()}).encode())
        yield folder
    finally:
        files.delete(folder)


def owned(parent: str, kind: str) -> list[str]:
    """The files that name the owners of such folders."""
    return sorted(files.match(files.join(matching.escaped(parent), f"{kind}*", _OWNER)))


def delete_abandoned(parent: str, kind: str, now: datetime | None = None) -> list[str]:
    """Delete the folders of runs that no process executes any more; returns these."""
    if is_table(parent):
        return []
    abandoned = []
    for path in owned(parent, kind):
        folder = files.parent(path)
        try:
            if not _is_abandoned(files.read_all(path), now or datetime.now(UTC)):
                continue
            files.delete(folder)
        except files.errors(path) as error:
            raise InputError(f"cannot be deleted: {error}", path=folder) from error
        abandoned.append(folder)
    return abandoned


def _is_abandoned(owner: bytes, now: datetime) -> bool:
    with suppress(ValueError, KeyError, TypeError):
        own = json.loads(owner)
        if own["machine"] == process.machine():
            return bool(process.started(own["pid"]) != own["started"])
        return now - datetime.fromisoformat(own["at"]) > _RETENTION
    return False
