"""Components of a configuration: its retriever, the stages around it, and its generator, with their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.pipelines.experiment.file.corpora import Corpus
from rankbeam.pipelines.experiment.file.generate import (
    GenerateParameters,
    ModelRerankParameters,
    RewriteParameters,
    TemplateFile,
)
from rankbeam.pipelines.experiment.file.models import MIN_SCORE
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever, RetrieverParameters
from rankbeam.transforms.clients.retrievers.fusion import Fusion
from rankbeam.transforms.clients.retrievers.rerankers import ByService, Reranker
from rankbeam.transforms.records.calls.prompt import template_hash
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.stages import DEFAULT_DEPTH, Generation, RewriteKind, Rewriting, RewrittenQuery

RETRIEVER, REWRITE, RERANK = "retriever", "rewrite", "rerank"
GENERATE, ANSWERS = "generate", "answers"
NO_LIMITS = {"depth": DEFAULT_DEPTH, MIN_SCORE: None}
"""Parameters of a reranker that leave the score of a text as it is."""


@dataclass(frozen=True)
class Retrieval:
    """The origin of a configuration's rankings."""

    role: str
    place: Place
    kind: str
    parameters: RetrieverParameters
    corpus: Corpus | None = None
    embedder: ConfiguredService | None = None

    @property
    def needs(self) -> set[str]:
        """The dataset's files that it requires."""
        return {*self.parameters.needs, *(() if self.corpus is None else self.corpus.parameters.needs)}

    def resolved(self, folder: str) -> "Retrieval":
        """Resolve relative paths below `folder`, so that any machine can use them."""
        corpus = None if self.corpus is None else self.corpus.resolved(folder)
        return replace(self, parameters=self.parameters.resolved(folder), corpus=corpus)

    def searching(self, identity: str = "", resource: str = "") -> "Retrieval":
        """Bind the service's corpus that it searches, if there is one."""
        if self.corpus is None:
            return self
        searched = self.corpus.parameters.service_corpus(identity or content_key(self.corpus.decisive()), resource)
        return self if searched is None else replace(self, parameters=self.parameters.searching(searched))

    def on(self, day: str) -> "Retrieval":
        """The retriever with calls of one day, which becomes part of the data's version."""
        if self.remote is None:
            return self
        version = " ".join(filter(None, [self.remote.version, day]))
        return replace(self, parameters=self.remote.model_copy(update={"version": version}))

    @property
    def remote(self) -> RemoteRetriever | None:
        return self.parameters if isinstance(self.parameters, RemoteRetriever) else None

    @property
    def fusion(self) -> Fusion | None:
        """The parameters, if rankings of other configurations are fused."""
        return self.parameters if isinstance(self.parameters, Fusion) else None

    def decisive(self) -> dict[str, Any]:
        named = self.parameters.service
        embedder = {} if named is None or self.embedder is None else {named: self.embedder.decisive()}
        return {"type": self.kind, **self.parameters.decisive(), **embedder}


@dataclass(frozen=True)
class RewritingQueries:
    """The model that rewrites the queries of a configuration."""

    place: Place
    parameters: RewriteParameters
    service: ConfiguredService
    file: TemplateFile

    def decisive(self) -> dict[str, Any]:
        """The part that identifies a configuration: model, template text and number of texts, not their names."""
        parameters = {**self.parameters.decisive(), "n": self.parameters.texts}
        return {**parameters, "service": self.service.decisive(), "template": template_hash(self.file.text)}

    def single(self) -> dict[str, Any]:
        """The part that determines one of its texts: passages do not depend on their number."""
        return {**self.decisive(), **({} if self.further else {"n": 1})}

    @property
    def further(self) -> bool:
        """True if retrievers get its texts in addition to the query, not instead of it."""
        return self.parameters.kind is RewriteKind.MULTI_QUERY

    def rewritten(self, number: int, appended: bool) -> RewrittenQuery:
        """One of its texts: each passage is a separate reply, and further queries come in one reply."""
        options = self.parameters.model_dump(exclude={"service", "template", "n"})
        texts, place = (self.parameters.texts, number) if self.further else (1, 0)
        rewriting = Rewriting(
            self.service.name, template=self.file.text, n=texts, sample=0 if self.further else number, **options
        )
        return RewrittenQuery(rewriting, place, appended and self.parameters.kind is RewriteKind.HYDE)


@dataclass(frozen=True)
class Reranking:
    """The reranker of a configuration's rankings: a type of reranker, or a model under `services:`."""

    place: Place
    kind: str
    parameters: Reranker | ModelRerankParameters
    service: ConfiguredService | None = None

    @property
    def is_called(self) -> bool:
        """False for a model that scores texts in this process."""
        return self.service is None or not isinstance(self.service.parameters, Onnx)

    @property
    def depth(self) -> int:
        return self.parameters.depth

    @property
    def cut(self) -> float | None:
        """The lowest score of a result, as a distance."""
        return None if self.parameters.min_score is None else 0.0 - self.parameters.min_score

    def decisive(self) -> dict[str, Any]:
        service = {"type": self.kind} if self.service is None else {"service": self.service.decisive()}
        return {**self.parameters.decisive(), **service}

    def ordering_parameters(self) -> dict[str, Any]:
        """The part that determines the order of results."""
        return {name: value for name, value in self.decisive().items() if name != MIN_SCORE}

    def is_like(self, other: "Reranking") -> bool:
        """Return whether two rerankers differ only in limits, so that they can share calls."""
        these, those = (one.parameters.model_copy(update=NO_LIMITS) for one in (self, other))
        return self.kind == other.kind and these == those

    @property
    def service_name(self) -> str:
        """Name of the model under `services:`; the type of another reranker."""
        return self.kind if self.service is None else self.service.name

    @property
    def max_output_tokens(self) -> int:
        return self.parameters.max_output_tokens if isinstance(self.parameters, ModelRerankParameters) else 0

    @property
    def as_retrieving(self) -> Retrieval:
        parameters = self.parameters if isinstance(self.parameters, Reranker) else ByService()
        return Retrieval(RERANK, self.place, self.kind, parameters)


@dataclass(frozen=True)
class Generating:
    """The generator that answers from the rankings of a configuration."""

    parameters: GenerateParameters
    service: ConfiguredService
    file: TemplateFile

    def decisive(self) -> dict[str, Any]:
        """The part that identifies a configuration: model and template text, not their names."""
        service, template = self.service.decisive(), template_hash(self.file.text)
        return {**self.parameters.decisive(), "service": service, "template": template}

    @property
    def generation(self) -> Generation:
        options: Mapping[str, Any] = self.parameters.model_dump(exclude={"service", "template"})
        return Generation(service=self.service.name, template=self.file.text, **options)
