"""What the lanes of one process share: money, and for each service one connection, and one circuit breaker."""

import asyncio
from collections import Counter as Tally
from collections.abc import Mapping

from rankbeam.transforms.clients.calls.budget import Account
from rankbeam.transforms.clients.calls.health import Breaker
from rankbeam.transforms.clients.calls.services import Connection, Service


class SharedServices:
    """The services of a stage, as the lanes that run together on one loop use them.

    What one lane learns, all lanes know: that a service is down, or which form of requests it refuses. Lanes in other
    processes learn it for themselves.

    Args:
        services: by name.

    Attributes:
        account: of their part of the budget.
    """

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services
        self.account = Account()
        self._breakers: dict[tuple[str, str | None], Breaker] = {}
        self._connections: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Lock] = {}
        self._lanes: Tally[str] = Tally()

    def breaker(self, service: str, give_up_after_s: float, step: str | None = None) -> Breaker:
        """The circuit breaker of a service, or of the answers to one step of it."""
        if (service, step) not in self._breakers:
            self._breakers[service, step] = Breaker(give_up_after_s)
        return self._breakers[service, step]

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
