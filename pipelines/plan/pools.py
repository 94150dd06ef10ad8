"""Forecast of quota pools: calls, tokens, time and cost, from counted calls."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.local.progress import clock
from rankbeam.pipelines.plan.counting import NOT_SEEN, CallCounts, StepTotals
from rankbeam.pipelines.plan.totals import PREFIXES, CallTotals, SizeTotal, Step
from rankbeam.transforms.clients.calls.combined_calls import MOST_CHARACTERS
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.clients.models.rewriting import STEP_PREFIX as REWRITING
from rankbeam.transforms.judge.answering import STEP as ANSWER
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.prompt import EMBED
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

Range = tuple[float, float]  # least and most


@dataclass(frozen=True)
class StepPlan:
    """Calls of one step to a service."""

    service: str
    step: str  # for example, "answer" or "support"
    calls: tuple[int, int]
    ledger_hits: int
    calls_without_sharing: int
    input_tokens: Range
    output_tokens: Range


@dataclass(frozen=True)
class PoolPlan:
    """Forecast of one quota pool."""

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
    cost: Range | None  # None if calls are left, and no price is known
    steps: tuple[StepPlan, ...]
    batch_cost: Range | None = None  # None if no call goes to batch jobs
    batch_steps: int = 0  # maximum number of steps with jobs, one after another
    prefix_tokens: int = 0  # minimum tokens of a shared beginning that the service caches
    prefix_calls: int = 0  # maximum number of calls that share a beginning with an earlier call
    cached_cost: Range | None = None  # cost if each of these calls finds its beginning cached; None without such calls

    @property
    def possible_cost(self) -> Range | None:
        """The cost with batch jobs; without them, at least the cost with cached beginnings."""
        if self.batch_cost is not None or self.cost is None or self.cached_cost is None:
            return self.batch_cost or self.cost
        return min(self.cost[0], self.cached_cost[0]), self.cost[1]


def pool_plans(counted: CallCounts, calls: CallSettings) -> list[PoolPlan]:
    """The forecast of every pool with calls, in the order of the pools."""
    steps = dict.fromkeys(step for step, _ in counted.totals[1].sizes)
    pools = {name: service.pool or "" for name, service in calls.services.items()} | counted.pools
    by_pool = grouped(((pools[step.service], step.service in counted.pools), step) for step in steps)
    order = list(calls.pools)
    return [
        _pool_plan(pool, by_pool[pool, of_retrievers], counted, calls)
        for pool, of_retrievers in sorted(by_pool, key=lambda names: order.index(names[0]))
    ]


def _pool_plan(pool: str, steps: Collection[Step], counted: CallCounts, calls: CallSettings) -> PoolPlan:
    quota = calls.pools[pool]
    models = {step: calls.services[step.service] for step in steps if step.service not in counted.pools}
    is_free = all(step in models and models[step].parameters.is_free for step in steps)
    plans = tuple(_step_plan(step, counted) for step in steps)
    texts = {step: _texts_of_a_request(step, models.get(step)) for step in steps}
    ends = [_remaining_usage(totals, texts, counted.seen) for totals in counted.totals]
    requests = sorted(number for number, _ in ends)
    is_unknown = not models and quota.price_per_1000 is None  # retrievers' tokens are not forecast
    costs = [0.0 if is_free or not requests[1] else None if is_unknown else quota.cost(*end) for end in ends]
    known_costs = [cost for cost in costs if cost is not None]
    jobs = _jobs(models, counted)
    halves = [_half(jobs, totals, counted, quota) for totals in counted.totals]
    prefix = min((_cache_minimum(model.parameters.model) for model in models.values()), default=0)
    shared = [_count_sharing(totals, models, counted.seen, prefix) for totals in counted.totals]
    saved = [0.0 if quota.prices is None else quota.prices.saved(number * prefix) for number in shared]
    return PoolPlan(
        pool,
        (sum(plan.calls[0] for plan in plans), sum(plan.calls[1] for plan in plans)),
        sum(plan.ledger_hits for plan in plans),
        sum(plan.calls_without_sharing for plan in plans),
        _range(tokens.input for _, tokens in ends),
        _range(tokens.output for _, tokens in ends),
        quota.requests_per_minute,
        quota.tokens_per_minute,
        (requests[0], requests[-1]),
        _range(_seconds_of(*end, quota) for end in ends),
        _range(known_costs) if len(known_costs) == len(costs) else None,
        plans,
        _range(cost - half for cost, half in zip(known_costs, halves, strict=True)) if jobs else None,
        len(jobs),
        prefix,
        max(shared),
        _range(cost - less for cost, less in zip(known_costs, saved, strict=True)) if any(saved) else None,
    )


def _cache_minimum(model: str) -> int:
    """The length in tokens from which a model's service caches a common beginning of prompts by itself.

    https://ai.google.dev/gemini-api/docs/caching, https://platform.openai.com/docs/guides/prompt-caching

    >>> [_cache_minimum(name) for name in ("gpt-x", "gemini-2.5-flash", "models/gemini-3.1-pro")]
    [1024, 2048, 4096]
    """
    name = model.rpartition("/")[2].lower()
    if not name.startswith("gemini"):
        return 1024
    return 2048 if name.startswith("gemini-2.5") else 4096


def _count_sharing(totals: CallTotals, steps: Collection[Step], seen: Mapping[Step, StepTotals], tokens: int) -> int:
    """Number of calls that share a beginning of this many tokens with an earlier call.

    Steps with answers in the ledger are left out: their estimates already include cached tokens.
    """
    own = set(steps) - seen.keys()
    if not own:
        return 0
    place = PREFIXES.index(tokens)
    calls = sum(totals.of(step).with_prefix[place] for step in own)
    return calls - sum(count for (at, names), count in totals.prefixes.items() if at == place and names & own)


def _jobs(models: Mapping[Step, ConfiguredService], counted: CallCounts) -> list[Step]:
    """The steps of prompts that may have enough calls for a job: one job has those of several criteria."""
    numbers = [Counter[Step](), Counter[Step]()]
    for number, totals in zip(numbers, counted.totals, strict=True):
        for (step, prompt), size in totals.sizes.items():
            number[Step(step.service, prompt)] += size.new if step in models else 0
    most = numbers[0] | numbers[1]  # without those of no calls
    services = {step.service: model for step, model in models.items()}
    return [step for step in most if _waits(step, most[step], services[step.service])]


def _waits(step: Step, calls: int, service: ConfiguredService) -> bool:
    if service.batch is None or calls < service.batch.min_calls or step.step.startswith(REWRITING):
        return False
    if step.step == EMBED:
        parameters = service.parameters
        return service.batch.answers and isinstance(parameters, RemoteModel) and parameters.embeds_in_batches
    return service.batch.answers or step.step != ANSWER


def _half(jobs: Collection[Step], totals: CallTotals, counted: CallCounts, quota: Quota) -> float:
    """The cost that batch jobs save."""
    sizes = {name: size for name, size in totals.sizes.items() if Step(name[0].service, name[1]) in jobs}
    _, tokens = _remaining_usage(CallTotals(sizes), {step: 1 for step, _ in sizes}, counted.seen)
    return (quota.cost(0, tokens) or 0.0) - (quota.cost(0, tokens.in_batch()) or 0.0)


def _step_plan(step: Step, counted: CallCounts) -> StepPlan:
    least, most = (totals.of(step) for totals in counted.totals)
    ends = sorted((least.calls, most.calls))
    tokens = [_tokens(total, counted.seen.get(step, NOT_SEEN)) for total in (least, most)]
    return StepPlan(
        step.service,
        step.step,
        (ends[0], ends[1]),
        most.calls - most.new,
        max(ends[1], counted.apart[step]),
        _range(usage.input for usage in tokens),
        _range(usage.output for usage in tokens),
    )


def _remaining_usage(
    totals: CallTotals, texts: Mapping[Step, int], seen: Mapping[Step, StepTotals]
) -> tuple[int, Tokens]:
    """Requests and tokens that the ledger does not answer, estimated from its answers, or else from characters."""
    requests, tokens = 0, NO_TOKENS
    for step, most in texts.items():
        total = totals.of(step)
        fewest = total.characters / MOST_CHARACTERS
        requests += total.new if most == 1 else math.ceil(max(total.new / most, min(fewest, total.new)))
        tokens += _tokens(total, seen.get(step, NOT_SEEN))
    return requests, tokens


def _texts_of_a_request(step: Step, model: ConfiguredService | None) -> int:
    parameters = None if model is None else model.parameters
    return parameters.most_texts if step.step == EMBED and isinstance(parameters, RemoteModel) else 1


def _tokens(total: SizeTotal, seen: StepTotals) -> Tokens:
    if not seen.calls or not seen.characters:
        return Tokens(round(total.characters / CHARACTERS_PER_TOKEN), 0, round(total.output))
    uncached, cached = (
        round(total.characters * count / seen.characters) for count in (seen.tokens.input, seen.tokens.cached)
    )
    output = round(total.new * seen.tokens.output / seen.calls)
    return Tokens(uncached, cached, output)


def _seconds_of(requests: int, tokens: Tokens, quota: Quota) -> float:
    """The minimum time that requests and their tokens take under a quota."""
    token_minutes = 0.0 if quota.tokens_per_minute is None else tokens.total / quota.tokens_per_minute
    return 60 * max(requests / quota.requests_per_minute, token_minutes)


def _range(ends: Iterable[float]) -> Range:
    least, *more = sorted(ends)
    return least, (more or [least])[-1]


def retriever_line(plan: PoolPlan) -> str:
    time = f"{clocks(plan.seconds)} at {plan.requests_per_minute:,.10g} a minute"
    return " · ".join([*_calls_to_make(plan), time, *_cost_of(plan)])


def lines_of(plan: PoolPlan) -> list[str]:
    parts = _calls_to_make(plan)
    if plan.calls_without_sharing > plan.calls[1]:
        parts.append(f"{plan.calls_without_sharing:,} if configurations shared none")
    parts.append(tokens_text(plan))
    if plan.requests[1] < plan.calls[1] - plan.ledger_hits:
        parts.append(f"{format_range(plan.requests, noun='request')}")
    token_rate = "" if plan.tokens_per_minute is None else f" and {plan.tokens_per_minute:,.10g} tokens"
    parts.append(f"{clocks(plan.seconds)} at {plan.requests_per_minute:,.10g} calls{token_rate} a minute")
    parts += [*_cost_of(plan), *cached_cost_text(plan, "{:,.2f}")]
    if plan.batch_cost is not None:
        jobs = f"batch jobs in up to {pluralize(plan.batch_steps, 'step')}, one after another"
        parts.append(f"{format_range(plan.batch_cost, '{:,.2f}')} with {jobs}")
    return [" · ".join(parts), *(f"  {calls_text(step)}" for step in plan.steps)]


def _calls_to_make(plan: PoolPlan) -> list[str]:
    to_make = (max(0, plan.calls[0] - plan.ledger_hits), plan.calls[1] - plan.ledger_hits)
    hits = [f"{plan.ledger_hits:,} of {format_range(plan.calls)} are in the ledger"] if plan.ledger_hits else []
    return [f"{plan.pool}: {format_range(to_make, noun='call')} to make", *hits]


def _cost_of(plan: PoolPlan) -> list[str]:
    return [] if plan.cost is None else [f"cost {format_range(plan.cost, '{:,.2f}')}"]


def tokens_text(plan: PoolPlan | StepPlan) -> str:
    return f"about {format_range(plan.input_tokens)} input and {format_range(plan.output_tokens)} output tokens"


def cached_cost_text(plan: PoolPlan, form: str) -> list[str]:
    """The cost with cached beginnings; empty if it is the same."""
    if plan.cached_cost is None:
        return []
    calls = f"{pluralize(plan.prefix_calls, 'call shares', 'calls share')} a beginning of {plan.prefix_tokens:,} tokens"
    return [f"{format_range(plan.cached_cost, form)} if it is cached each time ({calls})"]


def calls_text(plan: StepPlan) -> str:
    shared = plan.calls_without_sharing > plan.calls[1]
    instead = f" instead of {plan.calls_without_sharing:,}" if shared else ""
    return f"{plan.step}: {format_range(plan.calls, noun='call')}{instead}"


def clocks(seconds: Range) -> str:
    least, most = (clock(second) for second in seconds)
    return least if least == most else f"{least} to {most}"


def total_cost(plans: Iterable[PoolPlan]) -> Range | None:
    """Lowest and highest cost of all pools; None if a price is unknown."""
    costs = [plan.possible_cost for plan in plans]
    known = [cost for cost in costs if cost is not None]
    return sum_of(known) if len(known) == len(costs) else None


def sum_of(ranges: Collection[Range]) -> Range:
    return sum(least for least, _ in ranges), sum(most for _, most in ranges)


def format_range(ends: tuple[float, float], form: str = "{:,.0f}", noun: str = "") -> str:
    """A range of things as text, or one number if both ends are equal.

    >>> format_range((1200, 3400)), format_range((0.5, 0.5), "{:.2f}"), format_range((1, 1), noun="call")
    ('1,200 to 3,400', '0.50', '1 call')
    """
    least, most = (form.format(end) for end in ends)
    text = least if least == most else f"{least} to {most}"
    return f"{text} {noun if text == '1' else noun + 's'}" if noun else text
