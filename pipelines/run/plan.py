"""What an experiment would cost: its calls, found exactly as `evaluate` finds them, and none of them made."""

import json
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.build import calls_to_make, new_pipeline, read_dataset
from rankbeam.pipelines.run.evaluate import quiet_beam, refusals
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.pipelines.run.progress import clock
from rankbeam.transforms.call import by_pool
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.call import Call, merged
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.evaluation import Configuration


@dataclass(frozen=True)
class PoolPlan:
    """What one quota pool has to pay for.

    Attributes:
        pool: its name.
        calls: requests that differ; each is made once, if every one succeeds.
        ledger_hits: how many of them the ledger answers.
        requests_per_minute: the quota.
        seconds: that the others take at the quota.
        cost: of the others; None where no price is known.
    """

    pool: str
    calls: int
    ledger_hits: int
    requests_per_minute: float
    seconds: float
    cost: float | None

    @classmethod
    def of(cls, pool: str, quota: Quota, calls: int, ledger_hits: int) -> "PoolPlan":
        """The plan of so many calls under a quota."""
        needed = calls - ledger_hits
        price = quota.price_per_1000
        cost = None if price is None else needed * price / 1000
        return cls(pool, calls, ledger_hits, quota.requests_per_minute, needed * 60 / quota.requests_per_minute, cost)


@dataclass(frozen=True)
class ConfigurationPlan:
    """Where the rankings of one configuration come from.

    Attributes:
        name: of the configuration.
        source: for people.
    """

    name: str
    source: str


@dataclass(frozen=True)
class Plan:
    """What an experiment would cost.

    Attributes:
        pools: of its remote calls.
        configurations: where their rankings come from.
        warnings: what users should know of the ledger.
    """

    pools: tuple[PoolPlan, ...]
    configurations: tuple[ConfigurationPlan, ...]
    warnings: tuple[str, ...] = ()

    def as_json(self) -> str:
        """One JSON document."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def as_text(self) -> str:
        """For people."""
        lines = [_pool_line(each) for each in self.pools] or ["no remote calls"]
        width = max(len(each.name) for each in self.configurations)
        return "\n".join([*lines, "", *(f"{each.name:<{width}}  {each.source}" for each in self.configurations)])


def plan_of(experiment: Experiment) -> Plan:
    """What an experiment would cost; reads its queries and judgements, and the ledger.

    Raises:
        InputError: an input turned out to be unusable.
    """
    names = {each.config_id: each.name for each in experiment.evaluation.configurations}
    configurations = tuple(
        ConfigurationPlan(each.name, _where_from(each, experiment, names))
        for each in experiment.evaluation.configurations
    )
    if not experiment.remote:
        return Plan((), configurations)
    counted = _counted(experiment)
    order = list(experiment.pools)
    pools = [PoolPlan.of(each.pool, experiment.pools[each.pool], each.calls, each.ledger_hits) for each in counted]
    warnings = dict.fromkeys(warning for each in counted for warning in each.warnings)
    return Plan(tuple(sorted(pools, key=lambda each: order.index(each.pool))), configurations, tuple(warnings))


class _Counted(NamedTuple):
    """What was counted for a pool."""

    pool: str
    calls: int
    ledger_hits: int
    warnings: list[str]


def _counted(experiment: Experiment) -> list[_Counted]:
    experiment = experiment.pinned(f"plan {secrets.token_hex(8)}")
    with tempfile.TemporaryDirectory(prefix="rankbeam-plan-") as folder, quiet_beam(), refusals():
        pipeline = new_pipeline(pipeline_options([]))
        judged, _ = read_dataset(pipeline, experiment)
        _ = (
            calls_to_make(judged, experiment)
            | "ByPool" >> beam.Map(by_pool).with_output_types(tuple[str, Call])
            | "GroupByPool" >> beam.GroupByKey()
            | "Count" >> beam.Map(_count, experiment.ledger, folder)
        )
        pipeline.run().wait_until_finish()
        return [_Counted(*json.loads(path.read_text())) for path in sorted(Path(folder).iterdir())]


def _count(element: tuple[str, Iterable[Call]], ledger: str, folder: str) -> None:
    """Leave the calls of a pool, and how many of them the ledger answers, in a file of a folder."""
    pool, calls = element
    requests = merged(calls)
    search = Ledger(ledger).search()
    held = search.held({request.call.key: request.call.reach for request in requests})
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        json.dump(_Counted(pool, len(requests), held, search.warnings()), file)


def _pool_line(plan: PoolPlan) -> str:
    needed = plan.calls - plan.ledger_hits
    parts = [f"{plan.pool}: {needed:,} calls to make"]
    if plan.ledger_hits:
        parts.append(f"{plan.ledger_hits:,} of {plan.calls:,} are in the ledger")
    parts.append(f"{clock(plan.seconds)} at {plan.requests_per_minute:,.6g} a minute")
    if plan.cost is not None:
        parts.append(f"cost {plan.cost:,.2f}")
    return " · ".join(parts)


def _where_from(configuration: Configuration, experiment: Experiment, names: dict[str, str]) -> str:
    source = experiment.evaluation.sources[configuration.source]
    if configuration.derived_from is not None:
        return f"derived from {names[configuration.derived_from]}"
    if source.fusion is not None:
        return "fused from others"
    if source.path is not None:
        return f"read from {source.path}"
    return f"asked in pool {source.pool}" if source.pool is not None else "asked in process"
