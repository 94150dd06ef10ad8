"""The folders of a run: who may read them, where ledger and leases of a user's runs are, and what rounds leave.

    OUTPUT/race-RUNID/owner              the process that runs a race
    OUTPUT/race-RUNID/…                  what a round says, which the next round needs
    LEDGER/batches/round-RUN/owner, …    the same for rounds that leave calls to batch jobs
    OUTPUT/work-RUN/owner, …             what the stages of a benchmark say

A folder of rounds is deleted when its run has ended. A killed run leaves it: the next such run of the same output or
ledger deletes it, or `rankbeam runs --prune` for races. Whether a process of another machine still runs cannot be seen
from here: its folder is deleted after 30 days.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.ledger import Owner, read_also
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.clients.storage import files, matching, whole
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_OWNER_ONLY = 0o077


def owner_of(experiment: Experiment, execution: Run) -> Owner:
    started = execution.started_at.isoformat()
    return Owner(execution.run_id, started, experiment.wait_for_lease_s, experiment.leases_path)


def refuse_elsewhere(experiment: Experiment) -> None:
    """Refuse folders of this user, where workers are on other machines."""
    if experiment.is_private:
        raise InputError("output.private: is for folders on this machine; grant access to a bucket by its own policy")
    if experiment.shares_ledger or experiment.leases_path is not None:
        name = "ledger" if experiment.shares_ledger else "leases"
        problem = "the user's folder is on this machine, and the workers are not; name a folder that they can reach"
        raise InputError(f"output.{name}: {problem} as output.ledger (RANKBEAM_LEDGER is not for remote runners)")


@contextmanager
def prepared_folders(experiment: Experiment) -> Iterator[None]:
    """Make the folders that only their owner may read; until the end, new files have the experiment's privacy."""
    own = [experiment.ledger] if experiment.shares_ledger else []
    for folder in filter(None, [*own, experiment.leases_path]):
        if not Path(folder).exists():  # one that exists may be a team's
            whole.make_private(folder)
    beside = files.below(experiment.output, "ledger")
    if experiment.shares_ledger and files.is_local(beside) and Path(beside).is_dir():
        read_also(experiment.ledger, files.absolute(beside))
    if not experiment.is_private:
        yield
        return
    before = os.umask(_OWNER_ONLY)
    try:
        for folder in (experiment.output, experiment.ledger):
            if files.is_local(folder):
                whole.make_private(folder)
        yield
    finally:
        os.umask(before)


@contextmanager
def sole_writer(output: str, run_id: str) -> Iterator[None]:
    """Refuse a run that another process of this machine is writing: the rows of both would be mixed."""
    if not files.is_local(output):
        yield
        return
    files.make_folder(output)
    path = Path(output) / f".{run_id}.lock"
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            problem = f"another process is writing the run {run_id}; wait for it, or choose another --run-id"
            raise InputError(problem, path=output) from error
        except OSError:
            pass  # a disk without locks
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


RACE, ROUND, WORK = "race-", "round-", "work-"
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


def delete_abandoned(parent: str, kind: str, *, dry_run: bool = False) -> list[str]:
    """Delete the folders of runs that no process executes any more, unless in a dry run; returns these."""
    if is_table(parent):
        return []
    abandoned = []
    for path in owned(parent, kind):
        folder = files.parent(path)
        try:
            if not _is_abandoned(files.read_all(path), datetime.now(UTC)):
                continue
            if not dry_run:
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
