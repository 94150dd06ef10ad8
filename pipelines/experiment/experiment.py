"""An experiment that can be run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.experiment.file.corpora import Corpus
from rankbeam.pipelines.experiment.grid.cells import PlannedSource
from rankbeam.pipelines.experiment.grid.components import Reranking
from rankbeam.pipelines.gates.gates import MONITOR, Gate
from rankbeam.transforms.clients.bigquery.names import DatasetName, pinned_path
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import Embed, embeddings_of
from rankbeam.transforms.clients.models.onnx import LIBRARIES, Onnx
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.replay import Replay
from rankbeam.transforms.clients.secrets import env_name
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.calls.steps import Usage
from rankbeam.transforms.records.conversations import HISTORY
from rankbeam.transforms.records.corpora import BuiltCorpus
from rankbeam.transforms.records.dataset import References
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.queries import Documents, Embeddings, Judgements
from rankbeam.transforms.records.stages import Judging, RewriteKind, RewrittenQuery


@dataclass(frozen=True)
class DatasetSettings:
    """The files of the dataset, and the unit of its judgements: document, chunk or span."""

    qrels: str | None = None
    queries: str | None = None
    corpus: str | None = None
    evidence: str | None = None
    references: References | None = None
    unit: str = "document"

    @property
    def judgements(self) -> Judgements | None:
        """Path of document qrels; None for chunk and span experiments."""
        if self.qrels is None or self.unit != "document":
            return None
        return Judgements(self.qrels, self.queries)

    def pinned(self, run: str) -> "DatasetSettings":
        """The dataset with BigQuery queries that run once per execution, named `run`."""
        return replace(
            self,
            qrels=_pinned(self.qrels, run),
            queries=_pinned(self.queries, run),
            corpus=_pinned(self.corpus, run),
            evidence=_pinned(self.evidence, run),
        )

    def inputs(self) -> list[str]:
        references = None if self.references is None else self.references.path
        paths = (self.qrels, self.evidence, self.queries, self.corpus, references)
        return [path for path in paths if path is not None]


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run."""

    name: str
    text: str
    output: str
    dataset: DatasetSettings
    sources: tuple[PlannedSource, ...]
    evaluation: Evaluation
    calls: CallSettings
    judging: Judging | None = None
    judged: tuple[JudgedMetric, ...] = ()
    gates: tuple[Gate, ...] = ()
    bigquery: DatasetName | None = None
    built: tuple[BuiltCorpus, ...] = ()
    corpus_usage: tuple[Usage, ...] = ()
    is_private: bool = False
    computes: bool = True  # False for a plan, in which models in this process embed nothing

    @property
    def is_monitored(self) -> bool:
        """True if a gate is about the change since a baseline run."""
        return any(gate.value == MONITOR for gate in self.gates)

    @property
    def calls_models(self) -> bool:
        return bool(self.judged) or any(
            configuration.generation is not None for configuration in self.evaluation.configurations
        )

    @property
    def makes_calls(self) -> bool:
        """True if services are called, whose answers the ledger stores."""
        is_reranked = any(reranker.is_called for reranker in self.rerankers.values())
        return bool(self.remote) or is_reranked or bool(self.rewritten) or self.calls_models

    @property
    def ledger(self) -> str:
        """The folder that stores the answers of remote services."""
        return self.calls.ledger_of(self.output)

    @property
    def _parameters(self) -> dict[int, RetrieverParameters]:
        return {source: planned.retriever.parameters for source, planned in enumerate(self.sources)}

    @property
    def remote(self) -> dict[int, RemoteRetriever]:
        """The retrievers that are called over the network, by source."""
        called = {source: entry for source, entry in self._parameters.items() if entry.route is Route.CALLED}
        return {source: entry for source, entry in called.items() if isinstance(entry, RemoteRetriever)}

    @property
    def rewritten(self) -> dict[int, RewrittenQuery]:
        """The texts that sources get instead of queries."""
        sources = enumerate(self.evaluation.sources)
        return {number: rewrite for number, source in sources if (rewrite := source.rewrite) is not None}

    @property
    def joined(self) -> list[int]:
        """The sources that also get the messages before a query."""
        return [source for source, entry in self._parameters.items() if entry.query == HISTORY]

    @property
    def own_texts(self) -> set[int]:
        """The sources that get other texts than the queries."""
        return {*self.rewritten, *self.joined}

    @property
    def rerankers(self) -> dict[int, Reranking]:
        """The rerankers, by the source that they produce."""
        return {source: item.reranker for source, item in enumerate(self.sources) if item.reranker is not None}

    @property
    def called_names(self) -> dict[int, str]:
        """The names of called retrievers and rerankers in logs and in the ledger, by source.

        A name is that of the configuration for which a source is called, with the type if the name is taken.
        """
        kinds = {source: self.sources[source].retriever.kind for source in self.remote}
        kinds |= {source: reranker.kind for source, reranker in self.rerankers.items()}
        names, taken = dict[int, str](), {*self.calls.services}
        for source, kind in kinds.items():
            name = self.evaluation.configurations[self.evaluation.owner(source)].name
            names[source] = f"{name} ({kind} {source})" if name in taken else name
            taken.add(name)
        return names

    @property
    def served(self) -> tuple[Corpus, ...]:
        """The corpora that a service builds, each once."""
        corpora = (source.retriever.corpus for source in self.sources)
        return tuple(
            dict.fromkeys(corpus for corpus in corpora if corpus is not None and corpus.parameters.service_corpus(""))
        )

    def searching(self, resources: Mapping[Corpus, tuple[str, str]]) -> "Experiment":
        """The experiment with the identities and resources of the corpora that a service builds."""
        sources = tuple(source.searching(resources) for source in self.sources)
        return replace(self, sources=sources)

    @property
    def local(self) -> dict[int, RetrieverParameters]:
        """The retrievers that run in process, by source."""
        return {source: entry for source, entry in self._parameters.items() if entry.route is Route.OPENED}

    @property
    def embedders(self) -> dict[int, Embed]:
        """The models that are called to embed texts for retrievers, by source."""
        return {source: model for source, model in self.embedding_models.items() if model.is_called}

    @property
    def embedding_models(self) -> dict[int, Embed]:
        """The models that embed queries, and documents for retrievers in this process, by source."""
        named = {source: planned.retriever.embedder for source, planned in enumerate(self.sources)}
        names = {source: service.name for source, service in named.items() if service is not None}
        return {source: self.calls.services[name].embed for source, name in names.items()}

    def role_of_queries(self, source: int) -> Role:
        """The role in which a source's texts are embedded instead of queries: passages as documents."""
        rewrite = self.rewritten.get(source)
        is_passage = rewrite is not None and rewrite.rewriting.kind is RewriteKind.HYDE
        return Role.DOCUMENT if is_passage else Role.QUERY

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules that compute vectors in this process."""
        services = self.calls.services.values()
        return LIBRARIES if any(isinstance(service.parameters, Onnx) for service in services) else ()

    @property
    def embeddings(self) -> dict[int, Embeddings]:
        """The embeddings of each source's texts, if a model embeds them."""
        return {
            source: embeddings_of(model, self.ledger, self.role_of_queries(source), computes=self.computes)
            for source, model in self.embedding_models.items()
        }

    @property
    def documents_by_source(self) -> dict[int, Documents]:
        """Input that each retriever in this process searches, by source."""
        corpora = {source: self.sources[source].retriever.corpus for source in self.local}
        embeddings = self.embeddings
        return {
            source: Documents(
                self.dataset.corpus,
                None if corpus is None else corpus.parameters.chunking,
                as_documents=self.dataset.unit == "document",
                with_texts=self.calls_models or bool(self.rerankers),
                index_folder=files.below(self.output, "indexes"),
                embeddings=embeddings.get(source),
                judgements=self.dataset.judgements,
                is_rewritten=source in self.own_texts,
            )
            for source, corpus in corpora.items()
        }

    @property
    def replayed(self) -> dict[int, Replay]:
        """The existing answers, by source."""
        return {source: entry for source, entry in self._parameters.items() if isinstance(entry, Replay)}

    @property
    def applications(self) -> dict[int, HttpApplication]:
        """The deployed applications to call, by source."""
        return {source: entry for source, entry in self.remote.items() if isinstance(entry, HttpApplication)}

    @property
    def secrets(self) -> dict[str, str]:
        """References to secrets, which workers resolve, each with its place in the file for messages."""
        components = [*self._parameters.values(), *(service.parameters for service in self.calls.services.values())]
        return {reference: place for component in components for reference, place in component.secret_places().items()}

    def unset_variables(self, path: str) -> list[str]:
        """Warnings about secrets in environment variables that are not set here, each with its line in the file."""
        return [
            f"{path}{_line_of(reference, self.text)}: {place} needs the environment variable {name}, which is not set "
            "here"
            for reference, place in self.secrets.items()
            if (name := env_name(reference)) and not os.environ.get(name, "").strip()
        ]

    def inputs(self) -> list[str]:
        return [
            *self.dataset.inputs(),
            *(path for parameters in self._parameters.values() for path in parameters.inputs().values()),
        ]

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Role and path of the files that must share queries or documents with the judgements."""
        runs = [("run", source.path) for source in self.evaluation.sources if source.path is not None]
        is_cut = self.dataset.unit == "chunk" and any(source.retriever.corpus is not None for source in self.sources)
        return (*runs, *([] if self.dataset.corpus is None or is_cut else [("corpus", self.dataset.corpus)]))

    def with_disjoint(self, allowed: bool) -> "Experiment":
        """The experiment, which may or may not have rankings or a corpus that share nothing with the judgements."""
        return replace(self, evaluation=replace(self.evaluation, allow_disjoint=allowed))

    def pinned(self, run: str, day: str) -> "Experiment":
        """The experiment with BigQuery queries that run once per execution, wherever their rows are read.

        `run` names the execution; `day`, such as 2026-01-31, is its date, for experiments that call anew each day.
        """
        called_on = day if self.calls.is_fresh else None
        sources = tuple(source.pinned(run, called_on) for source in self.sources)
        return replace(
            self,
            dataset=self.dataset.pinned(run),
            sources=sources,
            evaluation=replace(self.evaluation, sources=tuple(source.source for source in sources)),
            calls=replace(self.calls, day=called_on),
        )


def _pinned(path: str | None, run: str) -> str | None:
    return None if path is None else pinned_path(path, run)


def _line_of(reference: str, text: str) -> str:
    """The line of a reference in a text, such as ":3"; empty if only a provider's name implies the reference."""
    return next((f":{number}" for number, line in enumerate(text.splitlines(), 1) if reference in line), "")
