"""Cost of making a benchmark: items, calls, tokens, minutes and money, before any call is made."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.plan.counting import KnownAnswers
from rankbeam.pipelines.plan.models import Range, clocks, format_range, refuse_cost, saved_by_jobs, seconds_of
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.goldens.distilling import EnlargeClues
from rankbeam.transforms.goldens.forecast import OUTPUT_TOKENS, CallCost, forecast, size_of
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.searching import EMBED, SEARCH, GradingPool
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import json_text, pluralize
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN
from rankbeam.transforms.records.reply import Tokens

WRITTEN_AGAIN = 2
"""Approximate maximum number of candidates for an item: every second one is rejected."""
_STEPS = (*OUTPUT_TOKENS, EMBED, SEARCH)
_ONCE = ("grade", EMBED, SEARCH)
"""The steps that are only done for accepted questions."""
_QUESTION = 25  # approximate tokens


@dataclass(frozen=True)
class StepCost:
    """Calls and tokens of a step."""

    service: str
    step: str
    calls: tuple[int, int]
    ledger_hits: int
    input_tokens: Range
    output_tokens: Range


@dataclass(frozen=True)
class PoolCost:
    """Costs of a quota pool."""

    pool: str
    seconds: Range
    cost: Range | None  # None if no price is known
    steps: tuple[StepCost, ...]
    batch_cost: Range | None = None  # None if no calls are left to batch jobs


@dataclass(frozen=True)
class Costs:
    """Cost of a benchmark."""

    items: int
    previous: int
    planned: int
    topics: int
    documents: int
    spans: int
    types: Mapping[str, int]
    pools: tuple[PoolCost, ...]
    max_cost: float | None  # None without a limit

    @property
    def cost(self) -> Range | None:
        """The minimum and the maximum cost of all pools with batch jobs; None if a price is not known."""
        costs = [pool.cost if pool.batch_cost is None else pool.batch_cost for pool in self.pools]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(self.pools):
            return None
        return sum(least for least, _ in known), sum(most for _, most in known)

    def as_json(self) -> str:
        return json_text({**asdict(self), "cost": self.cost})

    def as_text(self) -> str:
        documents, topics = pluralize(self.documents, "document"), pluralize(self.topics, "topic")
        lines = [
            f"{pluralize(self.items, 'question')} from {documents} ({pluralize(self.spans, 'span')}, {topics})",
            "types: " + ", ".join(f"{kind} {number}" for kind, number in self.types.items()),
        ]
        if self.previous:
            lines.append(f"{self.previous:,} of these questions are taken over, and their documents are searched again")
        if (lacking := self.items - self.previous - self.planned) > 0:
            lines.append(f"{lacking:,} of these questions cannot be made: there are too few spans")
        for pool in self.pools:
            parts = [f"{pool.pool}: {clocks(pool.seconds)} at the quota"]
            parts += [] if pool.cost is None else [f"cost {format_range(pool.cost, '{:,.4g}')}"]
            parts += [] if pool.batch_cost is None else [f"{format_range(pool.batch_cost, '{:,.4g}')} with batch jobs"]
            lines += [" · ".join(parts), *(f"  {_step_line(step)}" for step in pool.steps)]
        if self.max_cost is not None:
            lines.append(f"max_cost: {self.max_cost:,.4g}")
        return "\n".join([*lines, "least: every question is accepted; most: every second one is rejected"])


def costs_of(goldens: Goldens, plan: GoldensPlan) -> Costs:
    """Compute the cost of a benchmark; this reads the ledger, but makes no call."""
    work = goldens.writing
    anywhere = plan.library.passages[: goldens.context.passages]  # the actual passages are not known before a search
    first = plan.round(1, plan.previous.items, plan.previous.goldens)
    sources = [replace(source, context=anywhere) for source in first]
    lookup = Ledger(goldens.ledger).lookup()
    lookup.refresh()
    sizes = [*forecast(work, sources, KnownAnswers(lookup, work).recall).values()]
    if goldens.context.passages and goldens.context.enlarged:
        calls = [EnlargeClues(goldens.asking).call(source) for source in sources]
        known = {entry.key for entry in lookup.read(dict.fromkeys(call.key or "" for call in calls))}
        sizes += [size_of(call, call.key in known) for call in calls]
    graded = [*_grading_costs(goldens, plan), *_search_costs(goldens, plan, len(sources))]
    types = Counter(candidate.type for source in sources for candidate in source.candidates)
    quotas = goldens.calls.pools.items()
    library = plan.library
    return Costs(
        goldens.planned.items,
        len(plan.previous.items),
        types.total(),
        len(library.labels),
        len(library.documents),
        len(library.spans),
        {kind: types[kind] for kind in goldens.planned.types if types[kind]},
        tuple(_pool_cost(name, quota, goldens, sizes, graded) for name, quota in quotas),
        goldens.calls.max_cost,
    )


def refuse_above_budget(goldens: Goldens, costs: Costs, path: str) -> None:
    """Refuse a benchmark whose calls cost more than its limit, even if every question is accepted."""
    advice = ", or make fewer calls (`rankbeam goldens plan` shows what each part costs)"
    refuse_cost(goldens.calls.max_cost, costs.cost, goldens.text, path, advice)


def _grading_costs(goldens: Goldens, plan: GoldensPlan) -> list[CallCost]:
    """The calls that grade other documents, of which there may be fewer; each is assumed to have a long passage."""
    passages = sorted(plan.library.passages, key=lambda span: len(span.text))
    longest = passages[len(passages) * 3 // 4]
    documents, previous = len(plan.library.documents), plan.previous
    most, known = min(goldens.pool.documents, documents - 1), len(previous.items)
    new = documents - previous.unchanged + max(0, most - previous.pool)
    possible = min(most * known, new * known + previous.lost_grades)
    pool = GradingPool("", "x" * 100, (longest,))
    call = goldens.asking.call("grade", {"query": pool.question, "context": longest.text})
    return [replace(size_of(call), is_certain=False)] * (most * (goldens.planned.items - known) + possible)


def _search_costs(goldens: Goldens, plan: GoldensPlan, sources: int) -> Iterator[CallCost]:
    """Embeddings and rankings: one for each question, and one for each passage if a retriever compares embeddings."""
    items = goldens.planned.items
    by_pool = sources if goldens.context.passages and goldens.context.by == "pool" else 0
    if goldens.duplicates is not None:
        yield from [CallCost(goldens.duplicates.embed.service, EMBED, Tokens(_QUESTION), False)] * items
    for service in goldens.pool.services:
        yield from [CallCost(service.name, SEARCH, Tokens(), False)] * (items + by_pool)
    for embed in goldens.pool.embedders:
        yield from [CallCost(embed.service, EMBED, Tokens(_QUESTION), False)] * items
        yield from [CallCost(embed.service, EMBED, Tokens(goldens.span_tokens), False)] * by_pool
        for span in plan.library.passages:
            yield CallCost(embed.service, EMBED, Tokens(len(span.text) // CHARACTERS_PER_TOKEN), False)


def _pool_cost(
    pool: str, quota: Quota, goldens: Goldens, written: Sequence[CallCost], graded: Sequence[CallCost]
) -> PoolCost:
    models = {name: model for name, model in goldens.calls.services.items() if model.pool == pool}
    searched = [service.name for service in goldens.pool.services if service.pool == pool]
    steps = tuple(_steps_of([*models, *searched], written, graded))
    ends = [(sum(step.calls[end] - step.ledger_hits for step in steps), _tokens(steps, end)) for end in (0, 1)]
    is_free = not searched and all(service.parameters.is_free for service in models.values())
    costs = [0.0 if is_free else quota.cost(calls, tokens) for calls, tokens in ends]
    least, most = costs
    seconds = [seconds_of(calls, tokens, quota) for calls, tokens in ends]
    times = seconds[0], seconds[1]
    if least is None or most is None:
        return PoolCost(pool, times, None, steps)
    saved = [_savings([step for step in steps if _is_batched(step, end, goldens)], end, quota) for end in (0, 1)]
    return PoolCost(pool, times, (least, most), steps, (least - saved[0], most - saved[1]) if any(saved) else None)


def _is_batched(step: StepCost, end: int, goldens: Goldens) -> bool:
    model = goldens.calls.services.get(step.service)
    if model is None or model.batch is None or not isinstance(model.parameters, RemoteModel):
        return False
    may_wait = step.step != EMBED or (model.batch.answers and model.parameters.embeds_in_batches)
    return may_wait and step.calls[end] - step.ledger_hits >= model.batch.min_calls


def _savings(steps: Sequence[StepCost], end: int, quota: Quota) -> float:
    return saved_by_jobs(_tokens(steps, end), quota)


def _tokens(steps: Sequence[StepCost], end: int) -> Tokens:
    input_tokens = sum(step.input_tokens[end] for step in steps)
    return Tokens(round(input_tokens), 0, round(sum(step.output_tokens[end] for step in steps)))


def _steps_of(services: Sequence[str], written: Sequence[CallCost], graded: Sequence[CallCost]) -> Iterator[StepCost]:
    for service in services:
        for step in _STEPS:
            costs = [size for size in (*written, *graded) if (size.service, size.step) == (service, step)]
            if not costs:
                continue
            again = 1 if step in _ONCE else WRITTEN_AGAIN
            remaining = [size for size in costs if not size.is_known]
            calls = (sum(size.is_certain for size in costs), again * len(costs))
            yield StepCost(service, step, calls, len(costs) - len(remaining), *_token_ranges(costs, remaining, again))


def _token_ranges(costs: Sequence[CallCost], remaining: Sequence[CallCost], again: int) -> tuple[Range, Range]:
    """Ranges of input and output tokens: those of the remaining calls, and those including later rounds."""
    certain, further = [size for size in remaining if size.is_certain], again - 1
    least_input, most_input, more_input = (sum(size.tokens.input for size in of) for of in (certain, remaining, costs))
    least_output, most_output, more_output = (
        sum(size.tokens.output for size in of) for of in (certain, remaining, costs)
    )
    return (least_input, most_input + further * more_input), (least_output, most_output + further * more_output)


def _step_line(step: StepCost) -> str:
    parts = [f"{step.step}: {format_range(step.calls, noun='call')}"]
    if step.ledger_hits:
        parts.append(f"{step.ledger_hits:,} in the ledger")
    parts.append(f"about {format_range(step.input_tokens)} input and {format_range(step.output_tokens)} output tokens")
    return " · ".join(parts)
