"""`services:` of an experiment, the models that answer and judge, and the schema of `quotas:`, which pay for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError, model_validator

from rankbeam.pipelines.config.references import hint_of
from rankbeam.pipelines.config.yaml_lines import Located, Place, problems_of
from rankbeam.pipelines.experiment.file.keys import Count, Positive, Price, Section
from rankbeam.transforms.clients.models.base import MODELS, ModelParameters
from rankbeam.transforms.clients.models.batch_settings import Batch
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.records.errors import InputError, did_you_mean


@dataclass(frozen=True)
class ConfiguredService:
    """One item of `services:`."""

    name: str
    kind: str
    parameters: ModelParameters
    pool: str | None = None  # the quota pool that pays for its calls; None if nothing calls it

    @property
    def place(self) -> Place:
        return "services", self.name

    @property
    def account(self) -> str:
        """Identity of its quota pool: services of one type, project, region and model share a pool."""
        return f"{self.kind} {self.parameters.scope()}".strip()

    @property
    def batch(self) -> Batch | None:
        return self.parameters.batch if isinstance(self.parameters, RemoteModel) else None

    @property
    def sets_temperature(self) -> bool:
        """True if the service sets the temperature of all its calls."""
        return isinstance(self.parameters, RemoteModel) and self.parameters.temperature is not None

    def paid_by(self, pool: str) -> "ConfiguredService":
        """The service with the quota pool that pays for it."""
        return replace(self, pool=pool)

    def decisive(self) -> dict[str, Any]:
        """Parameters that identify a configuration: the model, not its name in this experiment."""
        return {"type": self.kind, **self.parameters.decisive()}


@dataclass(frozen=True)
class Services:
    """`services:` as a whole."""

    named: Mapping[str, Any]
    valid: Mapping[str, ConfiguredService]

    def unknown(self, located: Located, place: Place, name: str) -> Iterator[InputError]:
        if name not in self.named:
            hint = did_you_mean(name, self.named) if self.named else "name the model there: {NAME: {type: …}}"
            hint = hint_of(name) or hint
            yield located.error(place, f"services: has no {name!r}; {hint}")

    def not_embedding(self, located: Located, place: Place, name: str) -> Iterator[InputError]:
        """Report a service that cannot embed texts, at a place where vectors are compared."""
        yield from self.unknown(located, place, name)
        if self._is_cross_encoder(name):
            problem = (
                f"{name!r} is a cross-encoder, which does not embed texts; name a model that does, or use it in rerank:"
            )
            yield located.error(place, problem)

    def not_reranking(self, located: Located, place: Place, name: str) -> Iterator[InputError]:
        """Report a service that can neither rate nor score texts for a query."""
        yield from self.unknown(located, place, name)
        if name in self.valid and self.valid[name].parameters.embeds_only and not self._is_cross_encoder(name):
            problem = (
                f"{name!r} embeds texts, but does not score them for a query; name a cross-encoder, or a model that "
                "generates text"
            )
            yield located.error(place, problem)

    def _is_cross_encoder(self, name: str) -> bool:
        parameters = self.valid[name].parameters if name in self.valid else None
        return isinstance(parameters, Onnx) and parameters.scores_pairs

    def not_writing(self, located: Located, place: Place, name: str) -> Iterator[InputError]:
        """Report a service that cannot write, at a place where answers or verdicts are written."""
        yield from self.unknown(located, place, name)
        if name in self.valid and self.valid[name].parameters.embeds_only:
            does = "scores" if self._is_cross_encoder(name) else "embeds"
            yield located.error(place, f"{name!r} {does} texts and does not generate any; name a model that does")


def services_of(located: Located, section: Mapping[str, Any], folder: str, problems: list[InputError]) -> Services:
    """The services of an experiment; relative paths are taken as below `folder`."""
    services = {}
    for name, value in section.items():
        wrong = [*_wrong_name(located, name)]
        parameters = _parameters(located, name, value, folder, wrong)
        problems += wrong
        if parameters is not None and not wrong:
            services[name] = ConfiguredService(name, str(value["type"]), parameters)
    return Services(section, services)


def _wrong_name(located: Located, name: str) -> Iterator[InputError]:
    if name in RETRIEVERS.types:
        problem = "is a type of retriever, and quotas: could mean either; choose another name"
        yield located.error(("services", name), problem)


def _parameters(
    located: Located, name: str, value: Any, folder: str, problems: list[InputError]
) -> ModelParameters | None:
    place: Place = ("services", name)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        problems.append(located.error((*place, "type"), "is missing; a service is {type: …, parameters of the type}"))
        return None
    try:
        model = MODELS.load(value["type"])
    except InputError as error:
        problems.append(located.error((*place, "type"), error.problem))
        return None
    try:
        parameters = model.model_validate({key: item for key, item in value.items() if key != "type"})
    except ValidationError as error:
        problems += problems_of(located, model, error, at=place)
        return None
    parameters = parameters.resolved(folder)
    problems += [located.error((*place, *inside), problem) for inside, problem in parameters.unset()]
    return parameters


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
