"""A stage of remote work: the works of its tasks, the services that they call, the budgets, and the lanes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.ledger.waiting import BatchRound
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Usage, Work

Pools = tuple[str, ...]  # quota pools that one lane needs: tasks use them together


@dataclass(frozen=True)
class Stage:
    """A stage of remote work."""

    name: str  # the name of the stage, such as "retrieve"
    works: Mapping[str, Work[Any]]  # the works of its tasks, by name
    services: Mapping[str, Service]
    pools: Mapping[str, str]
    quotas: Mapping[str, Quota]
    accounts: Mapping[str, str]
    max_failure_rate: float = 1.0
    budget: float = math.inf
    batch: BatchRound | None = None  # None if no call is left to batch jobs

    def connected(self) -> dict[str, Pools]:
        """The pools of each work's lane: those of its own calls, and those that other works connect to them."""
        components: list[set[str]] = []
        for work in self.works.values():
            work_pools = {self.pools[service] for service in work.services}
            unconnected = [pools for pools in components if not pools & work_pools]
            components = [*unconnected, work_pools.union(*(pools for pools in components if pools & work_pools))]
        connected_pools = {pool: tuple(sorted(pools)) for pools in components for pool in pools}
        return {name: connected_pools[self.pools[work.services[0]]] for name, work in self.works.items()}

    def in_lanes(self, pools: Pools) -> dict[str, Quota]:
        """The quotas of connected pools, divided among the same number of lanes, which each of them allows."""
        quotas = {pool: self.quotas[pool] for pool in pools}
        if len(quotas) == 1:
            return quotas
        lanes = max(quota.lanes for quota in quotas.values())
        lanes = min([lanes, *(quota.most_lanes for quota in quotas.values())])
        return {pool: replace(quota, lanes=lanes) for pool, quota in quotas.items()}

    def budget_of_lane(self, pools: Pools) -> float:
        """A lane's part of the budget of its process: an equal share if its calls have a price, else nothing."""
        priced = {group for group in self.connected().values() if any(self.quotas[pool].has_price for pool in group)}
        if math.isinf(self.budget):
            return self.budget
        return self.budget / len(priced) / self.in_lanes(pools)[pools[0]].lanes if pools in priced else 0.0

    def after(self, used: Iterable[Usage]) -> "Stage":
        """The stage, with the budget that earlier stages have left."""
        spent = sum(self.quotas[usage.pool].cost(usage.calls, usage.tokens) or 0.0 for usage in used)
        return replace(self, budget=max(0.0, self.budget - spent))

    def services_of(self, pools: Sequence[str]) -> dict[str, Service]:
        return {name: service for name, service in self.services.items() if self.pools[name] in pools}

    def model(self, service: str) -> str | None:
        """The model that a service calls, or the description of an offline one; None if the service is not a model."""
        parameters = self.services[service]
        model = getattr(parameters, "offline", None) or getattr(parameters, "model", None)
        return None if model is None else str(model)
