"""Configurations: their identities, and the rankings that they share."""

import functools
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.pipelines.experiment.file.corpora import CORPUS, Corpus
from rankbeam.pipelines.experiment.file.generate import TemplateFile
from rankbeam.pipelines.experiment.file.models import DISTANCE, MIN_SCORE, TOP_K
from rankbeam.pipelines.experiment.grid.components import (
    ANSWERS,
    GENERATE,
    RERANK,
    REWRITE,
    Generating,
    Reranking,
    Retrieval,
    RewritingQueries,
)
from rankbeam.transforms.clients.bigquery.names import pinned_path
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.clients.retrievers.rerankers import FusedLists
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.metrics.evaluation import Configuration, Source
from rankbeam.transforms.records.stages import FusionPart, FusionPlan, RerankPlan, RewrittenQuery


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid."""

    name: str
    item_name: str
    place: Place
    retriever: Retrieval
    top_k: int | None  # results per query; None for all
    distance: float | None = None  # only results nearer than this, a score being a negative distance; None for all
    generator: Generating | None = None
    rewriter: RewritingQueries | None = None
    reranker: Reranking | None = None
    text: int | None = None  # the number of the rewritten text; None for all
    dialect: Dialect = RANKBEAM
    parts: tuple["Cell", ...] = ()

    @property
    def canonical(self) -> str:
        """Everything that determines its scores, as JSON."""
        return _canonical(self._decisive)

    @property
    def config_id(self) -> str:
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:12]

    @property
    def request(self) -> str:
        """The request for a ranking: cells with equal requests are cut from one ranking."""
        if self.reranker is not None and (base := self.base) is not None:
            distance = {} if base.cut is None else {DISTANCE: base.cut}
            return _canonical({RERANK: self.reranker.ordering_parameters(), "of": base.request, **distance})
        limits = {TOP_K: self.top_k, DISTANCE: self.distance if self.lists else self.sent}
        depth = limits if self._asks_exactly or self.lists else {}
        request = {self.retriever.role: self._retriever, **self._corpus, **depth}
        if self.rewriter is None:
            return _canonical(request)
        if self.lists:
            return _canonical({**request, REWRITE: self.rewriter.decisive()})
        return _canonical({**request, REWRITE: [self.rewriter.single(), self.text or 0]})

    @property
    def rewritten(self) -> RewrittenQuery | None:
        """The rewritten text for its retriever; None for the query itself, or for several texts."""
        if self.rewriter is None or self.reranker is not None or self.lists:
            return None
        return self.rewriter.rewritten(self.text or 0, self.retriever.parameters.appends_passages)

    @property
    def lists(self) -> "tuple[Cell, ...]":
        """One configuration for each rewritten text, and one for the query if it is used; their rankings are fused."""
        if self.rewriter is None or self.reranker is not None or self.text is not None:
            return ()
        numbers = range(self.rewriter.parameters.texts)
        if len(numbers) == 1 and not self.rewriter.further:
            return ()
        retrieved = replace(self, generator=None, dialect=RANKBEAM)
        original = (replace(retrieved, rewriter=None),) if self.rewriter.further else ()
        return (*original, *(replace(retrieved, text=number) for number in numbers))

    @property
    def base(self) -> "Cell | None":
        """The configuration that is reranked; None without a reranker."""
        if self.reranker is None:
            return None
        return replace(self, reranker=None, generator=None, top_k=self.reranker.depth, dialect=RANKBEAM)

    @property
    def origin(self) -> Retrieval:
        """The component that its ranking comes from."""
        if self.reranker is not None:
            return self.reranker.as_retrieving
        return (
            replace(self.retriever, parameters=FusedLists(), corpus=None, embedder=None)
            if self.lists
            else self.retriever
        )

    @property
    def hidden(self) -> "tuple[Cell, ...]":
        """Configurations that provide rankings for its own, but are not part of the experiment."""
        return self.lists if self.base is None else (self.base, *self.base.hidden)

    @property
    def cut(self) -> float | None:
        """Distance limit to apply to results; None if it has been applied before."""
        if self.reranker is not None:
            return self.reranker.cut
        is_applied = self._asks_exactly and self.sent is not None
        return None if is_applied or self.lists else self.distance

    @property
    def sent(self) -> float | None:
        """Distance limit in the request to the service."""
        parameters = self.retriever.parameters
        return self.distance if parameters.has_distances and parameters.gives_distances else None

    @property
    def lower_is_better(self) -> bool:
        """True if its scores are distances."""
        if self.reranker is not None or self.lists:
            return False
        return self.retriever.parameters.gives_distances

    @property
    def width(self) -> tuple[bool, int, bool, float]:
        """Depth of the cell in its ranking: number of results, then distance."""
        limit = self.distance if self.reranker is None else self.reranker.cut
        return self.top_k is None, self.top_k or 0, limit is None, limit or 0.0

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
        generate = {} if self.generator is None else {GENERATE: self.generator.decisive()}
        dialect = {} if self.dialect == RANKBEAM else {"dialect": self.dialect.name}
        rewrite = {} if self.rewriter is None else {REWRITE: self.rewriter.decisive()}
        rerank = {} if self.reranker is None else {RERANK: self.reranker.decisive()}
        retrieval = {self.retriever.role: self._retriever, **self._corpus, TOP_K: self.top_k}
        return {**retrieval, **self._threshold, **rewrite, **rerank, **generate, **dialect}

    @property
    def _threshold(self) -> dict[str, float]:
        if self.distance is None:
            return {}
        return (
            {DISTANCE: self.distance} if self.retriever.parameters.gives_distances else {MIN_SCORE: 0.0 - self.distance}
        )

    @property
    def _corpus(self) -> dict[str, Any]:
        """The corpus that is searched, if the experiment describes it."""
        return {} if self.retriever.corpus is None else {CORPUS: self.retriever.corpus.decisive()}

    @property
    def _retriever(self) -> dict[str, Any]:
        parts = {"parts": [part._decisive for part in self.parts]} if self.parts else {}
        return {**self.retriever.decisive(), **parts}


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class PlannedSource:
    """One ranking for each query, from which configurations are cut."""

    source: Source
    retriever: Retrieval
    reranker: Reranking | None = None

    def completed(self, folder: str, pool: str | None, rankings: bool | None) -> "PlannedSource":
        """The source with paths below a folder, and with values from the rest of the experiment."""
        retriever = self.retriever.resolved(folder)
        path = retriever.parameters.inputs()["path"] if retriever.parameters.route is Route.READ else None
        keeps = retriever.parameters.route is not Route.READ if rankings is None else rankings
        return replace(
            self, source=replace(self.source, path=path, pool=pool, keep_rankings=keeps), retriever=retriever
        )

    def searching(self, resources: Mapping[Corpus, tuple[str, str]]) -> "PlannedSource":
        """The source with the identity and resource of the corpus that it searches, if a service builds it."""
        corpus = self.retriever.corpus
        if corpus is None or corpus not in resources:
            return self
        return replace(self, retriever=self.retriever.searching(*resources[corpus]))

    def pinned(self, run: str, day: str | None = None) -> "PlannedSource":
        """The source, whose BigQuery query runs once per execution, and whose calls belong to `day` if there is one."""
        path = self.source.path
        source = replace(self.source, path=None if path is None else pinned_path(path, run))
        return replace(self, source=source, retriever=self.retriever if day is None else self.retriever.on(day))


@dataclass(frozen=True)
class ExpandedGrid:
    """The configurations of an experiment, and the rankings that they share."""

    cells: tuple[Cell, ...]  # every configuration, in order
    configurations: tuple[Configuration, ...]
    sources: tuple[PlannedSource, ...]
    embedders: frozenset[str]  # the services that embed texts for retrievers in this process
    templates: Mapping[TemplateFile, bool]  # True if all configurations also generate without contexts


def with_sources(cells: Sequence[Cell], unit: str, judged: Collection[JudgedMetric]) -> ExpandedGrid:
    """Group the configurations that one ranking can serve."""
    requests = [(cell.request, cell) for cell in cells]
    primary = {source_key: max(group, key=lambda cell: cell.width) for source_key, group in grouped(requests).items()}
    groups = grouped([*requests, *((hidden.request, hidden) for cell in cells for hidden in cell.hidden)])
    positions = {source_key: position for position, source_key in enumerate(groups)}
    return ExpandedGrid(
        cells=tuple(cells),
        configurations=tuple(
            _configuration(cell, positions[source_key], primary[source_key], judged) for source_key, cell in requests
        ),
        sources=tuple(
            PlannedSource(
                _source(group, positions, unit),
                (primary[source_key] if source_key in primary else group[0]).origin,
                group[0].reranker,
            )
            for source_key, group in groups.items()
        ),
        embedders=frozenset(cell.retriever.embedder.name for cell in cells if cell.retriever.embedder is not None),
        templates=_templates(cells),
    )


def _templates(cells: Sequence[Cell]) -> dict[TemplateFile, bool]:
    templates = {cell.rewriter.file: True for cell in cells if cell.rewriter is not None}
    for entry in (cell.generator for cell in cells):
        if entry is not None:
            templates[entry.file] = templates.get(entry.file, True) and entry.parameters.without_contexts
    return templates


def _configuration(cell: Cell, source: int, primary: Cell, judged: Iterable[JudgedMetric]) -> Configuration:
    return Configuration(
        config_id=cell.config_id,
        name=cell.name,
        source=source,
        retriever=cell.retriever.kind,
        parameters=cell.canonical,
        top_k=cell.top_k,
        derived_from=None if cell == primary or not _covers(primary, cell) else primary.config_id,
        dialect=cell.dialect,
        distance=cell.cut,
        generation=None if cell.generator is None else cell.generator.generation,
        judged=frozenset(str(metric) for metric in judged if _has_values(metric, cell)),
    )


def _has_values(metric: JudgedMetric, cell: Cell) -> bool:
    return cell.is_answered or (Need.ANSWER not in metric.definition.needs and metric.cutoff is not None)


def _covers(primary: Cell, cell: Cell) -> bool:
    """Return whether one cell's results contain those of another: a source may return more than any cell needs."""
    return primary.cut is None or (cell.cut is not None and cell.cut <= primary.cut)


def _source(group: Sequence[Cell], positions: Mapping[str, int], unit: str) -> Source:
    """One request for a group of cells, as deep as the deepest of them."""
    all_there_is = any(cell.top_k is None for cell in group)
    depth = functools.reduce(SearchDepth.joined, (SearchDepth(cell.top_k or 0, cell.sent) for cell in group))
    return Source(
        path=None,
        top_k=None if all_there_is else depth.results,
        refuse_repeats=group[0].retriever.parameters.refuses_repeats(unit),
        distance=None if group[0].reranker is not None else depth.distance,
        lower_is_better=group[0].lower_is_better,
        fusion=_fusion_plan(group[0], positions),
        replayed=group[0].retriever.role == ANSWERS,
        rerank=_rerank_plan(group[0], positions),
        rewrite=group[0].rewritten,
    )


def _rerank_plan(cell: Cell, positions: Mapping[str, int]) -> RerankPlan | None:
    """Plan to rerank the ranking of a cell's base; None without a reranker."""
    if cell.reranker is None or (base := cell.base) is None:
        return None
    return RerankPlan(positions[base.request], cell.reranker.depth, base.cut)


def _fusion_plan(cell: Cell, positions: Mapping[str, int]) -> FusionPlan | None:
    """Plan to fuse a cell from its parts; None if it is not a fusion."""
    parts = tuple(
        FusionPart(
            source=positions[part.request], top_k=part.top_k, distance=part.cut, lower_is_better=part.lower_is_better
        )
        for part in cell.lists or cell.parts
    )
    if cell.reranker is not None or not parts:
        return None
    return FusionPlan(parts) if (fusion := cell.retriever.fusion) is None else fusion.plan(parts)
