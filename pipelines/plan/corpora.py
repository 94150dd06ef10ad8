"""Forecast of corpora, and of reads from BigQuery.

It shows corpora that exist, documents to import, bytes of BigQuery tables, and bytes of queries by a dry run.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.corpora import Corpus
from rankbeam.pipelines.local.progress import clock
from rankbeam.pipelines.show.tabular import bytes_text
from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.cases.source import file_of
from rankbeam.transforms.records.errors import RankbeamError, pluralize


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus that configurations search."""

    name: str
    type: str
    content: str
    configurations: int
    state: str | None = None  # "exists", "incomplete" or "missing" if a service builds it; else None
    resource: str = ""
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0
    cost: float | None = None  # None if no price is given

    def line(self) -> str:
        searching = pluralize(self.configurations, "configuration searches", "configurations search")
        parts = [f"corpus {self.name}: {self.content}", f"{searching} it"]
        if self.state == "exists":
            parts.append(f"exists: {self.resource}, nothing to import")
        elif self.state is not None:
            begun = "imports what is missing" if self.state == "incomplete" else "imports"
            most = "at most " if self.state == "incomplete" else ""
            parts.append(
                f"{begun}: {most}{pluralize(self.documents, 'document')}, about {pluralize(self.chunks, 'chunk')}"
            )
            parts.append(f"{clock(self.seconds)} at the quota of embeddings")
            parts += [] if self.cost is None else [f"cost {self.cost:,.2f}"]
        return " · ".join(parts)


Forecast = tuple[tuple[CorpusPlan, ...], Experiment, tuple[str, ...]]
"""Plans of all corpora, the experiment with their identities, and warnings."""


def corpora_plan(experiment: Experiment) -> Forecast:
    source_corpora = [source.retriever.corpus for source in experiment.sources]
    searched = (source_corpora[configuration.source] for configuration in experiment.evaluation.configurations)
    counts: Counter[Corpus] = Counter(corpus for corpus in searched if corpus is not None)
    plans = {
        corpus: CorpusPlan(corpus.name, corpus.kind, corpus.parameters.described(), count)
        for corpus, count in counts.items()
    }
    return _with_served(experiment, plans) if experiment.served else (tuple(plans.values()), experiment, ())


def _with_served(experiment: Experiment, plans: Mapping[Corpus, CorpusPlan]) -> Forecast:
    """Add the state of corpora at their services, and the remaining work."""
    from rankbeam.pipelines.run import corpora  # few experiments need it

    quota = experiment.calls.corpus_quotas.imports
    served, resources = dict(plans), {}
    warnings: list[str] = []
    for needed in corpora.needed_corpora(experiment):
        documents = corpora.documents_of(experiment, needed.source)
        warnings += [*corpora.title_warnings(documents, needed), *filter(None, [documents.left_out])]
        try:
            existing = corpora.find_existing(experiment, needed, documents)
        except RankbeamError as error:
            existing = {}
            warnings.append(f"existing corpora cannot be listed, and the plan assumes that there are none: {error}")
        for corpus, request in needed.requests.items():
            found_corpus = existing.get(corpus)
            resource = "" if found_corpus is None else found_corpus.resource
            resources[corpus] = (request.identity(documents), resource)
            if found_corpus is not None and found_corpus.suffices(request.most_failures(documents)):
                served[corpus] = replace(plans[corpus], state="exists", resource=resource, cost=0.0)
                continue
            chunks, tokens = documents.chunks(corpus.parameters.chunk_size, corpus.parameters.chunk_overlap)
            served[corpus] = replace(
                plans[corpus],
                state="missing" if found_corpus is None else "incomplete",
                resource=resource,
                documents=len(documents.tokens),
                chunks=chunks,
                seconds=chunks * 60 / quota.embeddings_per_minute,
                cost=None if quota.price_per_million is None else tokens * quota.price_per_million / 1e6,
            )
    return tuple(served.values()), experiment.searching(resources), tuple(warnings)


@dataclass(frozen=True)
class TablePlan:
    """A table, view or query of BigQuery that an experiment reads."""

    source: str
    bytes: int  # upper bound: all columns of a table, or the bytes that a query processes
    is_query: bool  # queries and views are charged by these bytes; tables go through the Storage Read API

    def line(self) -> str:
        """A line of text.

        >>> TablePlan("bigquery://my-project.search.qrels", 1_250_000, is_query=False).line()
        'bigquery://my-project.search.qrels: at most 1.2 MB, read by the Storage Read API'
        """
        price = "the query processes" if self.is_query else "at most"
        way = "by a dry run" if self.is_query else "read by the Storage Read API"
        return f"{self.source}: {price} {bytes_text(self.bytes)}, {way}"


def table_plans(experiment: Experiment) -> tuple[TablePlan, ...]:
    """The sources in BigQuery, each once, in the experiment's order."""
    paths = dict.fromkeys(file_of(path) for path in experiment.inputs())
    tables = [TableSource.parse(path) for path in paths if is_table(path)]
    return tuple(TablePlan(str(table), *read.volume(table)) for table in tables)
