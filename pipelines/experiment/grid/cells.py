"""Configurations: their components, each with its parameters, and what identifies them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.pipelines.experiment.file.corpora import CORPUS, Corpus
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, ModelRerankParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.keys import DISTANCE, TOP_K
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.experiment.file.template_files import TemplateFile
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.fusion import Fusion
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.clients.retrievers.rerankers import ByService, FusedLists, Reranker
from rankbeam.transforms.records.calls.prompt import template_hash
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.stages import Generation, RewriteKind, Rewriting, RewrittenQuery

RETRIEVER, REWRITE, RERANK = "retriever", "rewrite", "rerank"
GENERATE, ANSWERS = "generate", "answers"


@dataclass(frozen=True)
class Retrieving:
    """The origin of a configuration's rankings."""

    role: str
    place: Place
    kind: str
    parameters: RetrieverParameters
    corpus: Corpus | None = None
    embedder: ConfiguredService | None = None

    @property
    def needs(self) -> set[str]:
        """The files of the dataset that it requires."""
        return {*self.parameters.needs, *(() if self.corpus is None else self.corpus.parameters.needs)}

    def resolved(self, folder: str) -> "Retrieving":
        """Resolve relative paths below `folder`, so that any machine can use them."""
        corpus = None if self.corpus is None else self.corpus.resolved(folder)
        return replace(self, parameters=self.parameters.resolved(folder), corpus=corpus)

    def searching(self, identity: str = "", resource: str = "") -> "Retrieving":
        """Bind the corpus of a service that it searches, if it searches one."""
        if self.corpus is None:
            return self
        searched = self.corpus.parameters.service_corpus(identity or content_key(self.corpus.decisive()), resource)
        return self if searched is None else replace(self, parameters=self.parameters.searching(searched))

    def on(self, day: str) -> "Retrieving":
        """The retriever with calls of one day: it is part of the version of the data that a service searches."""
        if self.remote is None:
            return self
        version = " ".join(filter(None, [self.remote.version, day]))
        return replace(self, parameters=self.remote.model_copy(update={"version": version}))

    @property
    def route(self) -> Route:
        """The route of the rankings: read, in process, called, or fused."""
        return self.parameters.route

    @property
    def remote(self) -> RemoteRetriever | None:
        """The parameters, if a service is called."""
        return self.parameters if isinstance(self.parameters, RemoteRetriever) else None

    @property
    def fusion(self) -> Fusion | None:
        """The parameters, if rankings of other configurations are fused."""
        return self.parameters if isinstance(self.parameters, Fusion) else None

    def decisive(self) -> dict[str, Any]:
        """The part of it that identifies a configuration."""
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
        """The part of it that identifies a configuration: model, template text and number of texts, not their names."""
        own = {**self.parameters.decisive(), "n": self.parameters.texts}
        return {**own, "service": self.service.decisive(), "template": template_hash(self.file.text)}

    def single(self) -> dict[str, Any]:
        """The part of it that decides one of its texts: passages do not depend on their number."""
        return {**self.decisive(), **({} if self.further else {"n": 1})}

    @property
    def further(self) -> bool:
        """True if its texts are asked besides the query, and not instead of it."""
        return self.parameters.kind is RewriteKind.MULTI_QUERY

    def rewritten(self, number: int, appended: bool) -> RewrittenQuery:
        """One of its texts: each passage is a reply of its own, and further queries come in one reply."""
        own = self.parameters.model_dump(exclude={"service", "template", "n"})
        texts, place = (self.parameters.texts, number) if self.further else (1, 0)
        rewriting = Rewriting(
            self.service.name, template=self.file.text, n=texts, sample=0 if self.further else number, **own
        )
        return RewrittenQuery(rewriting, place, appended and self.parameters.kind is RewriteKind.HYDE)


@dataclass(frozen=True)
class Reranking:
    """The reranker of a configuration's rankings: one with a type, or a model under `services:`."""

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

    def decisive(self) -> dict[str, Any]:
        """The part of it that identifies a configuration."""
        service = {"type": self.kind} if self.service is None else {"service": self.service.decisive()}
        return {**self.parameters.decisive(), **service}

    def is_like(self, other: "Reranking") -> bool:
        """Return whether two rerankers differ in depth alone, so that they can share their calls."""
        return self.kind == other.kind and self.parameters == other.parameters.model_copy(update={"depth": self.depth})

    @property
    def service_name(self) -> str:
        """Name of the model under `services:`; the type of another reranker."""
        return self.kind if self.service is None else self.service.name

    @property
    def max_output_tokens(self) -> int:
        return self.parameters.max_output_tokens if isinstance(self.parameters, ModelRerankParameters) else 0

    @property
    def retrieving(self) -> Retrieving:
        """The origin of the reranked rankings."""
        parameters = self.parameters if isinstance(self.parameters, Reranker) else ByService()
        return Retrieving(RERANK, self.place, self.kind, parameters)


@dataclass(frozen=True)
class Generating:
    """The generator that answers from the rankings of a configuration."""

    parameters: GenerateParameters
    service: ConfiguredService
    file: TemplateFile

    def decisive(self) -> dict[str, Any]:
        """The part of it that identifies a configuration: model and template text, not their names."""
        service, template = self.service.decisive(), template_hash(self.file.text)
        return {**self.parameters.decisive(), "service": service, "template": template}

    @property
    def generation(self) -> Generation:
        """The generator as the stages see it."""
        own: Mapping[str, Any] = self.parameters.model_dump(exclude={"service", "template"})
        return Generation(service=self.service.name, template=self.file.text, **own)


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid."""

    name: str
    item_name: str
    place: Place
    retriever: Retrieving
    top_k: int | None  # results per query; None for all
    distance: float | None = None  # only results nearer than this; None for all
    generator: Generating | None = None
    rewriter: RewritingQueries | None = None
    reranker: Reranking | None = None
    text: int | None = None  # which of several texts is asked; None for all
    dialect: Dialect = RANKBEAM
    parts: tuple["Cell", ...] = ()

    @property
    def canonical(self) -> str:
        """Everything that determines its scores, as JSON values."""
        return _canonical(self._decisive)

    @property
    def config_id(self) -> str:
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:12]

    @property
    def asked(self) -> str:
        """The request for a ranking: cells with equal requests are cut from one ranking."""
        if self.reranker is not None and (base := self.base) is not None:
            distance = {} if base.cut is None else {DISTANCE: base.cut}
            return _canonical({RERANK: self.reranker.decisive(), "of": base.asked, **distance})
        reach = {TOP_K: self.top_k, DISTANCE: self.distance} if self._asks_exactly or self.lists else {}
        request = {self.retriever.role: self._retriever, **self._corpus, **reach}
        if self.rewriter is None:
            return _canonical(request)
        if self.lists:
            return _canonical({**request, REWRITE: self.rewriter.decisive()})
        return _canonical({**request, REWRITE: [self.rewriter.single(), self.text or 0]})

    @property
    def rewritten(self) -> RewrittenQuery | None:
        """The text that its retriever is asked; None for the query itself, or for several."""
        if self.rewriter is None or self.reranker is not None or self.lists:
            return None
        return self.rewriter.rewritten(self.text or 0, self.retriever.parameters.appends_passages)

    @property
    def lists(self) -> "tuple[Cell, ...]":
        """The configurations of which each asks one of several texts, or the query; their rankings are fused."""
        if self.rewriter is None or self.reranker is not None or self.text is not None:
            return ()
        numbers = range(self.rewriter.parameters.texts)
        if len(numbers) == 1 and not self.rewriter.further:
            return ()
        own = replace(self, generator=None, dialect=RANKBEAM)
        plain = (replace(own, rewriter=None),) if self.rewriter.further else ()
        return (*plain, *(replace(own, text=number) for number in numbers))

    @property
    def base(self) -> "Cell | None":
        """The configuration that is reranked; None without a reranker."""
        if self.reranker is None:
            return None
        return replace(self, reranker=None, generator=None, top_k=self.reranker.depth, dialect=RANKBEAM)

    @property
    def origin(self) -> Retrieving:
        """The component that its ranking comes from."""
        if self.reranker is not None:
            return self.reranker.retrieving
        return (
            replace(self.retriever, parameters=FusedLists(), corpus=None, embedder=None)
            if self.lists
            else self.retriever
        )

    @property
    def hidden(self) -> "tuple[Cell, ...]":
        """Configurations whose rankings its own is made from, and that are not part of the experiment."""
        return self.lists if self.base is None else (self.base, *self.base.hidden)

    @property
    def cut(self) -> float | None:
        """Distance limit to apply to results; None if it is applied before."""
        return None if self._asks_exactly or self.reranker is not None or self.lists else self.distance

    @property
    def lower_is_better(self) -> bool:
        """True if its scores are distances."""
        if self.reranker is not None or self.lists:
            return False
        parameters = self.retriever.parameters
        return bool(getattr(parameters, "lower_is_better", parameters.has_distances))

    @property
    def width(self) -> tuple[bool, int, bool, float]:
        """Depth of the cell in its ranking: number of results, then distance."""
        return self.top_k is None, self.top_k or 0, self.distance is None, self.distance or 0.0

    def in_dialects(self, dialects: Sequence[Dialect]) -> list["Cell"]:
        """This cell, once for each dialect, with the dialect in its name; rankbeam's own keeps the plain name."""
        return [replace(self, name=self._name_in(dialect), dialect=dialect) for dialect in dialects] or [self]

    def _name_in(self, dialect: Dialect) -> str:
        if dialect == RANKBEAM:
            return self.name
        return f"{self.name}{',' if ':' in self.name else ':'}dialect={dialect.name}"

    @property
    def is_answered(self) -> bool:
        """True if a model answers from its ranking, or answers exist already."""
        return self.generator is not None or self.retriever.role == ANSWERS

    @property
    def _asks_exactly(self) -> bool:
        """True if a shorter ranking cannot be cut from a longer one, as it can after a reranker."""
        return self.reranker is None and not self.retriever.parameters.is_prefix()

    @property
    def _decisive(self) -> dict[str, Any]:
        distance = {} if self.distance is None else {DISTANCE: self.distance}
        generate = {} if self.generator is None else {GENERATE: self.generator.decisive()}
        dialect = {} if self.dialect == RANKBEAM else {"dialect": self.dialect.name}
        rewrite = {} if self.rewriter is None else {REWRITE: self.rewriter.decisive()}
        rerank = {} if self.reranker is None else {RERANK: self.reranker.decisive()}
        own = {self.retriever.role: self._retriever, **self._corpus, TOP_K: self.top_k}
        return {**own, **distance, **rewrite, **rerank, **generate, **dialect}

    @property
    def _corpus(self) -> dict[str, Any]:
        """The corpus that is searched, where the experiment describes it."""
        return {} if self.retriever.corpus is None else {CORPUS: self.retriever.corpus.decisive()}

    @property
    def _retriever(self) -> dict[str, Any]:
        parts = {"parts": [part._decisive for part in self.parts]} if self.parts else {}
        return {**self.retriever.decisive(), **parts}


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
