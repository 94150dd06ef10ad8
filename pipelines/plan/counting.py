"""Count the calls for answering and judging, and their tokens, without making any.

items ─► steps with ledger answers and imagined answers: fewest calls, most calls ─► by step ─► joined, each key once
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from rankbeam.pipelines.plan.simulation import (
    LEAST,
    MOST,
    Again,
    Assumption,
    EarlierWork,
    ImaginedAnswers,
    Recall,
    Unknown,
    bought_again,
    known_queries,
    numbers_alike,
    repeat_shares,
    simulate_calls,
    single_work,
    with_imagined,
    with_systems,
)
from rankbeam.pipelines.plan.totals import (
    CallTotals,
    Criteria,
    Sizes,
    SizeTotal,
    Step,
    divided,
    measure_call,
    step_for,
    totals_of,
)
from rankbeam.transforms.clients.ledger import Ledger, Lookup
from rankbeam.transforms.judge.ask_known import LEAST_TEXTS, AskKnown
from rankbeam.transforms.judge.steps.criterion import instructions_of
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call, Work
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.items import Item
from rankbeam.transforms.records.rankings.contexts import NOT_SUPPLIED
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_ANSWERS_AT_ONCE = 1024  # each takes about 40 kB while its calls are simulated
_ONE_CLAIM = replace(LEAST, claims=1)
_KEY_DIGITS = 16
KNOWN = "known items"  # name of the step that checks the judge with known items


@dataclass
class CallCounts:
    """Mergeable counts of the calls of queries: those of a few, or the totals of all."""

    least: Sizes = field(default_factory=lambda: defaultdict(dict))
    most: Sizes = field(default_factory=lambda: defaultdict(dict))
    totals: tuple[CallTotals, CallTotals] = field(default_factory=lambda: (CallTotals(), CallTotals()))
    apart: Counter[Step] = field(default_factory=Counter)
    seen: dict[Step, "StepTotals"] = field(default_factory=dict)
    unknown: int = 0
    texts: tuple[int, int] = (0, 0)
    largest: dict[str, int] = field(default_factory=dict)
    again: Again = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # quota pools of services that are not models, by service
    warnings: dict[str, None] = field(default_factory=dict)

    def join(self, other: "CallCounts") -> None:
        for mine, theirs in ((self.least, other.least), (self.most, other.most)):
            for step, sizes in theirs.items():
                mine[step] |= sizes
        self.add_totals(other.totals)
        self.apart += other.apart
        for step, seen in other.seen.items():
            self.seen[step] = self.seen.get(step, NOT_SEEN).plus(seen)
        self.unknown += other.unknown
        for service, tokens in other.largest.items():
            self.largest[service] = max(tokens, self.largest.get(service, 0))
        for reason, verdicts in other.again.items():
            self.again.setdefault(reason, {}).update(verdicts)
        self.texts = (self.texts[0] + other.texts[0], self.texts[1] + other.texts[1])
        self.pools |= other.pools
        self.warnings |= other.warnings

    def add_largest(self, calls: Iterable[Call], most_tokens: Callable[[Call], int]) -> None:
        for call in calls:
            self.largest[call.service] = max(most_tokens(call), self.largest.get(call.service, 0))

    def add_totals(self, totals: tuple[CallTotals, CallTotals]) -> None:
        for mine, theirs in zip(self.totals, totals, strict=True):
            mine.join(theirs)

    def without_sizes(self) -> "CallCounts":
        """The counts without calls; their steps have totals of 0, to keep their order."""
        counts = replace(self, least=defaultdict(dict), most=defaultdict(dict), totals=(CallTotals(), CallTotals()))
        counts.add_totals(self.totals)
        for totals, calls in zip(counts.totals, (self.least, self.most), strict=True):
            names = {(step, size.prompt): SizeTotal() for step, sizes in calls.items() for size in sizes.values()}
            totals.join(CallTotals(names))
        return counts

    def with_totals(self) -> "CallCounts":
        """The counts with totals in place of the calls."""
        counts = self.without_sizes()
        for element in grouped(divided((self.least, self.most), 1)).items():
            counts.add_totals(totals_of(element))
        return counts


class StepTotals(NamedTuple):
    """Ledger totals of one step, for estimating its mean."""

    calls: int
    characters: int
    tokens: Tokens

    def plus(self, other: "StepTotals") -> "StepTotals":
        return StepTotals(self.calls + other.calls, self.characters + other.characters, self.tokens + other.tokens)


NOT_SEEN = StepTotals(0, 0, NO_TOKENS)


class KnownAnswers:
    """Ledger answers, parsed by the work."""

    def __init__(self, lookup: Lookup, work: Work[Any], criteria: Criteria = MappingProxyType({})) -> None:
        self._lookup, self._work, self._criteria = lookup, work, criteria
        self._outcomes: dict[str, Any] = {}
        self._looked: set[str] = set()
        self.seen: dict[Step, StepTotals] = {}

    def recall(self, calls: Sequence[Call]) -> Mapping[str, Any]:
        """The outcomes of the calls that the ledger has, by key."""
        new = {call.key: call for call in calls if call.key is not None and call.key not in self._looked}
        self._looked |= set(new)
        depths = {key: call.depth for key, call in new.items() if self._lookup.place(key, call.depth) is not None}
        for entry in self._lookup.read(depths) if depths else ():
            outcome = _read_reply(self._work, new[entry.key], Reply(entry.answer, entry.tokens))
            if isinstance(outcome, CallError) and outcome.kind.is_transient:
                continue  # the run calls again
            self._outcomes[entry.key] = outcome
            if entry.tokens.total:
                step, size = measure_call(new[entry.key], MOST, self._criteria, is_known=True)
                self.seen[step] = self.seen.get(step, NOT_SEEN).plus(StepTotals(1, size.characters, entry.tokens))
        return self._outcomes


def counted_items(
    work: EvaluateAnswers,
    items: Iterable[Item],
    lookup: Lookup,
    unknown: Unknown,
    earlier: Sequence[EarlierWork] = (),
    limited: Collection[str] = (),
) -> CallCounts:
    """Count the calls for items, and the largest call of each service in `limited`."""
    total = CallCounts()
    for part in _in_parts(items):
        is_new = not lookup.index.paths
        known = set[str]() if is_new else known_queries(work, part, unknown, KnownAnswers(lookup, work).recall)
        shares = repeat_shares(work, len(part) - len(known))
        for is_known, bounds in ((True, (work.repeat_share,) * 2), (False, shares)):
            if together := [item for item in part if (item.query_id in known) == is_known]:
                others = () if is_known else earlier  # known questions are not bought again
                total.join(_counted_part(work, bounds, together, lookup, unknown, others, limited))
    return total


def _in_parts(items: Iterable[Item]) -> Iterator[list[Item]]:
    part, answers = list[Item](), 0
    for item in items:
        if part and answers + len(item.systems) > _ANSWERS_AT_ONCE:
            yield part
            part, answers = [], 0
        part.append(item)
        answers += len(item.systems)
    if part:
        yield part


def known_counts(texts: tuple[int, int], asks: Sequence[AskKnown], lookup: Lookup) -> CallCounts:
    """Count the calls for known items, which judges get only if there are enough texts to judge."""
    counts = CallCounts()
    for ask in asks:
        calls = [ask.call(item) for item in ask.items()]
        for number, sizes, assumed in zip(texts, (counts.least, counts.most), (LEAST, MOST), strict=True):
            for call in calls if number >= LEAST_TEXTS else ():
                key = call.key or ""
                is_known = lookup.place(key, call.depth) is not None
                sizes[Step(call.service, KNOWN)][_number(key)] = measure_call(call, assumed, is_known=is_known)[1]
        if texts[1] >= LEAST_TEXTS:
            counts.apart[Step(calls[0].service, KNOWN)] = len(calls)
    return counts


def _number(key: str) -> int:
    return int(key[:_KEY_DIGITS], 16)


def _counted_part(
    work: EvaluateAnswers,
    shares: tuple[float, float],
    items: Sequence[Item],
    lookup: Lookup,
    unknown: Unknown,
    earlier: Sequence[EarlierWork],
    limited: Collection[str],
) -> CallCounts:
    criteria = _criteria(work)
    counts, known = CallCounts(), KnownAnswers(lookup, work, criteria)
    texts = []
    if limited:
        imagined = [with_imagined(item, _ONE_CLAIM, unknown) for item in items]
        imagined = [with_systems(item, numbers_alike(work, item)) for item in imagined]
        calls = _flat(_distinct(work, imagined, _ONE_CLAIM, known.recall))
        new = (call for call in calls if call.service in limited and call.key not in known.recall(()))
        counts.add_largest(new, _most_tokens(work))
    for assumed, sizes, share in zip((LEAST, MOST), (counts.least, counts.most), shares, strict=True):
        imagined = [with_imagined(item, assumed, unknown) for item in items]
        repeating = replace(work, repeat_share=share)
        texts.append(sum(len(item.passages) + len(item.systems) for item in imagined))
        numbers = [numbers_alike(work, item) for item in imagined]
        imagined = [with_systems(item, alike) for item, alike in zip(imagined, numbers, strict=True)]
        query_calls, steps = _distinct(repeating, imagined, assumed, known.recall), dict[str | None, Step]()
        for call in _flat(query_calls):
            step, size = measure_call(call, assumed, criteria, is_known=call.key in known.recall(()))
            sizes[step][_number(call.key or "0")], steps[call.key] = size, step
        if assumed is MOST:
            for item, alike in zip(imagined, numbers, strict=True):
                own_calls = query_calls[item.query_id]
                for call, number in _calls_apart(repeating, item, alike, own_calls, known.recall):
                    counts.apart[steps.get(call.key) or step_for(call, Prompt.parse(call.payload), criteria)] += number
            if earlier and lookup.index.paths:  # an empty ledger has no verdicts to buy again
                counts.again = bought_again(work, earlier, imagined, KnownAnswers(lookup, work, criteria).recall)
    counts.texts = (min(texts), max(texts))
    counts.seen = known.seen
    counts.unknown = sum(
        any(system.failed and system.configuration in unknown for system in item.systems) for item in items
    )
    return counts


def _calls_apart(
    work: EvaluateAnswers, item: Item, alike: Mapping[int, int], calls: Mapping[str, Call], recall: Recall
) -> Iterator[tuple[Call, int]]:
    """The calls for each of several configurations on its own, and how many configurations need them."""
    supplied = {system.configuration for system in item.systems if system.supplied != NOT_SUPPLIED}
    for position, number in alike.items():
        if len(item.systems) > 1:  # else these are the item's calls
            own = with_systems(item, {position, *(supplied if _compares(work, position) else ())})
            calls = _distinct(single_work(work, position), [own], MOST, recall)[item.query_id]
        yield from ((call, number) for call in calls.values())


def _compares(work: EvaluateAnswers, position: int) -> bool:
    """Return whether metrics of a configuration compare its answers with those of others."""
    criteria = (metric.criterion for metric in work.metrics.get(position, ()))
    return any(criterion is not None and criterion.pairs is not None for criterion in criteria)


def _most_tokens(work: EvaluateAnswers) -> Callable[[Call], int]:
    """A function that returns the maximum tokens of a call."""
    models = {answerer.model.name: answerer.model for answerer in work.answering.values()}
    models |= {model.name: model for judge in work.judges for model in judge.models}
    return lambda call: models[call.service].parameters.most_tokens(call.payload).total


def counted_calls(calls: Iterable[Call], lookup: Lookup, most_tokens: Callable[[Call], int]) -> CallCounts:
    """Count calls that are known in advance, each with its own answer."""
    counts = CallCounts()
    for call in calls:
        is_known = call.key is not None and lookup.place(call.key, call.depth) is not None
        step, most = measure_call(call, MOST, is_known=is_known)
        least = measure_call(call, LEAST, is_known=is_known)[1] if most.output else most
        for sizes, size in ((counts.least, least), (counts.most, most)):
            sizes[step][_number(call.key or "0")] = size
        if not is_known:
            counts.add_largest([call], most_tokens)
        counts.apart[step] += 1
    return counts


def counted_tasks(work: Work[Any], items: Mapping[str, Any], ledger: str, *assumptions: Assumption) -> CallCounts:
    """Count the calls of one task for each item: the fewest under the first assumption, the most under the last."""
    lookup = Ledger(ledger).lookup()
    lookup.refresh()
    known = KnownAnswers(lookup, work)
    ends: list[Sizes] = []
    for assumed in assumptions:
        sizes: Sizes = defaultdict(dict)
        tasks = {name: work.steps(item) for name, item in items.items()}
        for calls in simulate_calls(tasks, assumed, known.recall).values():
            for key, call in calls.items():
                step, size = measure_call(call, assumed, is_known=key in known.recall(()))
                sizes[step][_number(key)] = size
        ends.append(sizes)
    return CallCounts(ends[0], ends[-1], seen=known.seen)


def _distinct(
    work: EvaluateAnswers, items: Sequence[Item], assumed: ImaginedAnswers, recall: Recall
) -> dict[str, dict[str, Call]]:
    """The distinct calls for each item, by key."""
    query_calls = simulate_calls({item.query_id: work.steps(item) for item in items}, assumed, recall)
    # Without a reference, a refusal takes one call more than an answer with claims if the query has no answer.
    refusable = [item for item in items if item.gold.reference is None and item.gold.answerable is False]
    otherwise = replace(assumed, claims=0 if assumed.claims else 1)
    tasks = {item.query_id: work.steps(item) for item in refusable}
    for query_id, calls in simulate_calls(tasks, otherwise, recall).items():
        mine = query_calls[query_id]
        is_least = assumed is LEAST
        query_calls[query_id] = {key: mine[key] for key in mine if key in calls} if is_least else {**mine, **calls}
    return query_calls


def _flat(query_calls: Mapping[str, Mapping[str, Call]]) -> Iterator[Call]:
    return (call for calls in query_calls.values() for call in calls.values())


def _criteria(work: EvaluateAnswers) -> Criteria:
    criteria = (metric.criterion for metrics in work.metrics.values() for metric in metrics)
    return {(instructions_of(item), frozenset(item.texts)): item.step for item in criteria if item is not None}


def _read_reply(work: Work[Any], call: Call, reply: Reply) -> Any:
    try:
        return work.read(call, reply)
    except CallError as error:
        return error
