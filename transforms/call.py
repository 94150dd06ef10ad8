"""Call remote services: the one fan-out stage, whatever is asked of whom.

The calls of a quota pool are divided among its lanes, usually one; a lane is one element after a GroupByKey, so one
worker at a time paces it, and the whole job keeps the quota whatever the number of workers.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.lanes import Lane
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.ledger import Ledger, Use
from rankbeam.transforms.kernels.pacing import lane_of, lane_shares
from rankbeam.transforms.records.calls.call import Answer, Call, FailedCall, Usage
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError

LaneKey = tuple[str, int]
"""A quota pool, and a lane of it."""

FAILED, USAGE, WARNINGS = "failed", "usage", "warnings"
_TELL_EVERY_S = 0.1


class Called(NamedTuple):
    """What `CallServices` returns."""

    answers: beam.PCollection[Answer]
    failed: beam.PCollection[FailedCall]
    usage: beam.PCollection[Usage]
    warnings: beam.PCollection[str]


@dataclass
class CallServices(beam.PTransform):
    """Make every call, at the pace of its pool's quota; equal calls are made once, those in the ledger never.

    Attributes:
        stage: that asks, such as "retrieve".
        services: that calls name by position.
        quotas: of the pools, by name.
        ledger: of the run.
        accounts: for each pool whose budget it is, by a name that all experiments have for it.
        summary: the dataset's: no call is made before the whole dataset was found good.
    """

    stage: str
    services: Mapping[int, Service]
    quotas: Mapping[str, Quota]
    ledger: Ledger
    accounts: Mapping[str, str]
    summary: beam.PCollection[DatasetSummary]

    def expand(self, calls: beam.PCollection[Call]) -> Any:  # a Called; Beam warns of named results
        """Add the steps."""
        outputs = (
            calls
            | "ByPool" >> beam.Map(by_pool).with_output_types(tuple[str, Call])
            | "GroupByPool" >> beam.GroupByKey()
            | "DivideAmongLanes" >> beam.FlatMap(divided, dict(self.quotas)).with_output_types(tuple[LaneKey, Call])
            | "GroupByLane" >> beam.GroupByKey()
            | "Call"
            >> beam.ParDo(
                CallFn(self.stage, self.services, self.quotas, self.ledger, self.accounts),
                beam.pvalue.AsSingleton(self.summary),
            )
            .with_output_types(Answer, failed=FailedCall, usage=Usage, warnings=str)
            .with_outputs(FAILED, USAGE, WARNINGS, main="answers")
        )
        usage = (
            outputs[USAGE]
            | "AllUsage" >> beam.combiners.ToList()
            | "AddLostAttempts" >> beam.FlatMap(with_lost_attempts, self.ledger).with_output_types(Usage)
        )
        return Called(outputs.answers, outputs[FAILED], usage, outputs[WARNINGS])


def by_pool(call: Call) -> tuple[str, Call]:
    """A call, keyed by the pool that pays for it."""
    return call.pool, call


def divided(element: tuple[str, Iterable[Call]], quotas: Mapping[str, Quota]) -> Iterator[tuple[LaneKey, Call]]:
    """The calls of a pool, keyed by lane; calls that one answer serves go to one lane."""
    pool, calls = element
    shares = lane_shares(quotas[pool].requests_per_minute, quotas[pool].lanes)
    positions: dict[str, int] = {}
    for call in calls:
        position = positions.setdefault(call.key, len(positions))
        yield (pool, lane_of(position, shares)), call


class CallFn(beam.DoFn):
    """Makes the calls of the lanes of a bundle, all lanes at once."""

    def __init__(
        self,
        stage: str,
        services: Mapping[int, Service],
        quotas: Mapping[str, Quota],
        ledger: Ledger,
        accounts: Mapping[str, str],
    ) -> None:
        self._stage, self._services, self._quotas = stage, dict(services), dict(quotas)
        self._ledger, self._accounts = ledger, dict(accounts)

    def start_bundle(self) -> None:
        """Nothing is to be done."""
        self._lanes: list[Lane] = []

    def process(self, element: tuple[LaneKey, Iterable[Call]], summary: DatasetSummary) -> Iterator[Answer]:
        """Take a lane; all of the bundle's are begun at once, when nothing is left to be read that could fail."""
        del summary  # waiting for it is all it is for
        (pool, lane), calls = element
        self._lanes.append(Lane(pool, self._quotas[pool], lane, list(calls), self._stage, self._accounts[pool]))
        yield from ()

    def finish_bundle(self) -> Iterator[object]:
        """Yield answers and failures as they come."""
        fan_out = FanOut(self._services, self._ledger)
        for lane in self._lanes:
            fan_out.begin(lane)
        told_at = 0.0
        for outcome in fan_out.outcomes():
            if isinstance(outcome, Answer):
                yield _in_window(outcome)
            elif outcome is not None:
                count(Counter.FAILURES, 1)
                yield beam.pvalue.TaggedOutput(FAILED, _in_window(outcome))
            if time.monotonic() > told_at + _TELL_EVERY_S:
                _tell(fan_out.counted())
                told_at = time.monotonic()
        _tell(fan_out.counted())
        for usage in usages(fan_out.totals()):
            yield beam.pvalue.TaggedOutput(USAGE, _in_window(replace(usage, records=fan_out.records(usage.pool))))
        for warning in fan_out.warnings():
            yield beam.pvalue.TaggedOutput(WARNINGS, _in_window(warning))


def usages(counts: Counts) -> list[Usage]:
    """What every pool was used for."""
    return [
        Usage(pool, counts[Counter.CALLS_MADE, pool], counts[Counter.LEDGER_HITS, pool])
        for pool in sorted({pool for _, pool in counts})
    ]


def with_lost_attempts(used: list[Usage], ledger: Ledger) -> list[Usage]:
    """What every pool was used for, with the calls of bundles that were lost and made again.

    Beam keeps only what the last attempt at a bundle returns. What an earlier one paid for is in the ledger, where the
    last one found it: this run has paid for it all the same, so that it is no hit.

    Args:
        used: what the bundles returned.
        ledger: with the records of all of them.
    """
    known = {name for usage in used for name in usage.records}
    try:
        lost = [use for use in ledger.uses() if use.name not in known]
    except InputError:  # the records are for people, and no reason to lose a run
        return used
    return [_with(usage, [use for use in lost if use.pool == usage.pool]) for usage in _by_pool(used)]


def _by_pool(used: list[Usage]) -> Iterator[Usage]:
    for pool in sorted({usage.pool for usage in used}):
        of_pool = [usage for usage in used if usage.pool == pool]
        yield Usage(pool, sum(usage.calls for usage in of_pool), sum(usage.ledger_hits for usage in of_pool))


def _with(usage: Usage, lost: list[Use]) -> Usage:
    answered = sum(use.answered for use in lost)
    calls = usage.calls + sum(use.calls for use in lost)
    return replace(usage, calls=calls, ledger_hits=max(0, usage.ledger_hits - answered))


def _tell(counts: Counts) -> None:
    for (counter, pool), number in counts.items():
        count(counter, number, pool)


def _in_window(value: object) -> WindowedValue:
    return GlobalWindows.windowed_value(value)
