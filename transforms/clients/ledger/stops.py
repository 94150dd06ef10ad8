"""Requests to stop: a run begins no further call, on whatever machine its lanes work.

An engine that cancels a job may leave the bundle of a lane to its end, which is hours of calls. The process that
cancels the job leaves a file in the ledger, and every lane of the run looks for it.
"""

import hashlib

from rankbeam.transforms.clients.ledger.leases import place_of

_CONTENT = b"stop"


def request(folder: str, run_id: str, started: str) -> None:
    """Have the lanes of a run begin no further call."""
    place_of(folder).create(_name(run_id, started), _CONTENT)


def is_requested(folder: str, run_id: str, started: str) -> bool:
    """Return whether the lanes of a run are to begin no further call."""
    return place_of(folder).read(_name(run_id, started)) is not None


def withdraw(folder: str, run_id: str, started: str) -> None:
    """Delete the request, once no lane of the run is left."""
    place = place_of(folder)
    if (seen := place.read(_name(run_id, started))) is not None:
        place.delete(_name(run_id, started), seen)


def _name(run_id: str, started: str) -> str:
    """A run may be repeated under the same id: with its start, the id names one execution."""
    return f"stop-{hashlib.sha256(f'{run_id} {started}'.encode()).hexdigest()[:32]}.json"
