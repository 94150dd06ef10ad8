"""The folders of a run on this machine: who may read them, and where ledger and leases of all of a user's runs are."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.ledger import Owner, read_also
from rankbeam.transforms.clients.storage import files, whole
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_OWNER_ONLY = 0o077


def owner_of(experiment: Experiment, execution: Run) -> Owner:
    """The run, to its ledger."""
    started = execution.started_at.isoformat()
    return Owner(execution.run_id, started, experiment.wait_for_lease_s, experiment.leases_path)


def refuse_elsewhere(experiment: Experiment) -> None:
    """Refuse folders of this user, where workers are on other machines."""
    if experiment.is_private:
        raise InputError("output.private: is for folders of this machine; grant access to a bucket by its own policy")
    if experiment.shares_ledger or experiment.leases_path is not None:
        name = "ledger" if experiment.shares_ledger else "leases"
        problem = "the user's folder is on this machine, and the workers are not; name a folder that they reach"
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
