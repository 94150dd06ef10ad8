"""Calls of a lane that batch jobs make: they are written down, and their tasks end as waiting.

A later round of the run finds their answers in the ledger.
"""

from collections.abc import Collection, Mapping

from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.ledger.waiting import BatchRound, PendingCall
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_MOST_BYTES = 8 << 20  # of payloads in memory


class Waiting(CallError):
    """The outcome of a call that waits for a batch job."""

    def __init__(self) -> None:
        super().__init__(FailureKind.UNAVAILABLE, "waits for a batch job", 0)


class Parking:
    """Decides which calls of a lane wait for batch jobs, and writes them down."""

    def __init__(self, batch: BatchRound, stage: str, services: Mapping[str, Service]) -> None:
        self._batch, self._stage = batch, stage
        self._waits = {name: getattr(service, "waits", None) for name, service in services.items()}
        self._pending: list[PendingCall] = []
        self._bytes = 0
        self._decided: dict[str, str] = {}

    def load(self) -> None:
        """Read which calls wait no longer."""
        self._decided = self._batch.decided()

    def refusal(self, call: Call, positions: Collection[int]) -> CallError | None:
        """The error of a call that is not made now; None for one that is.

        A call that no job answered fails where the service says `otherwise: fail`.
        """
        if call.key is None:
            return None
        if (reason := self._decided.get(call.key)) is not None:
            return CallError(FailureKind.TIMEOUT, reason, 0) if reason else None
        waits = self._waits[call.service]
        if not self._batch.parks or waits is None or not waits(call.payload):
            return None
        needed_by = tuple(sorted(positions))
        self._pending.append(PendingCall(call.key, call.service, self._stage, call.step, needed_by, call.payload))
        self._bytes += len(call.payload)
        if self._bytes >= _MOST_BYTES:
            self.flush()
        return Waiting()

    def flush(self) -> None:
        """Write the calls that wait."""
        pending, self._pending, self._bytes = self._pending, [], 0
        if pending:
            self._batch.write_pending(pending)
