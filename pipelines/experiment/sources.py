"""Sources of rankings, with their retrievers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rankbeam.pipelines.experiment.components import Retrieving
from rankbeam.pipelines.experiment.corpora import Corpus
from rankbeam.transforms.clients.bigquery.read_source import pinned
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.records.evaluation import Source


@dataclass(frozen=True)
class PlannedSource:
    """One ranking a query, for all configurations that are cut from it."""

    source: Source
    retriever: Retrieving

    def completed(self, folder: str, pool: str | None, rankings: bool | None) -> "PlannedSource":
        """The source with paths below a folder, and what depends on the rest of the experiment."""
        retriever = self.retriever.resolved(folder)
        path = retriever.parameters.inputs()["path"] if retriever.route is Route.READ else None
        keeps = retriever.route is not Route.READ if rankings is None else rankings
        return PlannedSource(replace(self.source, path=path, pool=pool, keep_rankings=keeps), retriever)

    def searching(self, found: Mapping[Corpus, tuple[str, str]]) -> "PlannedSource":
        """The source with the identity and the resource of the corpus that it searches, if a service builds it."""
        corpus = self.retriever.corpus
        if corpus is None or corpus not in found:
            return self
        return replace(self, retriever=self.retriever.searching(*found[corpus]))

    def pinned(self, run: str) -> "PlannedSource":
        """The source whose query to BigQuery, if it has one, is run once in an execution."""
        path = self.source.path
        return replace(self, source=replace(self.source, path=None if path is None else pinned(path, run)))
