"""`quotas:` of an experiment: their schema, and their budgets."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import model_validator

from rankbeam.pipelines.config.sections import Count, Positive, Price, Section, parse_part
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.transforms.records.calls.quota import ImportQuota, Prices, Quota

_TOKENS_OF_A_LANE = 100_000  # per minute: a lane with much less could not begin a long prompt
_CALLS_OF_A_LANE = 100.0  # per second: a call takes 1.4 to 7.4 ms of a process's only core
_IN_FLIGHT_OF_A_LANE = 10  # so that these answers may take .1 s
DATA, IMPORT = "rag_engine_data", "rag_engine_import"
NAMES = (DATA, IMPORT)  # names of the quota pools for building corpora


class PricesModel(Section):
    """Prices of a million tokens, in any currency.

    Attributes:
        input: price of input tokens.
        cached: price of cached input tokens; defaults to `input`.
        output: price of output tokens, including thinking tokens.
    """

    input: Price
    cached: Price | None = None
    output: Price


class QuotaModel(Section):
    """One item of `quotas:`; omitted keys take the defaults of the retriever's or the model's type.

    A quota is named after a service, a type of retriever or model, or the `quota:` of retrievers. Retrievers of one
    type share a budget for each project and region, or host; retrievers with the same `quota:` share that one. Services
    with the same type, project, region and model share a budget.

    Attributes:
        requests_per_minute: maximum number of calls begun in any minute; every attempt counts.
        requests_per_second: the same limit per second; set only one of the two.
        concurrent_calls: maximum number of calls in flight; by default only the rate limits it.
        timeout_s: time limit of one attempt.
        attempts: maximum number of attempts at one call.
        give_up_after_s: time after which no further attempt at a call begins, pauses included.
        lanes: number of streams that share the budget, each on one worker at a time. The default is one for every 6,000
            calls a minute, and at most one for every ten of `concurrent_calls`; usually 1.
        tokens_per_minute: maximum tokens of the calls begun in any minute, for services that limit tokens.
        price_per_1000: price of 1,000 calls, in whatever currency you use; `rankbeam plan` and `max_cost` use it.
        price_per_million: prices of one million tokens, in the same currency.
    """

    requests_per_minute: Positive | None = None
    requests_per_second: Positive | None = None
    concurrent_calls: Count | None = None
    timeout_s: Positive | None = None
    attempts: Count | None = None
    give_up_after_s: Positive | None = None
    lanes: Count | None = None
    tokens_per_minute: Positive | None = None
    price_per_1000: Price | None = None
    price_per_million: PricesModel | None = None

    @model_validator(mode="after")
    def _one_rate(self) -> "QuotaModel":
        if self.requests_per_minute is not None and self.requests_per_second is not None:
            raise ValueError("has requests_per_minute and requests_per_second; give one of them")
        return self


class ImportQuotaModel(Section):
    """`quotas: {rag_engine_import}`: the budget of imports into the corpora of one project and region.

    Attributes:
        concurrent_calls: maximum number of simultaneous imports; 3 by default.
        embeddings_per_minute: maximum number of embedding requests per minute that all imports with one model make
            together; 1,400 by default.
        price_per_million: price of embedding one million tokens, in whatever currency you use; `rankbeam plan` and
            `max_cost` use it.
        give_up_after_s: time without progress after which rankbeam stops waiting for an import; six hours by default.
    """

    concurrent_calls: Count | None = None
    embeddings_per_minute: Count | None = None
    price_per_million: Price | None = None
    give_up_after_s: Positive | None = None


@dataclass(frozen=True)
class CorpusQuotas:
    """The budgets for building corpora, each for one project and region.

    The defaults are what RAG Engine documents: https://cloud.google.com/vertex-ai/generative-ai/docs/quotas
    """

    data: Quota = field(default_factory=lambda: Quota(requests_per_minute=60))
    imports: ImportQuota = field(default_factory=ImportQuota)


def quota_of(default: Quota, model: QuotaModel) -> Quota:
    """A budget: the stated values, and the default's for the rest.

    >>> quota_of(Quota(600), QuotaModel(requests_per_second=500)).lanes
    5
    >>> quota_of(Quota(600), QuotaModel(requests_per_second=500, tokens_per_minute=9000)).lanes
    1
    """
    stated = model.model_dump(exclude={"requests_per_second", "price_per_million"}, exclude_none=True)
    if model.requests_per_second is not None:
        stated["requests_per_minute"] = model.requests_per_second * 60
    if (price := model.price_per_million) is not None:
        cached = price.input if price.cached is None else price.cached
        stated["prices"] = Prices(price.input, cached, price.output)
    quota = replace(default, **stated)
    lanes = max(default.lanes, math.ceil(quota.requests_per_minute / 60 / _CALLS_OF_A_LANE))
    if quota.concurrent_calls is not None:
        lanes = min(lanes, max(1, quota.concurrent_calls // _IN_FLIGHT_OF_A_LANE))
    tokens = quota.tokens_per_minute
    by_tokens = lanes if tokens is None else max(1, math.floor(tokens / _TOKENS_OF_A_LANE))
    return quota if model.lanes is not None else replace(quota, lanes=min(lanes, quota.most_lanes, by_tokens))


@dataclass(frozen=True)
class Quotas:
    """`quotas:` as a whole."""

    named: Collection[str]
    valid: Mapping[str, QuotaModel]


def quotas_of(located: YamlDocument, section: Mapping[str, Any]) -> Quotas:
    models = {name: parse_part(QuotaModel, value, located, ("quotas", name)) for name, value in section.items()}
    return Quotas(section, {name: model for name, model in models.items() if model is not None})


def corpus_quotas_of(located: YamlDocument, section: Mapping[str, Any]) -> CorpusQuotas:
    """The budgets for building corpora, with their defaults."""
    data = parse_part(QuotaModel, section.get(DATA, {}), located, ("quotas", DATA))
    imports = parse_part(ImportQuotaModel, section.get(IMPORT, {}), located, ("quotas", IMPORT))
    default = CorpusQuotas()
    return CorpusQuotas(
        default.data if data is None else quota_of(default.data, data),
        default.imports if imports is None else ImportQuota(**imports.model_dump(exclude_none=True)),
    )
