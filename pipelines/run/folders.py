"""A run's folders: who may read them, the locations of a user's ledger and leases, and the rounds' files.

    OUTPUT/race-RUNID/owner              the process that runs a race
    OUTPUT/race-RUNID/…                  a round's results, which the next round needs
    LEDGER/batches/round-RUN/owner, …    the same for rounds that leave calls to batch jobs
    OUTPUT/work-RUN/owner, …             results of a benchmark's stages

A folder of rounds is deleted when its run ends. A killed run leaves it behind, and the next run of this kind with the
same output or ledger deletes it (for races, `rankbeam runs --prune` does, too). The folders of other machines, whose
processes cannot be seen from here, are deleted after 30 days.
"""

import fcntl
import glob
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.ledger import Owner
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.clients.ledger.store import read_also
from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_OWNER_ONLY = 0o077


def owner_of(calls: CallSettings, execution: Run) -> Owner:
    started = execution.started_at.isoformat()
    return Owner(execution.run_id, started, calls.wait_for_lease_s, calls.leases_path)


def new_owner(calls: CallSettings, stage: str = "") -> Owner:
    """The owner of calls that belong to no run of an experiment."""
    now = datetime.now(UTC)
    name = "-".join(filter(None, [stage, f"{now:%Y%m%d-%H%M%S}", secrets.token_hex(2)]))
    return Owner(name, now.isoformat(), calls.wait_for_lease_s, calls.leases_path)


def refuse_elsewhere(experiment: Experiment) -> None:
    """Refuse this user's folders if workers are on other machines."""
    if experiment.is_private:
        raise InputError("output.private: is for folders on this machine; grant access to a bucket by its own policy")
    if experiment.calls.shares_ledger or experiment.calls.leases_path is not None:
        name = "ledger" if experiment.calls.shares_ledger else "leases"
        problem = "the user's folder is on this machine, and the workers are not; name a folder that they can reach"
        raise InputError(f"output.{name}: {problem} as output.ledger (RANKBEAM_LEDGER is not for remote runners)")


@contextmanager
def prepared_folders(experiment: Experiment) -> Iterator[None]:
    """Create the user's own folders as private; until the block ends, new files have the experiment's privacy."""
    shared = [experiment.ledger] if experiment.calls.shares_ledger else []
    for folder in filter(None, [*shared, experiment.calls.leases_path]):
        if not Path(folder).exists():  # an existing folder may be a team's
            whole_files.make_private(folder)
    output_ledger = files.below(experiment.output, "ledger")
    if experiment.calls.shares_ledger and files.is_local(output_ledger) and Path(output_ledger).is_dir():
        read_also(experiment.ledger, files.absolute(output_ledger))
    if not experiment.is_private:
        yield
        return
    umask = os.umask(_OWNER_ONLY)
    try:
        for folder in (experiment.output, experiment.ledger):
            if files.is_local(folder):
                whole_files.make_private(folder)
        yield
    finally:
        os.umask(umask)


@contextmanager
def sole_writer(output: str, name: str, result: str, option: str) -> Iterator[None]:
    """Refuse to write a result that another process on this machine is writing: the files of both would be mixed."""
    if not files.is_local(output):
        yield
        return
    files.make_writable_folder(output)
    path = Path(output) / f".{name}.lock"
    with files.translate_errors(str(path), "another user's command writes here, or was killed (then delete this file)"):
        file = path.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file.fileno()).st_nlink:  # its writer has just deleted it, and others lock a new file
                raise BlockingIOError
        except BlockingIOError as error:
            problem = f"another process is writing {result}; wait for it, or choose another {option}"
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
    """A folder for the rounds of a run, deleted at the end; folders left by killed runs are deleted now."""
    delete_abandoned(parent, kind)
    folder = files.join(parent, f"{kind}{name}")
    files.delete(folder)
    owner = {"machine": process.machine(), "pid": os.getpid(), "started": process.own_start_time()}
    files.make_writable_folder(folder)
    try:
        files.write(files.join(folder, _OWNER), json.dumps({**owner, "at": datetime.now(UTC).isoformat()}).encode())
        yield folder
    finally:
        files.delete(folder)


def owner_files(parent: str, kind: str) -> list[str]:
    """The files that name these folders' owners."""
    return sorted(files.match(files.join(glob.escape(parent), f"{kind}*", _OWNER)))


def delete_abandoned(parent: str, kind: str, *, dry_run: bool = False) -> list[str]:
    """Delete the folders of runs that no process executes any more, except in a dry run; return their paths."""
    if is_table(parent):
        return []
    abandoned = []
    for path in owner_files(parent, kind):
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
        record = json.loads(owner)
        if record["machine"] == process.machine():
            return bool(process.start_time(record["pid"]) != record["started"])
        return now - datetime.fromisoformat(record["at"]) > _RETENTION
    return False
