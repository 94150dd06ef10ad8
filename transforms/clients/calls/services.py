"""Remote services as the fan-out sees them: it connects, makes calls and reads answers.

The fan-out depends on the two Protocols alone. An implementation makes one attempt per call; pacing, retries, time
limits and the ledger are the task of the fan-out.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, Unreachable
from rankbeam.transforms.records.reply import Reply, Tokens


@dataclass(frozen=True)
class Access:
    """Access to a service. The first call to a service with an `access` goes alone: its refusal ends the run."""

    address: str  # the service's URL or resource name, for messages
    credentials: tuple[str, ...] = ()  # names of the credentials that its calls carry, such as `${env:KEY}`
    # Kinds of failures that every call would share; `NOT_FOUND` among them if queries share one address.
    refusals: frozenset[FailureKind] = frozenset({FailureKind.PERMISSION, FailureKind.NOT_FOUND})

    def is_refused(self, error: CallError) -> bool:
        """True if every call would fail alike."""
        return error.kind in self.refusals or isinstance(error, Unreachable)

    def refusal(self, service: str, error: CallError) -> InputError:
        """The error that ends a run whose first call to the service was refused."""
        if isinstance(error, Unreachable):
            return InputError(f"{service}: cannot connect to {self.address}: {error.message}; check the address")
        advice = "check the address and its names"
        if error.kind is FailureKind.PERMISSION:
            names = ", ".join(self.credentials)
            advice = f"check {names}" if names else "it may need a key: none is configured"
        return InputError(f"{service}: {self.address} refused the first call: {error.message}; {advice}")


class Connection(Protocol):
    """An open connection to a service, or several. It lives on the loop of the process that makes the calls.

    A connection with messages for users may have a list `warnings`, which is added to the run's warnings. If its
    service has a free request, it may have `check(timeout_s)`, which returns what the request found, or None if the
    service lacks it. If it can embed several texts in one request, it may have `texts_per_request`, the most that it
    takes at present; its `call` then also takes a JSON list of payloads, and returns a `Reply` with `parts`.
    """

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt.

        Args:
            payload: the request: the `Call.payload`, JSON.
            timeout_s: time limit of the attempt.
            attempt: the number of the attempt, from 1. It rises after an answer that `Service.read` refused as
                `MALFORMED` or `TRUNCATED`, so that a model receives a repair message or a larger limit; it does not
                rise after an attempt without answer.

        Returns:
            The answer, as JSON that `Service.read` understands, without secrets: it goes to the ledger.

        Raises:
            CallError: there is no answer; its kind decides whether the call is retried, and its tokens are counted.
        """

    async def close(self) -> None:
        """Release the resources that `connect` acquired."""


class Service(Protocol):
    """A service that can be connected to, as a value that travels to workers.

    A service may also have `access`, an `Access`: the run then ends if its first call is refused. If its calls may wait
    for batch jobs, it has `waits(payload)`, which returns whether that call may.
    """

    async def connect(self) -> Connection:
        """Connect; called on the loop that makes the calls, and only when there is a call to make.

        Raises:
            InputError: the configuration cannot work, for example because credentials or a variable are missing.
        """

    def read(self, answer: str) -> Any:
        """The value of an answer; called for new answers and for those in the ledger.

        Raises:
            CallError: the answer is not in the service's format (`MALFORMED`), ends too early (`TRUNCATED`), is a
                refusal (`BLOCKED`), or cannot be used as configured (`INVALID`).
        """

    def most_tokens(self, payload: str) -> Tokens:
        """The most tokens that one attempt uses, for quota and budget to reserve; zero if tokens are not charged."""


async def open_connection(module: str, parameters: Service) -> Connection:
    """Call the `connect(parameters)` of a module.

    The module knows the class of its parameters, and is imported only where calls are made: many service libraries take
    a second to import.
    """
    connection: Connection = await import_module(module).connect(parameters)
    return connection
