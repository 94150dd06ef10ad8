"""Settings of all calls of an experiment, or of a benchmark that is made."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbeam.pipelines.experiment.file.quotas import CorpusQuotas
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger.waiting import BatchRound
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Work

_STAGES = ("rewrite", "embed", "retrieve", "rerank", "judge")
"""Stages that make calls, in their order; named here, since their modules take long to import."""


@dataclass(frozen=True)
class CallSettings:
    """The services that are called, the quota pools that pay for them, the ledger, and limits."""

    pools: Mapping[str, Quota] = field(default_factory=dict)  # quotas of the pools that are used, by name
    services: Mapping[str, ConfiguredService] = field(default_factory=dict)  # models by name
    # The account behind each pool. A pool's name depends on the experiment's other retrievers, an account does not.
    accounts: Mapping[str, str] = field(default_factory=dict)
    budgets: Mapping[str, str] = field(default_factory=dict)  # the key under `quotas:` of each pool
    corpus_quotas: CorpusQuotas = field(default_factory=CorpusQuotas)
    max_cost: float | None = None  # limit of what all calls cost together; None for no limit
    # Highest acceptable share, from 0 to 1, of what a configuration lacks because calls failed.
    max_failure_rate: float = 1.0
    ledger_path: str | None = None  # folder that stores all answers; None for `ledger` in the output
    shares_ledger: bool = False  # true if all of the user's runs on this machine share the ledger
    leases_path: str | None = None  # the folder of leases; None for that of the ledger
    wait_for_lease_s: float | None = None  # seconds to wait for another run's lease; None to wait as long as it takes
    is_fresh: bool = False  # true if each day calls anew
    day: str | None = None  # the date that calls are made for, if each day calls anew
    batch: BatchRound | None = None  # the round of batch jobs; None if no call is left to them
    spent: Mapping[str, float] = field(default_factory=dict)  # cost of earlier rounds of the run, by stage

    @property
    def lanes(self) -> int:
        """The calls that all pools together may make at a time."""
        return sum(quota.lanes for quota in self.pools.values())

    @property
    def batched(self) -> list[str]:
        """The services whose calls batch jobs make."""
        return [name for name, service in self.services.items() if service.batch is not None]

    def budget(self, stage: str) -> float:
        """Budget for the calls up to a stage, less what earlier rounds spent on this stage and later ones."""
        if self.max_cost is None:
            return math.inf
        # A stage takes off what the stages before it have spent; one outside an evaluation, such as nuggets, is alone.
        later = _STAGES[_STAGES.index(stage) :] if stage in _STAGES else ()
        return max(0.0, self.max_cost - sum(self.spent.get(name, 0.0) for name in later))

    def ledger_of(self, output: str) -> str:
        """The folder that stores the answers of services, for a run that writes to `output`."""
        return files.below(output, "ledger") if self.ledger_path is None else self.ledger_path

    def stage(
        self,
        name: str,
        works: Mapping[str, Work[Any]],
        called: Mapping[str, tuple[Service, str | None]] | None = None,
        *,
        batches: bool = False,
    ) -> Stage:
        """A stage of calls, which batch jobs may make if `batches` is true.

        `called` are its services with their quota pools, by default the models that its works name.
        """
        if called is None:
            models = {service: self.services[service] for work in works.values() for service in work.services}
            called = {service: (model.parameters, model.pool) for service, model in models.items()}
        return Stage(
            name,
            works,
            {service: parameters for service, (parameters, _) in called.items()},
            {service: pool or "" for service, (_, pool) in called.items()},
            self.pools,
            self.accounts,
            budget=self.budget(name),
            batch=self.batch if batches else None,
        )
