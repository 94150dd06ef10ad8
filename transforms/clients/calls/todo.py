"""What a lane still has to ask, and what the ledger answers of it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from rankbeam.transforms.clients.ledger import Search
from rankbeam.transforms.records.calls.call import Request
from rankbeam.transforms.records.errors import CallError

Outcome = TypeVar("Outcome")


class Todo(Generic[Outcome]):
    """Requests, each of which leaves when the ledger answers it or its call begins.

    Args:
        requests: all of the lane.
        search: of the ledger.
        read: what an answer says to everyone who asked; raises CallError where it cannot be read any more.
    """

    def __init__(
        self, requests: Sequence[Request], search: Search, read: Callable[[Request, str], list[Outcome]]
    ) -> None:
        self._requests = {request.call.key: request for request in requests}
        self._search, self._read = search, read

    def __len__(self) -> int:
        return len(self._requests)

    def services(self) -> list[int]:
        """The services that are still to be asked."""
        return list(dict.fromkeys(request.service for request in self._requests.values()))

    def to_begin(self) -> Iterator[Request]:
        """Take one after the other, in their order."""
        while self._requests:
            yield self._requests.pop(next(iter(self._requests)))

    def answered(self) -> Iterator[list[Outcome]]:
        """Take those that the ledger answers, and yield their outcomes; nothing else takes any meanwhile."""
        for key, outcomes in self._found(dict(self._requests)):
            del self._requests[key]
            yield outcomes

    async def answered_meanwhile(self) -> list[list[Outcome]]:
        """Take those that other calls have brought into the ledger since the last time, while calls are made."""
        found = await asyncio.to_thread(lambda requests: list(self._found(requests)), dict(self._requests))
        return [outcomes for key, outcomes in found if self._requests.pop(key, None) is not None]  # else it was begun

    def _found(self, requests: dict[str, Request]) -> Iterator[tuple[str, list[Outcome]]]:
        for entry in self._search.find({key: request.call.reach for key, request in requests.items()}):
            try:
                outcomes = self._read(requests[entry.key], entry.answer)
            except CallError:
                continue  # nobody can read it any more: ask again
            yield entry.key, outcomes
