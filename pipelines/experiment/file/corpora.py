"""`corpora:` of an experiment: chunks that documents are cut into, or corpora that services build, by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rankbeam.pipelines.config.sections import parse_part
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.transforms.clients.corpora.base import CORPORA, CorpusParameters
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.records.errors import InputError, did_you_mean

CORPUS = "corpus"  # the key of a retriever that names a corpus, and the role of that component of a configuration

_CHUNKS = frozenset({"chunks"})  # cut on this machine


Model = TypeVar("Model", bound=Parameters, covariant=True)


@dataclass(frozen=True)
class ComponentSettings(Generic[Model]):
    """A component as the file has it, before the grid replaces any of its parameters."""

    role: str
    place: Place
    kind: str  # empty if there is only one
    model: type[Model]
    values: Mapping[str, Any]
    fixed: frozenset[str] = frozenset()  # parameters that the grid cannot replace


@dataclass(frozen=True)
class Corpus:
    """A corpus that a configuration searches: an entry of `corpora:` with the grid's values."""

    name: str
    kind: str
    parameters: CorpusParameters

    @property
    def place(self) -> Place:
        return "corpora", self.name

    def resolved(self, folder: str) -> "Corpus":
        return replace(self, parameters=self.parameters.resolved(folder))

    def decisive(self) -> dict[str, Any]:
        """Parameters that identify a configuration: those that decide the content, without the name."""
        return {"type": self.kind, **self.parameters.specification()}


@dataclass(frozen=True)
class Corpora:
    """`corpora:` as a whole."""

    named: Mapping[str, Any]
    valid: Mapping[str, ComponentSettings[CorpusParameters]]
    unused: tuple[str, ...] = ()  # warnings about corpora that no configuration names

    def is_named(self, value: object) -> bool:
        return isinstance(value, str) and value in self.named

    def wrong_name(
        self, located: YamlDocument, place: Place, kind: str, model: type[RetrieverParameters], value: object
    ) -> Iterator[InputError]:
        """Check the `corpus` of a retriever; a type with a field of that name may take other values."""
        if self.is_named(value):
            entry = self.valid.get(str(value))
            if entry is not None and not (_CHUNKS if entry.model.is_cut_here() else {entry.kind}) & model.searches:
                searched = " or ".join(sorted(model.searches)) or "none"
                problem = f"{value!r} is a corpus of type {entry.kind}; a {kind} retriever searches {searched}"
                yield located.error(place, problem)
        elif CORPUS not in model.model_fields or (self.named and "/" not in str(value)):
            hint = did_you_mean(str(value), self.named) if self.named else "name it there: {NAME: {type: chunks}}"
            yield located.error(place, f"corpora: has no {value!r}; {hint}")


def corpora_of(located: YamlDocument, model: ExperimentModel) -> Corpora:
    valid, unused = {}, []
    retrievers = (entry.retriever for entry in model.configurations or ())
    used = [retriever[CORPUS] for retriever in retrievers if retriever is not None and CORPUS in retriever]
    for name, value in model.corpora.items():
        place: Place = ("corpora", name)
        if name not in used:
            unused.append(str(located.error(place, "no configuration searches this corpus")))
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            hint = "is missing; a corpus is {type: …, parameters of the type}"
            located.report((*place, "type"), hint)
            continue
        try:
            parameters = CORPORA.load(value["type"])
        except InputError as error:
            located.report((*place, "type"), error.problem)
            continue
        values = {key: item for key, item in value.items() if key != "type"}
        valid[name] = ComponentSettings(CORPUS, place, value["type"], parameters, values)
        if name not in used:
            parse_part(parameters, values, located, place)
    return Corpora(model.corpora, valid, tuple(unused))
