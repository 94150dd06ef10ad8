"""From the grid to the systems under test and the sources of their rankings, which configurations share."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rankbeam.pipelines.experiment.file.corpora import Corpus
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.file.template_files import TemplateFile
from rankbeam.pipelines.experiment.grid.cells import ANSWERS, Cell, Reranking, Retrieving
from rankbeam.pipelines.experiment.grid.combinations import GridContext
from rankbeam.pipelines.experiment.grid.grid import cells
from rankbeam.transforms.clients.bigquery.read_source import pinned
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.records.calls.call import Reach
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.evaluation import Configuration, Source
from rankbeam.transforms.records.stages import FusionPart, FusionPlan, RerankPlan


@dataclass(frozen=True)
class PlannedSource:
    """One ranking a query, for all configurations that are cut from it."""

    source: Source
    retriever: Retrieving
    reranker: Reranking | None = None

    def completed(self, folder: str, pool: str | None, rankings: bool | None) -> "PlannedSource":
        """The source with paths below a folder, and what depends on the rest of the experiment."""
        retriever = self.retriever.resolved(folder)
        path = retriever.parameters.inputs()["path"] if retriever.route is Route.READ else None
        keeps = retriever.route is not Route.READ if rankings is None else rankings
        return replace(
            self, source=replace(self.source, path=path, pool=pool, keep_rankings=keeps), retriever=retriever
        )

    def searching(self, resources: Mapping[Corpus, tuple[str, str]]) -> "PlannedSource":
        """The source with the identity and the resource of the corpus that it searches, if a service builds it."""
        corpus = self.retriever.corpus
        if corpus is None or corpus not in resources:
            return self
        return replace(self, retriever=self.retriever.searching(*resources[corpus]))

    def pinned(self, run: str, day: str | None = None) -> "PlannedSource":
        """The source, with a query to BigQuery that is run once in an execution, and with calls of one day if given."""
        path = self.source.path
        source = replace(self.source, path=None if path is None else pinned(path, run))
        return replace(self, source=source, retriever=self.retriever if day is None else self.retriever.on(day))


@dataclass(frozen=True)
class Expanded:
    """The result of `expand`."""

    cells: tuple[Cell, ...]  # every configuration, in order
    configurations: tuple[Configuration, ...]
    sources: tuple[PlannedSource, ...]

    def completed(self, folder: str, pools: Sequence[str | None], rankings: bool | None) -> tuple[PlannedSource, ...]:
        """The sources with paths below a folder, and what depends on the rest of the experiment."""
        named = zip(self.sources, pools, strict=True)
        return tuple(source.completed(folder, pool, rankings) for source, pool in named)

    @property
    def embedders(self) -> set[str]:
        """The services that embed texts for retrievers in this process."""
        return {cell.retriever.embedder.name for cell in self.cells if cell.retriever.embedder is not None}

    @property
    def templates(self) -> dict[TemplateFile, bool]:
        """The templates, and whether all configurations with a template generate without contexts, too."""
        rewriters = [cell.rewriter for cell in self.cells if cell.rewriter is not None]
        templates = {rewriter.file: True for rewriter in rewriters}
        for entry in (cell.generator for cell in self.cells):
            if entry is not None:
                templates[entry.file] = templates.get(entry.file, True) and entry.parameters.without_contexts
        return templates


def expand(context: GridContext, model: ExperimentModel, problems: list[InputError]) -> Expanded:
    """Cross every configuration with the grid, and group what one ranking can serve."""
    shown = cells(context, model, problems)
    requests = [(cell, cell.asked) for cell in shown]
    groups = _groups(requests)
    primary = {source_key: max(group, key=lambda cell: cell.width) for source_key, group in groups.items()}
    groups = _groups([*requests, *((hidden, hidden.asked) for cell in shown for hidden in cell.hidden)])
    positions = {source_key: position for position, source_key in enumerate(groups)}
    return Expanded(
        cells=tuple(shown),
        configurations=tuple(
            _configuration(cell, positions[source_key], primary[source_key]) for cell, source_key in requests
        ),
        sources=tuple(
            PlannedSource(
                _source(group, positions, model.dataset.unit),
                (primary[source_key] if source_key in primary else group[0]).origin,
                group[0].reranker,
            )
            for source_key, group in groups.items()
        ),
    )


def _groups(cells: Iterable[tuple[Cell, str]]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell, source_key in cells:
        groups.setdefault(source_key, []).append(cell)
    return groups


def _configuration(cell: Cell, source: int, primary: Cell) -> Configuration:
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
    )


def _covers(primary: Cell, cell: Cell) -> bool:
    """Return whether one cell's results contain those of another: a source may return more than any cell needs."""
    return primary.cut is None or (cell.cut is not None and cell.cut <= primary.cut)


def _source(group: Sequence[Cell], positions: Mapping[str, int], unit: str) -> Source:
    """One request for a group of cells, as deep as the deepest of them."""
    all_there_is = any(cell.top_k is None for cell in group)
    reach = functools.reduce(Reach.joined, (Reach(cell.top_k or 0, cell.distance) for cell in group))
    return Source(
        path=None,
        top_k=None if all_there_is else reach.results,
        refuse_repeats=group[0].retriever.parameters.refuses_repeats(unit),
        distance=None if group[0].reranker is not None else reach.distance,
        lower_is_better=group[0].lower_is_better,
        fusion=_fusion_plan(group[0], positions),
        replayed=group[0].retriever.role == ANSWERS,
        rerank=_rerank_plan(group[0], positions),
        rewrite=group[0].rewritten,
    )


def _rerank_plan(cell: Cell, positions: Mapping[str, int]) -> RerankPlan | None:
    """Plan to rerank the ranking that a cell is made from; None without a reranker."""
    if cell.reranker is None or (base := cell.base) is None:
        return None
    return RerankPlan(positions[base.asked], cell.reranker.depth, base.cut)


def _fusion_plan(cell: Cell, positions: Mapping[str, int]) -> FusionPlan | None:
    """Plan to fuse a cell from its parts; None if it is not a fusion."""
    parts = tuple(
        FusionPart(
            source=positions[part.asked],
            top_k=part.top_k,
            distance=part.cut,
            lower_is_better=part.lower_is_better,
        )
        for part in cell.lists or cell.parts
    )
    if cell.reranker is not None or not parts:
        return None
    return FusionPlan(parts) if (fusion := cell.retriever.fusion) is None else fusion.plan(parts)
