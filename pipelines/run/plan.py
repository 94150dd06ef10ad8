"""What an experiment would cost: its calls, found exactly as `evaluate` finds them, and none of them made."""

import json
import secrets
import tempfile
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.branches import retrieve_stage, tasks_to_do
from rankbeam.pipelines.run.build import new_pipeline, read_dataset
from rankbeam.pipelines.run.evaluate import quiet_beam, refusals
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.pipelines.run.progress import clock
from rankbeam.transforms.call import DistinctTasks
from rankbeam.transforms.clients.calls.feed import Group
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import groups_in
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.call import Call
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
        stage = retrieve_stage(experiment)
        _ = (
            tasks_to_do(judged, experiment)
            | "DistinctTasks" >> DistinctTasks(stage)
            | "Tasks" >> beam.Values()
            | "Together" >> beam.WithKeys(0).with_output_types(tuple[int, pa.RecordBatch])
            | "GroupAll" >> beam.GroupByKey()
            | "Count" >> beam.Map(_count, stage, experiment.ledger, folder)
        )
        pipeline.run().wait_until_finish()
        return [_Counted(*json.loads(path.read_text())) for path in sorted(Path(folder).iterdir())]


def _count(element: tuple[int, Iterable[pa.RecordBatch]], stage: Stage, ledger: str, folder: str) -> None:
    """Leave in a file of a folder, for each pool, the calls of tasks and how many of them the ledger answers."""
    lookup = Ledger(ledger).lookup()
    lookup.refresh()
    calls: Tally[str] = Tally()
    held: Tally[str] = Tally()
    for group in groups_in(element[1]):
        for call in _first_calls(group, stage):
            pool = stage.pools[call.service]
            calls[pool] += 1
            held[pool] += call.key is not None and lookup.place(call.key, call.reach) is not None
    for pool, number in calls.items():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump(_Counted(pool, number, held[pool], lookup.warnings()), file)


def _first_calls(group: Group, stage: Stage) -> Iterable[Call]:
    """The calls that tasks of one name begin with, each once."""
    calls: dict[str | None, Call] = {}
    for task in group:
        for call in next(stage.works[task.work].steps(task.item)):
            calls.setdefault(call.key, call)
    return calls.values()


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
