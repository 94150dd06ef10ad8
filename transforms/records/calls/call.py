"""One request to a remote service."""

from dataclasses import dataclass

from rankbeam.transforms.records.calls.reach import Reach


@dataclass(frozen=True)
class Call:
    """One request to a remote service."""

    service: str
    key: str | None
    payload: str
    reach: Reach | None = None  # None if an answer is whole
    positions: frozenset[int] | None = None  # None for those of the call's task
    keeps_malformed: bool = False
    step: str = ""
