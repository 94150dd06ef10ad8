"""`services:` of an experiment: the models that answer, judge and embed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.config.references import hint_of
from rankbeam.pipelines.config.sections import parse_part
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.transforms.clients.models.base import MODELS, ModelParameters
from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.models.remote import Batch, RemoteModel
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
    def embed(self) -> Embed:
        return Embed(self.name, self.kind, self.parameters)

    @property
    def batch(self) -> Batch | None:
        return self.parameters.batch if isinstance(self.parameters, RemoteModel) else None

    @property
    def sets_temperature(self) -> bool:
        """True if the service sets the temperature of all its calls."""
        return isinstance(self.parameters, RemoteModel) and self.parameters.temperature is not None

    @property
    def is_cross_encoder(self) -> bool:
        return isinstance(self.parameters, Onnx) and self.parameters.scores_pairs

    def decisive(self) -> dict[str, Any]:
        """Parameters that identify a configuration: those of the model, not its name in this experiment."""
        return {"type": self.kind, **self.parameters.decisive()}


@dataclass(frozen=True)
class Services:
    """`services:` as a whole."""

    named: Mapping[str, Any]
    valid: Mapping[str, ConfiguredService]

    def service(self, located: YamlDocument, place: Place, name: str) -> ConfiguredService | None:
        """The service of a name; None after reporting that there is none, or if it is reported elsewhere."""
        if name not in self.named:
            hint = did_you_mean(name, self.named) if self.named else "name the model there: {NAME: {type: …}}"
            located.report(place, f"services: has no {name!r}; {hint_of(name) or hint}")
        return self.valid.get(name)

    def embedder(self, located: YamlDocument, place: Place, name: str) -> ConfiguredService | None:
        """The service that is named where vectors are compared; reported if it cannot embed texts."""
        service = self.service(located, place, name)
        if service is not None and service.is_cross_encoder:
            problem = f"{name!r} is a cross-encoder, which does not embed texts; name a model that does"
            located.report(place, f"{problem}, or use it in rerank:")
        return service

    def reranker(self, located: YamlDocument, place: Place, name: str) -> ConfiguredService | None:
        """The service that is named in `rerank:`; reported if it can neither rate nor score texts for a query."""
        service = self.service(located, place, name)
        if service is not None and service.parameters.embeds_only and not service.is_cross_encoder:
            problem = f"{name!r} embeds texts, but does not score them for a query; name a cross-encoder"
            located.report(place, f"{problem}, or a model that generates text")
        return service

    def writer(self, located: YamlDocument, place: Place, name: str) -> ConfiguredService | None:
        """The service that is named where answers or verdicts are written; reported if it cannot write."""
        service = self.service(located, place, name)
        if service is not None and service.parameters.embeds_only:
            does = "scores" if service.is_cross_encoder else "embeds"
            located.report(place, f"{name!r} {does} texts and does not generate any; name a model that does")
        return service


def services_of(located: YamlDocument, section: Mapping[str, Any]) -> Services:
    services = {}
    for name, value in section.items():
        if name in RETRIEVERS.types:
            problem = "is a type of retriever, and quotas: could mean either; choose another name"
            located.report(("services", name), problem)
        parameters = _parameters(located, name, value)
        if parameters is not None and name not in RETRIEVERS.types:
            services[name] = ConfiguredService(name, str(value["type"]), parameters)
    return Services(section, services)


def _parameters(located: YamlDocument, name: str, value: Any) -> ModelParameters | None:
    place: Place = ("services", name)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        located.report((*place, "type"), "is missing; a service is {type: …, parameters of the type}")
        return None
    try:
        model = MODELS.load(value["type"])
    except InputError as error:
        located.report((*place, "type"), error.problem)
        return None
    values = {key: item for key, item in value.items() if key != "type"}
    if (parsed := parse_part(model, values, located, place)) is None:
        return None
    parameters = parsed.resolved(located.folder)
    unset = [located.error((*place, *inside), problem) for inside, problem in parameters.unset()]
    located.problems.extend(unset)
    return None if unset else parameters
