"""Forecast of models: calls, tokens, time and cost of every pool, from counted calls."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.progress import clock
from rankbeam.pipelines.plan.counting import NOT_SEEN, PREFIXES, CallCounts, CallSize, Sizes, Step, StepTotals
from rankbeam.transforms.clients.calls.together import MOST_CHARACTERS
from rankbeam.transforms.clients.models.families import cache_minimum
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.judge.answering import STEP as ANSWER
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.prompt import EMBED
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

Range = tuple[float, float]
"""Least and most."""


@dataclass(frozen=True)
class StepPlan:
    """Calls of one step to a service."""

    service: str
    step: str  # such as "answer" or "support"
    calls: tuple[int, int]
    ledger_hits: int
    calls_without_sharing: int


@dataclass(frozen=True)
class ModelPlan:
    """Forecast of one quota pool of models."""

    pool: str
    calls: tuple[int, int]
    ledger_hits: int
    calls_without_sharing: int
    input_tokens: Range
    output_tokens: Range
    requests_per_minute: float
    tokens_per_minute: float | None
    requests: tuple[int, int]
    seconds: Range
    cost: Range | None  # None if no price is known
    steps: tuple[StepPlan, ...]
    batch_cost: Range | None = None  # None if no call is left to batch jobs
    batch_steps: int = 0  # steps with jobs, at most as many one after another
    prefix_tokens: int = 0  # tokens of a common beginning from which the service caches it
    prefix_calls: int = 0  # calls that share one with an earlier call, at most
    cached_cost: Range | None = None  # cost if each of them finds its beginning cached; None without such calls


def model_plans(counted: CallCounts, experiment: Experiment) -> list[ModelPlan]:
    by_pool = grouped((experiment.services[step.service].pool or "", step) for step in counted.most)
    return [_of_pool(pool, steps, counted, experiment) for pool, steps in by_pool.items()]


def _of_pool(pool: str, steps: Collection[Step], counted: CallCounts, experiment: Experiment) -> ModelPlan:
    quota = experiment.pools[pool]
    is_free = all(experiment.services[step.service].parameters.is_free for step in steps)
    plans = tuple(_of_step(step, counted) for step in steps)
    texts = {step: _texts_of_a_request(step, experiment) for step in steps}
    ends = [_left(sizes, texts, counted.seen) for sizes in (counted.least, counted.most)]
    costs = [0.0 if is_free else quota.cost(*end) for end in ends]
    requests = sorted(number for number, _ in ends)
    known = [cost for cost in costs if cost is not None]
    batched = [[step for step in steps if _waits(step, sizes, experiment)] for sizes in (counted.least, counted.most)]
    halves = [
        _half(step, sizes, counted, quota) for step, sizes in zip(batched, (counted.least, counted.most), strict=True)
    ]
    prefix = min(cache_minimum(experiment.services[step.service].parameters.model) for step in steps)
    shared = [_sharing(sizes, steps, counted.seen, prefix) for sizes in (counted.least, counted.most)]
    saved = [0.0 if quota.prices is None else quota.prices.saved(number * prefix) for number in shared]
    return ModelPlan(
        pool,
        (sum(plan.calls[0] for plan in plans), sum(plan.calls[1] for plan in plans)),
        sum(plan.ledger_hits for plan in plans),
        sum(plan.calls_without_sharing for plan in plans),
        _range(tokens.input for _, tokens in ends),
        _range(tokens.output for _, tokens in ends),
        quota.requests_per_minute,
        quota.tokens_per_minute,
        (requests[0], requests[-1]),
        _range(seconds_of(*end, quota) for end in ends),
        _range(known) if len(known) == len(costs) else None,
        plans,
        _range(cost - half for cost, half in zip(known, halves, strict=True)) if any(batched) else None,
        max(map(len, batched)),
        prefix,
        max(shared),
        _range(cost - less for cost, less in zip(known, saved, strict=True)) if any(saved) else None,
    )


def _sharing(sizes: Sizes, steps: Collection[Step], seen: Mapping[Step, StepTotals], tokens: int) -> int:
    """Number of calls whose beginning of so many tokens an earlier call has.

    Steps with answers in the ledger are left out: what was cached of them is part of their estimate.
    """
    place = PREFIXES.index(tokens)
    new = (size for step in steps if step not in seen for size in sizes.get(step, {}).values() if not size.is_stored)
    beginnings = Counter(size.prefixes[place] for size in new if len(size.prefixes) > place)
    return beginnings.total() - len(beginnings)


def _waits(step: Step, sizes: Sizes, experiment: Experiment) -> bool:
    service = experiment.services[step.service]
    left = sum(not size.is_stored for size in sizes.get(step, {}).values())
    if service.batch is None or left < service.batch.min_calls:
        return False
    if step.step == EMBED:
        parameters = service.parameters
        return service.batch.answers and isinstance(parameters, RemoteModel) and parameters.embeds_in_batches
    return service.batch.answers or step.step != ANSWER


def _half(steps: Collection[Step], sizes: Sizes, counted: CallCounts, quota: Quota) -> float:
    """The cost that batch jobs save."""
    _, tokens = _left(sizes, dict.fromkeys(steps, 1), counted.seen)
    return (quota.cost(0, tokens) or 0.0) - (quota.cost(0, tokens.in_batch()) or 0.0)


def _of_step(step: Step, counted: CallCounts) -> StepPlan:
    least, most = counted.least.get(step, {}), counted.most[step]
    known = sum(size.is_stored for size in most.values())
    ends = sorted((len(least), len(most)))
    return StepPlan(step.service, step.step, (ends[0], ends[1]), known, counted.apart.get(step, 0))


def _left(sizes: Sizes, texts: Mapping[Step, int], seen: Mapping[Step, StepTotals]) -> tuple[int, Tokens]:
    """Requests and tokens that the ledger does not answer, sized by its answers, else by their characters."""
    requests, tokens = 0, NO_TOKENS
    for step, most in texts.items():
        left = [size for size in sizes.get(step, {}).values() if not size.is_stored]
        by_characters = sum(size.characters for size in left) / MOST_CHARACTERS
        requests += len(left) if most == 1 else math.ceil(max(len(left) / most, min(by_characters, len(left))))
        tokens += _tokens(left, seen.get(step, NOT_SEEN))
    return requests, tokens


def _texts_of_a_request(step: Step, experiment: Experiment) -> int:
    parameters = experiment.services[step.service].parameters
    return parameters.most_texts if step.step == EMBED and isinstance(parameters, RemoteModel) else 1


def _tokens(left: Collection[CallSize], seen: StepTotals) -> Tokens:
    characters = sum(size.characters for size in left)
    if not seen.calls or not seen.characters:
        return Tokens(round(characters / CHARACTERS_PER_TOKEN), 0, round(sum(size.output for size in left)))
    of_input, cached = (
        round(characters * count / seen.characters) for count in (seen.tokens.input, seen.tokens.cached)
    )
    output = round(len(left) * seen.tokens.output / seen.calls)
    return Tokens(of_input, cached, output)


def seconds_of(requests: int, tokens: Tokens, quota: Quota) -> float:
    """The least time that requests and their tokens take under a quota."""
    by_tokens = 0.0 if quota.tokens_per_minute is None else tokens.total / quota.tokens_per_minute
    return 60 * max(requests / quota.requests_per_minute, by_tokens)


def _range(ends: Iterable[float]) -> Range:
    least, *more = sorted(ends)
    return least, (more or [least])[-1]


def lines_of(plan: ModelPlan) -> list[str]:
    left = (max(0, plan.calls[0] - plan.ledger_hits), plan.calls[1] - plan.ledger_hits)
    parts = [f"{plan.pool}: {shown(left)} calls to make"]
    if plan.ledger_hits:
        parts.append(f"{plan.ledger_hits:,} of {shown(plan.calls)} are in the ledger")
    if plan.calls_without_sharing > plan.calls[1]:
        parts.append(f"{plan.calls_without_sharing:,} if configurations shared none")
    parts.append(f"about {shown(plan.input_tokens)} input and {shown(plan.output_tokens)} output tokens")
    if plan.requests[1] < left[1]:
        parts.append(f"{shown(plan.requests)} requests")
    of_tokens = "" if plan.tokens_per_minute is None else f" and {plan.tokens_per_minute:,.10g} tokens"
    parts.append(f"{clocks(plan.seconds)} at {plan.requests_per_minute:,.10g} calls{of_tokens} a minute")
    if plan.cost is not None:
        parts.append(f"cost {shown(plan.cost, '{:,.2f}')}")
    if plan.cached_cost is not None:
        calls = f"{plan.prefix_calls:,} calls share a beginning of {plan.prefix_tokens:,} tokens"
        parts.append(f"{shown(plan.cached_cost, '{:,.2f}')} if it is cached each time ({calls})")
    if plan.batch_cost is not None:
        jobs = f"batch jobs in up to {plan.batch_steps} steps, one after another"
        parts.append(f"{shown(plan.batch_cost, '{:,.2f}')} with {jobs}")
    return [" · ".join(parts), *(f"  {_step_line(step)}" for step in plan.steps)]


def _step_line(plan: StepPlan) -> str:
    shared = plan.calls_without_sharing > plan.calls[1]
    instead = f" instead of {plan.calls_without_sharing:,}" if shared else ""
    return f"{plan.step}: {shown(plan.calls)} calls{instead}"


def clocks(seconds: Range) -> str:
    least, most = (clock(second) for second in seconds)
    return least if least == most else f"{least} to {most}"


def shown(ends: tuple[float, float], form: str = "{:,.0f}") -> str:
    """A range, or one number where both ends are the same.

    >>> shown((1200, 3400)), shown((0.5, 0.5), "{:.2f}")
    ('1,200 to 3,400', '0.50')
    """
    least, most = (form.format(end) for end in ends)
    return least if least == most else f"{least} to {most}"
