"""A benchmark that is ready to be made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.goldens.models import ContextModel
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.retrievers.base import Retrieve
from rankbeam.transforms.goldens.asking import WriterAndChecker
from rankbeam.transforms.goldens.origins import Origin
from rankbeam.transforms.goldens.planning import PlannedBenchmark
from rankbeam.transforms.goldens.searching import SEARCH, PoolRetriever, SearchServices
from rankbeam.transforms.goldens.writing import Reviews, WriteItems
from rankbeam.transforms.judge.judge import Model
from rankbeam.transforms.records.calls.steps import SearchDepth, Work


@dataclass(frozen=True)
class Pooling:
    """Retrieval of the documents to grade for each question."""

    documents: int
    retrievers: tuple[PoolRetriever, ...]

    @property
    def services(self) -> tuple[PoolRetriever, ...]:
        return tuple(retriever for retriever in self.retrievers if retriever.remote is not None and self.documents)

    @property
    def embedders(self) -> list[Embed]:
        """The models that are called to embed texts for these retrievers, each once."""
        return list(
            {
                retriever.embedder.service: retriever.embedder
                for retriever in self.retrievers
                if retriever.embedder and retriever.embedder.is_called and self.documents
            }.values()
        )


@dataclass(frozen=True)
class Duplicates:
    """Rules for duplicates with a different wording."""

    embed: Embed
    cosine: float


@dataclass(frozen=True)
class Goldens:
    """A benchmark that is ready to be made."""

    name: str
    text: str
    origin: Origin
    language: str
    span_tokens: int
    writer: ConfiguredService
    checker: ConfiguredService
    planned: PlannedBenchmark
    context: ContextModel
    reviews: Reviews
    pool: Pooling
    duplicates: Duplicates | None
    split: Mapping[str, float]
    calls: CallSettings
    profiles: str  # the file of profiles; its default name if no file is used
    output: str
    previous: str | None = None  # the folder of an earlier benchmark whose questions are taken over

    @property
    def ledger(self) -> str:
        return self.calls.ledger_of(self.output)

    @property
    def asking(self) -> WriterAndChecker:
        writer, checker = (Model(model.name, model.kind, model.parameters) for model in (self.writer, self.checker))
        return WriterAndChecker(writer, checker)

    @property
    def writing(self) -> WriteItems:
        return WriteItems(self.asking, self.reviews, self.planned.dimensions, self.context.overall)

    def searching(self) -> Stage:
        """The stage that calls those retrievers of the pool that are services."""
        depth = SearchDepth(self.pool.documents)
        services = [(service, service.remote) for service in self.pool.services if service.remote is not None]
        retrieve = {one.name: Retrieve(one.name, one.kind, remote, depth) for one, remote in services}
        called = {one.name: (remote, one.pool) for one, remote in services}
        return self.calls.stage(SEARCH, {SEARCH: SearchServices(retrieve)}, called)

    def stage(self, work: Work[Any]) -> Stage:
        return self.calls.stage(work.stage, {work.stage: work})
