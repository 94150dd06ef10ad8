"""The folders in which the rounds of races leave their results, and those of runs that were killed.

    OUTPUT/race-RUNID/owner    the process that runs the race
    OUTPUT/race-RUNID/…        what a round says

A folder is deleted when its race has ended. A killed run leaves it: the next race of the same output, or
`rankbeam runs --prune`, deletes it. Whether a process of another machine still runs cannot be seen from here: its
folder is deleted after 30 days.
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
from rankbeam.transforms.records.run import Run

_PREFIX, _OWNER = "race-", "owner"
_RETENTION = timedelta(days=30)


@contextmanager
def race_folder(output: str, execution: Run) -> Iterator[str]:
    """A folder for the rounds of a race; it is deleted at the end."""
    delete_abandoned(output)
    folder = files.join(output, f"{_PREFIX}{execution.run_id}")
    files.delete(folder)
    owner = {"machine": process.machine(), "pid": os.getpid(), "started": process.this_started()}
    files.make_folder(folder)
    try:
        files.write(files.join(folder, _OWNER), json.dumps({**owner, "at": datetime.now(UTC).isoformat()}).encode())
        yield folder
    finally:
        files.delete(folder)


def delete_abandoned(output: str, now: datetime | None = None) -> list[str]:
    """Delete the folders of races that no process runs any more; returns these."""
    if is_table(output):
        return []
    abandoned = []
    for path in sorted(files.match(files.join(matching.escaped(output), f"{_PREFIX}*", _OWNER))):
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
