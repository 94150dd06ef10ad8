"""Cost of making a benchmark: items, calls, tokens, minutes and money, before any call is made."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from rankbeam.pipelines.goldens.goldens import Goldens
from rankbeam.pipelines.plan.counting import CallCounts, counted_tasks
from rankbeam.pipelines.plan.limits import refuse_cost
from rankbeam.pipelines.plan.pools import (
    PoolPlan,
    Range,
    StepPlan,
    cached_cost_text,
    calls_text,
    clocks,
    format_range,
    pool_plans,
    tokens_text,
    total_cost,
)
from rankbeam.pipelines.plan.totals import SizeTotal, Step, measure_call
from rankbeam.transforms.goldens.distilling import EnlargeClues
from rankbeam.transforms.goldens.forecast import OUTPUT_TOKENS, ImaginedWriting
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.records.items import WritingTask
from rankbeam.transforms.goldens.searching import EMBED, SEARCH
from rankbeam.transforms.records.calls.steps import Work
from rankbeam.transforms.records.errors import json_text, pluralize
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN

_STEPS = (*OUTPUT_TOKENS, EMBED, SEARCH)
_QUESTION = 100  # approximate characters


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
    pools: tuple[PoolPlan, ...]
    max_cost: float | None  # None without a limit

    @property
    def cost(self) -> Range | None:
        return total_cost(self.pools)

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
            parts += cached_cost_text(pool, "{:,.4g}")
            parts += [] if pool.batch_cost is None else [f"{format_range(pool.batch_cost, '{:,.4g}')} with batch jobs"]
            lines += [" · ".join(parts), *(f"  {_step_line(step)}" for step in pool.steps)]
        if self.max_cost is not None:
            lines.append(f"max_cost: {self.max_cost:,.4g}")
        return "\n".join([*lines, "least: every question is accepted; most: every second one is rejected"])


def costs_of(goldens: Goldens, plan: GoldensPlan) -> Costs:
    """Compute the cost of a benchmark; this reads the ledger, but makes no call."""
    anywhere = plan.library.passages[: goldens.context.passages]  # the actual passages are not known before a search
    first = plan.round(1, plan.previous.items, plan.previous.goldens)
    sources = [replace(source, context=anywhere) for source in first]
    counted = _written(goldens, sources)
    least, most = counted.totals
    for step, calls in _search_calls(goldens, plan, len(sources)):
        least.add(step, step.step, calls)
        most.add(step, step.step, calls)
    if (grades := _grading_calls(goldens, plan)).calls:
        most.add(Step(goldens.checker.name, "grade"), "grade", grades)
    counted.pools = {service.name: service.pool or "" for service in goldens.pool.services}
    services = [*goldens.calls.services, *counted.pools]
    places = {Step(*names): place for place, names in enumerate(product(services, _STEPS))}
    most.sizes = dict(sorted(most.sizes.items(), key=lambda entry: places[entry[0][0]]))
    types = Counter(candidate.type for source in sources for candidate in source.candidates)
    library = plan.library
    return Costs(
        goldens.planned.items,
        len(plan.previous.items),
        types.total(),
        len(library.labels),
        len(library.documents),
        len(library.spans),
        {kind: types[kind] for kind in goldens.planned.types if types[kind]},
        tuple(pool_plans(counted, goldens.calls)),
        goldens.calls.max_cost,
    )


def _written(goldens: Goldens, sources: Sequence[WritingTask]) -> CallCounts:
    """The calls that write and check: at most, every second question is rejected, and another one is written."""
    works: list[Work[Any]] = [goldens.writing]
    if goldens.context.passages and goldens.context.enlarged:
        works.append(EnlargeClues(goldens.asking))
    items = {source.name: source for source in sources}
    counts = CallCounts()
    for work in works:
        counts.join(counted_tasks(work, items, goldens.ledger, ImaginedWriting()))
    for step, sizes in counts.most.items():
        counts.most[step] = {key: size._replace(is_stored=False) for key, size in sizes.items()}
    counts = counts.with_totals()
    least, most = counts.totals
    most.join(least)
    return counts


def refuse_above_budget(goldens: Goldens, costs: Costs, path: str) -> None:
    """Refuse a benchmark whose calls cost more than its limit, even if every question is accepted."""
    advice = ", or make fewer calls (`rankbeam goldens plan` shows what each part costs)"
    refuse_cost(goldens.calls.max_cost, costs.cost, goldens.text, path, advice)


def _search_calls(goldens: Goldens, plan: GoldensPlan, sources: int) -> Iterator[tuple[Step, SizeTotal]]:
    """Embeddings and rankings: one for each question, and one for each passage if a retriever compares embeddings."""
    items = goldens.planned.items
    by_pool = sources if goldens.context.passages and goldens.context.by == "pool" else 0
    questions = SizeTotal(items, items, _QUESTION * items)
    if goldens.duplicates is not None:
        yield Step(goldens.duplicates.embed.service, EMBED), questions
    for service in goldens.pool.services:
        yield Step(service.name, SEARCH), SizeTotal(items + by_pool, items + by_pool)
    passages = [len(span.text) for span in plan.library.passages]
    for embed in goldens.pool.embedders:
        spans = SizeTotal(by_pool, by_pool, by_pool * goldens.span_tokens * CHARACTERS_PER_TOKEN)
        documents = SizeTotal(len(passages), len(passages), sum(passages))
        yield Step(embed.service, EMBED), questions.plus(spans).plus(documents)


def _grading_calls(goldens: Goldens, plan: GoldensPlan) -> SizeTotal:
    """The calls that grade other documents, of which there may be fewer; each is assumed to have a long passage."""
    passages = sorted(plan.library.passages, key=lambda span: len(span.text))
    longest = passages[len(passages) * 3 // 4]
    documents, previous = len(plan.library.documents), plan.previous
    most, known = min(goldens.pool.documents, documents - 1), len(previous.items)
    new = documents - previous.unchanged + max(0, most - previous.pool)
    possible = min(most * known, new * known + previous.lost_grades)
    call = goldens.asking.call("grade", {"query": "x" * _QUESTION, "context": longest.text})
    _, size = measure_call(call, ImaginedWriting(), is_known=False)
    calls = most * (goldens.planned.items - known) + possible
    return SizeTotal(calls, calls, calls * size.characters, calls * size.output)


def _step_line(step: StepPlan) -> str:
    hits = [f"{step.ledger_hits:,} in the ledger"] if step.ledger_hits else []
    return " · ".join([calls_text(step), *hits, tokens_text(step)])
