"""The schema of the items of `quotas:`."""

from pydantic import model_validator

from rankbeam.pipelines.experiment.file.keys import Count, Positive, Price, Section


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
        lanes: number of streams that share the budget, each on one worker at a time. The default is one for every 1,000
            calls in flight, assuming answers that take 5 s; usually 1.
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
