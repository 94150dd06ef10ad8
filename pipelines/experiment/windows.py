"""Calls that take more tokens than the quota of a minute: they could never begin, and are refused before a run."""

from collections.abc import Iterator, Mapping, Sequence

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.quotas import Pools
from rankbeam.transforms.clients.calls.admission import window
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.evaluation import Configuration
from rankbeam.transforms.records.generation import Judging


def above_window(
    located: Located, pools: Pools, configurations: Sequence[Configuration], judging: Judging | None
) -> Iterator[InputError]:
    """Quotas below the longest answer that a service is asked for."""
    answers = [each.generation for each in configurations if each.generation is not None]
    longest = [(each.service, each.max_output_tokens, "generate") for each in answers]
    if judging is not None:
        longest.append((judging.service, judging.max_output_tokens, "judge"))
    by_pool = {
        pools.services[service]: (tokens, key)
        for service, tokens, key in sorted(longest, key=_tokens)
        if service in pools.services
    }
    for pool, (tokens, key) in by_pool.items():
        what = f"an answer ({key}.max_output_tokens) takes"
        yield from _refusal(located, pools.budgets[pool], pools.quotas[pool], tokens, what)


def _tokens(asked: tuple[str, int, str]) -> int:
    _, tokens, _ = asked
    return tokens


def too_large(
    located: Located, tokens: Mapping[str, int], quotas: Mapping[str, Quota], budgets: Mapping[str, str]
) -> Iterator[InputError]:
    """Quotas below the largest call that is known before the run."""
    for pool, most in tokens.items():
        yield from _refusal(located, budgets[pool], quotas[pool], most, "a prompt of this dataset and its answer take")


def _refusal(located: Located, budget: str, quota: Quota, tokens: int, what: str) -> Iterator[InputError]:
    most = window(quota)
    if most is None or tokens <= most:
        return
    share = f", of which each of {quota.lanes} lanes has {most:,}" if quota.lanes > 1 else ""
    problem = f"is {quota.tokens_per_minute:,.0f}{share}, and {what} up to {tokens:,}: such a call could never begin"
    yield located.error(
        ("quotas", budget, "tokens_per_minute"), f"{problem}; raise it, or lower max_output_tokens or contexts"
    )
