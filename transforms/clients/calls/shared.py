"""State that the lanes of one process share: money, and for each service one connection and one circuit breaker."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Mapping

from rankbeam.transforms.clients.calls.budget import Account
from rankbeam.transforms.clients.calls.driver import Flight
from rankbeam.transforms.clients.calls.health import Breaker
from rankbeam.transforms.clients.calls.services import Connection, Service
from rankbeam.transforms.records.calls.call import Call, Reach
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply

TakeOutcome = Callable[[Reply | CallError], None]
"""Takes the outcome of a call that another lane made."""


class SharedServices:
    """The services of a stage, as the lanes that run together on one loop use them.

    What one lane learns, all lanes know: that a service is down, or which form of requests it refuses. Lanes in other
    processes learn it for themselves.
    """

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services
        self.account = Account()
        self.added: dict[str, Reach | None] = {}
        self.flushes: list[Callable[[], None]] = []
        self._wanted: dict[str, tuple[Flight, list[TakeOutcome]]] = {}
        self._breakers: dict[tuple[str, str | None], Breaker] = {}
        self._connections: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Lock] = {}
        self._lanes: Tally[str] = Tally()

    def breaker(self, service: str, give_up_after_s: float, step: str | None = None) -> Breaker:
        """The circuit breaker of a service, or of the answers to one step of it."""
        if (service, step) not in self._breakers:
            self._breakers[service, step] = Breaker(give_up_after_s)
        return self._breakers[service, step]

    def flush(self) -> None:
        """Write the answers of all lanes to the ledger."""
        for flush in list(self.flushes):
            flush()

    def joins(self, flight: Flight, take: TakeOutcome) -> bool:
        """True if another lane is making the same call, and `take` gets its outcome; otherwise the caller makes it.

        Rankings are left out: their tasks are named by their calls, so that no two lanes have the same.
        """
        call = flight.call
        if call.key is None or call.reach is not None:
            return False
        first, takes = self._wanted.setdefault(call.key, (flight, []))
        if first is not flight:
            takes.append(take)
        return first is not flight

    def ended(self, call: Call, outcome: Reply | CallError) -> None:
        """Deliver the outcome of a call to the lanes that joined it."""
        _, takes = self._wanted.pop(call.key or "", (None, ()))
        for take in takes:
            take(outcome)

    async def connect(self, service: str) -> Connection:
        """The connection to a service, which is made for the first lane; `disconnect` is called once for each call.

        Raises:
            InputError: the service's configuration cannot work.
        """
        async with self._connecting.setdefault(service, asyncio.Lock()):
            if service not in self._connections:
                self._connections[service] = await self._services[service].connect()
            self._lanes[service] += 1
            return self._connections[service]

    async def disconnect(self, service: str) -> None:
        """End the use of a connection; the last lane closes it."""
        self._lanes[service] -= 1
        if not self._lanes[service]:
            await self._connections.pop(service).close()
