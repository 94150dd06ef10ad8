"""Turn `quotas:` into the pools that pay for calls: the retrievers and services that share each, and its budget."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.experiment.file.quotas import IMPORT, CorpusQuotas, QuotaModel, Quotas, quota_of
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.file.services import ConfiguredService, Services
from rankbeam.pipelines.experiment.grid.cells import ExpandedGrid, PlannedSource
from rankbeam.pipelines.experiment.grid.components import GENERATE, RERANK, REWRITE, Retrieval
from rankbeam.transforms.clients.calls.admission import window
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.clients.retrievers.applications.ask import APPLICATIONS
from rankbeam.transforms.clients.retrievers.applications.callables import CALLABLE
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, Route
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.stages import Judging

SourcePools = tuple[str | None, ...]  # each source's pool; None if its calls cost nothing


@dataclass(frozen=True)
class _Payer:
    """A retriever or a service whose calls a pool pays for."""

    pool: str
    budgets: tuple[str, ...]
    default: Quota


def payments_of(file: ExperimentFile, expanded: ExpandedGrid) -> tuple[CallSettings, SourcePools]:
    """The settings of an experiment's calls, after checking everything that its pools pay for."""
    located, model = file.located, file.model
    replies = list(_longest_replies(expanded, file.judging))
    used = {service for service, _, _ in replies} | expanded.embedders
    if file.judging is not None and file.judging.embeddings is not None:
        used.add(file.judging.embeddings)
    sources = [source.retriever for source in expanded.sources]
    retrieving = [*(cell.retriever for cell in expanded.cells), *sources]
    calls, names = pools_of(located, file.quotas, retrieving, sources, file.services, used)
    calls = replace(
        calls,
        corpus_quotas=file.corpus_quotas,
        max_cost=model.max_cost,
        max_failure_rate=model.max_failure_rate,
        is_fresh=model.fresh is not None,
    )
    located.problems.extend(_above_window(located, calls, replies))
    located.problems.extend(wrong_batches(located, calls, is_raced=model.race is not None))
    if model.max_cost is not None:
        located.problems.extend(missing_prices(located, calls))
        located.problems.extend(_unreported_tokens(located, calls, names, sources))
        located.problems.extend(_unpriced_imports(located, expanded.sources, file.corpus_quotas))
    return calls, names


def pools_of(
    located: YamlDocument,
    quotas: Quotas,
    retrieving: Sequence[Retrieval],
    sources: Sequence[Retrieval],
    services: Services,
    used: Collection[str],
) -> tuple[CallSettings, SourcePools]:
    """The pools of an experiment, with the services that are called.

    A retriever that names no pool shares one with retrievers of its type and scope: at the service, a budget belongs to
    a project and region, or to a host. A service shares one with services of its type, scope and model.
    """
    located.problems.extend(_unknown_names(located, quotas, retrieving, services))
    located.problems.extend(_missing_budgets(located, quotas, retrieving, services))
    located.problems.extend(_two_budgets(located, quotas, services))
    retrievers = [_retriever(source, sources) for source in sources]
    called = {name: _service(entry, services.valid) for name, entry in services.valid.items() if name in used}
    members = grouped((payer.pool, payer) for payer in (*retrievers, *called.values()) if payer is not None)
    pool_quotas, budgets = {}, {}
    for name, payers in members.items():
        default = min((entry.default for entry in payers), key=lambda quota: quota.requests_per_minute)
        budget = next((key for payer in payers for key in payer.budgets if key in quotas.valid), payers[0].budgets[-1])
        budgets[name] = budget
        pool_quotas[name] = quota_of(default, quotas.valid.get(budget, QuotaModel()))
        if pool_quotas[name].lanes > (most := pool_quotas[name].most_lanes):
            problem = f"each needs a call a second, and one in flight: {most} at most, found {pool_quotas[name].lanes}"
            located.report(("quotas", budget, "lanes"), problem)
    names = tuple(None if entry is None else entry.pool for entry in retrievers)
    paid = {name: replace(services.valid[name], pool=payer.pool) for name, payer in called.items()}
    accounts = {service.pool or "": service.account for service in paid.values()}
    for source, pool in zip(reversed(sources), reversed(names), strict=True):
        if source.remote is not None:
            accounts[pool or ""] = source.remote.quota or f"{source.kind} {source.remote.scope()}".strip()
    return CallSettings(pool_quotas, paid, accounts, budgets), names


def wrong_batches(located: YamlDocument, calls: CallSettings, *, is_raced: bool) -> Iterator[InputError]:
    """Services whose calls cannot go to batch jobs."""
    for service in calls.services.values():
        if not isinstance(service.parameters, RemoteModel) or service.batch is None:
            continue
        place = (*service.place, "batch")
        if (problem := service.parameters.unbatchable()) is not None:
            yield located.error(place, problem)
        if is_raced:
            yield located.error(
                place, "a race adds queries after each look, but a job takes hours; remove one of the two"
            )
        if service.pool is not None and calls.pools[service.pool].prices is None:
            price = "price_per_million: {input: …, output: …}"
            yield located.error(place, f"needs the price of tokens; give quotas: {{{service.pool}: {{{price}}}}}")


def missing_prices(located: YamlDocument, calls: CallSettings) -> Iterator[InputError]:
    """Pools whose calls have no price, so that `max_cost` cannot be enforced; offline models cost nothing."""
    paid = {service.pool for service in calls.services.values()}
    free = {service.pool for service in calls.services.values() if service.parameters.is_free}
    for name, quota in calls.pools.items():
        if name not in free and not quota.has_price:
            per_million = "price_per_million: {input: …, output: …}"
            price = per_million if name in paid else "price_per_1000"
            yield located.error(("max_cost",), f"needs the price of every call; give quotas: {{{name}: {{{price}}}}}")


def _unreported_tokens(
    located: YamlDocument, calls: CallSettings, names: SourcePools, sources: Sequence[Retrieval]
) -> Iterator[InputError]:
    """Retrievers' pools that have only a token price, although no reply reports tokens: calls would seem free."""
    remote = [(pool, source.kind, source.remote) for pool, source in zip(names, sources, strict=True)]
    counted = {pool for pool, _, retriever in remote if retriever is not None and retriever.reports_tokens}
    for pool, kind in {pool: kind for pool, kind, _ in remote if pool is not None and pool not in counted}.items():
        if calls.pools[pool].prices is not None and calls.pools[pool].price_per_1000 is None:
            problem = f"needs the price of every call, and no reply of {kind} reports tokens"
            yield located.error(("max_cost",), f"{problem}; give its usage:, or quotas: {{{pool}: {{price_per_1000}}}}")


def _retriever(retriever: Retrieval, others: Sequence[Retrieval]) -> _Payer | None:
    kind, remote = retriever.kind, retriever.remote
    if remote is None:
        return None
    if remote.quota is not None:
        return _Payer(remote.quota, (remote.quota,), remote.default_quota)
    same_type = [other.remote for other in others if other.kind == kind]
    scopes = {entry.scope() for entry in same_type if entry is not None and entry.quota is None}
    pool = f"{kind}:{remote.scope()}" if len(scopes) > 1 and remote.scope() else kind
    return _Payer(pool, (kind,), remote.default_quota)


def _service(service: ConfiguredService, services: Mapping[str, ConfiguredService]) -> _Payer:
    """The payer of a service's calls; its pool is named after the first service that shares it."""
    same_account = [entry.name for entry in services.values() if entry.account == service.account]
    return _Payer(same_account[0], (*same_account, service.kind), service.parameters.default_quota)


def _named_pools(retrieving: Sequence[Retrieval]) -> dict[str, Retrieval]:
    """The pools that retrievers name, each with one of these retrievers."""
    remote = [(entry.remote, entry) for entry in reversed(retrieving)]
    return {entry.quota: retriever for entry, retriever in remote if entry is not None and entry.quota is not None}


def _missing_budgets(
    located: YamlDocument, quotas: Quotas, retrieving: Sequence[Retrieval], services: Services
) -> Iterator[InputError]:
    for name, retriever in _named_pools(retrieving).items():
        if name in services.named:
            yield located.error(
                (*retriever.place, "quota"), f"{name!r} is a service, with a pool of its own; name another"
            )
        elif name not in quotas.named:
            hint = did_you_mean(name, quotas.named) if quotas.named else "name it there, with requests_per_minute"
            yield located.error((*retriever.place, "quota"), f"quotas: has no {name!r}; {hint}")


def _two_budgets(located: YamlDocument, quotas: Quotas, services: Services) -> Iterator[InputError]:
    """Services that share a pool, but have separate budgets."""
    first: dict[str, str] = {}
    for service in services.valid.values():
        if service.name in quotas.named and first.setdefault(service.account, service.name) != service.name:
            problem = f"shares the pool of {first[service.account]!r}, which calls the same model; keep one budget"
            yield located.error(("quotas", service.name), problem)


def _unknown_names(
    located: YamlDocument, quotas: Quotas, retrieving: Sequence[Retrieval], services: Services
) -> Iterator[InputError]:
    named = [*services.named, *_named_pools(retrieving), *MODELS.types]
    for name in quotas.named:
        if name not in named and not _is_remote(name):
            remote = filter(_is_remote, RETRIEVERS.types)  # imports all types, so only for a message
            valid = [*named, *remote, *RERANKERS.types]
            problem = f"is not a service or a remote type, and no retriever names it; {did_you_mean(name, valid)}"
            yield located.error(("quotas", name), problem)


def _is_remote(kind: str) -> bool:
    try:
        known = (*APPLICATIONS, CALLABLE, *RERANKERS.types)
        return kind in known or RETRIEVERS.load(kind).route is Route.CALLED
    except InputError:
        return False


def _unpriced_imports(
    located: YamlDocument, sources: Iterable[PlannedSource], quotas: CorpusQuotas
) -> Iterator[InputError]:
    """Imports whose embeddings have no price, so that `max_cost` cannot be enforced."""
    corpora = (source.retriever.corpus for source in sources)
    is_served = any(corpus is not None and corpus.parameters.service_corpus("") for corpus in corpora)
    if is_served and quotas.imports.price_per_million is None:
        price = f"quotas: {{{IMPORT}: {{price_per_million: …}}}}"
        yield located.error(("max_cost",), f"needs the price of every call, including embeddings; give {price}")


def _longest_replies(expanded: ExpandedGrid, judging: Judging | None) -> Iterator[tuple[str, int, str]]:
    """Every service that writes, the most tokens of one reply, and the section of the experiment that sets them."""
    for cell in expanded.cells:
        if cell.generator is not None:
            yield cell.generator.service.name, cell.generator.parameters.max_output_tokens, GENERATE
    rerankers = [source.reranker for source in expanded.sources if source.reranker is not None]
    reranking = {entry.service.name: entry.max_output_tokens for entry in rerankers if entry.service is not None}
    rewriters = [cell.rewriter for cell in expanded.cells if cell.rewriter is not None]
    rewriting = {entry.service.name: entry.parameters.max_output_tokens for entry in rewriters}
    yield from ((service, tokens, RERANK) for service, tokens in reranking.items())
    yield from ((service, tokens, REWRITE) for service, tokens in rewriting.items())
    if judging is not None:
        yield from ((service, judging.max_output_tokens, "judge") for service in judging.services)


def _above_window(
    located: YamlDocument, calls: CallSettings, replies: Iterable[tuple[str, int, str]]
) -> Iterator[InputError]:
    """Quotas below the longest reply that a service may give."""
    longest: dict[str, tuple[int, str]] = {}
    for service, tokens, key in replies:
        pool = calls.services[service].pool if service in calls.services else None
        if pool is not None and tokens >= longest.get(pool, (0, ""))[0]:
            longest[pool] = tokens, key
    for pool, (tokens, key) in longest.items():
        what = f"an answer ({key}.max_output_tokens) takes"
        yield from _refusal(located, calls.budgets[pool], calls.pools[pool], tokens, what)


def too_large(
    located: YamlDocument, tokens: Mapping[str, int], quotas: Mapping[str, Quota], budgets: Mapping[str, str]
) -> Iterator[InputError]:
    """Quotas below the largest call that is known before the run."""
    for pool, most in tokens.items():
        yield from _refusal(located, budgets[pool], quotas[pool], most, "a prompt of this dataset and its answer take")


def _refusal(located: YamlDocument, budget: str, quota: Quota, tokens: int, what: str) -> Iterator[InputError]:
    most = window(quota)
    if most is None or tokens <= most:
        return
    share = f", of which each of {quota.lanes} lanes has {most:,}" if quota.lanes > 1 else ""
    problem = f"is {quota.tokens_per_minute:,.0f}{share}, and {what} up to {tokens:,}: such a call could never begin"
    yield located.error(
        ("quotas", budget, "tokens_per_minute"), f"{problem}; raise it, or lower max_output_tokens or contexts"
    )
