"""Remote services, as the fan-out sees them: something that is connected to, called, and whose answers are read.

The two Protocols are all that the fan-out knows. What implements them makes one attempt a call; pacing, retries, time
limits and the ledger are the fan-out's.
"""

from typing import Any, Protocol

from rankbeam.transforms.records.calls.reply import Reply


class Connection(Protocol):
    """An open connection to a service, or several. It lives on the loop of the process that makes the calls.

    One that has something to say to users may have a list `warnings`: its texts are added to the run's warnings.
    """

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        """Make one attempt.

        Args:
            payload: what is asked: the `Call.payload`, JSON.
            timeout_s: after which the answer is given up.
            attempt: from 1. It rises after an answer that `Service.read` refused as `MALFORMED` or `TRUNCATED`, not
                after an attempt without answer: a model is then asked with a repair message, or with a larger limit.

        Returns:
            The answer, as JSON that `Service.read` understands, without secrets: it goes to the ledger.

        Raises:
            CallError: there is no answer; its kind decides whether the call is tried again, and its tokens are counted.
        """
        ...

    async def close(self) -> None:
        """Release the resources that `connect` acquired."""
        ...


class Service(Protocol):
    """A service that can be connected to, as a value that travels to workers."""

    async def connect(self) -> Connection:
        """Connect; called on the loop that makes the calls, and only when there is a call to make.

        Raises:
            InputError: what users configured cannot work, such as missing credentials or an unset variable.
        """
        ...

    def read(self, answer: str) -> Any:
        """What an answer says; called for new answers and for those of the ledger.

        Raises:
            CallError: it is not what the service should say (`MALFORMED`), ends too early (`TRUNCATED`), is a refusal
                (`BLOCKED`), or cannot be used as configured (`INVALID`).
        """
        ...

    def most_tokens(self, payload: str) -> int:
        """The tokens that one attempt takes at most, as admission reserves them; 0 where tokens are not charged."""
        ...
