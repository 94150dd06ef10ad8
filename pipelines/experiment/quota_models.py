"""The schema of the items of `quotas:`."""

from pydantic import model_validator

from rankbeam.pipelines.experiment.keys import Count, Positive, Price, Section


class PricesModel(Section):
    """Prices of a million tokens, in any currency.

    Attributes:
        input: of a request.
        cached: of that part of a request which the service has in its cache; by default as `input`.
        output: of an answer, thinking among it.
    """

    input: Price
    cached: Price | None = None
    output: Price


class QuotaModel(Section):
    """One item of `quotas:`; omitted keys take the defaults of the retriever's or the model's type.

    The name is a service's, else a type's, else one that retrievers call with `quota:`. Retrievers of one type share
    a budget, one for each project and region, or host; all that call one name share that. Services of one type,
    project, region and model share one.

    Attributes:
        requests_per_minute: calls begun in any minute, at most; every attempt counts.
        requests_per_second: the same by the second; give one of both.
        concurrent_calls: calls in flight at once, at most; by default as many as there are at the full rate.
        timeout_s: after which one attempt is given up.
        attempts: how often a call is tried, at most.
        give_up_after_s: after which no further attempt of a call is begun, pauses included.
        lanes: streams that share the budget, each on one worker at a time. By default as many as hold the calls that
            are in flight when an answer takes 5 s, a thousand each; usually 1.
        tokens_per_minute: tokens of the calls begun in any minute, at most; for services that charge by the token.
        price_per_1000: of a thousand calls, in any currency, for `rankbeam plan`.
        price_per_million: of tokens, in any currency.
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
        concurrent_calls: imports that run at once, at most; 3 by default.
        embeddings_per_minute: requests for embeddings of all of them with one model, at most; 1,400 by default.
        price_per_million: of a million tokens that are embedded, in any currency, for `rankbeam plan`.
        give_up_after_s: time without progress after which an import is no longer waited for; six hours by default.
    """

    concurrent_calls: Count | None = None
    embeddings_per_minute: Count | None = None
    price_per_million: Price | None = None
    give_up_after_s: Positive | None = None
